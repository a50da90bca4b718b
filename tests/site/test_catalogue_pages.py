"""The pages of the catalogues say what the code says: codes, texts, examples."""

from __future__ import annotations

import pytest

from tests.site.catalogue_pages import PARTS, filled
from tfdistedu.cluster.explain import BY_CODE


@pytest.mark.parametrize(("page", "mark", "write"), PARTS, ids=lambda value: getattr(value, "__name__", None))
def test_the_generated_part_of_a_page_is_what_the_code_gives(page, mark, write):
    wanted = "run `python -m tests.site.catalogue_pages`, and look at what changed"
    assert page.read_text(encoding="utf-8") == filled(page, mark, write()), wanted


def test_every_code_stands_on_a_page_with_an_anchor_or_in_the_table(pages):
    anchors = pages["cluster/tf-config.html"].anchors | pages["cluster/explain.html"].anchors
    cells = {cell.text.strip() for cell in pages["cluster/explain.html"].all("td")}
    assert {code for code in BY_CODE if code not in anchors and code not in cells} == set()


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.md: the marks of the generated part are missing"):
        filled(page, "", "part")
