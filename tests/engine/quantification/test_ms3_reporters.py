"""Reporter ions of MS3: planted ratios in mzML and mzXML, with and without references to MS2, and in files without MS3."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from psims.mzml import MzMLWriter

from proteoscope.engine.errors import InputError
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""psims leaves its vocabularies open."""
KIT = label("tmt-10")
PEPTIDES = random_peptides(8, 77)
IDENTIFIED = [Planted(peptide, 2, 1e6, 10.0 + 10 * i) for i, peptide in enumerate(PEPTIDES)]
AMOUNTS = 1e4 * np.random.default_rng(4).lognormal(0, 1, (len(PEPTIDES), len(KIT)))
WITHOUT_MS3 = 5
"""Index of the peptide whose MS2 spectrum has no MS3 spectrum."""


class MzmlRunWithMs3(SyntheticRun):
    """A run of synchronous precursor selection, written by psims.

    A cycle has all MS2 spectra, with wrong reporter ions, and then their MS3 spectra in another order, with the planted reporter ions.
    """

    names = True
    has_ms3 = True

    def write(self, path):
        scans, rng = [], np.random.default_rng(1)
        with MzMLWriter(str(path), close=True) as out:
            out.controlled_vocabularies()
            out.file_description(["MS1 spectrum", "MSn spectrum"])
            out.software_list([{"id": "made", "version": "1", "params": ["custom unreleased software tool"]}])
            out.instrument_configuration_list([out.InstrumentConfiguration(id="IC1", component_list=[])])
            out.data_processing_list([out.DataProcessing([out.ProcessingMethod(order=1, software_reference="made")], id="DP1")])
            with out.run(id="made", instrument_configuration="IC1"), out.spectrum_list(count=8 + 8 + 7 * self.has_ms3):
                number = 0
                for first in range(0, 8, 4):
                    of_cycle = range(first, first + 4)
                    for i in of_cycle:
                        number += 1
                        scans.append((number, IDENTIFIED[i]))
                        wrong = rng.permutation(AMOUNTS[i])
                        self._spectrum(out, number, 2, IDENTIFIED[i].apex, wrong, [{"mz": IDENTIFIED[i].mz, "charge": 2}])
                    named = {i: scans[i][0] for i in of_cycle}
                    for i in reversed(of_cycle) if self.has_ms3 else ():
                        if i == WITHOUT_MS3:
                            continue
                        number += 1
                        before = [
                            {"mz": 400.0 + i, "scan_id": f"scan={named[i]}" if self.names else None},
                            {"mz": IDENTIFIED[i].mz + 0.002, "charge": 2},
                        ]
                        self._spectrum(out, number, 3, IDENTIFIED[i].apex + 0.5, AMOUNTS[i], before)
        return scans

    @staticmethod
    def _spectrum(out, number, level, time, amounts, before):
        ions = []
        for precursor in before:
            ion = {"mz": precursor["mz"], "isolation_window": [0.5, precursor["mz"], 0.5], "activation": ["collision-induced dissociation"]}
            ion |= {name: precursor[name] for name in ("charge",) if name in precursor}
            ion |= {"spectrum_reference": precursor["scan_id"]} if precursor.get("scan_id") else {}
            ions.append(ion)
        out.write_spectrum(
            np.append(KIT.mz, 301.2),
            np.append(amounts, 50.0),
            id=f"scan={number}",
            centroided=True,
            scan_start_time=time / 60,
            params=[{"name": "MSn spectrum"}, {"ms level": level}],
            precursor_information=ions,
            encoding={"m/z array": np.float64, "intensity array": np.float64},
        )


class MzxmlRunWithMs3(SyntheticRun):
    """The same run as mzXML, each MS3 scan within that of MS2 or after it."""

    suffix = ".mzXML"
    names = True
    has_ms3 = True
    within = True
    invalid_reference = ""

    def write(self, path):
        scans, rng, texts, number = [], np.random.default_rng(1), [], 0
        for i, peptide in enumerate(IDENTIFIED):
            number += 1
            scans.append((number, peptide))
            second = self._scan(number, 2, peptide.apex, rng.permutation(AMOUNTS[i]), f"<precursorMz>{peptide.mz:.6f}</precursorMz>")
            if not self.has_ms3 or i == WITHOUT_MS3:
                texts.append(second + "</scan>")
                continue
            named = f' precursorScanNum="{self.invalid_reference or number}"' if self.names else ""
            ions = f"<precursorMz{named}>{400.0 + i}</precursorMz><precursorMz>{peptide.mz + 0.002}</precursorMz>"
            number += 1
            third = self._scan(number, 3, peptide.apex + 0.5, AMOUNTS[i], ions) + "</scan>"
            texts.append(second + third + "</scan>" if self.within else second + "</scan>" + third)
        path.write_text(f'<?xml version="1.0"?>\n<mzXML><msRun scanCount="{number}">{"".join(texts)}</msRun></mzXML>\n')
        return scans

    @staticmethod
    def _scan(number, level, time, amounts, precursors):
        pairs = np.stack([np.append(KIT.mz, 301.2), np.append(amounts, 50.0)], axis=1).astype(">f8")
        return (
            f'<scan num="{number}" msLevel="{level}" peaksCount="{len(pairs)}" retentionTime="PT{time}S" centroided="1">{precursors}'
            f'<peaks precision="64" byteOrder="network" contentType="m/z-int">{base64.b64encode(pairs.tobytes()).decode()}</peaks>'
        )


def made(folder, run_type=MzmlRunWithMs3, **options):
    run = run_type(suffix=run_type.suffix)
    for name, value in options.items():
        setattr(run, name, value)
    return write_project(folder, {"one": run}, {"P": PEPTIDES})


def quantify(project, **parameters):
    return run_search("quantify", {"project": [project]}, preset="tmt", device="cpu", threads=2, **parameters)


def shares(project):
    """Return the share of each channel, and the level and reason for rejection of its rows, by peptide."""
    rows_by_peptide = {}
    for row in table_of(project, "reporter_ions"):
        rows_by_peptide.setdefault(row["peptide"], []).append(row)
    parts = {peptide: np.array([row["measured"] or 0.0 for row in rows]) for peptide, rows in rows_by_peptide.items()}
    return (
        {peptide: values / values.sum() for peptide, values in parts.items() if values.sum()},
        {peptide: {(row["level"], row["refused"]) for row in rows} for peptide, rows in rows_by_peptide.items()},
    )


def planted(i):
    return AMOUNTS[i] / AMOUNTS[i].sum()


@pytest.mark.parametrize(
    ("run_type", "options"),
    [
        (MzmlRunWithMs3, {"names": True}),
        (MzmlRunWithMs3, {"names": False}),
        (MzxmlRunWithMs3, {"names": True}),
        (MzxmlRunWithMs3, {"names": False, "within": False}),
        (MzxmlRunWithMs3, {"invalid_reference": "99999"}),
        (MzxmlRunWithMs3, {"invalid_reference": "none&lt;", "within": False}),
    ],
)
def test_ms3_reporter_ions_are_assigned_to_their_ms2_spectrum(tmp_path, run_type, options):
    project = made(tmp_path, run_type, **options)
    summary = quantify(project)
    parts, levels = shares(project)
    for i, peptide in enumerate(PEPTIDES):
        if i == WITHOUT_MS3:
            assert levels[peptide] == {(3, "no spectrum of MS3")} and peptide not in parts
        else:
            assert levels[peptide] == {(3, None)}
            np.testing.assert_allclose(parts[peptide], planted(i), rtol=1e-6)
    assert any("read from MS3, which 7 of 8 identified spectra have" in text for text in summary.messages)


def test_reporter_level_ms2_reads_reporter_ions_of_ms2(tmp_path):
    project = made(tmp_path)
    quantify(project, reporter_level="ms2")
    parts, levels = shares(project)
    assert set().union(*levels.values()) == {(2, None)}
    for i, peptide in enumerate(PEPTIDES):
        np.testing.assert_allclose(np.sort(parts[peptide]), np.sort(planted(i)), rtol=1e-6)
        assert np.abs(parts[peptide] - planted(i)).max() > 0.01


@pytest.mark.parametrize("run_type", [MzmlRunWithMs3, MzxmlRunWithMs3])
def test_file_without_ms3_uses_ms2_unless_ms3_is_required(tmp_path, run_type):
    project = made(tmp_path, run_type, has_ms3=False)
    quantify(project)
    assert set().union(*shares(project)[1].values()) == {(2, None)}
    with pytest.raises(InputError, match=r"has no fragment spectra \(MS3\)"):
        quantify(project, reporter_level="ms3")


def test_label_free_methods_ignore_the_reporter_level(tmp_path):
    project = made(tmp_path, MzxmlRunWithMs3)
    summary = run_search("quantify", {"project": [project]}, method="counts", device="cpu", reporter_level="ms3")
    assert summary.n_peptides == len(PEPTIDES) and not table_of(project, "reporter_ions")
    with pytest.raises(InputError, match=r"has no MS1 spectra"):
        run_search("quantify", {"project": [project]}, method="label-free", device="cpu", reporter_level="ms3")
