"""A mass tolerance with its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from engine.errors import ParameterError, shortened

__all__ = ["Tolerance"]

_TEXT = re.compile(r"\s*(?P<value>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>ppm|Da|Th|m/z)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Tolerance:
    """A half-width around a mass or an m/z: parts per million of it, or dalton (thomson where it stands for an m/z).

    Raises
    ------
    ParameterError : the value is negative or not finite, or the unit is unknown.
    """

    value: float
    unit: Literal["ppm", "Da"]

    def __post_init__(self) -> None:
        if not 0 <= self.value < float("inf"):
            raise ParameterError(f"A tolerance of {self.value} {self.unit} is not possible; expected a number of at least 0")
        if self.unit not in ("ppm", "Da"):
            raise ParameterError(f"{self.unit!r} is not a unit of a tolerance; expected ppm or Da")

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Read ``20 ppm`` or ``0.02 Da`` (``Th`` and ``m/z`` say the same as ``Da``; case and spaces do not matter).

        Raises
        ------
        ParameterError : the text is something else.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ParameterError(f"{shortened(repr(text))} is not a tolerance; expected a number and its unit, as 20 ppm or 0.02 Da")
        return cls(float(match["value"]), "ppm" if match["unit"].lower() == "ppm" else "Da")

    def __str__(self) -> str:
        return f"{self.value:.15g} {self.unit}"

    @overload
    def width(self, mz: float) -> float: ...
    @overload
    def width(self, mz: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def width(self, mz: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Half-width at `mz` (thomson; dalton for a mass), of the shape of `mz`."""
        if self.unit == "ppm":
            return np.abs(mz) * (self.value * 1e-6)
        return self.value if isinstance(mz, float | int) else np.full(np.shape(mz), self.value)

    @overload
    def bounds(self, mz: float) -> tuple[float, float]: ...
    @overload
    def bounds(self, mz: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def bounds(self, mz: float | NDArray[np.float64]) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
        """Lowest and highest value within the tolerance of `mz` (thomson; dalton for a mass), each of the shape of `mz`."""
        width = self.width(mz)
        return mz - width, mz + width
