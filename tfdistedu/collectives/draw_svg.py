r"""How can a page show a schedule? As an SVG that needs no script, no font and no colour to be read.

The idea: time runs down. Each rank is a column; under each round stands what it holds: a small table with one row for
each chunk and one place for each contributor, filled with that rank's colour and letter. A full row is a finished sum.
Arrows say who sends: solid is added, dashed is taken over.

    start     [A   ] [ B  ]           The picture carries its colours for light and for dark pages, a title and a
                  \                  description that a screen reader can read out.
    round 1   [A   ] [AB  ]

Costs: some 40 bytes for each letter. Leaves out: interaction; the same data is in `tfdistedu.collectives.draw.as_json`.
"""

from __future__ import annotations

from html import escape

from tfdistedu.collectives.draw import COLOURS, LETTERS, Picture, bundles, describe

_CELL, _LEFT, _TOP, _ARROWS, _BETWEEN = 15, 78, 92, 46, 40

_STYLE = """
#ID { font-family: ui-sans-serif, system-ui, sans-serif; font-size: 12px; }
#ID .paper { fill: #ffffff; } #ID .ink { fill: #1c1e21; } #ID .soft { fill: #5c6066; }
#ID .empty { fill: #eceef1; }
#ID .arrow { stroke: #3b4252; stroke-width: 1.3; fill: none; } #ID .head { fill: #3b4252; }
#ID .over { stroke-dasharray: 4 3; } #ID .new { fill: none; stroke: #1c1e21; stroke-width: 1.6; }
#ID .twice { fill: #c81e1e; } #ID .often { fill: #ffffff; font-size: 8px; font-weight: 700; }
#ID .tag { font-size: 10px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
@media (prefers-color-scheme: dark) {
#ID .paper { fill: #15181d; } #ID .ink { fill: #e8eaed; } #ID .soft { fill: #a3a9b3; } #ID .empty { fill: #2a2f37; }
#ID .arrow { stroke: #c3c9d4; } #ID .head { fill: #c3c9d4; } #ID .new { stroke: #f5f6f8; }
#ID .tag { stroke: #15181d; }
}
"""


def svg(picture: Picture) -> str:
    """Return the picture as the text of an SVG file.

    Args:
        picture: What is to be seen.

    Returns:
        One `<svg>` element, the same text for the same picture; its ids begin with the schedule's name, so that two
        pictures can stand in one page.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> from tfdistedu.collectives.draw import picture
        >>> svg(picture(ring(2)))[:4], "<title" in svg(picture(ring(2)))
        ('<svg', True)

    """
    s = picture.schedule
    name = "tfd-" + "".join(c if c.isalnum() else "-" for c in f"{s.name}-{picture.goal}-{s.n_ranks}")
    table, step = _table_size(picture), _step(picture)
    width = max(_LEFT + s.n_ranks * (table[0] + _BETWEEN), 400)
    height = _TOP + len(picture.states) * step - _ARROWS + 14
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape(picture.title)}</title>',
        f'<desc id="{name}-desc">{escape(_description(picture))}</desc>',
        f"<style>{_STYLE.replace('ID', name)}</style>",
        _definitions(name, s.n_ranks),
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *_header(picture),
    ]
    for k in range(len(picture.states)):
        body += _row(picture, k, name)
    for k in range(len(s.rounds)):
        body += _arrows(picture, k, name)
    return "\n".join([*body, "</svg>\n"])


def _table_size(picture: Picture) -> tuple[int, int]:
    """Return width and height of what one rank holds."""
    return picture.schedule.n_ranks * _CELL, picture.schedule.n_chunks * _CELL


def _step(picture: Picture) -> int:
    """Return how far the states of two rounds lie apart."""
    return _table_size(picture)[1] + _ARROWS


def _corner(picture: Picture, k: int, rank: int) -> tuple[int, int]:
    """Return the upper left corner of what a rank holds after k rounds."""
    return _LEFT + rank * (_table_size(picture)[0] + _BETWEEN), _TOP + k * _step(picture)


def _description(picture: Picture) -> str:
    """Say in words what happens; after 60 sentences, only how many more there are."""
    sentences = [
        f"Round {k}: {sentence}."
        for k, transfers in enumerate(picture.schedule.rounds, 1)
        for sentence in describe(transfers)
    ]
    more = f" And {len(sentences) - 60} more like these." if len(sentences) > 60 else ""
    return f"Ranks side by side, rounds from top to bottom. {' '.join(sentences[:60])}{more}"


def _definitions(name: str, n_ranks: int) -> str:
    """Return one coloured letter for each rank, and the head of an arrow. No style sheet reaches in there."""
    letters = "".join(
        f'<g id="{name}-{rank}"><rect width="{_CELL - 1}" height="{_CELL - 1}" rx="2" fill="{COLOURS[rank]}"/>'
        f'<text x="7" y="11" text-anchor="middle" fill="#111111" font-family="ui-monospace, monospace" '
        f'font-size="11">{LETTERS[rank]}</text></g>'
        for rank in range(n_ranks)
    )
    head = (
        f'<marker id="{name}-h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L8 4L0 8z"/></marker>'
    )
    return f"<defs>{letters}{head}</defs>"


def _header(picture: Picture) -> list[str]:
    """Return the title, the legend and the names of the ranks."""
    s = picture.schedule
    result = [
        f'<text class="ink" x="12" y="24" font-size="15" font-weight="600">{escape(picture.title)}</text>',
        '<text class="soft" x="12" y="44">a row is a chunk, a letter is the part of a rank</text>',
        '<text class="soft" x="12" y="60">solid arrow: added, dashed: taken over; framed: just changed</text>',
    ]
    for rank in range(s.n_ranks):
        x, y = _corner(picture, 0, rank)
        result.append(f'<text class="ink" x="{x}" y="{y - 8}">rank {rank} = {LETTERS[rank]}</text>')
    return result


def _row(picture: Picture, k: int, name: str) -> list[str]:
    """Return what all ranks hold after k rounds."""
    s = picture.schedule
    y = _corner(picture, k, 0)[1]
    result = [f'<text class="ink" x="12" y="{y + 12}" font-weight="600">{f"round {k}" if k else "start"}</text>']
    marks = picture.marks[k - 1] if k else {}
    for rank in range(s.n_ranks):
        x, y = _corner(picture, k, rank)
        for chunk in range(s.n_chunks):
            held = picture.states[k][rank][chunk]
            for part in range(s.n_ranks):
                result += _place(name, part, held.get(part, 0), x + part * _CELL, y + chunk * _CELL)
            if (rank, chunk) in marks:
                size = f'width="{s.n_ranks * _CELL + 1}" height="{_CELL + 1}"'
                result.append(f'<rect class="new" x="{x - 1}" y="{y + chunk * _CELL - 1}" {size} rx="3"/>')
    return result


def _place(name: str, part: int, times: int, x: int, y: int) -> list[str]:
    """Return the place of one contributor in a chunk: empty, its letter, or its letter and how often it is there."""
    if times == 0:
        return [f'<rect class="empty" x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" rx="2"/>']
    letter = f'<use href="#{name}-{part}" x="{x}" y="{y}"/>'
    if times == 1:
        return [letter]
    number = f'<text class="often" x="{x + 15}" y="{y + 6}" text-anchor="end">{times}</text>'
    return [letter, f'<circle class="twice" cx="{x + 12}" cy="{y + 3}" r="5"/>', number]


def _arrows(picture: Picture, k: int, name: str) -> list[str]:
    """Return the arrows of round k, from what stood before it to what stands after it."""
    result, tags = [], []
    moves = bundles(picture.schedule.rounds[k])
    sentences = describe(picture.schedule.rounds[k])
    wide, high = _table_size(picture)
    for (src, dst, reduce, chunks), sentence in zip(moves, sentences, strict=True):
        x1, y1 = _corner(picture, k, src)
        x2, y2 = _corner(picture, k + 1, dst)
        # Leave and arrive on the side of the partner, so that the two arrows of an exchange lie apart.
        lean = wide * 0.22 * (1 if dst > src else -1)
        x1, y1, x2, y2 = x1 + wide / 2 + lean, y1 + high + 3, x2 + wide / 2 - lean, y2 - 4
        middle = (y1 + y2) / 2
        path = f"M{x1:.1f} {y1}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2}"
        kind = "arrow" if reduce else "arrow over"
        result.append(
            f'<path class="{kind}" d="{path}" marker-end="url(#{name}-h)"><title>{escape(sentence)}</title></path>'
        )
        if len(moves) <= 2 * picture.schedule.n_ranks:
            tags.append(f'<text class="ink tag" x="{x1 + 4:.1f}" y="{y1 + 9}">{"+" if reduce else "="}{chunks}</text>')
    return result + tags
