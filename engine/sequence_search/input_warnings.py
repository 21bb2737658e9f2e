"""Warnings that the user should have of sequences and a scheme before he trusts what is found with them."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.formats.letters import worth_a_warning
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.composition import masked_sequences
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import ungapped_lambda

__all__ = ["warn_of_low_complexity", "warn_of_unusual_input"]


def warn_of_low_complexity(queries: SequenceDatabase, progress: Progress) -> None:
    """Warn of queries that are of low complexity over more than half of their residues, whose E-values rest on the others."""
    masked, _ = masked_sequences(queries.residues, queries.offsets)
    n_masked = np.diff(np.concatenate(([0], np.cumsum(masked != queries.residues)))[queries.offsets])
    if n := int((2 * n_masked > queries.lengths).sum()):
        who = f"{n:,} of {len(queries):,} queries {'has' if n == 1 else 'have'} low complexity"
        progress.message(
            f"{who} over more than half of the residues, which count as X in E-values: set composition to false to use them", "warning"
        )


def warn_of_unusual_input(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress) -> None:
    """Tell of nucleotides, empty sequences, repeated names and matrices that chance is good with."""
    for one, name, is_each_meant in ((queries, "The queries", True), (database, "The sequences of the database", False)):
        if worth_a_warning(one.n_nucleotides, len(one), is_each_meant=is_each_meant):
            n = one.n_nucleotides
            who = name if n == len(one) else f"{n:,} of {len(one):,} {name.removeprefix('The ')}"
            looks, they, them = ("looks", "is", "it") if n == 1 < len(one) else ("look", "are", "them")
            progress.message(f"{who} {looks} like DNA or RNA, and {they} compared as protein; translate {them} first", "warning")
        if n_empty := int((one.lengths == 0).sum()):
            progress.message(
                f"{name}: {n_empty} without residues, which {'score' if n_empty > 1 else 'scores'} 0 with everything", "warning"
            )
        if n := one.n_repeated_names:
            progress.message(f"{name}: {n} with a name that stood before; {'each' if n > 1 else 'it'} is searched as a sequence of its own")
    if ungapped_lambda(scheme.matrix) is None:
        progress.message(
            f"With matrix {scheme.matrix.name} chance alone gives scores that grow with the lengths: do not trust the E-values", "warning"
        )
