"""Who may import whom: the arrows of the package hold, and what promises to need no TensorFlow imports none.

A test that imports each module would pass with an arrow turned round inside a function; so the syntax trees are read,
all of them, and imports in functions count like all others.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.fresh_process import ROOT

PACKAGE = ROOT / "tfdistedu"

# From the bottom up: each may import what stands in its own row and in the rows above it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("quiet",),
    ("collectives",),
    ("links",),
    ("cluster",),
    ("data", "models", "devices"),
    ("step",),
    ("synchronous",),
    ("parameter_servers",),
    ("asynchronous",),
    ("simulate",),
    ("cli", "bench", "course", "__main__"),
)
# These take less than their place in the layers would give them.
ONLY = {
    "simulate": {"errors", "collectives.cost", "parameter_servers.rules", "parameter_servers.ledger", "data"},
    "parameter_servers.rules": {"errors"},
    "parameter_servers.ledger": {"errors", "parameter_servers.rules"},
    "cluster.config": {"errors"},
    "recipes": set(),
}
# No TensorFlow at import, nor anything that brings it along.
WITHOUT_TENSORFLOW = (
    "errors",
    "collectives",
    "links",
    "cluster.config",
    "cluster.doctor",
    "cluster.explain",
    "parameter_servers.rules",
    "parameter_servers.ledger",
    "simulate",
    "cli",
    "",
)
HEAVY = ("tensorflow", "keras", "tf_keras")


def imports_of(text: str, module: str, is_package: bool = False) -> list[tuple[str, int, bool]]:
    """Return what a module's text imports: dotted name, line, and whether that happens when it is imported."""
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno, at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            found.extend((f"{base}.{alias.name}", node.lineno, at_import) for alias in node.names)
        only_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        deeper = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or only_for_types
        for child in ast.iter_child_nodes(node):
            visit(child, at_import and not deeper)

    visit(ast.parse(text), at_import=True)
    return found


def inside(name: str, prefixes: tuple[str, ...] | set[str]) -> bool:
    """Tell whether a dotted name is one of some others, or lies below one."""
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def level(part: str) -> int | None:
    """Return the row of a part of the package, from 0 at the bottom, or `None`."""
    return next((row for row, parts in enumerate(LAYERS) if part in parts), None)


def wrong_imports(text: str, module: str, is_package: bool = False) -> list[str]:
    """Say which imports of a module go against the arrows."""
    wrong = []
    own = module.removeprefix("tfdistedu").lstrip(".")
    part = own.split(".")[0]
    if part and part != "recipes" and level(part) is None:
        return [f"{module}: say in LAYERS where {part!r} stands"]
    light = own in WITHOUT_TENSORFLOW or inside(own, tuple(name for name in WITHOUT_TENSORFLOW if name))
    for name, line, at_import in imports_of(text, module, is_package):
        place = f"{module}:{line} imports {name}"
        if light and at_import and inside(name, HEAVY):
            wrong.append(f"{place}: TensorFlow is not to be imported here")
        if not inside(name, ("tfdistedu",)):
            continue
        target = name.removeprefix("tfdistedu").lstrip(".")
        other = target.split(".")[0]
        if target in ("", "__version__") and part != "recipes":
            continue
        limits = [
            allowed | ({prefix} if allowed else set()) for prefix, allowed in ONLY.items() if inside(own, (prefix,))
        ]
        if not all(inside(target, allowed) for allowed in limits):
            wrong.append(f"{place}: it may use {sorted(set.intersection(*limits)) or 'nothing of this package'} only")
        elif other == "recipes":
            if target != "recipes":  # the command line lists and copies the files of this folder
                wrong.append(f"{place}: a recipe is a leaf, to be copied and not imported")
        elif level(other) is None:
            wrong.append(f"{place}: nothing that LAYERS knows")
        elif not part:
            wrong.append(f"{place}: the package itself imports nothing of its own")
        elif not limits and level(other) > level(part):
            wrong.append(f"{place}: {other} does not stand below {part}")
    return wrong


def modules() -> dict[str, Path]:
    """Return each module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = path
    return found


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_what_stands_below_it(name):
    path = modules()[name]
    assert wrong_imports(path.read_text(encoding="utf-8"), name, path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("tfdistedu.step.loss", "from tfdistedu.synchronous.loop import train", "does not stand below"),
        ("tfdistedu.step.loss", "def f():\n    import tfdistedu.synchronous", "does not stand below"),
        ("tfdistedu.step.loss", "from ..synchronous import loop", "does not stand below"),
        ("tfdistedu.step.loss", "from tfdistedu import synchronous", "does not stand below"),
        ("tfdistedu.links.tcp", "from tfdistedu.cluster import local", "does not stand below"),
        ("tfdistedu.data.audit", "from tfdistedu.step import replica", "does not stand below"),
        ("tfdistedu.errors", "from tfdistedu.quiet import is_awake", "does not stand below"),
        ("tfdistedu.simulate.clock", "from tfdistedu.step import loss", "may use"),
        ("tfdistedu.simulate.clock", "from tfdistedu.collectives import verify", "may use"),
        ("tfdistedu.recipes.mirrored_fit", "from tfdistedu.errors import BadInput", "nothing of this package"),
        ("tfdistedu.parameter_servers.rules", "from tfdistedu.parameter_servers import coordinator", "may use"),
        ("tfdistedu.recipes.mirrored_fit", "from tfdistedu.recipes import other", "nothing of this package"),
        ("tfdistedu.recipes.mirrored_fit", "import tfdistedu", "nothing of this package"),
        ("tfdistedu.cli.demo", "from tfdistedu.recipes import mirrored_fit", "a leaf"),
        ("tfdistedu.synchronous.loop", "from tfdistedu.cli import output", "does not stand below"),
        ("tfdistedu.unheard", "import os", "say in LAYERS"),
        ("tfdistedu.collectives.schedule", "import tensorflow as tf", "TensorFlow"),
        (
            "tfdistedu.collectives.schedule",
            "try:\n    from keras import ops\nexcept ImportError:\n    pass",
            "TensorFlow",
        ),
        ("tfdistedu.cli.demo", "import tensorflow as tf", "TensorFlow"),
        ("tfdistedu", "from tfdistedu import errors", "imports nothing of its own"),
        ("tfdistedu.step.loss", "from tfdistedu.errors import BadInput\nfrom tfdistedu.data import batches", None),
        ("tfdistedu.step.loss", "from .replica import checked\nimport keras", None),
        (
            "tfdistedu.simulate.clock",
            "from tfdistedu.collectives.cost import seconds\nfrom .workers import Worker",
            None,
        ),
        ("tfdistedu.cli.demo", "def demo():\n    from tfdistedu.devices import tf", None),
        ("tfdistedu.cli.recipe", "from tfdistedu import recipes\nfrom tfdistedu.bench import matrix", None),
        ("tfdistedu.recipes.mirrored_fit", "import keras\nimport tensorflow as tf", None),
    ],
)
def test_the_check_of_arrows_can_fail(module, text, complaint):
    wrong = wrong_imports(text, module)
    if complaint is None:
        assert wrong == []
    else:
        assert len(wrong) == 1, wrong
        assert complaint in wrong[0]


def test_a_relative_import_in_a_package_counts_from_the_package_itself():
    assert wrong_imports("from . import replica", "tfdistedu.step", is_package=True) == []
    assert wrong_imports("from .synchronous import loop", "tfdistedu", is_package=True) != []


def test_what_promises_to_need_no_tensorflow_can_be_imported_where_there_is_none(fresh_python):
    """The syntax tree sees no import by a third package; a process in which TensorFlow is refused sees all."""
    light = [
        name
        for name in modules()
        if (own := name.removeprefix("tfdistedu").lstrip(".")) in WITHOUT_TENSORFLOW
        or inside(own, tuple(prefix for prefix in WITHOUT_TENSORFLOW if prefix))
    ]
    assert {"tfdistedu", "tfdistedu.cli", "tfdistedu.errors"} <= set(light)
    refuse = "import sys, importlib\nfor name in ('tensorflow', 'keras', 'tf_keras'):\n    sys.modules[name] = None\n"
    code = refuse + f"for name in {light!r}:\n    importlib.import_module(name)\nprint('all')\n"
    done = fresh_python("-c", code)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
    refused = fresh_python("-c", refuse + "import tfdistedu.devices")
    assert refused.returncode == 1, "the refusal must be able to refuse"
