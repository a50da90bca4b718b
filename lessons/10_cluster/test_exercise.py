"""Are your TF_CONFIGs right, each alone and all together? Is your prediction what is counted?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

from tfdistedu.cluster.config import build
from tfdistedu.course.diagnose import check_prediction
from tfdistedu.course.diagnose_cluster import check_findings, check_identities, check_plan, probe_texts, texts_of
from tfdistedu.course.runner import attempt
from tfdistedu.course.subject import load_module

FOLDER = Path(__file__).parent

# The plan of the five: carl has two tasks, so two ports.
PLAN = build(2, 1, True, True, ["anna", "bert", "carl", "carl"], [2222, 2222, 2222, 2223])

# What tf_configs is asked for: machines, ps, chief, evaluator; and the ports that its tasks listen at.
CASES = {
    "two workers": ((["a", "b"],), [2222, 2222]),
    "one machine": ((["localhost", "localhost", "localhost"],), [2222, 2223, 2224]),
    "a chief": ((["a", "b", "c"], 0, True), [2222, 2222, 2222]),
    "parameter servers": ((["a", "b", "c", "b", "a"], 2, True), [2222, 2222, 2222, 2223, 2223]),
    "an evaluator": ((["a", "b", "a"], 1, True, True), [2222, 2222, 2223]),
}


def five(mend_texts):
    return texts_of(mend_texts, [config.name for config in PLAN])


def test_each_text_is_json(mend_texts):
    check_findings("mend_texts()", five(mend_texts), "json-")


def test_nothing_is_wrong_in_any_text_alone(mend_texts):
    check_findings("mend_texts()", five(mend_texts))


def test_each_process_is_who_it_is(mend_texts):
    texts = five(mend_texts)
    check_findings("mend_texts()", texts)
    check_identities("mend_texts()", texts)


def test_all_know_the_cluster_of_the_plan(mend_texts):
    texts = five(mend_texts)
    check_findings("mend_texts()", texts)
    check_plan("mend_texts()", texts, PLAN[0])


def probe_mend_texts(mend_texts):
    """What the five texts mean."""
    return probe_texts(mend_texts)


def check_case(tf_configs, case):
    """Check one case: each text alone, then who each is, then whom each knows."""
    arguments, ports = CASES[case]
    plan = plan_of(arguments, ports)
    texts = texts_of(tf_configs, [config.name for config in plan], *arguments)
    call = f"tf_configs({', '.join(map(repr, arguments))})"
    check_findings(call, texts)
    check_identities(call, texts)
    check_plan(call, texts, plan[0])


def plan_of(arguments, ports):
    hosts, ps, chief, evaluator = (*arguments, *(0, False, False)[len(arguments) - 1 :])
    return build(len(hosts) - ps - chief, ps, chief, evaluator, hosts, ports)


def test_two_workers_on_two_machines(tf_configs):
    check_case(tf_configs, "two workers")


def test_workers_of_one_machine_have_ports_of_their_own(tf_configs):
    check_case(tf_configs, "one machine")


def test_a_chief_is_not_counted_among_the_workers(tf_configs):
    check_case(tf_configs, "a chief")


def test_parameter_servers_come_last_and_share_machines(tf_configs):
    check_case(tf_configs, "parameter servers")


def test_an_evaluator_is_told_of_the_cluster_and_is_not_in_it(tf_configs):
    check_case(tf_configs, "an evaluator")


def probe_tf_configs(tf_configs):
    """What the texts mean, for each case."""
    return [probe_texts(tf_configs, *arguments) for arguments, _ in CASES.values()]


def test_the_count_says_the_same(predict_edges):
    right = load_module(FOLDER / "reference.py").predict_edges()
    check_prediction(predict_edges, right, "python lessons/10_cluster/count_edges.py 4 2 chief evaluator")


def probe_predict_edges(predict_edges):
    """What was guessed."""
    return attempt(predict_edges)
