"""Indexes of an identification, and its passes over the spectra: first pass, second pass (identified proteins only), probe searches."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification, with_replaced_masses
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.files import storage_errors
from proteoscope.engine.formats.translation_parameters import create_translation
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.fragment_intensities import unpredicted_reason
from proteoscope.engine.matches.localisation import LocalisedPass, LocalisedSpectra, ModificationSites, is_localised, localise_matches
from proteoscope.engine.matches.match_classes import ISOTOPE_ERROR
from proteoscope.engine.matches.pass_records import PassRecord, SearchedProteins, series_counts
from proteoscope.engine.matches.psms import Psms, collect_psms, search_score
from proteoscope.engine.matches.scoring import ScoringBySeries, plan_by_series
from proteoscope.engine.matches.scoring_settings import modification_arrays
from proteoscope.engine.matches.tables import ScoredMatches, identified_proteins
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Databases, Indexes, open_indexes
from proteoscope.engine.peptides.known_forms import SearchedForms
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = [
    "PassMatches",
    "PassPlan",
    "localise",
    "open_search_indexes",
    "plan_pass",
    "plan_second_pass",
    "quick_matches",
    "quick_parameters",
    "score_pass",
    "searched_modifications",
]


def open_search_indexes(
    proteins: Sequence[Path],
    contaminants: Sequence[Path],
    digests: Mapping[str, list[str]],
    folder: Path,
    parameters: IdentificationParameters,
    resources: Resources,
) -> Indexes:
    """Open the cached indexes of the databases, or build them.

    Parameters
    ----------
    proteins, contaminants : sequence of Path
        FASTA files.
    digests : mapping of str to list of str
        SHA-256 of the files, by ``database`` and ``contaminants``.
    folder : Path
        Temporary folder for indexes that cannot be cached.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Threads and progress.

    Returns
    -------
    Indexes
    """
    forms = None
    if parameters.known_modifications and parameters.maximum_modifications:
        compile_kernels(["known-modifications"], resources.progress)
        forms = SearchedForms(searched_modifications(parameters), parameters.maximum_modifications, parameters.maximum_forms)
    databases = Databases(
        proteins,
        contaminants,
        {kind: digests[kind] for kind in ("database", "contaminants")},
        create_translation(parameters),
        parameters.known_variants,
        forms,
    )
    return open_indexes(databases, folder, parameters, resources)


_MAXIMUM_ISOTOPES = 1
_MAXIMUM_WITHOUT_DECOY = 0.02  # maximum fraction of found proteins without a decoy, since their false matches do not compete with decoys
_MB = 1_000_000


@dataclass(frozen=True)
class PassPlan:
    """Planned search pass of preprocessed spectra against protein and peptide indexes.

    Attributes
    ----------
    spectra : SpectrumIndex
        Preprocessed spectra, which are scored with one or several sets of ion series.
    indexes : Indexes
        Protein and peptide indexes.
    modifications : tuple of SearchModification
        Variable modifications, which are not part of `indexes.peptides`.
    parameters : IdentificationParameters
        Parameters of this pass.
    scoring : ScoringBySeries
        Planned scoring, with the number of candidates of each query.
    resources : Resources
        Devices and threads.
    n_proteins : int
        Number of searched proteins, without decoys.
    proteins : {"all", "found"}
        Searched proteins: all, or those identified by the first pass.
    """

    spectra: SpectrumIndex
    indexes: Indexes
    modifications: tuple[SearchModification, ...]
    parameters: IdentificationParameters
    scoring: ScoringBySeries
    resources: Resources
    n_proteins: int
    proteins: SearchedProteins = "all"

    @property
    def predicts_intensities(self) -> bool:
        """True if fragment intensities are predicted; the same for both passes, since models trained on the first pass score the second."""
        parameters = self.parameters
        of_second = map(parse_modification, parameters.second_pass_modifications if parameters.second_pass else ())
        every = (*self.modifications, *of_second, *self.indexes.peptides.digestion.fixed)
        is_wanted = parameters.predicted_intensities and parameters.decoys != "none"
        return is_wanted and not unpredicted_reason(parameters, self.spectra.ion_series.symbols, every)

    def record(self, **more: Any) -> PassRecord:
        """Return the settings of the pass for ``run.json``; `more` contains further attributes of `PassRecord` by name."""
        is_first, modifications_of_proteins = self.proteins == "all", self.indexes.proteins.known_modifications
        name, specificity = ("first", self.parameters.specificity) if is_first else ("second", self.parameters.second_pass_specificity)
        return PassRecord.from_settings(
            name,
            self.parameters,
            specificity,
            variable_modifications=tuple(map(str, self.modifications)),
            known_modifications=() if modifications_of_proteins is None else tuple(map(str, modifications_of_proteins.modifications)),
            n_spectra=self.spectra.n_searched,
            ion_series=series_counts(self.spectra),
            proteins=self.proteins,
            n_proteins=self.n_proteins,
            **more,
        )


class PassMatches(NamedTuple):
    """Matches of a pass, and scoring time per candidate, s."""

    psms: Psms
    seconds_per_candidate: float


def searched_modifications(parameters: IdentificationParameters) -> tuple[SearchModification, ...]:
    """Return the variable modifications of a search, with the masses of the fixed modifications that they replace."""
    variable, fixed = (
        tuple(map(parse_modification, names)) for names in (parameters.variable_modifications, parameters.fixed_modifications)
    )
    return with_replaced_masses(variable, fixed)


def plan_pass(
    spectra: SpectrumIndex,
    indexes: Indexes,
    parameters: IdentificationParameters,
    resources: Resources,
    n_found_proteins: int | None = None,
) -> PassPlan:
    """Plan a pass: count the candidates of each query.

    Parameters
    ----------
    spectra, indexes, parameters, resources
        See `PassPlan`.
    n_found_proteins : int, optional
        Number of proteins in `indexes` if these are only the proteins identified by the first pass.

    Returns
    -------
    PassPlan
    """
    with resources.clock.stage("plan"):
        proteins, index = indexes
        modifications = searched_modifications(parameters)
        sites = None if proteins.known_modifications is None else proteins.known_modifications.arrays(index.digestion)
        arrays = modification_arrays(modifications, parameters, sites)
        peptides = index.arrays(proteins, len(modifications))
        scoring = plan_by_series(spectra, peptides, arrays, parameters, resources, partial(compile_kernels, ["fragment-index"]))
    refer_to_proteins = (proteins.n_targets,) if n_found_proteins is None else (n_found_proteins, "found")
    return PassPlan(spectra, indexes, modifications, parameters, scoring, resources, *refer_to_proteins)


def score_pass(plan: PassPlan) -> PassMatches:
    """Return the best matches of each spectrum."""
    with plan.resources.clock.stage("score"):
        began = time.perf_counter()
        matches = plan.scoring.run(with_bonds=plan.predicts_intensities)
        seconds = time.perf_counter() - began
        psms = collect_psms(matches, plan.indexes.peptides, plan.indexes.proteins, plan.modifications)
    return PassMatches(psms, seconds / max(1, int(plan.scoring.n_candidates.sum())))


def localise(
    scored: ScoredMatches, plans: Sequence[PassPlan], parameters: IdentificationParameters, resources: Resources
) -> ModificationSites | None:
    """Return the possible sites of modifications in the accepted matches, with probabilities; None if no modification is localised.

    Parameters
    ----------
    scored : ScoredMatches
        Matches of all passes with error rates.
    plans : sequence of PassPlan
        The first pass, and the second if there was one.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Threads and progress of the run.
    """
    if not any(is_localised(modification, parameters.localise) for modification in plans[0].modifications):
        return None
    compile_kernels(["localisation"], resources.progress)
    with resources.clock.stage("localise"):
        resources.progress.stage("Localising modifications")
        passes = [
            LocalisedPass(
                plan.modifications,
                plan.indexes.peptides.digestion.fixed,
                [LocalisedSpectra(part.index, part.peptides, part.modifications.mass, part.settings) for part in plan.scoring.passes],
            )
            for plan in plans
        ]
        return localise_matches(scored, passes, plans[0].indexes.proteins, parameters, resources)


def plan_second_pass(
    first: ScoredMatches,
    spectra: SpectrumIndex,
    indexes: Indexes,
    folder: Path,
    tolerance: Tolerance,
    parameters: IdentificationParameters,
    resources: Resources,
) -> PassPlan | None:
    """Plan a second pass: unidentified spectra against the identified proteins and their decoys.

    Spectra identified in a class after `ISOTOPE_ERROR` are searched again, so that their matches compete with those of this pass.

    The pass allows more modifications (but fewer per peptide), a lower specificity and isotope errors up to `_MAXIMUM_ISOTOPES`, and thus
    has many more candidates per protein. Since there are few proteins, a wider precursor tolerance than in the first pass costs little and
    finds precursors with larger errors.

    Parameters
    ----------
    first : ScoredMatches
        Matches of the first pass with error rates.
    spectra : SpectrumIndex
        Spectra of the first pass.
    indexes : Indexes
        Indexes of the first pass.
    folder : Path
        Folder in which the peptide index of the pass is built.
    tolerance : Tolerance
        Precursor tolerance of the second pass.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Devices and threads; the progress receives a warning if proteins have no decoys.

    Returns
    -------
    PassPlan or None
        None if no second pass is requested, decoys are missing, or no spectra remain to search.
    """
    if not parameters.second_pass:
        return None
    proteins = indexes.proteins
    result = identified_proteins(first, proteins, parameters.fdr)
    partners = proteins.partners()[result]
    if np.count_nonzero(partners < 0) > _MAXIMUM_WITHOUT_DECOY * len(result):
        reason = "some found proteins have no decoy with their accession and the decoy prefix or suffix"
        resources.progress.message(f"There is no second pass: {reason}", "warning")
        return None
    selected = np.unique(np.concatenate((result, partners[partners >= 0])))
    accepted = first.q_value <= parameters.fdr
    # A peptide that only the second pass searches may resemble a semi-specific peptide or a variant; decoys rarely do.
    identified = accepted if first.match_class is None else accepted & (first.match_class <= ISOTOPE_ERROR)
    remaining = spectra.only(np.setdiff1d(spectra.queries.spectrum, first.psms.spectrum[identified]))
    if len(result) == 0 or remaining.n_searched == 0:
        return None
    settings = parameters.changed(
        precursor_tolerance=tolerance,
        isotope_errors=_near_isotopes(parameters),
        variable_modifications=tuple(dict.fromkeys((*parameters.variable_modifications, *parameters.second_pass_modifications))),
        maximum_modifications=min(parameters.second_pass_maximum_modifications, parameters.maximum_modifications),
    )
    with storage_errors(folder, only_disk=True), resources.clock.stage("index"):
        forms = SearchedForms(searched_modifications(settings), settings.maximum_modifications, settings.maximum_forms)
        peptides = build_peptide_index(
            Path(tempfile.mkdtemp(prefix="second-pass-", dir=folder)),
            proteins,
            Digestion.from_settings(settings, settings.second_pass_specificity),
            resources,
            memory_bytes=settings.index_memory * _MB,
            selected=selected,
            forms=forms,
        )
    return plan_pass(remaining, Indexes(proteins, peptides), settings, resources, len(result))


def quick_parameters(parameters: IdentificationParameters, **changes: Any) -> IdentificationParameters:
    """Return the parameters of a probe search: `parameters` with small isotope errors, no variable modifications, and `changes`."""
    return parameters.changed(
        variable_modifications=(), hits_per_spectrum=1, predicted_intensities=False, isotope_errors=_near_isotopes(parameters), **changes
    )


def quick_matches(
    spectra: SpectrumIndex, indexes: Indexes, quick: IdentificationParameters, resources: Resources, fdr: float, *, plus_one: bool = False
) -> Psms:
    """Search spectra with the parameters `quick`; return the targets and decoys that are accepted at the false discovery rate `fdr`."""
    psms = score_pass(plan_pass(spectra, indexes, quick, resources)).psms
    rates = q_values(search_score(psms), psms.is_decoy, plus_one=plus_one, decoy_ratio=psms.decoy_ratio)
    return psms.take(np.flatnonzero(rates <= fdr))


def _near_isotopes(parameters: IdentificationParameters) -> tuple[int, ...]:
    return tuple(error for error in parameters.isotope_errors if error <= _MAXIMUM_ISOTOPES) or parameters.isotope_errors
