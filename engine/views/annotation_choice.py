"""What a user asks of annotated spectra beyond what their search looked for; kept with the settings of a view."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import LOSSES, SHOWN_SERIES, IonSettings

__all__ = ["WIDEST_TOLERANCE", "AnnotationChoice"]

WIDEST_TOLERANCE = {"ppm": 5000.0, "Da": 5.0}
"""By unit: with a wider one any peak is an ion."""


class AnnotationChoice(BaseModel):
    """Which ions are looked for in annotated spectra, and which of them are named.

    Attributes
    ----------
    series : letters of `SHOWN_SERIES`, in their order; empty for those that the search looked for.
    losses : some of `LOSSES`. tolerance : of fragments; None for the search's.
    least_labelled : percent of the base peak from which a peak has its name written.

    Examples
    --------
    >>> asked = IonSettings(Tolerance(20, "ppm"), "by")
    >>> AnnotationChoice(series="bcyz", tolerance="0.5 Da").settings(asked).series
    'bcyz'
    """

    model_config = ConfigDict(frozen=True)

    series: str = ""
    losses: tuple[str, ...] = LOSSES
    shows_precursor: bool = True
    shows_immonium: bool = False
    tolerance: Tolerance | None = None
    least_labelled: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0

    @field_validator("series")
    @classmethod
    def _known_series(cls, series: str) -> str:
        if set(series) - set(SHOWN_SERIES):
            raise ValueError(f"expected letters of {SHOWN_SERIES}")
        return "".join(letter for letter in SHOWN_SERIES if letter in series)

    @field_validator("losses")
    @classmethod
    def _known_losses(cls, losses: tuple[str, ...]) -> tuple[str, ...]:
        if set(losses) - set(LOSSES):
            raise ValueError(f"expected some of {', '.join(LOSSES)}")
        return tuple(one for one in LOSSES if one in losses)

    @field_validator("tolerance")
    @classmethod
    def _possible_tolerance(cls, tolerance: Tolerance | None) -> Tolerance | None:
        if tolerance is not None and not 0 < tolerance.value <= WIDEST_TOLERANCE[tolerance.unit]:
            raise ValueError(f"expected more than 0 and at most {WIDEST_TOLERANCE[tolerance.unit]:g} {tolerance.unit}")
        return tolerance

    @classmethod
    def restored(cls, stored: Any) -> Self:
        """What `model_dump(mode="json")` gave, whoever has written it; what cannot be read is the usual choice."""
        try:
            return cls.model_validate(stored)
        except (ValidationError, TypeError):
            return cls()

    def settings(self, asked: IonSettings) -> IonSettings:
        """The ions to look for in a run whose search looked for `asked`."""
        return replace(
            asked,
            tolerance=self.tolerance or asked.tolerance,
            series=self.series or asked.series,
            losses=self.losses,
            shows_precursor=self.shows_precursor,
            shows_immonium=self.shows_immonium,
            least_labelled=self.least_labelled,
        )
