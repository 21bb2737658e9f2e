"""Activations of spectra, as the formats name them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.chemistry.activation import Activation, activation_names
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.writing import write_spectrum_file
from proteoscope.engine.spectra.tables import read_spectra_table, spectra_table

PEAKS = "".join(f"{200 + 10 * k}.5 10\n" for k in range(8))


def named_in_mgf(tmp_path: Path, lines: list[str]) -> list[str]:
    """Return the names of the activations of spectra, each with further lines."""
    path = tmp_path / "a.mgf"
    path.write_text("".join(f"BEGIN IONS\n{line}PEPMASS=500.25\nCHARGE=2+\n{PEAKS}END IONS\n\n" for line in lines))
    return activation_names(read_spectra([path]).activation)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("ACTIVATION=ETD\n", "ETD"),
        ("Activation = hcd\n", "HCD"),
        ("FRAGMENTATION=EThcD\n", "EThcD"),
        ("FRAGMENTATION_METHOD=electron-transfer dissociation\n", "ETD"),
        ("ACTIVATION=NA\n", ""),
        ("TITLE=FTMS + p NSI d Full ms2 500.25@etd50.00@hcd20.00 [120-1000]\n", "EThcD"),
        ("TITLE=x scan=3 Activation: CID\n", "CID"),
        ("TITLE=x scan=3 ACTIVATION: CID\n", "CID"),
        ("TITLE=x\nACTIVATION=CID\n", "CID"),
        # The file name does not determine the activation.
        ("TITLE=HCD_against_ETD.12.12.2\n", ""),
        ("TITLE=someone@ecdysone.org\n", ""),
        ("", ""),
    ],
)
def test_mgf_activation_is_read(tmp_path: Path, line: str, name: str) -> None:
    assert named_in_mgf(tmp_path, [line, "ACTIVATION=ECD\n"]) == [name, "ECD"]


def test_mgf_spectrum_with_two_activations_is_skipped(tmp_path: Path) -> None:
    assert named_in_mgf(tmp_path, ["ACTIVATION=ETD\nACTIVATION=HCD\n", "ACTIVATION=ECD\n"]) == ["ECD"]


def test_ms2_activation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ms2"
    lines = ("I\tActivationType\tETD\n", "I\tFilter\tFTMS + c NSI d Full ms2 500.25@hcd30.00 [100-1000]\n", "I\tInstrumentType\tFTMS\n")
    path.write_text("H\tExtractor\tx\n" + "".join(f"S\t{k}\t{k}\t500.25\n{line}Z\t2\t999.49\n{PEAKS}" for k, line in enumerate(lines, 1)))
    assert activation_names(read_spectra([path]).activation) == ["ETD", "HCD", ""]


@pytest.mark.parametrize(
    ("attribute", "filter_line", "name"),
    [
        ('activationMethod="ETD"', "", "ETD"),
        ('activationMethod="ETD+SA"', "", "ETciD"),
        ("", 'filterLine="FTMS + p NSI d Full ms2 500.25@ecd25.00 [100-1000]"', "ECD"),
        ('activationMethod="CID"', 'filterLine="FTMS + p NSI d Full ms2 500.25@hcd25.00 [100-1000]"', "CID"),
        ("", "", ""),
    ],
)
def test_mzxml_activation_is_read(tmp_path: Path, attribute: str, filter_line: str, name: str) -> None:
    path = tmp_path / "a.mzXML"
    peaks = "Q0gAAD+AAABDSgAAP4AAAENMAAA/gAAA"  # three pairs of 32-bit floats
    path.write_text(
        '<?xml version="1.0"?>\n<mzXML xmlns="http://sashimi.sourceforge.net/schema_revision/mzXML_3.2"><msRun scanCount="1">\n'
        f'<scan num="1" msLevel="2" peaksCount="3" {filter_line}><precursorMz precursorIntensity="1" precursorCharge="2" {attribute}>'
        f'500.25</precursorMz><peaks precision="32" byteOrder="network" contentType="m/z-int">{peaks}</peaks></scan>\n</msRun></mzXML>\n'
    )
    assert activation_names(read_spectra([path]).activation) == [name]


def term(accession: int) -> str:
    return f'<cvParam cvRef="MS" accession="MS:{accession}" name="x" value=""/>'


FILTER = '<cvParam cvRef="MS" accession="MS:1000512" name="filter string" value="FTMS + p NSI d Full ms2 500.2@etd50.00@{} [1-9]"/>'


@pytest.mark.parametrize(
    ("terms", "scan", "name"),
    [
        (term(1000133), "", "CID"),
        (term(1000422) + term(1000133), "", "HCD"),
        (term(1000598), "", "ETD"),
        (term(1000598) + term(1002678), "", "EThcD"),
        (term(1000598) + term(1002679), "", "ETciD"),
        (term(1000598) + term(1000422), "", "EThcD"),
        (term(1002631), "", "EThcD"),
        (term(1000044), "", ""),
        # Older converters name only the first of two activations.
        (term(1000598), FILTER.format("hcd20.00"), "EThcD"),
        ("", FILTER.format("cid20.00"), "ETciD"),
        (term(1000422), FILTER.format("cid20.00"), "HCD"),
    ],
)
def test_mzml_activation_is_read(tmp_path: Path, terms: str, scan: str, name: str) -> None:
    spectra = read_spectra([resources.path("samples", "BSA1.mzML.gz")])
    path = tmp_path / "a.mzML"
    write_spectrum_file(path, replace(spectra, activation=np.zeros(len(spectra), np.uint8)), rows=np.arange(2))
    text = path.read_text()
    (unknown,) = {line for line in text.split("\n") if "MS:1000044" in line}
    path.write_text(text.replace(unknown, terms, 1).replace("</scan>", f"{scan}</scan>", 1))
    assert activation_names(read_spectra([path]).activation) == [name, ""]


@pytest.mark.parametrize("kind", ["mgf", "ms2", "mzml"])
def test_written_activations_round_trip(tmp_path: Path, kind: str) -> None:
    spectra = read_spectra([resources.path("samples", "BSA1.mzML.gz")])
    activation = np.arange(len(spectra), dtype=np.uint8) % len(Activation)
    write_spectrum_file(tmp_path / f"a.{kind}", replace(spectra, activation=activation))
    np.testing.assert_array_equal(read_spectra([tmp_path / f"a.{kind}"]).activation, activation)


def test_spectra_table_stores_known_activations(tmp_path: Path) -> None:
    from pyarrow import parquet  # the program also imports it late

    spectra = read_spectra([resources.path("samples", "BSA1.mzML.gz")])
    activation = np.arange(len(spectra), dtype=np.uint8) % len(Activation)
    for given, has_column in ((activation, True), (np.zeros_like(activation), False)):
        table = spectra_table(replace(spectra, activation=given))
        assert ("activation" in table.column_names) is has_column
        parquet.write_table(table, tmp_path / "spectra.parquet")
        np.testing.assert_array_equal(read_spectra_table(tmp_path / "spectra.parquet").activation, given)
