"""kernels/cuda has the functions of kernels/cpu, and launchers and their `.cu` files agree on sizes and the order of fields."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proteoscope.kernels import counts, score_kinds
from proteoscope.kernels.cuda.compiled import source

TESTS = Path(__file__).resolve().parents[1]
SOURCES = sorted(entry.name for entry in files("proteoscope.kernels.cuda").iterdir() if entry.name.endswith((".cu", ".cuh")))
SHARED_MODULES = sorted(
    {path.stem for path in Path(str(files("proteoscope.kernels.cuda"))).glob("[!_]*.py")}
    & {path.stem for path in Path(str(files("proteoscope.kernels.cpu"))).glob("*.py")}
)
every_shared_module = pytest.mark.parametrize("name", SHARED_MODULES)
every_source = pytest.mark.parametrize("file", SOURCES)

MAXIMUM_LINES, MAXIMUM_ARGUMENTS = 95, 8
"""Maximum number of lines of a CUDA function, and of a kernel."""

STRUCTS = [
    ("scoring", "Settings", "_SETTINGS"),
    ("scoring", "Inputs", "_INPUTS"),
    ("scoring", "Tiles", "_TILES"),
    ("scoring", "Hits", "_HITS"),
    ("fragment_index", "Masses", "_MASSES"),
    ("fragment_index", "Chunk", "_CHUNK"),
    ("fragment_index", "Dictionary", "_DICTIONARY"),
    ("fragment_index", "Index", "_INDEX"),
    ("fragment_index", "Queries", "_QUERIES"),
    ("digestion", "Limits", "_LIMITS"),
    ("alignment", "Strip", "_STRIP"),
    ("alignment", "Strips", "_STRIPS"),
    ("alignment", "Subjects", "_SUBJECTS"),
    ("gapsmis", "Pairs", "_PAIRS"),
    ("gapsmis", "Results", "_RESULTS"),
    ("k_means", "Points", "_POINTS"),
    ("k_means", "Centroids", "_CENTROIDS"),
    ("k_means", "Means", "_MEANS"),
    ("k_means", "Vectors", "_VECTORS"),
    ("k_means", "Lists", "_LISTS"),
    ("k_means", "Terms", "_TERMS"),
    ("match_scores", "Lists", "_LISTS"),
    ("match_scores", "Rows", "_ROWS"),
    ("match_scores", "Index", "_INDEX"),
    ("match_scores", "Queries", "_QUERIES"),
    ("match_scores", "Pass", "_PASS"),
    ("structure_alignment", "Chains", "_CHAINS"),
    ("structure_alignment", "Query", "_QUERY"),
    ("structure_alignment", "Results", "_RESULTS"),
    ("superposition", "Item", "_ITEM"),
    ("superposition", "Steps", "_STEPS"),
    ("superposition", "Chains", "_CHAINS"),
    ("superposition", "Found", "_FOUND"),
    ("vector_clustering", "Vectors", "_VECTORS"),
    ("vector_clustering", "Tiles", "_TILES"),
    ("vector_clustering", "Clusters", "_CLUSTERS"),
    ("vector_clustering", "Groups", "_GROUPS"),
]

SIZES = {
    "scoring": {
        "_MAXIMUM_SLOTS": "kMostSlots",
        "_MAXIMUM_SERIES": "kMostSeries",
        "_MAXIMUM_ISOTOPE_ERRORS": "kMostIsotopeErrors",
        "_MAXIMUM_FRAGMENT_CHARGE": "kMostFragmentCharge",
        "_NONE": "kNone",
        "_CORRELATION_HALF_WINDOW": "kCorrelationHalfWindow",
        "_TILE": "kTile",
        "_DENSE_WARPS": "kDenseWarps",
        "_MAXIMUM_DENSE_BEST": "kMostDenseBest",
        "_MAXIMUM_DENSE_WINDOWS": "kMostDenseWindows",
        "_FINE_BINS": "kFineBins",
        "_DOT_BITS": "kDotBits",
        "_COUNT_BITS": "kCountBits",
    },
    "fragment_index": {
        "_MAXIMUM_SERIES": "kMostSeries",
        "_MAXIMUM_WINDOWS": "kMostWindows",
        "_FOUND": "kFound",
        "_RESIDUES": "kResidues",
        "_ENDS": "kEnds",
        "_NONE": "kNone",
        "_PROTON_MASS": "kProtonMass",
    },
    "gapsmis": {"_CODES": "kCodes", "_PADDING": "kPadding"},
    "gapsmis_plan": {"TABLE": "kTable", "PROFILE": "kProfile", "FOUR": "kFour", "EIGHT": "kEight"},
    "k_means": {
        "_THREADS": "kThreads",
        "_FLOATS_OF_CENTROIDS": "kFloats",
        "_SIDE": "kSide",
        "_DEPTH": "kDepth",
        "_CLUSTERS_OF_TILE": "kTile",
        "_WARPS": "kWarps",
    },
    "match_scores": {"_THREADS": "kThreads", "_FOUND": "kFound"},
    "alignment_plan": {"TABLE_ROWS": "kTableRows"},
    "vector_clustering": {"_WIDTH": "kWidth"},
}


def launcher(name: str) -> ModuleType:
    return importlib.import_module(f"proteoscope.kernels.cuda.{name}")


def processor(name: str) -> ModuleType:
    return importlib.import_module(f"proteoscope.kernels.cpu.{name}")


def with_headers(file: str, done: set[str] | None = None) -> str:
    """Return the text of a source and of the headers that it includes, each once."""
    done = set() if done is None else done
    if file in done:
        return ""
    done.add(file)
    return re.sub(r'#include "([^"]+)"', lambda match: with_headers(match[1], done), source(file))


def sources_of(name: str) -> list[str]:
    """Return the `.cu` files whose kernels a launcher starts, and their parts."""
    texts = [path.read_text(encoding="utf-8") for path in Path(str(files("proteoscope.kernels.cuda"))).glob(f"{name}*.py")]
    return sorted({name for text in texts for name in re.findall(r'"(\w+\.cu)"', text)})


def text_of(name: str) -> str:
    """Return all the text that the compiler reads for the kernels of a launcher."""
    done: set[str] = set()
    return "\n".join(with_headers(file, done) for file in sources_of(name))


KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)')


def constants(name: str) -> dict[str, float]:
    """Return the constants of a launcher's kernels that are literals or shifts."""
    name = name.removesuffix("_plan")
    constants = {}
    for statement in re.findall(r"constexpr [\w ]+? (k\w+ = [^;]+);", text_of(name)):
        for constant, value in re.findall(r"(k\w+) = ([^,]+)", statement):
            if re.fullmatch(r"[\d.]+( << \d+)?", value.strip()):
                number, shift = (*value.split("<<"), "0")[:2]
                constants[constant] = float(number) * 2 ** int(shift)
    return constants


def fields(name: str, struct: str) -> list[str]:
    """Return the members of a struct of a launcher's kernels, in order."""
    body = re.search(rf"struct {struct} \{{(.*?)\n\}};", text_of(name), re.DOTALL)
    assert body
    declarations = re.sub(r"//[^\n]*", "", body[1]).split(";")
    return [member for declaration in declarations for member in re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", declaration.strip())]


def members(module: ModuleType) -> dict[str, object]:
    """Return the public functions of a module, the constructors and public methods of its public classes, and its other public names."""
    functions: dict[str, object] = {}
    for name in module.__all__:
        value = getattr(module, name)
        functions[name] = value
        if inspect.isclass(value):
            methods = {key: method for key, method in vars(value).items() if inspect.isfunction(method)}
            functions |= {f"{name}.{key}": method for key, method in methods.items() if key == "__init__" or not key.startswith("_")}
    return functions


def signature(function: Any) -> tuple[list[tuple[Any, ...]], str]:
    """Return kinds, names, defaults and annotations of the parameters and the return annotation; the devices of both sides are equal."""
    described = inspect.signature(function)
    kinds = {"Processor": "device", "Gpu": "device"}
    return [
        (parameter.name, parameter.kind, parameter.default, kinds.get(parameter.annotation, parameter.annotation))
        for parameter in described.parameters.values()
    ], described.return_annotation


@every_shared_module
def test_backends_have_functions_with_the_same_signatures(name):
    mine, theirs = members(launcher(name)), members(processor(name))
    assert sorted(launcher(name).__all__) == sorted(processor(name).__all__)
    assert list(mine) == list(theirs)
    for member_name, member in mine.items():
        if inspect.isfunction(member):
            assert signature(member) == signature(theirs[member_name]), member_name
    assert any(inspect.isfunction(member) for member in mine.values())


def test_every_opened_kernel_module_has_both_backends():
    texts = [path.read_text(encoding="utf-8") for path in (TESTS.parent / "engine").rglob("*.py")]
    assert {name for text in texts for name in re.findall(r'\bbackend_module\(\w+(?:\.\w+)*, "(\w+)"\)', text)} == set(SHARED_MODULES)


def test_every_cuda_source_is_used_by_a_launcher():
    used = {
        header
        for name in SHARED_MODULES
        for file in sources_of(name)
        for header in [file, *re.findall(r'#include "([^"]+)"', with_headers(file))]
    }
    included = {header for file in SOURCES for header in re.findall(r'#include "([^"]+)"', source(file))}
    assert set(SOURCES) == used | included


@every_shared_module
def test_every_kernel_is_launched_and_tested_on_a_gpu(name):
    launchers = [path.read_text(encoding="utf-8") for path in Path(str(files("proteoscope.kernels.cuda"))).glob(f"{name}*.py")]
    launchers.append(inspect.getsource(score_kinds))
    assert sources_of(name)
    for file in sources_of(name):
        kernels = [kernel for kernel, _ in KERNEL.findall(source(file))]
        assert kernels
        assert [kernel for kernel in kernels if not any(f'"{kernel}"' in text for text in launchers)] == []
    assert (TESTS / "gpu" / f"test_{name}_on_gpu.py").exists()


@pytest.mark.parametrize("name", [name for name in SHARED_MODULES if name in ("digestion", "fragment_index", "scoring")])
def test_launcher_docstring_names_an_existing_operation_count(name):
    named = re.findall(r"`proteoscope\.kernels\.counts\.(\w+)`", launcher(name).__doc__ or "")
    assert named
    assert set(named) <= set(counts.__all__)


@every_source
def test_every_cuda_kernel_has_few_arguments(file):
    assert {kernel: n for kernel, given in KERNEL.findall(source(file)) if (n := given.count(",") + 1) > MAXIMUM_ARGUMENTS} == {}


@every_source
def test_every_cuda_function_is_short(file):
    long, begun = {}, None
    for number, line in enumerate(source(file).splitlines(), 1):
        if begun is None and re.match(r"(__device__|extern \"C\" __global__|__global__|static|template).*", line):
            begun = number
        if begun is not None and re.match(r"\}", line):
            if number - begun >= MAXIMUM_LINES:
                long[begun] = number - begun + 1
            begun = None
        elif (begun is not None and line.endswith(";") and not line.startswith(" ")) or (line.endswith("}") and begun == number):
            begun = None
    assert long == {}


def test_launchers_do_not_import_cupy():
    importing = []
    for entry in files("proteoscope.kernels.cuda").iterdir():
        if entry.name.endswith(".py"):
            for node in ast.walk(ast.parse(entry.read_text(encoding="utf-8"))):
                modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                importing += [entry.name for module in modules if module.split(".")[0] == "cupy"]
    assert set(importing) == {"compiled.py", "probe.py"}


def test_names_in_kernel_docstrings_exist():
    missing = []
    for folder in ("proteoscope.kernels", "proteoscope.kernels.cpu", "proteoscope.kernels.cuda"):
        for entry in files(folder).iterdir():
            if entry.name.endswith((".py", ".cu", ".cuh")):
                for path, attribute in re.findall(
                    r"`(proteoscope\.kernels\.\w+(?:\.\w+)?)(?:\.(\w+))?`", entry.read_text(encoding="utf-8")
                ):
                    try:
                        module = importlib.import_module(path)
                    except ImportError:  # the last part is not a module
                        parent, attribute = path.rsplit(".", 1)
                        module = importlib.import_module(parent)
                    if attribute and not hasattr(module, attribute):
                        missing.append(f"{folder}/{entry.name}: {path} {attribute}")
    assert missing == []


@pytest.mark.parametrize(("name", "struct", "layout"), STRUCTS, ids=lambda value: value.lower())
def test_struct_fields_have_the_same_order_in_python_and_cuda(name, struct, layout):
    value = getattr(launcher(name), layout)
    names = list(value) if isinstance(value, tuple) else list(value.names)
    assert fields(name, struct) == names


@pytest.mark.parametrize(("name", "ours", "theirs"), [(name, *pair) for name, pairs in SIZES.items() for pair in pairs.items()])
def test_size_constants_are_equal_in_python_and_cuda(name, ours, theirs):
    assert getattr(launcher(name), ours) == constants(name)[theirs]
