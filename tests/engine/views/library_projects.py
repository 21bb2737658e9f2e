"""A project with a small library search: a spectrum that is in the library, and one that differs by a modification."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search

__all__ = ["project_with_library_search"]

PEAKS = [(100 + 31.3 * k, 100.0 + 10 * k) for k in range(8)]
SHIFT = 15.9949


def project_with_library_search(files: Path, folder: Path, n_compounds: int = 1) -> Project:
    """Search two spectra of each compound in a library of compounds.

    Parameters
    ----------
    files : folder for the searched files.
    """
    files.mkdir(parents=True, exist_ok=True)
    entries, blocks = [], []
    for number in range(n_compounds):
        precursor, name = 401.1 + 150 * number, f"Compound{f' {number}' if number else ''}"
        peaks = [(mz + 3.7 * number, height) for mz, height in PEAKS]
        shifted = [(mz + (SHIFT if k > 3 else 0.0), height) for k, (mz, height) in enumerate(peaks)]
        entry = "\n".join(f"{mz:.4f}\t{height}" for mz, height in peaks)
        entries.append(f"Name: {name}\nPrecursorMZ: {precursor}\nPrecursor_type: [M+H]+\nNum Peaks: 8\n{entry}\n")
        for title, mass, shown in (("same", precursor, peaks), ("moved", precursor + SHIFT, shifted)):
            written = "\n".join(f"{mz:.4f} {height}" for mz, height in shown)
            blocks.append(f"BEGIN IONS\nTITLE={title}{number or ''}\nPEPMASS={mass}\nCHARGE=1+\n{written}\nEND IONS\n")
    (files / "l.msp").write_text("\n".join(entries))
    (files / "s.mgf").write_text("".join(blocks))
    inputs = {"spectra": [files / "s.mgf"], "library": [files / "l.msp"]}
    run_search("library", inputs, project=folder, device="cpu", precursor_tolerance="100 Da")
    return Project.open(folder)
