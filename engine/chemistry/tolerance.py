"""Mass tolerance with its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from proteoscope.engine.errors import ParameterError, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic_core import CoreSchema

__all__ = ["Tolerance"]

_TEXT = re.compile(r"\s*(?P<value>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>ppm|Da|Th|m/z)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Tolerance:
    """Half-width of the interval around a mass or an m/z.

    Attributes
    ----------
    value : float
        Half-width in `unit`.
    unit : str
        ``ppm``, or ``Da`` (thomson for an m/z).

    Raises
    ------
    ParameterError
        If the value is negative or not finite, or if the unit is unknown.
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
        """Parse ``20 ppm`` or ``0.02 Da`` (``Th`` and ``m/z`` are synonyms of ``Da``; case and spaces are ignored).

        Raises
        ------
        ParameterError
            If the text is not a tolerance.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ParameterError(f"{shortened(repr(text))} is not a tolerance; expected a number and its unit, as 20 ppm or 0.02 Da")
        return cls(float(match["value"]), "ppm" if match["unit"].lower() == "ppm" else "Da")

    def __str__(self) -> str:
        return f"{self.value:.15g} {self.unit}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """Return the schema of parameters that are tolerances, which are parsed from text and serialised as text."""
        from pydantic_core import core_schema  # slow to import: only models need it

        text = core_schema.plain_serializer_function_ser_schema(str)
        return core_schema.no_info_plain_validator_function(cls._parse_field, serialization=text)

    @classmethod
    def _parse_field(cls, value: Any) -> Tolerance:
        if isinstance(value, cls):
            return value
        try:
            return cls.parse(value if isinstance(value, str) else repr(value))
        except ParameterError as error:
            raise ValueError(str(error)) from None

    @overload
    def width(self, mz: float) -> float: ...
    @overload
    def width(self, mz: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def width(self, mz: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the half-width at `mz` (thomson; dalton for a mass), of the shape of `mz`."""
        import numpy as np  # slow to import: parameters, which contain tolerances, are listed without it

        if self.unit == "ppm":
            return np.abs(mz) * (self.value * 1e-6)
        return self.value if isinstance(mz, float | int) else np.full(np.shape(mz), self.value)

    @overload
    def bounds(self, mz: float) -> tuple[float, float]: ...
    @overload
    def bounds(self, mz: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def bounds(self, mz: float | NDArray[np.float64]) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
        """Return the minimum and maximum value within the tolerance of `mz` (thomson; dalton for a mass), each of the shape of `mz`."""
        width = self.width(mz)
        return mz - width, mz + width
