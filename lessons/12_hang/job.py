"""A training job whose workers evaluate when they like. It hangs; see what its workers say before and where they stand.

`group` is `tfdistedu.links.meeting.Group` in one process, or `real.StrategyGroup` on real workers.
"""


# --8<-- [start:job]
def job(group, evaluate_after, steps, log):
    """Train; after some steps of its own this worker evaluates."""
    for step in range(steps):
        group.all_reduce("gradient", 1.0)
        group.all_reduce("loss", 0.5)
        log(f"step {step} done")
        if step in evaluate_after:
            group.all_reduce("accuracy", 0.9)
    log("finished")


# --8<-- [end:job]
