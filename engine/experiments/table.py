"""Table of an experiment: the runs of a project with their files and samples, ``experiment.tsv``.

A project may be untrusted, and its table may name any file of this user. The table has the SHA-256 of each file, which is checked before
the file is searched: see `proteoscope.engine.project.digests`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.experiments import sdrf
from proteoscope.engine.experiments.rows import ExperimentRow
from proteoscope.engine.files import atomic_file, is_there
from proteoscope.engine.formats.registry import has_suffix
from proteoscope.engine.formats.separated_rows import MAXIMUM_BYTES, MAXIMUM_ROWS, separated_rows
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import copied_files, copy_text, file_digest
from proteoscope.engine.project.paths import EXPERIMENT, check_run_name, entries, inside, is_run_id
from proteoscope.engine.quantification.design import design_of_files
from proteoscope.engine.results.counts import listed

__all__ = [
    "ExperimentRow",
    "add_rows",
    "change_experiment",
    "describe_files",
    "read_experiment",
    "read_table",
    "remove_runs",
    "write_experiment",
]

_GIVEN = ("file", "sample", "condition", "fraction", "replicate", "label")
_COLUMNS = ("run", *_GIVEN, "sha256")
_MAXIMUM_CHARACTERS, _MAXIMUM_NUMBER = 1000, 1_000_000
_REMEDY = f"Write a tab-separated table with the column file and, if known, {', '.join(_GIVEN[1:])}"
_OWN_REMEDY = "Create the experiment again: proteoscope experiment create"
_SHA256 = re.compile(r"[0-9a-f]{64}")


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
    header, *lines = separated_rows(path, _OWN_REMEDY)
    rows = _checked_rows(path, _cells(path, header, lines, _COLUMNS, _OWN_REMEDY), _OWN_REMEDY, can_be_empty=True)
    owners: dict[str, tuple[str, str]] = {}
    for row in rows:
        if not is_run_id(row.run) or not _SHA256.fullmatch(row.sha256) or not Path(row.file).is_absolute():
            raise InputError(path, f"has an invalid name, digest or path of run '{shortened(row.run)}'", remedy=_OWN_REMEDY)
        # Folder names on Windows and macOS ignore case.
        if owners.setdefault(row.run.casefold(), (row.file, row.sha256)) != (row.file, row.sha256):
            raise InputError(path, f"names run '{shortened(row.run)}' twice", remedy=_OWN_REMEDY)
    return rows


def read_table(path: Path, progress: Progress | None = None) -> list[ExperimentRow]:
    """Read a user's table of runs, or an SDRF-Proteomics table; relative paths start from the folder of the table.

    Parameters
    ----------
    path : Path
        Tab-separated table.
    progress : Progress, optional
        Progress, which receives warnings about an SDRF table.

    Raises
    ------
    InputError
        If the table is invalid, or names a file, or a channel of a file, twice. The message contains the line.
    """
    header, *lines = separated_rows(path, _REMEDY, sdrf.MAXIMUM_BYTES)
    folder = path.absolute().parent
    if not sdrf.is_sdrf(header):
        rows = _checked_rows(path, _cells(path, header, lines, ("file",), _REMEDY), _REMEDY)
        return [row._replace(file=str(folder / row.file)) for row in rows]
    cells, warnings = sdrf.sdrf_cells(path, header, lines)
    rows = _checked_rows(path, cells, _REMEDY)
    files, n_converted = _converted_files(folder, dict.fromkeys(row.file for row in rows))
    if n_converted:
        warnings.append(f"Converted files in the same folder are used for {n_converted:,} data files of {path.name}")
    for warning in warnings:
        (progress or Progress()).message(warning, "warning")
    return [row._replace(file=files[row.file]) for row in rows]


def _converted_files(folder: Path, names: Iterable[str]) -> tuple[dict[str, str], int]:
    """Return the path of each data file by name, and the number of names for which a file with another ending is used.

    Such a file is used if the named file is missing, and the folder has exactly one spectrum file with this name and another ending.
    """
    by_stem: dict[str, list[Path]] = {}
    for file in entries(folder):
        if has_suffix(file.name, "spectra"):
            by_stem.setdefault(_stem(file.name), []).append(file)
    result, n_converted = {}, 0
    for name in names:
        path, converted = folder / name, by_stem.get(_stem(name), [])
        is_converted = len(converted) == 1 and PurePath(name).name == name and not is_there(path)
        result[name] = str(converted[0] if is_converted else path)
        n_converted += is_converted
    return result, n_converted


def _stem(file: str) -> str:
    """Return the name of a file without the ending of its format."""
    return design_of_files([file]).samples[0].name


def describe_files(files: Sequence[Path], pattern: str = "") -> list[ExperimentRow]:
    """Return a row for each file, with values from its name.

    Parameters
    ----------
    files : sequence of Path
        Spectrum files.
    pattern : str
        Regular expression (RE2) with named groups, such as ``(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)``, that occurs in each file
        name; '' for samples with the names of the files.

    Raises
    ------
    ParameterError
        If the pattern is invalid.
    InputError
        If a file name does not contain the pattern, or a group is empty or not a number where one is expected.
    """
    names = [sample.name for sample in design_of_files([str(file) for file in files]).samples]
    try:
        # Arrow's regular expressions (RE2) take linear time; those of Python could take years for a file name.
        parts = pa.compute.extract_regex(pa.array([file.name.encode(errors="replace").decode() for file in files], pa.string()), pattern)
        matches, groups = parts.to_pylist(), [group.name for group in parts.type]
    except ValueError as error:
        remedy = "; groups without a name are written (?:...)" if "unnamed" in str(error) else ""
        raise ParameterError(f"pattern '{shortened(pattern)}' cannot be used: {error}{remedy}") from None
    unknown = sorted(set(groups) - set(_GIVEN[1:]))
    if unknown or (pattern and not groups):
        what = f"has a group '{unknown[0]:.60}'" if unknown else "has no named group, such as (?P<condition>[a-z]+)"
        raise ParameterError(f"pattern '{shortened(pattern)}' {what}; groups are {', '.join(_GIVEN[1:])}")
    rows = []
    for file, name, match in zip(files, names, matches, strict=True):
        if match is None:
            raise InputError(file, f"has a name without the pattern '{shortened(pattern)}'", remedy="Change the pattern or the files")
        rows.append(_row(file, {"sample": name, **match, "file": str(file.absolute())}, "its name", "Change the pattern"))
    return rows


def add_rows(
    rows: Sequence[ExperimentRow], new: Sequence[ExperimentRow], project: Project, progress: Progress
) -> tuple[list[ExperimentRow], int]:
    """Return the rows of an experiment followed by the new rows, and the number of added files.

    New rows get run names and digests. A file with the same content as a file of the experiment is left out with a warning. New rows of a
    file of the experiment replace its rows if they have a condition; otherwise they are left out with a warning.

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
        If a file is missing, has changed since it was added, or has values that contradict others, or if there are too many files.
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
    old_rows, new_rows = _by_file(rows), _by_file(new)
    given = {
        file: [row._replace(run=old_rows[file][0].run, sha256=old[file]) for row in new_rows[file]]
        for file in present
        if any(row.condition for row in new_rows[file])
    }
    if omitted := [file for file in present if file not in given]:
        progress.message(f"{listed(omitted)} {'is' if len(omitted) == 1 else 'are'} already in the experiment", "warning")
    if changed := [file for file in given if given[file] != old_rows[file]]:
        progress.message(f"Samples, conditions, fractions, replicates or labels are changed: {listed(changed)}")
        rows = [row for file, of_file in old_rows.items() for row in given.get(file, of_file)]
    added = [file for file in files if file not in copies and file not in old]
    names = _run_names(added, {row.run for row in rows} | {row.run for row in new} | {run.id for run in project.runs()})
    result = [*rows, *(row._replace(run=row.run or names[row.file], sha256=digests[row.file]) for row in new if row.file in names)]
    _check_samples(project.folder / EXPERIMENT, dict.fromkeys(result))
    return result, len(added)


def _by_file(rows: Iterable[ExperimentRow]) -> dict[str, list[ExperimentRow]]:
    result = dict[str, list[ExperimentRow]]()
    for row in rows:
        result.setdefault(row.file, []).append(row)
    return result


def remove_runs(rows: Sequence[ExperimentRow], names: Iterable[str]) -> list[ExperimentRow]:
    """Return the rows without those of the given runs; a run is given by its name, its path or its file name.

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
        If the table is too large to be read again.
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
        raise InputError(path, f"would exceed {MAXIMUM_ROWS - 1:,} rows or {MAXIMUM_BYTES >> 20} MB", remedy="Create several experiments")
    with atomic_file(path) as file:
        file.write(content)


def change_experiment(
    project: Project,
    change: Callable[[Sequence[ExperimentRow]], tuple[list[ExperimentRow], int]],
    progress: Progress,
    *,
    is_new: bool = False,
) -> int:
    """Replace the rows of the experiment of a project, or create it, and return the number that `change` returns.

    Parameters
    ----------
    project : Project
        Project of the experiment.
    change : callable
        Function that takes the rows and returns the new ones, with a number.
    progress : Progress
        Progress, which is checked for cancellation while waiting for other processes.
    is_new : bool
        True to create the experiment.

    Raises
    ------
    InputError
        If the project has no experiment, or, with `is_new`, has one already.
    StorageError
        If writing fails, or another process is writing the project.
    """
    with project.writing("the experiment", progress):
        if is_new and is_there(inside(project.folder, EXPERIMENT)):
            raise InputError(project.folder, "already has an experiment", remedy="Add runs to it: proteoscope experiment add")
        rows, count = change([] if is_new else read_experiment(project))
        write_experiment(project, rows)
    return count


def _cells(
    path: Path, header: Sequence[str], lines: Sequence[Sequence[str]], required: Sequence[str], remedy: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the cells by column of each line that is not empty."""
    names = [cell.strip().lower() for cell in header]
    for name in names:
        if name not in _COLUMNS or names.count(name) > 1 or (name not in _GIVEN and name not in required):
            what = f"has the column '{shortened(name)}' twice" if names.count(name) > 1 else f"has an unknown column '{shortened(name)}'"
            raise InputError(path, what, place="line 1", remedy=remedy)
    missing = [name for name in required if name not in names]
    if missing:
        raise InputError(path, f"has no column '{missing[0]}'", place="line 1", remedy=remedy)
    for line, row in enumerate(lines, 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(names):
            raise InputError(path, f"has {len(row)} cells, but {len(names)} columns", place=f"line {line}", remedy=remedy)
        yield line, dict(zip(names, (cell.strip() for cell in row), strict=False))


def _checked_rows(
    path: Path, cells: Iterable[tuple[int, dict[str, str]]], remedy: str, *, can_be_empty: bool = False
) -> list[ExperimentRow]:
    """Return the rows of a table after checking them: no file, or channel of a file, occurs twice, and the rows of a sample agree."""
    lines: dict[ExperimentRow, int] = {}
    channels: dict[str, dict[str, int]] = {}
    for line, values in cells:
        place = f"line {line}"
        row = _row(path, values, place, remedy)
        of_file = channels.setdefault(row.file, {})
        other = next(iter(of_file), None)
        if row.label in of_file or (other is not None and "" in (other, row.label)):
            first = of_file.get(row.label, next(iter(of_file.values())))
            raise InputError(
                path, f"names file '{shortened(row.file)}' twice, as in line {first}", place=place, remedy="Remove one of them"
            )
        of_file[row.label] = lines[row] = line
    if not lines and not can_be_empty:
        raise InputError(path, "names no file", remedy=remedy)
    _check_samples(path, lines)
    return list(lines)


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
    sample = cells.get("sample") or _stem(file)
    condition, label, sha256 = (cells.get(name, "") for name in ("condition", "label", "sha256"))
    return ExperimentRow(cells.get("run", ""), file, sample, condition, numbers["fraction"], numbers["replicate"], label, sha256)


def _check_samples(path: Path, lines: Mapping[ExperimentRow, int | None]) -> None:
    """Raise InputError if two rows give a sample different conditions or replicates; the message has their line numbers, if known."""
    samples: dict[str, ExperimentRow] = {}
    for row, line in lines.items():
        first = samples.setdefault(row.sample, row)
        if (first.condition, first.replicate) != (row.condition, row.replicate):
            what = f"gives sample '{shortened(row.sample)}' two conditions or replicates"
            place = "" if line is None else f"lines {lines[first]} and {line}"
            raise InputError(path, what, place=place, remedy="Use the same condition and replicate in all lines of a sample")


def _run_names(files: Sequence[str], taken: Iterable[str]) -> dict[str, str]:
    """Return the name of a new run for each file, derived from the file name.

    Each name differs from the other new names and from the names `taken`, also if upper and lower case are not distinguished.
    """
    used = {name.casefold() for name in taken}
    result = {}
    for file in files:
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", _stem(file))[:80].strip("_")
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
