"""Corrupt result tables with matching digests, of every kind of search.

    python -m tests.fuzz.result_tables [N] [--seed SEED] [--kinds KIND ...] [--window | --both]

N projects are made of a finished run of each kind, with tables that are corrupted in one to three ways: columns doubled, missing, of
other or nested types, bytes that are not UTF-8, missing values, numbers out of bounds, texts with a meaning elsewhere, rows truncated,
doubled or reordered, changed bytes of the file. Each is exported in every format and used as the source of other searches, or, with
``--window``, opened, sorted, filtered, shown row by row and painted, or, with ``--both``, both. The outcome must be a result or one of
the program's own errors; no process may need more than two gigabytes.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import io
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from proteoscope import resources
from proteoscope.engine.command_line.main import main as command_line
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.matches.columns import SHIFT_COLUMNS
from proteoscope.engine.matches.exports import PLACES_ON_GENOMES
from proteoscope.engine.matches.identified_spectra import read_identified
from proteoscope.engine.matches.source_run import identified_run, identified_spectra, write_identified_proteins
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.searches import SEARCHES, run_search, search_of_kind
from proteoscope.engine.sequences.hits import OF_ONE_QUERY
from proteoscope.engine.spectra.tables import read_spectra_table, spectra_table
from tests.engine.evidence.evidence_projects import project_with_evidence
from tests.engine.identification_tables import PARAMETERS, identification
from tests.engine.imported.small_results import write_database, write_results, write_spectra
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, write_project
from tests.engine.spectra.made import spectra
from tests.engine.views.cluster_projects import project_with_explanation
from tests.engine.views.library_projects import project_with_library_search
from tests.engine.views.read_projects import project_with_reads
from tests.engine.views.search_projects import project_with_search
from tests.engine.views.structure_projects import project_with_structures
from tests.fuzz.places import IN_MEMORY
from tests.searching import import_results

KINDS = tuple(search.kind for search in SEARCHES)
EXPORTS, WINDOW = "exports", "window"
MAXIMUM_KILOBYTES = 2 << 20
N_SPECTRA = 40
TEXTS = [
    "",
    "x",
    "é" * 300,
    "a\0b",
    "a\tb\nc\rd",
    "=1+1",
    '"',
    "-" * 5000,
    "1e999",
    "nan",
    "[" * 200,
    "A[+1",
    "PEPTIDE/2",
    "M 40; W x",
    "999999999M",
    "99999999999999999999M",
    "1M-1I",
    "\u202ereversed",
    "../../victim",
    "'; DROP TABLE psms; --",
    "\x1b[31m",
    "]]>",
    "0,0,0",
    "1,2,x",
]
NUMBERS = [0, -1, 1, 2, 127, 255, 32767, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40]
REALS = [0.0, -0.0, -1.0, 1e-320, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 1e18, 0.5]

Change = Callable[[pa.Table, random.Random], pa.Table]


def make(kind: str, folder: Path) -> Project:
    """Create a project with a finished run of a kind."""
    chance = random.Random(3)
    if kind == "cluster":
        sample = resources.path("samples", "Ecoli_MS2_small.mzML.gz")
        with redirect_stdout(io.StringIO()):
            assert (
                command_line(["cluster", str(sample), "--preset", "low-resolution", "--out", str(folder), "--quiet", "--device", "cpu"])
                == 0
            )
        return Project.open(folder)
    if kind == "import":
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="results-") as name:
            files = write_results("mzidentml", Path(name)), write_spectra(Path(name) / "run.mgf"), write_database(Path(name) / "p.fasta")
            import_results(*([path] for path in files[:2]), folder, [files[2]])
        return Project.open(folder)
    if kind == "explain":
        return project_with_explanation(folder)
    if kind == "reads":
        return project_with_reads(folder, "".join(chance.choice("ACGT") for _ in range(6000)), n_reads=12)
    if kind == "align":
        return project_with_search(folder, n_queries=2, n_relatives=6, n_unrelated=60)
    if kind == "structures":
        return project_with_structures(folder)
    if kind == "evidence":
        return project_with_evidence(folder.parent / f"{folder.name}-files", folder)
    if kind == "library":
        return project_with_library_search(folder.parent / f"{folder.name}-files", folder)
    if kind == "quantify":
        return _quantified(folder, chance)
    hits = identification(n_spectra=N_SPECTRA)
    project = Project.create_or_open(folder)
    parameters: dict[str, Any] = dict(PARAMETERS) if kind == "identify" else ModifiedSearchParameters().model_dump(mode="json")
    with project.run(kind, parameters) as run:
        psms = hits.psms
        if kind == "modified":
            psms = _shifted(psms)
            run.write_table("modifications", _modifications())
        for name, table in (("psms", psms), ("peptides", hits.peptides), ("proteins", hits.proteins)):
            run.write_table(name, table)
        peaks = [[(100.0 + k, 1.0 + k) for k in range(10 + row % 5)] for row in range(N_SPECTRA)]
        run.write_table("spectra", spectra_table(spectra(peaks, [500.0 + row for row in range(N_SPECTRA)], [4] * N_SPECTRA)))
    return project


def _quantified(folder: Path, chance: random.Random) -> Project:
    """Create two runs with four proteins of three peptides each; one protein differs in amount."""
    peptides = random_peptides(12, 7)
    runs = {name: SyntheticRun(seconds=200.0, noise_peaks=20, seed=seed) for seed, name in enumerate(("one", "two"))}
    for at, sequence in enumerate(peptides):
        for name, run in runs.items():
            planted = Planted(sequence, 2, 1e6 * (3 if at < 3 and name == "two" else 1) * chance.uniform(0.8, 1.2), 20.0 + 12 * at)
            run.planted.append(planted)
            run.identified.append(planted)
    with tempfile.TemporaryDirectory(prefix="runs-") as name:
        made = write_project(Path(name), runs, {f"P{i}": peptides[3 * i : 3 * i + 3] for i in range(4)})
        run_search("quantify", {"project": [made]}, device="cpu", threads=1)
        shutil.move(made, folder)
    return Project.open(folder)


def _shifted(psms: pa.Table) -> pa.Table:
    n, positions = len(psms), [positions[:1] for positions in psms["modification_positions"].to_pylist()]
    is_plain = np.array([not position for position in positions])
    kinds = np.where(is_plain, "none", np.where(np.arange(n) % 2 == 1, "named", "unnamed"))
    values: dict[str, Any] = {
        "mass_shift": np.where(is_plain, 0.0, 15.9949),
        "carried_mass": np.where(is_plain, 0.0, 15.994915),
        "modification": np.where(is_plain, "", np.where(kinds == "named", "Oxidation", "+15.99")).tolist(),
        "possible_names": np.where(is_plain, "", "Oxidation 15.9949 or Ala->Ser 15.9949").tolist(),
        "site": np.where(is_plain, "", "M1").tolist(),
        "shift_kind": kinds.tolist(),
        "site_probability": pa.array(np.full(n, 0.9), mask=is_plain),
        "shift_position": pa.array([position[0] if position else None for position in positions], pa.int16()),
    }
    for column in SHIFT_COLUMNS:
        psms = psms.append_column(column.name, pa.array(values[column.name]))
    return psms


def _modifications() -> pa.Table:
    return MODIFICATIONS.arrow(
        {
            "name": ["Oxidation", "+15.99"],
            "mass": [15.994915, 15.99],
            "psms": [5, 3],
            "peptides": [4, 2],
            "sites": ["M 4; W 1", "N-term 3"],
            "share_unmodified": [0.5, 0.0],
            "decoys": [0, 1],
            "kind": ["named", "unnamed"],
        }
    )


def corrupt(path: Path, chance: random.Random) -> str:
    """Corrupt a table and describe the corruption."""
    if chance.random() < 0.15:
        return _change_bytes(path, chance)
    reported = []
    table = pq.read_table(path)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        way = chance.choice(CHANGES)
        with suppress(pa.ArrowException, IndexError, ValueError, TypeError):  # the table may have been corrupted before
            table = way(table, chance)
            reported.append(way.__name__.strip("_"))
    content = io.BytesIO()
    pq.write_table(table, content, row_group_size=chance.choice([7, 1 << 16]), use_dictionary=chance.random() < 0.5)
    path.write_bytes(content.getvalue())
    return ", ".join(reported)


def _change_bytes(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    if chance.random() < 0.2:
        path.write_bytes(content[: chance.randrange(len(content))])
        return "cut file"
    for _ in range(chance.choice([1, 3, 30])):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)
    return "bytes"


def _replaced(table: pa.Table, at: int, column: Any) -> pa.Table:
    return table.set_column(at, table.schema.field(at).name, column)


def _any(table: pa.Table, chance: random.Random) -> int:
    return chance.randrange(table.num_columns)


def _double(table: pa.Table, chance: random.Random) -> pa.Table:
    at = _any(table, chance)
    name = table.schema.field(at).name
    return table.append_column(chance.choice([name, name.upper(), name]), table[at])


def _leave_out(table: pa.Table, chance: random.Random) -> pa.Table:
    return table.remove_column(_any(table, chance))


def _other_type(table: pa.Table, chance: random.Random) -> pa.Table:
    at, n = _any(table, chance), len(table)
    values: list[Any] = [
        pa.array([str(value) for value in table[at].to_pylist()]),
        pa.array(np.arange(n)),
        pa.array(np.arange(n) * 0.5),
        pa.array([True] * n),
        pa.array([b"\xff\xfe"] * n, pa.binary()),
        pa.nulls(n),
        pa.array([None] * n, pa.int32()),
        pa.array([0] * n, pa.timestamp("us")),
        pa.array(np.arange(n), pa.decimal128(38, 2)),
        pa.array(["a"] * n).dictionary_encode(),
        pa.array(["b"] * n, pa.large_string()),
        pa.array(np.arange(n), pa.uint64()),
        pa.array(np.zeros(n, np.float16)),
    ]
    return _replaced(table, at, chance.choice(values))


def _nest(table: pa.Table, chance: random.Random) -> pa.Table:
    at, n = _any(table, chance), len(table)
    stored = table[at].to_pylist()
    values: list[Callable[[], Any]] = [
        lambda: pa.array([[value] for value in stored]),
        lambda: pa.array([[[1]]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([[]] * n, pa.list_(pa.float64())),
        lambda: pa.array([[None]] * n, pa.list_(pa.string())),
        lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([None] * n, pa.list_(pa.int16())),
        lambda: pa.array([[1.0] * 9] * n, pa.list_(pa.float64(), 9)),
        lambda: pa.array([["x"] * 3] * n),
    ]
    return _replaced(table, at, chance.choice(values)())


def _no_utf_8(table: pa.Table, chance: random.Random) -> pa.Table:
    names = [at for at, field in enumerate(table.schema) if pa.types.is_string(field.type)]
    at = chance.choice(names)
    texts = [b"\xff\xfe\x00" if chance.random() < 0.3 else str(value).encode() for value in table[at].to_pylist()]
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return _replaced(table, at, pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts))))


def _missing(table: pa.Table, chance: random.Random) -> pa.Table:
    at = _any(table, chance)
    share = chance.choice([0.1, 1.0])
    return _replaced(
        table, at, pa.array([None if chance.random() < share else value for value in table[at].to_pylist()], table.schema.field(at).type)
    )


def _values(table: pa.Table, chance: random.Random) -> pa.Table:
    at = _any(table, chance)
    kind, share = table.schema.field(at).type, chance.choice([0.1, 1.0])

    def value(kind: pa.DataType) -> Any:
        if pa.types.is_integer(kind):
            limits = np.iinfo(kind.to_pandas_dtype())
            return min(max(chance.choice(NUMBERS), int(limits.min)), int(limits.max))
        if pa.types.is_floating(kind):
            return chance.choice(REALS)
        if pa.types.is_boolean(kind):
            return chance.random() < 0.5
        if hasattr(kind, "value_type"):
            return [value(kind.value_type) for _ in range(getattr(kind, "list_size", None) or chance.choice([0, 1, 3]))]
        return chance.choice(TEXTS)

    values = [value(kind) if chance.random() < share else old for old in table[at].to_pylist()]
    return _replaced(table, at, pa.array(values, kind))


def _cut_rows(table: pa.Table, chance: random.Random) -> pa.Table:
    return table.slice(0, chance.choice([0, 1, chance.randrange(len(table) + 1)]))


def _other_order(table: pa.Table, chance: random.Random) -> pa.Table:
    rows = chance.sample(range(len(table)), len(table))
    return table.take(pa.array(rows, pa.int64()))


def _repeated_rows(table: pa.Table, chance: random.Random) -> pa.Table:
    return pa.concat_tables([table] * chance.choice([2, 50]))


def _swapped(table: pa.Table, chance: random.Random) -> pa.Table:
    first, other = _any(table, chance), _any(table, chance)
    return _replaced(_replaced(table, first, table[other]), other, table[first])


CHANGES: tuple[Change, ...] = (
    _double,
    _leave_out,
    _other_type,
    _other_type,
    _nest,
    _nest,
    _no_utf_8,
    _missing,
    _missing,
    _values,
    _values,
    _values,
    _cut_rows,
    _cut_rows,
    _other_order,
    _repeated_rows,
    _swapped,
)


def make_corrupt(good: Path, folder: Path, kind: str, chance: random.Random) -> str:
    """Copy a project, corrupt one or two of its tables, register them, and describe the corruption."""
    shutil.copytree(good, folder)
    run = next(run.id for run in Project.open(folder).runs() if run.kind == kind)
    paths = sorted((folder / "results" / run).glob("*.parquet"))
    reported = []
    for path in chance.sample(paths, chance.choice([1, 1, min(2, len(paths))])):
        reported.append(f"{path.name}: {corrupt(path, chance)}")
        with closing(sqlite3.connect(folder / "project.sqlite")) as connection, connection:
            connection.execute(
                "UPDATE results SET sha256 = ?, bytes = ? WHERE run = ? AND name = ?",
                (file_digest(path), path.stat().st_size, run, path.stem),
            )
    return "; ".join(reported)


def use(folder: Path, kind: str, out: Path) -> bool:
    """Export a run in all formats, compare it with the original, and use it as a source; return True if anything was rejected."""
    is_refused = False
    # The runs translated and localised nothing; untrusted genome positions are tested with their writers.
    others = {*(export.name for export in PLACES_ON_GENOMES), "perseus", "msstats-ptm"}
    exports = [export.name for export in search_of_kind(kind).exports if export.name not in others]
    commands = [["export", str(folder), "--format", name, "--out", str(out / name)] for name in exports]
    for command in commands:
        if command[3] in OF_ONE_QUERY:
            command += ["--query", "Q0"]
    if search_of_kind(kind).pages:
        commands.append(["report", str(folder), "--out", str(out / "report")])
    if kind in ("identify", "modified"):
        commands.append(["compare", str(folder), str(folder.parent / f"good-{kind}"), "--out", str(out / "compared")])
    for command in commands:
        output = io.StringIO()
        with redirect_stderr(output), redirect_stdout(io.StringIO()):
            status = command_line(command)
        assert status in (0, 2), f"{command} ended with {status}: {output.getvalue()}"
        assert "Traceback" not in output.getvalue(), output.getvalue()
        lines = [line for line in output.getvalue().splitlines() if line.startswith("proteoscope:")]
        assert status == 0 or len(lines) >= 1, output.getvalue()
        is_refused |= status == 2
    if search_of_kind(kind).identifies:
        for go_on in (_explain, _search_modified):
            try:
                go_on(folder, out)
            except ProteoscopeError:
                is_refused = True
    return is_refused


def _explain(folder: Path, out: Path) -> None:
    """Read the tables as an explanation does."""
    source = identified_run(folder, "")
    read_identified(source.psms, len(read_spectra_table(source.spectra)), 0.01)


def _search_modified(folder: Path, out: Path) -> None:
    """Read the tables as a search for modified peptides does."""
    source = identified_run(folder, "")
    identified_spectra(source.psms, len(read_spectra_table(source.spectra)), 0.01)
    if source.proteins is not None:
        out.mkdir(exist_ok=True)
        write_identified_proteins(source.proteins, 0.01, out / "proteins.fasta")


class Window:
    """Opens projects as the window does, and records all exceptions, also those of paint events."""

    def __init__(self) -> None:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        import threading

        from PySide6.QtWidgets import QApplication

        from proteoscope.gui.theme import Theme

        self._application = QApplication.instance() or QApplication(["proteoscope"])
        self._theme = Theme(self._application)
        self.raised: list[BaseException] = []
        self._has_frozen = False
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._keep
        threading.excepthook = lambda raised: self.raised.append(raised.exc_value) if raised.exc_value else None

    def close(self) -> None:
        """Restore the previous exception handlers."""
        import threading

        sys.excepthook, threading.excepthook = self._before

    def _keep(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self.raised.append(error)

    def use(self, folder: Path, kind: str) -> bool:
        """Show a run; return True if it is rejected as a whole."""
        from PySide6.QtCore import QEvent

        from proteoscope.gui.searches import _view_of

        view = _view_of(kind)(search_of_kind(kind))
        view.resize(1000, 700)
        view.show()
        try:
            view.show_run(Project.open(folder), None)
            self._settle(view)
            is_refused = bool(view.text)
            if not is_refused:
                self._look(view)
            view.clear()
        finally:
            view.close()
            view.deleteLater()
            self._application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            self._application.processEvents()
            gc.collect()
            if not self._has_frozen:
                # Imported modules stay, and need not be visited after each project.
                gc.freeze()
                self._has_frozen = True
        if self.raised:
            error, self.raised = self.raised[0], []
            raise error
        return is_refused

    def _settle(self, view: Any) -> None:
        from PySide6.QtCore import QDeadlineTimer, QThread

        deadline = QDeadlineTimer(60_000)
        while not deadline.hasExpired():
            self._application.processEvents()
            if not view.is_busy:
                self._application.processEvents()
                if not view.is_busy:
                    return
            QThread.msleep(2)
        raise AssertionError("the window is busy for a minute")

    def _look(self, view: Any) -> None:
        for panel in view.panels.values():
            panel.view.hide_columns([])
            for row in (0, len(panel.model.rows) - 1):
                if 0 <= row < len(panel.model.rows):
                    panel.view.choose(row)
                    self._settle(view)
            panel.view.selectAll()
            panel.view.copy() if hasattr(panel.view, "copy") else None
            if panel.model.columns:
                panel.view._sort_by(len(panel.model.columns) // 2)
            self._settle(view)
            view.grab()
        tabs = getattr(view, "tabs", None)
        for place in range(tabs.count() if tabs is not None else 0):
            tabs.setCurrentIndex(place)
            self._settle(view)
            view.grab()
        view.filter_bar.text.setText("a")
        view.filter_bar.filterChanged.emit()
        self._settle(view)
        view.grab()


def run(
    n: int, seed: int, folder: Path, kinds: tuple[str, ...] = KINDS, *, ways: tuple[str, ...] = (EXPORTS,)
) -> dict[str, dict[str, int]]:
    """Corrupt and use `n` projects of each kind; return the number of rejected ones by way and kind."""
    looked = Window() if WINDOW in ways else None
    refused, problems = {way: dict.fromkeys(kinds, 0) for way in ways}, dict[str, str]()
    try:
        for kind in kinds:
            good = folder / f"good-{kind}"
            make(kind, good)
            for number in range(n):
                chance = random.Random(f"{seed} {kind} {number}")
                project, out = folder / "project", folder / "out"
                reported = make_corrupt(good, project, kind, chance)
                print(f"{kind} {number}: {reported}", flush=True)
                for way in ways:
                    before = _peak_kilobytes()
                    try:
                        refused[way][kind] += looked.use(project, kind) if looked and way == WINDOW else use(project, kind, out)
                        used = _peak_kilobytes()
                        assert used - before < MAXIMUM_KILOBYTES // 2, f"{used - before:,} kilobytes more"
                    except Exception as error:
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        problem = f"{kind}: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {str(error)[-300:]}"
                        trace = "".join(traceback.format_exception(error))
                        print(f"ERROR {problem}", file=sys.stderr, flush=True)
                        problems.setdefault(problem.splitlines()[0][:160], f"{kind} {number} ({reported})\n{trace}")
                shutil.rmtree(project)
                shutil.rmtree(out, ignore_errors=True)
    finally:
        if looked:
            looked.close()
    assert not problems, "\n".join(problems.values()) + "\n".join(["", *problems])
    used = _peak_kilobytes()
    assert used < MAXIMUM_KILOBYTES, f"{used:,} kilobytes"
    return refused


def _peak_kilobytes() -> int:
    """Return the maximum memory of this process.

    It is the kernel's own mark if there is one, because ru_maxrss begins with the memory of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Run from the command line."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=3000, help="projects of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--window", action="store_const", dest="ways", const=(WINDOW,), help="show them in the window")
    how.add_argument("--both", action="store_const", dest="ways", const=(EXPORTS, WINDOW), help="export and show them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-", dir=IN_MEMORY) as folder:
        refused = run(options.n, options.seed, Path(folder), tuple(options.kinds), ways=options.ways or (EXPORTS,))
    for way, of_kinds in refused.items():
        print(f"{way}: " + "; ".join(f"{kind}: {number} of {options.n} refused something" for kind, number in of_kinds.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
