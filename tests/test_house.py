"""Rules for the sources: direction of imports, forbidden content, required docstrings, and correct documentation."""

import ast
import gc
import importlib
import re
import shlex
import subprocess
import sys
from collections import defaultdict
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
    """Return path and content of every text file of the repository."""
    paths = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*") if path.suffix in TEXTS and path.is_file()]
    paths += [path for path in REPOSITORY.iterdir() if path.suffix in TEXTS and path.is_file()]
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


class Module(NamedTuple):
    """Syntax tree of a module, and its nodes by type: most tests need a few types of a million nodes."""

    tree: ast.Module
    nodes: dict[type[ast.AST], list[ast.AST]]

    @classmethod
    def parse(cls, text):
        """Return the syntax of a source."""
        tree, nodes = ast.parse(text), defaultdict(list)
        for node in ast.walk(tree):
            nodes[type(node)].append(node)
        return cls(tree, nodes)

    def all(self, *types):
        """Return the nodes of some types."""
        return [node for kind in types for node in self.nodes.get(kind, ())]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Module]]:
    """Path and syntax of every Python module that ships."""
    # Garbage collections would visit a million nodes again and again. None of them refers to itself.
    gc.disable()
    try:
        paths = [path for path in texts() if path.endswith(".py") and path.split("/")[0] in PACKAGES]
        parsed = {path: Module.parse(texts()[path]) for path in paths}
        gc.freeze()
    finally:
        gc.enable()
    yield parsed
    parsed.clear()


def places(pattern, paths=None):
    """Return the matches of a pattern as "path:line"."""
    matches = []
    for path, text in texts().items():
        if paths is None or path.startswith(paths):
            matches += [f"{path}:{text.count(chr(10), 0, match.start()) + 1}" for match in re.finditer(pattern, text)]
    return matches


def calls(module, *names):
    """Yield the calls of some functions, by name or as an attribute."""
    for node in module.all(ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if called in names:
            yield node


def test_imports_follow_the_layers():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", script, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


MAXIMUM_IMPORTS_IN_FUNCTIONS = 99


def test_imports_inside_functions_are_few_and_have_reasons(modules):
    """Mypy, import-linter and readers follow imports at the top of a file; a package's stub loads a module later."""
    imports = []
    for path, module in modules.items():
        functions = [(node.lineno, node.end_lineno) for node in module.all(ast.FunctionDef, ast.AsyncFunctionDef)]
        lines = {node.lineno for node in module.all(ast.Import, ast.ImportFrom)}
        inside = sorted(line for line in lines if any(start <= line <= stop for start, stop in functions))
        imports += [f"{path}:{line}: {texts()[path].splitlines()[line - 1].strip()}" for line in inside]
    assert [line for line in imports if "# " not in line] == []
    assert len(imports) <= MAXIMUM_IMPORTS_IN_FUNCTIONS


def test_engine_and_kernels_print_only_in_the_command_line(modules):
    prints = [
        f"{path}:{call.lineno}"
        for path, module in modules.items()
        if path.startswith(("engine/", "kernels/")) and not path.startswith("engine/command_line/")
        for call in calls(module, "print")
        if isinstance(call.func, ast.Name)
    ]
    assert prints == []


def test_gui_has_no_sql():
    """The window reads results through views of the engine, which scripts can use too."""
    assert places(r"\bSELECT\b|\bORDER BY\b|\bGROUP BY\b|\bduckdb\b", "gui/") == []


def test_gui_drawing_modules_define_no_array_fields(modules):
    """In these folders of the window each module draws, and no class holds arrays: models are in the engine, for scripts too."""
    models = []
    for path, module in modules.items():
        if not path.startswith(("gui/spectrum/", "gui/alignment/", "gui/results/")) or path.endswith("__init__.py"):
            continue
        if not any((node.module or "").split(".")[0] == "PySide6" for node in module.all(ast.ImportFrom)):
            models.append(path)
        fields = (node for outer in module.all(ast.ClassDef) for node in outer.body)
        models += [
            f"{path}:{node.lineno}"
            for node in fields
            if isinstance(node, ast.AnnAssign) and re.search(r"NDArray|ndarray|pa\.Table", ast.unparse(node.annotation))
        ]
    assert models == []


_DOTTED = re.compile(r"proteoscope\.\w+(\.\w+)+(:\w+)?")
"""A path to a module of the program, or to a name in it."""


def test_sources_have_no_module_paths_in_strings(modules):
    installer = {path: Module.parse(text) for path, text in texts().items() if path.startswith("installer/") and path.endswith(".py")}
    names = []
    for path, module in {**modules, **installer}.items():
        docstrings = {id(node.value) for node in module.all(ast.Expr)}
        names += [
            f"{path}:{node.lineno}"
            for node in module.all(ast.Constant)
            if isinstance(node.value, str) and id(node) not in docstrings and _DOTTED.fullmatch(node.value)
        ]
    assert not names, "name the object itself, in a callable where it is to be imported later"


STUBS = sorted(path for folder in PACKAGES for path in (REPOSITORY / folder).rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.relative_to(REPOSITORY).as_posix())
def test_names_in_package_stubs_exist(stub):
    name = ".".join(("proteoscope", *stub.parent.relative_to(REPOSITORY).parts)).replace("proteoscope.proteoscope", "proteoscope")
    assert "lazy_loader.attach_stub(__name__, __file__)" in stub.with_name("__init__.py").read_text(encoding="utf-8")
    package = importlib.import_module(name)
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(node, ast.ImportFrom) and node.level == 1 and all(alias.name == alias.asname for alias in node.names)
        for alias in node.names:
            assert alias.name in dir(package), alias.name
            path = stub.parent / (node.module or alias.name).replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), alias.name
            if node.module:  # a name in a module
                assert hasattr(importlib.import_module(f"{name}.{node.module}"), alias.name), alias.name


def test_sources_have_no_todo_or_local_path():
    # Written in parts, so that this file does not hold them.
    # A pattern that begins with a fixed text is found a hundred times faster.
    assert places(r"TO(?<=\bTO)" r"DO\b") + places(r"FIX(?<=\bFIX)" r"ME\b") == []
    assert places(r"XX(?<=\bXX)" r"X\b") + places(r"HA(?<=\bHA)" r"CK\b") == []
    assert places(r"/wo(?<![\w.]/wo)" r"rk/") == []
    assert places(r"/tmp/ve" r"nv\b") == []
    assert places(r"ssue(?i:(?<=\bissue) #?)" r"\d+\b") + places(r"SSUE(?<=\bISSUE) #?" r"\d+\b") == []


def test_modules_have_docstrings(modules):
    silent = [path for path, module in modules.items() if module.tree.body and not ast.get_docstring(module.tree)]
    assert silent == []


def test_public_kernels_have_docstrings(modules):
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
    "kernels/counts.py spectrum_search": "unrelated numbers, each passed by name",
    "kernels/cpu/lanes.py score_lanes": "columns of a group, costs and workspace of lanes",
    "kernels/cpu/striped.py _scan": "rows and columns of a matrix, a target, costs and workspace",
    "kernels/cpu/structure_alignment.py score_group": "a query, rewards, columns of a group and workspace of lanes",
}
"""Kernels with more arguments, and the arguments."""


def test_kernel_functions_have_few_arguments(modules):
    """Named tuples (`kernels/layouts.py` and others) hold related arguments; callers put long lists in the wrong order."""
    long_lists = set()
    for path, module in modules.items():
        for node in module.all(ast.FunctionDef) if path.startswith("kernels/") else ():
            arguments = node.args
            if len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) > MAXIMUM_ARGUMENTS:
                long_lists.add(f"{path} {node.name}")
    assert long_lists == set(MANY_ARGUMENTS)


def test_names_in_dunder_all_are_defined(modules):
    missing = []
    for path, module in modules.items():
        defined, offered = set(), []
        # The other branch of `if TYPE_CHECKING` is what runs.
        for node in [*module.tree.body, *(inner for outer in module.tree.body if isinstance(outer, ast.If) for inner in outer.orelse)]:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
                if "__all__" in names and not isinstance(node.value, ast.Call):  # `lazy_loader` builds the list
                    assert node.value is not None
                    offered = ast.literal_eval(node.value)
                defined |= names
        missing += [f"{path}: {name}" for name in offered if name not in defined]
    assert missing == []


def test_sources_unpickle_and_evaluate_nothing(modules):
    unsafe = []
    for path, module in modules.items():
        for node in module.all(ast.Import, ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(name.split(".")[0] in ("pickle", "cPickle", "dill", "shelve", "marshal", "joblib") for name in names):
                unsafe.append(f"{path}:{node.lineno}")
        evaluated = [call for call in calls(module, "eval", "exec") if isinstance(call.func, ast.Name)]
        loaded = [call for call in calls(module, "load") if any(keyword.arg == "allow_pickle" for keyword in call.keywords)]
        unsafe += [f"{path}:{call.lineno}" for call in (*evaluated, *loaded)]
    assert unsafe == []


def test_xml_parsers_resolve_no_entities(modules):
    resolving = [
        f"{path}:{call.lineno}"
        for path, module in modules.items()
        for call in calls(module, "XMLParser", "iterparse", "XMLPullParser")
        if not any(keyword.arg == "resolve_entities" and getattr(keyword.value, "value", None) is False for keyword in call.keywords)
    ]
    assert resolving == []


def test_no_except_clause_swallows_all_exceptions(modules):
    """A bare `except:`, or `except BaseException` that does not raise again, would swallow a cancel."""
    swallowing = []
    for path, module in modules.items():
        for node in module.all(ast.ExceptHandler):
            name = node.type.id if isinstance(node.type, ast.Name) else ""
            everything = node.type is None or name == "BaseException"
            if everything and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
                swallowing.append(f"{path}:{node.lineno}")
    assert swallowing == []


def test_qt_painters_are_always_ended(modules):
    """Without `end`, a painter lives as long as its frame, which a traceback or profiler retains.

    It then still paints when Qt shows the result, or is deleted in another thread: both end the process.
    """
    unended = []
    for path, module in modules.items():
        has_painter = path.startswith("gui/") and "QPainter(" in texts()[path]
        for function in module.all(ast.FunctionDef) if has_painter else ():
            nodes = list(ast.walk(function))
            attributes = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "end")
            ended = {ast.unparse(node.value) for node in attributes}
            for node in nodes:
                is_painter = isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("QPainter(")
                if is_painter and ast.unparse(node.targets[0]) not in ended:
                    unended.append(f"{path}:{node.lineno}")
    assert unended == []


def test_every_test_folder_is_a_subpackage_of_tests():
    """Each folder of tests is a subpackage, and no file changes Python's path to find another."""
    folders = {path.rpartition("/")[0] for path in texts() if path.startswith("tests/") and path.endswith(".py")}
    assert [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in texts()] == []
    assert places(r"sys\.path( *\+=|\.(insert|append|extend)\b|\[[^]\n]*\] *=[^=])", "tests/") == []


def test_folders_of_tests_mirror_the_program():
    """Each folder of tests has the name of a folder of `engine`, `gui`, `kernels` or `resources`."""
    folders = {
        Path(path).parent for path in texts() if path.startswith(("tests/engine/", "tests/gui/", "tests/resources/", "tests/kernels/"))
    }
    assert [str(folder) for folder in sorted(folders) if not (REPOSITORY / folder.relative_to("tests")).is_dir()] == []


CLOCKS = {
    "tests/engine/execution/cluster/processes.py": "waits for processes, with an end",
    "tests/engine/project/test_project.py": "spreads kills over the length of a run; waits for a state, with an end",
    "tests/engine/test_first_start.py": "replaces the clock of a search",
    "tests/engine/test_shared_folders.py": "attacks last some seconds",
    "tests/fuzz/killed_commands.py": "spreads kills and signals over the length of a command",
    "tests/fuzz/kills.py": "spreads kills over the length of a search",
    "tests/fuzz/resumed_kills.py": "spreads kills over the length of a search",
    "tests/fuzz/structure_databases.py": "spreads kills over the length of a build",
    "tests/fuzz/workers.py": "spreads kills over the length of a run",
    "tests/gui/conftest.py": "waits until nothing is left, with an end; notes each turn of the event loop",
    "tests/gui/picture_results.py": "lets the window draw",
    "tests/gui/screenshots.py": "lets the window draw",
    "tests/peers/peer_programs.py": "measures the peers for the benchmarks",
    "tests/peers/search_with_sagepy.py": "measures a peer for the benchmarks",
    "tests/peers/sequence_peers.py": "measures the peers for the benchmarks",
}
"""Files that may read a clock, and their purpose, which is never an assertion."""


def test_only_listed_tests_read_a_clock():
    """An assertion on time fails on a busy machine: `tests/effort.py` counts work, and `benchmarks` measures time."""
    # Written in parts, so that this file does not hold them.
    reads_clock = re.compile(r"\b(perf_cou" r"nter|mono" r"tonic|process_ti" r"me|thread_ti" r"me|time\.ti" r"me)(_ns)?\(")
    readers = {path for path, text in texts().items() if path.startswith("tests/") and reads_clock.search(text)}
    assert readers == set(CLOCKS)


def test_identify_presets_are_valid_and_listed_in_the_manual():
    page = (REPOSITORY / "docs" / "command_line.md").read_text(encoding="utf-8")
    for name in preset_names("identify"):
        IdentificationParameters.checked(read_preset("identify", name))
        assert preset_description("identify", name)
        assert f"| `{name}` |" in page, f"the page of the command line does not list {name}"


def test_documented_command_line_options_exist(capsys):
    from proteoscope.engine.command_line.main import main
    from proteoscope.engine.searches import SEARCHES

    options = set()
    for command in (*(search.kind for search in SEARCHES), "export", "convert", "compare", "devices", "cache"):
        assert main([command, "--help"]) == 0
        options |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    documented = set(
        re.findall(
            r"(?<![\w-])--[a-z][a-z-]*", texts()["README.md"] + (REPOSITORY / "docs" / "command_line.md").read_text(encoding="utf-8")
        )
    )
    assert documented <= options
    assert {"--database", "--out", "--preset", "--set", "--device", "--threads", "--strict", "--quiet", "--json"} <= documented


def quoted_commands():
    """Yield page and words of each command line of the manual, with all optional words and the first alternatives."""
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8").replace("\\\n", "")
        for line in re.findall(r"^    (?:\S*/)?proteoscope (\S.*)$", text, re.MULTILINE):
            words = shlex.split(re.sub(r"[\[\]]|\.\.\.", " ", line), comments=True)
            yield page.name, [re.sub(r"\|.*", "", word) for word in words]


def test_documented_command_lines_are_valid():
    from proteoscope.engine.command_line.main import build_parser, command_parsers

    commands, quoted = set(command_parsers()), list(quoted_commands())
    assert len(quoted) > 40
    for page, words in quoted:
        if words[0] not in commands:  # a project or a file for the window
            assert not words[0].startswith("-") and len(words) == 1, (page, words)
            continue
        try:
            build_parser(words).parse_args(words)
        except SystemExit as wrong:
            raise AssertionError(f"{page}: proteoscope {' '.join(words)}") from wrong


def test_no_page_or_message_says_to_install_from_a_package_index():
    # The program has no release: its name in a package index belongs to another project, if to any.
    pages = {page.name: page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs").rglob("*.md")}
    by_name = re.compile(r"(install[ \"'`“]+proteoscope\b(?!-))|proteoscope\[\w")
    shipped = {
        path: text for path, text in texts().items() if path.startswith(("gui/", "engine/", "kernels/", "installer/manual", "README"))
    }
    assert [path for path, text in {**pages, **shipped}.items() if by_name.search(text)] == []


def test_listed_slowest_test_files_exist():
    from tests.conftest import LONGEST_FILES

    assert [name for name in LONGEST_FILES if not (REPOSITORY / name).is_file()] == []


def test_manual_page_on_benchmarks_lists_each_benchmark():
    page = (REPOSITORY / "docs" / "developers" / "benchmarks.md").read_text(encoding="utf-8")
    programs = {
        Path(path).stem for path, text in texts().items() if path.startswith("benchmarks/") and path.endswith(".py") and "__main__" in text
    }
    assert programs - set(re.findall(r"`(?:benchmarks[/.])?(\w+)(?:\.py)?`", page)) == set()
