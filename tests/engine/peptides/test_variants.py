"""Known variants as extra peptides, and their decoys, against a digestion of whole changed proteins in plain Python."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes, key_parts
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.peptides.variants import with_variants
from tests.engine.formats.entry_files import swiss_prot_entry

DECOY_KEYS = ("decoys", "decoy_prefix", "decoy_suffix", "decoys_in_database", "decoy_seed")

LENGTHS = (6, 20)
MISSED = 1
RESIDUES = "ACDEFGHIKLMNPQRSTVWYKR"


def random_protein(chance: random.Random, length: int) -> str:
    return "M" + "".join(chance.choices(RESIDUES, k=length - 1))


def random_variants(chance: random.Random, sequence: str, n: int) -> list[tuple[int, str, str]]:
    """Position from 1, original and new residues; none for missing residues."""
    results = [(1, sequence[:1], "K"), (len(sequence), sequence[-1:], "R")]
    for _ in range(n):
        first, length = chance.randrange(1, len(sequence) - 4), chance.choice((1, 1, 1, 2, 3))
        new = "".join(chance.choices(RESIDUES, k=chance.choice((0, 1, 1, 1, 1, 2, 4))))
        results.append((first, sequence[first - 1 : first - 1 + length], new))
    return [pair for pair in dict.fromkeys(results) if pair[1].replace("I", "L") != pair[2].replace("I", "L")]


def digest(sequence: str) -> set[str]:
    """Return tryptic peptides (not before proline), with and without a first methionine."""
    cuts = [0, *(i + 1 for i in range(len(sequence) - 1) if sequence[i] in "KR" and sequence[i + 1] != "P"), len(sequence)]
    results = set()
    for i, start in enumerate(cuts[:-1]):
        for stop in cuts[i + 1 : i + 2 + MISSED]:
            results.add(sequence[start:stop])
            if start == 0 and sequence[0] == "M":
                results.add(sequence[1:stop])
    return {peptide for peptide in results if LENGTHS[0] <= len(peptide) <= LENGTHS[1]}


def changed(sequence: str, first: int, old: str, new: str) -> str:
    assert sequence[first - 1 : first - 1 + len(old)] == old
    return sequence[: first - 1] + new + sequence[first - 1 + len(old) :]


def written_database(folder: Path, sequences: dict[str, str], variants: dict[str, list[tuple[int, str, str]]], more: str = "") -> Path:
    text = []
    for accession, sequence in sequences.items():
        features = []
        for first, old, new in variants[accession]:
            place = f"{first}" if len(old) == 1 else f"{first}..{first + len(old) - 1}"
            note = f"{old} -> {new} (in a strain)" if new else "Missing (in a strain)"
            features.append(f'FT   VARIANT         {place}\nFT                   /note="{note}"\n')
        text.append(swiss_prot_entry(accession, f"{accession}_BOVIN", sequence, "".join(features) + more))
    path = folder / "database.dat"
    path.write_text("".join(text))
    return path


def parameters(**changes: object) -> IdentificationParameters:
    usual = {
        "enzyme": "Trypsin",
        "missed_cleavages": MISSED,
        "minimum_length": LENGTHS[0],
        "maximum_length": LENGTHS[1],
        "minimum_mass": 100.0,
        "maximum_mass": 10000.0,
        "known_variants": True,
    }
    return IdentificationParameters().changed(**{**usual, **changes})


def built(folder: Path, database: Path, settings: IdentificationParameters) -> Indexes:
    folder.mkdir()
    databases = Databases([database], [], {"database": ["x"]}, None, settings.known_variants)
    return build_indexes(databases, folder, settings, Resources(2, (), True, Progress()))


def collect_peptides(indexes: Indexes) -> tuple[set[str], set[str]]:
    """Return the peptides of targets, and those of decoys only."""
    residues = np.asarray(indexes.proteins.proteins.residues).tobytes().decode()
    result: tuple[set[str], set[str]] = (set(), set())
    for start, length in zip(indexes.peptides.position.tolist(), indexes.peptides.length.tolist(), strict=True):
        result[start >= indexes.proteins.first_decoy_residue].add(residues[start : start + length])
    return result


@pytest.fixture(params=[5, 24, 43])
def annotated(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, str], dict[str, list[tuple[int, str, str]]]]:
    chance = random.Random(request.param)
    sequences = {f"Q0000{i}": random_protein(chance, length) for i, length in enumerate((40, 90, 300, 301))}
    variants = {accession: random_variants(chance, sequence, 40) for accession, sequence in sequences.items()}
    return written_database(tmp_path, sequences, variants), sequences, variants


def test_variant_peptides_equal_digest_of_changed_proteins(annotated, tmp_path: Path) -> None:
    database, sequences, variants = annotated
    targets, decoys = collect_peptides(built(tmp_path / "index", database, parameters()))
    expected: set[str] = set()
    reverse: set[str] = set()
    for accession, sequence in sequences.items():
        for whole in (sequence, *(changed(sequence, *variant) for variant in variants[accession])):
            expected |= digest(whole)
            reverse |= digest(whole[::-1])
    assert targets == expected
    assert decoys == reverse - expected
    bare, bare_decoys = collect_peptides(built(tmp_path / "bare", database, parameters(known_variants=False)))
    added, added_decoys = len(targets - bare), len(decoys - bare_decoys)
    assert added > 200 and abs(added - added_decoys) < 0.1 * added


@pytest.mark.parametrize("decoys", ["pseudo-reverse", "shuffle"])
def test_variants_add_as_many_decoys_as_targets(annotated, tmp_path: Path, decoys: str) -> None:
    database, *_ = annotated
    # Clipping of methionine and cuts before proline differ between targets and decoys even without variants: they are excluded.
    made = {"decoys": decoys, "clip_methionine": False, "enzyme": "Trypsin/P"}
    targets, of_decoys = collect_peptides(built(tmp_path / "index", database, parameters(**made)))
    bare, bare_decoys = collect_peptides(built(tmp_path / "bare", database, parameters(**made, known_variants=False)))
    added, added_decoys = len(targets - bare), len(of_decoys - bare_decoys)
    assert added > 200 and abs(added - added_decoys) <= 0.02 * added


def test_variant_peptides_contain_a_changed_residue(annotated, tmp_path: Path) -> None:
    database, sequences, _ = annotated
    indexes = built(tmp_path / "index", database, parameters())
    proteins, peptides = indexes.proteins, indexes.peptides
    assert proteins.peptide_bounds is not None
    owner = np.repeat(np.arange(len(peptides)), np.diff(peptides.pointer))
    for start, length in zip(peptides.occurrence.tolist(), peptides.length[owner].tolist(), strict=True):
        protein = int(proteins.protein_of(np.array([start]))[0])
        if protein >= proteins.n_targets or protein < len(sequences):
            continue
        name = proteins.proteins.accession(protein)
        accession, change = name.split("|")[1], name.rpartition(":")[2]
        whole = sequences[accession]
        peptide = proteins.proteins.sequence(protein)[start - int(proteins.proteins.offsets[protein]) :][:length]
        # Clipping a methionine, or deleting part of a repeat, may give the original peptide.
        if re.fullmatch(r"[A-Z]\d\d+[A-Z]", change):
            assert peptide not in digest(whole), (name, peptide)


def test_variants_that_cannot_be_applied_are_counted(tmp_path: Path) -> None:
    more = (
        'FT   VARIANT         5\nFT                   /note="W -> K"\n'  # the sequence has another residue at this position
        'FT   VARIANT         6\nFT                   /note="Requires a partner"\n'
        'FT   VARIANT         7\nFT                   /note="I -> L (of the same mass)"\n'
    )
    path = written_database(tmp_path, {"Q00001": "MAAAAAILLKAAAAAAAAAAAAAAAAA"}, {"Q00001": [(9, "L", "V"), (9, "L", "V")]}, more)
    result = with_variants(read_proteins([path]), maximum_length=20, cleaves=enzyme("Trypsin").cleavage_table())
    assert (result.n_variants, result.n_others) == (1, 3)
    assert [result.proteins.accession(i) for i in range(len(result.proteins))] == ["sp|Q00001|Q00001_BOVIN", "sp|Q00001|Q00001_BOVIN:L9V"]


def test_peptide_index_has_no_variants_unless_requested(annotated, tmp_path: Path) -> None:
    database, *_ = annotated
    settings = parameters(known_variants=False)
    digestion = Digestion.from_settings(settings, "specific")
    plain = Databases([database], [], {"database": ["x"]})
    assert key_parts(plain, settings, digestion).keys() == {*DECOY_KEYS, "format", "inputs", "digestion"}
    assert key_parts(plain._replace(has_variants=True), settings, digestion) != key_parts(plain, settings, digestion)
    built(tmp_path / "index", database, settings)
    assert not list((tmp_path / "index").glob("protein_kept*"))


def test_variants_reject_existing_decoys(tmp_path: Path) -> None:
    sequences = {"Q00001": "MAAAAAALLK", "D00001": "KLLAAAAAAM"}
    path = written_database(tmp_path, sequences, {"Q00001": [(9, "L", "V")], "D00001": []})
    with pytest.raises(ParameterError, match="known_variants: decoys in the database have no variants"):
        built(tmp_path / "index", path, parameters(decoys="existing", decoy_prefix="sp|D"))


def test_database_without_features_has_no_variants(tmp_path: Path) -> None:
    path = tmp_path / "plain.fasta"
    path.write_text(">P\nMAAAAAALLK\n")
    proteins: Proteins = read_proteins([path])
    result = with_variants(proteins, maximum_length=20, cleaves=enzyme("Trypsin").cleavage_table())
    assert (result.n_variants, result.n_others, len(result.proteins)) == (0, 0, 1)


def test_variant_peptides_of_selected_proteins_are_unchanged(annotated, tmp_path: Path) -> None:
    database, *_ = annotated
    settings = parameters()
    proteins, peptides = built(tmp_path / "index", database, settings)
    residues = np.asarray(proteins.proteins.residues).tobytes().decode()
    owner = np.repeat(np.arange(len(peptides)), np.diff(peptides.pointer))
    chosen = np.arange(0, len(proteins), 3)
    occurrence = np.asarray(peptides.occurrence).astype(np.int64)
    is_of_chosen = np.isin(proteins.protein_of(occurrence), chosen)
    expected = {
        (start, residues[start : start + length])
        for start, length in zip(occurrence[is_of_chosen].tolist(), peptides.length[owner][is_of_chosen].tolist(), strict=True)
    }
    (tmp_path / "some").mkdir()
    digestion = Digestion.from_settings(settings, "specific")
    some = build_peptide_index(
        tmp_path / "some", proteins, digestion, Resources(2, [], True, Progress()), memory_bytes=1 << 20, selected=chosen
    )
    of_some = np.repeat(np.arange(len(some)), np.diff(some.pointer))
    results = zip(np.asarray(some.occurrence).tolist(), some.length[of_some].tolist(), strict=True)
    assert {(start, residues[start : start + length]) for start, length in results} == expected


@pytest.mark.parametrize("decoys", ["reverse", "shuffle"])
def test_variant_peptides_are_located_in_complete_proteins(annotated, tmp_path: Path, decoys: str) -> None:
    database, sequences, variants = annotated
    proteins = built(tmp_path / "index", database, parameters(decoys=decoys)).proteins
    expected = {f"{name}:{old}{first}{new or 'del'}": (name, first, old, new) for name in sequences for first, old, new in variants[name]}
    begins, lengths, features = proteins.first_in_whole(), proteins.whole_lengths(), proteins.features
    assert features is not None and proteins.n_targets == len(sequences) + len(expected)
    for i in range(proteins.n_targets):
        accession, whole, begin = proteins.proteins.accession(i), proteins.whole_sequence(i), int(begins[i])
        target, decoy = proteins.proteins.sequence(i), proteins.whole_sequence(proteins.n_targets + i)
        assert whole[begin : begin + len(target)] == target and len(whole) == lengths[i] == lengths[proteins.n_targets + i] == len(decoy)
        if decoys == "reverse":
            assert decoy == whole[::-1]
        if ":" not in accession:
            assert whole == target == sequences[accession.split("|")[1]]
            continue
        key = accession.split("|")[1] + ":" + accession.rpartition(":")[2]
        name, first, old, new = expected[key]
        assert whole == changed(sequences[name], first, old, new)
        (row,) = range(features.offsets[i], features.offsets[i + 1])
        marked = (int(features.first[row]) + begin, int(features.last[row]) + begin)
        assert marked == ((first, first + len(new) - 1) if new else (max(1, first - 1), min(first, len(whole))))
