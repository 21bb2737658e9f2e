"""Readers of result tables of other programs; columns are defined in the manuals of these programs.

Percolator: https://github.com/percolator/percolator/wiki/Interface. Crux: https://crux.ms/file-formats. mokapot:
https://mokapot.readthedocs.io. Sage: https://sage-docs.vercel.app/docs/results/search. Comet: https://uwpr.github.io/Comet. MSFragger:
https://github.com/Nesvilab/MSFragger/wiki; Philosopher's ``psm.tsv``: https://fragpipe.nesvilab.org/docs. MaxQuant: ``tables.pdf`` of its
distribution. DIA-NN: https://github.com/vdemichev/DiaNN#main-output-reference. PeptideShaker: its default PSM report. mzTab: Griss et al.
2014, Mol Cell Proteomics 13:2765.

Parquet reports are converted to the same text cells as text reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.chemistry.masses import mz, neutral_mass
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence, noted_modification, parse_peptide
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.registry import has_suffix
from proteoscope.engine.formats.separated_cells import Cells, read_cells
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.engine_scores import name_score_column, score_called
from proteoscope.engine.matches.match_lists.identifications import Identifications, spectrum_names, unread_matches
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.unfolding import CHARACTERS

__all__ = [
    "read_comet",
    "read_crux",
    "read_dia_nn",
    "read_dia_nn_parquet",
    "read_maxquant",
    "read_msfragger",
    "read_mztab",
    "read_peptideshaker",
    "read_percolator",
    "read_sage",
]

_MINUTE = 60.0
_NO_FEATURES = {
    "psmid",
    "specid",
    "label",
    "scannr",
    "expmass",
    "calcmass",
    "peptide",
    "proteins",
    "proteinids",
    "filename",
    "file",
    "score",
    "q-value",
    "posterior_error_prob",
    "mokapot score",
    "mokapot q-value",
    "mokapot pep",
    "ret_time",
    "rt",
    "retentiontime",
    "rank",
    "scan",
    "charge",
    "spectrum",
    "file_name",
}
"""Columns in tables of Percolator and mokapot that are not features."""
_TARGETS, _DECOYS = ("1", "true", "+1", "1.0"), ("-1", "false", "0", "-1.0")
_PSM_ID = (
    r"^(?P<run>.*?)_(?P<scan>\d+)_(?P<charge>\d+)_(?P<rank>\d+)$",  # Comet, Proteoscope, Crux, MS-GF+'s converter
    r"^(?P<run>.*)\.(?P<scan>\d+)\.\d+\.(?P<charge>\d+)(?:_(?P<rank>\d+))?$",  # MSFragger and other engines that use the names of the TPP
)
_MSFRAGGER_PLACE = re.compile(r"(?P<site>N-term|C-term|\d+[A-Z]?|[A-Z]\d+)\((?P<mass>[+-]?[\d.]+(?:[eE][+-]?\d+)?)\)")
_COMET_PLACE = re.compile(r"(?P<place>\d+)_[SV]_(?P<mass>[+-]?[\d.]+)(?:_(?P<end>[nNcC]))?")
_MZTAB_PLACE = re.compile(r"(?P<first>\d+)(?:\[[^\]]*\])?(?:\|\d+(?:\[[^\]]*\])?)*-(?P<name>[^,\[]+(?:\[[^\]]*\])?)")
_DIA_NN_SCORES = ("Global.Q.Value", "Protein.Q.Value", "PG.Q.Value", "CScore", "Evidence", "Quantity.Quality")
_MZTAB_LOSS = re.compile(r"(?:(?<![^,])\d+-|\||(?<=\d))\[[^\]]*loss[^\]]*\]")
"""Neutral losses of a modification or position, which do not change the mass of the peptide."""

Values = dict[str, Any]
_MAXIMUM_ROWS = 5_000_000


def read_percolator(source: ByteSource, progress: Progress) -> Identifications:
    """Read PSM tables of Percolator and mokapot, and their input (``.pin``)."""
    cells = read_cells(source, progress, joins_last=True)
    is_direction = pa.compute.equal(pa.compute.utf8_lower(cells.text("SpecId", "PSMId")), "defaultdirection").to_numpy(zero_copy_only=False)
    ids = cells.required("PSMId", "SpecId", "PSM ID")
    truth = pa.compute.utf8_lower(cells.text("Label"))
    is_target, is_decoy = (pa.compute.is_in(truth, value_set=pa.array(some)).to_numpy(zero_copy_only=False) for some in (_TARGETS, _DECOYS))
    label = is_target.astype(np.int64) - is_decoy
    parts = _parts_of_ids(ids)
    run = cells.text("filename", "file", "file_name") if any(map(cells.has, ("filename", "file", "file_name"))) else parts["run"]
    scan = cells.whole("ScanNr", "scan", missing=-1)
    charge = _charge_of_flags(cells)
    # PSM names of Proteoscope contain the index among all spectra, not the scan number.
    is_own = np.array([has_suffix(name, "spectra") for name in pa.compute.unique(parts["run"]).to_pylist()], np.bool_)
    is_from_proteoscope = (
        is_own[pa.compute.index_in(parts["run"], pa.compute.unique(parts["run"])).to_numpy(zero_copy_only=False)]
        if len(cells)
        else np.zeros(0, np.bool_)
    )
    scan = np.where(is_from_proteoscope, -1, np.where(scan >= 0, scan, parts["scan"]))
    # Other programs, such as MS2Rescore, use the spectrum name; the meaning of a bare number is unknown.
    is_named = pa.compute.invert(pa.compute.match_substring_regex(ids, r"^\d*$"))
    native_id = pa.compute.if_else(pa.compute.and_(is_named, pa.array((scan < 0) & ~is_from_proteoscope)), ids, "")
    features = {name for name in cells.names if name.lower() not in _NO_FEATURES and not re.fullmatch(r"(?i)charge_?\d+", name)}
    scores = _scores(cells, {name: name_score_column(name) for name in sorted(features)}, skip_texts=True)
    named = {"score": "score_percolator", "mokapot score": "score_mokapot"}
    scores |= _scores(cells, {name: column for name, column in named.items() if cells.has(name)})
    expected = cells.numbers("ln(expect)", "lnExpect")
    if "score_e_value" not in scores and np.isfinite(expected).any():
        scores["score_e_value"] = np.exp(np.clip(expected, -700, 700))
    values: Values = {
        "run": run if isinstance(run, pa.Array) else pa.array(run),
        "scan": scan,
        "row": np.where(is_from_proteoscope, parts["scan"], -1),
        "native_id": native_id,
        "charge": np.where(charge > 0, charge, np.maximum(parts["charge"], 0)),
        "rank": np.zeros(len(cells), np.int64),
        "is_decoy": np.where(label == 0, -1, label < 0).astype(np.int8),
        "q_value": cells.numbers("q-value", "mokapot q-value"),
        "posterior_error": cells.numbers("posterior_error_prob", "mokapot PEP"),
        "scores": scores,
        "program": "mokapot" if cells.has("mokapot score") else "Percolator" if cells.has("posterior_error_prob") else "",
        "proteins": cells.lists("[\t;]" if cells.has("proteinIds") else "\t", "Proteins", "proteinIds"),
    }
    result = _identifications("Percolator or mokapot", cells, parse_peptide, cells.required("peptide"), values, is_included=~is_direction)
    has_last_line = len(result) > 0 and result.place[-1] == cells.line[-1]
    ends_with_proteins = not cells.is_ended and cells.names[-1].lower() in ("proteins", "proteinids")
    return replace(result, unended=(len(result) - 1,)) if has_last_line and ends_with_proteins else result


def read_crux(source: ByteSource, progress: Progress) -> Identifications:
    """Read Crux's PSM table from Percolator, ``percolator.target.psms.txt``. Older versions of Crux give numbers instead of file names."""
    cells = read_cells(source, progress)
    charge = cells.whole("charge", missing=0)
    side = pa.compute.utf8_lower(cells.text("target/decoy"))
    is_target, is_decoy = (pa.compute.equal(side, word).to_numpy(zero_copy_only=False) for word in ("target", "decoy"))
    names = {"percolator score": "score_percolator", "xcorr score": "score_xcorr"}
    values: Values = {
        "run": cells.text("file"),
        "scan": cells.whole("scan", missing=-1),
        "charge": charge,
        "precursor_mz": cells.numbers("spectrum precursor m/z"),
        "rank": cells.whole("percolator rank", missing=0),
        "is_decoy": np.where(is_target | is_decoy, is_decoy, -1).astype(np.int8),
        "q_value": cells.numbers("percolator q-value"),
        "posterior_error": cells.numbers("percolator PEP"),
        "program": "Crux",
        "scores": _scores(cells, {name: column for name, column in names.items() if cells.has(name)}),
        "proteins": cells.lists(",", "protein id"),
    }
    return _identifications("Crux Percolator", cells, parse_peptide, cells.required("sequence"), values)


def read_sage(source: ByteSource, progress: Progress) -> Identifications:
    """Read ``results.sage.tsv`` of Sage."""
    cells = read_cells(source, progress)
    identifier = cells.required("scannr")
    names = (
        "hyperscore",
        "delta_next",
        "delta_best",
        "matched_peaks",
        "sage_discriminant_score",
        "peptide_q",
        "protein_q",
        "poisson",
        "longest_b",
        "longest_y",
        "matched_intensity_pct",
        "scored_candidates",
    )
    values: Values = {
        "run": cells.text("filename"),
        "native_id": identifier,
        "charge": cells.whole("charge", missing=0),
        "rank": cells.whole("rank", missing=0),
        "is_decoy": (cells.whole("label", missing=1) < 0).astype(np.int8),
        "retention_time": cells.numbers("rt") * _MINUTE,
        "calculated_mass": cells.numbers("calcmass"),
        "precursor_mz": _mz(cells.numbers("expmass"), cells.whole("charge", missing=0)),
        "q_value": cells.numbers("spectrum_q", "spectrum_fdr"),
        "posterior_error": 10.0 ** np.minimum(cells.numbers("posterior_error"), 0.0),
        "scores": _scores(cells, {name: name_score_column(name) for name in names if cells.has(name)}),
        "program": "Sage",
        "proteins": cells.lists(";", "proteins"),
        "scan": _read_numbers(pa.compute.extract_regex(identifier, r"^(?P<scan>\d+)$"), "scan"),
    }
    return _identifications("Sage", cells, parse_peptide, cells.required("peptide"), values)


def read_comet(source: ByteSource, progress: Progress) -> Identifications:
    """Read text tables of Comet, whose first line contains the version and the file."""
    first = source.peek(1 << 16).split(b"\n", 1)[0].decode("utf-8", "replace").split("\t")
    cells = read_cells(source, progress, begins=lambda line: line.startswith("scan\tnum\t"))
    source.unfolding.add(CHARACTERS, sum(map(len, first[1:2])) * len(cells))
    names = ("e-value", "xcorr", "delta_cn", "sp_score", "ions_matched", "ions_total")
    values: Values = {
        "run": pa.array([first[1] if len(first) > 1 else ""] * len(cells), pa.string()),
        "scan": cells.whole("scan", missing=-1),
        "charge": cells.whole("charge", missing=0),
        "rank": cells.whole("num", missing=0),
        "precursor_mz": _mz(cells.numbers("exp_neutral_mass"), cells.whole("charge", missing=0)),
        "calculated_mass": cells.numbers("calc_neutral_mass"),
        "scores": _scores(cells, {name: name_score_column(name) for name in names if cells.has(name)}),
        "program": "Comet",
        "proteins": cells.lists(",", "protein"),
    }
    if cells.has("retention_time_sec"):
        values["retention_time"] = cells.numbers("retention_time_sec")
    noted = pa.compute.binary_join_element_wise(cells.required("plain_peptide"), cells.text("modifications"), "\t")

    def parse(text: str) -> NotedPeptide:
        sequence, _, modifications = text.partition("\t")
        placed = []
        for result in _whole_matches(_COMET_PLACE, modifications):
            end = (result["end"] or "").lower()
            position = 0 if end == "n" else len(sequence) + 1 if end == "c" else int(result["place"])
            placed.append(NotedModification(position, "", float(result["mass"])))
        return _check_peptide(sequence, placed)

    return _identifications("Comet text", cells, parse, noted, values)


def read_msfragger(source: ByteSource, progress: Progress) -> Identifications:
    """Read MSFragger's table of a run, or Philosopher's ``psm.tsv``."""
    cells = read_cells(source, progress)
    is_own = cells.has("scannum")
    charge = cells.whole("charge", missing=0)
    names = (
        "hyperscore",
        "nextscore",
        "expectscore",
        "expectation",
        "num_matched_ions",
        "number of matches",
        "peptideprophet probability",
        "probability",
        "massdiff",
        "delta mass",
        "spectralsim",
        "rtscore",
    )
    values: Values = {
        "charge": charge,
        "rank": cells.whole("hit_rank", missing=0),
        "program": "MSFragger",
        "precursor_mz": _mz(cells.numbers("precursor_neutral_mass", "Observed Mass"), charge),
        "calculated_mass": cells.numbers("calc_neutral_pep_mass", "Calculated Peptide Mass"),
        "retention_time": cells.numbers("retention_time") * _MINUTE if is_own else cells.numbers("Retention"),
        "scores": _scores(cells, {name: name_score_column(name) for name in names if cells.has(name)}),
        "scan": cells.whole("scannum", missing=-1),
    }
    if is_own:
        both = cells.text("protein"), pa.compute.replace_substring(cells.text("alternative_proteins"), "@@", "\t")
        # MSFragger separates alternative proteins by commas, newer versions by @@; no accession has a comma before a capital and a digit.
        both = (both[0], pa.compute.replace_substring(both[1], ",", "\t"))
        values["run"] = pa.array([""] * len(cells), pa.string())
    else:
        parts = _parts_of_ids(cells.required("Spectrum"))
        values |= {"scan": parts["scan"], "run": parts["run"]}
        if cells.has("Spectrum File") and not any(parts["run"].unique().to_pylist()):
            values["run"] = cells.text("Spectrum File")
        both = cells.required("Protein"), pa.compute.replace_substring(cells.text("Mapped Proteins"), ", ", "\t")
    together = Cells(cells.path, ["proteins"], [pa.compute.binary_join_element_wise(*both, "\t")], cells.line)
    values["proteins"] = together.lists("\t", "proteins")
    noted = pa.compute.binary_join_element_wise(cells.required("peptide"), cells.text("modification_info", "Assigned Modifications"), "\t")

    def parse(text: str) -> NotedPeptide:
        sequence, _, modifications = text.partition("\t")
        placed = []
        for result in _whole_matches(_MSFRAGGER_PLACE, modifications):
            site = result["site"]
            digits = re.sub("[^0-9]", "", site)
            position = 0 if site == "N-term" else len(sequence) + 1 if site == "C-term" else int(digits)
            placed.append(NotedModification(position, "", float(result["mass"])))
        return _check_peptide(sequence, placed)

    return _identifications("MSFragger", cells, parse, noted, values)


def read_maxquant(source: ByteSource, progress: Progress) -> Identifications:
    """Read ``msms.txt`` of MaxQuant."""
    cells = read_cells(source, progress)
    scores = _scores(
        cells, {name: name_score_column(name) for name in ("delta score", "number of matches", "localization prob") if cells.has(name)}
    )
    scores["score_andromeda"] = cells.numbers("Score")
    scores["score_dia_nn_pep"] = cells.numbers("PEP")
    is_decoy = pa.compute.equal(cells.text("Reverse"), "+")
    # For decoys, MaxQuant gives only the number of the protein group.
    groups = cells.text("Protein group IDs") if cells.has("Protein group IDs") else cells.text("Sequence")
    unnamed = pa.compute.and_(is_decoy, pa.compute.equal(cells.text("Proteins"), ""))
    named = pa.compute.replace_substring_regex(groups, r"([^;]+)", r"REV__group_\1")
    together = Cells(cells.path, ["proteins"], [pa.compute.if_else(unnamed, named, cells.text("Proteins"))], cells.line)
    values: Values = {
        "run": cells.required("Raw file"),
        "scan": cells.whole("Scan number", missing=-1),
        "charge": cells.whole("Charge", missing=0),
        "precursor_mz": cells.numbers("m/z"),
        "calculated_mass": cells.numbers("Mass"),
        "retention_time": cells.numbers("Retention time") * _MINUTE,
        "posterior_error": np.clip(cells.numbers("PEP"), 0.0, 1.0),
        "is_decoy": is_decoy.to_numpy(zero_copy_only=False).astype(np.int8),
        "scores": scores,
        "proteins": together.lists(";", "proteins"),
        "program": "MaxQuant",
    }
    return _identifications("MaxQuant msms.txt", cells, parse_peptide, cells.required("Modified sequence"), values)


def read_dia_nn(source: ByteSource, progress: Progress) -> Identifications:
    """Read DIA-NN's main report as text. Each row is a precursor in a run; its spectrum is identified by scan number."""
    return _dia_nn("DIA-NN report", read_cells(source, progress))


def read_dia_nn_parquet(source: ByteSource, progress: Progress) -> Identifications:
    """Read the report of DIA-NN 2, ``report.parquet``."""
    described = (
        Column("Modified.Sequence", is_nullable=True),
        Column("Precursor.Charge", type="int64", kind="integer", is_nullable=True),
        Column("Q.Value", kind="number", is_nullable=True),
        *(Column(name, is_nullable=True, is_optional=True) for name in ("Run", "Protein.Ids", "Protein.Group")),
        *(
            Column(name, kind="number", is_nullable=True, is_optional=True)
            for name in ("PEP", "MS2.Scan", "Decoy", "Precursor.Mz", "RT", *_DIA_NN_SCORES)
        ),
    )
    remedy = "Give DIA-NN's original report.parquet; for other programs, give results as text, such as Sage's results.sage.tsv"
    table = Table("report", "DIA-NN report", (), stored=described)
    return _dia_nn("DIA-NN Parquet report", _read_parquet(source, table, remedy, progress))


def _dia_nn(format: str, cells: Cells) -> Identifications:
    scores = _scores(cells, {name: name_score_column(name) for name in _DIA_NN_SCORES if cells.has(name)})
    scores["score_dia_nn_pep"] = cells.numbers("PEP")
    values: Values = {
        "run": cells.text("Run", "File.Name"),
        "scan": cells.whole("MS2.Scan", missing=-1),
        "charge": cells.whole("Precursor.Charge", missing=0),
        "precursor_mz": cells.numbers("Precursor.Mz"),
        "retention_time": cells.numbers("RT") * _MINUTE,
        "q_value": cells.numbers("Q.Value"),
        "posterior_error": np.clip(cells.numbers("PEP"), 0.0, 1.0),
        "scores": scores,
        "program": "DIA-NN",
        "is_decoy": np.where(cells.has("Decoy"), cells.whole("Decoy", missing=0) == 1, -1).astype(np.int8),
        "proteins": cells.lists(";", "Protein.Ids", "Protein.Group"),
    }
    return _identifications(format, cells, parse_peptide, cells.required("Modified.Sequence"), values)


def read_peptideshaker(source: ByteSource, progress: Progress) -> Identifications:
    """Read PeptideShaker's default PSM report."""
    cells = read_cells(source, progress)
    charge = cells.text("Identification Charge", "Measured Charge")
    texts = pa.compute.replace_substring_regex(cells.required("Modified Sequence"), r"-(COOH|OH)$", "")
    texts = pa.compute.replace_substring_regex(texts, r"^(NH2|H)-", "")
    # A modified terminus precedes the dash (ace-PEPTIDE); its full name is in a column of modifications (Acetylation of N-term).
    texts = pa.compute.binary_join_element_wise(
        cells.required("Sequence"), texts, cells.text("Variable Modifications"), cells.text("Fixed Modifications"), "\t"
    )
    values: Values = {
        "run": cells.text("Spectrum File"),
        "title": cells.text("Spectrum Title"),
        "scan": cells.whole("Spectrum Scan Number", missing=-1),
        "charge": _read_numbers(pa.compute.extract_regex(charge, r"(?P<charge>\d+)"), "charge", 0),
        "retention_time": cells.numbers("RT"),
        "precursor_mz": cells.numbers("m/z"),
        "calculated_mass": cells.numbers("Theoretical Mass"),
        "scores": _scores(cells, {name: name_score_column(name) for name in ("Confidence [%]",) if cells.has(name)}),
        "is_decoy": np.where(cells.has("Decoy"), cells.whole("Decoy", missing=0) == 1, -1).astype(np.int8),
        "program": "PeptideShaker",
        "proteins": cells.lists(r"[,;]\s*", "Protein(s)"),
    }
    return _identifications("PeptideShaker report", cells, _parse_peptideshaker, texts, values)


_PEPTIDESHAKER_MODIFICATION = re.compile(r"(?P<name>[^(),]+(?:\([^()]*\))?[^(),]*?)\s*\((?P<places>\d+(?:,\s*\d+)*)\)")


def _parse_peptideshaker(text: str) -> NotedPeptide:
    sequence, _, *listed = text.split("\t")
    placed = []
    for modifications in listed:
        for result in _whole_matches(_PEPTIDESHAKER_MODIFICATION, modifications):
            name = result["name"].strip(" ,;")
            is_front, is_end = (end in name.lower() for end in ("n-term", "c-term"))
            positions = map(int, result["places"].split(","))
            placed += [NotedModification(0 if is_front else len(sequence) + 1 if is_end else position, name) for position in positions]
    return _check_peptide(sequence, placed)


def read_mztab(source: ByteSource, progress: Progress) -> Identifications:
    """Read the PSMs of mzTab 1.0, which contains one row per protein of a PSM."""
    if re.search(rb"^MTD\s+mzTab-version\s+\S+-M", source.peek(1 << 16), re.MULTILINE):
        raise InputError(source.path, "is mzTab-M, which lists small molecules", remedy="Give mzTab 1.0, which lists PSMs")
    runs, scores_called = _mztab_metadata(source)
    cells = read_cells(source, progress, begins=lambda line: line.startswith("PSH\t"), strip="PSM")
    texts = pa.compute.binary_join_element_wise(cells.required("sequence"), cells.text("modifications"), "\t")
    references = pa.compute.utf8_trim_whitespace(_select_first(cells.required("spectra_ref")))
    result = pa.compute.extract_regex(references, r"^ms_run\[(?P<run>\d+)\]:(?P<id>.*)$")
    number = _read_numbers(result, "run", 0)
    names = np.array(["", *(runs.get(i, "") for i in range(1, max(runs, default=0) + 1))], dtype=object)
    lengths = np.array([len(name) for name in names.tolist()])
    source.unfolding.add(CHARACTERS, int(lengths[np.minimum(number, len(names) - 1)].sum()))
    native = pa.compute.fill_null(result.field("id"), "") if len(cells) else pa.array([], pa.string())
    charge = cells.whole("charge", missing=0)
    scores: dict[str, NDArray[np.float64]] = {}
    for i, (accession, name) in scores_called.items():
        engine_score = score_called(accession) or score_called(name)
        column = engine_score.column if engine_score is not None else "score_main" if i == 1 else name_score_column(name)
        scores[column] = cells.numbers(f"search_engine_score[{i}]")
    decoys = cells.whole("opt_global_cv_MS:1002217_decoy_peptide", missing=-1)
    q_value = cells.numbers("opt_global_q-value", "opt_global_q-value_score", "opt_global_cv_MS:1002354_PSM-level_q-value")
    for i, (accession, name) in scores_called.items():
        if accession in _Q_VALUES or name.lower() in _Q_VALUE_NAMES:
            q_value = cells.numbers(f"search_engine_score[{i}]")
            scores.pop("score_main", None)
    identifier = cells.text("PSM_ID")
    sequence = cells.text("sequence")
    key = pa.compute.binary_join_element_wise(
        identifier, references, sequence, cells.text("modifications"), pa.array(charge).cast(pa.string()), "\t"
    )
    values: Values = {
        "run": pa.array(names[np.minimum(number, len(names) - 1)], pa.string()),
        "native_id": native,
        "charge": charge,
        "retention_time": cells.parse_numbers(_select_first(cells.text("retention_time")), "retention_time"),
        "precursor_mz": cells.numbers("exp_mass_to_charge"),
        "calculated_mass": neutral_mass(cells.numbers("calc_mass_to_charge"), charge),
        "is_decoy": np.where((decoys == 0) | (decoys == 1), decoys, -1).astype(np.int8),
        "q_value": q_value,
        "scores": scores,
        "proteins": _merged_proteins(cells, key),
        "scan": np.full(len(cells), -1, np.int64),
    }
    first = np.zeros(len(cells), np.bool_)
    coded = key.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first[np.unique(coded, return_index=True)[1]] = True
    return _identifications("mzTab", cells, _parse_mztab, texts, values, is_included=first)


def _select_first(lists: pa.StringArray) -> pa.StringArray:
    """Return the first item of each text; a text is a list with bars between items, which mzTab contains for merged spectra."""
    return pa.compute.replace_substring_regex(lists, r"\|.*$", "")


_Q_VALUES = {"MS:1002354", "MS:1002054", "MS:1001491", "MS:1001868", "MS:1002315"}
_Q_VALUE_NAMES = {"q-value", "psm-level q-value", "percolator:q value", "ms-gf:qvalue", "openms:target-decoy psm q-value"}


def _mztab_metadata(source: ByteSource) -> tuple[dict[int, str], dict[int, tuple[str, str]]]:
    """Return two dictionaries by number: the file of each run, and the accession and name of each PSM score."""
    runs: dict[int, str] = {}
    scores: dict[int, tuple[str, str]] = {}
    for line in source.peek(8 << 20).decode("utf-8", "replace").splitlines():
        if not line.startswith("MTD\t"):
            continue
        _, name, *value = line.split("\t")
        if (run := re.fullmatch(r"ms_run\[(\d{1,6})\]-location", name)) and value:
            runs[int(run[1])] = value[0].strip()
        elif (score := re.fullmatch(r"psm_search_engine_score\[(\d{1,6})\]", name)) and value:
            parts = [part.strip() for part in value[0].strip("[] ").split(",")]
            scores[int(score[1])] = (parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else "")
    return runs, scores


def _merged_proteins(cells: Cells, key: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Return the proteins of each PSM, combined from all rows of the PSM and assigned to its first row.

    The result contains offsets (CSR by row), indices of proteins, and accessions. Rows with the same `key` are one PSM.
    """
    offsets, codes, items = cells.lists(";", "accession")
    coded = key.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first, inverse = np.unique(coded, return_index=True, return_inverse=True)
    owner = np.repeat(first[inverse] if len(coded) else coded, np.diff(offsets))
    order = np.argsort(owner, kind="stable")
    retained = _are_given(items)
    codes, owner = codes[order], owner[order]
    is_one = retained[codes] if len(codes) else np.zeros(0, np.bool_)
    return segment_offsets(np.bincount(owner[is_one], minlength=len(cells))), codes[is_one], items


def _are_given(items: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return True for each text of mzTab that is not null."""
    return np.array([item.lower() != "null" for item in items], np.bool_)


def _parse_mztab(text: str) -> NotedPeptide:
    sequence, _, modifications = text.partition("\t")
    modifications = "" if modifications.lower() == "null" else _MZTAB_LOSS.sub("", modifications)
    placed = _whole_matches(_MZTAB_PLACE, modifications)
    # If there are several possible positions, use the first.
    return _check_peptide(sequence, [noted_modification(int(modification["first"]), modification["name"]) for modification in placed])


def _whole_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches of `pattern` in `text`, a list of modifications.

    Raises
    ------
    ValueError
        If a part of the list is not a modification and would be lost.
    """
    if rest := pattern.sub("", text).strip(" ,;-"):
        raise ValueError(f"{shortened(rest, 40)!r} in it is not a modification with a position and a mass or name")
    return list(pattern.finditer(text))


def _identifications(
    format: str,
    cells: Cells,
    parse: Callable[[str], NotedPeptide],
    texts: pa.StringArray,
    values: Values,
    is_included: NDArray[np.bool_] | None = None,
) -> Identifications:
    """Return the rows of a table as identifications, except rows without a valid peptide and rows for which `is_included` is False."""
    n = len(cells)
    peptide, peptides, reason = cells.peptides(parse, texts)
    is_wanted = is_included if is_included is not None else np.ones(n, np.bool_)
    is_read = (peptide >= 0) & ~cells.is_broken
    rows, unread = np.flatnonzero(is_read & is_wanted), pa.array(np.flatnonzero(~is_read & is_wanted))
    reason = pa.compute.if_else(pa.array(cells.is_broken), pa.array(cells.broken_reason, pa.string()), reason)
    offsets, protein, accessions = values.pop("proteins")
    chosen_proteins, chosen_offsets = take_segments(protein, offsets, rows)
    scores: Mapping[str, NDArray[np.float64]] = values.pop("scores", {})
    program, senses = values.pop("program", ""), values.pop("senses", {})
    columns: Values = {
        "scan": np.full(n, -1, np.int64),
        "index": np.full(n, -1, np.int64),
        "row": np.full(n, -1, np.int64),
        "charge": np.zeros(n, np.int64),
        "rank": np.zeros(n, np.int64),
        "is_decoy": np.full(n, -1, np.int8),
        **{name: np.full(n, np.nan) for name in ("retention_time", "precursor_mz", "calculated_mass", "q_value", "posterior_error")},
        **{name: cells.text("") for name in ("run", "native_id", "title")},
        **values,
    }
    run, native_id, title = (columns[name].take(unread) for name in ("run", "native_id", "title"))
    called = spectrum_names(run, native_id, title, pa.array(columns["scan"], pa.int64()).take(unread))
    lines, charges = cells.line[unread], np.asarray(columns["charge"])[unread]
    values_left = pa.array(cells.broken_value, pa.string()).take(unread)
    left = unread_matches(lines, reason.take(unread), called, texts.take(unread), charges, values_left)
    taken: Values = {
        name: column.take(pa.array(rows)) if isinstance(column, pa.Array | pa.ChunkedArray) else np.asarray(column)[rows]
        for name, column in columns.items()
    }
    return Identifications(
        format=format,
        files=(cells.path,),
        file=np.zeros(len(rows), np.int64),
        place=cells.line[rows],
        peptide=peptide[rows],
        peptides=peptides,
        protein_offsets=chosen_offsets,
        protein=chosen_proteins,
        accessions=accessions,
        program=program,
        scores={name: column[rows] for name, column in scores.items()},
        senses=senses,
        unread=left,
        place_name=cells.place_name,
        **taken,
    )


def _scores(cells: Cells, named: Mapping[str, str], *, skip_texts: bool = False) -> dict[str, NDArray[np.float64]]:
    """Return the columns of scores by name, except columns that contain no numbers."""
    scores: dict[str, NDArray[np.float64]] = {}
    for name, column in named.items():
        result = cells.numbers(name, skip_texts=skip_texts)
        if np.isfinite(result).any():
            scores[column] = np.where(np.isfinite(result), result, np.nan)
    return scores


def _parts_of_ids(ids: pa.StringArray) -> dict[str, Any]:
    """Return the file, scan number, charge and rank that the identifiers of PSMs contain, by column name."""
    run = pa.compute.replace_substring_regex(ids, "^.*$", "")
    scan = np.full(len(ids), -1, np.int64)
    charge, rank = scan.copy(), scan.copy()
    for pattern in _PSM_ID:
        result = pa.compute.extract_regex(ids, pattern)
        is_new = result.is_valid().to_numpy(zero_copy_only=False) & (scan < 0)
        run = pa.compute.if_else(is_new, result.field("run"), run)
        for name, column in (("scan", scan), ("charge", charge), ("rank", rank)):
            column[is_new] = _read_numbers(result, name)[is_new]
    return {"run": run, "scan": scan, "charge": charge, "rank": rank}


def _read_numbers(matched: pa.StructArray, name: str, missing: int = -1) -> NDArray[np.int64]:
    """Return the group `name` of n matches of a regular expression as integers, (n,) int64.

    The value is `missing` if the expression or the group did not match, or if the group has 16 digits or more.
    """
    texts = matched.field(name)
    texts = pa.compute.if_else(
        pa.compute.fill_null(pa.compute.and_(matched.is_valid(), pa.compute.less(pa.compute.utf8_length(texts), 16)), False),
        texts,
        pa.scalar(None, pa.string()),
    )
    texts = pa.compute.if_else(pa.compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    numbers = pa.compute.fill_null(texts.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, np.int64)


def _charge_of_flags(cells: Cells) -> NDArray[np.int64]:
    """Return the charge of each row, (n,) int64: from flags in columns such as ``Charge2``, or from the column ``charge``; 0 if unknown."""
    charge = cells.whole("charge", missing=0)
    for name in cells.names:
        if result := re.fullmatch(r"(?i)charge_?(\d{1,3})", name):
            charge = np.where(cells.numbers(name) == 1, int(result[1]), charge)
    return charge


def _mz(mass: NDArray[np.float64], charge: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return m/z from neutral masses; NaN if the charge is unknown."""
    return np.where(charge > 0, mz(mass, np.maximum(charge, 1)), np.nan)


def _check_peptide(sequence: str, placed: list[NotedModification]) -> NotedPeptide:
    """Return a peptide with these modifications, after checking it.

    Raises
    ------
    ValueError
        If the sequence is invalid, or a modification is outside it.
    """
    if not is_sequence(sequence):
        raise ValueError(f"{shortened(repr(sequence), 40)} is not a sequence of residues")
    if any(not 0 <= modification.position <= len(sequence) + 1 for modification in placed):
        raise ValueError(f"a modification is outside {shortened(sequence, 40)}")
    return NotedPeptide(sequence, tuple(sorted(placed, key=lambda modification: modification.position)))


def _read_parquet(source: ByteSource, table: Table, remedy: str, progress: Progress) -> Cells:
    """Return the columns that both `table` and a Parquet file contain, as texts.

    Parameters
    ----------
    source : ByteSource
        Source of the file, which is opened again by path, since Parquet is read from its end.
    table : Table
        Names and types of the columns. The file must contain all columns that are not optional.
    remedy : str
        Sentence about what the user can do if the table is invalid.
    progress : Progress
        Progress of the run.

    Raises
    ------
    InputError
        If the file is compressed with gzip, is damaged or is not such a table, has a nested column or too many rows, or contains far
        more data than its size suggests.
    Cancelled
        If the user cancelled.
    """
    if source.is_gzip:
        raise InputError(source.path, "is a Parquet table that is packed with gzip", remedy="Unpack it first")
    with TableFile(source.path, table, remedy=remedy) as file:
        if file.n_rows > _MAXIMUM_ROWS:
            raise InputError(
                source.path,
                f"the table has {file.n_rows:,} rows, more than {_MAXIMUM_ROWS:,}",
                remedy="Give the report of fewer runs, or a filtered report",
            )
        names = list(file.columns)
        parts: dict[str, list[pa.Array]] = {name: [] for name in names}
        n_rows = 0
        for chunk in file.batches(names):
            progress.check()
            n_rows += len(chunk)
            for name in names:
                parts[name] += pa.compute.fill_null(chunk[name].cast(pa.string()), "").chunks
        progress.advance(source.size)
    columns = [pa.concat_arrays(parts[name]) if parts[name] else pa.array([], pa.string()) for name in names]
    return Cells(source.path, names, columns, np.arange(1, n_rows + 1), place_name="row")
