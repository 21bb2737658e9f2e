"""Numba's rules for conversions between types, computed when they are first used.

Numba derives all conversions between numbers from forty rules when it is imported, which takes 50 ms. They are used by the compiler, and by
calls of functions whose compilation is disabled. Cached kernels are called with exactly the types for which they were compiled.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import RLock
from typing import Any

__all__ = ["apply_casting_rules", "postpone_casting_rules"]

_RULES, _TYPES = "numba.core.typeconv.rules", "numba.core.typeconv.typeconv"
_USERS = ("check_compatible", "select_overload", "set_compatible")  # methods of Numba's type manager that use or change conversions

_lock = RLock()
_postponed: list[_Rules] = []


class _Rules:
    """Substitute for Numba's `TypeCastingRules`, which records the rules of a type manager and applies them before they are used."""

    def __init__(self, create: Any, manager: Any) -> None:
        self._create, self._manager = create, manager
        self._recorded: list[tuple[str, tuple[Any, ...]]] = []
        self._is_applying = False
        for name in _USERS:
            setattr(manager, name, self._applying(getattr(manager, name)))
        _postponed.append(self)

    def __getattr__(self, name: str) -> Any:
        """Return a function that records a rule, such as ``safe(int64, float64)``."""
        return lambda *types: self._recorded.append((name, types))

    def _applying(self, method: Any) -> Any:
        def use(*arguments: Any) -> Any:
            self.apply()
            return method(*arguments)

        return use

    def apply(self) -> None:
        """Apply the recorded rules; other threads wait until all are applied. If this is interrupted, the next call applies all again."""
        with _lock:
            if not self._recorded or self._is_applying:
                return
            self._is_applying = True
            try:
                rules = self._create(self._manager)
                for name, types in self._recorded:  # calls `set_compatible` of the manager, and thus this function
                    getattr(rules, name)(*types)
                self._recorded = []
            finally:
                self._is_applying = False
            for name in _USERS:
                delattr(self._manager, name)


class _Finder:
    """Import finder that replaces the class of Numba's rules immediately before the rules are created."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Replace the class if the module of the rules is imported, and leave finding it to the next finder."""
        if fullname == _RULES:
            sys.meta_path.remove(self)
            types = vars(import_module(_TYPES))
            if (create := types.get("TypeCastingRules")) is not None:
                types["TypeCastingRules"] = lambda manager: _Rules(create, manager)


def postpone_casting_rules() -> None:
    """Let Numba, if it is not imported yet, compute its conversions when they are first used."""
    if _RULES not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def apply_casting_rules() -> None:
    """Compute the conversions that are still postponed."""
    for rules in _postponed:
        rules.apply()
