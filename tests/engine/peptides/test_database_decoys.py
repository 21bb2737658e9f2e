"""Decoys in a database are recognised by every usual name and by sequence; natural proteins are not recognised as decoys."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.imported.parameters import ImportParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.peptides.database_decoys import DatabaseDecoys, DecoyTag, are_tagged, find_database_decoys
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes, open_indexes

Records = list[tuple[str, str]]
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


def natural(n: int, seed: int = 1, shortest: int = 60, longest: int = 300) -> Records:
    chance = random.Random(seed)
    sequences = ("M" + "".join(chance.choices(RESIDUES, k=chance.randint(shortest, longest))) for _ in range(n))
    return [(f"sp|P{10000 + i}|N{i}_HUMAN", sequence) for i, sequence in enumerate(sequences)]


def detected(records: Records, n_database: int | None = None, prefix: str = "") -> DatabaseDecoys | None:
    sequences, names = Texts.from_strings(sequence for _, sequence in records), Texts.from_strings(name for name, _ in records)
    return find_database_decoys(sequences.characters, sequences.offsets, names, n_database=n_database, prefix=prefix)


def shuffled(sequence: str) -> str:
    """Return a random sequence, whose residue counts differ too, so that decoys cannot be recognised by sequence."""
    return "".join(random.Random(sequence).choices(RESIDUES, k=len(sequence)))


def pseudo_reversed(sequence: str) -> str:
    return "".join(part[-2::-1] + part[-1] if part[-1] in "KR" else part[::-1] for part in re.findall("[^KR]*[KR]|[^KR]+$", sequence))


def switched(sequence: str) -> str:
    """Return a reversed protein, each K and R exchanged with the residue before it, as in MaxQuant."""
    residues = list(sequence[::-1])
    for i in range(1, len(residues)):
        if residues[i] in "KR":
            residues[i - 1], residues[i] = residues[i], residues[i - 1]
    return "".join(residues)


MIRRORS: dict[str, Callable[[str], str]] = {
    "reversed": lambda sequence: sequence[::-1],
    "first methionine stays": lambda sequence: sequence[0] + sequence[:0:-1],
    "last residue stays": lambda sequence: sequence[-2::-1] + sequence[-1],
    "first methionine left out": lambda sequence: sequence[:0:-1],
    "tryptic stretches": pseudo_reversed,
    "Lys-C stretches": lambda sequence: "".join(
        part[-2::-1] + part[-1] if part[-1] == "K" else part[::-1] for part in re.findall("[^K]*K|[^K]+$", sequence)
    ),
    "switched": switched,
    "chymotryptic stretches": lambda sequence: "".join(
        part[-2::-1] + part[-1] if part[-1] in "FWYL" else part[::-1] for part in re.findall("[^FWYL]*[FWYL]|[^FWYL]+$", sequence)
    ),
}


def second_part(name: str) -> str:
    """Return the name reduced to database and accession, with a decoy suffix."""
    return "|".join(name.split("|")[:2]) + "_REVERSED"


NAMES: dict[str, tuple[Callable[[str], str], DecoyTag]] = {
    **{
        prefix: (lambda name, prefix=prefix: prefix + name, DecoyTag(prefix, is_suffix=False))  # type: ignore[misc]
        for prefix in (
            "rev_",
            "REV_",
            "Rev_",
            "REV__",
            "XXX_",
            "xxx_",
            "reverse_",
            "Reverse_",
            "REVERSED_",
            "decoy_",
            "DECOY-",
            "DECOY_",
            "##",
            "decoy:",
            "###REV###",
            "rnd_",
            "random_",
            "shuffled_",
            "rev.",
            "DECOY|",
        )
    },
    **{
        suffix: (lambda name, suffix=suffix: name + suffix, DecoyTag(suffix, is_suffix=True))  # type: ignore[misc]
        for suffix in ("_rev", "-rev", "_REV", "_REVERSED", "-decoy", "_DECOY", ":reversed", "_shuffled", "##")
    },
    **{
        f"in front of the second part: {tag}": (
            lambda name, tag=tag: name.replace("|", f"|{tag}", 1),
            DecoyTag(tag, is_suffix=False),  # type: ignore[misc]
        )
        for tag in ("rev_", "REV_", "DECOY-", "XXX_", "##")
    },
    "in front of all parts": (lambda name: "sp|rev_" + "|rev_".join(name.split("|")[1:]), DecoyTag("rev_", is_suffix=False)),
    "at the end of the second part": (lambda name: second_part(name) + "|" + name.split("|")[2], DecoyTag("_REVERSED", is_suffix=True)),
    "at the end of both": (lambda name: second_part(name) + "|" + name.split("|")[2] + "_REVERSED", DecoyTag("_REVERSED", is_suffix=True)),
    "a bar after it": (lambda name: second_part(name) + "|", DecoyTag("_REVERSED", is_suffix=True)),
}


@pytest.mark.parametrize("naming", NAMES)
@pytest.mark.parametrize("decoy_of", [MIRRORS["reversed"], shuffled], ids=["mirror", "other residues"])
def test_decoys_are_detected_by_name(naming: str, decoy_of: Callable[[str], str]) -> None:
    named, tag = NAMES[naming]
    targets = natural(200)
    records = targets + [(named(name), decoy_of(sequence)) for name, sequence in targets]
    random.Random(3).shuffle(records)
    answer = detected(records)
    assert answer is not None
    assert answer.is_decoy.tolist() == [record not in targets for record in records]
    assert (answer.n_by_name, answer.n_by_sequence, answer.tag) == (200, 0, tag)
    names = Texts.from_strings(name for name, _ in records)
    assert np.array_equal(are_tagged(names, *(("", tag.text) if tag.is_suffix else (tag.text, ""))), answer.is_decoy)


def test_decoys_are_detected_by_prefixes_of_imported_results() -> None:
    targets = natural(50)
    for prefix in ImportParameters().decoy_prefixes:
        answer = detected(targets + [(prefix + name, shuffled(sequence)) for name, sequence in targets])
        assert answer is not None and answer.tag == DecoyTag(prefix, is_suffix=False)


@pytest.mark.parametrize("mirror", MIRRORS)
@pytest.mark.parametrize("order", ["after", "alternating", "before"])
def test_decoys_with_ordinary_names_are_detected_by_sequence(mirror: str, order: str) -> None:
    targets = natural(200)
    decoys = [(f"tr|Q{number}|X", MIRRORS[mirror](sequence)) for number, (_, sequence) in enumerate(targets)]
    records = targets + decoys if order == "after" else [record for pair in zip(targets, decoys, strict=True) for record in pair]
    if order == "before":
        if mirror in ("first methionine stays", "tryptic stretches", "Lys-C stretches", "chymotryptic stretches"):
            pytest.skip("both of a pair begin with methionine: nothing shows which one is the decoy")
        records = decoys + targets
    answer = detected(records)
    assert answer is not None
    assert (answer.n_by_name, answer.n_by_sequence, answer.tag) == (0, 200, None)
    assert answer.is_decoy.tolist() == [record in decoys for record in records]


@pytest.mark.parametrize(
    ("named", "tag"),
    [
        ("foo-{}", DecoyTag("foo-", is_suffix=False)),
        ("{}.mirror", DecoyTag(".mirror", is_suffix=True)),
    ],
)
def test_unusual_decoy_tag_is_detected_from_reversed_sequences(named: str, tag: DecoyTag) -> None:
    targets = natural(60)
    answer = detected(targets + [(named.format(name), sequence[::-1]) for name, sequence in targets])
    assert answer is not None and answer.n_by_sequence == 60 and answer.tag == tag


def test_decoys_with_several_prefixes_are_all_detected() -> None:
    targets = natural(120)
    names = ["rev_{}", "{}_REVERSED", "unsaid{}"]
    decoys = [(names[i % 3].format(name if i % 3 < 2 else i), sequence[::-1]) for i, (name, sequence) in enumerate(targets)]
    answer = detected(targets + decoys)
    assert answer is not None and answer.is_decoy.tolist() == [False] * 120 + [True] * 120
    assert (answer.n_by_name, answer.n_by_sequence, answer.tag) == (80, 40, None)


def test_decoys_among_few_contaminants_are_detected() -> None:
    targets, contaminants = natural(3000, longest=80), natural(30, seed=2)
    renamed = [(f"CONTAM{i}", sequence) for i, (_, sequence) in enumerate(contaminants)]
    for decoys in (
        [(f"rev_{i}", shuffled(sequence)) for i, (_, sequence) in enumerate(contaminants)],
        [(f"X{i}", sequence[::-1]) for i, (_, sequence) in enumerate(contaminants)],
    ):
        answer = detected(targets + renamed + decoys, n_database=3000)
        assert answer is not None and np.flatnonzero(answer.is_decoy).tolist() == list(range(3030, 3060))


def test_decoys_of_only_two_proteins_are_detected() -> None:
    targets = natural(2)
    for decoys in ([(f"rev_{name}", shuffled(sequence)) for name, sequence in targets], [("A", targets[0][1][::-1])]):
        answer = detected(targets + decoys)
        assert answer is not None and answer.is_decoy.tolist() == [False, False] + [True] * len(decoys)


HIV_REV = [(f"sp|P{i:05}|REV_HV1{i % 10}{chr(65 + i % 26)}", sequence) for i, (_, sequence) in enumerate(natural(50, seed=9))]


@pytest.mark.parametrize(
    "others",
    [
        HIV_REV,
        [("sp|Q9UBZ9|REV1_HUMAN", "MK" * 40), ("sp|P04618|REV_HV1H2", "MR" * 40)],
        [(f"REV_HV1{i:02}", sequence) for i, (_, sequence) in enumerate(natural(50, seed=9))],
        [("rev_lncRNA", "MAGIC" * 9), ("XXX_1", "MAGIK" * 9), ("contig_rev", "MACIK" * 9)],
        [("P1", "MKKAAKKM"), ("P2", "MAAKKM"), ("P3", "MKKAAM"), ("P4", "MK"), ("P5", "KM")],
        [("P1", "MAGICKCIGAM"), ("P2", "MAGICKCIGAM")],
        [("P1", "MAGICKWLDERSTVAGILKDEFGHIKPNQRSTVWY"), ("P2", "MAGICKLWDERSTVAGILKDEFGHIKPNQRSTVWY")],
    ],
    ids=["HIV Rev", "entry names", "bare entry names", "few words", "short mirrors", "palindromes", "exchanged residues"],
)
def test_natural_proteins_are_not_detected_as_decoys(others: Records) -> None:
    assert detected(others) is None
    assert detected(natural(100) + others) is None


def test_few_reversed_sequences_are_not_detected_as_decoys() -> None:
    targets = natural(400)
    assert detected(targets + [(f"Q{i}", sequence[::-1]) for i, (_, sequence) in enumerate(targets[:9])]) is None
    assert detected(targets + [(f"Q{i}", sequence[::-1]) for i, (_, sequence) in enumerate(targets[:12])]) is not None


def test_shuffled_proteins_are_not_detected_as_decoys() -> None:
    """Check shuffled proteins, which are needed for entrapment and do not bias error rates."""
    targets = natural(200, longest=3000)
    mixed = [(f"Q{i}", "".join(random.Random(sequence).sample(sequence, len(sequence)))) for i, (_, sequence) in enumerate(targets)]
    assert detected(targets + mixed) is None


def test_short_random_proteins_are_not_detected_as_decoys() -> None:
    chance = random.Random(5)
    assert detected([(f"P{i}", "".join(chance.choices("AKR", k=chance.randint(0, 9)))) for i in range(3000)]) is None
    assert detected([(f"P{i}", "".join(chance.choices(RESIDUES, k=chance.randint(5, 29)))) for i in range(3000)]) is None


def test_configured_decoy_prefix_detects_even_a_single_decoy() -> None:
    answer = detected([*natural(100), ("mine_P1", "MAGICK")], prefix="mine_")
    assert answer is not None and np.flatnonzero(answer.is_decoy).tolist() == [100]


def test_no_decoys_are_detected_in_natural_databases(shared_data: Path) -> None:
    for path in sorted((shared_data / "proteomes").glob("*.fasta")):
        proteins = read_proteins([path])
        names = Texts(np.asarray(proteins.accession_bytes), np.asarray(proteins.accession_offsets))
        assert find_database_decoys(proteins.residues, np.asarray(proteins.offsets), names) is None, path.name


def written(path: Path, records: Records) -> Path:
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in records), encoding="ascii")
    return path


def built(folder: Path, files: list[Path], contaminants: list[Path] | None = None, parameters: object = None, **changes: object) -> Indexes:
    folder.mkdir(exist_ok=True)
    settings = parameters or IdentificationParameters(**changes)  # type: ignore[arg-type]
    return build_indexes(Databases(files, contaminants or [], {}), folder, settings, Resources(threads=1))  # type: ignore[arg-type]


TARGETS = natural(40)
REVERSED = [(f"rev_{name}", sequence[::-1]) for name, sequence in TARGETS]
UNNAMED = [(f"Q{i}", sequence[::-1]) for i, (_, sequence) in enumerate(TARGETS)]


def test_database_decoy_error_has_file_example_and_remedies(tmp_path: Path) -> None:
    targets, decoys = written(tmp_path / "targets.fasta", TARGETS), written(tmp_path / "decoys.fasta", REVERSED)
    with pytest.raises(InputError, match=r"40 proteins have names of decoys \(the first is rev_sp") as error:
        built(tmp_path / "index", [targets, decoys])
    assert error.value.path == str(decoys)
    assert "decoys=existing decoy_prefix=rev_" in error.value.remedy and "decoys_in_database=leave-out" in error.value.remedy
    with pytest.raises(InputError, match=r"in reversed or shuffled order \(the first is Q0") as error:
        built(tmp_path / "index", [targets], [written(tmp_path / "contaminants.fasta", UNNAMED)])
    assert error.value.path.endswith("contaminants.fasta") and "existing" not in error.value.remedy
    for parameters in (PredictionParameters(), ModifiedSearchParameters(), IdentificationParameters(decoys="none")):
        with pytest.raises(InputError, match="40 proteins have names of decoys") as error:
            built(tmp_path / "index", [targets, decoys], parameters=parameters)
        assert ("existing" in error.value.remedy) == (not isinstance(parameters, PredictionParameters))


@pytest.mark.parametrize("decoys", [REVERSED, UNNAMED], ids=["named", "unnamed"])
@pytest.mark.parametrize("where", ["same file", "second file", "contaminants", "before the targets"])
def test_index_without_the_decoys_equals_index_of_the_targets(tmp_path: Path, decoys: Records, where: str) -> None:
    targets = written(tmp_path / "targets.fasta", TARGETS)
    first, second = (decoys, TARGETS) if where == "before the targets" else (TARGETS, decoys)
    files = [written(tmp_path / "both.fasta", first + second)]
    contaminants = []
    if where in ("second file", "contaminants"):
        files, contaminants = [targets], [written(tmp_path / "decoys.fasta", decoys)]
    if where == "second file":
        files, contaminants = files + contaminants, []
    built(tmp_path / "plain", [targets], decoys_in_database="leave-out")
    indexes = built(tmp_path / "index", files, contaminants, decoys_in_database="leave-out")
    assert indexes.proteins.n_left_out == 40
    plain, without = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("plain", "index"))
    assert plain.keys() == without.keys()
    assert [name for name in plain if plain[name] != without[name]] == ["proteins.json"]  # The number of omitted sequences differs.


@pytest.mark.parametrize(
    ("naming", "settings"),
    [
        ("rev_", {"decoy_prefix": "rev_"}),
        ("in front of the second part: REV_", {"decoy_prefix": "REV_"}),
        ("in front of all parts", {"decoy_prefix": "rev_"}),
        ("_REVERSED", {"decoy_suffix": "_REVERSED"}),
        ("at the end of the second part", {"decoy_suffix": "_REVERSED"}),
        ("at the end of both", {"decoy_suffix": "_REVERSED"}),
    ],
)
def test_existing_decoys_are_paired_with_their_targets(tmp_path: Path, naming: str, settings: dict[str, str]) -> None:
    targets = [*TARGETS[:-1], ("sp|P04618|REV_HV1H2", TARGETS[-1][1])]
    named = NAMES[naming][0]
    decoys = [(named(name), sequence[::-1]) for name, sequence in targets]
    path = written(tmp_path / "both.fasta", [record for pair in zip(decoys, targets, strict=True) for record in pair])
    proteins = built(tmp_path / "index", [path], decoys="existing", **settings).proteins
    assert proteins.n_targets == 40
    assert proteins.partners().tolist() == [*range(40, 80), *range(40)]
    assert [proteins.proteins.accession(i) for i in range(39, 41)] == ["sp|P04618|REV_HV1H2", decoys[0][0]]


def test_index_rejects_or_omits_existing_decoys(tmp_path: Path) -> None:
    path = written(tmp_path / "both.fasta", TARGETS + REVERSED + UNNAMED)
    with pytest.raises(InputError, match="40 proteins have the residues of other proteins"):
        built(tmp_path / "index", [path], decoys="existing", decoy_prefix="rev_")
    proteins = built(tmp_path / "index", [path], decoys="existing", decoy_prefix="rev_", decoys_in_database="leave-out").proteins
    assert (proteins.n_targets, len(proteins), proteins.n_left_out) == (40, 80, 40)


def test_database_with_rejected_decoys_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    path, messages = written(tmp_path / "both.fasta", TARGETS + REVERSED), list[str]()
    databases = Databases([path], [], {"database": ["x"]})
    resources = Resources(threads=1, progress=Progress(lambda event: messages.append(event.message)))
    for _ in range(2):
        with pytest.raises(InputError, match="names of decoys"):
            open_indexes(databases, tmp_path / "spare", IdentificationParameters(), resources)
    for _ in range(2):  # First built, then opened from the cache.
        open_indexes(databases, tmp_path / "spare", IdentificationParameters(decoys_in_database="leave-out"), resources)
    assert sum("40 proteins were left out as decoys" in text for text in messages) == 2
