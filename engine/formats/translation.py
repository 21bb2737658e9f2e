"""Translation of nucleotide databases into the proteins of their reading frames, which are named by their positions.

A reading frame is the sequence between two stop codons, or between a stop codon and an end of the sequence. The start of the gene in a
reading frame is unknown and not needed to find peptides. Genetic codes are NCBI's
(https://www.ncbi.nlm.nih.gov/Taxonomy/Utils/wprintgc.cgi), from Biopython.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.sequence_type import character_counts
from proteoscope.engine.jobs.progress import Progress

__all__ = ["Direction", "FramePosition", "Translation", "parse_frame_name"]

Direction = Literal["none", "six-frame", "forward", "reverse"]
_STRANDS = {"six-frame": (True, True), "forward": (True, False), "reverse": (False, True)}
_IUPAC = np.frombuffer(b"ACGTUNRYSWKMBDHV", np.uint8)
_BASES = np.frombuffer(b"ACGTUN", np.uint8)
_BASE_SHARE = 0.8
_PLACE = re.compile(r"(.+):([1-9]\d{0,17})-([1-9]\d{0,17})\(([+-])\)")


@dataclass(frozen=True)
class FramePosition:
    """Position of a reading frame.

    Attributes
    ----------
    sequence : str
        Name of the nucleotide sequence.
    first, last : int
        First and last nucleotide, from 1, both included.
    strand : str
        ``+`` or ``-``.
    """

    sequence: str
    first: int
    last: int
    strand: str


def parse_frame_name(accession: str) -> FramePosition | None:
    """Return the position in the name of a reading frame; None for other names.

    Examples
    --------
    >>> parse_frame_name("chr1:301-330(-)")
    FramePosition(sequence='chr1', first=301, last=330, strand='-')
    """
    match = _PLACE.fullmatch(accession)
    return None if match is None else FramePosition(match[1], int(match[2]), int(match[3]), match[4])


@dataclass(frozen=True)
class Translation:
    """Settings for the translation of nucleotides.

    Attributes
    ----------
    direction : Direction
        Strands whose reading frames are translated: both, one or none.
    genetic_code : int
        NCBI's number of the genetic code.
    minimum_length : int
        Minimum length of a reading frame in residues.

    Raises
    ------
    ParameterError
        If the number of the genetic code is unknown.
    """

    direction: Direction
    genetic_code: int
    minimum_length: int

    def __post_init__(self) -> None:
        _codons(self.genetic_code)

    def content(self) -> dict[str, Any]:
        """Return the settings that determine the proteins, for cache keys; a digest of the codons represents the genetic code."""
        codons = hashlib.sha256(_codons(self.genetic_code).tobytes()).hexdigest()
        return {"direction": self.direction, "codons": codons, "minimum_length": self.minimum_length}

    def read(self, paths: Sequence[Path], progress: Progress) -> Proteins:
        """Read files of nucleotides and translate them.

        Parameters
        ----------
        paths : sequence of Path
            Files of nucleotides.
        progress : Progress
            Progress, which receives messages and is checked for cancellation.

        Returns
        -------
        Proteins
            Reading frames.

        Raises
        ------
        InputError
            If a file cannot be read or contains proteins, or no reading frame has the minimum length.
        Cancelled
            If the user cancels.
        """
        nucleotides = read_proteins(paths, progress=progress, with_chromosomes=True)
        if not _may_be_nucleotides(nucleotides):
            reason = "the sequences are proteins, and cannot be translated"
            raise InputError(_find_protein_file(paths, progress), reason, remedy="Set translation=none, or give a database of nucleotides")
        progress.stage("Translating nucleotides")
        proteins = self.translated(nucleotides)
        if not len(proteins):
            reason = f"no reading frame has {self.minimum_length:,} residues"
            raise InputError(paths[0], reason, remedy="Lower minimum_frame, or give another genetic code")
        return proteins

    def translated(self, nucleotides: Proteins) -> Proteins:
        """Return the reading frames of nucleotide sequences as proteins with names ``sequence:first-last(strand)``, from 1."""
        strands = np.array(_STRANDS[self.direction])
        rules = (nucleotides.residues, nucleotides.offsets, _codons(self.genetic_code), self.minimum_length, strands)
        n_frames, n_residues = kernels.cpu.translation.frames(*rules, np.empty((0, 5), np.int64), np.empty(0, np.uint8))
        positions, residues = np.empty((n_frames, 5), np.int64), np.empty(n_residues, np.uint8)
        kernels.cpu.translation.frames(*rules, positions, residues)
        names = Texts(nucleotides.accession_bytes, nucleotides.accession_offsets).strings()
        rows = [(names[row[0]], *row[1:]) for row in positions.tolist()]
        accessions = Texts.from_strings(
            f"{name}:{first + 1}-{last + 1}({'+' if strand > 0 else '-'})" for name, first, last, strand, _ in rows
        )
        descriptions = Texts.from_strings(f"Reading frame {strand * (frame + 1):+d}" for *_, strand, frame in rows)
        offsets = segment_offsets((positions[:, 2] - positions[:, 1] + 1) // 3)
        return Proteins(residues, offsets, accessions.characters, accessions.offsets, descriptions.characters, descriptions.offsets)


def _may_be_nucleotides(sequences: Proteins) -> bool:
    counts = character_counts(sequences.residues)
    return bool(counts[_IUPAC].sum() == counts.sum() and counts[_BASES].sum() >= _BASE_SHARE * counts.sum())


def _find_protein_file(paths: Sequence[Path], progress: Progress) -> Path:
    """Return the first file that contains proteins, given that the sequences of all files together are not nucleotides."""
    for path in paths[:-1]:
        if not _may_be_nucleotides(read_proteins([path], progress=progress, with_chromosomes=True)):
            return path
    return paths[-1]


@cache
def _codons(genetic_code: int) -> NDArray[np.uint8]:
    """Return the residue of each codon of three IUPAC base symbols, numbered as in `proteoscope.kernels.cpu.translation`, (4096,).

    X is the residue of invalid codons, and of codons with several possible residues. Codons that are a stop or a residue, depending on the
    context (genetic codes 27, 28 and 31), get the residue, as in Biopython.
    """
    from Bio.Data.CodonTable import TranslationError, ambiguous_dna_by_id  # slow to import: only annotated or translated sequences need it

    if genetic_code not in ambiguous_dna_by_id:
        codes = ", ".join(str(number) for number in sorted(ambiguous_dna_by_id))
        raise ParameterError(f"genetic_code: NCBI has no code {genetic_code}; expected one of {codes}")
    table = ambiguous_dna_by_id[genetic_code]
    residues = np.full(4096, ord("X"), np.uint8)
    for position, codon in enumerate(map("".join, product(kernels.cpu.translation.BASES, repeat=3))):
        if "-" in codon:
            continue
        try:
            residues[position] = ord(table.forward_table[codon])
        except TranslationError:
            pass  # several residues, or a residue and a stop
        except KeyError:
            if codon in table.stop_codons:
                residues[position] = ord("*")
    residues.flags.writeable = False
    return residues
