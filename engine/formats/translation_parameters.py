"""Parameters of searches that translate nucleotides."""

from __future__ import annotations

from typing import Literal, Protocol

from proteoscope.engine import formats
from proteoscope.engine.parameters import parameter

__all__ = ["GENETIC_CODE", "MINIMUM_FRAME", "TRANSLATION", "TranslationSettings", "create_translation"]

_DATABASE = "Database"

TRANSLATION = parameter(
    "none",
    title="Translate nucleotides",
    group=_DATABASE,
    help="Reading frames in which a nucleotide database is translated, from stop codon to stop codon: all six, or the three"
    " of the forward or reverse strand.",
)
GENETIC_CODE = parameter(
    1,
    ge=1,
    le=33,
    title="Genetic code",
    group=_DATABASE,
    advanced=True,
    help="Number of NCBI's genetic code that is used for translation, such as 1 (standard) or 11 (bacteria).",
)
MINIMUM_FRAME = parameter(
    30,
    ge=1,
    le=100000,
    title="Minimum reading frame length",
    unit="residues",
    group=_DATABASE,
    advanced=True,
    help="Minimum number of residues between two stop codons. Shorter reading frames are not searched.",
)


class TranslationSettings(Protocol):
    """Settings of the translation, named as in the parameters of every search.

    Attributes
    ----------
    translation : str
        Reading frames to translate: none, all six, or the three of one strand.
    genetic_code : int
        NCBI number of the genetic code.
    minimum_frame : int
        Minimum number of residues of a reading frame between two stop codons.
    """

    translation: Literal["none", "six-frame", "forward", "reverse"]
    genetic_code: int
    minimum_frame: int


def create_translation(settings: TranslationSettings) -> formats.translation.Translation | None:
    """Return the translation of a nucleotide database; None for a protein database.

    Raises
    ------
    ParameterError
        If there is no such genetic code.
    """
    if settings.translation == "none":
        return None

    return formats.translation.Translation(settings.translation, settings.genetic_code, settings.minimum_frame)
