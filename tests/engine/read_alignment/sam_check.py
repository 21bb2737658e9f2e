"""SAM read by the specification alone, each record held to the reference: an independent judge of what is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

STEPS = re.compile(r"(\d+)([MIDNSHP=X])")
QUERY_NAME = re.compile(r"[!-?A-~]{1,254}")
REFERENCE_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")


@dataclass
class Record:
    """A line of SAM."""

    name: str
    flag: int
    text: str
    position: int
    quality: int
    cigar: str
    mate_text: str
    mate_position: int
    length: int
    letters: str
    qualities: str
    tags: dict[str, str]

    @property
    def is_placed(self) -> bool:
        return not self.flag & 4

    @property
    def end(self) -> int:
        return self.position - 1 + sum(int(count) for count, kind in STEPS.findall(self.cigar) if kind in "=XDMN")


def read(path: Path) -> tuple[list[str], list[Record]]:
    """Header lines and records."""
    header, records = [], []
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("@"):
            assert not records, "a header line among the records"
            header.append(line)
            continue
        name, flag, text, position, quality, cigar, mate_text, mate_position, length, letters, qualities, *tags = line.split("\t")
        assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9]:([iZ]):.+", tag) for tag in tags), line
        found = {tag[:2]: tag[5:] for tag in tags}
        numbers = int(position), int(quality), cigar, mate_text, int(mate_position), int(length)
        records.append(Record(name, int(flag), text, *numbers, letters, qualities, found))
    return header, records


def check(header: list[str], records: list[Record], texts: dict[str, str], *, gap_open=5, gap_extend=2, match=2, mismatch=-3) -> None:
    """Hold records to the specification and to the letters of the texts; scores are those of A, C, G and T alone."""
    lengths = {}
    assert header[0].startswith("@HD\tVN:1.")
    for line in header[1:]:
        fields = dict(field.split(":", 1) for field in line.split("\t")[1:])
        if line.startswith("@SQ"):
            assert REFERENCE_NAME.fullmatch(fields["SN"]) and fields["SN"] not in lengths
            lengths[fields["SN"]] = int(fields["LN"])
        else:
            assert line.startswith("@PG\tID:")
    assert lengths == {name: len(text) for name, text in texts.items()}
    for record in records:
        assert QUERY_NAME.fullmatch(record.name), record
        assert 0 <= record.quality <= 255 and record.text in {*texts, "*"}, record
        assert record.qualities == "*" or len(record.qualities) == len(record.letters), record
        assert record.mate_text == "=" or record.mate_text in {*texts, "*"}
        if not record.is_placed:
            assert record.cigar == "*" and record.quality == 0 and not record.tags, record
            continue
        _check_placed(record, texts[record.text], (gap_open, gap_extend, match, mismatch))


def _check_placed(one: Record, text: str, costs: tuple[int, int, int, int]) -> None:
    gap_open, gap_extend, match, mismatch = costs
    steps = [(int(count), kind) for count, kind in STEPS.findall(one.cigar)]
    assert "".join(f"{count}{kind}" for count, kind in steps) == one.cigar, one
    assert all(kind not in "S" for _, kind in steps[1:-1]), one
    assert sum(count for count, kind in steps if kind in "=XIS") == len(one.letters), one
    assert one.position >= 1 and one.end <= len(text), one
    i, j, edits, score, md, same = one.position - 1, 0, 0, 0, "", 0
    for count, kind in steps:
        if kind in "=X":
            for k in range(count):
                assert (text[i + k] == one.letters[j + k]) == (kind == "="), one
                if kind == "X":
                    md, same = f"{md}{same}{text[i + k]}", 0
                else:
                    same += 1
            score += count * (match if kind == "=" else mismatch)
        if kind in "ID":
            score -= gap_open + count * gap_extend
        if kind == "D":
            md, same = f"{md}{same}^{text[i : i + count]}", 0
        edits += count * (kind in "XID")
        i += count * (kind in "=XD")
        j += count * (kind in "=XIS")
    assert (int(one.tags["NM"]), int(one.tags["AS"]), one.tags["MD"]) == (edits, score, f"{md}{same}"), one
