r"""How can a page show who dials whom, or who waits for whom? As an SVG that needs no script, no font and no colour.

The idea: the names stand on a circle, and an arrow leads from one to the other. Two that point at each other lie side
by side; a dashed one with a cross is missing.

           chief:0                 Arrow("worker:0", "ps:0")                     solid
          /      \                 Arrow("worker:0", "ps:0", missing=True)       dashed, with a cross
     worker:0 -- ps:0              Arrow("worker:0", "worker:1", "all-reduce")   with a word beside it

Costs: some 200 bytes an arrow. Leaves out: more than about ten names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tfdistedu.errors import BadInput

_WIDTH, _HEIGHT, _TOP, _BOX = 560, 330, 40, (104, 34)

_STYLE = """
#ID { font-family: ui-sans-serif, system-ui, sans-serif; font-size: 13px; }
#ID .paper { fill: #ffffff; } #ID .ink { fill: #1c1e21; } #ID .soft { fill: #5c6066; font-size: 12px; }
#ID .box { fill: #eceef1; stroke: #5c6066; } #ID .arrow { stroke: #3b4252; stroke-width: 1.4; fill: none; }
#ID .head { fill: #3b4252; } #ID .gone { stroke: #c81e1e; stroke-dasharray: 5 4; }
#ID .cross { stroke: #c81e1e; stroke-width: 2.4; }
@media (prefers-color-scheme: dark) {
#ID .paper { fill: #15181d; } #ID .ink { fill: #e8eaed; } #ID .soft { fill: #a3a9b3; } #ID .box { fill: #2a2f37; }
#ID .arrow { stroke: #c3c9d4; } #ID .head { fill: #c3c9d4; } #ID .gone { stroke: #ff8a80; }
#ID .cross { stroke: #ff8a80; }
}
"""


class Arrow(NamedTuple):
    """From one name to another, with a word beside it; `missing`: it should be there, and is not."""

    src: str
    dst: str
    word: str = ""
    missing: bool = False


def graph_svg(title: str, names: Sequence[str], arrows: Sequence[Arrow], notes: dict[str, str] | None = None) -> str:
    """Draw names and arrows.

    Args:
        title: What is to be seen; its letters and digits name the picture in its page.
        names: Who there is, clockwise from the top.
        arrows: Who leads to whom.
        notes: A line below a name, such as what it has done.

    Returns:
        One `<svg>` element, the same text for the same arguments.

    Raises:
        BadInput: An arrow begins or ends at nobody.

    Example:
        >>> graph_svg("two", ["a", "b"], [Arrow("a", "b")]).count("<path")
        2

    """
    notes = notes or {}
    for arrow in arrows:
        if arrow.src == arrow.dst or not {arrow.src, arrow.dst} <= set(names):
            raise BadInput(f"graph_svg: an arrow from {arrow.src!r} to {arrow.dst!r}; there are {', '.join(names)}.")
    name = "tfd-" + "".join(c if c.isalnum() else "-" for c in title.lower())
    words = [f"{a.src} to {a.dst}{f': {a.word}' * bool(a.word)}{' (missing)' * a.missing}" for a in arrows]
    about = ". ".join([*words, *(f"{who}: {note}" for who, note in notes.items())])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" role="img" aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">{escape(title)}</title>',
            f'<desc id="{name}-desc">{escape(about)}.</desc>',
            f"<style>{_STYLE.replace('ID', name)}</style>",
            f'<defs><marker id="{name}-h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
            f'<text class="ink" x="12" y="22">{escape(title)}</text>',
            *(_arrow(arrow, names, arrows, name) for arrow in arrows),
            *(_box(who, names, notes.get(who, "")) for who in names),
            "</svg>\n",
        ]
    )


def _centre(who: str, names: Sequence[str]) -> tuple[float, float]:
    """Return where a name stands; two stand side by side."""
    turn = 2 * math.pi * names.index(who) / len(names) - (math.pi if len(names) == 2 else math.pi / 2)
    high = (_HEIGHT - _TOP) / 2
    return _WIDTH / 2 + math.cos(turn) * (_WIDTH / 2 - 80), _TOP + high + math.sin(turn) * (high - 36)


def _arrow(arrow: Arrow, names: Sequence[str], arrows: Sequence[Arrow], name: str) -> str:
    """Draw one arrow, to the left of the way there if another one comes back."""
    (x0, y0), (x1, y1) = _centre(arrow.src, names), _centre(arrow.dst, names)
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    back = any((other.src, other.dst) == (arrow.dst, arrow.src) for other in arrows)
    side = 7 if back else 0
    x0, y0, x1, y1 = x0 + uy * side, y0 - ux * side, x1 + uy * side, y1 - ux * side
    cut = min(_BOX[0] / 2 / max(abs(ux), 1e-9), _BOX[1] / 2 / max(abs(uy), 1e-9)) + 6
    ax, ay, bx, by = x0 + ux * cut, y0 + uy * cut, x1 - ux * cut, y1 - uy * cut
    kind = "arrow gone" if arrow.missing else "arrow"
    parts = [f'<path class="{kind}" marker-end="url(#{name}-h)" d="M{ax:.0f} {ay:.0f}L{bx:.0f} {by:.0f}"/>']
    mx, my = (ax + bx) / 2, (ay + by) / 2
    if arrow.missing:
        parts.append(f'<path class="cross" d="M{mx - 6:.0f} {my - 6:.0f}l12 12M{mx - 6:.0f} {my + 6:.0f}l12 -12"/>')
    if arrow.word:
        above = -10 if ux >= 0 else 20
        parts.append(
            f'<text class="soft" text-anchor="middle" x="{mx:.0f}" y="{my + above:.0f}">{escape(arrow.word)}</text>'
        )
    return "\n".join(parts)


def _box(who: str, names: Sequence[str], note: str) -> str:
    """Draw one name, and its note on the side where no arrow leaves."""
    x, y = _centre(who, names)
    parts = [
        f'<rect class="box" x="{x - _BOX[0] / 2:.0f}" y="{y - _BOX[1] / 2:.0f}" width="{_BOX[0]}" height="{_BOX[1]}" '
        'rx="6"/>',
        f'<text class="ink" text-anchor="middle" x="{x:.0f}" y="{y + 4:.0f}">{escape(who)}</text>',
    ]
    if note:
        below = y - 24 if y < _HEIGHT / 3 else y + 34  # the topmost name has its arrows below
        parts.append(f'<text class="soft" text-anchor="middle" x="{x:.0f}" y="{below:.0f}">{escape(note)}</text>')
    return "\n".join(parts)
