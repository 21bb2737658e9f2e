"""Table of the matches in result files, the same for all file formats.

A row is a match. Distinct peptides with their modifications are stored separately, since files repeat peptides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import PeptideRow, segment_offsets
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.unfolding import CHARACTERS, MATCHES, REFERENCES, SCORE_NAMES, SCORES, Unfolding

__all__ = ["Identifications", "MatchCollector", "joined", "spectrum_names", "unread_matches"]

_MODIFICATION = 20  # assumed characters per modification in a peptide

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Identifications:
    """Matches of spectra and peptides in files: n rows.

    Attributes
    ----------
    format : str
        Name of the file format, as in `proteoscope.engine.formats.registry.FileFormat`.
    files : tuple of Path
        The result files.
    file : ndarray of int64, shape (n,)
        Index into `files`.
    place : ndarray of int64, shape (n,)
        Line in a text table, or number of the match in the file, from 1.
    run : pyarrow.StringArray, length n
        Name of the spectrum file in the results, or ''.
    native_id, title : pyarrow.StringArray, length n
        Native identifier and title of the spectrum; '' if not given.
    scan : ndarray of int64, shape (n,)
        Scan number, or -1.
    index : ndarray of int64, shape (n,)
        Index of the spectrum in its file, from 0, or -1.
    row : ndarray of int64, shape (n,)
        Index of the spectrum among the MS2 spectra of all files, from 0, or -1.
    retention_time : ndarray of float64, shape (n,)
        Retention time in seconds, NaN if not given.
    precursor_mz : ndarray of float64, shape (n,)
        m/z of the precursor, NaN if not given.
    calculated_mass : ndarray of float64, shape (n,)
        Neutral peptide mass, Da, NaN if not given.
    charge, rank : ndarray of int64, shape (n,)
        Charge of the precursor, and rank of the match; 0 if not given.
    peptide : ndarray of int64, shape (n,)
        Index into `peptides`.
    peptides : tuple of NotedPeptide
        Distinct peptides as written in the files.
    protein_offsets : ndarray of int64, shape (n + 1,)
        Start of each match's proteins in `protein`, followed by the length of `protein`.
    protein : ndarray of int64
        Index into `accessions`.
    accessions : tuple of str
        Distinct protein accessions; empty if the file has none.
    is_decoy : ndarray of int8, shape (n,)
        1 for decoys, 0 for targets, -1 if the file does not state it.
    q_value, posterior_error : ndarray of float64, shape (n,)
        NaN if not given.
    scores : mapping of str to ndarray of float64, shape (n,)
        Scores by column name (`proteoscope.engine.matches.engine_scores`), NaN if not given.
    senses : mapping of str to int
        Sense of each score as stated by the file: 1 if higher is better, -1 if lower is better.
    program : str
        Program that created the matches, or ''.
    unread : pyarrow.Table
        Matches that could not be read: ``file``, ``line`` (same meaning as `place`), ``reason``, ``value`` (the invalid value, or ''),
        ``spectrum``, ``peptide`` (as written) and ``charge``.
    place_name : str
        Unit of `place`: ``line``, ``row`` or ``match``.
    unended : tuple of int
        Rows whose last accession ends a file without a final line break, and may therefore be truncated.
    """

    format: str
    files: tuple[Path, ...]
    file: Integers
    place: Integers
    run: pa.StringArray
    native_id: pa.StringArray
    title: pa.StringArray
    scan: Integers
    index: Integers
    row: Integers
    retention_time: Floats
    precursor_mz: Floats
    calculated_mass: Floats
    charge: Integers
    rank: Integers
    peptide: Integers
    peptides: tuple[NotedPeptide, ...]
    protein_offsets: Integers
    protein: Integers
    accessions: tuple[str, ...]
    is_decoy: NDArray[np.int8]
    q_value: Floats
    posterior_error: Floats
    scores: Mapping[str, Floats]
    senses: Mapping[str, int] = field(default_factory=dict)
    program: str = ""
    unread: pa.Table = field(default_factory=lambda: unread_matches([], [], [], [], []))
    place_name: str = "line"
    unended: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.peptide)


def unread_matches(line: Any, reason: Any, spectrum: Any, peptide: Any, charge: Any, value: Any = None) -> pa.Table:
    """Return a table of matches of one file that could not be read; each argument has one value per match.

    The table has the columns of `Identifications.unread`.
    """
    value = [""] * len(reason) if value is None else value
    given = {"reason": reason, "value": value, "spectrum": spectrum, "peptide": peptide}
    texts = {name: pa.array(values, pa.string()) for name, values in given.items()}
    numbers = {"line": pa.array(line, pa.int64()), "charge": pa.array(charge, pa.int64())}
    return pa.table({"file": pa.array(np.zeros(len(texts["reason"]), np.int64)), **numbers, **texts})


def spectrum_names(run: Any, native_id: Any, title: Any, scan: Any) -> Any:
    """Return the displayed names of n spectra: spectrum file, followed by native identifier, title or scan number (the first known one).

    Arguments are Arrow arrays of length n, with texts ('' if unknown) and scan numbers (-1 if unknown).
    """
    number = pa.compute.if_else(pa.compute.greater_equal(scan, 0), pa.compute.cast(scan, pa.string()), "")
    names = native_id
    for other in (title, number):
        names = pa.compute.if_else(pa.compute.equal(names, ""), other, names)
    return pa.compute.if_else(pa.compute.equal(run, ""), names, pa.compute.binary_join_element_wise(run, names, " "))


class MatchCollector:
    """Collector of the matches in one file while the file is read."""

    _NUMBERS: Mapping[str, tuple[type, float]] = {
        "place": (np.int64, 0),
        "scan": (np.int64, -1),
        "index": (np.int64, -1),
        "row": (np.int64, -1),
        "charge": (np.int64, 0),
        "rank": (np.int64, 0),
        "retention_time": (np.float64, np.nan),
        "precursor_mz": (np.float64, np.nan),
        "calculated_mass": (np.float64, np.nan),
        "is_decoy": (np.int8, -1),
        "q_value": (np.float64, np.nan),
        "posterior_error": (np.float64, np.nan),
    }
    _TEXTS = ("run", "native_id", "title")

    def __init__(self, format: str, unfolding: Unfolding) -> None:
        self.format, self.path, self.program = format, Path(unfolding.path), ""
        self._unfolding = unfolding
        self.n = 0
        self.senses: dict[str, int] = {}
        self._unread: list[tuple[int, str, str, int, str]] = []
        self._unread_spectra: dict[str, list[Any]] = {name: [] for name in (*self._TEXTS, "scan")}
        self._numbers: dict[str, list[Any]] = {name: [] for name in self._NUMBERS}
        self._texts: dict[str, list[Any]] = {name: [] for name in self._TEXTS}
        self._scores: dict[str, list[tuple[int, Any]]] = {}
        self._peptides: dict[NotedPeptide, PeptideRow] = {}
        self._accessions: dict[str, int] = {}
        self._protein_sizes: list[int] = []
        self._peptide_sizes: list[int] = []
        self._peptide: list[Any] = []
        self._counts: list[Any] = []
        self._protein: list[Any] = []

    @property
    def next_match_number(self) -> int:
        """Number of the next match in the file, from 1; matches that could not be read are counted."""
        return self.n + len(self._unread) + 1

    def peptide(self, noted: NotedPeptide) -> PeptideRow:
        """Return the index of a peptide; add the peptide if it is new."""
        number = self._peptides.get(noted)
        if number is None:
            number = self._peptides[noted] = PeptideRow(len(self._peptides))
            self._peptide_sizes.append(len(noted.sequence) + _MODIFICATION * len(noted.modifications))
        return number

    def accession(self, accession: str) -> int:
        """Return the index of a protein accession; add the accession if it is new."""
        number = self._accessions.setdefault(accession, len(self._accessions))
        if number == len(self._protein_sizes):
            self._protein_sizes.append(len(accession) + 1)
        return number

    def leave_out(self, reason: str, *, place: int, peptide: str = "", charge: int = 0, value: str = "", **spectrum: Any) -> None:
        """Record a match that could not be read.

        Parameters
        ----------
        reason : str
            Why the match is omitted, in words for the user.
        place : int
            Number of the match in the file.
        peptide : str
            Peptide as written.
        charge : int
            Precursor charge; 0 if unknown.
        value : str
            The invalid value, or ''.
        **spectrum : Any
            Values of ``run``, ``native_id``, ``title`` and ``scan``, as in `Identifications`.

        Raises
        ------
        InputError
            If the matches contain more data than a valid file of this size could contain.
        """
        self._unfolding.add(MATCHES, 1)
        self._unfolding.add(CHARACTERS, len(peptide) + sum(len(spectrum.get(name, "")) for name in self._TEXTS))
        self._unread.append((place, reason, peptide, charge, value))
        for name, column in self._unread_spectra.items():
            column.append(spectrum.get(name, -1 if name == "scan" else ""))

    def add(self, peptide: PeptideRow, proteins: Sequence[int], scores: Mapping[str, float], **values: Any) -> None:
        """Add a match.

        Parameters
        ----------
        peptide : PeptideRow
            Index returned by `peptide`.
        proteins : sequence of int
            Indices returned by `accession`; duplicates are removed.
        scores : mapping of str to float
            Score values by column name.
        **values : Any
            Values of further columns, by the attribute names of `Identifications`.

        Raises
        ------
        InputError
            If the matches contain more data or score names than a valid file of this size could contain.
        """
        self._unfolding.add(REFERENCES, len(proteins), place=f"match {self.next_match_number}")
        proteins = list(dict.fromkeys(proteins))
        n_characters = self._peptide_sizes[peptide] + sum(map(self._protein_sizes.__getitem__, proteins))
        self._check_proportions(n_characters + sum(len(values.get(name, "")) for name in self._TEXTS), scores)
        for name, column in self._numbers.items():
            column.append(values.get(name, self._NUMBERS[name][1]))
        for name, texts in self._texts.items():
            texts.append(values.get(name, ""))
        for name, score in scores.items():
            self._scores.setdefault(name, []).append((self.n, score))
        self._peptide.append(peptide)
        self._counts.append(len(proteins))
        self._protein.extend(proteins)
        self.n += 1

    def _check_proportions(self, n_characters: int, scores: Mapping[str, float]) -> None:
        """Add the texts and scores of the next match to the totals; raise `InputError` if a total is too large for the size of the file.

        This limits memory: in a short malicious file, all matches could refer to the same long list.
        """
        place = f"match {self.next_match_number}"
        self._unfolding.add(MATCHES, 1, place=place)
        self._unfolding.add(CHARACTERS, n_characters, place=place)
        n_names = len(self._scores) + sum(name not in self._scores for name in scores)
        self._unfolding.check(SCORE_NAMES, n_names, place=place)
        self._unfolding.check(SCORES, n_names * (self.n + 1), place=place)

    def finish(self) -> Identifications:
        """Return the collected matches."""
        scores = {}
        for name, result in self._scores.items():
            scores[name] = np.full(self.n, np.nan)
            scores[name][[row for row, _ in result]] = [value for _, value in result]
        numbers: dict[str, Any] = {name: np.array(self._numbers[name], dtype) for name, (dtype, _) in self._NUMBERS.items()}
        return Identifications(
            format=self.format,
            files=(self.path,),
            file=np.zeros(self.n, np.int64),
            **numbers,
            **{name: pa.array(texts, pa.string()) for name, texts in self._texts.items()},
            peptide=np.array(self._peptide, np.int64),
            peptides=tuple(self._peptides),
            protein_offsets=segment_offsets(np.array(self._counts, np.int64)),
            protein=np.array(self._protein, np.int64),
            accessions=tuple(self._accessions),
            scores=scores,
            senses=self.senses,
            program=self.program,
            unread=self._unread_table(),
            place_name="match",
        )

    def _unread_table(self) -> pa.Table:
        line, reason, peptide, charge, value = zip(*self._unread, strict=True) if self._unread else ((), (), (), (), ())
        run, native_id, title = (pa.array(self._unread_spectra[name], pa.string()) for name in self._TEXTS)
        spectrum = spectrum_names(run, native_id, title, pa.array(self._unread_spectra["scan"], pa.int64()))
        return unread_matches(line, reason, spectrum, peptide, charge, value)


def joined(parts: Sequence[Identifications]) -> Identifications:
    """Concatenate the matches of several files of one format."""
    if len(parts) == 1:
        return parts[0]
    peptides: dict[NotedPeptide, int] = {}
    accessions: dict[str, int] = {}
    of_peptide = [np.array([peptides.setdefault(peptide, len(peptides)) for peptide in part.peptides], np.int64) for part in parts]
    of_protein = [
        np.array([accessions.setdefault(accession, len(accessions)) for accession in part.accessions], np.int64) for part in parts
    ]
    counts = np.concatenate([np.diff(part.protein_offsets) for part in parts])
    names = dict.fromkeys(name for part in parts for name in part.scores)
    unread = [part.unread.set_column(0, "file", pa.array(np.full(len(part.unread), i, np.int64))) for i, part in enumerate(parts)]
    begins = np.cumsum([0, *map(len, parts)]).tolist()

    def together(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    numbers = ("place", "scan", "index", "row", "retention_time", "precursor_mz", "calculated_mass", "charge", "rank", "is_decoy")
    return Identifications(
        format=parts[0].format,
        files=tuple(path for part in parts for path in part.files),
        file=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        **{name: together(name) for name in (*numbers, "q_value", "posterior_error")},
        **{name: pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("run", "native_id", "title")},
        peptide=np.concatenate([of[part.peptide] for of, part in zip(of_peptide, parts, strict=True)]),
        peptides=tuple(peptides),
        protein_offsets=segment_offsets(counts),
        protein=np.concatenate([of[part.protein] for of, part in zip(of_protein, parts, strict=True)]),
        accessions=tuple(accessions),
        scores={name: np.concatenate([part.scores.get(name, np.full(len(part), np.nan)) for part in parts]) for name in names},
        senses={name: sense for part in parts for name, sense in part.senses.items()},
        program=next((part.program for part in parts if part.program), ""),
        unread=pa.concat_tables(unread),
        place_name=parts[0].place_name,
        unended=tuple(begin + row for begin, part in zip(begins, parts, strict=False) for row in part.unended),
    )
