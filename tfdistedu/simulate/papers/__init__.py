"""What papers on asynchronous training found, found again: real gradients on a virtual clock, in seconds.

    staleness_aware      many learners with a fixed rate fail; with rate / staleness they train
    stale_synchronous    the time to a target has its best bound inside, neither 0 nor infinite
    backup_workers       so has the number of backup workers
    downpour             where nobody waits, nothing bounds how late an update comes

Each module holds the claim, the settings, what is measured, the sentences that have to come out true (a test holds
them), and what does not carry over from here. `tfdistedu simulate paper NAME` runs one.

Cost: some seconds each. Left out: the papers' networks, data and machines; so numbers are compared with theory, where
there is one, and curves by their shape.
"""
