"""Reads are spooled to disk instead of held in memory, and the output is the same either way."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.simulated_reads import write_reads
from proteoscope.engine.formats import fastq
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.read_alignment import mapping, records, results, sequences
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.sequences import load_reads
from proteoscope.engine.spectra import spooling
from tests.engine.read_alignment.test_search import BASES, SEED
from tests.searching import align_reads

WITHIN = ReadAlignmentParameters().changed(mode="within")
LENGTH = 100


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    bases = BASES[np.random.default_rng(SEED).integers(0, 4, 30_000)]
    path = tmp_path_factory.mktemp("genome") / "genome.fa"
    path.write_text(f">g\n{bases.tobytes().decode()}\n")
    return path, bases


def reads_of(genome, path: Path, n: int, seed: int = 7) -> Path:
    write_reads(path, [genome[1]], n, length=LENGTH, seed=seed)
    return path


@pytest.fixture
def small(monkeypatch):
    """Make the blocks of reads and of written lines small."""
    monkeypatch.setattr(fastq, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(spooling, "MAXIMUM_BYTES_IN_MEMORY", 1 << 12)
    monkeypatch.setattr(spooling, "_CHUNK_VALUES", 1 << 12)
    monkeypatch.setattr(mapping, "_READS_OF_ROUND", 1 << 8)
    monkeypatch.setattr(records, "_ROWS", 1 << 7)
    monkeypatch.setattr(records, "_COPIED_BYTES", 1 << 14)
    monkeypatch.setattr(results, "ROW_GROUP", 1 << 8)
    monkeypatch.setattr(sequences, "_PAIRS_OF_BATCH", 100)


def written(genome, reads: Path, mates: Path | None, folder: Path) -> dict[str, bytes]:
    """Search with a project and return the content of every output format and table."""
    folder.mkdir()
    contents = {}
    for format in ("sam", "sorted-sam", "paf", "tsv"):
        align_reads(genome[0], reads, folder / "out", WITHIN, format=format, mates=mates, device="cpu", project_folder=folder / format)
        contents[format] = (folder / "out").read_bytes()
    project = Project.open(folder / "sam")
    tables = {table.name: table.path for table in project.results(project.runs()[-1].id)}
    contents |= {name: str(pq.read_table(tables[name]).to_pylist()).encode() for name in ("alignments", "patterns", "texts")}
    return contents


@pytest.mark.parametrize("has_mates", [False, True])
def test_alignments_are_equal_for_reads_in_memory_and_on_disk(genome, tmp_path, has_mates, request):
    n = 150 if has_mates else 1500
    reads = reads_of(genome, tmp_path / "1.fq", n)
    mates = reads_of(genome, tmp_path / "2.fq", n, seed=8) if has_mates else None
    in_memory = written(genome, reads, mates, tmp_path / "memory")
    request.getfixturevalue("small")
    assert written(genome, reads, mates, tmp_path / "disk") == in_memory


@pytest.mark.usefixtures("small")
def test_read_alignment_memory_hardly_grows_with_reads(genome, tmp_path):
    """Offsets of bases and names and the state of each row take about ten bytes per read; bases and qualities are not in memory."""
    few, many = (reads_of(genome, tmp_path / f"{n}.fq", n) for n in (1_000, 4_000))
    align_reads(genome[0], few, tmp_path / "first.sam", WITHIN, format="sam", device="cpu", threads=1)
    peaks: dict[Path, list[int]] = {few: [], many: []}
    for path in (few, many, few, many):  # twice, since modules and threads of other tests allocate at times
        gc.collect()
        tracemalloc.start()
        align_reads(genome[0], path, tmp_path / "out.sam", WITHIN, format="sorted-sam", device="cpu", threads=1)
        peaks[path].append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (min(peaks[many]) - min(peaks[few])) / 3_000 < LENGTH


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("pairing", ["order", "name"])
def test_read_columns_are_memory_mapped_with_a_spool_folder(genome, tmp_path, pairing):
    path = reads_of(genome, tmp_path / "reads.fq", 200)
    mapped, held = (load_reads(path, path, ReadAlignmentParameters(mate_pairing=pairing), Progress(), spool) for spool in (tmp_path, None))
    for column, other_column in (
        (mapped.sequences.codes, held.sequences.codes),
        (mapped.qualities, held.qualities),
        (mapped.names.characters, held.names.characters),
    ):
        np.testing.assert_array_equal(column, other_column)
    assert mapped.names.strings() == held.names.strings() and mapped.sequences.codes.base is not None
