"""Searches with other batch sizes, and GPUs with less memory, than those of users."""

from __future__ import annotations

from typing import Any, TypeVar

from proteoscope.kernels.cuda.modules import Card

__all__ = ["LimitedCard", "limited", "tuned"]

Kind = TypeVar("Kind")


def tuned(kind: type[Kind], **attributes: Any) -> type[Kind]:
    """Return a class with other values of some of its public attributes."""
    assert all(hasattr(kind, name) for name in attributes)
    return type(kind.__name__, (kind,), attributes)


class LimitedCard:
    """GPU with a limited number of free bytes."""

    def __init__(self, card: Card, n_bytes: int) -> None:
        self._card, self._n_bytes = card, n_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._card, name)

    def free_bytes(self) -> int:
        return min(self._n_bytes, self._card.free_bytes())


def limited(kind: type[Kind], card: Any, options: dict[str, Any]) -> tuple[type[Kind], Any]:
    """Return the class with `options` and the GPU; the option `memory_bytes` limits the memory that the search may use."""
    options = dict(options)
    if n_bytes := options.pop("memory_bytes", None):
        return tuned(kind, share_of_free_memory=1.0, **options), LimitedCard(card, n_bytes)
    return tuned(kind, **options), card
