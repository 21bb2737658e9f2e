"""Kernels compiled ahead of the first search: in processes of their own, those of a family one after the other."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from proteoscope.engine.execution.addresses import object_at
from proteoscope.engine.execution.compilation import Kernels, compile_ahead
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.structure_search.kept_chains import FEWEST_FILES

KERNELS = tuple(dict.fromkeys(load() for search in SEARCHES for load in search.kernels))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a module whose `Kernels` do what a line of Python says, and puts it where this process and its children find it."""

    def make(**programs: tuple[str, str]) -> list[Kernels]:
        lines = ["import os, time", "from proteoscope.engine.execution.compilation import Kernels", f"FOLDER = {str(tmp_path)!r}"]
        lines += ["class Marked(Kernels):", "    @property", "    def are_compiled(self): return os.path.exists(self.last())"]
        lines += ["    def use_and_mark(self): self.use(); open(self.last(), 'w').close()"]
        for name, (family, program) in programs.items():
            lines += [f"def _{name}():", f"    {program}"]
            lines += [f"{name} = Marked('{name}', lambda: FOLDER + '/{name}', _{name}, family='{family}')"]
        (tmp_path / "small_kernels.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "small_kernels", raising=False)
        return [object_at(f"small_kernels:{name}") for name in programs]

    return make


def test_every_search_tells_its_kernels() -> None:
    for search in SEARCHES:
        assert search.kernels, search.kind
    assert all(isinstance(one, Kernels) and object_at(one.address) is one for one in KERNELS)


def test_each_is_compiled_once_and_those_of_a_family_in_turn(small, tmp_path: Path) -> None:
    begin, end = ("open(FOLDER + '/order', 'a').write('{0}" + sign + "\\n')" for sign in "+-")
    until = "assert any(os.path.exists(FOLDER + '/c') or time.sleep(0.01) for _ in range(6000))"
    programs = {name: (family, f"{begin.format(name)}\n    {end.format(name)}") for name, family in (("b", "x"), ("c", "y"))}
    places = small(a=("x", f"{begin.format('a')}\n    {until}\n    {end.format('a')}"), **programs)
    assert compile_ahead(places, Progress(), processes=3) == [], "a would wait in vain for a c that waits for a"
    order = (tmp_path / "order").read_text().split()
    assert order.index("a-") < order.index("b+"), "b is of the family of a"
    assert sorted(order) == ["a+", "a-", "b+", "b-", "c+", "c-"]
    assert compile_ahead(places, Progress(), processes=3) == []
    assert (tmp_path / "order").read_text().split() == order, "nothing is left to compile"


def test_a_family_is_compiled_by_one_process(small, tmp_path: Path) -> None:
    note = "open(FOLDER + '/processes', 'a').write(f'{os.getpid()}\\n')"
    assert compile_ahead(small(a=("x", note), b=("x", note), c=("y", note)), Progress(), processes=1) == []
    first, second, third = (tmp_path / "processes").read_text().split()
    assert first == second != third


@pytest.mark.parametrize(
    ("program", "told"),
    [("raise OSError('no room')", "OSError: no room"), ("os.kill(os.getpid(), 9)", "the process was ended"), ("exit('full')", "full")],
)
def test_what_cannot_be_compiled_is_told_and_stops_nothing(small, tmp_path: Path, program: str, told: str) -> None:
    places = small(first=("x", "pass"), bad=("x", program), good=("x", "pass"))
    seen: list[ProgressEvent] = []
    (failure,) = compile_ahead(places, Progress(seen.append), processes=1)
    assert failure == f"The bad could not be compiled ahead: {told}"
    assert (tmp_path / "first").exists() and (tmp_path / "good").exists()
    assert (seen[-1].done, seen[-1].total) == (3, 3)


def test_a_cancel_ends_the_compilers(small, tmp_path: Path) -> None:
    places, progress = small(slow=("x", "open(FOLDER + '/begun', 'w').close(); time.sleep(600)")), Progress()

    def cancel_when_begun() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        progress.cancel()

    thread = threading.Thread(target=cancel_when_begun)
    thread.start()
    with pytest.raises(Cancelled):
        compile_ahead(places, progress, processes=1)
    thread.join()
    assert not (tmp_path / "slow").exists()


@pytest.mark.long
def test_after_compiling_ahead_no_search_compiles(sample_data: Path, tmp_path: Path) -> None:
    """In caches of their own: the samples of all kinds, a library of text, and a folder of structures that is kept and opened again."""
    folds, kernels = tmp_path / "folds", tmp_path / "kernels"
    folds.mkdir()
    chain = gzip.decompress((sample_data / "albumin_domain_3.pdb.gz").read_bytes())
    for number in range(FEWEST_FILES):
        (folds / f"fold{number}.pdb").write_bytes(chain)
    own = {"NUMBA_CACHE_DIR": str(kernels), "PROTEOSCOPE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def compiled_by(*command: str) -> set[str]:
        before = {path.name for path in kernels.rglob("*.nbc")}
        whole = [sys.executable, "-m", "proteoscope.engine.command_line", *command]
        subprocess.run(whole, check=True, capture_output=True, env=os.environ | own)
        return {path.name for path in kernels.rglob("*.nbc")} - before

    assert compiled_by("compile")
    commands = {one.kind: ["demo", one.kind, "--out", str(tmp_path / one.kind)] for one in SEARCHES}
    structures = ["structures", str(folds / "fold0.pdb"), "--database", str(folds)]
    commands |= {f"folder {n}": [*structures, "--out", str(tmp_path / f"hits{n}.tsv")] for n in (1, 2)}
    more = {name: compiled_by(*command, "--device", "cpu") for name, command in commands.items()}
    assert not {name: kernels for name, kernels in more.items() if kernels}
