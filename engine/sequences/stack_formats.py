"""Output of stacks and pairs with Bio.Align: Stockholm, A3M, PHYLIP and Clustal for stacks; MAF and PSL for pairs.

Stockholm, PHYLIP and Clustal include the columns of insertions, which Stockholm marks by ``.`` in its line ``RF``. A3M has the
columns of the query, with insertions in lower case, as HH-suite and other programs read it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from io import StringIO
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import numpy as np
from Bio import Align
from Bio.Align import Alignment
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from proteoscope.engine.sequences.conservation import conservation
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.version import VERSION

__all__ = [
    "PAIR_FORMATS",
    "STACK_FORMATS",
    "file_header",
    "grades",
    "pair_alignments",
    "plain_name",
    "stack_alignment",
    "stack_text",
    "unique_names",
]

STACK_FORMATS = ("stockholm", "a3m", "phylip", "clustal")
PAIR_FORMATS = ("maf", "psl")
_PHYLIP_NAME, _CLUSTAL_NAME = 10, 30
_NOT_IN_NAMES = re.compile(r"[\s\x00-\x1f\x7f-\x9f\[\](),:;]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_GRADES = 9
"""Highest digit in the line that grades conservation."""


def stack_text(stack: Stack, format: str) -> str:
    """Return a stack as text, without the header of the file.

    Parameters
    ----------
    stack : Stack
        Query and its aligned hits.
    format : str
        Format, one of `STACK_FORMATS` or `PAIR_FORMATS`.
    """
    if format == "a3m":
        # A3M is A2M without the full stops at insertions of other rows.
        alignment = stack_alignment(stack)
        alignment.column_annotations = {"state": np.where(stack.is_opened, ord("I"), ord("D")).astype(np.uint8).tobytes().decode()}
        lines = _written([alignment], "a2m").splitlines()
        return "".join(f"{line if line.startswith('>') else line.replace('.', '')}\n" for line in lines)
    if format == "phylip":
        return _written([stack_alignment(stack, lambda names: unique_names(names, _PHYLIP_NAME))], format)
    if format == "clustal":
        return _written([stack_alignment(stack, lambda names: unique_names(names, _CLUSTAL_NAME))], format)
    if format == "stockholm":
        return _written([stack_alignment(stack)], format)
    return _written(pair_alignments(stack, is_query_first=format == "maf"), format).removeprefix(file_header(format))


def file_header(format: str) -> str:
    """Return the text of a file that precedes the stacks in a format."""
    return _written([], format) if format in PAIR_FORMATS else ""


def stack_alignment(stack: Stack, named: Callable[[Sequence[str]], list[str]] | None = None) -> Alignment:
    """Return a stack as an alignment of Bio.Align.

    Parameters
    ----------
    stack : Stack
        Query and its aligned hits.
    named : callable, optional
        Function that converts the names of the rows; by default `unique_names`.
    """
    names = (named or unique_names)(stack.names)
    sequences, coordinates = Alignment.parse_printed_alignment([row.tobytes() for row in stack.gapped])
    descriptions = [stack.query_description, *stack.subjects.descriptions]
    records = [
        SeqRecord(Seq(residues), id=name, name=name, description=_on_one_line(description))
        for residues, name, description in zip(sequences, names, descriptions, strict=True)
    ]
    alignment = _stacked_class()(records, coordinates)
    alignment.rows = [row.tobytes().decode("ascii") for row in stack.gapped]
    is_opened = stack.is_opened
    reference = np.where(is_opened, ord("."), ord("x")).astype(np.uint8).tobytes().decode()
    alignment.column_annotations = {"reference coordinate annotation": reference, "conservation": grades(stack)}
    alignment.operations = np.where(is_opened, ord("I"), ord("M")).astype(np.uint8).tobytes()
    alignment.annotations = {"identifier": names[0]}
    return alignment


@cache
def _stacked_class() -> type[Alignment]:
    """Return a subclass of Bio.Align's `Alignment` with stored rows; computing the rows from coordinates takes the base class minutes."""

    class StackedAlignment(Alignment):  # type: ignore[misc] # Biopython has no types
        rows: Sequence[str] = ()

        def __iter__(self) -> Iterator[str]:
            return iter(self.rows)

    return StackedAlignment


def grades(stack: Stack) -> str:
    """Return the conservation of each column as a digit from 0 to 9 (see `proteoscope.engine.sequences.conservation`)."""
    digits = np.minimum((conservation(stack.symbols) * (_GRADES + 1)).astype(np.int64), _GRADES)
    return "".join(map(str, digits.tolist()))


def pair_alignments(stack: Stack, *, is_query_first: bool) -> Iterator[Alignment]:
    """Yield, for each hit, a Bio.Align alignment of the query and the hit.

    Only aligned residues are included; their positions are those in the complete sequences.

    Parameters
    ----------
    stack : Stack
        Query and its aligned hits.
    is_query_first : bool
        True if the query is the first row (the target of Bio.Align), False if the hit is.
    """
    subjects = stack.subjects
    query = stack.gapped[0, ~stack.is_opened].tobytes()
    query_name = plain_name(stack.query_name)
    lines = zip(_lines(subjects, "query"), _lines(subjects, "subject"), strict=True)
    for position, (above, below) in enumerate(lines):
        (_, residues), coordinates = Alignment.parse_printed_alignment([above, below])
        start = int(subjects.subject_start[position])
        coordinates = coordinates + np.array([[int(subjects.query_start[position])], [start]])
        whole = Seq({start: bytes(residues)}, length=int(subjects.lengths[position]))
        name = plain_name(subjects.names[position])
        records = [SeqRecord(Seq(query), id=query_name, description=""), SeqRecord(whole, id=name, description="")]
        alignment = Alignment(records if is_query_first else records[::-1], coordinates if is_query_first else coordinates[::-1])
        alignment.score = float(subjects.scores[position])
        yield alignment


def unique_names(names: Sequence[str], width: int | None = None) -> list[str]:
    """Return unique names that the formats accept; repeated names are numbered.

    Parameters
    ----------
    names : sequence of str
        Names.
    width : int, optional
        Maximum number of characters; by default unlimited.

    Examples
    --------
    >>> unique_names(["sp|P02769|ALBU", "sp|P02769|ALBU", "a b"], 10)
    ['sp|P02769|', 'sp|P0276_2', 'a%20b']
    """
    used, unique_list = set[str](), []
    for name in names:
        plain = plain_name(name)
        unique, number = plain[:width], 1
        while unique in used:
            number += 1
            ending = f"_{number}"
            unique = f"{plain[: width and width - len(ending)]}{ending}"
        used.add(unique)
        unique_list.append(unique)
    return unique_list


def _on_one_line(text: str) -> str:
    return " ".join(_CONTROLS.sub(" ", text).split())


def plain_name(name: str) -> str:
    """Return a name in which characters that the formats do not accept are escaped."""
    return _NOT_IN_NAMES.sub(lambda match: quote(match.group(), safe=""), name) or "_"


def _lines(subjects: AlignedSubjects, which: str) -> Iterator[bytes]:
    texts = getattr(subjects, which)
    whole = texts.used.tobytes().replace(b"*", b"X")
    positions = (texts.offsets - texts.offsets[0]).tolist()
    return (whole[first:last] for first, last in pairwise(positions))


def _written(alignments: Iterable[Any], format: str) -> str:
    """Return alignments as text written by Bio.Align."""
    listed = Align.Alignments(alignments)
    if format == "clustal":
        # Readers expect the name of the format in the header.
        listed.metadata = {"Program": "CLUSTAL", "Version": f"by Proteoscope {VERSION}"}
    stream = StringIO()
    Align.write(listed, stream, format)
    return stream.getvalue()
