"""kernels/cuda does what kernels/cpu does, under the same names; a launcher and its `.cu` file agree on sizes and the order of fields."""

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

from kernels.cuda.modules import source

TESTS = Path(__file__).resolve().parents[1]
NAMES = sorted(entry.name.removesuffix(".cu") for entry in files("kernels.cuda").iterdir() if entry.name.endswith(".cu"))
every_kernel_file = pytest.mark.parametrize("name", NAMES)

COUNTERPARTS = {("alignment", "score"): "score_lanes"}
"""What has another name on the processor, because it takes another kind of work: all pairs there, as many as a vector has lanes here."""

STRUCTS = [
    ("scoring", "Settings", "_SETTINGS"),
    ("scoring", "Inputs", "_INPUTS"),
    ("fragment_index", "Masses", "_MASSES"),
    ("fragment_index", "Chunk", "_CHUNK"),
    ("digestion", "Limits", "_LIMITS"),
]

SIZES = {
    "scoring": {
        "_MOST_SLOTS": "kMostSlots", "_MOST_SERIES": "kMostSeries", "_MOST_ISOTOPE_ERRORS": "kMostIsotopeErrors",
        "_MOST_FRAGMENT_CHARGE": "kMostFragmentCharge", "_NONE": "kNone", "_CORRELATION_HALF_WINDOW": "kCorrelationHalfWindow",
        "_TILE": "kTile", "_DENSE_WARPS": "kDenseWarps", "_MOST_DENSE_KEPT": "kMostDenseKept", "_MOST_DENSE_WINDOWS": "kMostDenseWindows",
        "_FINE_BINS": "kFineBins", "_DOT_BITS": "kDotBits", "_COUNT_BITS": "kCountBits",
    },
    "fragment_index": {
        "_MOST_SERIES": "kMostSeries", "_MOST_WINDOWS": "kMostWindows", "_FOUND": "kFound", "_LETTERS": "kLetters", "_ENDS": "kEnds",
        "_NONE": "kNone", "_PROTON_MASS": "kProtonMass",
    },
    "alignment": {"_TABLE_ROWS": "kTableRows"},
}  # fmt: skip


def launcher(name: str) -> ModuleType:
    return importlib.import_module(f"kernels.cuda.{name}")


def processor(name: str) -> ModuleType:
    return importlib.import_module(f"kernels.cpu.{name}")


def parameters(function: object) -> list[inspect.Parameter]:
    """Of a function, compiled or not; a method's own object left out."""
    found = inspect.signature(getattr(function, "py_func", function)).parameters.values()  # type: ignore[arg-type]
    return [one for one in found if one.name != "self"]


def offered(module: ModuleType) -> dict[str, object]:
    """Public functions of a launcher and public methods of its classes."""
    found = {}
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            found |= {one: method for one, method in vars(value).items() if inspect.isfunction(method) and not one.startswith("_")}
        elif inspect.isfunction(value):
            found[name] = value
    return found


def constants(name: str) -> dict[str, float]:
    """The numbers of a `.cu` file that are written out, or shifted."""
    found = {}
    for statement in re.findall(r"constexpr [\w ]+? (k\w+ = [^;]+);", source(f"{name}.cu")):
        for one, value in re.findall(r"(k\w+) = ([^,]+)", statement):
            if re.fullmatch(r"[\d.]+( << \d+)?", value.strip()):
                number, shift = (*value.split("<<"), "0")[:2]
                found[one] = float(number) * 2 ** int(shift)
    return found


def fields(name: str, struct: str) -> list[str]:
    """Members of a struct of a `.cu` file, in order."""
    body = re.search(rf"struct {struct} \{{(.*?)\n\}};", source(f"{name}.cu"), re.DOTALL)
    assert body
    declarations = re.sub(r"//[^\n]*", "", body[1]).split(";")
    return [member for one in declarations for member in re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", one.strip())]


TWINS = ["digestion", "fragment_index", "scoring"]
every_twin = pytest.mark.parametrize("name", TWINS)


def members(module: ModuleType) -> dict[str, object]:
    """Public functions of a module, its public classes' constructors and public methods, and its other public names."""
    found: dict[str, object] = {}
    for name in module.__all__:
        value = getattr(module, name)
        found[name] = value
        if inspect.isclass(value):
            methods = {one: method for one, method in vars(value).items() if inspect.isfunction(method)}
            found |= {f"{name}.{one}": method for one, method in methods.items() if one == "__init__" or not one.startswith("_")}
    return found


def signature(function: Any) -> tuple[list[tuple[Any, ...]], str]:
    """Names, kinds, defaults and annotations of the parameters, and what is returned; each side's device counts as the same."""
    found = inspect.signature(function)
    kinds = {"Processor": "device", "Card": "device"}
    return [
        (one.name, one.kind, one.default, kinds.get(one.annotation, one.annotation)) for one in found.parameters.values()
    ], found.return_annotation


@every_twin
def test_twins_offer_the_same_with_the_same_signatures(name):
    mine, theirs = members(launcher(name)), members(processor(name))
    assert sorted(launcher(name).__all__) == sorted(processor(name).__all__)
    assert list(mine) == list(theirs)
    for one, member in mine.items():
        if inspect.isfunction(member):
            assert signature(member) == signature(theirs[one]), one
    assert any(inspect.isfunction(member) for member in mine.values())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TWINS])
def test_every_function_of_a_launcher_is_the_processors(name):
    mine, theirs = offered(launcher(name)), processor(name)
    assert mine
    for one, function in mine.items():
        counterpart = COUNTERPARTS.get((name, one), one)
        assert counterpart in theirs.__all__, f"kernels.cpu.{name} offers no {counterpart}"
        if counterpart != one:
            continue
        own = [parameter.name for parameter in parameters(function) if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
        left = iter(parameter.name for parameter in parameters(getattr(theirs, one)))
        assert all(parameter in left for parameter in own), f"{one}: other parameters, or in another order"
        if one in launcher(name).__all__:
            assert own == [parameter.name for parameter in parameters(getattr(theirs, one))]


@every_kernel_file
def test_every_launcher_states_its_cost_and_what_it_is_like(name):
    text = " ".join((launcher(name).__doc__ or "").split())
    assert f"kernels.cpu.{name}" in text
    assert "ATGPU analysis" in text
    for part in ("rounds", "words in", "out:", "operations", "memory blocks", "shared memory"):
        assert part in text, part


@every_kernel_file
def test_every_kernel_is_launched_and_runs_in_the_tests_on_a_card(name):
    kernels = re.findall(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(', source(f"{name}.cu"))
    text = (files("kernels.cuda") / f"{name}.py").read_text(encoding="utf-8")
    assert kernels
    assert [kernel for kernel in kernels if f'"{kernel}"' not in text] == []
    assert (TESTS / "gpu" / f"test_{name}_on_gpu.py").exists()


def test_launchers_know_cards_and_not_cupy():
    importing = []
    for entry in files("kernels.cuda").iterdir():
        if entry.name.endswith(".py"):
            for node in ast.walk(ast.parse(entry.read_text(encoding="utf-8"))):
                modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                importing += [entry.name for one in modules if one.split(".")[0] == "cupy"]
    assert set(importing) == {"modules.py", "probe.py"}


def test_what_docstrings_refer_to_is_there():
    missing = []
    for folder in ("kernels", "kernels.cpu", "kernels.cuda"):
        for entry in files(folder).iterdir():
            if entry.name.endswith((".py", ".cu")):
                for path, attribute in re.findall(r"`(kernels\.\w+(?:\.\w+)?)(?:\.(\w+))?`", entry.read_text(encoding="utf-8")):
                    try:
                        found = importlib.import_module(path)
                    except ImportError:  # the last part is no module
                        parent, attribute = path.rsplit(".", 1)
                        found = importlib.import_module(parent)
                    if attribute and not hasattr(found, attribute):
                        missing.append(f"{folder}/{entry.name}: {path} {attribute}")
    assert missing == []


@pytest.mark.parametrize(("name", "struct", "layout"), STRUCTS, ids=lambda value: value.lower())
def test_both_sides_have_the_fields_of_a_struct_in_one_order(name, struct, layout):
    value = getattr(launcher(name), layout)
    names = list(value) if isinstance(value, tuple) else list(value.names)
    assert fields(name, struct) == names


@pytest.mark.parametrize(("name", "ours", "theirs"), [(name, *pair) for name, pairs in SIZES.items() for pair in pairs.items()])
def test_both_sides_have_the_same_sizes(name, ours, theirs):
    assert getattr(launcher(name), ours) == constants(name)[theirs]
