"""Commands in hostile environments: odd folders, limits, streams, locales, users and paths.

    python -m tests.fuzz.environments [--only TEXT] [--commands NAME ...] [--every N]

Each command of the program runs on small inputs in each situation, in a process of its own. It ends with 0, an empty standard error and
the usual results, or with 2 and one line on standard error; its inputs stay unchanged, and no temporary file is left.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.fuzz.full_disk import can_mount, disk
from tests.searching import few_proteins

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "resources" / "samples"
SECONDS = 600
_OTHER_USER = 65534
_SEARCH = ("--device", "cpu", "--threads", "2", "--quiet")

COMMANDS: dict[str, tuple[str, ...]] = {
    "identify": (
        "IN/spectra.mgf",
        "--database",
        "IN/proteins.fasta",
        "--preset",
        "low-resolution",
        "--advice",
        "none",
        "--out",
        "OUT/p",
        *_SEARCH,
    ),
    "align": ("IN/query.fasta", "IN/proteins.fasta", "--out", "OUT/hits.tsv", "--project", "OUT/p", *_SEARCH),
    "structures": ("IN/domain.pdb", "--database", "IN/domain.pdb", "--out", "OUT/folds.tsv", *_SEARCH),
    "superpose": ("IN/domain.pdb", "IN/domain.pdb", "--out", "OUT/superposed"),
    "structure-database": ("build", "IN/domain.pdb", "--out", "OUT/database", "--threads", "1"),
    "cluster": ("IN/spectra.mgf", "--preset", "low-resolution", "--out", "OUT/p", *_SEARCH),
    "explain": ("PROJECT", "--preset", "low-resolution", *_SEARCH),
    "modified": ("--from-project", "PROJECT", "--preset", "low-resolution", "--out", "PROJECT", *_SEARCH),
    "library": ("IN/spectra.mgf", "--library", "IN/library.msp", "--preset", "low-resolution", "--out", "OUT/p", *_SEARCH),
    "predict": ("IN/query.fasta", "--out", "OUT/predicted.msp", "--threads", "2"),
    "reads": ("IN/genome.fasta", "IN/reads.fasta", "--preset", "map-to-genome", "--out", "OUT/reads.sam", *_SEARCH),
    "import": ("IN/comet.pep.xml", "--spectra", "IN/spectra.mgf", "--preset", "low-resolution", "--out", "OUT/p", *_SEARCH),
    "evidence": ("PROJECT", "--structures", "IN/domain.pdb", "--out", "OUT/evidence.tsv", *_SEARCH),
    "quantify": ("PROJECT", "--preset", "counts", "--out", "OUT/quantities.tsv", *_SEARCH),
    "presets": ("identify",),
    "parameters": ("identify",),
    "devices": (),
    "estimate": ("identify", "IN/spectra.mgf", "--database", "IN/proteins.fasta", "--out", "OUT/p"),
    "cost-model": ("report", "--out", "OUT/page.html", "--device", "cpu", "--quiet"),
    "runs": ("PROJECT",),
    "resume": ("PROJECT", "--quiet"),
    "export": ("PROJECT", "--format", "pin", "--out", "OUT/exported.pin"),
    "convert": ("IN/spectra.mgf", "--out", "OUT/converted.mzML", "--threads", "2", "--quiet"),
    "compare": ("PROJECT", "IN/second", "--out", "OUT/compared"),
    "report": ("PROJECT", "--out", "OUT/pages"),
    "cache": (),
    "compile": ("--processes", "1", "--quiet"),
    "samples": ("OUT/samples",),
    "workers": ("certificates", "--out", "OUT/certificates"),
    "experiment": ("create", "OUT/p", "IN/spectra.mgf"),
    "demo": ("align", "--out", "OUT/demo", *_SEARCH),
}
"""Arguments of each command; IN is a folder of inputs, OUT an empty folder, PROJECT a copy of a project with an identification."""

FOLDER_VARIABLES = (
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "TMPDIR",
    "NUMBA_CACHE_DIR",
    "PROTEOSCOPE_CACHE",
)


@dataclass(frozen=True)
class Site:
    """Folders of one case: `folder` holds all, `cwd` is the working directory, `out` takes results, `temporary` temporary files."""

    folder: Path

    @property
    def cwd(self) -> Path:
        return self.folder / "cwd"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"


@dataclass(frozen=True)
class Situation:
    """A state of the system in which a command runs.

    Attributes
    ----------
    name : str
    variables : mapping of str to str, or None to unset
        Environment variables.
    prepare : callable
        Prepares the site and returns further variables; it may enter context managers into the stack.
    limits : mapping of int to int
        Limits of resources, as `resource.setrlimit` takes them.
    in_child : callable
        Called in the new process before the program begins.
    user : int or None
        Number of the user.
    """

    name: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    prepare: Callable[[Site, ExitStack], Mapping[str, str]] = lambda site, stack: {}
    limits: Mapping[int, int] = field(default_factory=dict)
    in_child: Callable[[], None] = lambda: None
    user: int | None = None


Make: TypeAlias = Callable[[Site, ExitStack], str]
"""Create a folder in a site and return its path."""


def _folder_values() -> dict[str, Make]:
    """Return values of a variable that names a folder, by their names, with functions that create the folder."""

    def create(name: str, mode: int = 0o755, owner: int | None = None) -> Make:
        def make(site: Site, stack: ExitStack) -> str:
            path = site.folder / name
            path.mkdir()
            path.chmod(mode)
            if owner is not None:
                os.chown(path, owner, owner)
            return str(path)

        return make

    def linked(site: Site, stack: ExitStack) -> str:
        (site.folder / "link").symlink_to(site.folder / "nowhere")
        return str(site.folder / "link")

    def filed(site: Site, stack: ExitStack) -> str:
        (site.folder / "file").write_text("a file")
        return str(site.folder / "file")

    def filled(site: Site, stack: ExitStack) -> str:
        stack.enter_context(disk(site.folder / "small", 0))
        return str(site.folder / "small")

    values: dict[str, Make] = {
        "empty": lambda site, stack: "",
        "relative": lambda site, stack: "relative",
        "root": lambda site, stack: "/",
        "missing": lambda site, stack: str(site.folder / "missing" / "deep"),
        "file": filed,
        "below a file": lambda site, stack: f"{filed(site, stack)}/below",
        "read-only": create("read-only", 0o555),
        "open to all": create("open", 0o777),
        "not UTF-8": create(os.fsdecode(b"n\xff\xfe")),
        "odd name": create("a b\n'\"é\x1b[31m$(x)"),
        "dangling link": linked,
        "long": lambda site, stack: "/" + "x" * 5000,
        "home sign": lambda site, stack: "~/cache",
        "device": lambda site, stack: "/dev/null",
    }
    if os.geteuid() == 0:
        values["of another user"] = create("other", 0o755, _OTHER_USER)
        if can_mount():
            values["full disk"] = filled
    return values


def folder_situations() -> Iterator[Situation]:
    """Yield each variable that names a folder, with each odd value."""
    for variable in FOLDER_VARIABLES:
        yield Situation(f"{variable} unset", {variable: None})
        for name, make in _folder_values().items():
            yield Situation(f"{variable} {name}", prepare=_setting(variable, make))


def _setting(variable: str, make: Make) -> Callable[[Site, ExitStack], Mapping[str, str]]:
    return lambda site, stack: {variable: make(site, stack)}


TEXT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "PYTHONIOENCODING": ("ascii", "utf-16", "ascii:strict", "latin-1"),
    "PYTHONUTF8": ("0", "1"),
    "LC_ALL": ("C", "tr_TR.UTF-8", "de_DE.UTF-8", "POSIX", "no such locale"),
    "LANG": ("C", ""),
    "TZ": ("", "UTC-14", "Nowhere/City", ":/etc/passwd", "x" * 1000),
    "PYTHONHASHSEED": ("0", "1", "4294967295"),
    "PYTHONWARNINGS": ("error", "always"),
    "PYTHONOPTIMIZE": ("1", "2"),
    "PYTHONDONTWRITEBYTECODE": ("1",),
    "PYTHONSAFEPATH": ("1",),
    "PYTHONUNBUFFERED": ("1",),
    "PYTHONDEVMODE": ("1",),
    "PYTHONMALLOC": ("debug",),
    "PYTHONFAULTHANDLER": ("1",),
    "PYTHONINTMAXSTRDIGITS": ("0", "640"),
    "PYTHONNOUSERSITE": ("1",),
    "COLUMNS": ("1", "0", "-5", "abc", "99999"),
    "TERM": ("dumb", "", "no-such-terminal"),
    "NO_COLOR": ("1",),
    "FORCE_COLOR": ("1",),
    "NUMBA_NUM_THREADS": ("0", "-1", "abc", "10000", "1", " 2", "1.5"),
    "NUMBA_DISABLE_JIT": ("1",),
    "NUMBA_DEBUG_CACHE": ("1",),
    "NUMBA_CPU_NAME": ("generic", "abc"),
    "NUMBA_THREADING_LAYER": ("abc", "omp"),
    "NUMBA_OPT": ("0", "abc"),
    "NUMBA_BOUNDSCHECK": ("1", "abc"),
    "OMP_NUM_THREADS": ("abc", "0", "-1", "10000"),
    "OPENBLAS_NUM_THREADS": ("abc", "0", "10000"),
    "OPENBLAS_CORETYPE": ("abc",),
    "CUDA_VISIBLE_DEVICES": ("", "-1", "abc", "99", "0,0"),
    "MALLOC_ARENA_MAX": ("abc", "0"),
    "PYDANTIC_DISABLE_PLUGINS": ("", "abc"),
    "LD_LIBRARY_PATH": ("/nowhere",),
    "PATH": ("", "/nowhere"),
    "USER": ("", "\x1b[31m"),
    "LOGNAME": ("",),
    "DISPLAY": ("", ":99999"),
    "BROWSER": ("nothing",),
    "SOURCE_DATE_EPOCH": ("abc", "0"),
}


def text_situations() -> Iterator[Situation]:
    """Yield each variable of Python, the C library and libraries, with each odd value."""
    for variable, values in TEXT_VARIABLES.items():
        for value in values:
            yield Situation(f"{variable}={value[:20]}", {variable: value})


LIMITS: Mapping[str, tuple[int, ...]] = {
    "RLIMIT_AS": tuple(megabytes << 20 for megabytes in (60, 100, 150, 200, 300, 400, 600, 800, 1200)),
    "RLIMIT_DATA": tuple(megabytes << 20 for megabytes in (20, 100, 300)),
    "RLIMIT_NOFILE": (5, 10, 20, 64),
    "RLIMIT_FSIZE": (0, 1000, 20_000, 200_000),
    "RLIMIT_STACK": tuple(kilobytes << 10 for kilobytes in (64, 256, 1024)),
    "RLIMIT_CPU": (1,),
    "RLIMIT_CORE": (0,),
    "RLIMIT_MEMLOCK": (0,),
}


def others_can_start() -> bool:
    """Return True if this process may become another user, who can then start this Python."""
    python = Path(sys.executable).resolve()
    return os.geteuid() == 0 and all(path.stat().st_mode & 0o001 for path in (python, *python.parents, *REPOSITORY.parents))


def limit_situations() -> Iterator[Situation]:
    """Yield each resource limit with each value; the limit of processes for another user, because root is exempt."""
    for name, values in LIMITS.items():
        for value in values:
            yield Situation(f"{name} {value}", limits={getattr(resource, name): value})
    if others_can_start():
        for value in (1, 2, 5):
            yield Situation(f"RLIMIT_NPROC {value} of another user", limits={resource.RLIMIT_NPROC: value}, user=_OTHER_USER)


def _close(*descriptors: int) -> Callable[[], None]:
    def close() -> None:
        for descriptor in descriptors:
            with suppress(OSError):
                os.close(descriptor)

    return close


def _redirect(path: str, *descriptors: int, flags: int = os.O_WRONLY) -> Callable[[], None]:
    def redirect() -> None:
        file = os.open(path, flags)
        for descriptor in descriptors:
            os.dup2(file, descriptor)
        os.close(file)

    return redirect


def _unread(descriptor: int) -> Callable[[], None]:
    def break_pipe() -> None:
        reading, writing = os.pipe()
        os.dup2(writing, descriptor)
        os.close(reading)
        os.close(writing)

    return break_pipe


def stream_situations() -> Iterator[Situation]:
    """Yield standard streams that are closed, full or unread, file mode masks, ignored signals and other users."""
    for descriptors in ((0,), (1,), (2,), (0, 1), (0, 1, 2), (1, 2)):
        yield Situation(f"closed {descriptors}", in_child=_close(*descriptors))
    yield Situation("full output", in_child=_redirect("/dev/full", 1))
    yield Situation("full errors", in_child=_redirect("/dev/full", 2))
    yield Situation("full both", in_child=_redirect("/dev/full", 1, 2))
    yield Situation("unread output", in_child=_unread(1))
    yield Situation("unread errors", in_child=_unread(2))
    yield Situation("input is a folder", in_child=_redirect("/", 0, flags=os.O_RDONLY))
    for mask in (0o777, 0o277, 0o000):
        yield Situation(f"umask {mask:o}", in_child=lambda mask=mask: os.umask(mask) and None)
    yield Situation("ignored SIGPIPE", in_child=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL) and None)
    yield Situation("deleted working directory", in_child=_leave_for_deleted)
    yield Situation("low priority", in_child=lambda: os.nice(19) and None)
    if hasattr(os, "sched_setaffinity"):
        yield Situation("one processor", in_child=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
    if others_can_start():
        yield Situation("another user", user=_OTHER_USER)
        yield Situation("a user without a name", user=54321)
        yield Situation("another user at home in /", {"HOME": "/"}, user=_OTHER_USER)
        yield Situation("a user without a name or HOME", {"HOME": None}, user=54321)
        yield Situation("another user with root's HOME", {"HOME": "/root"}, user=_OTHER_USER)


def _leave_for_deleted() -> None:
    folder = Path(tempfile.mkdtemp(dir=Path.cwd()))
    os.chdir(folder)
    folder.rmdir()


def situations() -> list[Situation]:
    """Return all situations."""
    return [*folder_situations(), *text_situations(), *limit_situations(), *stream_situations()]


def make_inputs(folder: Path) -> Path:
    """Make the inputs of all commands."""
    from proteoscope.engine.command_line.main import main

    folder.mkdir()
    few = few_proteins(folder)
    entries = few.read_text(encoding="utf-8").split("\n>")
    few.write_text("\n>".join([entries[0], *entries[-60:]]), encoding="utf-8")
    (folder / "query.fasta").write_text(f">{entries[-1].rstrip()}\n")
    for name, sample in (
        ("domain.pdb", "albumin_domain_3.pdb.gz"),
        ("library.msp", "bsa_library.msp.gz"),
        ("comet.pep.xml", "BSA1_comet.pep.xml.gz"),
    ):
        (folder / name).write_bytes(gzip.decompress((SAMPLES / sample).read_bytes()))
    genome = gzip.decompress((SAMPLES / "lambda_phage.fasta.gz").read_bytes()).decode().split("\n")[1:40]
    (folder / "genome.fasta").write_text(">genome\n" + "\n".join(genome) + "\n")
    (folder / "reads.fasta").write_text("".join(f">read{i}\n{line}\n" for i, line in enumerate(genome[:-1])))
    convert = [
        "convert",
        str(SAMPLES / "BSA1.mzML.gz"),
        "--out",
        str(folder / "spectra.mgf"),
        "--retention-time",
        "1750..2100",
        "--threads",
        "2",
        "--quiet",
    ]
    assert main(convert) == 0
    for name in ("project", "second"):
        arguments = [command.replace("IN/", f"{folder}/").replace("OUT/p", str(folder / name)) for command in COMMANDS["identify"]]
        assert main(["identify", *arguments]) == 0
    return folder


@dataclass(frozen=True)
class Outcome:
    """End of a command: its status, its output on both streams, and the digests of its results."""

    status: int
    output: str
    errors: str
    results: Mapping[str, str]


class Place:
    """Inputs, and a site for each case."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder, self.inputs = folder, inputs
        for path in (folder, *self.inputs.rglob("*"), self.inputs):
            path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))
        self.before = digests(self.inputs)
        self._expected: dict[str, Outcome] = {}
        self.kernels = folder / "kernels"  # for other users, who cannot write into the program's folder
        self.kernels.mkdir()
        if os.geteuid() == 0:
            os.chown(self.kernels, _OTHER_USER, _OTHER_USER)

    def attempt(self, situation: Situation, command: str) -> Outcome:
        """Run a command in a situation, in a new site that is removed afterwards; check what must hold in any case."""
        site = Site(Path(tempfile.mkdtemp(prefix="site-", dir=self.folder)))
        try:
            with ExitStack() as stack:
                return self._run(situation, command, site, stack)
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", site.folder], check=False)
            shutil.rmtree(site.folder)

    def expected(self, command: str) -> Outcome:
        """Return the outcome of a command in the usual situation."""
        if command not in self._expected:
            self._expected[command] = self.attempt(Situation("usual"), command)
        return self._expected[command]

    def _run(self, situation: Situation, command: str, site: Site, stack: ExitStack) -> Outcome:
        for path in (site.cwd, site.out, site.temporary, site.folder / "home"):
            path.mkdir()
        arguments = [word.replace("IN/", f"{self.inputs}/").replace("OUT/", f"{site.out}/") for word in COMMANDS[command]]
        if "PROJECT" in arguments:
            shutil.copytree(self.inputs / "project", site.out / "project")
        arguments = [word.replace("PROJECT", str(site.out / "project")) for word in arguments]
        environment = self._environment(situation, site, stack)
        if situation.user is not None:
            for path in (site.folder, *site.folder.rglob("*")):
                os.chown(path, situation.user, situation.user, follow_symlinks=False)
        site.folder.chmod(0o755)
        done, output, errors = _start([command, *arguments], environment, situation, site)
        left = [path for path in site.out.rglob("*") if path.name.startswith(".") or path.name.endswith((".partial", ".partial.lock"))]
        left += list(site.temporary.iterdir())
        left += [path for path in site.cwd.iterdir() if path.name not in ("relative", "~")]
        assert not left, f"left: {[str(path.relative_to(site.folder)) for path in left][:5]}"
        assert digests(self.inputs) == self.before, "inputs were changed"
        return Outcome(done, output, errors, {name: digest for name, digest in digests(site.out).items() if name.endswith(_SAME)})

    def _environment(self, situation: Situation, site: Site, stack: ExitStack) -> dict[str, str]:
        environment: dict[str, str | None] = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",  # under a limit of file sizes, modules would be truncated
            "HOME": str(site.folder / "home"),
            "TMPDIR": str(site.temporary),
            "CUDA_VISIBLE_DEVICES": "",
        }
        if situation.user is not None:
            environment["NUMBA_CACHE_DIR"] = str(self.kernels)
        environment |= {**situation.variables, **situation.prepare(site, stack)}
        return {name: value for name, value in environment.items() if value is not None}


_SAME = (".tsv", ".sam", ".msp", ".mzML", ".pin", ".parquet", ".pdb", ".fasta")
"""Endings of results without times and paths."""


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a folder by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "project.lock"
    }


def _start(arguments: list[str], environment: Mapping[str, str], situation: Situation, site: Site) -> tuple[int, str, str]:
    """Run the program and return its status and its output on both streams."""

    def begin() -> None:
        for limit, value in situation.limits.items():
            resource.setrlimit(limit, (value, value))
        situation.in_child()

    users = {} if situation.user is None else {"user": situation.user, "group": situation.user, "extra_groups": []}
    # Pipes are exempt from a limit of file sizes.
    done = subprocess.run(
        [sys.executable, "-m", "proteoscope.engine.command_line", *arguments],
        cwd=site.cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        preexec_fn=begin,
        **users,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def check(place: Place, situation: Situation, command: str) -> str:
    """Run a command in a situation and describe its end.

    Raises
    ------
    AssertionError
        The end is not allowed.
    """
    expected, done = place.expected(command), place.attempt(situation, command)
    assert "Traceback" not in done.errors and "Exception ignored" not in done.errors, done.errors[-1500:]
    assert done.status in (0, 2), f"status {done.status}: {done.errors[-1500:]}"
    assert all(character.isprintable() or character in "\n\r\t" for character in done.errors), repr(done.errors)
    if done.status == 0:
        assert done.errors == expected.errors, done.errors
        assert done.results == expected.results, f"other results: {sorted(dict(done.results.items() ^ expected.results.items()))}"
        return "done"
    assert done.errors.count("\n") <= 1 and (done.errors.startswith("proteoscope: ") or not done.errors), done.errors
    return done.errors.strip()


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="situations whose names hold this")
    parser.add_argument("--commands", nargs="+", default=[*COMMANDS])
    parser.add_argument("--every", type=int, default=1, help="run every Nth case")
    options = parser.parse_args()
    cases = [(situation, command) for situation in situations() if options.only in situation.name for command in options.commands][
        :: options.every
    ]
    n_wrong = 0
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        place = Place(Path(folder), make_inputs(Path(folder, "inputs")))
        for situation, command in cases:
            try:
                reported = check(place, situation, command)
            except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
                reported, n_wrong = f"WRONG: {error}", n_wrong + 1
            print(f"{command}, {situation.name!r}: {reported}".replace(folder, ""), flush=True)
    print(f"{len(cases)} cases, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
