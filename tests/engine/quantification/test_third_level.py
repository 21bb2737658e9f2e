"""Reporter ions of MS3: planted ratios in mzML written by psims and in mzXML, by the names that spectra tell and without, and in files
without MS3."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from psims.mzml import MzMLWriter

from proteoscope.engine.errors import InputError
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.searches import run_search
from tests.engine.quantification.made_runs import MadeRun, Planted, random_peptides, table_of, write_project

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""psims leaves its vocabularies open."""
KIT = label("tmt-10")
PEPTIDES = random_peptides(8, 77)
IDENTIFIED = [Planted(one, 2, 1e6, 10.0 + 10 * i) for i, one in enumerate(PEPTIDES)]
AMOUNTS = 1e4 * np.random.default_rng(4).lognormal(0, 1, (len(PEPTIDES), len(KIT)))
WITHOUT_THIRD = 5
"""This one was not fragmented again."""


class SpectraByThree(MadeRun):
    """A run as instruments with synchronous precursor selection make it: all MS2 of a cycle, whose reporter ions are wrong, then their MS3
    in another order, with the planted ones."""

    names = True
    has_third = True

    def write(self, path):
        scans, rng = [], np.random.default_rng(1)
        with MzMLWriter(str(path), close=True) as out:
            out.controlled_vocabularies()
            out.file_description(["MS1 spectrum", "MSn spectrum"])
            out.software_list([{"id": "made", "version": "1", "params": ["custom unreleased software tool"]}])
            out.instrument_configuration_list([out.InstrumentConfiguration(id="IC1", component_list=[])])
            out.data_processing_list([out.DataProcessing([out.ProcessingMethod(order=1, software_reference="made")], id="DP1")])
            with out.run(id="made", instrument_configuration="IC1"), out.spectrum_list(count=8 + 8 + 7 * self.has_third):
                number = 0
                for first in range(0, 8, 4):
                    of_cycle = range(first, first + 4)
                    for i in of_cycle:
                        number += 1
                        scans.append((number, IDENTIFIED[i]))
                        wrong = rng.permutation(AMOUNTS[i])
                        self._spectrum(out, number, 2, IDENTIFIED[i].apex, wrong, [{"mz": IDENTIFIED[i].mz, "charge": 2}])
                    named = {i: scans[i][0] for i in of_cycle}
                    for i in reversed(of_cycle) if self.has_third else ():
                        if i == WITHOUT_THIRD:
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
        for one in before:
            ion = {"mz": one["mz"], "isolation_window": [0.5, one["mz"], 0.5], "activation": ["collision-induced dissociation"]}
            ion |= {name: one[name] for name in ("charge",) if name in one}
            ion |= {"spectrum_reference": one["scan_id"]} if one.get("scan_id") else {}
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


class ScansByThree(MadeRun):
    """The same as mzXML, each scan of MS3 within that of MS2, or behind it."""

    suffix = ".mzXML"
    names = True
    has_third = True
    within = True
    spoilt = ""

    def write(self, path):
        scans, rng, texts, number = [], np.random.default_rng(1), [], 0
        for i, one in enumerate(IDENTIFIED):
            number += 1
            scans.append((number, one))
            second = self._scan(number, 2, one.apex, rng.permutation(AMOUNTS[i]), f"<precursorMz>{one.mz:.6f}</precursorMz>")
            if not self.has_third or i == WITHOUT_THIRD:
                texts.append(second + "</scan>")
                continue
            named = f' precursorScanNum="{self.spoilt or number}"' if self.names else ""
            ions = f"<precursorMz{named}>{400.0 + i}</precursorMz><precursorMz>{one.mz + 0.002}</precursorMz>"
            number += 1
            third = self._scan(number, 3, one.apex + 0.5, AMOUNTS[i], ions) + "</scan>"
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


def made(folder, run_type=SpectraByThree, **options):
    run = run_type(suffix=run_type.suffix)
    for name, value in options.items():
        setattr(run, name, value)
    return write_project(folder, {"one": run}, {"P": PEPTIDES})


def quantify(project, **parameters):
    return run_search("quantify", {"project": [project]}, preset="tmt", device="cpu", threads=2, **parameters)


def shares(project):
    """Of each peptide the parts of its channels, and the level and the refusal of its rows."""
    found = {}
    for row in table_of(project, "reporter_ions"):
        found.setdefault(row["peptide"], []).append(row)
    parts = {one: np.array([row["measured"] or 0.0 for row in rows]) for one, rows in found.items()}
    return (
        {one: values / values.sum() for one, values in parts.items() if values.sum()},
        {one: {(row["level"], row["refused"]) for row in rows} for one, rows in found.items()},
    )


def planted(i):
    return AMOUNTS[i] / AMOUNTS[i].sum()


@pytest.mark.parametrize(
    ("run_type", "options"),
    [
        (SpectraByThree, {"names": True}),
        (SpectraByThree, {"names": False}),
        (ScansByThree, {"names": True}),
        (ScansByThree, {"names": False, "within": False}),
        (ScansByThree, {"spoilt": "99999"}),
        (ScansByThree, {"spoilt": "none&lt;", "within": False}),
    ],
)
def test_reporter_ions_of_ms3_are_those_of_the_identified_spectrum_that_it_was_made_from(tmp_path, run_type, options):
    project = made(tmp_path, run_type, **options)
    summary = quantify(project)
    parts, told = shares(project)
    for i, one in enumerate(PEPTIDES):
        if i == WITHOUT_THIRD:
            assert told[one] == {(3, "no spectrum of MS3")} and one not in parts
        else:
            assert told[one] == {(3, None)}
            np.testing.assert_allclose(parts[one], planted(i), rtol=1e-6)
    assert any("read from MS3, which 7 of 8 identified spectra have" in text for text in summary.messages)


def test_reporter_ions_of_ms2_are_taken_where_they_are_asked_for(tmp_path):
    project = made(tmp_path)
    quantify(project, reporter_level="ms2")
    parts, told = shares(project)
    assert set().union(*told.values()) == {(2, None)}
    for i, one in enumerate(PEPTIDES):
        np.testing.assert_allclose(np.sort(parts[one]), np.sort(planted(i)), rtol=1e-6)
        assert np.abs(parts[one] - planted(i)).max() > 0.01


@pytest.mark.parametrize("run_type", [SpectraByThree, ScansByThree])
def test_a_file_without_ms3_has_its_reporter_ions_in_ms2_or_is_refused_where_ms3_is_asked_for(tmp_path, run_type):
    project = made(tmp_path, run_type, has_third=False)
    quantify(project)
    assert set().union(*shares(project)[1].values()) == {(2, None)}
    with pytest.raises(InputError, match=r"has no fragment spectra \(MS3\)"):
        quantify(project, reporter_level="ms3")


def test_other_methods_do_not_read_ms3_whatever_level_is_asked_for(tmp_path):
    project = made(tmp_path, ScansByThree)
    summary = run_search("quantify", {"project": [project]}, method="counts", device="cpu", reporter_level="ms3")
    assert summary.n_peptides == len(PEPTIDES) and not table_of(project, "reporter_ions")
    with pytest.raises(InputError, match=r"has no MS1 spectra"):
        run_search("quantify", {"project": [project]}, method="label-free", device="cpu", reporter_level="ms3")
