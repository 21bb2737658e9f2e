"""Projects with an open modification search of real spectra, for tests and screenshots of the window."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.searching import find_modified

QC_SHEW = "spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML"
PROTEINS = "proteomes/shew.fasta"


def project_with_modifications(folder: Path, data: Path) -> Project:
    """Return a project with a search of a thousand spectra of Shewanella in its proteins.

    Parameters
    ----------
    data : folder of the unpacked test data.
    """
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "standard"))
    find_modified([data / QC_SHEW], [data / PROTEINS], folder, parameters, device="cpu")
    return Project.open(folder)
