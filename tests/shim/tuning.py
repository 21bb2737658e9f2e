"""Searches with other batches, and cards with less memory, than those that users have."""

from __future__ import annotations

from typing import Any, TypeVar

from proteoscope.kernels.cuda.modules import Card

__all__ = ["LimitedCard", "limited", "tuned"]

Kind = TypeVar("Kind")


def tuned(kind: type[Kind], **attributes: Any) -> type[Kind]:
    """The class with other values of some of its public attributes."""
    assert all(hasattr(kind, name) for name in attributes)
    return type(kind.__name__, (kind,), attributes)


class LimitedCard:
    """A card that has at most so many bytes free."""

    def __init__(self, card: Card, n_bytes: int) -> None:
        self._card, self._n_bytes = card, n_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._card, name)

    def free_bytes(self) -> int:
        return min(self._n_bytes, self._card.free_bytes())


def limited(kind: type[Kind], card: Any, options: dict[str, Any]) -> tuple[type[Kind], Any]:
    """The class with the `options`, and the card; of these, `memory_bytes` is all that the search may take of its memory."""
    options = dict(options)
    if n_bytes := options.pop("memory_bytes", None):
        return tuned(kind, share_of_free_memory=1.0, **options), LimitedCard(card, n_bytes)
    return tuned(kind, **options), card
