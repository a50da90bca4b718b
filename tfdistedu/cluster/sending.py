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
import io
import marshal
import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
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
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    with _by_value(module) as stand_in:
        file = io.BytesIO()
        pickler = _Sender(file, f"cannot send {name} to the tasks: it uses")
        call = {"function": function, "arguments": arguments, "keywords": keywords, "stand_in": stand_in}
        return _dump(pickler, file, call)


@contextlib.contextmanager
def standing_in(module: tuple[str, str] | None) -> Iterator[None]:
    """Let an empty module stand in for one that was sent by value, during a call: AutoGraph looks for it.

    Args:
        module: Its name and its file, or `None`.

    Yields:
        Nothing.

    """
    if module is None or module[0] in sys.modules:
        yield
        return
    name, file = module
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__file__ = file
    try:
        yield
    finally:
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
def _by_value(module: ModuleType | None) -> Iterator[tuple[str, str] | None]:
    """Have cloudpickle send what a module defines by value, unless it is installed; give the module's name and file."""
    file = getattr(module, "__file__", None)
    installed = file is None or str(Path(file).resolve()).startswith(_INSTALLED)
    if module is None or installed:
        yield None
        return
    if module.__name__ in cloudpickle.list_registry_pickle_by_value():
        yield module.__name__, file
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield module.__name__, file
    finally:
        cloudpickle.unregister_pickle_by_value(module)
