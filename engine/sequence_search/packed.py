"""Packed sequences (columns of residue codes) of the files of a run."""

from typing import Any

from proteoscope.engine.errors import StorageError
from proteoscope.engine.formats.translation import Translation
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.sequences.database import SequenceDatabase, cache_store, open_database, read_sequences

__all__ = ["packed_database"]


def packed_database(run: SearchRun[Any], kind: str, translation: Translation | None = None) -> SequenceDatabase:
    """Return the packed sequences of the run's files, cached if possible, otherwise in memory.

    Parameters
    ----------
    run : SearchRun
        Run with the files.
    kind : str
        Kind of the input files: ``queries`` or ``database``.
    translation : Translation, optional
        Translation of nucleotides to protein sequences; None for proteins.

    Raises
    ------
    InputError
        If a file contains no sequences.
    Cancelled
        If the user cancels.
    """
    paths, progress = run.paths(kind), run.progress
    try:
        return open_database(paths, run.digests(kind), cache_store(), progress, translation)
    except StorageError as error:
        progress.message(f"The packed database could not be cached, and was read into memory: {error}", "warning")
        return read_sequences(paths, progress, translation)
