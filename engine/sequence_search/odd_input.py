"""What the user should know of sequences and a scheme before he trusts what is found with them."""

from __future__ import annotations

from engine.jobs.progress import Progress
from engine.sequences.database import SequenceDatabase
from engine.sequences.scheme import ScoringScheme
from engine.sequences.statistics import ungapped_lambda

__all__ = ["warn_of_odd_input"]

_LEAST_NUCLEOTIDE_SHARE = 0.01  # of a database: among millions of proteins there are some of only A, C, G, N and T


def warn_of_odd_input(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme, progress: Progress) -> None:
    """Tell of nucleotides, empty sequences, repeated names and matrices that chance is good with."""
    for one, name, share in ((queries, "The queries", 0.0), (database, "The sequences of the database", _LEAST_NUCLEOTIDE_SHARE)):
        if n := one.n_nucleotides if one.n_nucleotides >= share * len(one) else 0:
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
