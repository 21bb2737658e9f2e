"""Design of a quantification as an editable table of texts, guessed from file names and validated by the design reader."""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import Any, get_args

from proteoscope.engine.entry import SearchRequest, identifying_kinds
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.experiments.rows import ExperimentRow
from proteoscope.engine.experiments.table import read_experiment
from proteoscope.engine.files import atomic_file, scratch_folder
from proteoscope.engine.formats.separated_rows import separated_rows
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import inside
from proteoscope.engine.quantification.design import BLOCKS, Design, read_design
from proteoscope.engine.quantification.identified import OTHER_QUANTIFIED_KINDS, files_of_run
from proteoscope.engine.quantification.labels import LabelName, label
from proteoscope.engine.quantification.models import comparison_model
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.results.counts import counted

__all__ = [
    "BLOCKS",
    "DESIGN_COLUMNS",
    "ComparedConditions",
    "DesignIssue",
    "DesignTable",
    "check_design",
    "compared_conditions",
    "design_text",
    "experiment_design",
    "experiment_request",
    "filled_down",
    "guessed_design",
    "has_sample",
    "list_run_files",
    "pasted_cells",
    "read_design_table",
    "with_block",
]

DESIGN_COLUMNS = ("file", "sample", "condition", "replicate")
_MAXIMUM_ROWS, _MAXIMUM_COLUMNS = 20_000, 50
_LINE = re.compile(r"line (\d+)")
_PARTS = re.compile(r"[_\-. ]+")
_REPLICATE = re.compile(r"(?:[_\-. ](?:(?:replicate|repl|rep|biorep|br)[_\-. ]*|[rbn](?=\d))|[_\-. ]*)(\d{1,4})$", re.IGNORECASE)
_FRACTION = re.compile(r"[_\-. ]+(?:fraction|frac|fr|f)[_\-. ]*\d{1,3}(?=$|[_\-. ])", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:\.(?:gz|mzml|mzxml|mgf|ms2|d|raw|xml))+$", re.IGNORECASE)
_MAXIMUM_REPLICATE = 1_000_000
_NAME_DIGITS = 12


@dataclass(frozen=True)
class DesignTable:
    """A design as a table of texts.

    Attributes
    ----------
    columns
        Names of the columns, at least `DESIGN_COLUMNS`.
    rows
        Rows with one text per column.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DesignIssue:
    """Reason why a table is not a valid design, and the row with the error, or None if it concerns the whole table."""

    text: str
    row: int | None = None


@dataclass(frozen=True)
class ComparedConditions:
    """Conditions that a design compares, the reference first, and notes on the comparison."""

    groups: tuple[str, ...]
    notes: tuple[str, ...] = ()


def with_block(table: DesignTable, name: str, is_there: bool) -> DesignTable:
    """Return the design with a block column added or removed; a new column is empty and comes last.

    Examples
    --------
    >>> table = DesignTable(DESIGN_COLUMNS, (("a.mzML", "s1", "x", "1"),))
    >>> with_block(table, "subject", True).rows
    (('a.mzML', 's1', 'x', '1', ''),)
    >>> with_block(with_block(table, "subject", True), "subject", False) == table
    True
    """
    if is_there == (name in table.columns):
        return table
    if is_there:
        return DesignTable((*table.columns, name), tuple((*row, "") for row in table.rows))
    at = table.columns.index(name)
    columns, *rows = ((*row[:at], *row[at + 1 :]) for row in (table.columns, *table.rows))
    return DesignTable(columns, tuple(rows))


def list_run_files(folder: Path, runs: Sequence[str]) -> list[str]:
    """Return the spectrum files of the finished identifications `runs`, () for the newest one; files of equal content are listed once.

    Raises
    ------
    InputError, StorageError
        If there is no project, or no such finished identification.
    """
    project, kinds = Project.open(folder), identifying_kinds()
    also = kinds | OTHER_QUANTIFIED_KINDS
    done = {run.id: run.kind for run in project.runs() if run.kind in also and run.status == "done"}
    newest = [name for name, kind in done.items() if kind in kinds] or list(done)
    chosen = list(runs) or newest[-1:]
    missing = next((name for name in chosen if name not in done), None)
    if not chosen or missing is not None:
        what = "holds no finished identification" if missing is None else f"has no finished identification {missing:.60}"
        raise InputError(folder, what, remedy="Identify spectra into this project first")
    result: dict[str, str] = {}
    for name in chosen:
        for file in files_of_run(project, name):
            result.setdefault(file.content, file.path)
    return list(result.values())


def guessed_design(files: Sequence[str], kit: LabelName | None = None) -> DesignTable:
    """Guess a design from file names.

    A number at the end of a name is the replicate. The text before this number, without the parts common to all names, is the condition.
    Files whose names differ only in a text such as ``F1`` or ``frac02`` are fractions of one sample. If `kit` is given, each channel of
    each file has a row without a condition.

    Examples
    --------
    >>> for row in guessed_design(["x_control_1.mzML", "x_control_2.mzML", "x_heat_rep1.mzML"]).rows:
    ...     print(*row)
    x_control_1.mzML control_1 control 1
    x_control_2.mzML control_2 control 2
    x_heat_rep1.mzML heat_1 heat 1
    """
    names = [PurePath(file).name for file in files]
    whole = [_SUFFIX.sub("", name) or name for name in names]
    stems = [_FRACTION.sub("", name) or name for name in whole]
    # Fractions belong to one sample, but files with the same name in two folders do not.
    keys = [stem if stem != name else file for stem, name, file in zip(stems, whole, files, strict=True)]
    heads, numbers = zip(*map(_split_replicate, stems), strict=True) if stems else ((), ())
    samples: dict[str, tuple[str, str, str]] = {}
    taken: dict[str, set[int]] = {}
    for key, condition, number in zip(keys, _without_common_parts(heads), numbers, strict=True):
        if key not in samples:
            used = taken.setdefault(condition, set())
            replicate = number if 0 < number <= _MAXIMUM_REPLICATE and number not in used else max(used, default=0) + 1
            used.add(replicate)
            samples[key] = (f"{condition}_{replicate}", condition, str(replicate))
    shown = [name if names.count(name) == 1 else file for name, file in zip(names, files, strict=True)]
    if kit is not None:
        labelled = (
            (file, f"{stem}_{channel}", "", "", channel) for file, stem in zip(shown, stems, strict=True) for channel in label(kit).channels
        )
        return DesignTable((*DESIGN_COLUMNS, "channel"), tuple(labelled))
    rows = ((file, *samples[key]) for file, key in zip(shown, keys, strict=True))
    return DesignTable(DESIGN_COLUMNS, tuple(rows))


def experiment_design(rows: Sequence[ExperimentRow]) -> tuple[DesignTable, dict[str, Any]]:
    """Return the design of the runs of an experiment, and the quantification parameters that its labels require.

    Rows with labels are quantified by reporter ions; the kit is the smallest one with all of their channels. If two samples of a condition
    have the same replicate number, for example because none was given, all samples of the condition are numbered in their order.

    Examples
    --------
    >>> design, _ = experiment_design([ExperimentRow("run", "/data/a.mzML", "liver", "treated", replicate=2)])
    >>> design.rows
    (('a.mzML', 'liver', 'treated', '2'),)
    """
    names = Counter(PurePath(file).name for file in {row.file for row in rows})
    channels = {row.label for row in rows if row.label}
    kits = [name for name in get_args(LabelName) if channels <= set(label(name).channels)] if channels else []
    replicates: dict[str, dict[str, int]] = {}
    for row in rows:
        replicates.setdefault(row.condition, {})[row.sample] = row.replicate
    for condition, numbers in replicates.items():
        if len(set(numbers.values())) < len(numbers):
            replicates[condition] = {sample: number for number, sample in enumerate(numbers, 1)}
    table = [
        (
            name if names[name] == 1 else row.file,
            row.sample,
            row.condition,
            str(replicates[row.condition][row.sample]),
            *([row.label] if channels else []),
        )
        for row, name in ((row, PurePath(row.file).name) for row in rows)
    ]
    parameters = {"method": "tmt", "label": min(kits, key=lambda name: len(label(name).channels))} if kits else {}
    return DesignTable((*DESIGN_COLUMNS, *(["channel"] if channels else [])), tuple(table)), parameters


def experiment_request(request: SearchRequest, *, writes: bool = True) -> SearchRequest:
    """Return the request to quantify all finished runs of the experiment of a project.

    The design is written to a file in the project, unless `writes` is False, as for an estimate.

    Raises
    ------
    InputError, StorageError
        If the project has no experiment or no finished run of it, or writing fails.
    ParameterError
        If the request also names runs or a design.
    """
    parameters, folder = request.parameters_as(QuantificationParameters), request.files("project")[0]
    if parameters.run or request.path("design") is not None:
        raise ParameterError("experiment cannot be combined with run or design: the experiment defines the runs and the design")
    project = Project.open(folder)
    finished = {run.id for run in project.runs() if run.status == "done"}
    rows = [row for row in read_experiment(project) if row.run in finished]
    if not rows:
        raise InputError(folder, "has no finished run of the experiment", remedy="Search its runs: proteoscope experiment run")
    if nameless := [row.run for row in rows if not row.condition]:
        raise InputError(
            folder,
            f"has {counted(len(nameless), 'finished run')} without a condition in the experiment, such as {nameless[0]}",
            remedy="Name the conditions in the window, or create the experiment with --pattern or --runs",
        )
    design, of_labels = experiment_design(rows)
    content = design_text(design).encode()
    path = inside(project.folder, "design", f"made-{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}.tsv")
    if writes:
        with project.writing("the design"), atomic_file(path) as file:
            file.write(content)
    values = {**parameters.model_dump(), **(of_labels if parameters.method == "label-free" else {})}
    chosen = QuantificationParameters.checked({**values, "run": tuple(dict.fromkeys(row.run for row in rows))})
    return replace(request, parameters=chosen, options={**request.options, "experiment": None, "design": path})


def _split_replicate(stem: str) -> tuple[str, int]:
    """Return a name without its replicate number, and the number (0 if there is none)."""
    match = _REPLICATE.search(stem)
    head = "" if match is None else stem[: match.start()].rstrip("_-. ")
    return (head, int(match[1])) if match is not None and head else (stem, 0)


def _without_common_parts(names: Sequence[str]) -> list[str]:
    """Return the names without the components that are common to all names at the start and at the end.

    If different names would become equal, the names are returned unchanged.
    """
    different = list(dict.fromkeys(names))
    if len(different) < 2:
        return list(names)
    parts = {name: [part for part in _PARTS.split(name) if part] or [name] for name in different}
    shortest = min(map(len, parts.values()))
    first = next((n for n in range(shortest) if len({part[n] for part in parts.values()}) > 1), shortest - 1)
    last = next((n for n in range(shortest - first) if len({part[-1 - n] for part in parts.values()}) > 1), 0)
    short = {name: "_".join(part[first : len(part) - last]) for name, part in parts.items()}
    return [short[name] for name in names] if len(set(short.values())) == len(different) else list(names)


def design_text(table: DesignTable) -> str:
    """Return the design as tab-separated values with one line per row."""
    written = io.StringIO()
    writer = csv.writer(written, delimiter="\t", lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(["".join(symbol if symbol.isprintable() else " " for symbol in cell) for cell in row] for row in table.rows)
    return written.getvalue()


def check_design(table: DesignTable, files: Sequence[str], kit: LabelName | None = None) -> Design | DesignIssue:
    """Return the design of a table, or the reason why it is invalid for an identification with the given files.

    Rows without a sample, condition and replicate are skipped; their files or channels are not quantified.
    """
    positions = [number for number, row in enumerate(table.rows) if has_sample(row)]
    retained = DesignTable(table.columns, tuple(table.rows[number] for number in positions))
    with scratch_folder() as folder:
        path = folder / "design.tsv"
        path.write_text(design_text(retained), encoding="utf-8", newline="")
        try:
            return read_design(path, files, None if kit is None else label(kit))
        except InputError as error:
            return _issue(error, positions)


def compared_conditions(
    design: Design, table: DesignTable, groups: Sequence[str] = (), reference: str = ""
) -> ComparedConditions | DesignIssue:
    """Return the compared conditions of a design, or the reason why they cannot be compared.

    If the user requested no comparison (neither by `groups` nor by a block column), the result has no conditions, and the reason is a note:
    proteins can be quantified without a comparison.

    Parameters
    ----------
    design
        Design read from `table`.
    groups, reference
        Parameters of the quantification: compared conditions, and the reference condition.
    """
    try:
        compared = design.groups(groups, reference)
        model = comparison_model(design, compared, reference) if compared else None
    except ParameterError as error:
        text = f"Conditions are not compared: {error}."
        is_requested = bool(groups) or any(name in table.columns for name in BLOCKS)
        return DesignIssue(text) if is_requested else ComparedConditions((), (text,))
    if model is None:
        return ComparedConditions(())
    used = (f"Blocks of the comparison: {', '.join(model.blocks)}.",) if model.blocks else ()
    return ComparedConditions(compared, (*used, *(f"{message}." for message in model.messages)))


def has_sample(row: Sequence[str]) -> bool:
    """Return True if a row of the design has a sample, a condition or a replicate."""
    return any(cell.strip() for cell in row[1 : len(DESIGN_COLUMNS)])


def _issue(error: InputError, positions: Sequence[int]) -> DesignIssue:
    """Convert an error of the design reader to an issue; `positions` contains the row in the table for each line that the reader got."""
    match = _LINE.fullmatch(error.place)
    line = int(match[1]) - 2 if match else -1
    row = positions[line] if 0 <= line < len(positions) else None
    begin = f"The design {error.reason}" if row is None else f"Row {row + 1}: {error.reason}"
    return DesignIssue(f"{begin}. {error.remedy}." if error.remedy else f"{begin}.", row)


def read_design_table(path: Path) -> DesignTable:
    """Read a table of tab-separated texts without validation; design columns come first.

    Raises
    ------
    InputError
        If the file cannot be read, is not text, or lacks a column.
    """
    remedy = f"Its columns are {', '.join(DESIGN_COLUMNS)}"
    lines = [row for row in separated_rows(path, remedy) if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    missing = next((name for name in DESIGN_COLUMNS if header.count(name) != 1), None)
    if missing is not None:
        raise InputError(path, f"has no column '{missing}', or several", place="line 1", remedy=remedy)
    if len(lines) > _MAXIMUM_ROWS or len(header) > _MAXIMUM_COLUMNS:
        raise InputError(path, f"has more than {_MAXIMUM_ROWS:,} rows or {_MAXIMUM_COLUMNS} columns", remedy=remedy)
    more = [name for name in dict.fromkeys(header) if name and name not in DESIGN_COLUMNS]
    columns = (*DESIGN_COLUMNS, *more)
    at = [header.index(name) for name in columns]
    rows = tuple(tuple(row[position].strip() if position < len(row) else "" for position in at) for row in lines[1:])
    return DesignTable(columns, rows)


def filled_down(cells: Sequence[str]) -> list[str]:
    """Return the cells of a column, filled from the first cell.

    A number is incremented; a number after a text is incremented only if the second cell continues the series.

    >>> filled_down(["1", "", ""]), filled_down(["control", "", ""]), filled_down(["s1", "s2", "", ""])
    (['1', '2', '3'], ['control', 'control', 'control'], ['s1', 's2', 's3', 's4'])
    """
    first = cells[0]
    match = re.fullmatch(r"(.*?)(\d{1,9})", first)
    if match is None or not (match[1] == "" or (len(cells) > 2 and cells[1] == f"{match[1]}{int(match[2]) + 1}")):
        return [first] * len(cells)
    return [f"{match[1]}{int(match[2]) + step}" for step in range(len(cells))]


def pasted_cells(text: str) -> list[list[str]]:
    r"""Return the cells of text copied from a spreadsheet: tab-separated, one line per row, with quoted line breaks.

    >>> pasted_cells("a\tb\r\nc\td\r\n")
    [['a', 'b'], ['c', 'd']]
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    try:
        rows = list(csv.reader(io.StringIO(lines), delimiter="\t"))
    except csv.Error:
        rows = [line.split("\t") for line in lines.split("\n")]
    rows = rows[:_MAXIMUM_ROWS]
    return [list(row) for row in zip(*zip_longest(*rows, fillvalue=""), strict=True)] if any(rows) else []
