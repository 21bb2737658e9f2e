"""Copies of the sample data that ship with the program."""

import shutil
from pathlib import Path

from proteoscope import resources
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.project.outputs import check_outputs

__all__ = ["copy_sample_files"]

_SUFFIXES = {".gz", ".fasta", ".tsv", ".md"}


def copy_sample_files(folder: Path) -> list[Path]:
    """Copy the samples into a folder, created if missing, and return the copies; files of the same names are replaced.

    Raises
    ------
    ParameterError
        If the folder is a project, or one of its own folders.
    StorageError
        If writing fails.
    """
    check_outputs([folder], [])
    samples = sorted(path for path in resources.path("samples").iterdir() if path.suffix in _SUFFIXES)
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for sample in samples:
            with sample.open("rb") as source, atomic_file(folder / sample.name, as_is=True) as copy:
                shutil.copyfileobj(source, copy)
    return [folder / sample.name for sample in samples]
