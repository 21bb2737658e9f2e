"""Spectra that no protein explains, searched in databases that already contain decoys."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.formats import read_proteins

MESSAGE = re.compile(r"1,500 proteins have (names of decoys|the residues of other proteins)")
NAMINGS: dict[str, tuple[Callable[[str], str], tuple[str, ...]]] = {
    "prefix": (lambda name: f"rev_{name}", ("decoy_prefix=rev_",)),
    "prefix of the second part": (lambda name: name.replace("|", "|rev_", 1), ("decoy_prefix=rev_",)),
    "suffix": (lambda name: f"{name}_REVERSED", ("decoy_suffix=_REVERSED",)),
    "suffix of the second part": (lambda name: "_REVERSED|".join(name.rsplit("|", 1)), ("decoy_suffix=_REVERSED",)),
    "none": (lambda name: f"tr|{name[3:9][::-1]}", ()),
}


@pytest.fixture
def case(shared_cases: Path) -> Path:
    folder = shared_cases / "decoys_in_database"
    if not folder.is_dir():
        pytest.skip(f"the shared case is absent ({folder})")
    return folder


def with_decoys(case: Path, path: Path, naming: str, *, decoys_only: bool = False) -> Path:
    proteins = read_proteins([case / "target.fasta"])
    targets = [(proteins.accession(i), proteins.description(i), proteins.sequence(i)) for i in range(len(proteins))]
    decoys = [(NAMINGS[naming][0](name), "", sequence[::-1]) for name, _, sequence in targets]
    written = [] if decoys_only else targets
    path.write_text("".join(f">{name} {description}\n{sequence}\n" for name, description, sequence in written + decoys), encoding="utf-8")
    return path


def identified(case: Path, database: Path, out: Path, *settings: str) -> dict[str, bytes]:
    """Search and return the exported tables by name."""
    sets = [argument for setting in settings for argument in ("--set", setting)]
    assert (
        main(["identify", str(case / "nothing_right.mzML"), "--database", str(database), "--out", str(out), "--device", "cpu", *sets]) == 0
    )
    return {path.name: path.read_bytes() for path in (out / "exports").iterdir()}


def n_accepted(tables: dict[str, bytes]) -> int:
    rows = csv.DictReader(tables["psms.tsv"].decode().splitlines(), delimiter="\t")
    return sum(float(row["q_value"] or 1) <= 0.01 and row["is_decoy"] not in ("true", "True", "1") for row in rows)


@pytest.mark.parametrize("naming", NAMINGS)
def test_database_decoys_are_rejected_used_or_left_out(
    case: Path, tmp_path: Path, naming: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    database = with_decoys(case, tmp_path / "both.fasta", naming)
    spectra, out = str(case / "nothing_right.mzML"), str(tmp_path / "refused")
    assert main(["identify", spectra, "--database", str(database), "--out", out, "--device", "cpu"]) == 2
    assert MESSAGE.search(capsys.readouterr().err)
    if settings := NAMINGS[naming][1]:
        assert n_accepted(identified(case, database, tmp_path / "existing", "decoys=existing", *settings)) == 0
    if naming in ("prefix", "none"):
        without = identified(case, database, tmp_path / "left_out", "decoys_in_database=leave-out")
        assert "1,500 proteins were left out" in capsys.readouterr().err
        assert without == identified(case, case / "target.fasta", tmp_path / "targets")
        assert n_accepted(without) == 0 and without["psms.tsv"].count(b"\n") > 100


@pytest.mark.parametrize("naming", ["prefix", "none"])
def test_identify_rejects_decoys_among_contaminants(case: Path, tmp_path: Path, naming: str, capsys: pytest.CaptureFixture[str]) -> None:
    contaminants = with_decoys(case, tmp_path / "contaminants.fasta", naming, decoys_only=True)
    arguments = ["identify", str(case / "nothing_right.mzML"), "--database", str(case / "target.fasta"), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--set", f"contaminants={contaminants}"]) == 2
    error = capsys.readouterr().err
    assert MESSAGE.search(error) and f"{contaminants}: " in error


@pytest.mark.parametrize("naming", ["prefix", "none"])
def test_modified_search_and_prediction_reject_database_decoys(
    case: Path, tmp_path: Path, naming: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database, spectra = str(with_decoys(case, tmp_path / "both.fasta", naming)), str(case / "nothing_right.mzML")
    assert main(["modified", spectra, "--database", database, "--out", str(tmp_path / "out"), "--device", "cpu"]) == 2
    assert MESSAGE.search(capsys.readouterr().err)
    assert main(["predict", database, "--out", str(tmp_path / "library.msp")]) == 2
    error = capsys.readouterr().err
    assert MESSAGE.search(error) and "decoys_in_database=leave-out" in error and "existing" not in error
