"""A set of TF_CONFIGs is told where it first goes wrong: text, process, task; and pictures of who dials whom."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import pytest

from tfdistedu.cluster.config import build
from tfdistedu.course.diagnose_cluster import check_findings, check_identities, check_plan, probe_texts, texts_of
from tfdistedu.course.graph_svg import Arrow, graph_svg
from tfdistedu.course.wrong import Wrong
from tfdistedu.errors import BadInput

CONFIGS = build(2, 1, ports=[1, 2, 3])
TEXTS = {config.name: config.render() for config in CONFIGS}
NAMES = list(TEXTS)


def make():
    return dict(reversed(TEXTS.items()))


def test_right_texts_pass_all_checks_in_the_plans_order():
    texts = texts_of(make, NAMES)
    assert list(texts) == NAMES
    check_findings("make()", {name: text for name, text in texts.items() if name != "ps:0"}, "json-")
    check_identities("make()", texts)
    check_plan("make()", texts, CONFIGS[0])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "has to return a dictionary"),
        ({"worker:0": {"cluster": {}}}, "has to return a dictionary"),
        ({"worker:0": "{}"}, "has no text for worker:1"),
        (TEXTS | {"worker:2": "{}"}, "has a text for worker:2"),
    ],
)
def test_what_is_no_set_of_texts_is_refused_by_name(value, says):
    with pytest.raises(Wrong, match=says):
        texts_of(lambda: value, NAMES)


def test_a_finding_has_process_place_reason_and_code_and_not_the_remedy():
    broken = TEXTS | {"worker:1": TEXTS["worker:1"].replace("localhost:2", "localhost")}
    with pytest.raises(Wrong) as wrong:
        check_findings("make()", broken, "address-")
    assert str(wrong.value).startswith("worker:1, cluster.worker[1]: ")
    assert "[address-no-port]" in str(wrong.value)
    assert "2222" not in str(wrong.value) + str(wrong.value.details)
    check_findings("make()", broken, "json-")  # a code that begins otherwise is another test's


def test_two_processes_of_one_name_are_seen_though_each_text_is_right():
    with pytest.raises(Wrong, match="worker:1 takes itself for worker:0") as wrong:
        check_identities("make()", TEXTS | {"worker:1": TEXTS["worker:0"]})
    assert wrong.value.symptom == "two processes are worker:0 and nobody is worker:1, so all wait for worker:1"


def test_another_address_in_one_text_is_named_with_both():
    other = TEXTS["worker:1"].replace("localhost:3", "localhost:4")
    with pytest.raises(Wrong, match="worker:1 knows ps:0 at localhost:4; the plan has it at localhost:3"):
        check_plan("make()", TEXTS | {"worker:1": other}, CONFIGS[0])
    fewer = json.dumps({"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": {"type": "worker", "index": 0}})
    with pytest.raises(Wrong, match="worker:0 knows no ps:0; the plan has it at localhost:3"):
        check_plan("make()", TEXTS | {"worker:0": fewer}, CONFIGS[0])
    with pytest.raises(Wrong, match="worker:0 knows ps:0 at localhost:3; the plan has none"):
        check_plan("make()", {"worker:0": TEXTS["worker:0"]}, build(2, ports=[1, 2])[0])


def test_a_fingerprint_is_of_what_the_texts_mean_and_not_of_how_they_are_written():
    indented = {name: json.dumps(json.loads(text), indent=3, sort_keys=True) for name, text in TEXTS.items()}
    assert probe_texts(make) == probe_texts(lambda: indented)
    spoilt = TEXTS | {"ps:0": TEXTS["ps:0"].replace(":3", ":4")}
    assert probe_texts(make) != probe_texts(lambda: spoilt)
    assert probe_texts(lambda: 1 // 0) == "raises ZeroDivisionError"
    assert probe_texts(lambda: [1]) == "list"


def test_a_picture_has_every_name_and_arrow_in_its_words_and_crosses_out_what_is_missing():
    text = graph_svg("a & b", ["a", "b"], [Arrow("a", "b", "sum <1>"), Arrow("b", "a", missing=True)], {"a": "step 3"})
    root = xml.etree.ElementTree.fromstring(text)
    words = ["".join(part.itertext()) for part in root.iter()]
    assert "a to b: sum <1>. b to a (missing). a: step 3." in words
    assert text.count('class="cross"') == 1
    assert text == graph_svg(
        "a & b", ["a", "b"], [Arrow("a", "b", "sum <1>"), Arrow("b", "a", missing=True)], {"a": "step 3"}
    )
    with pytest.raises(BadInput, match="there are a, b"):
        graph_svg("x", ["a", "b"], [Arrow("a", "c")])
