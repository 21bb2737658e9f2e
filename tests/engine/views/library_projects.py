"""A project with a small library search: a spectrum that is in the library, and one that is the same but for a modification."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search

__all__ = ["project_with_library_search"]

PEAKS = [(100 + 31.3 * k, 100.0 + 10 * k) for k in range(8)]
SHIFT = 15.9949


def project_with_library_search(files: Path, folder: Path) -> Project:
    """Search two spectra in a library of one compound. `files`: where what is searched is written."""
    files.mkdir(parents=True, exist_ok=True)
    moved = [(mz + (SHIFT if k > 3 else 0.0), height) for k, (mz, height) in enumerate(PEAKS)]
    entry = "\n".join(f"{mz:.4f}\t{height}" for mz, height in PEAKS)
    (files / "l.msp").write_text(f"Name: Compound\nPrecursorMZ: 401.1\nPrecursor_type: [M+H]+\nNum Peaks: 8\n{entry}\n")
    blocks = [
        f"BEGIN IONS\nTITLE={title}\nPEPMASS={precursor}\nCHARGE=1+\n" + "\n".join(f"{mz:.4f} {h}" for mz, h in peaks) + "\nEND IONS\n"
        for title, precursor, peaks in (("same", 401.1, PEAKS), ("moved", 401.1 + SHIFT, moved))
    ]
    (files / "s.mgf").write_text("".join(blocks))
    inputs = {"spectra": [files / "s.mgf"], "library": [files / "l.msp"]}
    run_search("library", inputs, project=folder, device="cpu", precursor_tolerance="100 Da")
    return Project.open(folder)
