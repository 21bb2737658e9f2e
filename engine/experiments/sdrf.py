"""SDRF-Proteomics tables (HUPO-PSI, Sample and Data Relationship Format): samples and files of an experiment, read and written.

Reference: Dai et al., Nature Communications 2021, 12:5854; https://sdrf.quantms.org.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import get_args

from proteoscope.engine.chemistry.enzymes import ENZYMES
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.experiments.rows import ExperimentRow
from proteoscope.engine.quantification.labels import LabelName, label

__all__ = ["MAXIMUM_BYTES", "is_sdrf", "sdrf_cells", "sdrf_table"]

MAXIMUM_BYTES = 1 << 25
"""Maximum size of a table, which has many columns."""
_FILE, _SAMPLE, _ASSAY = "comment[data file]", "source name", "assay name"
_FRACTION, _LABEL = "comment[fraction identifier]", "comment[label]"
_REPLICATE, _TECHNICAL = "characteristics[biological replicate]", "comment[technical replicate]"
_FACTOR = re.compile(r"factor value\s*\[.*\]")
_UNKNOWN = frozenset(("", "not available", "not applicable"))
_LABEL_FREE, _NOT_AVAILABLE = "label free sample", "not available"
_NAME_OF_TERM = re.compile(r"(?:^|;)\s*nt\s*=\s*([^;]*)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_COLUMNS = (
    _SAMPLE,
    "characteristics[organism]",
    "characteristics[organism part]",
    _REPLICATE,
    _ASSAY,
    "technology type",
    "comment[proteomics data acquisition method]",
    _LABEL,
    "comment[instrument]",
    "comment[cleavage agent details]",
    _FRACTION,
    _TECHNICAL,
    _FILE,
)
_REMEDY = "Correct the SDRF table; parse_sdrf validate-sdrf of the package sdrf-pipelines checks it"


def is_sdrf(header: Sequence[str]) -> bool:
    """Return True if the header of a table is that of an SDRF table."""
    return _SAMPLE in (name.strip().lower() for name in header)


def sdrf_cells(path: Path, header: Sequence[str], lines: Sequence[Sequence[str]]) -> tuple[list[tuple[int, dict[str, str]]], list[str]]:
    """Return the cells of an SDRF table by the names of the columns of an experiment's table.

    Parameters
    ----------
    path : Path
        Path of the table, for messages.
    header : sequence of str
        Names of the columns.
    lines : sequence of sequence of str
        Cells of the lines below.

    Returns
    -------
    list of (int, dict)
        Line number and cells of each line that is not empty.
    list of str
        Warnings. Technical replicates of a sample become separate samples, with a number after the name of the sample.

    Raises
    ------
    InputError
        If a column is missing or occurs twice, a number is invalid, or lines of a file contradict each other; the message has the line.
    """
    names = [re.sub(r"\s*\[\s*(.*?)\s*\]", r"[\1]", cell.strip().lower()) for cell in header]
    for name in (_SAMPLE, _FILE, _ASSAY, _FRACTION, _LABEL, _REPLICATE, _TECHNICAL):
        if names.count(name) > 1 or (name in (_SAMPLE, _FILE) and name not in names):
            what = f"has the column '{name}' twice" if name in names else f"has no column '{name}'"
            raise InputError(path, what, place="line 1", remedy=_REMEDY)
    factors = [place for place, name in enumerate(names) if _FACTOR.fullmatch(name)]
    result, technical, of_files = [], dict[str, set[int]](), dict[str, tuple[int, int, int]]()
    for line, row in enumerate(lines, 2):
        if not any(cell.strip() for cell in row):
            continue
        place = f"line {line}"
        if len(row) > len(names):
            raise InputError(path, f"has {len(row)} cells, but {len(names)} columns", place=place, remedy=_REMEDY)
        values = [cell.strip() for cell in (*row, *[""] * (len(names) - len(row)))]
        cells = dict(zip(names, values, strict=True))
        for name in (_SAMPLE, _FILE):
            if cells[name].lower() in _UNKNOWN:
                raise InputError(path, f"has no {name}", place=place, remedy=_REMEDY)
        fraction, replicate, repeat = (_number(path, cells, name, place) for name in (_FRACTION, _REPLICATE, _TECHNICAL))
        first, *before = of_files.setdefault(cells[_FILE], (line, fraction, repeat))
        if before != [fraction, repeat]:
            what = f"gives file '{shortened(cells[_FILE])}' another fraction or technical replicate than line {first}"
            raise InputError(path, what, place=place, remedy=_REMEDY)
        technical.setdefault(cells[_SAMPLE], set()).add(repeat)
        condition = ", ".join(_term(values[place]) for place in factors if values[place].lower() not in _UNKNOWN)
        numbers = {"fraction": str(fraction), "replicate": str(replicate), "technical": str(repeat)}
        label_name = _channel(_term(cells.get(_LABEL, "")))
        result.append((line, {"file": cells[_FILE], "sample": cells[_SAMPLE], "condition": condition, "label": label_name, **numbers}))
    repeated = {sample for sample, repeats in technical.items() if len(repeats) > 1}
    for _, cells in result:
        repeat_text = cells.pop("technical")
        if cells["sample"] in repeated and repeat_text != "1":
            cells["sample"] += f"_{repeat_text}"
    warnings = [f"Technical replicates of {len(repeated):,} samples become samples, named with a number"] if repeated else []
    return result, warnings


def _number(path: Path, cells: Mapping[str, str], name: str, place: str) -> int:
    text = cells.get(name, "").lower()
    if text in _UNKNOWN or (text == "pooled" and name == _REPLICATE):
        return 1
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise InputError(path, f"'{shortened(text)}' is not a number of {name}", place=place, remedy="Use numbers from 1")
    return int(text)


def _term(text: str) -> str:
    """Return the name in a cell such as ``NT=TMT126;AC=PRIDE:0000285``, or else the whole cell."""
    match = _NAME_OF_TERM.search(text)
    return text if match is None else match[1].strip()


def _channels() -> dict[str, str]:
    """Return a mapping from the channels of all isobaric labels to their names in SDRF, such as ``126`` to ``TMT126``."""
    kits: tuple[LabelName, ...] = get_args(LabelName)
    return {channel: f"{'TMT' if kit.startswith('tmt') else 'iTRAQ'}{channel}" for kit in kits for channel in label(kit).channels}


def _channel(text: str) -> str:
    """Return the channel that a label in SDRF names, such as ``126`` for ``TMT126``.

    The result is '' for label-free samples; the names of other labels are returned unchanged.
    """
    if text.lower() in (*_UNKNOWN, _LABEL_FREE):
        return ""
    return {name.lower(): channel for channel, name in _channels().items()}.get(text.lower(), text)


def sdrf_table(rows: Sequence[ExperimentRow], parameters: Mapping[str, object], values: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """Return the SDRF table of an experiment, and the names of columns whose values are not available.

    Parameters
    ----------
    rows : sequence of ExperimentRow
        Rows of the experiment.
    parameters : mapping
        Parameters of its search, which name the enzyme; empty before the search.
    values : mapping of str to str
        Values of columns for all rows, by the name of the column or the part in brackets, such as ``organism``.

    Raises
    ------
    ParameterError
        If a value is empty, contains unprintable characters, or belongs to a column that the experiment determines.
    """
    fixed = dict.fromkeys(_COLUMNS, _NOT_AVAILABLE) | {"technology type": "proteomic profiling by mass spectrometry"}
    if (enzyme := ENZYMES.get(str(parameters.get("enzyme", "")))) is not None and enzyme.accession:
        fixed["comment[cleavage agent details]"] = f"NT={enzyme.name};AC={enzyme.accession}"
    of_rows = (_SAMPLE, _ASSAY, _REPLICATE, _LABEL, _FRACTION, _TECHNICAL, _FILE)
    short = {name.rpartition("[")[2].rstrip("]"): name for name in _COLUMNS if name not in of_rows}
    for name, value in values.items():
        column = short.get(name.strip().lower(), name.strip().lower())
        if column not in short.values() or not value.strip() or not value.isprintable():
            raise ParameterError(f"'{shortened(name)}={shortened(value)}': expected a value of {', '.join(short)}")
        fixed[column] = value.strip()
    has_conditions = any(row.condition for row in rows)
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow([*_COLUMNS, *(["factor value[condition]"] if has_conditions else [])])
    repeats, technical, names = Counter[tuple[str, int, str]](), dict[str, int](), _channels()
    for row in rows:
        repeats[row.sample, row.fraction, row.label] += 1
        cells = fixed | {
            _SAMPLE: row.sample,
            _ASSAY: row.run,
            _REPLICATE: str(row.replicate),
            _LABEL: names.get(row.label, row.label) or _LABEL_FREE,
            _FRACTION: str(row.fraction),
            # All channels of a file have the same number.
            _TECHNICAL: str(technical.setdefault(row.file, repeats[row.sample, row.fraction, row.label])),
            _FILE: PurePath(row.file).name,
        }
        writer.writerow([*(cells[name] for name in _COLUMNS), *([row.condition or _NOT_AVAILABLE] if has_conditions else [])])
    return text.getvalue().encode(), [name for name in _COLUMNS if fixed[name] == _NOT_AVAILABLE and name not in of_rows]
