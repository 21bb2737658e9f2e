"""Searches with other batch sizes, and GPUs with less memory, than those of users."""

from __future__ import annotations

from typing import Any, TypeVar

from proteoscope.kernels.cuda.modules import Gpu

__all__ = ["LimitedGpu", "limited", "tuned"]

Kind = TypeVar("Kind")


def tuned(kind: type[Kind], **attributes: Any) -> type[Kind]:
    """Return a class with other values of some of its public attributes."""
    assert all(hasattr(kind, name) for name in attributes)
    return type(kind.__name__, (kind,), attributes)


class LimitedGpu:
    """GPU with a limited number of free bytes."""

    def __init__(self, gpu: Gpu, n_bytes: int) -> None:
        self._gpu, self._n_bytes = gpu, n_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)

    def free_bytes(self) -> int:
        return min(self._n_bytes, self._gpu.free_bytes())


def limited(kind: type[Kind], gpu: Any, options: dict[str, Any]) -> tuple[type[Kind], Any]:
    """Return the class with `options` and the GPU; the option `memory_bytes` limits the memory that the search may use."""
    options = dict(options)
    if n_bytes := options.pop("memory_bytes", None):
        return tuned(kind, share_of_free_memory=1.0, **options), LimitedGpu(gpu, n_bytes)
    return tuned(kind, **options), gpu
