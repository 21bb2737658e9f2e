"""Known modifications as forms of peptides, and those of decoys, against an enumeration in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import sequence_mass
from proteoscope.engine.chemistry.modifications import SearchModification, annotated_names, parse_modification
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes, key_parts
from proteoscope.engine.peptides.known_forms import SearchedForms
from proteoscope.engine.peptides.peptide_index import build_peptide_index, open_peptide_index
from proteoscope.engine.peptides.protein_index import open_protein_index
from proteoscope.engine.project.index_store import InvalidIndexError
from tests.engine.formats.entry_files import swiss_prot_entry

DECOY_KEYS = ("decoys", "decoy_prefix", "decoy_suffix", "decoys_in_database", "decoy_seed")

LENGTHS = (5, 20)
MISSED = 1
RESIDUES = "ACDEFGHIKLMNPQRSTVWYKRSST"
Sites = dict[int, list[str]]
"""UniProt's names by residue number, from 1."""
Form = tuple[str, tuple[tuple[int, str], ...]]
"""A sequence and its modifications by position: 0 the N-terminus, the length plus 1 the C-terminus."""


def random_sites(chance: random.Random, sequence: str, n: int) -> Sites:
    """Return names of modifications of residues, at both ends and elsewhere."""
    names = defaultdict(list)
    for name, residue in annotated_names():
        names[residue].append(name)
    result: Sites = defaultdict(list)
    for at in [1, 2, len(sequence), *(chance.randrange(1, len(sequence) + 1) for _ in range(n))]:
        result[at].append(chance.choice(names[sequence[at - 1]]))
    return result


def written_database(folder: Path, sequences: dict[str, str], sites: dict[str, Sites], more: str = "") -> Path:
    text = []
    for accession, sequence in sequences.items():
        features = [
            f'FT   {"LIPID  " if "oyl " in name else "MOD_RES"}         {at}\nFT                   /note="{name}; by something"\n'
            for at, result in sites[accession].items()
            for name in result
        ]
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
        "known_modifications": True,
        "maximum_modifications": 2,
        "maximum_forms": 100_000,
    }
    return IdentificationParameters().changed(**{**usual, **changes})


def searched(settings: IdentificationParameters) -> SearchedForms:
    variable = tuple(parse_modification(name) for name in settings.variable_modifications)
    return SearchedForms(variable, settings.maximum_modifications, settings.maximum_forms)


def built(folder: Path, database: Path, settings: IdentificationParameters) -> Indexes:
    folder.mkdir()
    forms = searched(settings) if settings.known_modifications else None
    databases = Databases([database], [], {"database": ["x"]}, None, settings.known_variants, forms)
    return build_indexes(databases, folder, settings, Resources(2, (), True, Progress()))


def entry_sequence(indexes: Indexes, entry: int) -> str:
    start, length = int(indexes.peptides.position[entry]), int(indexes.peptides.length[entry])
    return np.asarray(indexes.proteins.proteins.residues)[start : start + length].tobytes().decode()


def collect_forms(indexes: Indexes) -> tuple[dict[Form, float], dict[Form, float]]:
    """Return the forms of targets, and of decoys only, with their masses."""
    modifications, site, modification = indexes.peptides.forms
    result: tuple[dict[Form, float], dict[Form, float]] = ({}, {})
    if indexes.proteins.known_modifications is None:
        return result
    for entry in np.flatnonzero(modifications).tolist():
        row = modifications[entry]
        names = [str(indexes.proteins.known_modifications.modifications[m]) for m in modification[row].tolist() if m != 255]
        assert [*modification[row].tolist()] == sorted(modification[row].tolist())
        placed = tuple(sorted(zip(site[row].tolist(), names, strict=False)))
        side = result[int(indexes.peptides.position[entry]) >= indexes.proteins.first_decoy_residue]
        form = entry_sequence(indexes, entry), placed
        assert form not in side, "a form twice"
        side[form] = float(indexes.peptides.mass[entry])
    return result


def digest(sequence: str, *, clip: bool = True) -> set[tuple[int, str]]:
    """Return tryptic peptides (not before proline) and their starts, from 1, with and without the first methionine."""
    cuts = [0, *(i + 1 for i in range(len(sequence) - 1) if sequence[i] in "KR" and sequence[i + 1] != "P"), len(sequence)]
    results = set()
    for i, start in enumerate(cuts[:-1]):
        for stop in cuts[i + 1 : i + 2 + MISSED]:
            results.add((start + 1, sequence[start:stop]))
            if clip and start == 0 and sequence[0] == "M" and stop > 1:
                results.add((2, sequence[1:stop]))
    return {(start, peptide) for start, peptide in results if LENGTHS[0] <= len(peptide) <= LENGTHS[1]}


def terminus_name(modification: SearchModification) -> str:
    return "" if modification.position == "anywhere" else modification.position[-6]


def carried(start: int, peptide: str, sites: Sites, variable: tuple[SearchModification, ...], whole: str) -> set[tuple[int, str, str]]:
    """Return site, modification and terminus of a peptide's modifications, from the names at one of its occurrences."""
    results = set()
    for at, names in sites.items():
        for name in names:
            if not 0 <= at - start < len(peptide):
                continue
            modification, place = annotated_names()[name, whole[at - 1]], at - start + 1
            end = terminus_name(modification)
            if end and place != (1 if end == "N" else len(peptide)):
                continue
            is_first, is_last = start == 1 or (start == 2 and whole[0] == "M"), start + len(peptide) - 1 == len(whole)
            if any(
                abs(other.mass - modification.mass) < 1e-4
                and terminus_name(other) == end
                and (not other.residues or whole[at - 1] in other.residues)
                and (not other.position.startswith("protein") or (is_first if end == "N" else is_last))
                for other in variable
            ):
                continue
            if end and not modification.residues:
                place = 0 if end == "N" else len(peptide) + 1
            results.add((place, str(modification), end))
    return results


def subsets(pairs: set[tuple[int, str, str]], most: int) -> Iterator[tuple[tuple[int, str], ...]]:
    for size in range(1, most + 1):
        for chosen in combinations(sorted(pairs), size):
            places, ends = [place for place, _, _ in chosen], [end for _, _, end in chosen if end]
            if len(set(places)) == size and len(set(ends)) == len(ends):
                yield tuple((place, name) for place, name, _ in chosen)


def expected_forms(sequences: dict[str, str], sites: dict[str, Sites], settings: IdentificationParameters) -> dict[Form, float]:
    variable = tuple(parse_modification(name) for name in settings.variable_modifications)
    pairs: dict[str, set[tuple[int, str, str]]] = defaultdict(set)
    for accession, sequence in sequences.items():
        for start, peptide in digest(sequence):
            pairs[peptide] |= carried(start, peptide, sites[accession], variable, sequence)
    fixed = 57.021464
    return {
        (peptide, placed): sequence_mass(peptide)
        + sum(parse_modification(name).mass for _, name in placed)
        + fixed
        * sum(residue == "C" and (i, True) not in {(place, "(C" in name) for place, name in placed} for i, residue in enumerate(peptide, 1))
        for peptide, result in pairs.items()
        for placed in subsets(result, settings.maximum_modifications)
    }


@pytest.fixture(params=[5, 24])
def annotated(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, str], dict[str, Sites]]:
    chance = random.Random(request.param)
    sequences = {f"Q0000{i}": "M" + "".join(chance.choices(RESIDUES, k=length)) for i, length in enumerate((40, 90, 200))}
    # Proteins share peptides and have annotations at different residues.
    sequences["Q00009"] = sequences["Q00002"][50:150]
    sites = {accession: random_sites(chance, sequence, len(sequence) // 3) for accession, sequence in sequences.items()}
    return written_database(tmp_path, sequences, sites), sequences, sites


@pytest.mark.parametrize(
    "variable", [("Oxidation (M)",), ("Phospho (ST)", "Acetyl (Protein N-term)", "Methyl (K)", "Gln->pyro-Glu (N-term Q)")]
)
def test_forms_with_known_modifications_equal_enumeration(annotated, tmp_path: Path, variable: tuple[str, ...]) -> None:
    database, sequences, sites = annotated
    settings = parameters(variable_modifications=variable)
    targets, decoys = collect_forms(built(tmp_path / "index", database, settings))
    expected = expected_forms(sequences, sites, settings)
    assert set(targets) == set(expected)
    for form, mass in targets.items():
        assert mass == pytest.approx(expected[form], abs=1e-6), form
    assert len(targets) > 300 and 0.7 < len(decoys) / len(targets) < 1.3


@pytest.mark.parametrize("change", ["C", "", "GGK", "R"])
def test_variants_retain_known_modifications_of_other_residues(annotated, tmp_path: Path, change: str) -> None:
    _, sequences, sites = annotated
    of_all, sites_of_all, changes = dict(sequences), dict(sites), []
    at = 17
    for accession, sequence in sequences.items():
        changed = sequence[: at - 1] + change + sequence[at + 1 :]
        changes.append(f"{sequence[at - 1 : at + 1]} -> {change} (in X)" if change else "Missing (in X)")
        of_all[f"{accession}:v"], longer = changed, len(changed) - len(sequence)
        sites_of_all[f"{accession}:v"] = {
            place + (longer if place > at else 0): names for place, names in sites[accession].items() if place not in (at, at + 1)
        }
    text = ""
    for accession, variant in zip(sequences, changes, strict=True):
        (tmp_path / accession).mkdir()
        more = f'FT   VARIANT         {at}..{at + 1}\nFT                   /note="{variant}"\n'
        text += written_database(tmp_path / accession, {accession: sequences[accession]}, sites, more).read_text()
    database = tmp_path / "variants.dat"
    database.write_text(text)
    settings = parameters(known_variants=True)
    indexes = built(tmp_path / "index", database, settings)
    targets, decoys = collect_forms(indexes)
    assert set(targets) == set(expected_forms(of_all, sites_of_all, settings))
    assert set(targets) - set(expected_forms(sequences, sites, settings))
    assert 0.7 < len(decoys) / len(targets) < 1.3
    without = built(tmp_path / "without", database, parameters())
    assert indexes.proteins.known_modifications.message() == without.proteins.known_modifications.message()


@pytest.mark.parametrize("decoys", ["reverse", "pseudo-reverse", "shuffle"])
def test_decoys_have_as_many_modified_forms_as_targets(tmp_path: Path, decoys: str) -> None:
    chance = random.Random(decoys)
    sequences = {f"Q0000{i}": "M" + "".join(chance.choices(RESIDUES, k=800)) for i in range(4)}
    database = written_database(tmp_path, sequences, {name: random_sites(chance, sequence, 300) for name, sequence in sequences.items()})
    # Clipping of methionine and cuts before proline differ between targets and decoys in any case: they are excluded.
    settings = parameters(decoys=decoys, enzyme="Trypsin/P", clip_methionine=False)
    targets, of_decoys = collect_forms(built(tmp_path / "index", database, settings))
    assert len(targets) > 2000 and abs(len(of_decoys) - len(targets)) < 0.05 * len(targets)
    at_ends = [sum(len(placed) == 1 and "term" in placed[0][1] for _, placed in forms) for forms in (targets, of_decoys)]
    assert at_ends[0] > 50 and abs(at_ends[0] - at_ends[1]) < 0.2 * at_ends[0]


def test_reversed_proteins_retain_annotated_modifications(annotated, tmp_path: Path) -> None:
    database, sequences, sites = annotated
    proteins = built(tmp_path / "index", database, parameters()).proteins
    assert proteins.known_modifications is not None
    position = proteins.known_modifications.position.astype(np.int64)
    protein = proteins.protein_of(position)
    residue = position - np.asarray(proteins.proteins.offsets)[protein] + 1
    results = defaultdict(set)
    for number, at, kind in zip(protein.tolist(), residue.tolist(), proteins.known_modifications.modification.tolist(), strict=True):
        modification = proteins.known_modifications.modifications[kind]
        if modification.position == "anywhere":
            results[number].add((at, str(modification)))
            assert proteins.proteins.sequence(number)[at - 1] in modification.residues
    for i, (accession, sequence) in enumerate(sequences.items()):
        on_residues = {
            (at, str(modification))
            for at, names in sites[accession].items()
            for modification in (annotated_names()[name, sequence[at - 1]] for name in names)
            if modification.position == "anywhere"
        }
        assert results[i] == on_residues
        assert results[proteins.n_targets + i] == {(len(sequence) + 1 - at, name) for at, name in on_residues}


def test_acetyl_after_clipped_methionine_is_terminal_in_decoys(tmp_path: Path) -> None:
    path = written_database(tmp_path, {"Q00001": "MAGEEDLVIKTTTLLLLDER"}, {"Q00001": {2: ["N-acetylalanine"], 3: ["N-acetylglycine"]}})
    targets, decoys = collect_forms(built(tmp_path / "index", path, parameters()))
    assert set(targets) == {
        ("AGEEDLVIK", ((0, "Acetyl (N-term)"),)),
        ("AGEEDLVIKTTTLLLLDER", ((0, "Acetyl (N-term)"),)),
    }
    assert set(decoys) == {("REDLLLLTTTK", ((0, "Acetyl (N-term)"),))}


def test_known_modification_replaces_fixed_modification(tmp_path: Path) -> None:
    sequence, sites = "MCKACDEFGHKCAAAAAR", {2: ["N-acetylcysteine"], 5: ["S-palmitoyl cysteine"], 11: ["N6-acetyllysine"]}
    path = written_database(tmp_path, {"Q00001": sequence}, {"Q00001": sites})
    settings = parameters(fixed_modifications=("Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)"))
    targets, _ = collect_forms(built(tmp_path / "index", path, settings))
    label, carbamidomethyl = 229.162932, 57.021464
    form = targets["ACDEFGHK", ((2, "Palmitoyl (C)"), (8, "Acetyl (K)"))]
    assert form == pytest.approx(sequence_mass("ACDEFGHK") + 238.229666 + 42.010565 + label, abs=1e-6)
    other = targets["CKACDEFGHK", ((0, "Acetyl (N-term)"), (4, "Palmitoyl (C)"))]
    assert other == pytest.approx(sequence_mass("CKACDEFGHK") + 42.010565 + 238.229666 + carbamidomethyl + 2 * label, abs=1e-6)


def test_peptide_index_of_modified_forms_is_equal_in_parts(annotated, tmp_path: Path) -> None:
    database, *_ = annotated
    settings = parameters()
    proteins, whole = built(tmp_path / "index", database, settings)
    digestion, resources = Digestion.from_settings(settings, "specific"), Resources(2, [], True, Progress())
    for folder in ("parts", "some"):
        (tmp_path / folder).mkdir()
    parts = build_peptide_index(tmp_path / "parts", proteins, digestion, resources, memory_bytes=2000, forms=searched(settings))
    for name in ("mass", "position", "length", "flags", "letters", "pointer", "occurrence"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), name)
    for part, other in zip(parts.forms, whole.forms, strict=True):
        np.testing.assert_array_equal(part, other)
    # Proteins that share peptides have annotations at different residues.
    chosen = np.array([0, 3, 4, 7])
    some = build_peptide_index(
        tmp_path / "some", proteins, digestion, resources, memory_bytes=1 << 20, forms=searched(settings), selected=chosen
    )
    of_some, _ = collect_forms(Indexes(proteins, some))
    of_all, _ = collect_forms(Indexes(proteins, whole))
    assert 0 < len(of_some) < len(of_all)
    assert {form for form in of_some if form not in of_all} == set()


def test_number_of_modified_forms_is_limited_to_the_simplest(tmp_path: Path) -> None:
    sequence = "SSTTSSTTSSTTSSTTSSK"
    sites = {at: ["Phosphoserine" if residue == "S" else "Phosphothreonine"] for at, residue in enumerate(sequence[:-1], 1)}
    path = written_database(tmp_path, {"Q00001": sequence}, {"Q00001": sites})
    targets, _ = collect_forms(built(tmp_path / "index", path, parameters(maximum_forms=30, maximum_modifications=6)))
    assert Counter(len(placed) for _, placed in targets) == {1: 18, 2: 12}


def test_known_modifications_without_mass_are_counted(tmp_path: Path) -> None:
    more = (
        'FT   MOD_RES         2\nFT                   /note="Some adduct"\n'
        'FT   MOD_RES         3\nFT                   /note="Phosphoserine"\n'  # the sequence has another residue at this position
        'FT   CARBOHYD        4\nFT                   /note="N-linked (GlcNAc...) asparagine"\n'
        'FT   MOD_RES         5..6\nFT                   /note="Phosphoserine"\n'
    )
    path = written_database(tmp_path, {"Q00001": "MAANSSSSSKAAAAAAAK"}, {"Q00001": {7: ["Phosphoserine"]}}, more)
    modifications = built(tmp_path / "index", path, parameters()).proteins.known_modifications
    assert modifications is not None and (modifications.n_sites, modifications.n_others, modifications.n_glycans) == (1, 4, 1)
    assert modifications.message() == (
        "1 known modifications are searched at their residues in addition; 4 others have no known mass (1 of them glycans)"
    )


def test_database_without_annotations_gives_plain_peptide_index(tmp_path: Path) -> None:
    path = written_database(tmp_path, {"Q00001": "MAANSSSSSKAAAAAAAK"}, {"Q00001": {}})
    for name, is_requested in (("requested", True), ("without", False)):
        built(tmp_path / name, path, parameters(known_modifications=is_requested))
    first, second = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("requested", "without"))
    assert first == second and not any("known" in name for name in first)


def test_index_key_depends_on_all_settings_of_modified_forms(tmp_path: Path) -> None:
    settings = parameters()
    digestion = Digestion.from_settings(settings, "specific")
    plain = Databases([], [], {"database": ["x"]})
    without = key_parts(plain, settings, digestion)
    assert without.keys() == {*DECOY_KEYS, "format", "inputs", "digestion"}
    others = (settings, *(settings.changed(**change) for change in ({"maximum_modifications": 1}, {"variable_modifications": ()})))
    keys = [str(key_parts(plain._replace(forms=searched(choice)), choice, digestion)) for choice in others]
    assert len({str(without), *keys}) == 4


def test_known_modification_beyond_last_residue_is_rejected(annotated, tmp_path: Path) -> None:
    database, *_ = annotated
    built(tmp_path / "index", database, parameters())
    n_residues = len(open_protein_index(tmp_path / "index").proteins.residues)
    path = tmp_path / "index" / "known_position.npy"
    for position, is_valid in ((n_residues - 1, True), (n_residues, False)):
        np.save(path, np.append(np.load(path)[:-1], np.uint32(position)))
        with nullcontext() if is_valid else pytest.raises(InvalidIndexError, match="out of bounds"):
            open_protein_index(tmp_path / "index")


def test_known_modifications_reject_existing_decoys(tmp_path: Path) -> None:
    path = written_database(tmp_path, {"Q00001": "MAAAAAALLK", "D00001": "KLLAAAAAAM"}, {"Q00001": {2: ["N-acetylalanine"]}, "D00001": {}})
    with pytest.raises(ParameterError, match="known_modifications: decoys in the database have no known modifications"):
        built(tmp_path / "index", path, parameters(decoys="existing", decoy_prefix="sp|D"))


@pytest.mark.parametrize(
    ("column", "corrupt"),
    [
        ("peptide_known", lambda values: values * 0 + len(values)),
        ("peptide_known", lambda values: values[:-1]),
        ("peptide_known_site", lambda values: np.where(values == 255, values, 200).astype(np.uint8)),
        ("peptide_known_site", lambda values: values[:-1]),
        ("peptide_known_modification", lambda values: np.where(values == 255, values, 200).astype(np.uint8)),
        ("peptide_known_modification", lambda values: values * 0),
        ("known_position", lambda values: values[::-1].copy()),
        ("known_position", lambda values: values + np.uint32(1 << 31)),
        ("known_modification", lambda values: values + np.uint8(100)),
    ],
)
def test_index_with_corrupt_known_modifications_is_rejected(
    annotated, tmp_path: Path, column: str, corrupt: Callable[[NDArray], NDArray]
) -> None:
    database, *_ = annotated
    settings = parameters()
    built(tmp_path / "index", database, settings)
    path = tmp_path / "index" / f"{column}.npy"
    np.save(path, corrupt(np.load(path)))
    with pytest.raises(InvalidIndexError):
        proteins = open_protein_index(tmp_path / "index")
        open_peptide_index(tmp_path / "index", proteins, Digestion.from_settings(settings, "specific"))


def test_index_with_unreadable_known_modification_is_rejected(annotated, tmp_path: Path) -> None:
    database, *_ = annotated
    built(tmp_path / "index", database, parameters())
    path = tmp_path / "index" / "known_modifications.json"
    counts = json.loads(path.read_text())
    path.write_text(json.dumps(counts | {"modifications": "nonsense of no mass"}))
    with pytest.raises(InvalidIndexError, match="no known modifications"):
        open_protein_index(tmp_path / "index")
