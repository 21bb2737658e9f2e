"""Alignment lines of a read and a reference from CIGAR and MD, compared with random alignments."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, POSITIVE
from proteoscope.engine.views.read_pair import DIFFERENT, UNSURE_DIFFERENT, UNSURE_IDENTICAL, ReadPair, draw_lines


def random_alignment(random: np.random.Generator, n: int) -> tuple[str, str]:
    """Return two aligned lines with gaps, never in both lines of a column."""
    lines: tuple[list[str], list[str]] = ([], [])
    while len(lines[0]) < n:
        base, other = (str(random.choice(list("ACGTN"))) for _ in range(2))
        match random.integers(0, 10):
            case 0:
                columns = [("-", other)] * int(random.integers(1, 4))
            case 1:
                columns = [(base, "-")] * int(random.integers(1, 4))
            case 2:
                columns = [(base, other)]
            case _:
                columns = [(base, base)]
        for upper, lower in columns:
            lines[0].append(upper)
            lines[1].append(lower)
    return "".join(lines[0]), "".join(lines[1])


def write_cigar(read: str, reference: str) -> str:
    kinds = ["D" if a == "-" else "I" if b == "-" else "=" if a == b else "X" for a, b in zip(read, reference, strict=True)]
    return "".join(f"{len(list(run))}{kind}" for kind, run in groupby(kinds))


def write_md(read: str, reference: str) -> str:
    """Write an MD string as SAM's specification defines it.

    A number of identical bases precedes each base: of the reference where it differs, and after ^ where it is deleted from the read.
    """
    written, same, was_deleted = "", 0, False
    for a, b in zip(read, reference, strict=True):
        if b == "-":
            continue
        if a == b:
            same, was_deleted = same + 1, False
        elif a == "-":
            written += b if was_deleted else f"{same}^{b}"
            same, was_deleted = 0, True
        else:
            written += f"{same}{b}"
            same, was_deleted = 0, False
    return f"{written}{same}"


@pytest.mark.parametrize("seed", range(40))
def test_read_pair_restores_both_lines_from_cigar_and_md(seed: int) -> None:
    read, reference = random_alignment(np.random.default_rng(seed), 60)
    assert draw_lines(read.replace("-", ""), write_cigar(read, reference), write_md(read, reference)) == (read, reference)


def row(**changed: object) -> dict[str, object]:
    """Return the row of a read ACGTTA at bases 11 to 17 of a reference, with two substitutions and a deletion."""
    values = {"pattern_start": 3, "pattern_end": 8, "strand": "+", "cigar": "2=2X1D2=", "md": "2A0C0^G2", "text_start": 11, "text_end": 17}
    return {**values, **changed}


def pair_of(bases: str = "GGACGTTACC", qualities: str = "", **changed: object) -> ReadPair:
    return ReadPair.from_row(("read", "genome", ""), bases, qualities, row(**changed))


def test_read_pair_columns_have_colours_numbers_and_descriptions() -> None:
    pair = pair_of()
    assert (pair.query, pair.middle, pair.subject) == ("ACGT-TA", "AC   TA", "ACACGTA")
    assert pair.kinds.tolist() == [IDENTICAL, IDENTICAL, DIFFERENT, DIFFERENT, GAP, IDENTICAL, IDENTICAL]
    assert pair.numbers(0, 7) == ((3, 8), (11, 17)) and pair.titles == ("Read", "Reference")
    assert pair.column_text(2) == "Read G5, reference A13: different"
    assert pair.column_text(4) == "Read gap after 6, reference G15: gap"
    assert not pair.has_qualities and [text for _, text in pair.legend] == ["identical", "different", "gap (-)"]
    assert "Read        3  ACGT-TA  8" in pair.text() and "Reference  11  ACACGTA  17" in pair.text()


def test_read_pair_of_reverse_strand_has_descending_read_numbers() -> None:
    bases, qualities = "GGTAACGTCC", "##9876543#"
    pair = pair_of(bases, qualities, strand="-")
    # The reverse complement of bases 3 to 8 of the read.
    assert pair.query.replace("-", "") == "ACGTTA" and pair.subject == "ACACGTA"
    assert pair.numbers(0, 7) == ((8, 3), (11, 17)) and pair.labels(0, 4)[0] == ("8", "5")
    assert pair.numbers(4, 5)[0] == (5, 5), "a gap follows the base drawn before it"
    assert pair.quality.tolist() == [ord(sign) - 33 if sign else -1 for sign in ("4", "5", "6", "7", "", "8", "9")]
    assert pair.column_text(0).startswith("Read A8, reference A11: identical; quality 19 (one of 79 ")


def test_read_pair_marks_bases_of_low_quality() -> None:
    pair = pair_of(qualities="IIII+I5III")
    assert pair.kinds.tolist() == [IDENTICAL, IDENTICAL, UNSURE_DIFFERENT, DIFFERENT, GAP, IDENTICAL, IDENTICAL]
    assert pair.legend[-1] == (UNSURE_IDENTICAL, "quality below 20")
    assert pair_of(qualities="IIII+I4III").kinds.tolist()[5] == UNSURE_IDENTICAL


def test_read_pair_marks_positive_scores_of_a_matrix() -> None:
    values = {"pattern_start": 1, "pattern_end": 3, "strand": "+", "cigar": "1=2X", "md": "1V0W0", "text_start": 1, "text_end": 3}
    pair = ReadPair.from_row(("p", "t", ""), "MIG", "", values, read_matrix("BLOSUM62"))
    assert (pair.query, pair.middle, pair.subject) == ("MIG", "M+ ", "MVW")
    assert pair.kinds.tolist() == [IDENTICAL, POSITIVE, DIFFERENT] and pair.legend[1] == (POSITIVE, "positive (+)")


@pytest.mark.parametrize("changed", [{"cigar": "9="}, {"md": "2"}, {"md": "99"}, {"cigar": "2=2X1D1="}, {"md": "2A0C0^GGGGGGGGG2"}])
def test_read_pair_rejects_inconsistent_cigar_and_md(changed: dict[str, object]) -> None:
    with pytest.raises(ProteoscopeError, match=r"read: the alignment cannot be drawn, since its parts do not fit.*Run the search again\."):
        pair_of(**changed)


@pytest.mark.parametrize("qualities", ["IIIII", "IIII\u00b5IIIII"])
def test_read_pair_rejects_invalid_qualities(qualities: str) -> None:
    with pytest.raises(ProteoscopeError, match="the alignment cannot be drawn, since its parts do not fit"):
        pair_of(qualities=qualities)
