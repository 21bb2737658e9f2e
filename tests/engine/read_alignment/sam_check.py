"""SAM reader that follows only the specification and checks each record against the reference: an independent check of the writer."""

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
    reference: str
    position: int
    quality: int
    cigar: str
    mate_reference: str
    mate_position: int
    length: int
    sequence: str
    qualities: str
    tags: dict[str, str]

    @property
    def is_mapped(self) -> bool:
        return not self.flag & 4

    @property
    def end(self) -> int:
        return self.position - 1 + sum(int(count) for count, kind in STEPS.findall(self.cigar) if kind in "=XDMN")


def read(path: Path) -> tuple[list[str], list[Record]]:
    """Return the header lines and records of a SAM file."""
    header, records = [], []
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("@"):
            assert not records, "a header line among the records"
            header.append(line)
            continue
        name, flag, reference, position, quality, cigar, mate_reference, mate_position, length, sequence, qualities, *tags = line.split(
            "\t"
        )
        assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9]:([iZ]):.+", tag) for tag in tags), line
        fields_by_tag = {tag[:2]: tag[5:] for tag in tags}
        numbers = int(position), int(quality), cigar, mate_reference, int(mate_position), int(length)
        records.append(Record(name, int(flag), reference, *numbers, sequence, qualities, fields_by_tag))
    return header, records


def check(header: list[str], records: list[Record], references: dict[str, str], *, gap_open=5, gap_extend=2, match=2, mismatch=-3) -> None:
    """Check records against the specification and the references; scores are checked only for A, C, G and T."""
    lengths = {}
    assert header[0].startswith("@HD\tVN:1.")
    for line in header[1:]:
        fields = dict(field.split(":", 1) for field in line.split("\t")[1:])
        if line.startswith("@SQ"):
            assert REFERENCE_NAME.fullmatch(fields["SN"]) and fields["SN"] not in lengths
            lengths[fields["SN"]] = int(fields["LN"])
        else:
            assert line.startswith("@PG\tID:")
    assert lengths == {name: len(reference) for name, reference in references.items()}
    for record in records:
        assert QUERY_NAME.fullmatch(record.name), record
        assert 0 <= record.quality <= 255 and record.reference in {*references, "*"}, record
        assert record.qualities == "*" or len(record.qualities) == len(record.sequence), record
        assert record.mate_reference == "=" or record.mate_reference in {*references, "*"}
        if not record.is_mapped:
            assert record.cigar == "*" and record.quality == 0 and not record.tags, record
            continue
        _check_mapped(record, references[record.reference], (gap_open, gap_extend, match, mismatch))


def _check_mapped(record: Record, reference: str, costs: tuple[int, int, int, int]) -> None:
    gap_open, gap_extend, match, mismatch = costs
    steps = [(int(count), kind) for count, kind in STEPS.findall(record.cigar)]
    assert "".join(f"{count}{kind}" for count, kind in steps) == record.cigar, record
    assert all(kind not in "S" for _, kind in steps[1:-1]), record
    assert sum(count for count, kind in steps if kind in "=XIS") == len(record.sequence), record
    assert record.position >= 1 and record.end <= len(reference), record
    i, j, edits, score, md, same = record.position - 1, 0, 0, 0, "", 0
    for count, kind in steps:
        if kind in "=X":
            for k in range(count):
                assert (reference[i + k] == record.sequence[j + k]) == (kind == "="), record
                if kind == "X":
                    md, same = f"{md}{same}{reference[i + k]}", 0
                else:
                    same += 1
            score += count * (match if kind == "=" else mismatch)
        if kind in "ID":
            score -= gap_open + count * gap_extend
        if kind == "D":
            md, same = f"{md}{same}^{reference[i : i + count]}", 0
        edits += count * (kind in "XID")
        i += count * (kind in "=XD")
        j += count * (kind in "=XIS")
    assert (int(record.tags["NM"]), int(record.tags["AS"]), record.tags["MD"]) == (edits, score, f"{md}{same}"), record
