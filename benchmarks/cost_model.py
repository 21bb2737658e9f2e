"""Accuracy of the cost model on a GPU: one JSON line for each figure, and a table at the end.

    python -m benchmarks.cost_model --part kernels [--device 0] [--threads N] [--scratch DIR]
    python -m benchmarks.cost_model --part plans [--shapes 40]
    python -m benchmarks.cost_model --part commands

kernels
    The GPU is calibrated (in `calibration_s` seconds, after compiling in `compiled_s`). Then follow samples of every kind of workload, in
    five sizes over three decades that differ from those of the calibration: predicted and measured seconds of a whole workload, with all
    transfers and the work of the host, the minimum of twelve turns (`turns_s` has all). Each turn runs all samples of all kinds, so that
    the caches contain no more of a workload than in a single run. `gpu_error` is the error of kernels and transfers only. The predicted and
    measured fractions of transfers, by the GPU's clock, and the problems of the thesis follow.
plans
    Forty shapes of tasks of the gapped alignment that were not used for fitting: seconds of each plan, and how much slower the selected
    plan is than the fastest.
commands
    Whole commands on synthetic files, each in a separate process. The smaller inputs of each command are run first, to measure the speed of
    the host; the larger inputs are then predicted and run.

The samples are generated like those of the calibration, but with other random numbers; no constant is fitted to them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.figures import emit
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress

REPOSITORY = Path(__file__).resolve().parents[1]
SIZES = tuple(10.0**power for power in (-3.0, -2.25, -1.5, -0.75, 0.0))
_SEED = 77
_TURNS, _PROBLEM_TURNS = 12, 3


def error(predicted: float, measured: float) -> float:
    """Return the absolute relative error."""
    return abs(predicted - measured) / measured


def table(title: str, rows: list[tuple[str, list[float]]]) -> None:
    """Print median and worst of relative errors."""
    print(f"\n{title:<40} {'median':>8} {'worst':>8}")
    for name, of_name in [*rows, ("all", [error for _, errors in rows for error in errors])]:
        if of_name:
            print(f"{name:<40} {100 * median(of_name):7.1f}% {100 * max(of_name):7.1f}%")
    sys.stdout.flush()


def kernels(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Calibrate, predict and measure kernels."""
    from proteoscope.engine.execution.cost.calibration import calibrate_gpu
    from proteoscope.engine.execution.cost.kind_samples import measure_workload, minimum_run, raise_clock, run_sample, runs_in_turn
    from proteoscope.engine.execution.cost.prediction import predict_workload
    from proteoscope.engine.execution.kinds import workload_type
    from proteoscope.engine.execution.workload import PredictableWorkloadType, Workload
    from proteoscope.kernels.cuda.modules import open_gpu
    from proteoscope.kernels.cuda.precompile import compile_usual_forms
    from proteoscope.kernels.cuda.timing import TimedGpu

    began = time.perf_counter()
    failures = compile_usual_forms(open_gpu(options.device), options.threads, lambda n: None)
    compiled = time.perf_counter() - began
    if failures:
        emit(about, part="kernels", failures=failures)
    case = [name for name in KINDS if not options.kinds or name in options.kinds]
    progress = Progress(lambda event: emit(about, part="kernels", message=str(event)) if "not measured" in str(event) else None)
    calibrate_gpu(options.device, "", case, Progress())  # compiles the remaining kernels
    began = time.perf_counter()
    parameters = calibrate_gpu(options.device, about["card"], case, progress)
    emit(
        about,
        part="calibration",
        calibration_s=round(time.perf_counter() - began, 2),
        compiled_s=round(compiled, 1),
        parameters=json.loads(parameters.model_dump_json()),
    )
    timed, rows, shares, on_gpu = TimedGpu(options.device), list[tuple[str, list[float]]](), list[float](), list[float]()
    samples = {}
    for name in parameters.kinds:
        kind = workload_type(Workload(name, {}, {}))
        assert isinstance(kind, PredictableWorkloadType)
        samples[name] = [kind.samples(size, _SEED) for size in SIZES]
    # Samples take turns, and the minimum is used: predictions are for an idle machine, and disturbances last for some runs.
    turns: dict[str, list[list[Any]]] = {name: [] for name in samples}
    for every in samples.values():
        for sample in every:
            run_sample(sample, timed)  # which may compile
    for _ in range(_TURNS):
        for name, every in samples.items():
            raise_clock(every[0], timed)
            turns[name].append([runs_in_turn(sample, timed) for sample in every])
    for name, every in samples.items():
        errors = list[float]()
        for size, sample, *of_turns in zip(SIZES, every, *turns[name], strict=True):
            counted = measure_workload(sample.workload, sample.states, parameters.gpu)
            runs = [run for turn in of_turns for run in turn]
            began = time.perf_counter()
            predicted = predict_workload(parameters, name, counted)
            predicting = time.perf_counter() - began
            chosen = minimum_run(runs, is_processor=False)
            on_gpu.append(error(predicted.kernel + predicted.transfer, chosen.kernel + chosen.transfer))
            errors.append(error(predicted.seconds, chosen.seconds))
            apart = 100 * (predicted.transfer / predicted.seconds - chosen.transfer / chosen.seconds)
            shares.append(abs(apart))
            emit(
                about,
                part="kernels",
                kind=name,
                scale=round(size, 5),
                operations=counted.operations,
                items=counted.items,
                bytes_in=counted.bytes_in,
                bytes_out=counted.bytes_out,
                predicted_s=round(predicted.seconds, 6),
                measured_s=round(chosen.seconds, 6),
                error=round(errors[-1], 3),
                predicted_kernel_s=round(predicted.kernel, 6),
                kernel_s=round(chosen.kernel, 6),
                predicted_transfer_s=round(predicted.transfer, 6),
                transfer_s=round(chosen.transfer, 6),
                predicted_host_s=round(predicted.host, 6),
                host_s=round(chosen.host, 6),
                share_points=round(apart, 2),
                predicting_ms=round(1e3 * predicting, 2),
                gpu_error=round(on_gpu[-1], 3),
                turns_s=[round(min(run.seconds for run in turn), 6) for turn in of_turns],
            )
        rows.append((name, errors))
    rows += problems(options, about, parameters, shares)
    table("predicted against measured seconds", rows)
    print(f"kernels and transfers without the host: median {100 * median(on_gpu):.1f} %, worst {100 * max(on_gpu):.1f} %")
    print(f"share of transfers: median {median(shares):.1f}, worst {max(shares):.1f} points", flush=True)


def problems(options: argparse.Namespace, about: dict[str, Any], parameters: Any, shares: list[float]) -> list[tuple[str, list[float]]]:
    """Measure the problems of the thesis: seconds, and the shares of transfers."""
    from proteoscope.engine.execution.cost.analyses import measured_problem, predicted_problem
    from proteoscope.kernels.analyses_layouts import PROBLEMS
    from proteoscope.kernels.cuda.modules import open_gpu

    rows = []
    for name in PROBLEMS:
        sizes = (150, 430, 1300, 2700, 5200) if name == "matrix multiplication" else (24_000, 130_000, 720_000, 4_000_000, 23_000_000)
        errors, runs = [], [[] for _ in sizes]
        for _ in range(_PROBLEM_TURNS):
            for number, n in enumerate(sizes):
                runs[number].append(measured_problem(open_gpu(options.device), name, n, 5))
        for n, of_size in zip(sizes, runs, strict=True):
            spent = min(of_size, key=lambda run: run.seconds)
            predicted = predicted_problem(parameters, name, n)
            errors.append(error(predicted.seconds, spent.seconds))
            share = 100 * (spent.transfer_in + spent.transfer_out) / spent.seconds
            shares.append(abs(100 * predicted.transfer_share - share))
            emit(
                about,
                part="problems",
                problem=name,
                n=n,
                predicted_s=round(predicted.seconds, 6),
                measured_s=round(spent.seconds, 6),
                error=round(errors[-1], 3),
                predicted=[round(seconds, 7) for seconds in predicted],
                measured=[round(seconds, 7) for seconds in spent],
                share_points=round(shares[-1], 2),
            )
        rows.append((name, errors))
    return rows


def plans(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Measure each plan; forms are compiled in parallel before the measurement."""
    from benchmarks.reads_gpu import made, one_task, tasks
    from proteoscope.kernels.cuda.modules import CudaGpu

    every = tasks(options.shapes, seed=_SEED)
    once, measured = (argparse.Namespace(repeats=repeats, host_cells=cells) for repeats, cells in ((1, 0.0), (7, 2e8)))

    def compiled(number: int) -> None:
        columns, pairs, rules = made(every[number], number)
        one_task(once, columns, pairs, rules, every[number], {}, CudaGpu(options.device))

    began = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(compiled, range(len(every))))
    emit(about, part="plans", compiled_s=round(time.perf_counter() - began, 1))
    device, over = CudaGpu(options.device), list[float]()
    for number, case in enumerate(every):
        columns, pairs, rules = made(case, number)
        times: dict[str, Any] = {}
        one_task(measured, columns, pairs, rules, case, times, device)
        chosen, fastest = times.pop("chosen"), min(times.values())
        over.append(times[chosen] / fastest - 1 if chosen in times else 0.0)
        emit(
            about,
            part="plans",
            number=number,
            pairs=len(pairs[0]),
            **case,
            chosen=chosen,
            over_fastest=round(over[-1], 3),
            ms={name: round(1e3 * value, 3) for name, value in times.items()},
        )
    good = sum(excess <= 0.05 for excess in over)
    print(f"\nthe best plan, to 5 %: {good} of {len(over)}; worst {100 * max(over):.1f} % longer than the fastest", flush=True)


def write_proteins(path: Path, n: int, seed: int) -> None:
    """Write FASTA of random proteins as long as real ones."""
    rng = np.random.default_rng(seed)
    residues = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)
    with path.open("wb") as file:
        for number, length in enumerate(np.clip(rng.lognormal(5.75, 0.6, n), 40, 4000).astype(int)):
            file.write(b">p%d\n%s\n" % (number, rng.choice(residues, length).tobytes()))


def write_reads(genome: Path, reads: Path, n: int, seed: int) -> None:
    """Write a genome of half a million bases, and reads of 150 bases with 2 % errors."""
    rng = np.random.default_rng(1)
    bases = np.frombuffer(b"ACGT", np.uint8)
    text = rng.choice(bases, 500_000)
    genome.write_bytes(b">genome\n" + text.tobytes() + b"\n")
    rng = np.random.default_rng(seed)
    with reads.open("wb") as file:
        for number, begin in enumerate(rng.integers(0, len(text) - 150, n)):
            read = text[begin : begin + 150].copy()
            wrong = rng.random(150) < 0.02
            read[wrong] = rng.choice(bases, int(wrong.sum()))
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, read.tobytes(), b"I" * 150))


def write_spectra(path: Path, n: int, seed: int) -> None:
    """Write MGF of spectra with random peaks."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for number in range(n):
            peaks = np.sort(rng.uniform(120.0, 1600.0, 90))
            body = "\n".join(f"{mz:.4f} {height:.1f}" for mz, height in zip(peaks, rng.exponential(1000.0, 90) + 1, strict=True))
            file.write(f"BEGIN IONS\nTITLE=s{number}\nPEPMASS={rng.uniform(400, 900):.4f}\nCHARGE=2+\n{body}\nEND IONS\n\n")


def made_command(name: str, folder: Path, size: int, seed: int) -> list[str]:
    """Write the input of a command and return the command."""
    project = folder / f"{name}-{size}-{seed}"
    project.mkdir()
    if name == "align":
        write_proteins(project / "q.fasta", max(2, size // 1000), seed)
        write_proteins(project / "d.fasta", size, seed + 1)
        return ["align", str(project / "q.fasta"), str(project / "d.fasta"), "--out", str(project / "out.tsv")]
    if name == "reads":
        write_reads(project / "g.fasta", project / "r.fastq", size, seed)
        return ["reads", str(project / "g.fasta"), str(project / "r.fastq"), "--out", str(project / "out.paf"), "--set", "mode=within"]
    write_spectra(project / "s.mgf", size, seed)
    if name == "cluster":
        return ["cluster", str(project / "s.mgf"), "--out", str(project / "project")]
    write_proteins(folder / "proteins.fasta", 4000, 5)
    return ["identify", str(project / "s.mgf"), "--database", str(folder / "proteins.fasta"), "--out", str(project / "project")]


COMMANDS = {
    "align": ((2000, 10_000, 40_000), (5000, 20_000, 60_000)),
    "reads": ((4000, 20_000, 80_000), (10_000, 40_000, 120_000)),
    "cluster": ((2000, 8000, 30_000), (4000, 16_000, 50_000)),
    "identify": ((2000, 8000, 24_000), (4000, 16_000, 40_000)),
}
"""Of each command the sizes by which the machine learns, and those that are predicted then."""


def called(command: list[str], cores: int, before: list[str] | None = None) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a process of the program on a number of cores, and the JSON that it prints; `before` starts the command line.

    Raises
    ------
    RuntimeError
        If the process failed; the message is its last line.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    began = time.perf_counter()
    done = subprocess.run(
        [*(before or []), sys.executable, "-m", "proteoscope.engine.command_line", *command],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores]),
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return seconds, json.loads(done.stdout)


def commands(options: argparse.Namespace, about: dict[str, Any]) -> None:
    """Measure whole commands on two cores and a GPU."""
    from proteoscope.engine.execution.cost.calibration import calibrate_gpu
    from proteoscope.engine.execution.cost.calibration_store import store_calibration
    from proteoscope.engine.execution.devices import gpus

    gpu = next(gpu for gpu in gpus() if gpu.numbers == (options.device,))
    kinds = ["sequences", "reads", "vector-groups", "spectra"]
    store_calibration(gpu, 2, calibrate_gpu(options.device, gpu.description, kinds, Progress()))
    device, rows = ["--device", gpu.name, "--json"], list[tuple[str, list[float]]]()
    with tempfile.TemporaryDirectory(prefix="proteoscope-cost-", dir=options.scratch) as name:
        folder = Path(name)

        def warmed(name: str) -> str:
            try:
                called([*made_command(name, folder, 1500, 1), *device], 64)
            except RuntimeError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(4) as pool:
            failures = dict(zip(COMMANDS, pool.map(warmed, COMMANDS), strict=True))
        for name, (learnt, case) in COMMANDS.items():
            if failures[name]:
                emit(about, part="commands", command=name, failure=failures[name])
                continue
            for number, size in enumerate(learnt):
                called([*made_command(name, folder, size, 10 + number), *device], 2)
            errors = list[float]()
            for number, size in enumerate(case):
                command = [*made_command(name, folder, size, 20 + number), *device]
                _, estimate = called(["estimate", *command], 2)
                wall, summary = called(command, 2)
                seconds = float(summary["seconds"])
                errors.append(error(estimate["seconds"], seconds))
                steps = {step: round(value["seconds"], 3) for step, value in summary.get("stages", {}).items()}
                emit(
                    about,
                    part="commands",
                    command=name,
                    items=size,
                    predicted_s=round(estimate["seconds"], 3),
                    measured_s=seconds,
                    process_s=round(wall, 3),
                    error=round(errors[-1], 3),
                    bound=estimate["bound"],
                    runs=estimate["n_runs"],
                    predicted_steps={step: round(value, 3) for step, value in estimate["steps"].items()},
                    measured_steps=steps,
                    shares={part: round(share, 3) for part, share in estimate["shares"].items()},
                )
            rows.append((name, errors))
    table("whole commands, two cores and a GPU", rows)


def main() -> int:
    """Run a part."""
    import proteoscope.engine.searches  # noqa: F401  makes the kinds of work known
    from benchmarks.figures import usable_gpus

    gc.set_threshold(300_000)  # as the program has it
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("kernels", "plans", "commands"), required=True)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--threads", type=int, default=max(1, available_threads() - 2), help="that compile")
    parser.add_argument("--kinds", nargs="+", help="of work; all without")
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--scratch", type=Path, help="where files are written")
    options = parser.parse_args()
    os.environ.setdefault("PROTEOSCOPE_CACHE", tempfile.mkdtemp(prefix="proteoscope-cost-"))
    gpus = usable_gpus(needed=True)
    about = {"date": str(date.today()), "card": next(gpu.description for gpu in gpus if gpu.numbers == (options.device,))}
    {"kernels": kernels, "plans": plans, "commands": commands}[options.part](options, about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
