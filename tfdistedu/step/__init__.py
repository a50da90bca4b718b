"""The one training step, in parts.

Read `replica` first: it is the whole step, and every strategy runs it. Then, each in one sitting:

    loss            a replica's share of the loss          optimizer      reduce, clip, apply
    cross_replica   the step with public API alone         guards         what goes silently wrong
    accumulate      k micro-steps are one large batch      sparse         embeddings: rows that repeat
    batch_norm      statistics of the global batch         dropout        a mask of each replica's own
    precision       float16, and an overflow anywhere      learning_rate  scaling, warm-up, cosine
"""
