"""Who dials whom, and does anybody listen there? What one looks at before a job starts."""

from __future__ import annotations

from tfdistedu.cluster.config import parse


# --8<-- [start:missing]
def missing_edges(texts):
    """Return every connection that fails, as (who dials, whom, where)."""
    configs = {name: parse(text).config for name, text in texts.items()}
    # Each process listens where its own text says, and at that place alone.
    listens = {config.address: name for name, config in configs.items() if config.address}
    missing = []
    for name, config in configs.items():
        if config.address is None:
            continue  # an evaluator is no member: it reads checkpoints, and dials nobody
        for other in config.others:
            if listens.get(other.address) != other.name:
                missing.append((name, other.name, other.address))
    return missing


# --8<-- [end:missing]
