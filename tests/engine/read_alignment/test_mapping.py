"""Reads are mapped to their origin with a mapping quality; mates are mapped together."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.read_alignment import mapping
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.sequences import gap_rules, read_sequences
from proteoscope.kernels.gapsmis_layouts import Alignments
from tests.engine.read_alignment import sam_check
from tests.engine.read_alignment.test_search import BASES, SEED, fasta, mutate, rows_of
from tests.searching import align_reads
from tests.shim.shim_gpu import ShimGpu, missing_compiler

COMPLEMENT = str.maketrans("ACGT", "TGCA")
WITHIN = ReadAlignmentParameters().changed(mode="within")
SEEDS = WITHIN.changed(mapping="seeds")


def reverse_complement(read: str) -> str:
    return read.translate(COMPLEMENT)[::-1]


def random_bases(random, n: int) -> str:
    return BASES[random.integers(0, 4, n)].tobytes().decode()


def fastq(path, reads, names=None):
    names = names or [f"r{k}" for k in range(len(reads))]
    path.write_text("".join(f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in zip(names, reads, strict=True)))
    return path


def simulated(text: str, n: int, random, length: int = 150) -> tuple[list[str], list[tuple[int, str]]]:
    """Simulate reads of both strands with errors and gaps, also from both ends, and return them with their origins."""
    starts = np.concatenate([[0, len(text) - length - 20], random.integers(0, len(text) - length - 20, n - 2)])
    reads = [mutate(text[start : start + length + 20], random)[:length] for start in starts.tolist()]
    strands = ["-" if is_reverse else "+" for is_reverse in random.random(n) < 0.5]
    return [reverse_complement(read) if sign == "-" else read for read, sign in zip(reads, strands, strict=True)], list(
        zip(starts.tolist(), strands, strict=True)
    )


@pytest.mark.parametrize("mode", ["within", "local"])
def test_mapped_reads_equal_alignments_to_the_whole_reference(genome, tmp_path, mode):
    random = np.random.default_rng(SEED)
    reads, origins = simulated(genome, 120, random)
    files = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "p.fq", reads)
    parameters = ReadAlignmentParameters().changed(mode=mode)
    summary = align_reads(*files, tmp_path / "placed.tsv", parameters, device="cpu")
    align_reads(*files, tmp_path / "every.tsv", parameters.changed(mapping="every"), device="cpu")
    assert any("by minimisers" in message for message in summary.messages)
    assert (tmp_path / "placed.tsv").read_text() == (tmp_path / "every.tsv").read_text()
    for row, (start, strand) in zip(rows_of(tmp_path / "placed.tsv"), origins, strict=True):
        assert row["strand"] == strand and abs(int(row["text_start"]) - 1 - start) <= 25


def test_banded_and_ungapped_alignments_equal_full_alignments(genome, tmp_path, monkeypatch):
    from proteoscope.kernels.cpu import banded, ungapped

    random = np.random.default_rng(SEED)
    reads, _ = simulated(genome, 300, random)
    reads += [genome[k : k + 100] for k in random.integers(0, len(genome) - 100, 50)]
    files = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "p.fq", reads)
    fast = align_reads(*files, tmp_path / "one.sam", WITHIN, format="sam", device="cpu")

    def unaligned(texts, patterns, rules, text_of, pattern_of, *more):
        return Alignments.none(len(text_of), rules.maximum_gaps), np.zeros(len(text_of), np.bool_)

    monkeypatch.setattr(ungapped, "align_where_sure", unaligned)
    monkeypatch.setattr(banded, "align_where_near", unaligned)
    slow = align_reads(*files, tmp_path / "two.sam", WITHIN, format="sam", device="cpu")
    assert (tmp_path / "one.sam").read_bytes() == (tmp_path / "two.sam").read_bytes()
    assert fast.cells < 0.1 * slow.cells


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
@pytest.mark.parametrize("mode", ["within", "local"])
def test_mapped_reads_are_equal_on_gpu_and_cpu(genome, tmp_path, mode):
    reads, _ = simulated(genome, 30, np.random.default_rng(SEED))
    parameters, progress = ReadAlignmentParameters().changed(mode=mode), Progress()
    texts, patterns = (read_sequences(path, progress) for path in (fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "p.fq", reads)))
    index, rules = mapping.index_references(texts, parameters, 1, progress), gap_rules(parameters, of_nucleotides=True)
    here, there = (
        mapping.score_reads(
            mapping.MappingPlan(texts, patterns, index, rules, parameters), Resources(1, gpus=gpus, progress=progress), 0, 30
        ).rows
        for gpus in ([], [ShimGpu()])
    )
    for column, other_column in zip(here.alignments, there.alignments, strict=True):
        np.testing.assert_array_equal(column, other_column)
    np.testing.assert_array_equal(here.mapping_quality, there.mapping_quality)


def test_read_of_a_repeat_maps_to_first_copy_with_quality_zero(tmp_path):
    random = np.random.default_rng(SEED)
    unit, single = random_bases(random, 400), random_bases(random, 400)
    near = single[:200] + ("A" if single[200] != "A" else "C") + single[201:]
    first = random_bases(random, 9000) + reverse_complement(unit) + random_bases(random, 2000) + single + random_bases(random, 500)
    second = random_bases(random, 3000) + unit + random_bases(random, 3000) + near + random_bases(random, 9000)
    reads = [unit[100:250], reverse_complement(unit[100:250]), single[130:280], near[130:280], first[200:350]]
    out = tmp_path / "o.sam"
    align_reads(fasta(tmp_path / "t.fa", [first, second], "t"), fastq(tmp_path / "p.fq", reads), out, SEEDS, format="sam", device="cpu")
    header, records = sam_check.read(out)
    sam_check.check(header, records, {"t0": first, "t1": second})
    assert [(record.reference, record.flag) for record in records] == [("t0", 16), ("t0", 0), ("t0", 0), ("t1", 0), ("t0", 0)]
    assert [record.quality for record in records] == [0, 0, 20, 20, 60]
    assert records[0].position == 9000 + 150 + 1


def test_unmapped_read_has_a_row_without_position(genome, tmp_path):
    random = np.random.default_rng(SEED)
    reads = [random_bases(random, 150), genome[2000:2150], "ACGTACG", "", "N" * 150]
    files = fasta(tmp_path / "t.fa", [genome], "t"), fastq(tmp_path / "p.fq", reads)
    summary = align_reads(*files, tmp_path / "o.tsv", SEEDS, device="cpu")
    rows = rows_of(tmp_path / "o.tsv")
    assert [(row["text"], row["score"]) for row in rows] == [("", "-inf"), ("t0", "300"), *[("", "-inf")] * 3]
    assert all(row[name] == "" for row in rows if not row["text"] for name in ("text_length", "cigar", "strand", "text_start"))
    assert (summary.n_aligned, summary.n_pairs) == (1, 5)
    assert "1 of them is mapped (20.0%)" in summary.lines()
    align_reads(*files, tmp_path / "o.sam", SEEDS, format="sam", device="cpu")
    header, records = sam_check.read(tmp_path / "o.sam")
    sam_check.check(header, records, {"t0": genome})
    assert [record.flag for record in records] == [4, 0, 4, 4, 4]
    assert [record.sequence for record in records] == [read or "*" for read in reads]


def test_read_across_the_origin_of_a_circular_genome_is_clipped(tmp_path):
    random = np.random.default_rng(SEED)
    text = random_bases(random, 30_000)
    files = fasta(tmp_path / "t.fa", [text], "t"), fastq(tmp_path / "p.fq", [text[-80:] + text[:70]])
    align_reads(*files, tmp_path / "o.sam", SEEDS.changed(mode="local"), format="sam", device="cpu")
    header, (record,) = sam_check.read(tmp_path / "o.sam")
    sam_check.check(header, [record], {"t0": text})
    assert (record.position, record.cigar) == (30_000 - 79, "80=70S")


def test_mapped_mates_do_not_depend_on_threads_and_round_size(genome, tmp_path, monkeypatch):
    reads, _ = simulated(genome, 60, np.random.default_rng(SEED))
    mates, _ = simulated(genome, 60, np.random.default_rng(SEED + 1))
    files = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "p.fq", reads)
    more = {"mates": fastq(tmp_path / "q.fq", mates), "format": "sam", "device": "cpu"}
    align_reads(*files, tmp_path / "one.sam", WITHIN, threads=1, **more)
    monkeypatch.setattr(mapping, "_READS_OF_ROUND", 14)
    monkeypatch.setattr(mapping, "_READS_OF_BATCH", 3)
    monkeypatch.setattr(mapping, "_WORDS_OF_BATCH", 1000)
    align_reads(*files, tmp_path / "two.sam", WITHIN, threads=2, **more)
    assert (tmp_path / "one.sam").read_bytes() == (tmp_path / "two.sam").read_bytes()


@pytest.mark.parametrize(
    ("length", "read", "mode", "places", "has_places"),
    [
        (19_999, 50, "within", "auto", False),
        (20_000, 200, "within", "auto", True),
        (20_000, 201, "local", "auto", False),
        (20_000, 50, "prefix", "auto", False),
        (20_000, 50, "within", "every", False),
        (500, 50, "within", "seeds", True),
    ],
)
def test_reads_are_mapped_only_to_far_longer_references(tmp_path, length, read, mode, places, has_places):
    text = random_bases(np.random.default_rng(SEED), length)
    parameters = ReadAlignmentParameters().changed(mode=mode, mapping=places)
    files = fasta(tmp_path / "t.fa", [text[:300], text[300:]], "t"), fasta(tmp_path / "p.fa", [text[300 : 300 + read]])
    summary = align_reads(*files, tmp_path / "o.tsv", parameters, device="cpu")
    assert summary.has_places == has_places
    assert len(rows_of(tmp_path / "o.tsv")) == (1 if has_places else 2)


def fragments(text, n, random, *, mean=300, spread=15, length=100):
    """Simulate both reads of fragments and return them with the fragment bounds; every second fragment is of the other strand."""
    ones, others, places = [], [], []
    for k in range(n):
        size = round(random.normal(mean, spread))
        start = int(random.integers(0, len(text) - size))
        fragment = text[start : start + size]
        fragment = reverse_complement(fragment) if k % 2 else fragment
        ones.append(mutate(fragment[:length], random, 1))
        others.append(mutate(reverse_complement(fragment)[:length], random, 1))
        places.append((start, start + size))
    return ones, others, places


def test_mates_map_to_the_ends_of_the_fragment(genome, tmp_path):
    random = np.random.default_rng(SEED)
    ones, others, places = fragments(genome, 200, random)
    ones[7], others[8], ones[9], others[9] = random_bases(random, 100), "", random_bases(random, 100), random_bases(random, 100)
    names = [f"f{k}" for k in range(200)]
    one_file, other_file = (fastq(tmp_path / f"{k}.fq", reads, [f"{name}/{k}" for name in names]) for k, reads in ((1, ones), (2, others)))
    texts = fasta(tmp_path / "t.fa", [genome], "t")
    summary = align_reads(texts, one_file, tmp_path / "o.sam", WITHIN, mates=other_file, format="sam", device="cpu")
    assert any(text.startswith("Mates are paired at distances from ") for text in summary.messages)
    header, records = sam_check.read(tmp_path / "o.sam")
    sam_check.check(header, records, {"t0": genome})
    assert [record.name for record in records] == [name for name in names for _ in range(2)]
    for k, (start, end) in enumerate(places):
        first, second = records[2 * k : 2 * k + 2]
        assert first.flag & 0b11000001 == 0b01000001 and second.flag & 0b11000001 == 0b10000001
        for record, mate in ((first, second), (second, first)):
            assert bool(record.flag & 8) == bool(mate.flag & 4)
            assert bool(record.flag & 32) == bool(mate.flag & 16)
            assert bool(record.flag & 2) == (not (first.flag | second.flag) & 4)
            if not first.flag & second.flag & 4:
                assert (record.mate_reference, record.mate_position) == ("=", mate.position)
                assert (record.reference, record.position) == ("t0", record.position if record.is_mapped else mate.position)
        if k in (7, 8, 9):
            assert (first.length, second.length) == (0, 0)
            continue
        assert first.length == -second.length and abs(abs(first.length) - (end - start)) <= 8
        assert (first.length > 0) == (k % 2 == 0)
        assert abs(min(first.position, second.position) - 1 - start) <= 8
    assert [records[14].flag & 4, records[17].flag & 4, records[18].flag & 12, records[19].flag & 12] == [4, 4, 12, 12]
    assert (records[18].reference, records[18].mate_reference) == ("*", "*")


def test_mate_resolves_repeat_and_maps_read_without_minimiser(tmp_path):
    random = np.random.default_rng(SEED)
    unit = random_bases(random, 250)
    parts = [random_bases(random, 3000) for _ in range(9)]
    text = unit.join(parts)
    ones, others, _ = fragments(text, 60, random, spread=5)
    # One read in the fifth copy, its mate before it; and one with an error in every twelfth base.
    copy = text.index(unit, sum(map(len, parts[:5])) + 4 * 250)
    ones.append(text[copy - 200 : copy - 100])
    others.append(reverse_complement(text[copy : copy + 100]))
    start = 5000
    mutated = "".join(("A" if base != "A" else "C") if k % 12 == 6 else base for k, base in enumerate(text[start : start + 100]))
    ones.append(reverse_complement(text[start + 200 : start + 300]))
    others.append(mutated)
    texts, one_file, other_file = fasta(tmp_path / "t.fa", [text]), fastq(tmp_path / "1.fq", ones), fastq(tmp_path / "2.fq", others)
    align_reads(texts, one_file, tmp_path / "paired.sam", SEEDS, mates=other_file, format="sam", device="cpu")
    align_reads(texts, other_file, tmp_path / "alone.sam", SEEDS, format="sam", device="cpu")
    header, records = sam_check.read(tmp_path / "paired.sam")
    sam_check.check(header, records, {"s0": text})
    alone = sam_check.read(tmp_path / "alone.sam")[1][-2:]
    paired = [records[-3], records[-1]]
    assert alone[0].quality == 0 and alone[1].flag == 4
    assert [record.position for record in paired] == [copy + 1, start + 1]
    assert all(record.flag & 2 and record.quality >= 20 for record in paired)


def test_insert_size_can_be_set_and_is_assumed_for_few_pairs(genome, tmp_path):
    random = np.random.default_rng(SEED)
    ones, others, _ = fragments(genome, 10, random, mean=400, spread=1)
    files = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "1.fq", ones)
    more = {"mates": fastq(tmp_path / "2.fq", others), "format": "sam", "device": "cpu"}
    summary = align_reads(*files, tmp_path / "o.sam", WITHIN, **more)
    assert "Mates are paired at distances from 0 to 1,000 bases, assumed: fewer than 20 pairs are well mapped" in summary.messages
    assert all(record.flag & 2 for record in sam_check.read(tmp_path / "o.sam")[1])
    align_reads(*files, tmp_path / "o.sam", WITHIN.changed(minimum_insert=100, maximum_insert=300), **more)
    assert not any(record.flag & 2 for record in sam_check.read(tmp_path / "o.sam")[1])


def test_unpaired_mates_are_reported_by_record(genome, tmp_path):
    texts, first = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "1.fq", [genome[:100]] * 3, ["a/1", "b/1", "c/1"])
    second = fastq(tmp_path / "2.fq", [genome[:100]] * 2, ["a/2", "b/2"])
    with pytest.raises(InputError, match=r"1\.fq: holds 3 reads, but 2\.fq 2: c/1 \(record 3\) has no mate"):
        align_reads(texts, first, None, WITHIN, mates=second, device="cpu")
    with pytest.raises(InputError, match=r"1\.fq: holds 3 reads"):
        align_reads(texts, second, None, WITHIN, mates=first, device="cpu")
    with pytest.raises(InputError, match=r"3\.fa: has no qualities, but 1\.fq has"):
        align_reads(texts, first, None, WITHIN, mates=fasta(tmp_path / "3.fa", [genome[:90]] * 3), device="cpu")
    with pytest.raises(InputError, match=r"4\.fq: contains proteins, but 1\.fq nucleotides"):
        align_reads(texts, first, None, WITHIN, mates=fastq(tmp_path / "4.fq", ["MKVLAAGILWYQ"] * 3), device="cpu")
    named = fastq(tmp_path / "5.fq", [genome[:100]] * 3, ["a/2", "z/2", "c/2"])
    summary = align_reads(texts, first, None, WITHIN, mates=named, device="cpu")
    assert any("1 mate has another name than its read, the first in record 2: b/1 and z/2" in message for message in summary.messages)
    with pytest.raises(ParameterError, match="mates need mapped reads"):
        align_reads(texts, first, None, ReadAlignmentParameters(), mates=named, device="cpu")


def test_mapping_rejects_proteins_pair_mode_and_prefix_mode(tmp_path):
    proteins, text = fasta(tmp_path / "p.fa", ["MKVLAAGILWYQ" * 9]), fasta(tmp_path / "t.fa", ["ACGTTGCA" * 20])
    with pytest.raises(InputError, match="contains proteins, which are not mapped"):
        align_reads(proteins, proteins, None, SEEDS.changed(matrix="BLOSUM62"), device="cpu")
    with pytest.raises(ParameterError, match="--pairs assigns a reference"):
        align_reads(text, text, None, SEEDS, pairs=True, device="cpu")
    with pytest.raises(ParameterError, match="mode prefix aligns with the beginning of each reference"):
        ReadAlignmentParameters().changed(mapping="seeds")
    with pytest.raises(InputError, match=r"contains proteins, but t\.fa nucleotides"):
        align_reads(text, proteins, None, SEEDS, device="cpu")


def test_cancelled_mapping_leaves_no_file(genome, tmp_path):
    class Stopping(Progress):
        def stage(self, title, total=0):
            super().stage(title, total)
            if title == "Placing reads":
                self.cancel()

    files = fasta(tmp_path / "t.fa", [genome]), fastq(tmp_path / "p.fq", [genome[:100]])
    with pytest.raises(Cancelled):
        align_reads(*files, tmp_path / "o.sam", WITHIN, format="sam", device="cpu", progress=Stopping())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.fq", "t.fa"]
