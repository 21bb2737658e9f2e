"""Settings with which Python libraries (Arrow, linear algebra) load faster, and use one thread for small matrices."""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, wraps
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

__all__ = ["find_linear_algebra", "lighten_libraries", "one_algebra_thread"]

_UNUSED = {"dateutil", "pandas", *(f"pyarrow._{name}" for name in ("azurefs", "gcsfs", "hdfs", "s3fs"))}
"""Optional modules of PyArrow that the program does not use: pandas, intervals of dates, and network file systems."""

_NUMBA_IMPORTERS = {"colorama": "numba.core.errors", "scipy": "numba", "yaml": "numba.core.config"}
"""Modules that Numba imports without need, and the modules that import them."""


class _WithoutUnused:
    """Import finder for which modules that the program does not use are not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise an error if an unused module is imported; other modules are left to the next finder."""
        if fullname in _UNUSED or (fullname in _NUMBA_IMPORTERS and _is_for_numba(fullname)):
            raise ModuleNotFoundError(f"{fullname} is not used by the program", name=fullname)


class _NoDocumentation(ModuleType):
    """Module in place of the one with which PyArrow documents its functions."""

    @staticmethod
    def NumpyDocString(text: str) -> dict[str, tuple[()]]:  # noqa: N802 - PyArrow's name
        """Return the sections of a documentation that PyArrow reads, without content."""
        return {"Parameters": ()}


def _is_for_numba(fullname: str) -> bool:
    """Return True for modules that Numba imports needlessly: for coloured errors, SciPy's version, and a settings file that is missing."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals["__name__"] in (__name__, "importlib._bootstrap"):
        frame = frame.f_back
    is_importer = frame is not None and frame.f_globals["__name__"] == _NUMBA_IMPORTERS[fullname]
    return is_importer and not (fullname == "yaml" and Path(".numba_config.yaml").exists())


class _Method:
    """Method of a dataclass, which is compiled and takes the place of this object when it is first looked up."""

    __slots__ = ("__name__", "create")

    def __init__(self, name: str, create: Callable[[], Any]) -> None:
        self.__name__, self.create = name, create

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the method, for code that takes it from the dictionary of the class."""
        return self.create()(*arguments, **keywords)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        function, owner = self.create(), owner or type(instance)
        for definer in owner.__mro__:
            if vars(definer).get(self.__name__) is self:
                function.__qualname__ = f"{definer.__qualname__}.{self.__name__}"
                setattr(definer, self.__name__, function)
        return function.__get__(instance, owner)


def _compile_methods_when_used() -> None:
    """Let dataclasses compile each method when it is first used.

    A frozen dataclass compiles six methods when it is defined, in up to two milliseconds; most of them are never used. Python from version
    3.13 compiles the methods of a class together, and is not changed.
    """
    names = vars(dataclasses)
    create: Callable[..., Any] | None = names.get("_create_fn")
    if create is not None and not hasattr(create, "__wrapped__"):
        guard = names["_recursive_repr"]  # puts a representation into a function that detects recursion
        names["_create_fn"] = wraps(create)(lambda name, *rest, **options: _Method(name, partial(create, name, *rest, **options)))
        names["_recursive_repr"] = wraps(guard)(lambda method: _Method(method.__name__, lambda: guard(method.create())))


def lighten_libraries() -> None:
    """Let libraries omit needless initialisation when they are loaded; the user's environment variables have precedence.

    Call this function in programs, not in scripts that use the package. NumPy's linear algebra would create a busy-waiting thread per core,
    which doubles the time to load NumPy; the matrices here are small, and large computations are divided among the program's threads.
    pydantic would search all installed packages for plugins. PyArrow would load libraries for network file systems and, if they are
    installed, pandas and dateutil, which only scripts use. It would also compose the documentation of its functions, which takes half of
    the time to load them. Numba would load yaml, colorama and SciPy.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if not any(isinstance(finder, _WithoutUnused) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutUnused())
    name = "pyarrow.vendored.docscrape"
    sys.modules.setdefault(name, _NoDocumentation(name))
    _compile_methods_when_used()


@cache
def find_linear_algebra() -> Any:
    """Return the controller of the thread count of NumPy's linear algebra, created once per process.

    Call it before any thread that imports modules starts.

    threadpoolctl holds the lock of the library loader while it waits for the GIL. Another thread that imports an extension module
    acquires the locks in the opposite order, which causes a deadlock.

    Returns
    -------
    threadpoolctl.ThreadpoolController
    """
    import numpy as np  # noqa: F401 - the library to find
    from threadpoolctl import ThreadpoolController  # imported here, since programs that only list or export do not need it

    return ThreadpoolController()


@contextmanager
def one_algebra_thread() -> Iterator[None]:
    """Limit NumPy's linear algebra to one thread in the ``with`` block, since several threads are slower for small matrices."""
    with find_linear_algebra().limit(limits=1, user_api="blas"):
        yield
