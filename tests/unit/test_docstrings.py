"""The examples in docstrings run, and give what they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect

import pytest

from tests.unit.test_import_arrows import modules

# A command's module holds no examples, a recipe is a script that runs when it is imported.
NAMES = [name for name in modules() if not name.startswith(("tfdistedu.recipes", "tfdistedu.__main__"))]


@pytest.fixture(scope="module")
def known_names(strategy_with) -> dict[str, object]:
    """What an example may use beside the names of its module; the first page of the reference says so."""
    strategy_with(4)  # four virtual CPUs, as the examples expect
    import keras
    import numpy as np

    from tfdistedu.devices import tf
    from tfdistedu.step.optimizer import SGD

    return {"tf": tf, "keras": keras, "np": np, "SGD": SGD}


def run_examples(module: object, known_names: dict[str, object]) -> int:
    """Run a module's examples, each docstring with names of its own; return how many lines were run."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    ours = {ast.get_docstring(node) for node in nodes if isinstance(node, documented)}
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(module, extraglobs=known_names):
        if inspect.cleandoc(test.docstring) in ours:  # else taken over from Keras, whose examples are not ours
            runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
    return runner.tries


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_module_give_what_they_show(name, known_names):
    run_examples(importlib.import_module(name), known_names)


def test_there_are_examples_and_a_wrong_one_is_found(known_names, monkeypatch):
    from tfdistedu.data import batches
    from tfdistedu.step import optimizer

    assert run_examples(optimizer, known_names) >= 2, "a cached function has examples too"
    assert run_examples(batches, known_names) >= 3
    monkeypatch.setattr(batches, "replica_batch_sizes", lambda n_examples, n_replicas: [0])
    with pytest.raises(AssertionError, match="split_on_replicas"):
        run_examples(batches, known_names)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name):
    """pydoclint compares what is documented; here nothing public may be without a docstring at all."""
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for key, value in vars(module).items():
        if getattr(value, "__module__", None) == name and not key.startswith("_") and (callable(value)):
            assert value.__doc__, f"{name}.{key} has no docstring"
