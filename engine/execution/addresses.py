"""Addresses of objects, by which another process of the same program finds them: the module, a colon, and the name in it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["address_of_class", "object_at"]


def address_of_class(one: type) -> str:
    """Return the address of a class.

    Parameters
    ----------
    one : type
        Class at the top of its module.

    Returns
    -------
    str
        As ``module:name``.
    """
    return f"{one.__module__}:{one.__qualname__}"


def object_at(address: str) -> Any:
    """Import the module of an address and return the object.

    Parameters
    ----------
    address : str
        As ``module:name``.

    Returns
    -------
    object
        What has this name in the module.
    """
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
