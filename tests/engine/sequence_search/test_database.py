from __future__ import annotations

import time

import numpy as np
import pytest

from engine.errors import InputError
from engine.jobs.progress import Progress
from engine.project.digests import file_digest
from engine.project.index_store import IndexStore
from engine.sequence_search.database import decode, open_database, read_sequences

RECORDS = [("first one", "MKVW"), ("second", "acdefghiu*oj"), ("third  with   words", ""), ("first again", "MKV"), ("b", "W")]


def test_sequences_stand_by_length_and_know_their_place_in_the_file(fasta):
    database = read_sequences([fasta("a.fasta", RECORDS)], Progress())
    assert database.lengths.tolist() == [0, 1, 3, 4, 12]
    assert database.file_index.tolist() == [2, 4, 3, 0, 1]
    assert [decode(database.codes(i)) for i in range(5)] == ["", "W", "MKV", "MKVW", "ACDEFGHIU*OJ"]
    assert [database.accession(i) for i in range(5)] == ["third", "b", "first", "first", "second"]
    assert database.description(0) == "with   words"
    assert database.n_repeated_names == 1
    assert not database.is_nucleotides


def test_a_packed_database_opens_again_as_it_was_read(fasta, tmp_path, monkeypatch):
    path, store = fasta("a.fasta", RECORDS), IndexStore(tmp_path / "store", "sequences")
    built = open_database([path], [file_digest(path)], store, Progress())
    monkeypatch.setattr("engine.sequence_search.database.read_sequences", lambda *args: pytest.fail("it was read again"))
    opened = open_database([path], [file_digest(path)], store, Progress())
    read = read_sequences([path], Progress())
    for one in (built, opened):
        for name in ("residues", "offsets", "file_index", "accession_bytes", "description_bytes", "description_offsets"):
            assert np.array_equal(getattr(one, name), getattr(read, name)), name
        assert (one.n_repeated_names, one.is_nucleotides) == (1, False)


def test_headers_without_descriptions_can_be_packed(fasta, tmp_path):
    path = fasta("a.fasta", [("a", "MK"), ("b", "M")])
    database = open_database([path], [file_digest(path)], IndexStore(tmp_path / "store", "sequences"), Progress())
    assert database.description(0) == ""


def test_long_columns_are_sorted_in_pieces(fasta, random_protein, monkeypatch):
    path = fasta("a.fasta", [(str(k), random_protein(k, 1 + 7 * k % 50)) for k in range(60)])
    whole = read_sequences([path], Progress())
    monkeypatch.setattr("engine.sequence_search.database._PIECE", 16)
    pieces = read_sequences([path], Progress())
    assert np.array_equal(whole.residues, pieces.residues)
    assert np.array_equal(whole.description_bytes, pieces.description_bytes)


def test_dna_is_told_from_proteins(fasta, random_protein):
    assert read_sequences([fasta("d.fasta", [("d", random_protein(1, 300, "ACGT"))])], Progress()).is_nucleotides
    assert read_sequences([fasta("r.fasta", [("r", random_protein(1, 300, "ACGURYN" + "ACGU" * 20))])], Progress()).is_nucleotides
    assert not read_sequences([fasta("p.fasta", [("p", random_protein(1, 300))])], Progress()).is_nucleotides
    assert not read_sequences([fasta("s.fasta", [("s", "GATTACA")])], Progress()).is_nucleotides


@pytest.mark.parametrize("text", ["", ">\n", ">name\n", ">name\n>other\n\n"])
def test_files_without_residues_are_refused(tmp_path, text):
    path = tmp_path / "empty.fasta"
    path.write_text(text)
    with pytest.raises(InputError):
        read_sequences([path], Progress())


def test_twenty_thousand_proteins_take_little_room_and_open_in_milliseconds(shared_data, tmp_path):
    path, store = shared_data / "sequences" / "mmseqs_DB.fasta", IndexStore(tmp_path, "sequences")
    digest = file_digest(path)
    database = open_database([path], [digest], store, Progress())
    folder = store.path(store.key({"format": 1, "files": [digest]}))
    size = sum(file.stat().st_size for file in folder.iterdir())
    names = len(database.accession_bytes) + len(database.description_bytes) + 8 * len(database)
    assert (len(database), database.n_residues) == (20_000, 9_055_569)
    assert size - names <= 1.1 * database.n_residues
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        open_database([path], [digest], store, Progress())
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.05
