"""Table of an experiment: the runs of a project with their files and samples, ``experiment.tsv``.

A project may be untrusted, and its table may name any file of this user. The table has the SHA-256 of each file, which is checked before
the file is searched: see `proteoscope.engine.project.digests`.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.files import atomic_file, is_there
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import copied_files, copy_text, file_digest
from proteoscope.engine.project.paths import EXPERIMENT, check_run_name, inside, is_run_id
from proteoscope.engine.quantification.design import design_of_files
from proteoscope.engine.quantification.separated_rows import MAXIMUM_BYTES, MAXIMUM_ROWS, separated_rows

__all__ = ["ExperimentRow", "add_rows", "describe_files", "read_experiment", "read_table", "remove_runs", "write_experiment"]

_GIVEN = ("file", "sample", "condition", "fraction", "replicate", "label")
_COLUMNS = ("run", *_GIVEN, "sha256")
_MAXIMUM_CHARACTERS, _MAXIMUM_NUMBER = 1000, 1_000_000
_REMEDY = f"Write a tab-separated table with the column file and, if known, {', '.join(_GIVEN[1:])}"
_OWN_REMEDY = "Create the experiment again: proteoscope experiment create"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ExperimentRow(NamedTuple):
    """Run of an experiment, or one label channel of it.

    Attributes
    ----------
    run : str
        Name of the run in the project; '' until it has one.
    file : str
        Absolute path of the spectrum file.
    sample, condition : str
        Names of the sample and its condition; the condition may be ''.
    fraction, replicate : int
        Numbers of the fraction and the replicate, from 1.
    label : str
        Channel of an isobaric label; '' without labels.
    sha256 : str
        SHA-256 of the file in hexadecimal; '' until it is known.
    """

    run: str
    file: str
    sample: str
    condition: str = ""
    fraction: int = 1
    replicate: int = 1
    label: str = ""
    sha256: str = ""


def read_experiment(project: Project) -> list[ExperimentRow]:
    """Return the rows of the experiment of a project.

    Raises
    ------
    InputError
        If the project has no experiment, or its table is invalid.
    StorageError
        If the table is a link.
    """
    path = inside(project.folder, EXPERIMENT)
    if not is_there(path):
        raise InputError(project.folder, "has no experiment", remedy="Create one: proteoscope experiment create")
    rows = _read(path, _COLUMNS, _OWN_REMEDY)
    owners: dict[str, tuple[str, str]] = {}
    for row in rows:
        if not is_run_id(row.run) or not _SHA256.fullmatch(row.sha256) or not Path(row.file).is_absolute():
            raise InputError(path, f"has an invalid name, digest or path of run '{shortened(row.run)}'", remedy=_OWN_REMEDY)
        # Folder names on Windows and macOS ignore case.
        if owners.setdefault(row.run.casefold(), (row.file, row.sha256)) != (row.file, row.sha256):
            raise InputError(path, f"names run '{shortened(row.run)}' twice", remedy=_OWN_REMEDY)
    return rows


def read_table(path: Path) -> list[ExperimentRow]:
    """Read a user's table of runs; relative paths start from the folder of the table.

    Raises
    ------
    InputError
        If the table is invalid, or names a file, or a channel of a file, twice. The message contains the line.
    """
    rows = _read(path, ("file",), _REMEDY)
    return [row._replace(file=str(path.absolute().parent / row.file)) for row in rows]


def describe_files(files: Sequence[Path], pattern: str = "") -> list[ExperimentRow]:
    """Return a row for each file, with values from its name.

    Parameters
    ----------
    files : sequence of Path
        Spectrum files.
    pattern : str
        Regular expression with named groups, such as ``(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)``, that occurs in each file name; '' for
        samples with the names of the files.

    Raises
    ------
    ParameterError
        If the pattern is invalid.
    InputError
        If a file name does not contain the pattern, or a group is empty or not a number where one is expected.
    """
    names = [sample.name for sample in design_of_files([str(file) for file in files]).samples]
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ParameterError(f"pattern '{shortened(pattern)}' is not a regular expression: {error}") from None
    unknown = sorted(compiled.groupindex.keys() - set(_GIVEN[1:]))
    if unknown or (pattern and not compiled.groupindex):
        what = f"has a group '{unknown[0]:.60}'" if unknown else "has no named group, such as (?P<condition>[a-z]+)"
        raise ParameterError(f"pattern '{shortened(pattern)}' {what}; groups are {', '.join(_GIVEN[1:])}")
    rows = []
    for file, name in zip(files, names, strict=True):
        match = compiled.search(file.name)
        if match is None:
            raise InputError(file, f"has a name without the pattern '{shortened(pattern)}'", remedy="Change the pattern or the files")
        cells = {"sample": name, **{group: text or "" for group, text in match.groupdict().items()}, "file": str(file.absolute())}
        rows.append(_row(file, cells, "its name", "Change the pattern"))
    return rows


def add_rows(
    rows: Sequence[ExperimentRow], new: Sequence[ExperimentRow], project: Project, progress: Progress
) -> tuple[list[ExperimentRow], int]:
    """Return the rows of an experiment with those of further files, which get run names and digests, and the number of added files.

    A file with the same content as one in the experiment is left out with a warning.

    Parameters
    ----------
    rows, new : sequence of ExperimentRow
        Rows of the experiment, and those to add; new rows with a run name and a digest belong to a finished run of the project.
    project : Project
        Project, whose run names are not used again.
    progress : Progress
        Progress, which receives the warnings.

    Raises
    ------
    InputError
        If a file is missing or has values that contradict others, or if there are too many files.
    """
    files = list(dict.fromkeys(row.file for row in new))
    for file in files:
        if not is_there(Path(file)) and not all(row.run for row in new if row.file == file):
            raise InputError(file, "does not exist", remedy="Check the path")
    digests = {row.file: row.sha256 for row in new}
    progress.stage("Reading the files", len(files))
    for file in files:
        digests[file] = digests[file] or file_digest(file, progress)
        progress.advance(1)
    old = {row.file: row.sha256 for row in rows}
    copies = copied_files([*old.items(), *digests.items()])
    for copy, original in copies.items():
        progress.message(f"{copy_text(copy, original)}: it is left out", "warning")
    present = [file for file in files if file in old and file not in copies]
    for file in present:
        if digests[file] != old[file]:
            raise InputError(file, "has changed since it was added", remedy="Remove it from the experiment first, then add it again")
        progress.message(f"{PurePath(file).name} is already in the experiment", "warning")
    added = [file for file in files if file not in copies and file not in old]
    names = _run_names(added, {row.run for row in rows} | {row.run for row in new} | {run.id for run in project.runs()})
    result = [*rows, *(row._replace(run=row.run or names[row.file], sha256=digests[row.file]) for row in new if row.file in names)]
    _check_samples(project.folder / EXPERIMENT, result)
    return result, len(added)


def remove_runs(rows: Sequence[ExperimentRow], names: Iterable[str]) -> list[ExperimentRow]:
    """Return the rows without those of the given runs, each named by its run, its path or its file name.

    Raises
    ------
    InputError
        If a name is not that of exactly one run of the experiment.
    """
    runs = {row.run: row.file for row in rows}
    removed = set()
    for name in names:
        named = [run for run, file in runs.items() if name == run] or [
            run for run, file in runs.items() if file == str(Path(name).absolute()) or PurePath(file).name == name
        ]
        if len(named) != 1:
            what = "is the name of several files" if named else "is not in the experiment"
            raise InputError(shortened(name), what, remedy="proteoscope experiment list shows its runs")
        removed.add(named[0])
    return [row for row in rows if row.run not in removed]


def write_experiment(project: Project, rows: Sequence[ExperimentRow]) -> None:
    """Write the table of the experiment; the caller holds the lock of the project.

    Raises
    ------
    InputError
        If the table is larger than what can be read again.
    StorageError
        If writing fails.
    """
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([getattr(row, name) for name in _COLUMNS] for row in rows)
    content = text.getvalue().encode()
    path = inside(project.folder, EXPERIMENT)
    if len(content) > MAXIMUM_BYTES or len(rows) >= MAXIMUM_ROWS:
        raise InputError(path, f"would exceed {MAXIMUM_ROWS - 1:,} rows or {MAXIMUM_BYTES >> 20} MB", remedy="Make several experiments")
    with atomic_file(path) as file:
        file.write(content)


def _read(path: Path, required: Sequence[str], remedy: str) -> list[ExperimentRow]:
    """Return the rows of a table; files and their channels are distinct."""
    header, *lines = separated_rows(path, remedy)
    names = [cell.strip().lower() for cell in header]
    for name in names:
        if name not in _COLUMNS or names.count(name) > 1 or (name not in _GIVEN and name not in required):
            what = f"has the column '{shortened(name)}' twice" if names.count(name) > 1 else f"has an unknown column '{shortened(name)}'"
            raise InputError(path, what, place="line 1", remedy=remedy)
    missing = [name for name in required if name not in names]
    if missing:
        raise InputError(path, f"has no column '{missing[0]}'", place="line 1", remedy=remedy)
    rows: dict[tuple[str, str], tuple[int, ExperimentRow]] = {}
    for line, row in enumerate(lines, 2):
        if not any(cell.strip() for cell in row):
            continue
        place = f"line {line}"
        if len(row) > len(names):
            raise InputError(path, f"has {len(row)} cells, but {len(names)} columns", place=place, remedy=remedy)
        read = _row(path, dict(zip(names, (cell.strip() for cell in row), strict=False)), place, remedy)
        first, _ = rows.setdefault((read.file, read.label), (line, read))
        if first != line:
            raise InputError(path, f"names file '{shortened(read.file)}' twice, as in line {first}", place=place, remedy="Leave one out")
    result = [row for _, row in rows.values()]
    if not result and "run" not in required:
        raise InputError(path, "names no file", remedy=remedy)
    _check_samples(path, result)
    return result


def _row(path: Path, cells: Mapping[str, str], place: str, remedy: str) -> ExperimentRow:
    """Return the row with the given cells, after checking them."""
    for name, cell in cells.items():
        if len(cell) > _MAXIMUM_CHARACTERS or not cell.isprintable():
            what = f"has a {name} of more than {_MAXIMUM_CHARACTERS} characters, or with unprintable characters"
            raise InputError(path, what, place=place, remedy=remedy)
    numbers = {}
    for name in ("fraction", "replicate"):
        text = cells.get(name) or "1"
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
        if not 1 <= number <= _MAXIMUM_NUMBER:
            raise InputError(path, f"'{shortened(text)}' is not a {name} number", place=place, remedy="Use numbers from 1")
        numbers[name] = number
    file = cells["file"]
    if not file:
        raise InputError(path, "has no file", place=place, remedy=remedy)
    sample = cells.get("sample") or design_of_files([file]).samples[0].name
    condition, label, sha256 = (cells.get(name, "") for name in ("condition", "label", "sha256"))
    return ExperimentRow(cells.get("run", ""), file, sample, condition, numbers["fraction"], numbers["replicate"], label, sha256)


def _check_samples(path: Path, rows: Sequence[ExperimentRow]) -> None:
    """Raise InputError if a sample has two conditions or replicates."""
    samples: dict[str, tuple[str, int]] = {}
    for row in rows:
        if samples.setdefault(row.sample, (row.condition, row.replicate)) != (row.condition, row.replicate):
            what = f"gives sample '{shortened(row.sample)}' two conditions or replicates"
            raise InputError(path, what, remedy="Use the same condition and replicate in all lines of a sample")


def _run_names(files: Sequence[str], taken: Iterable[str]) -> dict[str, str]:
    """Return names of new runs, derived from the names of the files; they differ from each other and from `taken` in more than case."""
    used = {name.casefold() for name in taken}
    result = {}
    for file in files:
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", design_of_files([file]).samples[0].name)[:80].strip("_")
        try:
            check_run_name(name)
        except ParameterError:
            name = f"run_{name}".rstrip("_")  # a reserved name, or a name in another script
        number, unique = 2, name
        while unique.casefold() in used:
            unique, number = f"{name}_{number}", number + 1
        used.add(unique.casefold())
        result[file] = unique
    return result
