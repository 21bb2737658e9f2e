"""Speed of the alignment with a bounded number of gaps on a GPU, for each plan, and accuracy of predicting the fastest plan.

    python -m benchmarks.reads_gpu [--parts table plans laid] [--pairs 204800] [--shapes 40] [--repeats 3] [--processor-pairs 20480]

`table`: scores and alignments of pairs of a text of 250 bases and a pattern of 200 bases, with two gaps: seconds of the class on the GPU,
with all transfers of the pairs (`with_opening_s`: also of the sequences), of the engine, and of all CPU threads for some of the pairs in
the same run. GCUPS count the cells of all layers. `kernels_ms` is the time of each kernel by the clock of the device, measured separately.
`laid`: for the same pairs, the kernel with every number of lanes and columns: registers and bytes of local memory (spills) of a thread, the
number of blocks that therefore fit on a multiprocessor, and `predicted_ms`. `plans`: for many shapes of tasks, the seconds of each plan,
the selected plan, and how much longer it takes than the fastest; at the end, the number of shapes for which it is within 5 %. Times are the
minimum of the repeats, after one that compiles (some seconds for each variant). `same` compares the rows of some pairs with those of the
CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit, usable_gpus
from benchmarks.reads import MATRIX, inputs
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.read_alignment.scoring import align_pairs, build_workload
from proteoscope.kernels.cpu.gapsmis import ReadSearch as OnProcessor
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.gapsmis import ReadSearch
from proteoscope.kernels.cuda.gapsmis_plan import MANY_TEXTS, ONE_TEXT, GapsMisShape, Task, registers, seconds, shapes
from proteoscope.kernels.cuda.modules import CudaGpu, open_gpu
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, Alignments, GapRules, Sequences
from tests.shim.tuning import tuned

_SAME_PAIRS = 2000
_Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def minimum_seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the minimum seconds of some runs, after one that is not counted."""
    work()
    return min(seconds_of(work) for _ in range(repeats))


def seconds_of(work: Callable[[], Any]) -> float:
    """Return wall seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def aligned(search: Any, pairs: _Pairs, rules: GapRules, *, traces: bool, first: int = 0, last: int | None = None) -> Alignments:
    out = Alignments.none(len(pairs[0]), rules.maximum_gaps)
    for _ in search.align(*pairs, out, first, last, traces=traces):
        pass
    return out


def is_same(alignments: Alignments, texts: Sequences, patterns: Sequences, pairs: _Pairs, rules: GapRules, *, traces: bool) -> bool:
    """Return True if the first pairs have the same alignments."""
    n = min(_SAME_PAIRS, len(pairs[0]))
    expected = aligned(OnProcessor(Processor(available_threads()), texts, patterns, rules), pairs, rules, traces=traces, last=n)
    return all(np.array_equal(column[:n], other[:n]) for column, other in zip(alignments, expected, strict=True))


def table(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Measure scores and alignments of the standard pairs."""
    n = options.pairs
    texts, patterns = inputs(n, 250, 200)
    rules, every = GapRules(MATRIX, 5, 2, 2), np.arange(n)
    pairs, cells, device = (every, every), 3.0 * n * 250 * 200, open_gpu(0)
    threads = available_threads()
    some = min(n, options.processor_pairs)
    for traces in (False, True):
        size = about | {"part": "table", "what": "alignments" if traces else "scores", "pairs": n, "text": 250, "pattern": 200, "gaps": 2}
        opening, align, both = list[float](), list[float](), list[float]()
        alignments = Alignments.none(0, 2)
        out = Alignments.none(n, 2)
        for _ in range(options.repeats + 1):
            began = time.perf_counter()
            search = ReadSearch(device, texts, patterns, rules)
            opened = time.perf_counter()
            for _ in search.align(*pairs, out, traces=traces):
                pass
            done = time.perf_counter()
            opening.append(opened - began)
            align.append(done - opened)
            both.append(done - began)
            alignments = out
        task = search._task(n, 250, 200, traces=traces)
        predicted = seconds(search._best_shape(task), task, search._properties)
        timed = TimedGpu(0)
        aligned(ReadSearch(timed, texts, patterns, rules), pairs, rules, traces=traces)
        timed.kernel_seconds()
        aligned(ReadSearch(timed, texts, patterns, rules), pairs, rules, traces=traces)
        kernels = {name: round(1e3 * value, 3) for name, value in timed.kernel_seconds().items()}
        aligned(ReadSearch(timed, texts, patterns, rules), pairs, rules, traces=traces)
        busy_s, _ = timed.busy_seconds()  # kernels of several streams overlap
        began = time.perf_counter()
        on_processor = OnProcessor(Processor(threads), texts, patterns, rules)
        for _ in range(2):  # the first one compiles
            began = time.perf_counter()
            aligned(on_processor, pairs, rules, traces=traces, last=some)
            processor_s = time.perf_counter() - began
        with Executor(Resources(threads, [device], False)).session(build_workload(texts, patterns, rules)) as session:
            engine_s = minimum_seconds(partial(align_pairs, session, every, every, traces=traces), options.repeats)
        emit(
            size,
            shape=str(search._best_shape(task)),
            opening_s=round(min(opening[1:]), 5),
            align_s=round(min(align[1:]), 5),
            with_opening_s=round(min(both[1:]), 5),
            first_s=round(both[0], 3),
            engine_s=round(engine_s, 5),
            kernels_ms=kernels,
            gcups_with_opening=round(cells / min(both[1:]) / 1e9),
            gcups_align=round(cells / min(align[1:]) / 1e9),
            gcups_kernels=round(cells / busy_s / 1e9),
            predicted_ms=round(1e3 * predicted, 3),
            processor_threads=threads,
            processor_gcups=round(cells * some / n / processor_s / 1e9, 2),
            same=is_same(alignments, texts, patterns, pairs, rules, traces=traces),
        )
        profile(options, about, texts, patterns, rules, pairs, traces)


def profile(
    options: argparse.Namespace, about: dict[str, Any], texts: Sequences, patterns: Sequences, rules: GapRules, pairs: _Pairs, traces: bool
) -> None:
    """Print a profile of the host's time."""
    import cProfile
    import io
    import pstats

    watched = cProfile.Profile()
    out = Alignments.none(len(pairs[0]), 2)
    watched.enable()
    search = ReadSearch(open_gpu(0), texts, patterns, rules)
    for _ in search.align(*pairs, out, traces=traces):
        pass
    watched.disable()
    text = io.StringIO()
    pstats.Stats(watched, stream=text).sort_stats("tottime").print_stats(12)
    lines = [line.strip() for line in text.getvalue().splitlines() if line.strip()][6:]
    emit(about, part="host", traces=traces, lines=lines[:12])


def measure_layouts(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Measure every number of lanes and columns."""
    n = options.pairs
    texts, patterns = inputs(n, 250, 200)
    rules, pairs = GapRules(MATRIX, 5, 2, 2), (np.arange(n), np.arange(n))
    for traces in (False, True):
        plain = ReadSearch(open_gpu(0), texts, patterns, rules)
        task = plain._task(n, 250, 200, traces=traces, patterns_of_text=4)
        every = [shape for shape in shapes(task, plain._properties) if shape.width >= 64 and shape.strips(250) * shape.width <= 400]
        for shape in every:
            if shape.plan == ONE_TEXT and (traces or shape.lanes > 16):
                continue
            timed = TimedGpu(0)
            search = tuned(ReadSearch, shape=shape)(timed, texts, patterns, rules)
            took = []
            for _ in range(options.repeats + 1):
                timed.kernel_seconds()
                aligned(search, pairs, rules, traces=traces)
                took.append(timed.kernel_seconds())
            ms = {name: round(1e3 * min(times[name] for times in took[1:]), 3) for name in took[0]}
            single_task = replace(task, patterns_of_text=1.0)
            emit(
                about,
                part="laid",
                traces=traces,
                plan=shape.plan,
                lanes=shape.lanes,
                columns=shape.columns,
                kernels_ms=ms,
                gcups=round(3.0 * n * 250 * 200 / (ms["align_reads"] / 1e3) / 1e9),
                predicted_ms=round(1e3 * seconds(shape, single_task, search._properties), 3),
                registers_predicted=registers(shape.columns, 2, PREFIX, traces=traces),
                **attributes(timed, shape),
            )


def attributes(device: CudaGpu, shape: GapsMisShape) -> dict[str, Any]:
    """Return attributes of the kernel that was compiled last for a shape."""
    for (_, _, kernel), (function, _) in reversed(device._functions.items()):
        if kernel == "align_reads":
            shared, local, used = (device.function_attribute(function, number) for number in (1, 3, 4))
            blocks = 65_536 // (-(-used // 8) * 8 * shape.threads)
            return {
                "registers": used,
                "local_bytes": local,
                "static_shared": shared,
                "blocks": blocks,
            }
    return {}


def tasks(n: int, seed: int = 40) -> list[dict[str, Any]]:
    """Return n random tasks: texts, patterns for each of them, lengths, gaps, mode, number of symbols, and whether to trace."""
    random, alignments = np.random.default_rng(seed), []
    for k in range(n):
        text = int(random.choice([60, 100, 150, 250, 400, 700]))
        texts = int(random.choice([1, 16, 128, 2048, 20_000]))
        patterns = int(random.choice([50, 100, 400]))
        alignments.append(
            {
                "texts": texts,
                "patterns": max(1, min(patterns, 400_000 // texts)),
                "text": text,
                "pattern": int(text * random.choice([0.4, 0.8])),
                "gaps": int(random.choice([1, 2, 2, 3])),
                "mode": int(random.choice([PREFIX, PREFIX, WITHIN, LOCAL])),
                "letters": int(random.choice([4, 4, 5, 20])),
                "traces": bool(k % 2),
            }
        )
    return alignments


def plans(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Measure each plan of each task."""
    good = 0
    every = tasks(options.shapes)
    for number, case in enumerate(every):
        columns, pairs, rules = made(case, number)
        times: dict[str, Any] = {}
        one_task(options, columns, pairs, rules, case, times)
        chosen, fastest = times.pop("chosen"), min(times.values())
        good += times[chosen] <= 1.05 * fastest
        emit(
            about,
            part="plans",
            number=number,
            pairs=len(pairs[0]),
            **case,
            ms={name: round(1e3 * value, 3) for name, value in times.items()},
            chosen=chosen,
            over_fastest=round(times[chosen] / fastest - 1, 3),
        )
    emit(about, part="plans", shapes=len(every), within_5_percent=good)


def made(case: dict[str, Any], number: int) -> tuple[tuple[Sequences, Sequences], _Pairs, GapRules]:
    """Return texts and patterns of a task, its pairs, and how they are aligned."""
    random, n_symbols = np.random.default_rng(number), case["letters"]
    texts = random.integers(0, n_symbols, (case["texts"], case["text"])).astype(np.int8)
    patterns = np.tile(texts, (-(-case["patterns"] // len(texts)), 1))[: case["patterns"], : case["pattern"]].copy()
    wrong = random.random(patterns.shape) < 0.02
    patterns[wrong] = random.integers(0, n_symbols, wrong.sum())
    rules = GapRules(np.where(np.eye(n_symbols, dtype=bool), 2, -3).astype(np.int32), 5, 2, case["gaps"], case["mode"])
    pairs = np.tile(np.arange(case["texts"]), case["patterns"]), np.repeat(np.arange(case["patterns"]), case["texts"])
    columns = (
        Sequences(texts.ravel(), np.arange(len(texts) + 1) * texts.shape[1]),
        Sequences(patterns.ravel(), np.arange(len(patterns) + 1) * patterns.shape[1]),
    )
    return columns, pairs, rules


def one_task(
    options: argparse.Namespace,
    columns: tuple[Sequences, Sequences],
    pairs: _Pairs,
    rules: GapRules,
    case: dict[str, Any],
    times: dict[str, Any],
    device: CudaGpu | None = None,
) -> None:
    """Write the seconds of each plan to `times`, and the name of the selected one."""
    device = device or open_gpu(0)
    plain, n, traces = ReadSearch(device, *columns, rules), len(pairs[0]), case["traces"]
    per_text = n / len(np.unique(pairs[0]))
    task = plain._task(n, case["text"], case["pattern"], traces=traces, patterns_of_text=per_text)

    def of_plan(task: Task, plan: str) -> GapsMisShape | None:
        alignments = [shape for shape in shapes(task, plain._properties) if shape.plan == plan]
        return min(alignments, key=lambda shape: seconds(shape, task, plain._properties)) if alignments else None

    on_host = traces and plain._is_traced_on_host(task)
    scores = replace(task, traces=False)
    searches = dict[str, Any]()
    times["chosen"] = f"{plain._best_shape(scores if on_host else task).plan}{', host' if on_host else ', gpu' if traces else ''}"
    for plan in (MANY_TEXTS, ONE_TEXT):
        for host in (False, True) if traces else (False,):
            shape = of_plan(scores if host else task, plan)
            if shape is None or (host and n * case["text"] * case["pattern"] * (rules.maximum_gaps + 1) > options.host_cells):
                continue  # the host would take seconds
            search = tuned(ReadSearch, shape=shape, traces_on_host=host if traces else None)(device, *columns, rules)
            searches[f"{plan}{', host' if host else ', gpu' if traces else ''}"] = partial(aligned, search, pairs, rules, traces=traces)
    for search in searches.values():
        search()
    # The plans take turns, since disturbances of a machine last for some runs.
    turns = [{name: seconds_of(search) for name, search in searches.items()} for _ in range(options.repeats)]
    times |= {name: min(turn[name] for turn in turns) for name in searches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["table", "laid", "plans"], choices=["table", "laid", "plans"])
    parser.add_argument("--pairs", type=int, default=204_800)
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processor-pairs", type=int, default=20_480)
    parser.add_argument("--host-cells", type=float, default=2e9, help="tasks of more are not traced on the host")
    options = parser.parse_args()
    usable = usable_gpus(needed=True)
    about = {"date": date.today().isoformat(), "card": usable[0].description}
    for part in options.parts:
        {"table": table, "laid": measure_layouts, "plans": plans}[part](options, about)


if __name__ == "__main__":
    main()
