"""Mates are recognised by their names, in two files or in one, and get one name in SAM."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.read_alignment import mate_names
from proteoscope.engine.read_alignment.mate_names import find_mates, inspect_interleaving, other_names, template_names
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from tests.engine.read_alignment import sam_check
from tests.searching import align_reads

LENGTH, N_PAIRS = 80, 30
ENDINGS = {
    "none": ("", ""),
    "casava": (" 1:N:0:ACGT", " 2:N:0:ACGT"),
    "slash": ("/1", "/2"),
    "SRA": (".1 length=80", ".2 length=80"),
    "underscore": ("_1", "_2"),
    "R": ("/R1", "/R2"),
    "_R": ("_R1", "_R2"),
    "fr": ("/f", "/r"),
    "FR": (".F", ".R"),
    "minus": ("-1", "-2"),
    "words": ("_forward", "_reverse"),
    "exchanged": ("/2", "/1"),
}
COMPLEMENT = str.maketrans("ACGT", "TGCA")
MAPPING = ReadAlignmentParameters(mode="within", strands="both", mapping="seeds")


@pytest.fixture
def fragments(tmp_path: Path) -> tuple[Path, list[str], list[str]]:
    """A genome of 8,000 bases, and the reads of both ends of fragments of 300 bases."""
    random = np.random.default_rng(3)
    text = "".join(random.choice(list("ACGT"), 8000))
    starts = random.integers(0, len(text) - 300, N_PAIRS).tolist()
    ones = [text[k : k + LENGTH] for k in starts]
    others = [text[k + 300 - LENGTH : k + 300].translate(COMPLEMENT)[::-1] for k in starts]
    genome = tmp_path / "genome.fasta"
    genome.write_text(f">genome\n{text}\n", encoding="utf-8")
    return genome, ones, others


def fastq(path: Path, names: list[str], reads: list[str]) -> Path:
    path.write_text("".join(f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in zip(names, reads, strict=True)), encoding="utf-8")
    return path


def mapped(genome: Path, reads: Path, out: Path, parameters: ReadAlignmentParameters = MAPPING, mates: Path | None = None):
    """Map reads and return the records and messages."""
    summary = align_reads(genome, reads, out, parameters, mates=mates, format="sam", device="cpu")
    return sam_check.read(out)[1], " ".join(summary.messages)


@pytest.mark.parametrize("ending", ENDINGS)
def test_mates_share_one_name_in_sam(fragments, tmp_path: Path, ending: str) -> None:
    genome, ones, others = fragments
    names = [[f"SRR9.{k}{end}" for k in range(N_PAIRS)] for end in ENDINGS[ending]]
    files = fastq(tmp_path / "1.fq", names[0], ones), fastq(tmp_path / "2.fq", names[1], others)
    records, messages = mapped(genome, files[0], tmp_path / "two.sam", mates=files[1])
    assert [record.name for record in records] == [f"SRR9.{k}" for k in range(N_PAIRS) for _ in range(2)]
    assert "names" not in messages and all(record.flag & 2 for record in records)
    rows = (
        list(itertools.chain.from_iterable(zip(*names, strict=True))),
        list(itertools.chain.from_iterable(zip(ones, others, strict=True))),
    )
    _, messages = mapped(genome, fastq(tmp_path / "both.fq", *rows), tmp_path / "one.sam")
    assert "both.fq: 30 pairs of mates follow each other (interleaved)" in messages
    assert (tmp_path / "one.sam").read_bytes() == (tmp_path / "two.sam").read_bytes()
    order = np.random.default_rng(1).permutation(N_PAIRS).tolist()
    shuffled = fastq(tmp_path / "shuffled.fq", [names[1][k] for k in order], [others[k] for k in order])
    n_other = sum(k != place for place, k in enumerate(order))
    assert f"{n_other} mates have other names than their reads" in mapped(genome, files[0], tmp_path / "order.sam", mates=shuffled)[1]
    by_name = MAPPING.changed(mate_pairing="name")
    _, messages = mapped(genome, files[0], tmp_path / "name.sam", by_name, mates=shuffled)
    assert "names" not in messages
    assert (tmp_path / "name.sam").read_bytes() == (tmp_path / "two.sam").read_bytes()


def test_htslib_finds_the_same_mates_in_sam(fragments, tmp_path: Path) -> None:
    pysam = pytest.importorskip("pysam")
    genome, ones, others = fragments
    files = [fastq(tmp_path / f"{k}.fq", [f"r{n}_{k}" for n in range(N_PAIRS)], reads) for k, reads in ((1, ones), (2, others))]
    records, _ = mapped(genome, files[0], tmp_path / "o.sam", mates=files[1])
    pysam.sort("-n", "-o", str(tmp_path / "sorted.bam"), str(tmp_path / "o.sam"))
    pysam.fixmate(str(tmp_path / "sorted.bam"), str(tmp_path / "fixed.bam"))
    with pysam.AlignmentFile(str(tmp_path / "fixed.bam")) as file:
        assert sorted((record.query_name, record.flag) for record in file) == sorted((record.name, record.flag) for record in records)


def test_warning_counts_all_reordered_mates(fragments, tmp_path: Path) -> None:
    genome, ones, others = fragments
    for form in ("r{}", "r_{}", "r.{}", "r{}/1"):
        names = [form.format(k) for k in range(1, N_PAIRS + 1)]
        files = fastq(tmp_path / "1.fq", names, ones), fastq(tmp_path / "2.fq", names[1:] + names[:1], others)
        records, messages = mapped(genome, files[0], tmp_path / "o.sam", mates=files[1])
        first = f"{form.format(1)} and {form.format(2)}"
        assert f"2.fq: 30 mates have other names than their reads, the first in record 1: {first}" in messages
        assert all(read.name == mate.name for read, mate in zip(records[::2], records[1::2], strict=True))


@pytest.mark.parametrize(
    ("names", "mates", "reason"),
    [
        (["a", "b", "c"], ["a", "b"], r"1\.fq: 1 read has no mate of this name in 2\.fq, the first in record 3: c"),
        (["a", "b"], ["b", "x", "y"], r"1\.fq: 1 read has no mate of this name in 2\.fq, the first in record 1: a"),
        (["a", "b"], ["b", "a", "y", "z"], r"2\.fq: 2 reads have no mate of this name in 1\.fq, the first in record 3: y"),
        (["a", "a", "b"], ["b", "a", "a"], r"1\.fq: 1 read has a name that another read has, the first in record 2: a"),
        (["a", "b"], ["b", "a", "b"], r"2\.fq: 1 read has a name that another read has, the first in record 3: b"),
    ],
)
def test_pairing_by_name_rejects_read_without_unique_mate(fragments, tmp_path: Path, names, mates, reason) -> None:
    genome, ones, others = fragments
    files = fastq(tmp_path / "1.fq", names, ones[: len(names)]), fastq(tmp_path / "2.fq", mates, others[: len(mates)])
    with pytest.raises(InputError, match=reason):
        align_reads(genome, files[0], None, MAPPING.changed(mate_pairing="name"), mates=files[1], device="cpu")


def test_interleaved_option_overrides_detection_of_mates(fragments, tmp_path: Path) -> None:
    genome, ones, others = fragments
    reads = list(itertools.chain.from_iterable(zip(ones, others, strict=True)))
    path = fastq(tmp_path / "both.fq", [f"r{k // 2}" for k in range(2 * N_PAIRS)], reads)
    records, messages = mapped(genome, path, tmp_path / "o.sam", MAPPING.changed(interleaved="no"))
    assert not any(record.flag & 1 for record in records) and "interleaved" not in messages
    other = fastq(tmp_path / "other.fq", [f"r{k}" for k in range(2 * N_PAIRS)], reads)
    assert not any(record.flag & 1 for record in mapped(genome, other, tmp_path / "o.sam")[0])
    records, messages = mapped(genome, other, tmp_path / "o.sam", MAPPING.changed(interleaved="yes"))
    assert all(record.flag & 3 == 3 for record in records)
    assert "30 mates have other names than their reads, the first in record 1: r0 and r1" in messages
    odd = fastq(tmp_path / "odd.fq", [f"r{k}" for k in range(3)], reads[:3])
    with pytest.raises(InputError, match="holds 3 reads, an odd number: r2, the last, has no mate"):
        align_reads(genome, odd, None, MAPPING.changed(interleaved="yes"), device="cpu")
    with pytest.raises(ParameterError, match="leave out --mates"):
        align_reads(genome, path, None, MAPPING.changed(interleaved="yes"), mates=path, device="cpu")


def test_interleaved_file_with_a_missing_mate_is_reported(fragments, tmp_path: Path) -> None:
    genome, ones, others = fragments
    reads = list(itertools.chain.from_iterable(zip(ones, others, strict=True)))
    names = [f"r{k // 2}" for k in range(2 * N_PAIRS)]
    path = fastq(tmp_path / "both.fq", names[:11] + names[12:], reads[:11] + reads[12:])
    records, messages = mapped(genome, path, tmp_path / "o.sam")
    assert (
        "both.fq: is probably interleaved, but 1 read has no mate, the first in record 11: r5; all reads are aligned as single" in messages
    )
    assert not any(record.flag & 1 for record in records)


@pytest.mark.parametrize(
    "names", [["a"] * 8, ["a", "b", "c", "d"], ["a", "a"], ["c_1", "c_2", "c_3", "c_4"], ["a", "a", "b", "b", "c"], ["a/1", "b/1"] * 4, []]
)
def test_files_without_mates_are_not_detected_as_interleaved(names: list[str]) -> None:
    assert not inspect_interleaving(Texts.from_strings(names)).are_pairs


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_mate_names_are_independent_of_chunk_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(mate_names, "_NAMES_OF_BATCH", size)
    ones, others = (Texts.from_strings([f"{name}.{end}" for name in names]) for end, names in ((1, "abcdefg"), (2, "abxdegf")))
    assert other_names(ones, others).tolist() == [2, 5, 6]
    assert find_mates(ones, others).tolist() == [0, 1, -1, 3, 4, 6, 5]
    both = Texts.from_strings([f"{name}.{end}" for name in "abcdefg" for end in (1, 2)])
    assert inspect_interleaving(both).are_pairs
    assert template_names(both).strings() == [name for name in "abcdefg" for _ in range(2)]


def test_template_name_retains_a_name_that_is_only_a_mate_tag() -> None:
    names = ["/1", "/2", "1", "2", "a", "a"]
    assert template_names(Texts.from_strings(names)).strings() == ["/1", "/1", "1", "1", "a", "a"]
    assert other_names(Texts.from_strings(["/1", "1"]), Texts.from_strings(["/2", "2"])).tolist() == [0, 1]


def test_template_names_are_never_empty() -> None:
    assert template_names(Texts.from_strings(["/1", "/2", "a/1", "a/2"])).strings() == ["/1", "/1", "a", "a"]
