"""Your TF_CONFIGs at work: three processes on this machine read them, build a strategy, and add up a number.

The ports of your texts may be taken here, so each is replaced by a free one, the same in all texts. All else is yours:
a wrong index or a wrong list would leave the three waiting for each other, until a deadline names who did not answer.
"""

import json

from tfdistedu.cluster.config import parse
from tfdistedu.cluster.local import LocalCluster

NEEDS = ["tf_configs"]
DEADLINE = 60.0


class ClusterOfTexts(LocalCluster):
    """A chief and two workers that find the learner's texts in TF_CONFIG."""

    def __init__(self, texts):
        """Take the texts, from task to text."""
        super().__init__(workers=2, chief=True, deadline=DEADLINE, echo=False)
        self.texts = texts

    def tf_config_of(self, task):
        """Return the learner's text of a task, with ports that are free here."""
        plan = parse(self.texts["chief:0"]).config.tasks
        free = [address for job in ("chief", "worker") for address in self.addresses[job]]
        text = self.texts[task]
        for place, known in enumerate(plan):
            text = text.replace(f'"{known.address}"', f'"#{place}"')
        for place, address in enumerate(free):
            text = text.replace(f'"#{place}"', f'"{address}"')
        return json.loads(text)


def add_up():
    """Say who this process is, and add up 1, 10 and 100 over all."""
    import os

    from tfdistedu.synchronous.multi_worker import multi_worker_strategy

    strategy = multi_worker_strategy()
    import tensorflow as tf

    task = json.loads(os.environ["TF_CONFIG"])["task"]
    mine = 10.0 ** (0 if task["type"] == "chief" else task["index"] + 1)
    total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(mine)))
    return f"{task['type']}:{task['index']}", mine, float(strategy.experimental_local_results(total)[0])


def use(mine, say):
    """Start three processes with the learner's texts, and say what each was told and what they added up."""
    texts = mine.tf_configs(["localhost"] * 3, 0, True)
    say("A chief and two workers start here, each with your text, and add up 1, 10 and 100.")
    with ClusterOfTexts(texts) as cluster:
        results = cluster.run(add_up)
    for task, (believes, brings, total) in results.items():
        say(f"{task} takes itself for {believes}, brings {brings:g} and gets {total:g}", "  ")
    right = all(task == believes and total == 111 for task, (believes, _, total) in results.items())
    say("All three met." if right else "They did not all meet.", "  ")
    return 0 if right else 1
