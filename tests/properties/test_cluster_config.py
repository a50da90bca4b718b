"""Whatever stands in TF_CONFIG: never a traceback, always findings or a config, and what is rendered reads the same."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from tfdistedu.cluster.config import build, parse
from tfdistedu.cluster.config.catalogue import KINDS

STRATEGIES = st.sampled_from([None, "multi_worker", "parameter_server"])
# Lone surrogates are what Python makes of bytes in the environment that are no UTF-8.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
NAMES = ["cluster", "task", "type", "index", "worker", "chief", "ps", "evaluator", "master", "workers", "rpc_layer"]
ADDRESSES = ["a:2222", "b:2222", "localhost:1", "[::1]:5", "::1", "0.0.0.0:7", "http://a:1", "a:0", "a_b:1"]
WORDS = st.sampled_from([*NAMES, *ADDRESSES, "grpc", "0", "1", "-1", "１"])
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | WORDS
ANY_JSON = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
GOOD = build(workers=2, ps=1, chief=True, hosts=["a", "b", "c", "d"])[1].as_json()


def holds(text: str, strategy: str | None) -> None:
    parsed = parse(text, strategy)
    assert (parsed.config is None) == bool(parsed.errors)
    for finding in parsed.findings:
        assert finding.code in KINDS
        for part in (finding.where, finding.message, finding.remedy):
            assert part
            # On one line, and printable: a text of the environment may hold escapes and half characters.
            assert part.isprintable(), part
            assert len(part) < 500
    if parsed.config is not None:
        again = parse(parsed.config.render(), strategy)
        assert again.config == parsed.config
        assert again.config.render() == parsed.config.render()
        assert set(again.codes) <= set(parsed.codes)


@given(ANY_TEXT | st.text("{}[]\"':,ab1 \\$", max_size=40), STRATEGIES)
@example("[" * 100_000, None)
@example('{"a":' * 10_000, None)
@example("9" * 5000, None)
@example('{"x": 1e999}', None)
def test_any_text_gives_findings_or_a_config(text, strategy):
    holds(text, strategy)


@given(ANY_JSON, STRATEGIES)
def test_any_json_gives_findings_or_a_config(data, strategy):
    holds(json.dumps(data), strategy)


@given(ANY_JSON, ANY_JSON, ANY_JSON, STRATEGIES)
@example([" \x1b"], None, None, None)
def test_any_cluster_and_task_give_findings_or_a_config(jobs, kind, index, strategy):
    holds(json.dumps({"cluster": {"worker": jobs, "ps": ["p:1"]}, "task": {"type": kind, "index": index}}), strategy)


@st.composite
def mutated(draw) -> str:
    """Change a good config in one to three places: a value, a key, or a stretch of its text."""
    data = json.loads(json.dumps(GOOD))
    for _ in range(draw(st.integers(0, 3))):
        holder = draw(st.sampled_from([data, data.get("cluster"), data.get("task")]))
        if isinstance(holder, dict) and holder:
            key = draw(st.sampled_from(sorted(holder)))
            if draw(st.booleans()):
                holder[key] = draw(ANY_JSON | st.lists(WORDS, max_size=4))
            else:
                holder[draw(WORDS)] = holder.pop(key)
    text = json.dumps(data)
    if draw(st.booleans()):
        start, length = draw(st.integers(0, len(text))), draw(st.integers(0, 5))
        text = text[:start] + draw(ANY_TEXT | WORDS) + text[start + length :]
    return text


@given(mutated(), STRATEGIES)
def test_a_good_config_with_some_damage_gives_findings_or_a_config(text, strategy):
    holds(text, strategy)


@given(st.integers(0, 4), st.integers(0, 3), st.booleans(), st.booleans(), st.integers(1, 65000))
def test_what_build_gives_is_sound_and_reads_back_as_itself(workers, ps, chief, evaluator, port):
    if workers == 0 and (ps or not chief):
        return  # refused; a test of its own says so
    configs = build(workers, ps, chief, evaluator, ports=range(port, port + workers + ps + chief))
    assert len(configs) == workers + ps + chief + evaluator
    for config in configs:
        assert parse(config.render()).config == config
        assert parse(config.render()).errors == ()
