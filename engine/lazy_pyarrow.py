"""PyArrow, loaded when it is first used: many commands never write a table, and importing PyArrow takes longer than some of them.

`lazy_loader.attach_stub` attaches a package's own submodules only, and `lazy_loader.load` is not safe in several threads before Python
3.12.3 (https://github.com/python/cpython/issues/114763).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa"]

if TYPE_CHECKING:
    import pyarrow as pa
else:

    class _LazyPyArrow:
        """Substitute for the module `pyarrow`, with `pyarrow.compute` and `pyarrow.parquet` as attributes."""

        def __getattr__(self, name: str) -> Any:
            module = import_module("pyarrow")
            value = import_module(f"pyarrow.{name}") if name in ("compute", "parquet") else getattr(module, name)
            vars(self)[name] = value  # Python calls this method for unknown attributes only
            return value

    pa = _LazyPyArrow()
