"""Result files with unreadable numbers: their records are skipped and counted, all others are read; and decimal commas."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.noted_peptides import noted_modification
from proteoscope.engine.errors import InputError
from proteoscope.engine.imported.reading import describe_unread, read_identifications
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.matches.match_lists.identifications import Identifications
from tests.engine.imported.small_results import TRUTH, write_results, write_spectra
from tests.searching import import_results

CHANGES = [  # Format, text, the same text with an error, reason, value.
    ("pepxml", 'hit_rank="1"', 'hit_rank="first"', "hit_rank is not a number", "first"),
    ("pepxml", 'hit_rank="1"', 'hit_rank="1.5"', "hit_rank is not a whole number", "1.5"),
    ("pepxml", 'position="2"', 'place="2"', "position is not a whole number", ""),
    ("pepxml", 'position="2"', 'position="60"', "one of its modifications is outside its sequence", "60"),
    ("pepxml", 'assumed_charge="2"', 'assumed_charge="two"', "assumed_charge is not a number", "two"),
    ("pepxml", 'calc_neutral_pep_mass="', 'calc_neutral_pep_mass="about ', "calc_neutral_pep_mass is not a number", "about "),
    ("pepxml", 'mass="1', 'mass="x1', "mass is not a number", "x1"),
    ("pepxml", 'mass="1', 'mass="1e999', "mass is not a number", "1e999"),
    ("pepxml", 'retention_time_sec="', 'retention_time_sec="1_', "retention_time_sec is not a number", "1_"),
    ("pepxml", 'name="expect" value="', 'name="expect" value="?', "expect is not a number", "?"),
    ("mzidentml", 'chargeState="', 'chargeState="z', "chargeState is not a number", "z"),
    ("mzidentml", 'chargeState="2', 'chargeState="2.5', "chargeState is not a whole number", "2.5"),
    ("mzidentml", 'calculatedMassToCharge="', 'calculatedMassToCharge="~', "calculatedMassToCharge is not a number", "~"),
    ("mzidentml", 'monoisotopicMassDelta="', 'monoisotopicMassDelta="+-', "in a modification of its peptide, monoisotopicMassDelta", "+-"),
    ("mzidentml", 'value="0.00', 'value="0.oo', "is not a number", "0.oo"),
    ("idxml", 'charge="', 'charge="+-', "charge is not a number", "+-"),
    ("idxml", ' RT="', ' RT="about ', "RT is not a number", "about "),
    ("idxml", ' MZ="', ' MZ="\u0663', "MZ is not a number", "\u0663"),
    ("idxml", '<PeptideHit score="', '<PeptideHit score="?', "is not a number", "?"),
    ("xtandem", ' z="', ' z="two', "z is not a number", "two"),
    ("xtandem", ' hyperscore="', ' hyperscore="?', "hyperscore is not a number", "?"),
    ("xtandem", ' modified="', ' modified="?', "modified is not a number", "?"),
    ("xtandem", ' rt="PT', f' rt="PT{"1" * (1 << 18)}x', "rt is not a number", "PT11"),  # hours, if all ways to divide the digits are tried
    ("sage", "\t0.002\t", "\tmany\t", "column 'spectrum_q' is not a number", "many"),
    ("sage", "\t2\t", "\t2.5\t", "is not a whole number", "2.5"),
    ("mztab", "\t2\t", "\t2.5\t", "is not a whole number", "2.5"),
]


def rows_of(identifications: Identifications) -> list[tuple[object, ...]]:
    """Return everything read of each match, comparable between files."""
    numbers = [
        np.nan_to_num(getattr(identifications, name), nan=-99.0).tolist() for name in ("charge", "rank", "precursor_mz", "retention_time")
    ]
    peptides = [identifications.peptides[row] for row in identifications.peptide.tolist()]
    return list(zip(peptides, identifications.native_id.to_pylist(), *numbers, strict=True))


@pytest.mark.parametrize(("format", "text", "wrong", "reason", "value"), CHANGES)
def test_import_skips_record_with_unreadable_number(tmp_path: Path, format: str, text: str, wrong: str, reason: str, value: str) -> None:
    path = write_results(format, tmp_path)
    whole, content = read_identifications([path]), path.read_text()
    path.write_text(content.replace(text, wrong, 1))
    identifications = read_identifications([path])
    assert (text in content, len(identifications.unread), len(identifications)) == (True, 1, len(TRUTH) - 1)
    (row,) = identifications.unread.to_pylist()
    assert reason in row["reason"] and row["value"].startswith(value)
    assert describe_unread(identifications)[row["reason"]].startswith(f"{whole.place_name} {row['line']}")
    assert set(rows_of(identifications)) < set(rows_of(whole)) and row["line"] not in identifications.place.tolist()
    assert sorted([*identifications.place.tolist(), row["line"]]) == whole.place.tolist()


@pytest.mark.parametrize(
    ("format", "name"), [("pepxml", "assumed_charge"), ("mzidentml", "chargeState"), ("idxml", "MZ"), ("xtandem", "mh")]
)
def test_import_rejects_file_without_a_readable_record(tmp_path: Path, format: str, name: str) -> None:
    path = write_results(format, tmp_path)
    path.write_text(re.sub(rf' {name}="', f' {name}="?', path.read_text()))
    with pytest.raises(InputError, match=rf"match 1: holds no match .*{name} is not a number \('\?"):
        read_identifications([path])


def test_import_rejects_column_without_numbers(tmp_path: Path) -> None:
    path = write_results("sage", tmp_path)
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    for row in rows:
        row[head.index("spectrum_q")] = "many"
    path.write_text("\n".join("\t".join(cells) for cells in (head, *rows)) + "\n")
    with pytest.raises(InputError, match=r"line 2: 'many' in column 'spectrum_q' is not a number"):
        read_identifications([path])


def test_import_accepts_column_whose_only_value_is_invalid(tmp_path: Path) -> None:
    path = write_results("sage", tmp_path)
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    for row in rows:
        row[head.index("spectrum_q")] = ""
    rows[3][head.index("spectrum_q")] = "many"
    path.write_text("\n".join("\t".join(cells) for cells in (head, *rows)) + "\n")
    assert read_identifications([path]).unread["line"].to_pylist() == [5]


@pytest.mark.parametrize("n_cells", [3, 18])
def test_import_skips_row_with_wrong_number_of_cells(tmp_path: Path, n_cells: int) -> None:
    path = write_results("sage", tmp_path)
    whole = read_identifications([path])
    lines = path.read_text().splitlines()
    lines[2] = "\t".join([*lines[2].split("\t"), "more"][:n_cells])
    path.write_text("\n".join(lines) + "\n")
    identifications = read_identifications([path])
    (row,) = identifications.unread.to_pylist()
    assert (row["line"], row["reason"]) == (3, f"has {n_cells} cells where there are 17 columns")
    assert set(rows_of(identifications)) < set(rows_of(whole)) and len(identifications) == len(TRUTH) - 1


def test_invalid_pin_feature_skips_only_one_row(tmp_path: Path) -> None:
    path = write_results("pin", tmp_path)
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    feature = next(i for i, name in enumerate(head) if name.lower() in ("xcorr", "hyperscore", "lnexpect"))
    rows[1][feature] = "?"
    whole = read_identifications([path])
    path.write_text("\n".join("\t".join(cells) for cells in (head, *rows)) + "\n")
    identifications = read_identifications([path])
    assert identifications.scores.keys() == whole.scores.keys() and identifications.unread["value"].to_pylist() == ["?"]


def test_invalid_mztab_retention_time_affects_only_one_row(tmp_path: Path) -> None:
    path = write_results("mztab", tmp_path)
    whole = read_identifications([path])
    line = next(line for line in path.read_text().splitlines() if line.startswith("PSM\t"))
    head = next(line for line in path.read_text().splitlines() if line.startswith("PSH\t")).split("\t")
    cells = line.split("\t")
    for wrong, n_left in (("1.2.3", 1), ("1e", 1), (f"{cells[head.index('retention_time')]}|99.5", 0), ("null", 0)):
        changed = ["" if i == head.index("retention_time") else cell for i, cell in enumerate(cells)]
        changed[head.index("retention_time")] = wrong
        other = tmp_path / "other.mzTab"
        other.write_text(path.read_text().replace(line, "\t".join(changed)))
        identifications = read_identifications([other])
        assert len(identifications.unread) == n_left
        assert identifications.retention_time[1 - n_left :].tolist() == whole.retention_time[1:].tolist()


@pytest.mark.parametrize("format", ["pepxml", "mzidentml", "idxml", "xtandem"])
def test_import_reads_consistent_decimal_commas_in_xml(tmp_path: Path, format: str) -> None:
    path = write_results(format, tmp_path)
    whole = read_identifications([path])
    number = r'="([+-]?\d+)\.(\d+(?:[eE][+-]?\d+)?)"'
    commas = re.sub(number, r'="\1,\2"', path.read_text())
    commas = re.sub(r'( version=")(\d+),(\d+)"', r'\1\2.\3"', commas)
    path.write_text(commas)
    progress = RecordingProgress(Progress())
    identifications = read_identifications([path], progress)
    assert rows_of(identifications) == rows_of(whole) and not len(identifications.unread)
    assert {name: values.tolist() for name, values in identifications.scores.items()} == {
        name: v.tolist() for name, v in whole.scores.items()
    }
    assert [message for message in progress.messages if "have a comma" in message]


def test_import_shows_three_invalid_values_and_lists_all(tmp_path: Path) -> None:
    path = write_results("idxml", tmp_path)
    path.write_text(path.read_text().replace(' charge="2"', ' charge="2+"'))
    progress = RecordingProgress(Progress())
    summary = import_results([path], [write_spectra(tmp_path / "run.mgf")], tmp_path / "project", progress=progress)
    n = sum(psm.charge == 2 for psm in TRUTH)
    (message,) = [message for message in progress.messages if "charge is not a number" in message]
    assert message.startswith(f"{n} matches left out") and message.count("'2+'") == 3 and "match 1 ('2+')" in message
    assert summary.left_out == {"charge is not a number": n} and summary.n_imported == len(TRUTH) - n
    with (tmp_path / "project" / "exports" / "left_out.tsv").open() as file:
        assert [row["value"] for row in csv.DictReader(file, delimiter="\t")] == ["2+"] * n


def test_import_skips_match_of_unknown_peptide(tmp_path: Path) -> None:
    path = write_results("mzidentml", tmp_path)
    path.write_text(re.sub(r'(<SpectrumIdentificationItem[^>]* peptide_ref=")[^"]*"', r'\1nowhere"', path.read_text(), count=1))
    identifications = read_identifications([path])
    assert identifications.unread["value"].to_pylist() == ["nowhere"] and len(identifications) == len(TRUTH) - 1


@pytest.mark.parametrize("name", ["mzid_scan_of_spaces.mzid", "idxml_merge_index_5000_digits.idXML"])
def test_import_accepts_invalid_scan_and_merge_index(shared_cases: Path, tmp_path: Path, name: str) -> None:
    folder = shared_cases / "import_tracebacks"
    summary = import_results([folder / name], [next(folder.glob("*.mgf"))], tmp_path / "project")
    assert summary.n_imported


def test_modification_with_a_million_digits_is_a_name() -> None:
    text = "1" * (1 << 20) + "x"
    assert noted_modification(1, text).name == text
