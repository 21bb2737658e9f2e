"""Packed sequences of a search, and warnings about sequences and scoring schemes whose hits are unreliable."""

from typing import Any

import numpy as np

from proteoscope.engine.errors import StorageError
from proteoscope.engine.formats.sequence_type import are_nucleotides_suspicious
from proteoscope.engine.formats.translation import Translation
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.sequences.composition import masked_sequences
from proteoscope.engine.sequences.database import SequenceDatabase, cache_store, open_database, read_sequences
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import ungapped_lambda

__all__ = ["packed_database", "warn_of_unusual_input"]


def packed_database(run: SearchRun[Any], kind: str, translation: Translation | None = None) -> SequenceDatabase:
    """Return the packed sequences of the run's files of a kind, from the cache if possible, otherwise in memory.

    Parameters
    ----------
    run : SearchRun
        Run with the files.
    kind : str
        Kind of the input files: ``queries`` or ``database``.
    translation : Translation, optional
        Translation of nucleotides to protein sequences; None for proteins.

    Raises
    ------
    InputError
        If a file contains no sequences.
    Cancelled
        If the user cancels.
    """
    paths, progress = run.paths(kind), run.progress
    try:
        return open_database(paths, run.digests(kind), cache_store(), progress, translation)
    except StorageError as error:
        progress.message(f"The packed database could not be cached, and was read into memory: {error}", "warning")
        return read_sequences(paths, progress, translation)


def warn_of_unusual_input(
    queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress, *, is_adjusted: bool
) -> None:
    """Warn about nucleotides, empty sequences, repeated names, unsuitable matrices and queries of low complexity.

    Parameters
    ----------
    queries, database : SequenceDatabase
        Sequences of the search.
    scheme : ScoringScheme
        Matrix and gap costs.
    progress : Progress
        Progress, which receives the warnings.
    is_adjusted : bool
        True if E-values are adjusted for composition, with segments of low complexity masked.
    """
    for sequences, name, is_any_suspicious in ((queries, "The queries", True), (database, "The sequences of the database", False)):
        _warn_of_sequences(sequences, name, progress, is_any_suspicious=is_any_suspicious)
    if ungapped_lambda(scheme.matrix) is None:
        progress.message(
            f"With matrix {scheme.matrix.name} scores of random alignments grow with the lengths: do not trust the E-values", "warning"
        )
    if is_adjusted:
        _warn_of_low_complexity(queries, progress)


def _warn_of_sequences(sequences: SequenceDatabase, name: str, progress: Progress, *, is_any_suspicious: bool) -> None:
    """Warn about nucleotides, empty sequences and repeated names.

    If `is_any_suspicious` is True (for queries), a single sequence that looks like nucleotides causes the warning. Otherwise (for
    databases), many sequences must look like nucleotides.
    """
    if are_nucleotides_suspicious(sequences.n_nucleotides, len(sequences), is_any_suspicious=is_any_suspicious):
        n = sequences.n_nucleotides
        which = name if n == len(sequences) else f"{n:,} of {len(sequences):,} {name.removeprefix('The ')}"
        looks, are, them = ("looks", "is", "it") if n == 1 < len(sequences) else ("look", "are", "them")
        progress.message(f"{which} {looks} like DNA or RNA, and {are} compared as protein; translate {them} first", "warning")
    if n_empty := int((sequences.lengths == 0).sum()):
        score = "score" if n_empty > 1 else "scores"
        progress.message(f"{name}: {n_empty} without residues, which {score} 0 with every sequence", "warning")
    if n := sequences.n_repeated_names:
        each = "each" if n > 1 else "it"
        progress.message(f"{name}: {n} with the name of an earlier sequence; {each} is searched as a separate sequence")


def _warn_of_low_complexity(queries: SequenceDatabase, progress: Progress) -> None:
    """Warn about queries whose E-values ignore more than half of the residues, since these have low complexity."""
    masked, _ = masked_sequences(queries.residues, queries.offsets)
    n_masked = np.diff(np.concatenate(([0], np.cumsum(masked != queries.residues)))[queries.offsets])
    if n := int((2 * n_masked > queries.lengths).sum()):
        which = f"{n:,} of {len(queries):,} queries {'has' if n == 1 else 'have'} low complexity"
        progress.message(
            f"{which} over more than half of the residues, which count as X in E-values: set composition to false to use them", "warning"
        )
