"""PIN export in the format of Percolator and mokapot: a header, labels of 1 and -1, numbers, and proteins at the end."""

import json
import os
import re
import subprocess

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.matches.writers.tables import IdentificationTables
from tests.engine.identification_tables import Identification, identification
from tests.engine.matches.exported import export

PEPTIDE = re.compile(r"[A-Z-]\..+\.[A-Z-]")


@pytest.fixture(scope="module")
def small() -> Identification:
    return identification()


def read_lines(tables: IdentificationTables, path) -> list[list[str]]:
    export(tables, "pin", path)
    return [line.split("\t") for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]


def tables_with(results: Identification, **replaced) -> IdentificationTables:
    return IdentificationTables(replaced.get("psms", results.psms), results.peptides, results.proteins)


def test_pin_lines_follow_the_documented_grammar(small, tmp_path):
    header, *lines = read_lines(tables_with(small), tmp_path / "x.pin")
    features = [name for name in small.psms.column_names if name.startswith("feature_")]
    assert header == ["SpecId", "Label", "ScanNr", "ExpMass", "CalcMass", *features, "Peptide", "Proteins"]
    assert len({line[0] for line in lines}) == len(lines) == len(small.psms)
    for line, row in zip(lines, small.psms.to_pylist(), strict=True):
        assert line[1] == ("-1" if row["is_decoy"] else "1")
        assert int(line[2]) > 0
        numbers = [float(value) for value in line[3 : 5 + len(features)]]
        assert numbers[:2] == pytest.approx([row["observed_mass"], row["calculated_mass"]], abs=1e-6)
        for number, name in zip(numbers[2:], features, strict=True):
            assert number == pytest.approx(0.0 if row[name] != row[name] else row[name], rel=1e-6)
        assert PEPTIDE.fullmatch(line[5 + len(features)])
        assert line[5 + len(features)] == f"{row['residues_before'][0]}.{row['peptide']}.{row['residues_after'][0]}"
        assert line[6 + len(features) :] == row["proteins"]


def test_pin_numbers_spectra_of_several_files(small, tmp_path):
    _, *lines = read_lines(tables_with(small), tmp_path / "both.pin")
    assert [int(line[2]) for line in lines] == [spectrum + 1 for spectrum in small.psms["spectrum"].to_pylist()]
    one_file = small.psms.filter([scan is not None for scan in small.psms["scan"].to_pylist()])
    _, *lines = read_lines(tables_with(small, psms=one_file), tmp_path / "one.pin")
    assert [int(line[2]) for line in lines] == one_file["scan"].to_pylist()


def test_pin_defaults_exclude_scores_trained_on_decoy_labels(small, tmp_path):
    bare = small.psms.drop_columns([name for name in small.psms.column_names if name.startswith("feature_")])
    header, *lines = read_lines(tables_with(small, psms=bare), tmp_path / "x.pin")
    features = header[5:-2]
    assert "hyperscore" in features
    assert not {"score", "q_value", "posterior_error_probability", "is_decoy", "rank"} & set(features)
    assert all(float(value) == float(value) for line in lines for value in line[5 : 5 + len(features)])


def test_pin_has_a_zero_or_one_column_for_each_charge(small, tmp_path):
    psms = small.psms
    for name in ("charge_2", "charge_3", "charge_4_or_more"):
        psms = psms.append_column(f"feature_{name}", pa.array(np.zeros(len(psms))))
    header, *lines = read_lines(tables_with(small, psms=psms), tmp_path / "x.pin")
    charges = sorted(set(psms["charge"].to_pylist()))
    names = [f"charge{charge}" for charge in charges]
    assert [name for name in header if "charge" in name] == names
    for line, charge in zip(lines, psms["charge"].to_pylist(), strict=True):
        assert [name for name in names if float(line[header.index(name)]) == 1.0] == [f"charge{charge}"]


def test_pin_without_psms_has_a_header(tmp_path):
    lines = read_lines(tables_with(identification(0)), tmp_path / "x.pin")
    assert len(lines) == 1


@pytest.mark.peers
@pytest.mark.skipif("PROTEOSCOPE_PEER_PYTHON" not in os.environ, reason="PROTEOSCOPE_PEER_PYTHON names no Python with mokapot")
def test_mokapot_reads_pin(small, tmp_path):
    export(tables_with(small), "pin", tmp_path / "x.pin")
    script = (
        "import sys, json, mokapot; psms = mokapot.read_pin(sys.argv[1]);"
        "print(json.dumps([len(psms.data), int(psms.targets.sum()), list(psms.features.columns)]))"
    )
    command = [os.environ["PROTEOSCOPE_PEER_PYTHON"], "-W", "ignore", "-c", script, str(tmp_path / "x.pin")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    n_psms, n_targets, features = json.loads(done.stdout)
    assert n_psms == len(small.psms)
    assert n_targets == small.psms["is_decoy"].to_pylist().count(False)
    assert features == [name for name in small.psms.column_names if name.startswith("feature_")]


def test_pin_escapes_control_characters_in_names(small, tmp_path):
    proteins = pa.array([["a\tb\nc\x1b"]] * len(small.psms), small.psms.schema.field("proteins").type)
    files = pa.array(["run\n1.mgf"] * len(small.psms))
    at, of_file = (small.psms.column_names.index(name) for name in ("proteins", "spectrum_file"))
    psms = small.psms.set_column(at, "proteins", proteins).set_column(of_file, "spectrum_file", files)
    header, *lines = read_lines(tables_with(small, psms=psms), tmp_path / "x.pin")
    assert len(lines) == len(psms)
    assert {len(line) for line in lines} == {len(header)}
    assert {line[-1] for line in lines} == {"a b c "}
    assert all(line[0].startswith("run 1.mgf_") for line in lines)
