"""Report of an identification: error rates of the matches, tables of the run, and numbers of accepted rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.class_counts import ClassCounts
from proteoscope.engine.matches.localisation import ModificationSites
from proteoscope.engine.matches.match_classes import class_names, classify_matches
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.matches.run_tables import RunTables, write_protein_knowledge
from proteoscope.engine.matches.site_tables import site_tables, write_site_tables
from proteoscope.engine.matches.summary import MatchSummary
from proteoscope.engine.matches.tables import ScoredMatches, score_statistics, with_second_pass, write_tables
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["IdentificationSummary", "rate_first_pass", "rate_second_pass", "write_report", "write_sites"]


@dataclass(frozen=True, kw_only=True)
class IdentificationSummary(MatchSummary):
    """Summary of an identification.

    Attributes
    ----------
    classes : tuple of ClassCounts
        PSMs of each class with its own error rate; empty without decoys, or if all PSMs are in one class.
    stages : dict
        Times of the steps, s. Indexes are built while spectra are read; their time counts only from the end of reading.
    top_proteins : tuple
        Accession, description, number of peptides and sequence coverage of each of the best protein groups.
    has_low_yield : bool
        True if so few spectra were identified that causes were examined (step ``advice``).
    """

    classes: tuple[ClassCounts, ...] = ()
    top_proteins: tuple[tuple[str, str, int, float], ...] = field(default=())
    has_low_yield: bool = False

    def lines(self) -> list[str]:
        """Return the summary as lines: those of `MatchSummary`, the PSMs by class, and the best proteins."""
        lines = super().lines()
        listed = [counts.line(self.fdr) for counts in self.classes if counts.is_listed]
        if listed:
            lines += ["PSMs by class, each with its own false discovery rate:", *listed]
        for accession, description, n_peptides, coverage in self.top_proteins:
            lines.append(f"  {accession:<24.24} {counted(n_peptides, 'peptide'):>13} {coverage * 100:5.1f} %  {description:.70}")
        return lines

    def record(self) -> dict[str, Any]:
        """Return the summary as a JSON-compatible dictionary, with classes as in ``run.json``."""
        return {**super().record(), "classes": [counts.record() for counts in self.classes]}


def rate_first_pass(
    psms: Psms, indexes: Indexes, series: Sequence[str], parameters: IdentificationParameters, resources: Resources
) -> ScoredMatches:
    """Estimate the error rates of the matches of the first pass, separately for each class of matches.

    Parameters
    ----------
    psms : Psms
        Matches of the first pass.
    indexes : Indexes
        Indexes of the pass.
    series : sequence of str
        Each searched set of ion series, as symbols.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Threads and progress of the run.

    Returns
    -------
    ScoredMatches
    """
    with resources.clock.stage("report"):
        resources.progress.stage("Estimating false discovery rates")
        match_class = classify_matches(
            psms,
            indexes.proteins,
            indexes.peptides.digestion.enzyme,
            len(parameters.variable_modifications),
            clip_methionine=parameters.clip_methionine,
        )
        names = class_names(is_translated=parameters.translation != "none")
        return score_statistics(psms, match_class, names, parameters, resources, series)


def rate_second_pass(first: ScoredMatches, psms: Psms, parameters: IdentificationParameters, resources: Resources) -> ScoredMatches:
    """Estimate the error rates of the matches of both passes, separately for each class; the second pass is one class."""
    with resources.clock.stage("report"):
        resources.progress.stage("Estimating false discovery rates")
        return with_second_pass(first, psms, parameters, resources)


def write_report(
    run: SearchRun[Spectra],
    results: Run,
    scored: ScoredMatches,
    spectra: Spectra,
    proteins: ProteinIndex,
    parameters: IdentificationParameters,
) -> RunTables:
    """Infer the proteins, and write the tables of PSMs, peptides and protein groups to the run, and as text files to the project folder."""
    run.progress.stage("Writing results")
    tables = RunTables(write_tables(scored, spectra, proteins, parameters), parameters)
    tables.write(results, run.progress, run.begin)
    is_translated = parameters.translation != "none"
    write_protein_knowledge(results, proteins, tables.found_accessions, is_translated=is_translated)
    return tables


def write_sites(
    run: SearchRun[Spectra],
    results: Run,
    sites: ModificationSites | None,
    scored: ScoredMatches,
    proteins: ProteinIndex,
    parameters: IdentificationParameters,
) -> list[dict[str, Any]]:
    """Write the tables of modification sites to the run; return one record per modification, or an empty list without `sites`."""
    if sites is None:
        return []
    return write_site_tables(results, site_tables(sites, scored, proteins, plus_one=parameters.plus_one), run.progress)
