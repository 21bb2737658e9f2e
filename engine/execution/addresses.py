"""Addresses of objects as ``module:name``, with which another process of the same program imports them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["address_of_class", "object_at"]


def address_of_class(class_: type) -> str:
    """Return the address of a class.

    Parameters
    ----------
    class_ : type
        Class at the top of its module.

    Returns
    -------
    str
        As ``module:name``.
    """
    return f"{class_.__module__}:{class_.__qualname__}"


def object_at(address: str) -> Any:
    """Import the module of an address and return the object.

    Parameters
    ----------
    address : str
        As ``module:name``.

    Returns
    -------
    object
        Object with this name in the module.
    """
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
