"""The rules of the house: which way imports run, what no file may hold, what every module tells."""

import ast
import gc
import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.parameters import preset_description, preset_names, read_preset

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("proteoscope", "gui", "engine", "kernels", "resources", "tests", "benchmarks", "installer")
TEXTS = {".py", ".toml", ".md", ".sh", ".cu", ".cuh", ".cpp", ".h", ".txt", ".svg", ".yml", ".yaml", ".cfg"}
PACKAGES = ("proteoscope", "gui", "engine", "kernels", "resources")


@cache
def texts():
    """Path and content of every text file of the repository."""
    paths = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*") if path.suffix in TEXTS and path.is_file()]
    paths += [path for path in REPOSITORY.iterdir() if path.suffix in TEXTS and path.is_file()]
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


class Module(NamedTuple):
    """A module's syntax tree, and all nodes of it."""

    tree: ast.Module
    nodes: list[ast.AST]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Module]]:
    """Path and syntax of every Python module that ships."""
    # They are a million nodes, which the collector of garbage would look at again and again. None of them holds itself.
    gc.disable()
    try:
        paths = [path for path in texts() if path.endswith(".py") and path.split("/")[0] in PACKAGES]
        trees = {path: ast.parse(texts()[path]) for path in paths}
        found = {path: Module(tree, list(ast.walk(tree))) for path, tree in trees.items()}
        gc.freeze()
    finally:
        gc.enable()
    yield found
    found.clear()


def places(pattern, paths=None):
    """Where a pattern stands: "path:line"."""
    found = []
    for path, text in texts().items():
        if paths is None or path.startswith(paths):
            found += [f"{path}:{text.count(chr(10), 0, match.start()) + 1}" for match in re.finditer(pattern, text)]
    return found


def calls(module, *names):
    """Calls of one of the functions, by its name or as an attribute."""
    for node in module.nodes:
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in names:
                yield node


def test_imports_run_one_way():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", script, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


MAXIMUM_IMPORTS_IN_FUNCTIONS = 99


def test_imports_in_functions_are_few_and_give_their_reason(modules):
    """Mypy, import-linter and readers follow imports at the top of a file; what must be loaded later is loaded through a package's stub."""
    found = []
    for path, module in modules.items():
        functions = (node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        lines = {node.lineno for one in functions for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)}
        found += [f"{path}:{line}: {texts()[path].splitlines()[line - 1].strip()}" for line in sorted(lines)]
    assert [one for one in found if "# " not in one] == []
    assert len(found) <= MAXIMUM_IMPORTS_IN_FUNCTIONS


def test_only_the_command_line_prints(modules):
    found = [
        f"{path}:{call.lineno}"
        for path, module in modules.items()
        if path.startswith(("engine/", "kernels/")) and not path.startswith("engine/command_line/")
        for call in calls(module, "print")
        if isinstance(call.func, ast.Name)
    ]
    assert found == []


def test_the_window_asks_results_by_the_engines_views_alone():
    """No SQL and no DuckDB in `gui`: whatever it shows, a script can have."""
    assert places(r"\bSELECT\b|\bORDER BY\b|\bGROUP BY\b|\bduckdb\b", "gui/") == []


def test_what_pictures_of_spectra_and_alignments_show_lies_in_the_engine(modules):
    """In these folders of the window each module draws, and has no class that holds arrays, as models do, which are for scripts too."""
    models = []
    for path, module in modules.items():
        if not path.startswith(("gui/spectrum/", "gui/alignment/", "gui/results/")) or path.endswith("__init__.py"):
            continue
        if not any(isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "PySide6" for node in module.nodes):
            models.append(path)
        fields = (node for outer in module.nodes if isinstance(outer, ast.ClassDef) for node in outer.body)
        models += [
            f"{path}:{node.lineno}"
            for node in fields
            if isinstance(node, ast.AnnAssign) and re.search(r"NDArray|ndarray|pa\.Table", ast.unparse(node.annotation))
        ]
    assert models == []


_DOTTED = re.compile(r"proteoscope\.\w+(\.\w+)+(:\w+)?")
"""A path to a module of the program, or to a name in it."""


def test_no_text_names_a_module(modules):
    installer = {
        path: Module(tree := ast.parse(text), list(ast.walk(tree)))
        for path, text in texts().items()
        if path.startswith("installer/") and path.endswith(".py")
    }
    found = []
    for path, module in {**modules, **installer}.items():
        docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        found += [
            f"{path}:{node.lineno}"
            for node in module.nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and _DOTTED.fullmatch(node.value)
        ]
    assert not found, "name the object itself, in a callable where it is to be imported later"


STUBS = sorted(path for folder in PACKAGES for path in (REPOSITORY / folder).rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.relative_to(REPOSITORY).as_posix())
def test_lists_of_lazy_modules_name_what_is_there(stub):
    name = ".".join(("proteoscope", *stub.parent.relative_to(REPOSITORY).parts)).replace("proteoscope.proteoscope", "proteoscope")
    assert "lazy_loader.attach_stub(__name__, __file__)" in stub.with_name("__init__.py").read_text(encoding="utf-8")
    package = importlib.import_module(name)
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(node, ast.ImportFrom) and node.level == 1 and all(one.name == one.asname for one in node.names)
        for one in node.names:
            assert one.name in dir(package), one.name
            path = stub.parent / (node.module or one.name).replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), one.name
            if node.module:  # not a module, but something in one
                assert hasattr(importlib.import_module(f"{name}.{node.module}"), one.name), one.name


def test_nothing_is_left_to_do_and_nothing_tells_of_the_workshop():
    # Written in parts, so that this file does not hold them.
    assert places(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b") == []
    assert places(r"(?<![\w.])/wo" r"rk/") == []
    assert places(r"/tmp/ve" r"nv\b") == []
    assert places(r"(?i)\bissue #?" r"\d+\b") == []


def test_every_module_says_what_it_is(modules):
    silent = [path for path, module in modules.items() if module.tree.body and not ast.get_docstring(module.tree)]
    assert silent == []


def test_every_kernel_says_what_it_takes(modules):
    silent = [
        f"{path}:{node.lineno} {node.name}"
        for path, module in modules.items()
        if path.startswith("kernels/")
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert silent == []


MAXIMUM_ARGUMENTS = 11
MANY_ARGUMENTS = {
    "kernels/counts.py spectrum_search": "numbers that have nothing in common, each given by its name",
    "kernels/cpu/lanes.py score_lanes": "columns of a group, costs and work space of lanes, one by one",
    "kernels/cpu/structure_alignment.py score_group": "a query, rewards, columns of a group and work space of lanes, one by one",
}
"""Kernels that take more, and what."""


def test_what_belongs_together_goes_into_a_kernel_as_one_argument(modules):
    """As a named tuple (`kernels/layouts.py` and its neighbours), which Numba takes like its fields: long lists are put in wrong order."""
    found = set()
    for path, module in modules.items():
        for node in module.nodes if path.startswith("kernels/") else ():
            if isinstance(node, ast.FunctionDef):
                given = node.args
                if len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) > MAXIMUM_ARGUMENTS:
                    found.add(f"{path} {node.name}")
    assert found == set(MANY_ARGUMENTS)


def test_what_a_module_offers_is_there(modules):
    missing = []
    for path, module in modules.items():
        defined, offered = set(), []
        # Of `if TYPE_CHECKING`, what is there when the program runs.
        for node in [*module.tree.body, *(inner for outer in module.tree.body if isinstance(outer, ast.If) for inner in outer.orelse)]:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
                if "__all__" in names and not isinstance(node.value, ast.Call):  # a call is of `lazy_loader`, which makes the list
                    assert node.value is not None
                    offered = ast.literal_eval(node.value)
                defined |= names
        missing += [f"{path}: {name}" for name in offered if name not in defined]
    assert missing == []


def test_nothing_is_unpickled_or_evaluated(modules):
    found = []
    for path, module in modules.items():
        for node in module.nodes:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] in ("pickle", "cPickle", "dill", "shelve", "marshal", "joblib") for name in names):
                found.append(f"{path}:{node.lineno}")
        evaluated = [call for call in calls(module, "eval", "exec") if isinstance(call.func, ast.Name)]
        loaded = [call for call in calls(module, "load") if any(keyword.arg == "allow_pickle" for keyword in call.keywords)]
        found += [f"{path}:{call.lineno}" for call in (*evaluated, *loaded)]
    assert found == []


def test_parsers_of_xml_follow_no_entity(modules):
    found = [
        f"{path}:{call.lineno}"
        for path, module in modules.items()
        for call in calls(module, "XMLParser", "iterparse", "XMLPullParser")
        if not any(keyword.arg == "resolve_entities" and getattr(keyword.value, "value", None) is False for keyword in call.keywords)
    ]
    assert found == []


def test_errors_are_not_swallowed_whole(modules):
    """A bare `except:`, or one of BaseException that does not raise again, would swallow a cancel."""
    found = []
    for path, module in modules.items():
        for node in module.nodes:
            if isinstance(node, ast.ExceptHandler):
                name = node.type.id if isinstance(node.type, ast.Name) else ""
                everything = node.type is None or name == "BaseException"
                if everything and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
                    found.append(f"{path}:{node.lineno}")
    assert found == []


def test_every_painter_is_ended(modules):
    """One that only goes when nobody holds its frame any more (a traceback does, and a profiler) goes on painting when Qt shows what was
    painted, or goes in another thread: both end the process."""
    found = []
    for path, module in modules.items():
        functions = (node for node in module.nodes if isinstance(node, ast.FunctionDef))
        for function in functions if path.startswith("gui/") else ():
            nodes = list(ast.walk(function))
            attributes = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "end")
            ended = {ast.unparse(node.value) for node in attributes}
            for node in nodes:
                is_painter = isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("QPainter(")
                if is_painter and ast.unparse(node.targets[0]) not in ended:
                    found.append(f"{path}:{node.lineno}")
    assert found == []


def test_the_tests_are_one_package():
    """Each folder of tests is a part of it, and no file puts folders on Python's path to find another."""
    folders = {path.rpartition("/")[0] for path in texts() if path.startswith("tests/") and path.endswith(".py")}
    assert [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in texts()] == []
    assert places(r"sys\.path(\.insert|\[)", "tests/") == []


def test_the_tests_mirror_the_program():
    """What tests a part of the program lies where that part lies: a folder of `engine`, `gui` or `resources` of the same name."""
    folders = {
        Path(path).parent for path in texts() if path.startswith(("tests/engine/", "tests/gui/", "tests/resources/", "tests/kernels/"))
    }
    assert [str(folder) for folder in sorted(folders) if not (REPOSITORY / folder.relative_to("tests")).is_dir()] == []


CLOCKS = {
    "tests/engine/execution/cluster/processes.py": "waits for processes, with an end",
    "tests/engine/project/test_project.py": "spreads kills over the length of a run; waits for a state, with an end",
    "tests/engine/test_shared_folders.py": "attacks go on for some seconds",
    "tests/fuzz/killed_commands.py": "spreads kills and signals over the length of a command",
    "tests/fuzz/kills.py": "spreads kills over the length of a search",
    "tests/fuzz/resumed_kills.py": "spreads kills over the length of a search",
    "tests/fuzz/structure_databases.py": "spreads kills over the length of a build",
    "tests/fuzz/workers.py": "spreads kills over the length of a run",
    "tests/gui/conftest.py": "waits until nothing is left behind, with an end; notes when the event loop came round",
    "tests/gui/picture_results.py": "lets the window draw",
    "tests/gui/screenshots.py": "lets the window draw",
    "tests/gui/test_odd_drops.py": "bounds the processor time of the window's thread between two looks at events",
    "tests/peers/peer_programs.py": "measures the peers for the benchmarks",
    "tests/peers/search_with_sagepy.py": "measures a peer for the benchmarks",
    "tests/peers/sequence_peers.py": "measures the peers for the benchmarks",
}
"""Who may read a clock, and what for: never to judge."""


def test_no_test_asserts_how_long_something_takes():
    """A busy machine would fail it. What must be fast is counted (`tests/effort.py`) or measured (`benchmarks`)."""
    # Written in parts, so that this file does not hold them.
    reads_clock = re.compile(r"\b(perf_cou" r"nter|mono" r"tonic|process_ti" r"me|thread_ti" r"me|time\.ti" r"me)(_ns)?\(")
    found = {path for path, text in texts().items() if path.startswith("tests/") and reads_clock.search(text)}
    assert found == set(CLOCKS)


def test_presets_are_valid_and_described():
    page = (REPOSITORY / "docs" / "command_line.md").read_text(encoding="utf-8")
    for name in preset_names("identify"):
        IdentificationParameters.checked(read_preset("identify", name))
        assert preset_description("identify", name)
        assert f"| `{name}` |" in page, f"the page of the command line does not list {name}"


def test_readme_and_command_line_page_tell_the_commands_that_there_are(capsys):
    from proteoscope.engine.command_line.main import main
    from proteoscope.engine.searches import SEARCHES

    options = set()
    for command in (*(one.kind for one in SEARCHES), "export", "convert", "compare", "devices", "cache"):
        assert main([command, "--help"]) == 0
        options |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    told = set(
        re.findall(
            r"(?<![\w-])--[a-z][a-z-]*", texts()["README.md"] + (REPOSITORY / "docs" / "command_line.md").read_text(encoding="utf-8")
        )
    )
    assert told <= options
    assert {"--database", "--out", "--preset", "--set", "--device", "--threads", "--strict", "--quiet", "--json"} <= told


def quoted_commands():
    """Page and words of each command line of the pages; of what is optional all, of alternatives the first."""
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8").replace("\\\n", "")
        for line in re.findall(r"^    (?:\S*/)?proteoscope (\S.*)$", text, re.MULTILINE):
            words = shlex.split(re.sub(r"[\[\]]|\.\.\.", " ", line), comments=True)
            yield page.name, [re.sub(r"\|.*", "", word) for word in words]


def test_every_command_line_of_the_pages_is_one():
    from proteoscope.engine.command_line.main import build_parser, command_parsers

    known, told = set(command_parsers()), list(quoted_commands())
    assert len(told) > 40
    for page, words in told:
        if words[0] not in known:  # a project or a file, which the window is opened on
            assert not words[0].startswith("-") and len(words) == 1, (page, words)
            continue
        try:
            build_parser(words).parse_args(words)
        except SystemExit as wrong:
            raise AssertionError(f"{page}: proteoscope {' '.join(words)}") from wrong


def test_the_files_that_are_tested_first_are_there():
    from tests.conftest import LONGEST_FILES

    assert [name for name in LONGEST_FILES if not (REPOSITORY / name).is_file()] == []


def test_page_on_benchmarks_lists_each_program():
    page = (REPOSITORY / "docs" / "developers" / "benchmarks.md").read_text(encoding="utf-8")
    programs = {
        Path(path).stem for path, text in texts().items() if path.startswith("benchmarks/") and path.endswith(".py") and "__main__" in text
    }
    assert programs - set(re.findall(r"`(?:benchmarks[/.])?(\w+)(?:\.py)?`", page)) == set()
