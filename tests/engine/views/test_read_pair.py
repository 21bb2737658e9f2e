"""Lines of a pattern and a text from CIGAR and MD, against alignments that are written out letter by letter."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, POSITIVE
from proteoscope.engine.views.read_pair import DIFFERENT, UNSURE_DIFFERENT, UNSURE_IDENTICAL, ReadPair, draw_lines


def written_out(random: np.random.Generator, n: int) -> tuple[str, str]:
    """Two lines with gaps, never one below the other."""
    lines: tuple[list[str], list[str]] = ([], [])
    while len(lines[0]) < n:
        letter, other = (str(random.choice(list("ACGTN"))) for _ in range(2))
        match random.integers(0, 10):
            case 0:
                columns = [("-", other)] * int(random.integers(1, 4))
            case 1:
                columns = [(letter, "-")] * int(random.integers(1, 4))
            case 2:
                columns = [(letter, other)]
            case _:
                columns = [(letter, letter)]
        for one, two in columns:
            lines[0].append(one)
            lines[1].append(two)
    return "".join(lines[0]), "".join(lines[1])


def cigar_of(pattern: str, text: str) -> str:
    kinds = ["D" if one == "-" else "I" if two == "-" else "=" if one == two else "X" for one, two in zip(pattern, text, strict=True)]
    return "".join(f"{len(list(run))}{kind}" for kind, run in groupby(kinds))


def md_of(pattern: str, text: str) -> str:
    """As SAM's specification says it: a number of same letters, a letter of the text where it differs, ^ and letters where it stands alone;
    a number before each letter."""
    written, same, was_alone = "", 0, False
    for one, two in zip(pattern, text, strict=True):
        if two == "-":
            continue
        if one == two:
            same, was_alone = same + 1, False
        elif one == "-":
            written += two if was_alone else f"{same}^{two}"
            same, was_alone = 0, True
        else:
            written += f"{same}{two}"
            same, was_alone = 0, False
    return f"{written}{same}"


@pytest.mark.parametrize("seed", range(40))
def test_both_lines_come_back_from_what_a_run_keeps(seed: int) -> None:
    pattern, text = written_out(np.random.default_rng(seed), 60)
    assert draw_lines(pattern.replace("-", ""), cigar_of(pattern, text), md_of(pattern, text)) == (pattern, text)


def row(**changed: object) -> dict[str, object]:
    """Of a pattern ACGTTA at letters 11 to 17 of a text; its third and fourth letter differ, the fifth of the text stands alone."""
    values = {"pattern_start": 3, "pattern_end": 8, "strand": "+", "cigar": "2=2X1D2=", "md": "2A0C0^G2", "text_start": 11, "text_end": 17}
    return {**values, **changed}


def pair_of(letters: str = "GGACGTTACC", qualities: str = "", **changed: object) -> ReadPair:
    return ReadPair.of(("read", "genome", ""), letters, qualities, row(**changed))


def test_columns_have_colours_numbers_and_words() -> None:
    pair = pair_of()
    assert (pair.query, pair.middle, pair.subject) == ("ACGT-TA", "AC   TA", "ACACGTA")
    assert pair.kinds.tolist() == [IDENTICAL, IDENTICAL, DIFFERENT, DIFFERENT, GAP, IDENTICAL, IDENTICAL]
    assert pair.numbers(0, 7) == ((3, 8), (11, 17)) and pair.titles == ("Read", "Reference")
    assert pair.column_text(2) == "Read G5, reference A13: different"
    assert pair.column_text(4) == "Read gap after 6, reference G15: gap"
    assert not pair.has_qualities and [text for _, text in pair.legend] == ["identical", "different", "gap (-)"]
    assert "Read        3  ACGT-TA  8" in pair.text() and "Reference  11  ACACGTA  17" in pair.text()


def test_of_a_reverse_complement_the_numbers_go_down_and_qualities_go_along() -> None:
    given, qualities = "GGTAACGTCC", "##9876543#"
    pair = pair_of(given, qualities, strand="-")
    # The other strand of letters 3 to 8 of the read.
    assert pair.query.replace("-", "") == "ACGTTA" and pair.subject == "ACACGTA"
    assert pair.numbers(0, 7) == ((8, 3), (11, 17)) and pair.labels(0, 4)[0] == ("8", "5")
    assert pair.numbers(4, 5)[0] == (5, 5), "a gap is behind the letter that was drawn before it"
    assert pair.quality.tolist() == [ord(sign) - 33 if sign else -1 for sign in ("4", "5", "6", "7", "", "8", "9")]
    assert pair.column_text(0).startswith("Read A8, reference A11: identical; quality 19 (one of 79 ")


def test_letters_of_low_quality_are_of_a_kind_of_their_own() -> None:
    pair = pair_of(qualities="IIII+I5III")
    assert pair.kinds.tolist() == [IDENTICAL, IDENTICAL, UNSURE_DIFFERENT, DIFFERENT, GAP, IDENTICAL, IDENTICAL]
    assert pair.legend[-1] == (UNSURE_IDENTICAL, "quality below 20")
    assert pair_of(qualities="IIII+I4III").kinds.tolist()[5] == UNSURE_IDENTICAL


def test_with_a_matrix_alike_residues_are_marked_as_in_other_searches() -> None:
    values = {"pattern_start": 1, "pattern_end": 3, "strand": "+", "cigar": "1=2X", "md": "1V0W0", "text_start": 1, "text_end": 3}
    pair = ReadPair.of(("p", "t", ""), "MIG", "", values, read_matrix("BLOSUM62"))
    assert (pair.query, pair.middle, pair.subject) == ("MIG", "M+ ", "MVW")
    assert pair.kinds.tolist() == [IDENTICAL, POSITIVE, DIFFERENT] and pair.legend[1] == (POSITIVE, "positive (+)")


@pytest.mark.parametrize("changed", [{"cigar": "9="}, {"md": "2"}, {"md": "99"}, {"cigar": "2=2X1D1="}, {"md": "2A0C0^GGGGGGGGG2"}])
def test_what_does_not_fit_together_is_said(changed: dict[str, object]) -> None:
    with pytest.raises(ProteoscopeError, match=r"read: its alignment cannot be drawn, since its parts do not fit .* Do the search again\."):
        pair_of(**changed)


@pytest.mark.parametrize("qualities", ["IIIII", "IIII\u00b5IIIII"])
def test_qualities_that_do_not_fit_are_said(qualities: str) -> None:
    with pytest.raises(ProteoscopeError, match="its alignment cannot be drawn, since its parts do not fit"):
        pair_of(qualities=qualities)
