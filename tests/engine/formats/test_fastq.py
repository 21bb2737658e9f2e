"""FASTQ files are read as by Biopython, and invalid ones are reported with their place."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import fastq
from proteoscope.engine.formats.fastq import read_fastq
from proteoscope.engine.unfolding import READS


def read(tmp_path, content: bytes | str):
    path = tmp_path / "reads.fastq"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_fastq(path)


def list_records(reads):
    bounds = list(zip(reads.offsets[:-1], reads.offsets[1:], strict=True))
    texts = [[column[a:b].tobytes().decode() for a, b in bounds] for column in (reads.bases, reads.qualities)]
    return list(zip(reads.names.strings(), *texts, strict=True))


def random_records(n, seed=3, longest=60):
    random = np.random.default_rng(seed)
    every = []
    for k in range(n):
        length = int(random.integers(1, longest))
        bases = "".join("ACGTN"[i] for i in random.integers(0, 5, length))
        every.append((f"read{k}", bases, random.integers(33, 127, length).astype(np.uint8).tobytes().decode()))
    return every


def written(records, newline="\n"):
    return newline.join(f"@{name} more{newline}{bases}{newline}+{newline}{qualities}" for name, bases, qualities in records) + newline


def test_fastq_reads_equal_biopython(tmp_path):
    from Bio.SeqIO.QualityIO import FastqGeneralIterator

    text = written(random_records(300))
    peer = [(title.split()[0], bases, qualities) for title, bases, qualities in FastqGeneralIterator(io.StringIO(text))]
    assert list_records(read(tmp_path, text)) == peer


@pytest.mark.parametrize("size", [7, 64, 1000])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_fastq_is_equal_for_any_line_end_gzip_and_block_size(tmp_path, monkeypatch, size, newline, is_packed):
    records = random_records(40)
    monkeypatch.setattr(fastq, "BLOCK_BYTES", size)
    content = written(records, newline).encode()
    assert list_records(read(tmp_path, gzip.compress(content) if is_packed else content)) == records
    assert list_records(read(tmp_path, content.rstrip(b"\r\n"))) == records


def test_fastq_bases_may_span_lines_and_be_lower_case_or_dots(tmp_path):
    result = read(tmp_path, "@a\nacg\nT.\n+a\n@@\n+II\n\n@b\nAC\n+\n@+\n")
    assert list_records(result) == [("a", "ACGTN", "@@+II"), ("b", "AC", "@+")]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_fastq_trailing_blanks_are_ignored(tmp_path, newline):
    text = newline.join(["@a more \t", "ACG ", "T\t", "+\t ", "II  ", "II", "@b ", "AC  ", "+b ", "@+ "])
    assert list_records(read(tmp_path, text)) == list_records(read(tmp_path, text + newline)) == [("a", "ACGT", "IIII"), ("b", "AC", "@+")]


def test_fastq_plus_line_may_only_repeat_the_name(tmp_path):
    expected = [("a/1", "AC", "II"), ("b", "A", "I")]
    for again in ("", "a/1", "a/1 x y"):
        assert list_records(read(tmp_path, f"@a/1 x y\nAC\n+{again}\nII\n@b\nA\n+\nI\n")) == expected
    for other in ("a", "a/2", "a/1 x", "a/1x", "a/1 x z"):
        with pytest.raises(InputError, match=r"line 3: the name after . is not a/1"):
            read(tmp_path, f"@a/1 x y\nAC\n+{other}\nII\n")


@pytest.mark.parametrize(
    "content", ["@a\n\n+\n\n@b\nA\n+\nI\n", "@a\n\n+\n@b\nA\n+\nI\n", "@a\n+\n\n@b\nA\n+\nI", "@a\n \n+\n \n \t\n@b\nA\n+\nI"]
)
def test_fastq_read_without_bases_is_retained(tmp_path, content):
    assert list_records(read(tmp_path, content)) == [("a", "", ""), ("b", "A", "I")]
    assert list_records(read(tmp_path, "@a\n\n+\n")) == [("a", "", "")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("@a\nAC\n+\nII\nb\nA\n+\nI\n", "line 5: a record begins with 'b', not with @"),
        ("@ a\nAC\n+\nII\n", "line 1: the record has no name"),
        ("@a\nA C\n+\nIII\n", "line 2: ' ' in a is not a base"),
        ("@a\nAC\n@b\nAC\n+\nII\n", "line 3: '@' in a is not a base"),
        ("@a\nAC\n+b\nII\n", r"line 3: the name after \+ is not a"),
        ("@a\nACG\n+\nII\n@b\nA\n+\nI\n", r"line 4: the number of qualities of a \(2\) differs"),
        ("@a\nACG\n+\nIIII\n", r"line 4: the number of qualities of a \(4\) differs"),
        ("@a\n\n+\nII\n", r"line 4: the number of qualities of a \(2\) differs"),
        ("@a\nACG\n+\nI I\n", "line 4: ' ' in a is not a quality"),
        ("@a\nAC\n+\nII\n@b\nACG\n+\n", "cut off within b"),
        ("@a\nAC\n+\nII\n@b\nACG\n", "cut off within b"),
        ("@a\nAC\n+\nII\n@b", "cut off within b"),
        (">a\nAC\n", "line 1: is not a FASTQ file"),
        ("@HD\tVN:1.6\n@SQ\tSN:a\tLN:5\n", "line 1: is SAM, not FASTQ.*samtools fastq"),
        ("@a\nT0123\n+\nIIIII\n", "line 2: '0' in a is not a base.*Colour-space reads of SOLiD"),
    ],
)
def test_fastq_errors_name_record_and_line(tmp_path, content, expected):
    with pytest.raises(InputError, match=expected):
        read(tmp_path, content)
    with pytest.raises(InputError, match=expected):
        read(tmp_path, content.replace("\n", "\r\n"))


def test_fastq_qualities_with_offset_64_are_recognised(tmp_path):
    assert read(tmp_path, "@a\nACGT\n+\nhhBh\n").is_phred_64
    for sanger in ("IIII", "FFFF", "~~~~", "#hhh"):
        assert not read(tmp_path, f"@a\nACGT\n+\n{sanger}\n").is_phred_64


def test_fastq_with_latin_1_names_or_byte_order_mark_is_read(tmp_path):
    result = read(tmp_path, b"\xef\xbb\xbf@\xe4 x\nA\n+\nI\n")
    assert list_records(result) == [("ä", "A", "I")]


def test_fastq_that_unpacks_to_too_many_reads_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(fastq, "READS", READS._replace(free=1000))
    with pytest.raises(InputError, match=r"expands to more than [\d,]+ reads"):
        read(tmp_path, gzip.compress(b"@a\n\n+\n\n" * 20_000))


def test_fastq_rejects_long_names(tmp_path):
    path = tmp_path / "reads.fastq"
    path.write_text(f"@a\nACGT\n+\nIIII\n@{'n' * 1001} x\nACGT\n+\nIIII\n")
    with pytest.raises(InputError, match=r"line 5: the name is longer than 1,000 bytes\. Put a blank"):
        read_fastq(path)
    path.write_text(f"@{'n' * 1000} x\nACGT\n+\nIIII\n")
    assert read_fastq(path).names.strings() == ["n" * 1000]
