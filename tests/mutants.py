"""Change the program in small ways and count the changes that no test notices.

    python -m tests.mutants engine/formats kernels/cuda --number 10 --seed 1

draws that number of mutants of each folder, of all kinds alike, and applies one after the other to a copy of the repository. It runs the
tests that name the mutated module, then those of the test folder of the same place, until one fails. A failure counts if the same test
passes without the mutant. ``--kind except`` draws handlers only. Mutants of `gui` need a display, as its tests do. CUDA sources run through
`tests/shim`, in the tests of kernels.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
_PAIRS = [
    "Lt",
    "LtE",
    "Gt",
    "GtE",
    "Eq",
    "NotEq",
    "Is",
    "IsNot",
    "In",
    "NotIn",
    "And",
    "Or",
    "Add",
    "Sub",
    "Div",
    "Mult",
    "FloorDiv",
    "Mod",
]
_OPERATORS = {getattr(ast, old): getattr(ast, _PAIRS[i ^ 1]) for i, old in enumerate(_PAIRS)}
_CUDA = (
    ("comparison", r" (<|<=|>|>=|==|!=) ", {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    ("operator", r" (\+|-|\*|&&|\|\|) ", {"+": "-", "-": "+", "*": "+", "&&": "||", "||": "&&"}),
    ("constant", r"\bk[A-Z]\w* = (\d+)(?=[,;])", None),
)
_OUTCOMES = ("killed", "survived", "time limit", "no tests", "unusable")


class Mutant(NamedTuple):
    """A changed source: its path, line and kind of change; the bytes from `start` to `stop` become `new`."""

    path: str
    line: int
    kind: str
    start: int
    stop: int
    new: str


def python_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield all mutants of a Python module: of comparisons, operators, constants, conditions, returned values and handlers."""
    lines = source.encode().splitlines(keepends=True)

    def mutant(kind: str, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, new: str) -> Mutant:
        start, stop = (sum(map(len, lines[: line - 1])) for line in (first.lineno, last.end_lineno or 0))
        return Mutant(path, first.lineno, kind, start + first.col_offset, stop + (last.end_col_offset or 0), new)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            yield mutant("except", node.body[0], node.body[-1], "raise")
        elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
            yield mutant("return", node.value, node.value, "None")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield mutant("constant", node, node, repr(not node.value if isinstance(node.value, bool) else node.value + 1))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
            changed = ast.Compare(node.left, [_OPERATORS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
            yield mutant("comparison", node, node, f"({ast.unparse(changed)})")
        elif isinstance(node, ast.BoolOp):
            yield mutant("condition", node, node, f"({ast.unparse(ast.BoolOp(_OPERATORS[type(node.op)](), node.values))})")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            yield mutant("operator", node, node, f"({ast.unparse(ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right))})")


def cuda_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield mutants of a CUDA source: of comparisons, operators and named constants in lines of code."""
    start = 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        code = "" if line.lstrip().startswith(("#", "template")) else line.partition("//")[0]
        for kind, pattern, changed in _CUDA:
            for match in re.finditer(pattern, code):
                first, last = (start + len(line[:end].encode()) for end in match.span(1))
                yield Mutant(path, number, kind, first, last, changed[match[1]] if changed else str(int(match[1]) + 1))
        start += len(line.encode())


def draw(folder: str, number: int, seed: int, kinds: list[str]) -> list[Mutant]:
    """Draw mutants of a folder, or of a file, of all kinds alike; the same ones for the same sources and seed."""
    place, by_kind = REPOSITORY / folder, defaultdict[str, list[Mutant]](list)
    for file in sorted(place.rglob("*") if place.is_dir() else [place]):
        if file.suffix in (".py", ".cu", ".cuh"):
            mutants = python_mutants if file.suffix == ".py" else cuda_mutants
            for mutant in mutants(file.relative_to(REPOSITORY).as_posix(), file.read_text(encoding="utf-8")):
                by_kind[mutant.kind].append(mutant)
    generator = random.Random(f"{seed} {folder}")
    shuffled = [generator.sample(by_kind[kind], len(by_kind[kind])) for kind in sorted(kinds or by_kind)]
    return [mutant for some in zip_longest(*shuffled) for mutant in some if mutant][:number]


def tests_of(path: str) -> list[list[str]]:
    """Return the test files that name a module, and the test folder of its place."""
    module, folder = Path(path), Path("tests", *Path(path).parts[: 1 if path.startswith("kernels/") else 2])
    package = re.escape(".".join(module.parts[:-1]))
    imported, word = re.compile(rf"\b{package}(\.| import .*\b){module.stem}\b"), re.compile(rf"\b{module.stem}\b", re.IGNORECASE)
    named = []
    for file in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(REPOSITORY).as_posix()
        is_near = name.startswith(f"{folder.as_posix()}/")
        if (is_near and word.search(text)) or (imported.search(text) and not name.startswith(("tests/gpu", "tests/peers", "tests/gui"))):
            named.append((f"test_{module.stem}" not in name, not is_near, name))
    groups = [[name for *_, name in sorted(named)], [folder.as_posix()] if (REPOSITORY / folder).is_dir() else []]
    return [group for group in groups if group]


def run(tests: list[str], copy: Path, limit: int, kernel_cache: str | None = None) -> tuple[int, str]:
    """Run tests in the copy until one fails; return pytest's exit code, or 124 after the time limit, and the test that failed."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(copy), os.environ.get("PYTHONPATH")))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if kernel_cache is not None:  # Numba does not compile callers again when what they call changes
        environment["NUMBA_CACHE_DIR"] = kernel_cache
    options = ["-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    command = ["timeout", "-k", "5", str(limit), sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else ""


def outcome(mutant: Mutant, copy: Path, limit: int) -> str:
    """Return the outcome of a mutant, and the test that noticed it."""
    file, groups, code, failed = copy / mutant.path, tests_of(mutant.path), 0, ""
    sound = file.read_bytes()
    file.write_bytes(sound[: mutant.start] + mutant.new.encode() + sound[mutant.stop :])
    with tempfile.TemporaryDirectory() as folder:
        for tests in groups:
            if code == 0:
                code, failed = run(tests, copy, limit, folder if "kernels/cpu/" in mutant.path else None)
    file.write_bytes(sound)
    if code == 0 or code in (124, 137):
        return "no tests" if not groups else "survived" if code == 0 else "time limit"
    again, _ = run([failed] if failed else ["--collect-only", *groups[0]], copy, limit)
    return f"killed by {failed or 'an error of pytest'}" if again == 0 else f"unusable: {failed} fails without it"


def main() -> None:
    """Draw mutants, run their tests, and print each outcome and a table by folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders or files that ship, as engine/formats")
    parser.add_argument("--number", type=int, default=10, help="of mutants of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", default=[], help="comparison, condition, constant, except, operator or return")
    parser.add_argument("--limit", type=int, default=300, help="seconds for the tests that name the module, and for those of its folder")
    parser.add_argument("--processes", type=int, default=1, help="mutants that are tested at once, each in its own copy")
    options = parser.parse_args()
    counts, copies = {folder: Counter[str]() for folder in options.folders}, queue.SimpleQueue[Path]()

    def test(folder: str, mutant: Mutant) -> None:
        copy = copies.get()
        result = outcome(mutant, copy, options.limit)
        copies.put(copy)
        counts[folder][re.sub(r" by .*|: .*", "", result)] += 1
        print(f"{mutant.path}:{mutant.line} {mutant.kind} -> {mutant.new!r:.80}: {result}", flush=True)

    with ExitStack() as stack, ThreadPoolExecutor(options.processes) as threads:
        for _ in range(options.processes):
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "copy"
            shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis"))
            copies.put(copy)
        drawn = [[(folder, mutant) for mutant in draw(folder, options.number, options.seed, options.kind)] for folder in options.folders]
        in_turn = [pair for pairs in zip_longest(*drawn) for pair in pairs if pair]
        list(threads.map(lambda pair: test(*pair), in_turn))
    rows = [f"| {folder} | {' | '.join(str(count[column]) for column in _OUTCOMES)} |" for folder, count in counts.items()]
    print(f"\n| folder | {' | '.join(_OUTCOMES)} |", f"|---|{'---|' * len(_OUTCOMES)}", *rows, sep="\n")


if __name__ == "__main__":
    main()
