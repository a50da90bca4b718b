"""The one training step, in parts: loss, reduce-clip-apply, accumulation, state, precision.

Read `replica` first: it is the whole step, and every strategy runs it.
"""
