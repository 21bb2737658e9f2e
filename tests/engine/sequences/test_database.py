from __future__ import annotations

import os

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sequence_type import looks_like_nucleotides, nucleotide_counts
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.index_store import IndexStore
from proteoscope.engine.sequences.database import cache_store, decode, key_parts, open_database, read_sequences
from tests.effort import lines_run

RECORDS = [("first one", "MKVW"), ("second", "acdefghiu*oj"), ("third  with   words", ""), ("first again", "MKV"), ("b", "W")]


def test_sequence_database_is_sorted_and_has_file_positions(fasta):
    database = read_sequences([fasta("a.fasta", RECORDS)], Progress())
    assert database.lengths.tolist() == [0, 1, 3, 4, 12]
    assert database.file_index.tolist() == [2, 4, 3, 0, 1]
    assert [decode(database.codes(i)) for i in range(5)] == ["", "W", "MKV", "MKVW", "ACDEFGHIU*OJ"]
    assert [database.accession(i) for i in range(5)] == ["third", "b", "first", "first", "second"]
    assert database.description(0) == "with   words"
    assert database.n_repeated_names == 1
    assert database.n_nucleotides == 0


def test_packed_sequence_database_is_equal_when_opened(fasta, tmp_path, monkeypatch):
    path, store = fasta("a.fasta", RECORDS), IndexStore(tmp_path / "store", "sequences")
    built = open_database([path], [file_digest(path)], store, Progress())
    monkeypatch.setattr("proteoscope.engine.sequences.database.read_sequences", lambda *args: pytest.fail("it was read again"))
    opened = open_database([path], [file_digest(path)], store, Progress())
    read = read_sequences([path], Progress())
    for database in (built, opened):
        for name in ("residues", "offsets", "file_index", "accession_bytes", "description_bytes", "description_offsets"):
            assert np.array_equal(getattr(database, name), getattr(read, name)), name
        assert (database.n_repeated_names, database.n_nucleotides) == (1, 0)


def test_sequence_database_accepts_headers_without_descriptions(fasta, tmp_path):
    path = fasta("a.fasta", [("a", "MK"), ("b", "M")])
    database = open_database([path], [file_digest(path)], IndexStore(tmp_path / "store", "sequences"), Progress())
    assert database.description(0) == ""


def test_sequence_database_sorted_in_batches_is_equal(fasta, random_protein, monkeypatch):
    path = fasta("a.fasta", [(str(k), random_protein(k, 1 + 7 * k % 50)) for k in range(60)])
    whole = read_sequences([path], Progress())
    monkeypatch.setattr("proteoscope.engine.arrays._BATCH_VALUES", 16)
    blockwise = read_sequences([path], Progress())
    assert np.array_equal(whole.residues, blockwise.residues)
    assert np.array_equal(whole.description_bytes, blockwise.description_bytes)


def nucleotides_among(*sequences):
    residues = np.frombuffer("".join(sequences).encode(), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    return looks_like_nucleotides(np.diff(offsets), nucleotide_counts(residues, offsets)).tolist()


def test_dna_sequences_are_distinguished_from_proteins(random_protein):
    dna, rna, protein = random_protein(1, 300, "ACGT"), random_protein(1, 300, "ACGURYN" + "ACGU" * 20), random_protein(1, 300)
    assert nucleotides_among(dna, "", rna, protein, protein, "") == [True, False, True, False, False, False]
    assert nucleotides_among() == []


@pytest.mark.parametrize(("n_others", "is_dna"), [(5, True), (6, False)])
def test_dna_sequence_may_have_five_percent_other_residues(n_others, is_dna):
    assert nucleotides_among("ACGTN" * 19 + "ACGTN"[n_others:] + "W" * n_others, "MKV" * 20)[0] is is_dna


def test_short_sequences_are_classified_as_one_group():
    assert nucleotides_among("GATTACA") == [False]
    assert nucleotides_among("GATTACA", "ACGT" * 5, "MKVWLQEHRDIFSPYMKVWLQEHRDIFSPYMKV", "") == [False] * 4
    assert nucleotides_among("GATTACA", "ACGT" * 6, "MKVWLQEHRDIFSPYMKVWLQEHRDIFSPYMKV", "") == [True, True, False, False]
    assert nucleotides_among("GATTACA", "ACGT" * 6, "MKVWLQEHRDI") == [False] * 3


def test_classification_as_dna_does_not_depend_on_batches(random_protein, monkeypatch):
    sequences = [random_protein(k, 3 * k % 120, "ACGT" if k % 3 else "ARNDCQEGHILKMFPSTWYV") for k in range(90)]
    whole = nucleotides_among(*sequences)
    assert 30 < sum(whole) < 60
    monkeypatch.setattr("proteoscope.engine.arrays._BATCH_VALUES", 100)
    assert nucleotides_among(*sequences) == whole


def test_sequence_database_counts_probable_dna_sequences(fasta, random_protein):
    records = [("p", random_protein(1, 85)), ("d", random_protein(2, 900, "ACGT")), ("e", random_protein(3, 40, "ACGU"))]
    assert read_sequences([fasta("a.fasta", records)], Progress()).n_nucleotides == 2


def test_sequence_database_cache_retains_recently_used_databases(fasta, random_protein, tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(IndexStore.__init__, "__kwdefaults__", {"byte_limit": 60_000, "grace_seconds": 600.0})
    files = [fasta(f"{k}.fasta", [("p", random_protein(k, 20_000))]) for k in range(4)]
    for k, path in enumerate(files):
        open_database([path], [file_digest(path)], cache_store(), Progress())
        for manifest in (tmp_path / "cache").rglob("manifest.json"):  # an hour later
            os.utime(manifest, (manifest.stat().st_atime, manifest.stat().st_mtime - 3600))
        if k == 2:
            open_database([files[1]], [file_digest(files[1])], cache_store(), Progress())
    remaining = [np.load(file) for file in (tmp_path / "cache").rglob("residues.npy")]
    used = [read_sequences([files[k]], Progress()).residues for k in (1, 3)]
    assert len(remaining) == 2 and all(any(np.array_equal(database, other) for other in remaining) for database in used)


@pytest.mark.parametrize("text", ["", ">\n", ">name\n", ">name\n>other\n\n"])
def test_sequence_database_rejects_files_without_residues(tmp_path, text):
    path = tmp_path / "empty.fasta"
    path.write_text(text)
    with pytest.raises(InputError):
        read_sequences([path], Progress())


def test_packed_sequence_database_is_small_and_not_read_again(shared_data, tmp_path, monkeypatch):
    path, store = shared_data / "sequences" / "mmseqs_DB.fasta", IndexStore(tmp_path, "sequences")
    digest = file_digest(path)
    database = open_database([path], [digest], store, Progress())
    folder = store.path(store.key(key_parts([digest])))
    size = sum(file.stat().st_size for file in folder.iterdir())
    names = len(database.accession_bytes) + len(database.description_bytes) + 8 * len(database)
    assert (len(database), database.n_residues) == (20_000, 9_055_569)
    assert size - names <= 1.1 * database.n_residues
    monkeypatch.setattr("proteoscope.engine.sequences.database.read_sequences", lambda *_: pytest.fail("the file is read again"))
    again = []
    assert lines_run(lambda: again.append(open_database([path], [digest], store, Progress()))) < 10_000, "nothing is done for each protein"
    assert np.array_equal(again[0].residues, database.residues)
