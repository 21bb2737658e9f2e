"""Presets that suit the inputs of a read alignment, and warnings about the inputs, from the beginnings of the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from proteoscope.engine.formats.sequence_type import classify_sequences

if TYPE_CHECKING:
    from proteoscope.engine.formats.sequence_type import InputContent
    from proteoscope.engine.parameters import SearchParameters

__all__ = ["are_exchanged", "are_far_longer", "input_conflict", "suited_preset"]

MAP_TO_GENOME = "map-to-genome"
_MINIMUM_RESIDUES, _MINIMUM_TIMES = 20_000, 100
_POSITION_PARAMETERS = {"mode", "strands", "mapping", "recurrence", "seed_length"}
"""Parameters that determine where reads are aligned; if the user sets one of them, no preset is suggested."""


def are_far_longer(n_text_residues: int, n_read_residues: float) -> bool:
    """Return True if the references are so much longer than the reads that the reads should probably be mapped.

    References are far longer if they have at least 20,000 residues, and at least a hundred times the read length.

    Parameters
    ----------
    n_text_residues : int
        Total length of the references.
    n_read_residues : float
        Length of a read.
    """
    return n_text_residues >= max(_MINIMUM_RESIDUES, _MINIMUM_TIMES * n_read_residues)


def are_exchanged(
    n_text_residues: int, n_texts: int, n_read_residues: int, n_reads: int, *, texts_have_qualities: bool, reads_have_qualities: bool
) -> bool:
    """Return True if reads and references seem to be exchanged, so that the "references" are reads.

    If only one of the two files has qualities, this is the file of the reads. Otherwise, reads and references seem to be exchanged if there
    are more "references" than "reads", and the "reads" are far longer (see `are_far_longer`).

    Parameters
    ----------
    n_text_residues, n_texts : int
        Total length and number of the references.
    n_read_residues, n_reads : int
        Total length and number of the reads.
    texts_have_qualities, reads_have_qualities : bool
        True if the file has qualities.
    """
    if texts_have_qualities != reads_have_qualities:
        return texts_have_qualities
    return n_texts > 0 and n_reads > 0 and n_texts > n_reads and are_far_longer(n_read_residues, n_text_residues / n_texts)


def suited_preset(contents: Mapping[str, InputContent], options: Mapping[str, Any], given: Collection[str] = ()) -> str:
    """Return the name of the preset that suits the files, or '' for the default parameters.

    The preset for mapping is returned for nucleotide reads with qualities or mates, or if the references are far longer. References in
    formats that are not parsed at this point (GenBank, EMBL) are assumed to be nucleotides; the search rejects proteins later.

    Parameters
    ----------
    contents : mapping of str to InputContent
        Content of each input.
    options : mapping
        Value of each option.
    given : collection of str
        Parameters that the user set.
    """
    references, reads = contents.get("texts"), contents.get("patterns")
    if reads is None or options.get("pairs") or _POSITION_PARAMETERS.intersection(given):
        return ""
    if not _are_nucleotides(reads) or (references is not None and not _are_nucleotides(references)):
        return ""
    if reads.has_qualities or options.get("mates"):
        return MAP_TO_GENOME
    mean = reads.count.n_residues / max(reads.count.n_sequences, 1)
    return MAP_TO_GENOME if references is not None and are_far_longer(references.count.n_residues, mean) else ""


def input_conflict(contents: Mapping[str, InputContent], options: Mapping[str, Any], parameters: SearchParameters) -> str:
    """Return the reason why files, options and parameters do not suit each other, in terms of the form in the window; '' if they do."""
    references, reads, values = contents.get("texts"), contents.get("patterns"), parameters.model_dump()
    are_pairs = bool(options.get("pairs"))
    if options.get("mates") and (values["mode"] == "prefix" or values["strands"] != "both" or are_pairs):
        return f"Mates are for reads that are mapped: choose the preset {MAP_TO_GENOME}, without Align pair by pair"
    if are_pairs and values["mapping"] == "seeds":
        return "Pairwise alignment does not map reads: choose every in Mapping, or clear Align pair by pair"
    if references is None or reads is None:
        return ""
    if not are_pairs and are_exchanged(
        references.count.n_residues,
        references.count.n_sequences,
        reads.count.n_residues,
        reads.count.n_sequences,
        texts_have_qualities=references.has_qualities,
        reads_have_qualities=reads.has_qualities,
    ):
        return "The references look like reads, and the reads like references: exchange them"
    if are_pairs and references.count.is_whole and reads.count.is_whole and references.count.n_sequences != reads.count.n_sequences:
        n_texts, n_reads = references.count.n_sequences, reads.count.n_sequences
        return f"Align pair by pair needs as many references as reads; there are {n_texts:,} and {n_reads:,}"
    if _are_nucleotides(references) and _are_proteins(reads):
        return "The reads are proteins, but the reference contains nucleotides: translate one of them"
    if _are_proteins(references) and _are_nucleotides(reads):
        return "The reference contains proteins, but the reads are nucleotides: translate one of them"
    return ""


def _are_nucleotides(content: InputContent) -> bool:
    return classify_sequences([content.count]) == "nucleotides"


def _are_proteins(content: InputContent) -> bool:
    return classify_sequences([content.count]) == "proteins"
