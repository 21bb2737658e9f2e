"""What decides about imported matches, and the table of those that were left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proteoscope.engine.imported.parameters import ImportParameters
from proteoscope.engine.imported.tables import LEFT_OUT
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.listed.identifications import Identifications, spectrum_names, unread_matches
from proteoscope.engine.matches.listed.judging import JudgingSettings, are_decoys, deciding_score, error_rates_of, ranks_of
from proteoscope.engine.matches.listed.matches import ListedMatches
from proteoscope.engine.matches.listed.tables import JudgedMatches, counted_ions
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["judge", "left_out_table"]


def judge(
    found: Identifications, matches: ListedMatches, spectra: Spectra, parameters: ImportParameters, progress: Progress
) -> JudgedMatches:
    """Ranks, decoys, error rates and fragment ions of the matches."""
    row, settings = matches.row, JudgingSettings.of(parameters, parameters.decoy_prefixes)
    deciding = deciding_score(found, parameters.score)
    score, is_decoy = deciding.value[row], are_decoys(found, parameters.decoy_prefixes)[row]
    rank = ranks_of(matches.spectrum, found.rank[row], score)
    progress.stage("Estimating false discovery rates")
    given = found.q_value[row], found.posterior_error[row]
    rates = error_rates_of(score, is_decoy, rank == 1, given, settings)
    if rates.q_value_of == "none":
        settings = replace(settings, decoys="none")
    matched, total = counted_ions(matches, spectra, parameters, progress)
    return JudgedMatches(score, deciding.title, rank, is_decoy, rates, matched, total, settings)


def left_out_table(found: Identifications, matches: ListedMatches) -> pa.Table:
    """The matches that stand in no other table, with the reason: those that were not read, then those that were, in their order."""
    rows = matches.left_out
    at = pa.array(rows)
    called = spectrum_names(found.run.take(at), found.native_id.take(at), found.title.take(at), pa.array(found.scan[rows]))
    sequences = pa.array([peptide.sequence for peptide in found.peptides], pa.string()).take(pa.array(found.peptide[rows]))
    taken = unread_matches(found.place[rows], matches.reason, called, sequences, found.charge[rows])
    every = pa.concat_tables([found.unread, taken.set_column(0, "file", pa.array(found.file[rows], pa.int64()))]).combine_chunks()
    names = pa.array([Path(path).name for path in found.files], pa.string())
    return LEFT_OUT.arrow({name: names.take(every[name]) if name == "file" else every[name] for name in every.column_names})
