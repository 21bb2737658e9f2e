"""Checks that sequences can be aligned as requested, and that reads resemble their references."""

import numpy as np

from proteoscope import kernels
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.fitting import are_exchanged, are_far_longer
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.results import AlignmentTotals
from proteoscope.engine.read_alignment.sequences import AlignedSequences, NamedSequences
from proteoscope.kernels.gapsmis_layouts import PREFIX, GapRules, score_bits

__all__ = ["CHANCE_IDENTITY", "check_roles", "check_sequences", "check_similarity"]

CHANCE_IDENTITY = {True: 0.5, False: 0.15}
"""Maximum identity of the best alignment of unrelated sequences: of nucleotides (True) and of proteins (False).

By chance, 1/4 of nucleotides and 1/17 of residues agree; gaps and the choice of a position increase the fraction.
"""

_TIMES_LONGER = 2
"""Minimum length of a reference, in mean read lengths, at which reads are probably not aligned with it from end to end."""


def check_roles(references: NamedSequences, reads: NamedSequences) -> None:
    """Check that reads and references are not exchanged, since their alignments would be missing or meaningless.

    Raises
    ------
    InputError
        If the two files seem to be exchanged.
    """
    counts = len(references.sequences.codes), len(references), len(reads.sequences.codes), len(reads)
    if are_exchanged(*counts, texts_have_qualities=references.qualities is not None, reads_have_qualities=reads.qualities is not None):
        reason = f"resembles reads, and {reads.path.name} resembles references"
        raise InputError(references.path, reason, remedy="Exchange the two: the reference comes first")


def check_sequences(
    references: NamedSequences,
    reads: NamedSequences,
    rules: GapRules,
    parameters: ReadAlignmentParameters,
    *,
    pairs: bool,
    has_places: bool,
) -> None:
    """Raise an error for sequences that cannot be aligned as the parameters require.

    Parameters
    ----------
    references, reads : NamedSequences
        References and reads.
    rules : GapRules
        Scores and limits of the alignments.
    parameters : ReadAlignmentParameters
        Parameters of the search.
    pairs : bool
        True if the i-th read is aligned only with the i-th reference.
    has_places : bool
        True if reads are mapped.

    Raises
    ------
    ParameterError
        If scores could exceed 32 bits, if pairs are requested and the numbers of reads and references differ, or if reads with mates are
        not mapped.
    InputError
        If reads are mapped and are proteins, or if sequences are too many or too long for mapping.
    """
    longest = int(reads.lengths.max(initial=0))
    if not score_bits(rules, longest):
        raise ParameterError(f"scores of reads of {longest:,} bases could exceed 32 bits; reduce the scores and the gap costs")
    if pairs and len(references) != len(reads):
        raise ParameterError(
            f"--pairs: {references.path.name} has {len(references):,} sequences and {reads.path.name} {len(reads):,}; "
            "give as many references as reads"
        )
    if reads.are_mates and (not has_places or parameters.strands != "both"):
        raise ParameterError("mates need mapped reads: give --mapping seeds, --strands both and no --pairs")
    if has_places and pairs:
        raise ParameterError("--pairs assigns a reference to each read; leave out --pairs or --mapping seeds")
    if has_places and len(references.sequences.codes) and not references.are_nucleotides:
        raise InputError(references.path, "contains proteins, which are not mapped", remedy="Give mapping = every")
    if has_places and len(references) > kernels.cpu.minimisers.MAXIMUM_TEXTS:
        reason = f"has {len(references):,} sequences; reads can be mapped to at most {kernels.cpu.minimisers.MAXIMUM_TEXTS:,}"
        raise InputError(references.path, reason, remedy="Give fewer sequences, or mapping = every")
    if has_places and longest > kernels.cpu.minimisers.LONGEST_READ:
        raise InputError(
            reads.path,
            f"a read has {longest:,} bases; reads can be mapped up to {kernels.cpu.minimisers.LONGEST_READ:,} bases",
            remedy="Give mapping = every",
        )


def check_similarity(sequences: AlignedSequences, totals: AlignmentTotals, progress: Progress, *, are_pairs: bool) -> None:
    """Warn if the median identity of reads with their best reference is not above that of unrelated sequences.

    Raises
    ------
    InputError
        If, in addition, the reads were aligned with the beginning of a reference, and seem to require mapping.
    """
    best, references = totals.best_identity[totals.best_identity >= 0], sequences.references
    if not len(best) or (typical := float(np.median(best))) >= CHANCE_IDENTITY[references.are_nucleotides]:
        return
    reason = f"half of the reads are {typical:.0%} identical to the reference or less, like unrelated sequences"
    remedy = "choose the preset map-to-genome" if references.are_nucleotides else "choose mode within"
    if not are_pairs and _are_at_the_beginning(sequences):
        reason = f"{reason}: mode prefix puts each at the beginning of a reference"
        raise InputError(sequences.reads.path, reason, remedy=f"To map them, {remedy}, or give another reference")
    progress.message(
        f"{reason.capitalize()}: they are probably aligned at wrong positions. To map them, {remedy}, or give another reference",
        "warning",
    )


def _are_at_the_beginning(sequences: AlignedSequences) -> bool:
    """Return True if reads were aligned with the beginning of a reference, although they probably come from any position of a genome."""
    references, reads, rules, has_places = sequences
    n_residues, mean = len(references.sequences.codes), len(reads.sequences.codes) / max(len(reads), 1)
    is_single = len(references) == 1 and n_residues >= _TIMES_LONGER * mean
    is_like_a_genome = reads.qualities is not None or is_single or are_far_longer(n_residues, mean)
    return not has_places and rules.mode == PREFIX and is_like_a_genome
