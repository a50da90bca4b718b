"""What may be sent to a task, and what comes back?

Functions go by value where the task could not import them: lambdas, closures, and whatever a script, a notebook or a
test defines (`cloudpickle`). Installed modules go by name. What lives in one process only is refused, instead of
arriving as a silent copy:

    to a task      a tf.Variable, a strategy, a Keras model or optimizer     refused: make it in the function
    from a task    a tensor                                                  arrives as a NumPy array
                   a variable, a strategy, a model                           refused: return numbers or arrays

Cost: one copy of the arguments a task. Left out: objects that change while they travel.
"""

from __future__ import annotations

import contextlib
import functools
import io
import marshal
import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle

from tfdistedu.errors import BadInput

loads = pickle.loads
dumps = cloudpickle.dumps

_FOLDERS = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_INSTALLED = tuple(str(folder) + os.sep for folder in (*_FOLDERS, Path(__file__).resolve().parents[1]))


def dump_call(function: Callable[..., Any], arguments: tuple, keywords: dict[str, Any]) -> bytes:
    """Pickle a call for the tasks.

    Args:
        function: Any function, also a closure or one of a script.
        arguments: Its arguments.
        keywords: Its arguments by name.

    Returns:
        The bytes.

    Raises:
        BadInput: Something that lives in this process only, or that cannot be pickled.

    """
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise BadInput(f"cluster.run(function): a function is run on the tasks, not {function!r}.")
    with _by_value([function, *arguments, *keywords.values()]) as stand_in:
        file = io.BytesIO()
        pickler = _Sender(file, f"cannot send {name} to the tasks: it uses")
        call = {"function": function, "arguments": arguments, "keywords": keywords, "stand_in": stand_in}
        return _dump(pickler, file, call)


@contextlib.contextmanager
def standing_in(modules: list[tuple[str, str]]) -> Iterator[None]:
    """Let empty modules stand in for those that were sent by value, during a call: AutoGraph looks for them.

    Args:
        modules: The name and the file of each.

    Yields:
        Nothing.

    """
    missing = {name: file for name, file in modules if name not in sys.modules}
    for name, file in missing.items():
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__file__ = file
    try:
        yield
    finally:
        for name in missing:
            sys.modules.pop(name, None)


def dump_result(result: dict[str, Any]) -> bytes:
    """Pickle the result of a call, tensors as NumPy arrays.

    Args:
        result: What the task answers.

    Returns:
        The bytes.

    Raises:
        BadInput: Something that lives in the task only, or that cannot be pickled.

    """
    file = io.BytesIO()
    return _dump(_Returner(file, "a task cannot return"), file, result)


def _dump(pickler: _Sender, file: io.BytesIO, what: dict[str, Any]) -> bytes:
    try:
        pickler.dump(what)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"{pickler.start} something that cannot be pickled ({type(error).__name__}: {error}). {pickler.remedy}"
        ) from error
    return file.getvalue()


class _Sender(cloudpickle.Pickler):
    remedy = "Make it inside the function, and give the function numbers, arrays and names."

    def __init__(self, file: io.BytesIO, start: str):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.start = start

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, type) and isinstance(obj, _only_here()):
            label = getattr(obj, "name", None)
            what = type(obj).__name__ + (f" {label!r}" if isinstance(label, str) else "")
            raise BadInput(f"{self.start} the {what}, which lives in its own process only. {self.remedy}")
        if isinstance(obj, CodeType):
            # cloudpickle forgets the file; AutoGraph reads its source, and a traceback shows it.
            return marshal.loads, (marshal.dumps(obj),)
        return super().reducer_override(obj)


class _Returner(_Sender):
    remedy = "Return numbers, strings and arrays: variable.numpy(), model.get_weights()."

    def reducer_override(self, obj: Any) -> Any:
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is not None and isinstance(obj, tensorflow.Tensor) and hasattr(obj, "numpy"):
            import numpy as np

            return np.asarray(obj).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return super().reducer_override(obj)


def _only_here() -> tuple[type, ...]:
    """Name the types that mean something in one process only; those of modules that nobody imported cannot occur."""
    found: list[type] = []
    if tf := sys.modules.get("tensorflow"):
        found += [tf.Variable, tf.distribute.Strategy, tf.distribute.DistributedValues]
    for keras in filter(None, (sys.modules.get(name) for name in ("keras", "tf_keras"))):
        found += [keras.layers.Layer, keras.optimizers.Optimizer, getattr(keras, "Variable", keras.Model)]
    return tuple(found)


@contextlib.contextmanager
def _by_value(things: Iterable[Any]) -> Iterator[list[tuple[str, str]]]:
    """Have cloudpickle send what is defined beside some functions and objects by value; give these modules and files.

    What is installed stays by name: the tasks can import it without running a script or a test.
    """
    found: list[tuple[str, str]] = []
    registered: list[ModuleType] = []
    try:
        for thing in things:
            while isinstance(thing, functools.partial):
                thing = thing.func
            own = getattr(thing, "__module__", None)
            module = sys.modules.get(own if isinstance(own, str) else type(thing).__module__)
            file = getattr(module, "__file__", None)
            if file is None or str(Path(file).resolve()).startswith(_INSTALLED):
                continue
            found.append((module.__name__, file))
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                registered.append(module)
        yield found
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)
