"""Pictures show who is where, to eyes, to screen readers and to programs; broken schedules are drawn as well."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tfdistedu.collectives import ALGORITHMS, BrokenSchedule, Schedule, find
from tfdistedu.collectives.draw import COLOURS, LETTERS, MAX_RANKS, as_json, picture
from tfdistedu.collectives.draw_svg import svg
from tfdistedu.collectives.draw_terminal import lines
from tfdistedu.errors import BadInput

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name, n_ranks=4, **options):
    function = find(name)
    return picture(function(n_ranks, **options), function.goal)


def plain(shown, width=100):
    return ["".join(text for text, _ in line).rstrip() for line in lines(shown, width)]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 7])
def test_every_algorithm_is_drawn_in_all_three_ways(name, n_ranks):
    shown = drawn(name, n_ranks)
    root = ET.fromstring(svg(shown))
    assert root.tag == SVG + "svg"
    assert as_json(shown.schedule, shown.goal)["states"][-1] is not None
    assert max(map(len, plain(shown))) <= 100


def test_the_svg_has_a_title_and_a_description_that_it_points_to():
    root = ET.fromstring(svg(drawn("ring")))
    title, description = root.find(SVG + "title"), root.find(SVG + "desc")
    assert title.text == "ring: all-reduce, 4 ranks, 4 chunks, 6 rounds"
    assert "Round 1: rank 0 sends chunk 3 to rank 1, which adds it." in description.text
    assert "Round 4: rank 0 sends chunk 0 to rank 1, which takes it over." in description.text
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


def test_the_svg_shows_letters_and_colours_where_contributions_are():
    root = ET.fromstring(svg(drawn("ring", 3)))
    uses = [use.get("href") for use in root.iter(SVG + "use")]
    # Start: each of 3 ranks has its own part in 3 chunks. End: everybody has 3 parts in 3 chunks.
    assert len(uses) == sum(len(held) for state in drawn("ring", 3).states for chunks in state for held in chunks)
    ids = {element.get("id"): element for element in root.iter() if element.get("id")}
    for rank in range(3):
        letter = next(
            element for name, element in ids.items() if name.endswith(f"-{rank}") and element.tag == SVG + "g"
        )
        assert letter.find(SVG + "rect").get("fill") == COLOURS[rank]
        assert letter.find(SVG + "text").text == LETTERS[rank]
    assert all(href[1:] in ids for href in uses)


def test_the_svg_has_a_dark_side_and_needs_nothing_from_outside():
    text = svg(drawn("ring"))
    assert "@media (prefers-color-scheme: dark)" in text
    assert not re.search(r"<script|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text)
    assert text == svg(drawn("ring"))  # the same picture is the same file


def test_styles_and_ids_of_two_pictures_in_one_page_do_not_meet():
    ids = [set(re.findall(r'id="([^"]+)"', svg(drawn(name)))) for name in ("ring", "tree")]
    assert not ids[0] & ids[1]
    style = svg(drawn("ring")).split("<style>")[1].split("</style>")[0]
    assert all(rule.strip().startswith(("#tfd-ring-", "@media", "}")) for rule in style.strip().split("\n"))


def test_a_name_with_markup_in_it_is_escaped():
    shown = picture(Schedule('<b>&"', 2, 1, []))
    assert ET.fromstring(svg(shown)).find(SVG + "title").text.startswith('<b>&"')


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_letters_can_be_read_on_every_colour():
    # The guideline asks for 4.5 to 1 (WCAG 2.1, 1.4.3); the module promises 7.
    ink = luminance("#111111")
    assert len(set(COLOURS)) == len(set(LETTERS)) == MAX_RANKS
    assert all((luminance(colour) + 0.05) / (ink + 0.05) >= 7 for colour in COLOURS)


def test_the_terminal_picture_of_two_rounds_of_a_ring():
    assert plain(drawn("ring", 2))[2:] == [
        "",
        "start",
        "            rank 0    rank 1",
        "chunk 0     A.        .B",
        "chunk 1     A.        .B",
        "",
        "round 1     0->1 +1  1->0 +0",
        "            rank 0    rank 1",
        "chunk 0    +AB        .B",
        "chunk 1     A.       +AB",
        "",
        "round 2     0->1 =0  1->0 =1",
        "            rank 0    rank 1",
        "chunk 0     AB       =AB",
        "chunk 1    =AB        AB",
    ]


@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
@pytest.mark.parametrize("name", ["ring", "direct", "halving_doubling", "tree"])
def test_no_line_is_wider_than_the_terminal(name, width):
    for n_ranks in (1, 2, 5, 8):
        assert max(map(len, plain(drawn(name, n_ranks), width))) <= width


def test_a_terminal_that_is_too_narrow_is_told_so():
    with pytest.raises(BadInput, match="a terminal of 15 columns is too narrow"):
        lines(drawn("ring"), 15)


def test_a_part_that_is_twice_is_shown_with_its_number():
    shown = picture(Schedule("twice", 2, 1, [[(0, 1, 0, True)], [(0, 1, 0, True)]]))
    assert plain(shown)[-1] == "chunk 0     A.       +2B"
    assert 'class="often"' in svg(shown)
    assert as_json(shown.schedule)["states"][-1] == [[[0]], [[0, 0, 1]]]


def test_a_schedule_that_breaks_a_rule_is_not_drawn():
    with pytest.raises(BrokenSchedule):
        picture(Schedule("mine", 2, 1, [[(0, 0, 0, True)]]))


def test_too_many_ranks_or_chunks_are_refused_with_the_limit():
    with pytest.raises(BadInput, match="13 ranks are too many for a picture: it can show up to 12"):
        drawn("ring", 13)
    with pytest.raises(BadInput, match="too many for a picture: take fewer chunks"):
        drawn("chain", 4, n_chunks=200)
    assert all(drawn(name, MAX_RANKS) for name in ALGORITHMS)


def test_json_of_many_ranks_has_no_states():
    data = as_json(find("ring")(40))
    assert data["states"] is None
    assert len(data["rounds"]) == 78
