"""What every finding says, word for word: read it as a reader of the messages would, and change it with them.

Each case: the text of TF_CONFIG, the strategy asked for, and the findings as `severity code | where | message | remedy`.
"""

# ruff: noqa: E501
CASES = [
    (
        "",
        None,
        [
            "error json-empty | the text | it is empty, and TensorFlow cannot read that; an empty variable is not an unset one | Unset it: `unset TF_CONFIG`.",
        ],
    ),
    (
        "{'cluster': {'worker': ['a:2222', 'b:2222']}, 'task': {'type': 'worker', 'index': 0}}",
        None,
        [
            'error json-single-quotes | the text | it is a Python dictionary: JSON has double quotes only, and writes null, true and false | Make it with `json.dumps(...)`, not with `str(...)`: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        ],
    ),
    (
        "{cluster: {worker: [a:2222, b:2222]}, task: {type: worker, index: 0}}",
        None,
        [
            'error json-unquoted | the text | its double quotes are gone: a shell takes them away where nothing protects them | In a shell, put single quotes around all of it: export TF_CONFIG=\'{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}\'',
        ],
    ),
    (
        '\'{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}\'',
        None,
        [
            'error json-wrapped-in-quotes | the text | the whole text stands in quotes, which belong to a shell or a file and came into the value | Take them away: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        ],
    ),
    (
        "{\u201ccluster\u201c: {\u201cworker\u201c: [\u201ca:2222\u201c, \u201cb:2222\u201c]}, \u201ctask\u201c: {\u201ctype\u201c: \u201cworker\u201c, \u201cindex\u201c: 0}}",
        None,
        [
            'error json-curly-quotes | the text | its quotes are curly, as word processors and chats make them | Write straight ones: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222",]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error json-trailing-comma | line 1 | a comma stands before a closing bracket, which Python allows and JSON does not | Take it away: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        ],
    ),
    (
        '\ufeff{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error json-bom | the text | it begins with a byte order mark, which an editor or PowerShell put there | Save the file as UTF-8 without BOM, or read it with encoding='utf-8-sig'.",
        ],
    ),
    (
        "/etc/tf_config.json",
        None,
        [
            'error json-is-a-name | the text | /etc/tf_config.json is a name, and TF_CONFIG holds the JSON itself | For a file: export TF_CONFIG="$(cat /etc/tf_config.json)"',
        ],
    ),
    (
        "${CLUSTER_CONFIG}",
        None,
        [
            "error json-not-expanded | the text | ${CLUSTER_CONFIG} was not replaced: single quotes, a service file or a Dockerfile kept it as it is | Write the JSON itself, or set it where a shell runs.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}',
        None,
        [
            "error json-cut-short | line 1, column 85 | it ends too early: a bracket or a quote is not closed; a shell or a file may have cut it | Make it with `json.dumps`, or compare it with the output of `tfdistedu run --print-config`.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task"= {"type": "worker", "index": 0}}',
        None,
        [
            'error json-broken | line 1, column 53 | it is not JSON: expecting \':\' delimiter, here: , "b:2222"]}, "task" >>> = {"type": "worker", | Make it with `json.dumps`, or compare it with the output of `tfdistedu run --print-config`.',
        ],
    ),
    (
        '["a:2222", "b:2222"]',
        None,
        [
            'error json-not-an-object | the text | it is a list, and TF_CONFIG is an object with the keys cluster and task | Write {"cluster": {...}, "task": {...}}.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0, "trial": NaN}}',
        None,
        [
            "error json-not-finite | the text | NaN or Infinity stands in it, which JSON does not have, though Python reads it | Write a number.",
        ],
    ),
    (
        '{"cluster": {"worker": ["c:2222"], "worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning json-duplicate-key | "worker" | this key stands twice in one object: the last one counts, and the first is forgotten without a word | Keep one; put all addresses of a job into its one list.',
        ],
    ),
    (
        '{"Cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error key-misspelt | "Cluster" | TensorFlow reads the key "cluster" and passes over "Cluster", without a word | Did you mean "cluster"?',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}, "comment": "two workers"}',
        None,
        [
            'warning key-unknown | "comment" | nothing of TensorFlow reads the key "comment" | Leave it out.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}, "rpc_layer": "http"}',
        None,
        [
            'error rpc-layer | rpc_layer | "http" is no protocol that TensorFlow has outside Google: grpc alone works | Leave the key out.',
        ],
    ),
    (
        '{"task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning cluster-missing | cluster | there is no cluster in it, so every process trains alone, and no one says so | Name all tasks: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": ...}; or unset TF_CONFIG.',
        ],
    ),
    (
        '{"cluster": ["a:2222", "b:2222"], "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error cluster-not-an-object | cluster | ["a:2222", "b:2222"] is no object from jobs to addresses | Write {"worker": ["a:2222", "b:2222"]}.',
        ],
    ),
    (
        '{"cluster": {"workers": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-unknown | cluster.workers | there is no job "workers": TensorFlow\'s strategies know chief, worker, ps and evaluator | Did you mean "worker"?',
        ],
    ),
    (
        '{"cluster": {"master": ["c:2222"], "worker": ["a:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-master | cluster.master | there is no job "master": TensorFlow\'s strategies know chief, worker, ps and evaluator | Did you mean "chief"?',
        ],
    ),
    (
        '{"cluster": {"worker": "a:2222,b:2222"}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-not-a-list | cluster.worker | "a:2222,b:2222" is no list of addresses | Write ["a:2222", "b:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"], "ps": []}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "warning job-empty | cluster.ps | the job has no tasks | Leave the job out, or list its addresses.",
        ],
    ),
    (
        '{"cluster": {"worker": {"first": "a:2222", "1": "b:2222"}}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-index-wrong | cluster.worker["first"] | "first" is no index: a whole number from 0, in digits | Write {"0": "a:2222", "1": "b:2222"}.',
        ],
    ),
    (
        '{"cluster": {"worker": {"0": "a:2222", "00": "b:2222"}}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-index-twice | cluster.worker["00"] | index 0 stands here twice, written in two ways | Number the tasks from 0, each once.',
        ],
    ),
    (
        '{"cluster": {"worker": {"1": "b:2222"}, "ps": ["p:2222"]}, "task": {"type": "worker", "index": 1}}',
        None,
        [
            'warning chief-missing | cluster.chief | there is no chief; someone outside this cluster must coordinate it | Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.',
            "warning job-has-gaps | cluster.worker | worker:0 is left out; a server may do with the tasks that it talks to, a strategy may not | List all addresses if you build a strategy here.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", 2222]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-not-text | cluster.worker[1] | 2222 is no text | A job is one flat list of texts: ["a:2222", "b:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", ""]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-empty | cluster.worker[1] | the address is empty | Write "host:port".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", " b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-has-spaces | cluster.worker[1] | " b:2222" has spaces in it | Write "b:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "http://b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-scheme | cluster.worker[1] | "http://b:2222" is a URL, and TensorFlow wants the host and the port alone | Write "b:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-no-port | cluster.worker[1] | "b" has no port | Write "b:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:222222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error address-port-wrong | cluster.worker[1] | there is no port 222222: the last is 65535 | Take a whole number from 1 to 65535 that is free on that machine, for example 2222.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:0"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error address-port-zero | cluster.worker[1] | port 0 means any free port: the system picks one, and no other task learns which one worker:1 has | Take a whole number from 1 to 65535 that is free on that machine, for example 2222.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "fd00::7:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-ipv6-brackets | cluster.worker[1] | "fd00::7:2222" is an IPv6 address without brackets, so nobody knows where the port begins | Write "[fd00::7]:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "10.0.0.256:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error host-wrong | cluster.worker[1] | "10.0.0.256" looks like an IPv4 address and is none: four numbers from 0 to 255, without leading zeros | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "worker_b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning host-underscore | cluster.worker[1] | the host "worker_b" has an underscore, which host names must not have: some resolvers refuse it | Call it "worker-b" if you can, or write its IP address.',
        ],
    ),
    (
        '{"cluster": {"worker": ["0.0.0.0:2222", "0.0.0.0:2223"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning host-wildcard | cluster.worker[0] | "0.0.0.0:2222" is where a server listens; another task cannot dial it, but on one machine | Write the name or the IP address by which the others reach this machine; localhost for one machine.',
            'warning host-wildcard | cluster.worker[1] | "0.0.0.0:2223" is where a server listens; another task cannot dial it, but on one machine | Write the name or the IP address by which the others reach this machine; localhost for one machine.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "localhost:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error hosts-mixed | cluster.worker[1] | "localhost:2222" of worker:1 means whichever machine reads it: from worker:0 on "a:2222" nobody reaches worker:1 there | Write the name or IP address of the machine, the same in the TF_CONFIG of every task.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222"], "ps": ["a:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-twice | cluster.ps[0] | "a:2222" is the same address, which worker:0 has: two processes cannot listen at one port | Give each task of a machine a port of its own.',
            'warning chief-missing | cluster.chief | there is no chief; someone outside this cluster must coordinate it | Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.',
        ],
    ),
    (
        '{"cluster": {"chief": ["a:2222", "b:2222"]}, "task": {"type": "chief", "index": 0}}',
        None,
        [
            "error chief-many | cluster.chief | there are 2 chiefs, and a cluster has at most one | Keep the first; list the others as workers.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"], "evaluator": ["e:2222", "f:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error evaluator-many | cluster.evaluator | there are 2 evaluators, and a cluster has at most one | Leave them out of "cluster".',
            'warning evaluator-in-cluster | cluster.evaluator | an evaluator is listed: it takes no part in the training; TensorFlow 2 starts it beside the cluster | Leave it out of "cluster"; in its own process set the task type "evaluator" and the same cluster.',
        ],
    ),
    (
        '{"cluster": {"chief": ["c:2222"], "worker": ["a:2222"], "ps": ["p:2222"], "evaluator": ["e:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error evaluator-in-cluster | cluster.evaluator | an evaluator is listed: the coordinator would connect to it and wait for ever, for an evaluator runs no server | Leave it out of "cluster"; in its own process set the task type "evaluator" and the same cluster.',
        ],
    ),
    (
        '{"cluster": {"chief": ["c:2222"], "ps": ["p:2222"]}, "task": {"type": "chief", "index": 0}}',
        None,
        [
            'error worker-missing | cluster.worker | there is no worker, so nobody computes; a chief only coordinates here | Add "worker": ["host:port"].',
        ],
    ),
    (
        '{"cluster": {"chief": ["c:2222"], "worker": ["a:2222"]}, "task": {"type": "worker", "index": 0}}',
        "parameter_server",
        [
            'error ps-missing | cluster.ps | ParameterServerStrategy keeps its variables on parameter servers, and there is none | Add "ps": ["host:port"], or use MultiWorkerMirroredStrategy.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222"], "ps": ["p:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning chief-missing | cluster.chief | there is no chief; someone outside this cluster must coordinate it | Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"], "ps": ["p:2222"]}, "task": {"type": "worker", "index": 0}}',
        "multi_worker",
        [
            'error ps-with-multi-worker | cluster.ps | MultiWorkerMirroredStrategy has no parameter servers; the other tasks would wait for this one | Leave "ps" out, or use ParameterServerStrategy.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "warning single-task | cluster.worker | worker:0 is the only task: it trains alone | List every process, in the same order everywhere; or unset TF_CONFIG for a single process.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}}',
        None,
        [
            'error task-missing | task | it does not say which task this process is, and TensorFlow refuses that | Add "task": {"type": "worker", "index": 0}, with another index in each process.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": "worker:0"}',
        None,
        [
            'error task-not-an-object | task | "worker:0" is no object with type and index | Write {"type": "worker", "index": 0}.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"index": 0}}',
        None,
        [
            'error task-type-missing | task | the task has no type, so TensorFlow does not know which job it is in | Add "type": "worker".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "Worker", "index": 0}}',
        None,
        [
            'error task-type-unknown | task.type | "Worker" is no job of TensorFlow\'s strategies: chief, worker, ps, evaluator | Did you mean "worker"?',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "chief", "index": 0}}',
        None,
        [
            'error task-type-not-in-cluster | task.type | this process is a "chief", and the cluster has no such job: it has worker | Add "chief" to the cluster, with the address of this process, or correct the type.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker"}}',
        None,
        [
            'error task-index-missing | task | the task has no index, so all processes of its job would be the same one | Add "index": 0, and count up from process to process.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0.5}}',
        None,
        [
            "error task-index-wrong | task.index | 0.5 is no whole number | Write the number of this process in its job: 0, 1, ...",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": "0"}}',
        None,
        [
            'warning task-index-is-text | task.index | the index is the text "0"; TensorFlow makes a number of it, other programs may not | Write 0.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": -1}}',
        None,
        [
            "error task-index-negative | task.index | -1 is below 0; TensorFlow lets it pass, and fails or hangs later | Count from 0.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 2}}',
        None,
        [
            "error task-index-not-in-job | task.index | there is no worker:2 in the cluster: it lists 2 tasks, worker:0 to worker:1 | Count from 0: the first address of the list belongs to index 0.",
        ],
    ),
    (
        '{"cluster": {"chief": ["c:2222"], "worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 2}}',
        None,
        [
            "error task-index-counts-the-chief | task.index | there is no worker 2: the chief is not counted, and with a chief too workers start at 0 | Number the workers 0 to 1.",
        ],
    ),
    (
        '""',
        None,
        [
            "error json-wrapped-in-quotes | the text | the whole text stands in quotes, which belong to a shell or a file and came into the value | Write {} for a single process.",
        ],
    ),
    (
        '{\\"cluster\\": {}}',
        None,
        [
            'error json-wrapped-in-quotes | the text | its quotes have backslashes before them, which belong to another language or file | Take them away: {"cluster": {}}',
        ],
    ),
    (
        '"{\\"cluster\\": {}}"',
        None,
        [
            'error json-wrapped-in-quotes | the text | the whole text stands in quotes, which belong to a shell or a file and came into the value | Take them away: {"cluster": {}}',
        ],
    ),
    (
        "`{}`",
        None,
        [
            "error json-wrapped-in-quotes | the text | the whole text stands in quotes, which belong to a shell or a file and came into the value | Take them away: {}",
        ],
    ),
    (
        "''",
        None,
        [
            "error json-wrapped-in-quotes | the text | the whole text stands in quotes, which belong to a shell or a file and came into the value | Write {} for a single process.",
        ],
    ),
    (
        "3",
        None,
        [
            'error json-not-an-object | the text | it is a number, and TF_CONFIG is an object with the keys cluster and task | Write {"cluster": {...}, "task": {...}}.',
        ],
    ),
    (
        "null",
        None,
        [
            'error json-not-an-object | the text | it is null, and TF_CONFIG is an object with the keys cluster and task | Write {"cluster": {...}, "task": {...}}.',
        ],
    ),
    (
        "true",
        None,
        [
            'error json-not-an-object | the text | it is true or false, and TF_CONFIG is an object with the keys cluster and task | Write {"cluster": {...}, "task": {...}}.',
        ],
    ),
    (
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        None,
        [
            "error json-broken | the text | its lists or objects lie too deep in each other | An object, in it the jobs, in these the addresses: write it anew with `json.dumps`.",
        ],
    ),
    (
        '{"a": ' + "9" * 5000 + "}",
        None,
        [
            "error json-broken | the text | it holds a number with thousands of digits | An object, in it the jobs, in these the addresses: write it anew with `json.dumps`.",
        ],
    ),
    (
        '{"cluster" {}}',
        None,
        [
            "error json-broken | line 1, column 12 | it is not JSON: expecting ':' delimiter, here: {\"cluster\"  >>> {}} | Make it with `json.dumps`, or compare it with the output of `tfdistedu run --print-config`.",
        ],
    ),
    (
        '{"workers": ["a:1"]}',
        None,
        [
            'error key-misspelt | "workers" | "workers" stands beside the key "cluster", and belongs into it | Write {"cluster": {"worker": [...]}, "task": ...}.',
        ],
    ),
    (
        '{"cluster": {}}',
        None,
        [
            'warning cluster-missing | cluster | there is no cluster in it, so every process trains alone, and no one says so | Name all tasks: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": ...}; or unset TF_CONFIG.',
        ],
    ),
    (
        '{"tasks": {}, "cluster": {}}',
        None,
        [
            'error key-misspelt | "tasks" | TensorFlow reads the key "task" and passes over "tasks", without a word | Did you mean "task"?',
            'warning cluster-missing | cluster | there is no cluster in it, so every process trains alone, and no one says so | Name all tasks: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": ...}; or unset TF_CONFIG.',
        ],
    ),
    (
        '{"cluster": {"banana": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-unknown | cluster.banana | there is no job "banana": TensorFlow\'s strategies know chief, worker, ps and evaluator | There are chief, worker, ps, evaluator.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:1"], "workers": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-unknown | cluster.workers | there is no job "workers": TensorFlow\'s strategies know chief, worker, ps and evaluator | Did you mean "worker"? There is a "worker" too: keep one.',
        ],
    ),
    (
        '{"cluster": {"big job": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-unknown | cluster["big job"] | there is no job "big job": TensorFlow\'s strategies know chief, worker, ps and evaluator | There are chief, worker, ps, evaluator.',
        ],
    ),
    (
        '{"cluster": {"worker": null}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-not-a-list | cluster.worker | null is no list of addresses | Write ["a:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": 5}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-not-a-list | cluster.worker | 5 is no list of addresses | Write ["a:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": ""}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-not-a-list | cluster.worker | "" is no list of addresses | Write ["a:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": {"-1": "a:1"}}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error job-index-wrong | cluster.worker["-1"] | "-1" is no index: a whole number from 0, in digits | Write {"0": "a:2222", "1": "b:2222"}.',
        ],
    ),
    (
        '{"cluster": {"worker": {}}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error job-empty | cluster.worker | the job has no tasks, and no other job has any | Leave the job out, or list its addresses.",
        ],
    ),
    (
        '{"cluster": {"worker": {"1": "a:1", "2": "b:1"}}, "task": {"type": "worker", "index": 0}}',
        "multi_worker",
        [
            "error task-index-not-in-job | task.index | there is no worker:0 in the cluster: it lists 2 tasks, worker:1 to worker:2 | Count from 0: the first address of the list belongs to index 0.",
            "error job-has-gaps | cluster.worker | worker:0 is missing, and MultiWorkerMirroredStrategy needs every task in every TF_CONFIG | List all addresses of the job.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", ["b:2222"]]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-not-text | cluster.worker[1] | ["b:2222"] is no text, but one more level of brackets | A job is one flat list of texts: ["a:2222", "b:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", null]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-not-text | cluster.worker[1] | null is no text | A job is one flat list of texts: ["a:2222", "b:2222"].',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", " "]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-empty | cluster.worker[1] | " " is empty | Write "host:port".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "http://"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-scheme | cluster.worker[1] | "http://" is a URL, and TensorFlow wants the host and the port alone | Write "host:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "grpc://b:2222/"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-scheme | cluster.worker[1] | "grpc://b:2222/" is a URL, and TensorFlow wants the host and the port alone | Write "b:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-no-port | cluster.worker[1] | "b:" has no port | Write "b:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:http"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-port-wrong | cluster.worker[1] | the port "http" is no whole number | Take a whole number from 1 to 65535 that is free on that machine, for example 2222.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:-1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-port-wrong | cluster.worker[1] | the port "-1" is no whole number | Take a whole number from 1 to 65535 that is free on that machine, for example 2222.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:99999"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error address-port-wrong | cluster.worker[1] | there is no port 99999: the last is 65535 | Take a whole number from 1 to 65535 that is free on that machine, for example 2222.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "::1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-ipv6-brackets | cluster.worker[1] | "::1" is an IPv6 address without brackets, so nobody knows where the port begins | Write "[::1]:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "[::1]"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-no-port | cluster.worker[1] | "[::1]" has no port | Write "[::1]:2222".',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "[b]:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error host-wrong | cluster.worker[1] | [b] is no IPv6 address | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.",
        ],
    ),
    ('{"cluster": {"worker": ["a:2222", "[fe80::1%eth0]:2222"]}, "task": {"type": "worker", "index": 0}}', None, []),
    (
        '{"cluster": {"worker": ["a:2222", ":2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "error host-wrong | cluster.worker[1] | there is no host before the port | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b..c:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error host-wrong | cluster.worker[1] | "b..c" is no host name | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "-b:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error host-wrong | cluster.worker[1] | "-b" is no host name | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b\xfc:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error host-wrong | cluster.worker[1] | "b\xfc" is no host name | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "1.2.3:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error host-wrong | cluster.worker[1] | "1.2.3" looks like an IPv4 address and is none: four numbers from 0 to 255, without leading zeros | Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets.',
        ],
    ),
    (
        '{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            "warning single-task | cluster.worker | worker:0 is the only task: it trains alone, at any free port | List every process, in the same order everywhere; or unset TF_CONFIG for a single process.",
        ],
    ),
    (
        '{"cluster": {"worker": ["localhost:1", "127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-twice | cluster.worker[1] | "127.0.0.1:1" is the same place as "localhost:1", which worker:0 has: two processes cannot listen at one port | Give each task of a machine a port of its own.',
        ],
    ),
    (
        '{"cluster": {"worker": ["A:1", "a.:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'error address-twice | cluster.worker[1] | "a.:1" is the same place as "A:1", which worker:0 has: two processes cannot listen at one port | Give each task of a machine a port of its own.',
        ],
    ),
    (
        '{"cluster": {"worker": ["0.0.0.0:1", "b:1"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning host-wildcard | cluster.worker[0] | "0.0.0.0:1" is where a server listens; another task cannot dial it, but on one machine | Write the name or the IP address by which the others reach this machine; localhost for one machine.',
            'error hosts-mixed | cluster.worker[0] | "0.0.0.0:1" of worker:0 means whichever machine reads it: from worker:1 on "b:1" nobody reaches worker:0 there | Write the name or IP address of the machine, the same in the TF_CONFIG of every task.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"], "evaluator": ["e:2222"]}, "task": {"type": "worker", "index": 0}}',
        None,
        [
            'warning evaluator-in-cluster | cluster.evaluator | an evaluator is listed: it takes no part in the training; TensorFlow 2 starts it beside the cluster | Leave it out of "cluster"; in its own process set the task type "evaluator" and the same cluster.',
        ],
    ),
    (
        '{"cluster": {"ps": ["p:2222"]}, "task": {"type": "ps", "index": 0}}',
        None,
        [
            'error worker-missing | cluster.worker | there is no worker, so nobody computes | Add "worker": ["host:port"].',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:1"], "ps": ["p:1"]}}',
        None,
        [
            'warning task-missing | task | it does not say which task this process is; only a coordinator may do without | Add "task": {"type": "worker", "index": 0}, with another index in each process.',
            'warning chief-missing | cluster.chief | there is no chief; someone outside this cluster must coordinate it | Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0, "id": 3}}',
        None,
        [
            'warning key-unknown | task["id"] | nothing of TensorFlow reads the key "id" | Leave it out.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "id": 3}}',
        None,
        [
            'error key-misspelt | task["id"] | TensorFlow reads "index" and passes over "id" | Did you mean "index"?',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "banana", "index": 0}}',
        None,
        [
            'error task-type-unknown | task.type | "banana" is no job of TensorFlow\'s strategies: chief, worker, ps, evaluator | There are chief, worker, ps, evaluator.',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": 3, "index": true}}',
        None,
        [
            "error task-type-unknown | task.type | 3 is no job of TensorFlow's strategies: chief, worker, ps, evaluator | There are chief, worker, ps, evaluator.",
            "error task-index-wrong | task.index | true is no whole number | Write the number of this process in its job: 0, 1, ...",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": " 1"}}',
        None,
        [
            'error task-index-wrong | task.index | " 1" is no whole number | Write the number of this process in its job: 0, 1, ...',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": "\uff11"}}',
        None,
        [
            'error task-index-wrong | task.index | "\uff11" is no whole number | Write the number of this process in its job: 0, 1, ...',
        ],
    ),
    (
        '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1e400}}',
        None,
        [
            "error json-not-finite | the text | NaN or Infinity stands in it, which JSON does not have, though Python reads it | Write a number.",
            "error task-index-wrong | task.index | Infinity is no whole number | Write the number of this process in its job: 0, 1, ...",
        ],
    ),
    (
        '{"cluster": {"worker": ["a:1"], "ps": ["p:1"]}, "task": {"type": "ps", "index": 1}}',
        None,
        [
            "error task-index-not-in-job | task.index | there is no ps:1 in the cluster: it lists ps:0 | Count from 0: the first address of the list belongs to index 0.",
            'warning chief-missing | cluster.chief | there is no chief; someone outside this cluster must coordinate it | Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.',
        ],
    ),
    (
        '{"cluster": {"chief": ["c:1"], "worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 3}}',
        None,
        [
            "error task-index-not-in-job | task.index | there is no worker:3 in the cluster: it lists 2 tasks, worker:0 to worker:1 | Count from 0: the first address of the list belongs to index 0.",
        ],
    ),
]
