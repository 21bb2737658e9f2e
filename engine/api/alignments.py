"""Searches of sequences, given as files or as texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from proteoscope.engine.api.arguments import OnProgress, PathLike
from proteoscope.engine.api.search_results import SequenceSearch
from proteoscope.engine.api.searching import IfBusy, RunOptions, SearchArguments
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.files import is_there, scratch_folder
from proteoscope.engine.searches import Files

if TYPE_CHECKING:
    from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters

__all__ = ["Sequences", "align"]

Sequences: TypeAlias = Files | Mapping[str, str]
"""Files of sequences, one or more sequences as texts, or sequences by name."""

_SEQUENCE = re.compile(r"[A-Za-z*\s]+")
_NAME = re.compile(r"[^\s\x00-\x20\x7f]+")
_NAMES = {"queries": "query", "database": "subject"}
_ANY_E_VALUE = 1e9


def align(
    queries: Sequences,
    database: Sequences,
    *,
    all_scores: PathLike | None = None,
    out: PathLike | None = None,
    format: str = "",
    project: PathLike | None = None,
    parameters: SequenceSearchParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> SequenceSearch:
    r"""Align every query with every sequence of a database (Smith-Waterman).

    Parameters
    ----------
    queries, database : str, Path, iterable of these, or mapping of str to str
        Files of proteins, or sequences. A text of residues that is not the name of a file is a sequence; a mapping contains sequences by
        name.
    all_scores : str or Path, optional
        File (.npy) for the scores of all pairs, int32, shape (queries, subjects).
    out, format : str or Path, and str, optional
        File for the hits, and its format; by default the extension determines it.
    project : str or Path, optional
        Project folder; by default a temporary one, as for `identify`.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`. If the queries and the database are given as sequences, hits of any E-value are reported, unless a maximum is given.

    Returns
    -------
    SequenceSearch
        Result with the tables ``hits`` and ``queries``; its text form is the best alignment.

    Examples
    --------
    >>> import proteoscope
    >>> result = proteoscope.align("MKWVTFISLLFLFSSAYSRGVFRRDAHKSE", "MKWVTFISLLLLFSSAYSRGVFRREAHKSE", gap_open=11)
    >>> pair = result.alignment()
    >>> print(pair.query, pair.middle, pair.subject, sep="\n")
    MKWVTFISLLFLFSSAYSRGVFRRDAHKSE
    MKWVTFISLL LFSSAYSRGVFRR+AHKSE
    MKWVTFISLLLLFSSAYSRGVFRREAHKSE
    >>> pair.hit["score"], round(pair.hit["identity"], 3)
    (144, 0.933)
    """
    of_run = RunOptions(run_name, overwrite, skip_existing, if_busy)
    request = SearchArguments(project, parameters, preset, device, threads, progress, settings, of_run)
    with ExitStack() as stack:
        given = {"queries": _listed(queries), "database": _listed(database)}
        texts = {name: _sequences_of(name, value) for name, value in given.items()}
        if any(texts.values()):
            folder = stack.enter_context(scratch_folder())
            for name, sequences in texts.items():
                if sequences:
                    given[name] = folder / f"{name}.fasta"
                    _write(folder / f"{name}.fasta", sequences)
        if all(texts.values()) and parameters is None and preset is None:
            settings.setdefault("maximum_e_value", _ANY_E_VALUE)
        return request.run(SequenceSearch, given, {"all_scores": all_scores}, out, format)


def _sequences_of(name: str, given: Any) -> dict[str, str]:
    """Return the sequences of an argument by name, or an empty mapping if the argument contains files.

    Raises
    ------
    ParameterError
        If a sequence is invalid, or sequences and files are mixed.
    """
    if isinstance(given, Mapping):
        if not given:
            raise ParameterError(f"{name} = {given!r:.100}: no sequence is given")
        for label, sequence in given.items():
            if not isinstance(label, str) or not _NAME.fullmatch(label):
                raise ParameterError(f"{name} = {label!r:.100}: expected a name without blanks")
            if not isinstance(sequence, str) or not _SEQUENCE.fullmatch(sequence):
                raise ParameterError(f"{name}[{label!r:.100}] = {sequence!r:.100}: expected the residues of a sequence")
        return dict(given)
    several = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    are_sequences = [isinstance(item, str) and bool(_SEQUENCE.fullmatch(item)) and not is_there(Path(item)) for item in several]
    if not any(are_sequences):
        return {}
    if not all(are_sequences):
        file = several[are_sequences.index(False)]
        raise ParameterError(f"{name} has sequences, and {file!r:.100}, which is not one; give either files or sequences")
    return {f"{_NAMES[name]}_{number}": sequence for number, sequence in enumerate(several, 1)}


def _listed(given: Sequences) -> Sequences:
    """Return a list of the given sequences or files, which are iterated twice; return a single one, or a mapping, as it is."""
    return given if isinstance(given, str | bytes | os.PathLike | Mapping) or not isinstance(given, Iterable) else [*given]


def _write(path: Path, sequences: Mapping[str, str]) -> None:
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in sequences.items()), encoding="utf-8")
