"""Only ions of equal polarity are compared in library searches and clusters, also if their charge is unknown."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import pytest

from proteoscope.engine.searches import run_search

PEAKS = "\n".join(f"{100 + 13 * k}.05 {100 + k}" for k in range(8))
SPECTRA = {"positive": "CHARGE=1+", "negative": "CHARGE=1-", "negative, no charge": "IONMODE=Negative", "unknown": "CHARGE=0"}
ENTRIES = {
    "positive": "CHARGE=1",
    "negative": "CHARGE=1\nIONMODE=Negative",
    "negative, no charge": "CHARGE=0\nIONMODE=Negative",
    "positive, no charge": "IONMODE=Positive",
    "unknown": "CHARGE=0",
}


def record(lines: str, mz: float) -> str:
    """Return a spectrum with these lines."""
    return f"BEGIN IONS\nPEPMASS={mz:.1f}\n{lines}\n{PEAKS}\nEND IONS\n\n"


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of an exported table."""
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_library_search_compares_only_equal_polarities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that spectra without polarity count as positive, and that entries of unknown charge and polarity match both.

    Each pair of a spectrum and an entry has masses that no other pair has.
    """
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    pairs = list(itertools.product(SPECTRA, ENTRIES))
    entries = (record(f"NAME={entry}\n{ENTRIES[entry]}", 301.1 + 10 * k) for k, (_, entry) in enumerate(pairs))
    spectra = (record(f"TITLE={k}\n{SPECTRA[spectrum]}", 301.1 + 10 * k) for k, (spectrum, _) in enumerate(pairs))
    (tmp_path / "l.mgf").write_text("".join(entries))
    (tmp_path / "s.mgf").write_text("".join(spectra))
    run_search("library", {"spectra": [tmp_path / "s.mgf"], "library": [tmp_path / "l.mgf"]}, project=tmp_path / "p", device="cpu")
    matched = {(*pairs[int(row["spectrum_id"])], row["library_spectrum"]) for row in rows_of(tmp_path / "p" / "exports" / "matches.tsv")}
    is_equal = {pair: pair[1] == "unknown" or pair[0].startswith("negative") == pair[1].startswith("negative") for pair in pairs}
    assert matched == {(*pair, pair[1]) for pair in pairs if is_equal[pair]}


def test_clustering_compares_only_equal_polarities(tmp_path: Path) -> None:
    text = "".join(record(f"TITLE={name}{k}\n{lines}", 301.1) for name, lines in SPECTRA.items() for k in range(3))
    (tmp_path / "s.mgf").write_text(text)
    run_search("cluster", {"spectra": [tmp_path / "s.mgf"]}, project=tmp_path / "p", device="cpu", minimum_charge=0)
    cluster = {row["title"]: row["cluster"] for row in rows_of(tmp_path / "p" / "exports" / "clusters.tsv")}
    of = [{cluster[f"{name}{k}"] for k in range(3)} for name in SPECTRA]
    assert [len(group) for group in of] == [1] * 4 and len(set.union(*of)) == 4
