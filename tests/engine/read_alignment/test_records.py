"""SAM and PAF follow their specifications, checked by an independent reader and, if installed, by htslib."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from tests.engine.read_alignment import sam_check
from tests.engine.read_alignment.test_search import BASES, SEED, fasta, mutate, rows_of
from tests.searching import align_reads

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def simulated(tmp_path, *, n=60, last_start=600):
    """Write two references and reads of both strands with errors, gaps, qualities and odd names."""
    random = np.random.default_rng(SEED)
    texts = [BASES[random.integers(0, 4, length)].tobytes().decode() for length in (700, 900)]
    records = []
    for k in range(n):
        start = random.integers(0, last_start)
        read = mutate(texts[k % 2][start : start + 90], random)
        read = read.translate(COMPLEMENT)[::-1] if k % 3 == 0 else read
        qualities = bytes(random.integers(33, 74, len(read)).astype(np.uint8)).decode()
        records.append((f"read@{k}é\tmore\tof it", read, qualities))
    records.append(("empty", "", ""))
    reads = tmp_path / "reads.fastq"
    reads.write_text("".join(f"@{name}\n{read}\n+\n{qualities}\n" for name, read, qualities in records), encoding="utf-8")
    return fasta(tmp_path / "texts.fa", texts, "t"), reads, dict(zip(("t0", "t1"), texts, strict=True)), records


@pytest.mark.parametrize("mode", ["within", "local", "prefix"])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_sam_follows_the_specification(tmp_path, mode, is_sorted):
    texts, reads, references, records = simulated(tmp_path, last_start=1 if mode == "prefix" else 600)
    out, parameters = tmp_path / "found.sam", ReadAlignmentParameters().changed(mode=mode)
    align_reads(texts, reads, out, parameters, format="sam", is_sorted=is_sorted, device="cpu")
    header, written = sam_check.read(out)
    sam_check.check(header, written, references)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    primary = [record for record in written if not record.flag & 256]
    assert len(primary) == len(records)
    if is_sorted:
        assert "SO:coordinate" in header[0]
        places = [(record.reference == "*", record.reference, record.position) for record in written]
        assert places == sorted(places)
    else:
        for record, (name, read, qualities) in zip(primary, records, strict=True):
            assert record.name == name.split("\t")[0].replace("@", "%40").replace("é", "%C3%A9")
            turned = record.flag & 16
            given = (record.sequence.translate(COMPLEMENT)[::-1], record.qualities[::-1]) if turned else (record.sequence, record.qualities)
            assert given == (read or "*", qualities or "*")
    assert any("S" in record.cigar for record in written) == (mode == "local")
    assert any(record.flag & 16 for record in written) == (mode != "prefix")


def test_primary_record_of_a_read_is_its_best_table_row(tmp_path):
    texts, reads, _, _ = simulated(tmp_path)
    parameters = ReadAlignmentParameters().changed(mode="within")
    align_reads(texts, reads, tmp_path / "found.sam", parameters, format="sam", device="cpu")
    align_reads(texts, reads, tmp_path / "found.tsv", parameters, device="cpu")
    rows = rows_of(tmp_path / "found.tsv")
    best: dict[str, dict] = {}
    for row in rows:
        if row["cigar"] and int(row["score"]) > int(best.get(row["pattern"], {"score": -(10**9)})["score"]):
            best[row["pattern"]] = row
    primary = [record for record in sam_check.read(tmp_path / "found.sam")[1] if record.is_mapped and not record.flag & 256]
    records = [(r.reference, r.position, r.end, r.tags["AS"], "-" if r.flag & 16 else "+", r.cigar) for r in primary]
    columns = ("text", "text_start", "text_end", "score", "strand", "cigar")
    assert records == [tuple(type(value)(row[name]) for name, value in zip(columns, records[0], strict=True)) for row in best.values()]


def test_paf_equals_the_alignment_table(tmp_path):
    texts, reads, _, _ = simulated(tmp_path)
    parameters = ReadAlignmentParameters().changed(mode="local")
    align_reads(texts, reads, tmp_path / "found.paf", parameters, format="paf", device="cpu")
    align_reads(texts, reads, tmp_path / "found.tsv", parameters, device="cpu")
    lines = [line.split("\t") for line in (tmp_path / "found.paf").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows_of(tmp_path / "found.tsv") if row["cigar"]]
    for line, row in zip(lines, rows, strict=True):
        numbers = [int(row["pattern_length"]), int(row["pattern_start"]) - 1, int(row["pattern_end"])]
        on_text = [int(row["text_length"]), int(row["text_start"]) - 1, int(row["text_end"])]
        assert [line[0], *map(int, line[1:4]), line[4], line[5], *map(int, line[6:9])] == [
            row["pattern"],
            *numbers,
            row["strand"],
            row["text"],
            *on_text,
        ]
        steps = [(int(count), kind) for count, kind in sam_check.STEPS.findall(row["cigar"])]
        assert int(line[9]) == sum(count for count, kind in steps if kind == "=")
        assert int(line[10]) == sum(count for count, _ in steps)
        tags = dict(tag.split(":", 1) for tag in line[12:])
        assert tags == {"NM": f"i:{int(line[10]) - int(line[9])}", "AS": f"i:{row['score']}", "cg": f"Z:{row['cigar']}"}


def test_htslib_reads_sorted_sam(tmp_path):
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    texts, reads, references, records = simulated(tmp_path)
    parameters = ReadAlignmentParameters().changed(mode="local")
    align_reads(texts, reads, tmp_path / "found.sam", parameters, format="sam", is_sorted=True, device="cpu")
    with pysam.AlignmentFile(str(tmp_path / "found.sam"), check_sq=True) as file:
        assert dict(zip(file.references, file.lengths, strict=True)) == {name: len(text) for name, text in references.items()}
        mapped = list(file)
    for record in mapped:
        if not record.is_unmapped:
            start, end = record.reference_start, record.reference_end
            assert record.get_reference_sequence().upper() == references[record.reference_name][start:end]
    assert len({record.query_name for record in mapped}) == len(records)


def test_sam_tags_count_unknown_bases_like_samtools_calmd(tmp_path):
    """N against N is a mismatch, R against R is not; each read covers some of both."""
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    bases = np.random.default_rng(3).choice(list("ACGT"), 400)
    bases[100:130], bases[200] = "N", "R"
    bases[230:240] = "N"
    text = "".join(bases)
    reads = [text[at : at + 110] for at in (60, 95, 150, 190)]
    reads[1] = reads[1][:50] + reads[1][53:]
    (tmp_path / "t.fa").write_text(f">t\n{text}\n")
    (tmp_path / "r.fa").write_text("".join(f">r{k}\n{read}\n" for k, read in enumerate(reads)))
    parameters = ReadAlignmentParameters().changed(mode="within")
    align_reads(tmp_path / "t.fa", tmp_path / "r.fa", tmp_path / "found.bam", parameters, format="bam", is_sorted=True, device="cpu")
    with pysam.AlignmentFile(str(tmp_path / "found.bam"), "rb") as file:
        tags_in_bam = {record.query_name: (record.get_tag("NM"), record.get_tag("MD")) for record in file}
    lines = pysam.calmd(str(tmp_path / "found.bam"), str(tmp_path / "t.fa")).splitlines()
    words = [line.split("\t") for line in lines if not line.startswith("@")]
    tags = {word[0]: dict(tag.split(":", 2)[::2] for tag in word[11:]) for word in words}
    assert tags_in_bam == {name: (int(tag["NM"]), tag["MD"]) for name, tag in tags.items()}
    assert tags_in_bam["r0"][0] == 30 and tags_in_bam["r3"][0] == 10


@pytest.mark.parametrize("is_sorted", [False, True])
def test_bam_equals_sam_and_sorted_bam_is_indexed(tmp_path, is_sorted):
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    texts, reads, references, _ = simulated(tmp_path)
    parameters = ReadAlignmentParameters().changed(mode="local")
    for format in ("sam", "bam"):
        align_reads(texts, reads, tmp_path / f"found.{format}", parameters, format=format, is_sorted=is_sorted, device="cpu")
    with pysam.AlignmentFile(str(tmp_path / "found.bam"), "rb") as packed, pysam.AlignmentFile(str(tmp_path / "found.sam")) as plain:
        assert str(packed.header) == str(plain.header)
        records = [str(record) for record in plain]
        assert [str(record) for record in packed] == records and records
    assert (tmp_path / "found.bam.bai").exists() == is_sorted
    assert not list(tmp_path.glob(".*"))
    if is_sorted:
        with pysam.AlignmentFile(str(tmp_path / "found.bam"), "rb") as packed:
            for name, text in references.items():
                start, end = len(text) // 4, len(text) // 2
                fetched = [record.query_name for record in packed.fetch(name, start, end)]
                packed.reset()
                records_of_text = [record for record in packed if record.reference_name == name]
                assert fetched == [r.query_name for r in records_of_text if r.reference_start < end and r.reference_end > start]


def test_unsorted_bam_removes_the_index_of_a_former_bam(tmp_path):
    pytest.importorskip("pysam", reason="pysam is not installed")
    texts, reads, _, _ = simulated(tmp_path)
    out = tmp_path / "found.bam"
    for is_sorted in (True, False):
        align_reads(texts, reads, out, ReadAlignmentParameters().changed(mode="local"), format="bam", is_sorted=is_sorted, device="cpu")
        assert (tmp_path / "found.bam.bai").exists() == is_sorted


def test_full_disk_error_names_the_bam_file(tmp_path):
    pytest.importorskip("pysam", reason="pysam is not installed")
    resource = pytest.importorskip("resource", reason="this system has no limits of files")
    texts, reads, _, _ = simulated(tmp_path)
    parameters, out = ReadAlignmentParameters().changed(mode="local"), tmp_path / "found.bam"
    align_reads(texts, reads, tmp_path / "before.sam", parameters, format="sam", device="cpu")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError) as raised:
            align_reads(texts, reads, out, parameters, format="bam", device="cpu")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(raised.value).startswith(f"{out}: ")
    assert not list(tmp_path.glob("*.bam")) and not list(tmp_path.glob(".*"))


def test_bam_without_pysam_is_rejected_before_reading(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("proteoscope.engine.read_alignment.export.find_spec", lambda name: None)
    assert main(["reads", str(tmp_path / "no.fasta"), str(tmp_path / "no.fastq"), "--out", str(tmp_path / "found.bam"), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "pip install pysam" in error and error.count("\n") == 1


@pytest.mark.parametrize("format", ["tsv", "sam", "sorted-sam", "bam", "sorted-bam", "paf"])
def test_read_alignment_export_equals_output_of_the_search(tmp_path, format):
    if "bam" in format:
        pytest.importorskip("pysam", reason="pysam is not installed")
    texts, reads, _, _ = simulated(tmp_path)
    out = tmp_path / f"found.{format.replace('-', '.')}"
    arguments = ["reads", str(texts), str(reads), "--out", str(out), "--project", str(tmp_path / "p"), "--mode", "local"]
    assert main([*arguments, "--device", "cpu", "--quiet"]) == 0
    assert main(["export", str(tmp_path / "p"), "--format", format, "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_bytes() == out.read_bytes()
    if format in ("sorted-sam", "sorted-bam"):
        flagged = out.with_name(f"flag{out.suffix}")
        assert main([*arguments[:4], str(flagged), *arguments[5:], "--sorted", "--device", "cpu", "--quiet"]) == 0
        assert flagged.read_bytes() == out.read_bytes()


def test_invalid_and_repeated_sam_names_are_changed(tmp_path):
    text = "ACGTTGACCAGTACGT"
    (tmp_path / "t.fa").write_text(f">a,b\n{text}\n>a,b\n{text[::-1]}\n>*\n{text}\n", encoding="utf-8")
    (tmp_path / "p.fa").write_text(f">{'n' * 300} x\n{text}\n")
    align_reads(tmp_path / "t.fa", tmp_path / "p.fa", tmp_path / "o.sam", ReadAlignmentParameters(), format="sam", device="cpu")
    header, records = sam_check.read(tmp_path / "o.sam")
    names = [line.split("\t")[1][3:] for line in header if line.startswith("@SQ")]
    sam_check.check(header, records, dict(zip(names, (text, text[::-1], text), strict=True)))
    assert {record.name for record in records} == {"n" * 252 + "_1"}


@pytest.mark.parametrize("format", ["sam", "bam"])
def test_long_sam_names_stay_distinct_and_are_reported(tmp_path, format):
    if format == "bam":
        pytest.importorskip("pysam")
    text = BASES[np.random.default_rng(SEED).integers(0, 4, 500)].tobytes().decode()
    names = [*("n" * 254 + ending for ending in ("", "a", "b")), "n" * 300, "short"]
    texts, reads, out = fasta(tmp_path / "t.fa", [text]), tmp_path / "r.fa", tmp_path / f"o.{format}"
    reads.write_text("".join(f">{name}\n{text[:60]}\n" for name in names), encoding="utf-8")
    summary = align_reads(texts, reads, out, ReadAlignmentParameters(), format=format, device="cpu")
    assert [message for message in summary.messages if "254" in message] == [
        "3 reads have names of more than 254 characters. SAM allows no more: they are cut and end with the number of the read in its file"
    ]
    if format == "sam":
        names_in_sam = [record.name for record in sam_check.read(out)[1]]
        assert names_in_sam == [names[0], *(f"{'n' * 252}_{k}" for k in (2, 3, 4)), "short"]
    else:
        import pysam

        with pysam.AlignmentFile(str(out)) as file:
            assert len({record.query_name for record in file}) == len(names)


def test_protein_alignments_are_written_as_sam(tmp_path):
    texts, patterns = fasta(tmp_path / "t.fa", ["MKVLAAGILW"]), fasta(tmp_path / "p.fa", ["MKV*AAGILW"])
    parameters = ReadAlignmentParameters().changed(matrix="BLOSUM62")
    align_reads(texts, patterns, tmp_path / "o.sam", parameters, format="sam", device="cpu")
    (record,) = sam_check.read(tmp_path / "o.sam")[1]
    assert (record.sequence, record.cigar, record.tags["MD"]) == ("MKVXAAGILW", "3=1X6=", "3L6")


def test_read_alignment_rejects_unknown_format_and_sorted_paf(tmp_path):
    texts, reads, _, _ = simulated(tmp_path, n=3)
    with pytest.raises(ParameterError, match="there is no format 'cram'"):
        align_reads(texts, reads, tmp_path / "o.bam", ReadAlignmentParameters(), format="cram", device="cpu")
    with pytest.raises(ParameterError, match="--sorted is for SAM and BAM, not for paf"):
        align_reads(texts, reads, tmp_path / "o.paf", ReadAlignmentParameters(), format="paf", is_sorted=True, device="cpu")


def test_cancelled_sorting_of_sam_leaves_no_file(tmp_path):
    texts, reads, _, _ = simulated(tmp_path, n=3)

    class Stopping(Progress):
        def stage(self, name, total=0):
            if name == "Aligning":
                self.cancel()
            super().stage(name, total)

    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(Cancelled):
        align_reads(
            texts, reads, folder / "o.sam", ReadAlignmentParameters(), format="sam", is_sorted=True, device="cpu", progress=Stopping()
        )
    assert list(folder.iterdir()) == []


def test_sam_names_of_different_reads_differ(tmp_path):
    names = ["@SQ", "_SQ", "*", "a\x1bb", "a\x02b", "a_b", "a@b", "a%40b", "é", "è"]
    bases = "ACGTTGCATGACCGTA"
    (tmp_path / "reference.fasta").write_text(f">(x)\n{bases * 3}\n>)x(\n{bases[::-1] * 3}\n")
    (tmp_path / "reads.fastq").write_text("".join(f"@{name}\n{bases}\n+\n{'I' * 16}\n" for name in names))
    progress, parameters = RecordingProgress(Progress()), ReadAlignmentParameters().changed(mode="within", mapping="every")
    files = tmp_path / "reference.fasta", tmp_path / "reads.fastq"
    align_reads(*files, tmp_path / "found.sam", parameters, format="sam", device="cpu", progress=progress)
    header, records = sam_check.read(tmp_path / "found.sam")
    assert [line.split("\t")[1] for line in header if line.startswith("@SQ")] == ["SN:%28x%29", "SN:%29x%28"]
    written = list(dict.fromkeys(record.name for record in records))
    assert written == ["%40SQ", "_SQ", "%2A", "a%1Bb", "a%02b", "a_b", "a%40b", "a%2540b", "%C3%A9", "%C3%A8"]
    warnings = "\n".join(progress.messages)
    assert "reads.fastq: 2 names hold characters that cannot be printed" in warnings
    assert "6 reads have names with characters that SAM does not allow" in warnings
    assert "2 references have other names in SAM" in warnings
