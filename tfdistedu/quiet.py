"""How is TensorFlow imported without its noise, and how does one know what woke it up?

Importing TensorFlow writes half a dozen lines to descriptor 2 from C++, whatever TF_CPP_MIN_LOG_LEVEL says. Here
descriptor 2 is held during the import and what came is thrown away; if the import fails, it is let out, for then it
matters. Warnings after the import are not touched.

*Imported* is not *awake*: TensorFlow fixes its devices at the first operation (or listing of logical devices), and
from then on the CPU cannot be split any more. The first caller that wakes it is remembered here, so that
`tfdistedu.devices` can name it.

    import tensorflow          asleep: devices can still be chosen
    tf.constant(1)             awake: they can not

Cost: one wrapper around one private method, which removes itself when TensorFlow wakes. Left out: TensorFlow that was
awake before this module was imported; then the waker is unknown, and the error says so.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from types import ModuleType

from tfdistedu.errors import MachineCannot

_NOT_THE_WAKER = ("tensorflow", "keras", "tf_keras", "tfdistedu")


class _Waker:
    """Where TensorFlow was woken: `file:line` of the first frame outside TensorFlow and Keras, or `None`."""

    place: str | None = None


@contextlib.contextmanager
def _held_stderr() -> Iterator[None]:
    """Keep what is written to descriptor 2; let it out only if the body raises."""
    try:
        sys.stderr.flush()
        saved = os.dup(2)
    except (OSError, ValueError, AttributeError):  # no descriptor 2 (a service without one): nothing to hold
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            os.dup2(saved, 2)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def import_tensorflow() -> ModuleType:
    """Import TensorFlow and Keras without their start-up lines, and remember who wakes TensorFlow later.

    C++ logs errors only (its warnings are about graph rewrites, and repeat by the hundred), unless
    TF_CPP_MIN_LOG_LEVEL is set already.

    Returns:
        The module `tensorflow`; a second call returns it at once.

    Raises:
        MachineCannot: Keras was told to compute with another backend than TensorFlow.

    Example:
        >>> tf = import_tensorflow()
        >>> tf.__name__
        'tensorflow'

    """
    already = sys.modules.get("tensorflow")
    backend = sys.modules["keras"].backend.backend() if "keras" in sys.modules else os.environ.get("KERAS_BACKEND")
    if backend not in (None, "tensorflow"):
        raise MachineCannot(
            f"Keras computes with {backend} here, and tf.distribute needs it to compute with TensorFlow. Set the "
            "variable KERAS_BACKEND to tensorflow before Keras is imported."
        )
    os.environ["KERAS_BACKEND"] = "tensorflow"  # also where ~/.keras/keras.json names another
    if already is None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        with _held_stderr():
            import keras  # noqa: F401  (its import prints too)
            import tensorflow as already

            if not os.path.exists("/proc/driver/nvidia"):
                # No GPU to find: TensorFlow complains of that once, at the first look, which does not wake it.
                already.config.list_physical_devices("GPU")
    _remember_the_waker()
    return already


def _remember_the_waker() -> None:
    from tensorflow.python.eager import context  # private: tests/traps guards it

    if getattr(context.Context.ensure_initialized, "remembers_the_waker", False) or is_awake():
        return
    original = context.Context.ensure_initialized

    def ensure_initialized(self):
        if not is_awake():
            _Waker.place = _place_outside_tensorflow()
        context.Context.ensure_initialized = original
        return original(self)

    ensure_initialized.remembers_the_waker = True
    context.Context.ensure_initialized = ensure_initialized


def _place_outside_tensorflow() -> str | None:
    """Return `file:line in function` of the innermost frame that is neither TensorFlow's, Keras's nor ours."""
    modules = (sys.modules.get(name) for name in _NOT_THE_WAKER)
    folders = tuple(os.path.dirname(module.__file__) + os.sep for module in modules if module and module.__file__)
    for frame in reversed(traceback.extract_stack()):
        inside = frame.filename.startswith(folders)
        if not inside and not frame.filename.startswith("<frozen"):
            return f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
    return None


def is_awake() -> bool:
    """Tell whether TensorFlow has fixed its devices in this process.

    Returns:
        True from the first operation (or listing of logical devices) on.

    """
    if "tensorflow" not in sys.modules:
        return False
    from tensorflow.python.eager import context  # private: tests/traps guards it

    return bool(getattr(context._context, "_initialized", False))


def who_woke_tensorflow() -> str:
    """Say in words what woke TensorFlow in this process.

    Returns:
        A clause that completes "TensorFlow was woken by ...".

    """
    if _Waker.place is not None:
        return _Waker.place
    return (
        "something that ran before tfdistedu was imported (a tensor, a variable, an operation, a list of logical "
        "devices, or a library that made one of these in its import)"
    )
