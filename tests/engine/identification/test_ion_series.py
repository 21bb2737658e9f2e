"""Ion series follow the activation of each spectrum; spectra are simulated with masses from pyteomics and a published list."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from pyteomics import mass

from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.writing import write_spectrum_file
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import annotated_psm
from tests.engine.identification.test_search import REPOSITORY, LimitedGpu, accepted, fixed, same, tryptic
from tests.engine.simulation import PROTON, Simulation, proteins_of
from tests.searching import find_modified, identify
from tests.shim.shim_gpu import missing_compiler

WATER = mass.calculate_mass(formula="H2O")
C_OVER_B, Z_BELOW_Y = 17.02655, 16.01872
"""Mass differences (Da): c ions are b with NH3; z ions are radicals, y without NH2 (Steen & Mann 2004, Nat Rev Mol Cell Biol 5:699)."""
ACTIVATIONS = {"hcd": Activation.HCD, "etd": Activation.ETD, "ethcd": Activation.ETHCD}
SERIES = {"hcd": "by", "etd": "cz", "ethcd": "bycz"}
N_EACH = 30
COMPARED = ("spectrum_id", "peptide", "charge", "rank", "matched_ions", "total_ions", "hyperscore", "delta_score", "proteins")


class Activated(Simulation):
    """Simulated spectra of peptides with ions of some series; titles begin with the activation."""

    def add_activated(self, sequence, charge, name):
        shifts = fixed(sequence)
        residues = np.array([mass.std_aa_mass[residue] + shifts.get(i + 1, 0.0) for i, residue in enumerate(sequence)])
        prefix = np.cumsum(residues)
        before, after = prefix[:-1] + PROTON, prefix[-1] - prefix[:-1] + WATER + PROTON
        is_closed = np.array([residue == "P" for residue in sequence[1:]])
        ions = {"b": before, "y": after, "c": (before + C_OVER_B)[~is_closed], "z": (after - Z_BELOW_Y)[~is_closed]}
        mz = np.concatenate([ions[series] for series in SERIES[name]])
        if charge > 2:
            mz = np.concatenate((mz, (mz + PROTON) / 2))
        title = f"{name} {len(self.entries)}"
        self._write(title, prefix[-1] + WATER, charge, mz[self.random.random(len(mz)) < 0.67], 0.3, True)
        self.known[title] = sequence


@pytest.fixture(scope="module")
def proteins():
    return proteins_of(REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture(scope="module")
def database(proteins, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "proteins.fasta"
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    return path


@pytest.fixture(scope="module")
def simulation(proteins):
    made = Activated(11, 5, 10)
    for number, sequence in enumerate(tryptic(proteins, 7, 3 * N_EACH)):
        made.add_activated(sequence, 2 + number % 2, list(SERIES)[number // 2 % 3])
        made.add_noise(mass.calculate_mass(sequence) + 3.0, 2)
    return made


@pytest.fixture(scope="module")
def spectra(simulation, tmp_path_factory):
    """Write one file of all spectra, one per activation, and one without activations."""
    folder = tmp_path_factory.mktemp("spectra")
    unnamed = read_spectra([simulation.write(folder / "unnamed.mgf")])
    # A noise spectrum has the activation of the known spectrum before it.
    names = [title.split()[0] for title in unnamed.identifier]
    names = [names[i - 1] if name == "noise" else name for i, name in enumerate(names)]
    named = replace(unnamed, activation=np.array([ACTIVATIONS[name] for name in names], np.uint8))
    write_spectrum_file(folder / "mixed.mgf", named)
    write_spectrum_file(folder / "mixed.mzML", named)
    for name in SERIES:
        write_spectrum_file(folder / f"{name}.mgf", unnamed, rows=np.flatnonzero([activation == name for activation in names]))
    return folder


def plain(**changes):
    """Return settings under which spectra are searched independently."""
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    return parameters.changed(calibrate_tolerance=False, second_pass=False, rescoring="off", predicted_intensities=False, **changes)


def rows_of(folder, columns=None):
    with (Path(folder) / "exports" / "psms.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return rows if columns is None else sorted(tuple(row[name] for name in columns) for row in rows)


def test_identify_uses_the_ion_series_of_each_activation(simulation, spectra, database, tmp_path):
    summary = identify([spectra / "mixed.mzML"], [database], tmp_path / "project", IdentificationParameters(), threads=2)
    psms = accepted(rows_of(tmp_path / "project"))
    titles = dict(zip(read_spectra([spectra / "mixed.mzML"]).identifier, read_spectra([spectra / "unnamed.mgf"]).identifier, strict=True))
    right = [titles[row["spectrum_id"]] for row in psms if same(simulation.known.get(titles[row["spectrum_id"]], ""), row["sequence"])]
    for name in SERIES:
        assert sum(title.startswith(f"{name} ") for title in right) >= 0.9 * N_EACH
    assert len(psms) - len(right) <= 7
    # The record, the summary and the paragraph of methods name the series with their numbers.
    record = json.loads((tmp_path / "project" / "run.json").read_text())
    counts = record["passes"][0]["ion_series"]
    assert sorted(counts) == [["ETD", "cz", 2 * N_EACH], ["EThcD", "bycz", 2 * N_EACH], ["HCD", "by", 2 * N_EACH]]
    assert "60 spectra ETD: c, z; 60 spectra EThcD: b, y, c, z; 60 spectra HCD: b, y" in summary.passes[0].sentence()


def test_intensities_are_predicted_only_for_b_and_y_ions(spectra, database, tmp_path):
    summary = identify([spectra / "mixed.mgf"], [database], tmp_path / "project", IdentificationParameters(), threads=2)
    assert any("none predicted for" in message and "spectra without b and y ions" in message for message in summary.messages)
    table = parquet.read_table(next((tmp_path / "project").rglob("psms.parquet")))
    features = [name for name in table.column_names if name.startswith("feature_intensity")]
    is_etd = np.array([name.startswith("etd") for name in table["spectrum_id"].to_pylist()])
    assert len(features) == 3 and is_etd.sum() >= N_EACH
    for name in features:
        # All have one value, which is neither good nor bad.
        column = table[name].to_numpy()
        (value,) = set(column[is_etd].tolist())
        assert column[~is_etd].min() < value < column[~is_etd].max()


def test_psms_of_mixed_activations_equal_those_of_separate_files(spectra, database, tmp_path):
    """The scores equal those of each part searched with its series."""
    identify([spectra / "mixed.mgf"], [database], tmp_path / "mixed", plain(hits_per_spectrum=2), threads=2)
    expected = []
    for name, series in SERIES.items():
        identify([spectra / f"{name}.mgf"], [database], tmp_path / name, plain(hits_per_spectrum=2, ion_series=series), threads=2)
        expected += rows_of(tmp_path / name, COMPARED)
    assert len(expected) > 3 * N_EACH
    assert rows_of(tmp_path / "mixed", COMPARED) == sorted(expected)


def test_explicit_ion_series_apply_to_all_spectra(spectra, database, tmp_path):
    for name in ("mixed.mgf", "unnamed.mgf"):
        identify([spectra / name], [database], tmp_path / name, plain(ion_series="cz"), threads=2)
    mixed, unnamed = (rows_of(tmp_path / name, COMPARED) for name in ("mixed.mgf", "unnamed.mgf"))
    assert mixed == unnamed


def test_spectra_without_activation_use_b_and_y_ions(spectra, database, tmp_path):
    for name, changes in (("default", {}), ("explicit", {"ion_series": "by"})):
        summary = identify([spectra / "unnamed.mgf"], [database], tmp_path / name, plain(**changes), threads=2)
        assert summary.passes[0].sentence().endswith("; ions b, y")
    for table in ("psms", "peptides", "proteins"):
        by_default, explicit = (next((tmp_path / name).rglob(f"{table}.parquet")).read_bytes() for name in ("default", "explicit"))
        assert by_default == explicit


def test_psms_of_mixed_activations_do_not_depend_on_threads(spectra, database, tmp_path):
    tables = []
    for threads in (1, 3):
        identify([spectra / "mixed.mgf"], [database], tmp_path / str(threads), IdentificationParameters(), threads=threads)
        tables.append((tmp_path / str(threads) / "exports" / "psms.tsv").read_bytes())
    assert tables[0] == tables[1]


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "")
def test_psms_of_mixed_activations_are_equal_on_gpu_and_cpu(spectra, database, tmp_path, monkeypatch):
    identify([spectra / "mixed.mgf"], [database], tmp_path / "cpu", plain(), threads=2)
    chosen = Device("cuda:0", "a GPU", 1 << 33, True, numbers=(0,))
    monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", lambda *_: chosen)
    monkeypatch.setattr("proteoscope.engine.search_run.open_gpus", lambda *_, **__: [LimitedGpu()])
    summary = identify([spectra / "mixed.mgf"], [database], tmp_path / "gpu", plain(), threads=2, device="cuda")
    assert summary.device == LimitedGpu().name
    assert rows_of(tmp_path / "gpu") == rows_of(tmp_path / "cpu")


def test_modified_search_uses_the_ions_of_each_activation(spectra, database, tmp_path):
    columns = ("spectrum_id", "sequence", "charge", "matched_ions", "hyperscore", "shift_kind")
    parameters = ModifiedSearchParameters(rescoring="off")
    find_modified([spectra / "mixed.mgf"], [database], tmp_path / "mixed", parameters, threads=2)
    best = {row["spectrum_id"]: row for row in rows_of(tmp_path / "mixed")}
    n_same = 0
    for name, series in SERIES.items():
        find_modified([spectra / f"{name}.mgf"], [database], tmp_path / name, parameters.changed(ion_series=series), threads=2)
        for row in accepted(rows_of(tmp_path / name)):
            assert [best[row["spectrum_id"]][column] for column in columns] == [row[column] for column in columns]
            n_same += 1
    assert n_same >= 2.5 * N_EACH


def test_shown_spectrum_has_ions_of_its_activation(spectra, database, tmp_path):
    identify([spectra / "mixed.mgf"], [database], tmp_path / "project", plain(), threads=2)
    shown = {}
    with open_run(Project.open(tmp_path / "project")) as run:
        source = run.tables.source("psms")
        rows = source.rows([])
        for row, psm in zip(rows.tolist(), source.values(rows, ["spectrum_id", "rank"]).to_pylist(), strict=True):
            if psm["rank"] == 1 and not psm["spectrum_id"].startswith("noise"):
                shown[psm["spectrum_id"].split()[0]] = annotated_psm(source, row, run).settings.series
    assert shown == SERIES
