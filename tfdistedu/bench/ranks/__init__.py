"""What one rank of a benchmark runs: the same clock for all, and a few lines for each implementation.

block                      the clock, and the line to the launcher; needs NumPy alone
gloo, openmpi              programs for the peers' environment, which holds no tfdistedu
ours, tensorflow_ring      functions for the tasks of a `LocalCluster`
"""
