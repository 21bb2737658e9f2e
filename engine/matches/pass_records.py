"""Settings used by each pass of a spectrum search, as recorded in the run and shown by exports, texts and the window.

Used settings may differ from requested settings: a tolerance may be calibrated on the run, and a second pass has separate modifications,
specificity and proteins. Parameters contain the requested settings, a `PassRecord` contains the used settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from proteoscope.engine.chemistry.enzymes import Specificity, enzyme
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.files import open_regular
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.project import Project
    from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

__all__ = [
    "PassRecord",
    "PassSettings",
    "SeriesCount",
    "engine_of_run",
    "passes_of_record",
    "passes_of_run",
    "read_passes",
    "requested_passes",
    "series_counts",
    "widest",
]

Content = TypeVar("Content")

SearchedProteins = Literal["all", "found"]
"""Proteins that a pass searched: all proteins in the databases, or only proteins that an earlier pass or run identified."""

_MAXIMUM_PASSES, _MAXIMUM_VALUES = 20, 1000
_MAXIMUM_JSON = 16 << 20
_MAXIMUM_ENGINE = 200  # characters of an engine's name
_USUAL_MASS = 1500.0  # Da, typical peptide mass


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] <= ends[1]:
        raise ValueError("expected the lower end first")
    return ends


_MAXIMUM_COUNT, _LARGEST = 1 << 53, 1e9
_List = Field(max_length=_MAXIMUM_VALUES)
_Text = Annotated[str, Field(max_length=10_000)]
_Texts = Annotated[tuple[_Text, ...], _List]
_Count = Annotated[int, Field(strict=True, ge=0, lt=_MAXIMUM_COUNT)]
_Number = Annotated[float, Field(strict=True, gt=-_LARGEST, lt=_LARGEST)]
_Range = Annotated[tuple[_Number, _Number], AfterValidator(_ordered)]
_Modifications = Annotated[tuple[Annotated[_Text, AfterValidator(lambda name: parse_modification(name) and name)], ...], _List]


class PassSettings(Protocol):
    """Settings of a pass; attributes are named like the parameters of searches."""

    enzyme: str
    missed_cleavages: int
    fixed_modifications: tuple[str, ...]
    precursor_tolerance: Tolerance
    fragment_tolerance: Tolerance
    isotope_errors: tuple[int, ...]


class SeriesCount(NamedTuple):
    """Ion series that were searched in spectra with one activation method ('' if unknown), and the number of these spectra."""

    activation: _Text
    symbols: Annotated[str, Field(pattern="^[abcxyz]{0,100}$")]
    n_spectra: _Count

    def __str__(self) -> str:
        named = f"{counted(self.n_spectra, 'spectrum', 'spectra')} {self.activation or 'of unknown activation'}"
        return f"{named}: {', '.join(self.symbols)}"


def series_counts(index: SpectrumIndex) -> tuple[SeriesCount, ...]:
    """Return the ion series that were searched for each activation method, with the numbers of spectra, most frequent first."""
    result = [SeriesCount(*kind, n) for kind, n in index.activation_counts().items()]
    return tuple(sorted(result, key=lambda count: (-count.n_spectra, count.activation)))


@dataclass(frozen=True)
class PassRecord:
    """Settings that a pass of a search used.

    Attributes
    ----------
    name : str
        ``first`` or ``second``.
    precursor_tolerance, fragment_tolerance : Tolerance
        Tolerances of precursor masses and fragment m/z.
    isotope_errors : tuple of int
        Isotope errors of precursors.
    enzyme : str
        Name of the cleavage agent.
    specificity : str
        Required enzymatic termini of a peptide: ``specific``, ``semi-specific`` or ``non-specific``.
    missed_cleavages : int
        Maximum number of missed cleavages.
    fixed_modifications, variable_modifications : tuple of str
        Names of the modifications.
    mass_shift : tuple of float or None
        Minimum and maximum difference of precursor and peptide mass, Da.
    groups : tuple of tuple of str
        Groups of matches whose error rates are estimated separately. A group is a tuple of values, one for each group column of the
        tables. Empty if all matches are rated together.
    databases : tuple of str
        FASTA files, including contaminants.
    proteins : str
        Searched proteins in the databases: ``all`` or ``found``.
    n_proteins : int
        Number of proteins, without decoys.
    spectra : tuple of str
        Spectrum files.
    n_spectra : int
        Number of spectra.
    source_run : str
        Earlier run that identified the proteins or left the spectra unidentified; '' for none.
    precursor_medians : tuple of float
        Minimum and maximum, over all files, of the correction of precursor masses, ppm.
    known_modifications : tuple of str
        Names of modifications listed in the databases, searched as variable modifications at the listed residues.
    ion_series : tuple of SeriesCount
        Ion series by activation.
    """

    name: _Text
    precursor_tolerance: Tolerance
    fragment_tolerance: Tolerance
    isotope_errors: Annotated[tuple[Annotated[int, Field(strict=True, ge=-100, lt=_MAXIMUM_COUNT)], ...], _List]
    enzyme: Annotated[_Text, AfterValidator(lambda name: enzyme(name).name)]
    specificity: Specificity
    missed_cleavages: _Count
    fixed_modifications: _Modifications = ()
    variable_modifications: _Modifications = ()
    mass_shift: _Range | None = None
    groups: Annotated[tuple[_Texts, ...], _List] = ()
    databases: _Texts = ()
    proteins: SearchedProteins = "all"
    n_proteins: _Count = 0
    spectra: _Texts = ()
    n_spectra: _Count = 0
    source_run: _Text = ""
    precursor_medians: _Range = (0.0, 0.0)
    known_modifications: _Modifications = ()
    ion_series: Annotated[tuple[SeriesCount, ...], _List] = ()

    @classmethod
    def from_settings(cls, name: str, settings: PassSettings, specificity: Specificity, **more: Any) -> PassRecord:
        """Create a record from the settings of a search; `more` contains further attributes by name."""
        return cls(
            name,
            settings.precursor_tolerance,
            settings.fragment_tolerance,
            settings.isotope_errors,
            settings.enzyme,
            "non-specific" if enzyme(settings.enzyme).is_unspecific else specificity,
            settings.missed_cleavages,
            settings.fixed_modifications,
            **more,
        )

    @property
    def precursor_range(self) -> tuple[Tolerance, Tolerance]:
        """Maximum differences of precursor masses below and above the peptide mass: the tolerance, widened by the corrections of files."""
        (low, high), half = self.precursor_medians, self.precursor_tolerance
        lighter, heavier = (Tolerance(round(max(half.value + median_error, 0.0), 6), half.unit) for median_error in (-low, high))
        return lighter, heavier

    def record(self) -> dict[str, Any]:
        """Return the pass as a dictionary for ``run.json``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) if isinstance(value, Tolerance) else value for name, value in values.items()}

    def sentence(self) -> str:
        """Describe the pass in one sentence for a methods section."""
        isotopes = "" if self.isotope_errors in ((), (0,)) else f", isotope errors {', '.join(map(str, self.isotope_errors))}"
        shift = "" if self.mass_shift is None else f", mass shifts from {self.mass_shift[0]:g} to {self.mass_shift[1]:g} Da"
        missed = counted(self.missed_cleavages, "missed cleavage")
        modifications = "; ".join(
            f"{kind} {', '.join(names)}"
            for kind, names in (("fixed", self.fixed_modifications), ("variable", self.variable_modifications))
            if names
        )
        kinds = len(self.known_modifications)
        at_residues = f"{counted(kinds, 'kind')} of known modifications at their residues" if kinds else ""
        modifications = "; ".join(part for part in (modifications, at_residues) if part)
        result = "" if self.proteins == "all" else f" found {f'by {self.source_run}' if self.source_run else 'before'}"
        proteins = counted(self.n_proteins, "protein") + result
        left = f" that {self.source_run} left unidentified" if self.source_run else ""
        medians = " to ".join(dict.fromkeys(f"{median:+.4g}" for median in self.precursor_medians))
        corrected = f" around an error of {medians} ppm" if any(self.precursor_medians) else ""
        spectra = counted(self.n_spectra, "spectrum", "spectra") + left
        return (
            f"{self.name.capitalize()} pass: {spectra}, {proteins}, precursors within {self.precursor_tolerance}"
            f"{corrected}{isotopes}{shift}, fragments within {self.fragment_tolerance}, {self.enzyme}, {self.specificity}, up to {missed}; "
            f"{modifications or 'no modifications'}{_series_text(self.ion_series)}"
        )


_RECORDED = TypeAdapter(
    Annotated[tuple[PassRecord, ...], Field(max_length=_MAXIMUM_PASSES)],
    config=ConfigDict(defer_build=True),  # imported here, since only commands that read records of runs need it
)


def _series_text(counts: tuple[SeriesCount, ...]) -> str:
    """Return the ion series as the end of a sentence; activation methods are omitted if all are unknown."""
    if not counts:
        return ""
    is_plain = len(counts) == 1 and not counts[0].activation
    return f"; ions {', '.join(counts[0].symbols)}" if is_plain else f"; ions of {'; '.join(map(str, counts))}"


def requested_passes(parameters: Mapping[str, Any]) -> tuple[PassRecord, ...]:
    """Return the passes that a search with these parameters requests; used for tables without recorded passes.

    Returns
    -------
    tuple of PassRecord
        Empty if the parameters do not describe a peptide search.

    Raises
    ------
    ParameterError
        If a value is invalid.
    """
    if any(parameters.get(name) is None for name in ("enzyme", "precursor_tolerance", "fragment_tolerance")):
        return ()
    try:
        return _passes(_requested(parameters))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the parameters do not describe a search ({error})") from None


def _requested(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the requested passes as dictionaries for `_passes`."""
    isotope_errors, specificity = parameters.get("isotope_errors", ()), parameters.get("specificity", "specific")
    variable, shift = list(parameters.get("variable_modifications", ())), parameters.get("mass_shift")
    first = {
        "name": "first",
        **{name: str(parameters[name]) for name in ("precursor_tolerance", "fragment_tolerance", "enzyme")},
        "isotope_errors": list(isotope_errors),
        "specificity": specificity,
        "missed_cleavages": parameters.get("missed_cleavages", 0),
        "fixed_modifications": list(parameters.get("fixed_modifications", ())),
        "variable_modifications": variable,
        "mass_shift": None if shift is None else [float(end) for end in str(shift).split("..")],
    }
    if not parameters.get("second_pass"):
        return [first]
    more = list(dict.fromkeys((*variable, *parameters.get("second_pass_modifications", ()))))
    specificity_of_second = parameters.get("second_pass_specificity", specificity)
    second = {**first, "name": "second", "variable_modifications": more, "specificity": specificity_of_second, "proteins": "found"}
    return [first, second]


def passes_of_record(record: Mapping[str, Any]) -> tuple[PassRecord, ...]:
    """Return the passes in the parsed content of a ``run.json``; empty if the search has no passes.

    Raises
    ------
    ParameterError
        If a value is invalid.
    """
    recorded = record.get("passes")
    return _passes(recorded) if isinstance(recorded, list) else ()


def passes_of_run(project: Project, run_id: str) -> tuple[PassRecord, ...]:
    """Return the passes of a finished run of a project; empty if none are recorded.

    Raises
    ------
    StorageError
        If the record is damaged.
    """
    if any(result.name == "run" for result in project.results(run_id)):
        return read_passes(project.table("run", run_id))
    return ()


def read_passes(path: Path) -> tuple[PassRecord, ...]:
    """Read the passes in a ``run.json``.

    Raises
    ------
    StorageError
        If the file cannot be read, or is not a valid record.
    """
    return _read_record(path, passes_of_record)


def engine_of_run(project: Project, run_id: str) -> str:
    """Return the name of the search engine whose matches a finished run imported; '' for runs without imported matches.

    Raises
    ------
    StorageError
        If the record is damaged.
    """
    if not any(result.name == "run" for result in project.results(run_id)):
        return ""
    return _read_record(project.table("run", run_id), lambda record: str(record.get("program") or "")[:_MAXIMUM_ENGINE])


def _read_record(path: Path, extract: Callable[[dict[str, Any]], Content]) -> Content:
    """Read the record of a run and return the result of `extract` for it.

    Raises
    ------
    StorageError
        If the file cannot be read, or is not a valid record.
    """
    try:
        with open_regular(path) as file:
            record = json.loads(file.read(_MAXIMUM_JSON))
        if not isinstance(record, dict):
            raise ParameterError("is not a record of a run")
        return extract(record)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, ParameterError) as error:
        raise StorageError(f"{path}: does not describe a search ({' '.join(str(error).split()):.200}). Search again.") from error


def _passes(records: list[Any]) -> tuple[PassRecord, ...]:
    """Convert dictionaries of a run's record to passes, with validation.

    Raises
    ------
    ParameterError
        If a record is invalid.
    """
    try:
        return _RECORDED.validate_python(records)
    except ValidationError as error:
        first = error.errors()[0]
        raise ParameterError(f"passes.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def widest(tolerances: Iterable[Tolerance]) -> Tolerance | None:
    """Return the tolerance that is widest at the mass of a typical peptide; None for an empty list."""
    return max(tolerances, key=lambda tolerance: tolerance.width(_USUAL_MASS), default=None)
