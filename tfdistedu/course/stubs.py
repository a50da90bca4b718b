'''What does a learner start from? The reference without its answer, made by a tool so that both never drift apart.

The idea: keep what states the task, drop what solves it. Comments are not in the syntax tree, so the tool reads tokens.

    def ring_all_gather(n_ranks: int) -> Schedule:      kept: the signature, without decorators
        """All-gather in a ring: ...                    kept: the first paragraph and Args
        Costs: ...                                      dropped
        # Step 1: pass on what came last. In round s    kept: the step's title, at the body's level
        rounds = [[Transfer(...                         dropped
        raise NotImplementedError("allreduce.ring_all_gather: not started")

Where the task is all in the docstring (*predict*, *tests*), every paragraph before the first section is kept. A
*repair* keeps the docstring and the body of its broken start, behind the same raise.

Costs: one pass over the tokens. Leaves out: references that are longer than a learner wants to write: refused.
'''

from __future__ import annotations

import ast
import importlib.util
import io
import re
import sys
import textwrap
import tokenize
from pathlib import Path

from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.errors import BadInput

MOST_LINES = 15
"""A stub asks for at most so many lines."""

_SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Example|Examples|Attributes|Source|Costs?):", re.M)
_STEP = re.compile(r"# (Step \w+: [^.:]*)[.:]?")


def make_stub(lesson: Lesson) -> str:
    """Make the text of a lesson's `stub.py`.

    Args:
        lesson: The lesson.

    Returns:
        Python source; its first lines speak to the learner, who gets a copy.

    Raises:
        BadInput: A reference is not found, or asks for too many lines.

    """
    sources = [_source(lesson, exercise) for exercise in lesson.exercises]
    needed: dict[str, None] = {}
    parts = []
    for exercise, (file, name) in zip(lesson.exercises, sources, strict=True):
        text = file.read_text(encoding="utf-8")
        function = _find(text, name, file)
        needed |= dict.fromkeys(_imports(text, function, whole=exercise.kind in ("implement", "repair")))
        stub = stub_of(text, function, exercise, file)
        parts += [*_aliases(text, stub), stub.rstrip("\n")]
    head = (
        "# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.\n"
        f'"""Lesson {lesson.folder.name}: {lesson.title}.\n\n{lesson.question}\n\n'
        f'In exercise.py, replace what says "not started". Then: pytest lessons/{lesson.folder.name}\n'
        '"""\n\nfrom __future__ import annotations\n\n'
    )
    return head + _import_block(list(needed)) + "\n\n\n" + "\n\n\n".join(dict.fromkeys(parts)) + "\n"


def stub_of(text: str, function: ast.FunctionDef, exercise: Exercise, file: Path) -> str:
    """Make the stub of one function.

    Args:
        text: The module's source.
        function: The function's node.
        exercise: The exercise.
        file: Where it is, for errors.

    Returns:
        The function's source.

    Raises:
        BadInput: It has no docstring, or is too long to be asked for.

    """
    lines = text.splitlines()
    doc = ast.get_docstring(function)
    if not doc:
        raise BadInput(f"{file}: {function.name} has no docstring, so its stub would not state the task.")
    body = function.body[1:]
    asked = _code_lines(text, body[0].lineno, function.end_lineno)
    if exercise.kind == "implement" and len(asked) > MOST_LINES:
        raise BadInput(
            f"{file}: {function.name} has {len(asked)} lines, and a stub asks for at most {MOST_LINES}: "
            "make it shorter, or ask for a part of it."
        )
    signature = lines[function.lineno - 1 : function.body[0].lineno - 1]
    signature[0] = signature[0].replace(f"def {function.name}(", f"def {exercise.name}(")
    out = ["\n".join(signature), textwrap.indent(f'"""{_task(doc, exercise)}"""', "    ", lambda line: line.strip())]
    not_started = f'    raise NotImplementedError("{exercise.id}: not started")'
    if exercise.kind == "repair":
        out += [not_started + "  # take this line out and repair the rest"]
        kept = lines[function.body[0].end_lineno : function.end_lineno]
        out += [line for line in kept if "# --8<" not in line]  # markers are for the page
    else:
        out += [f"    # {title}." for title in _titles(text, function)] + [not_started]
    return "\n".join(out) + "\n"


def _source(lesson: Lesson, exercise: Exercise) -> tuple[Path, str]:
    """Return the file and the function that the stub is made from."""
    where = exercise.starts_from if exercise.kind == "repair" else exercise.reference
    place, _, name = where.partition(":")
    if place.endswith(".py"):
        return lesson.folder / place, name
    spec = importlib.util.find_spec(place)
    if spec is None or spec.origin is None:
        raise BadInput(f"{lesson.folder / 'lesson.toml'}: there is no module {place}.")
    return Path(spec.origin), name


def _find(text: str, name: str, file: Path) -> ast.FunctionDef:
    """Return a function's node."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise BadInput(f"{file}: there is no function {name} at its top.")


def _task(doc: str, exercise: Exercise) -> str:
    """Return the part of a docstring that states the task."""
    if exercise.kind == "repair":
        return doc + "\n"
    first = _SECTION.search(doc)
    before = doc[: first.start()].rstrip() if first else doc.rstrip()
    if exercise.kind == "implement":
        before = before.split("\n\n")[0]
    arguments = re.search(r"^Args:\n(?:(?: .*)?\n?)*", doc, re.M)
    closing = "\n" if arguments or "\n" in before else ""
    return before + (f"\n\n{arguments.group().rstrip()}" if arguments else "") + closing


def _tokens(text: str, first: int, last: int) -> list[tokenize.TokenInfo]:
    """Return the tokens of some lines."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in tokens if first <= token.start[0] <= last]


def _titles(text: str, function: ast.FunctionDef) -> list[str]:
    """Return the steps' titles."""
    found = (
        _STEP.match(t.string) for t in _tokens(text, function.lineno, function.end_lineno) if t.type == tokenize.COMMENT
    )
    return [match.group(1).rstrip() for match in found if match]


def _code_lines(text: str, first: int, last: int) -> set[int]:
    """Return the lines that hold code."""
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return {token.start[0] for token in _tokens(text, first, last) if token.type not in nothing}


def _imports(text: str, function: ast.FunctionDef, whole: bool) -> list[tuple[str, str]]:
    """Return what a stub imports, as (module, name): for its signature, and with `whole` for its body."""
    last = function.end_lineno if whole else function.body[0].lineno - 1
    names = {token.string for token in _tokens(text, function.lineno, last) if token.type == tokenize.NAME}
    nodes = ast.parse(text).body
    for node in nodes:  # an alias such as AllReduce = Callable[...] brings its own names
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in names and not whole:
            names |= {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found += [(node.module, _alias(alias)) for alias in node.names if (alias.asname or alias.name) in names]
        elif isinstance(node, ast.Import):
            kept = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in names]
            found += [("", _alias(alias)) for alias in kept]
    return found


def _import_block(needed: list[tuple[str, str]]) -> str:
    """Write imports as ruff sorts them: the standard library, others, ours."""
    groups: list[dict[str, list[str]]] = [{}, {}, {}]
    for module, name in sorted(needed, key=_rank):
        top = (module or name).split(".")[0].split(" ")[0]
        group = groups[2 if top == "tfdistedu" else 0 if top in sys.stdlib_module_names else 1]
        group.setdefault(module or f"import {name}", []).append(name)
    written = []
    for group in groups:
        lines = [key if key.startswith("import ") else f"from {key} import {', '.join(group[key])}" for key in group]
        written += ["\n".join(sorted(lines, key=lambda line: line.startswith("from ")))] if lines else []
    return "\n\n".join(written)


def _aliases(text: str, stub: str) -> list[str]:
    """Return the module's one-line assignments that the stub's signature names."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    named = [node for node in nodes if re.search(rf"\b{getattr(node.targets[0], 'id', ' ')}\b", stub)]
    return [ast.get_source_segment(text, node) for node in named]


def _alias(alias: ast.alias) -> str:
    """Write one imported name."""
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _rank(imported: tuple[str, str]) -> tuple[str, int, str]:
    """Order names as ruff does: constants, classes, functions."""
    module, name = imported
    return module, 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name
