"""Precursors with several, missing or contradictory sources: MS2, MGF, mzML and mzXML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index
from proteoscope.engine.spectra.tables import read_spectra_table, spectra_table

Written = Callable[..., Path]
PROTON = 1.007276466621


def read(path: Path) -> tuple[Spectra, list[str]]:
    """Return the spectra of a file, and the messages."""
    progress = RecordingProgress(Progress())
    spectra = read_spectra([path], progress=progress, threads=1)
    return spectra, list(progress.messages)


def precursors(spectra: Spectra, row: int) -> list[tuple[float, int]]:
    """Return m/z and charge bits of all precursors of a spectrum, the first one first."""
    others = spectra.others
    more = [(mz, bits) for i, mz, bits in zip(*(column.tolist() for column in others), strict=True) if i == row]
    return [(float(spectra.precursor_mz[row]), int(spectra.charge_mask[row])), *more]


def neutral_mass(mz: float, charge: int) -> float:
    """Return the mass of [M+H]+ that corresponds to an ion."""
    return charge * mz - (charge - 1) * PROTON


@pytest.mark.parametrize("selected", ["904.8200", "0.00", ""])
def test_ms2_precursor_is_read_from_z_lines(written: Written, selected: str) -> None:
    """A spectrum of crux-toolkit: a mass of 2710.4326 with three charges has m/z 904.149."""
    spectra, messages = read(written(f"S\t1\t1\t{selected}\nZ\t3\t2710.4326\n100 1\n"))
    assert spectra.precursor_mz[0] == pytest.approx((2710.4326 + 2 * PROTON) / 3, abs=1e-9)
    assert spectra.charge_mask.tolist() == [0b1000] and not len(spectra.others.spectrum)
    assert [("S line differs" in message and "line 2" in message) for message in messages] == [True] * (selected == "904.8200")


def test_ms2_spectrum_with_two_z_line_masses_has_two_precursors(written: Written) -> None:
    masses = {2: neutral_mass(500.25, 2), 3: neutral_mass(500.75, 3)}
    spectra, messages = read(written("S\t1\t1\t500.9\n" + "".join(f"Z\t{z}\t{mass!r}\n" for z, mass in masses.items()) + "100 1\n"))
    (first, bits), (second, more) = precursors(spectra, 0)
    assert (first, second) == (pytest.approx(500.25, abs=1e-9), pytest.approx(500.75, abs=1e-9)) and (bits, more) == (0b100, 0b1000)
    assert any("1 spectrum with several precursors" in message for message in messages)


def test_ms2_z_line_far_from_the_window_adds_a_precursor(written: Written) -> None:
    spectra, messages = read(written(f"S\t1\t1\t500.25\nZ\t2\t{neutral_mass(700.25, 2)!r}\n100 1\n"))
    assert [mz for mz, _ in precursors(spectra, 0)] == [500.25, pytest.approx(700.25, abs=1e-9)]
    assert any("more than 5 Th" in message for message in messages)


def test_ms2_z_lines_that_agree_with_the_window_add_no_precursor(written: Written) -> None:
    spectra, messages = read(
        written(f"S\t1\t1\t500.2512\nZ\t2\t{neutral_mass(500.2512, 2):.2f}\nZ\t3\t{neutral_mass(500.2512, 3)!r}\n100 1\n")
    )
    assert precursors(spectra, 0) == [(500.2512, 0b1100)] and messages == []


@pytest.mark.parametrize(
    ("text", "bits", "height"),
    [
        ("352.1888 836632.25 5+", 0b100000, 836632.25),
        ("352.1888\t10\t5", 0b100000, 10),
        ("352.1888 10", 0b100, 10),
        ("352.1888 5+", 0b100000, 0),
        ("352.1888 10 2+ and 3+", 0b1100, 10),
        ("352.1888 None 3+", 0b1000, 0),
        ("352.1888 10 0", 0b100, 10),
    ],
)
def test_mgf_charge_after_pepmass_overrides_the_default_charge(written: Written, text: str, bits: int, height: float) -> None:
    spectra, _ = read(written(f"CHARGE=2+\nBEGIN IONS\nPEPMASS={text}\n100 1\nEND IONS\n", "a.mgf"))
    assert spectra.precursor_mz.tolist() == [352.1888]
    assert spectra.charge_mask.tolist() == [bits] and spectra.precursor_intensity.tolist() == [height]


def test_mgf_charge_after_pepmass_equals_pyteomics(shared_cases: Path) -> None:
    mgf = pytest.importorskip("pyteomics.mgf", reason="pyteomics reads MGF independently")
    path = shared_cases / "mgf_charge_in_pepmass" / "pepmass_with_charge.mgf"
    with mgf.MGF(str(path)) as reader:
        charges = [int(spectrum["params"]["charge"][0]) for spectrum in reader]
    assert np.log2(read_spectra([path]).charge_mask).tolist() == charges


def test_conflicting_mgf_charges_are_reported(written: Written) -> None:
    spectra, messages = read(written("BEGIN IONS\nPEPMASS=352.5 10 5+\nCHARGE=2+\n100 1\nEND IONS\n"))
    assert spectra.charge_mask.tolist() == [0b100000]
    assert any("1 spectrum with a charge in PEPMASS" in message and "line 2" in message for message in messages)


def ion(make: Any, mz: str, charge: str = "") -> str:
    """Return a selected ion."""
    charge = make.term("MS:1000041", charge) if charge else ""
    return f"<selectedIon>{make.term('MS:1000744', mz)}{charge}</selectedIon>"


def precursor(make: Any, target: str, *ions: str) -> str:
    """Return a precursor with its isolation window."""
    window = f"<isolationWindow>{make.term('MS:1000827', target)}</isolationWindow>" if target else ""
    return f"<precursor>{window}<selectedIonList>{''.join(ions)}</selectedIonList></precursor>"


@pytest.mark.parametrize(
    ("target", "ions", "expected"),
    [
        ("500.5", [("0", "0")], [(500.5, 0)]),
        ("500.5", [("0", "2")], [(500.5, 0b100)]),
        ("500.5", [("500.25", "2")], [(500.25, 0b100)]),
        ("500.5", [("500.25", "2"), ("500.25", "3")], [(500.25, 0b1100)]),
        ("500.5", [("500.25", "2"), ("500.75", "3")], [(500.25, 0b100), (500.75, 0b1000)]),
        ("500.5", [("0", "2"), ("500.75", "3")], [(500.5, 0b100), (500.75, 0b1000)]),
        ("", [("500.25", "")], [(500.25, 0)]),
    ],
)
def test_mzml_selected_ions_are_read(
    make: Any, written: Written, target: str, ions: list[tuple[str, str]], expected: list[tuple[float, int]]
) -> None:
    text = precursor(make, target, *(ion(make, *values) for values in ions))
    spectra, messages = read(written(make.mzml(make.mzml_spectrum(0), make.mzml_spectrum(1, precursors=text), make.mzml_spectrum(2))))
    assert precursors(spectra, 1) == expected and len(precursors(spectra, 2)) == 1
    assert any("target of the isolation window" in message for message in messages) == (ions[0][0] == "0")
    assert any("several precursors" in message for message in messages) == (len(expected) > 1)


def test_multiplexed_mzml_spectrum_has_several_precursors(make: Any, written: Written) -> None:
    text = precursor(make, "500.5", ion(make, "500.25", "2")) + precursor(make, "600.5", ion(make, "0")) + precursor(make, "700.5")
    spectra, _ = read(written(make.mzml(make.mzml_spectrum(0, precursors=text))))
    assert precursors(spectra, 0) == [(500.25, 0b100), (600.5, 0), (700.5, 0)]


def test_multiplexed_mzxml_scan_has_several_precursors(make: Any, written: Written) -> None:
    scan = make.mzxml_scan(1)
    first = scan[scan.index("<precursorMz") : scan.index("</precursorMz>") + len("</precursorMz>")]
    path = written(make.mzxml(scan.replace(first, first + '<precursorMz precursorCharge="2">612.5</precursorMz>')))
    spectra, _ = read(path)
    assert precursors(spectra, 0)[1:] == [(612.5, 0b100)]


def test_spectrum_index_has_a_query_for_each_precursor(make: Any, written: Written) -> None:
    peaks = "".join(f"{100 + 20 * k} {k + 1}\n" for k in range(20))
    masses = f"Z\t2\t{neutral_mass(500.25, 2)!r}\nZ\t3\t{neutral_mass(500.75, 3)!r}\n"
    spectra, _ = read(written(f"S\t1\t1\t500.9\n{masses}{peaks}S\t2\t2\t400.5\n{peaks}"))
    index = build_spectrum_index(spectra, IdentificationParameters(minimum_charge=2, maximum_charge=2), Resources(1))
    expected = {(0, 2, 2 * (500.25 - PROTON)), (0, 3, 3 * (500.75 - PROTON)), (1, 2, 2 * (400.5 - PROTON))}
    queries = index.queries
    results = set(zip(queries.spectrum.tolist(), queries.charge.tolist(), queries.mass.round(6).tolist(), strict=True))
    assert results == {(spectrum, charge, round(mass, 6)) for spectrum, charge, mass in expected} and index.n_searched == 2


def test_read_spectra_counts_unused_precursors(make: Any, written: Written) -> None:
    text = precursor(make, "500.5", ion(make, "500.25", "2")) + precursor(make, "600.5", ion(make, "0")) + precursor(make, "700.5")
    path = written(make.mzml(make.mzml_spectrum(0, precursors=text), make.mzml_spectrum(1, precursors=text)))
    _, messages = read(path)
    (message,) = [message for message in messages if "several precursors" in message]
    assert "4 further precursors are not used: 2 spectra" in message and "Write a spectrum for each" in message
    progress = RecordingProgress(Progress())
    read_spectra([path], progress=progress, threads=1, uses_all_precursors=True)
    assert any("all precursors are searched" in message for message in progress.messages) and not any(
        "not used" in message for message in progress.messages
    )


@pytest.mark.parametrize("n_precursors", [1, 3])
def test_spectra_table_stores_all_precursors(make: Any, written: Written, tmp_path: Path, n_precursors: int) -> None:
    texts = [precursor(make, f"{500 + 100 * k}", ion(make, f"{500 + 100 * k}.25", str(k + 2))) for k in range(n_precursors)]
    spectra, _ = read(written(make.mzml(make.mzml_spectrum(0), make.mzml_spectrum(1, precursors="".join(texts)), make.mzml_spectrum(2))))
    pq.write_table(spectra_table(spectra), tmp_path / "spectra.parquet")
    result = read_spectra_table(tmp_path / "spectra.parquet")
    assert precursors(result, 1) == precursors(spectra, 1) and len(result.others.spectrum) == n_precursors - 1
    settings = IdentificationParameters(minimum_peaks=1)
    masses = [build_spectrum_index(columns, settings, Resources(1)).observed_mass.tolist() for columns in (result, spectra)]
    assert masses[0] == masses[1]
