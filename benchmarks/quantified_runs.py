"""Memory and CPU time of the report and of the quantification of an experiment with very many runs, without spectra and searches.

    python -m benchmarks.quantified_runs --out FOLDER [--runs 1000] [--peptides 5000] [--proteins 10000] [--false 30] [--sites 5]
    python -m benchmarks.quantified_runs --out FOLDER --measure report quantify [--first 100] [--set match_between_runs=true]
    python -m benchmarks.quantified_runs --out FOLDER --measure tsv matrix msstats msstats-ptm figures mztab

The first command creates a project whose runs have tables of PSMs, spectra and proteins, as a search writes them. Each run identifies
some of six peptides of each protein, abundant ones more often, and false peptides that no other run has; a few decoys are accepted as well.
The second measures commands on the experiment or on its first runs. Ion traces are not measured in spectra: their values are drawn from the
m/z of the ion and the number of the file, so that the remaining work is that of tables. With ``--sites N``, every Nth peptide has a
localised modification. The third measures exports of the newest quantification. `peak_mb` is the peak memory of the process, and `steps`
are CPU seconds of all calls, and peak and final memory of the last call. One JSON line for each command.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import re
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.figures import emit
from proteoscope.engine.chemistry.masses import PROTON_MASS, WATER_MASS, residue_masses
from proteoscope.engine.command_line.main import main as main_of_program
from proteoscope.engine.experiments import report
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment, write_experiment
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.matches.columns import PROTEINS, PSMS
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.project import Project
from proteoscope.engine.project.records import RunInput
from proteoscope.engine.quantification import amounts, label_free, normalised, search, transfers
from proteoscope.engine.quantification import results as results_module
from proteoscope.engine.quantification.ion_traces import TraceQuery
from proteoscope.engine.searches import search_of_kind
from proteoscope.kernels.cpu.elution import AGREEMENT, APEX, AREA, BEGIN, END, N_VALUES, POINTS, TIME, WIDTH

_PER_PROTEIN, _REPEATED, _DECOYS, _REJECTED = 6, 0.2, 0.005, 0.1
_SECONDS = 3600.0
_RESIDUES = np.array(list("ADEFGHILNPQSTVWY"))


def _sequences(numbers: NDArray[np.int64]) -> list[str]:
    """Return a distinct tryptic sequence for each number."""
    digits = np.stack([numbers >> shift & 15 for shift in range(0, 28, 4)] + [numbers * 7 >> 2 & 15, numbers % 16], axis=1)
    symbols = np.concatenate([_RESIDUES[digits], np.full((len(numbers), 1), "K")], axis=1)
    return ["".join(row) for row in symbols.tolist()]


def _write_run(project: Project, number: int, given: argparse.Namespace) -> None:
    rng, name = np.random.default_rng((61, number)), f"run_{number:05d}"
    n_all = given.proteins * _PER_PROTEIN
    weight = np.random.default_rng(61).lognormal(0, 1.5, n_all)
    peptide = rng.choice(n_all, min(given.peptides, n_all), replace=False, p=weight / weight.sum())
    right = np.concatenate([peptide, rng.choice(peptide, round(_REPEATED * len(peptide)))])
    n_decoys, n_rejected = round(_DECOYS * len(right)), round(_REJECTED * len(right))
    # False peptides are of this run only; those at the end are rejected.
    n_false = given.false + n_decoys + n_rejected
    every = np.concatenate([right, n_all + number * 10_000 + np.arange(n_false)])
    n = len(every)
    is_decoy = np.zeros(n, np.bool_)
    is_decoy[len(right) + given.false : len(right) + given.false + n_decoys] = True
    is_decoy[n - n_rejected // 2 :] = True
    q_value = np.full(n, 0.001)
    q_value[len(right) :] = 0.009
    q_value[n - n_rejected :] = 0.4
    order = rng.permutation(n)
    every, is_decoy, q_value = every[order], is_decoy[order], q_value[order]
    protein = np.where(every < n_all, every // _PER_PROTEIN, every * 7919 % given.proteins)
    texts = _sequences(every)
    mass = WATER_MASS + residue_masses("".join(texts)).reshape(n, -1).sum(axis=1)
    accession = [f"{'DECOY_' if decoy else ''}sp|P{k:05d}|MADE{k}" for k, decoy in zip(protein.tolist(), is_decoy.tolist(), strict=True)]
    row, nothing = np.arange(n), pa.array([[]] * n, pa.list_(pa.string()))
    apex = every * 0.6180339887 % 1.0 * _SECONDS
    columns: dict[str, Any] = {
        "spectrum_id": [f"controllerType=0 controllerNumber=1 scan={k + 1}" for k in range(n)],
        "scan": row + 1,
        "spectrum_index": row,
        "spectrum": row,
        "retention_time": apex + rng.normal(0, 3, n),
        "precursor_mz": mass / 2 + PROTON_MASS,
        "charge": np.full(n, 2),
        "peptide": texts,
        "sequence": texts,
        "proteins": pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), pa.array(accession)),
        "calculated_mass": mass,
        "score": np.where(q_value < 0.1, rng.normal(20, 3, n), rng.normal(0, 1, n)),
        "q_value": q_value,
        "peptide_q_value": q_value,
        "rank": np.ones(n, np.int64),
        "is_decoy": is_decoy,
        "psm_id": row,
        "match_class": ["specific"] * n,
        "modification_names": nothing,
        "modification_masses": pa.array([[]] * n, pa.list_(pa.float64())),
    }
    accepted = np.unique(protein[(q_value <= 0.01) & ~is_decoy])
    groups = {
        "accessions": [[f"sp|P{k:05d}|MADE{k}"] for k in accepted.tolist()],
        "description": [f"Made protein {k} OS=Homo sapiens OX=9606 GN=GENE{k} PE=1 SV=1" for k in accepted.tolist()],
        "length": np.full(len(accepted), 420),
        "is_decoy": np.zeros(len(accepted), np.bool_),
        "q_value": np.full(len(accepted), 0.001),
    }
    spectra, database = given.out / "files" / f"{name}.mzML", given.out / "files" / "proteins.fasta"
    spectra.write_text(name)
    parameters = search_of_kind("identify").model.checked({}).model_dump(mode="json")
    schemas = [pa.schema([table.schema().field(column) for column in some]) for table, some in ((PSMS, columns), (PROTEINS, groups))]
    with project.run("identify", parameters, [RunInput(spectra, "spectra"), RunInput(database, "database")], name=name) as run:
        run.write_table("psms", _table(columns, schemas[0]))
        run.write_table("proteins", _table(groups, schemas[1]))
        run.write_table("spectra", pa.table({"spectrum_file": [spectra.name] * n}))
        if given.sites:
            run.write_table("psm_sites", _sites(columns, np.flatnonzero((every % given.sites == 0) & ~is_decoy)))


def _sites(psms: dict[str, Any], rows: NDArray[np.int64]) -> pa.Table:
    """Return the table of a site at the second of two possible residues of each of the matches `rows`."""
    n, lists = len(rows), np.arange(len(rows) + 1, dtype=np.int32)
    columns: dict[str, Any] = {name: pa.array(psms[name]).take(pa.array(rows)) for name in ("peptide", "charge", "proteins")}
    columns |= {"psm": rows, "modification": ["Phospho"] * n, "residue": ["S"] * n, "position": np.full(n, 3)}
    columns |= {"site_probability": np.full(n, 0.9), "site_score": np.ones(n), "localisation_q_value": np.full(n, 0.01)}
    columns |= {"has_alternative": np.ones(n, np.bool_), "protein_positions": pa.ListArray.from_arrays(lists, pa.array(rows % 400 + 1))}
    pairs = pa.array(2 * lists)
    columns["possible_positions"] = pa.ListArray.from_arrays(pairs, pa.array(np.tile([2, 3], n)))
    columns["probabilities"] = pa.ListArray.from_arrays(pairs, pa.array(np.tile([0.1, 0.9], n)))
    return PSM_SITES.arrow(columns)


def _row(number: int, out: Path) -> ExperimentRow:
    name, condition = f"run_{number:05d}", ("control", "treated")[number % 2]
    return ExperimentRow(name, str(out / "files" / f"{name}.mzML"), name, condition, sha256=hashlib.sha256(name.encode()).hexdigest())


def _table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema})


def create(given: argparse.Namespace) -> None:
    """Create the project, or continue one that has fewer runs."""
    (given.out / "files").mkdir(parents=True, exist_ok=True)
    (given.out / "files" / "proteins.fasta").write_text(">P\nPEPTIDEK\n")
    project = Project.create_or_open(given.out / "project")
    began = time.process_time()
    with project.held_open():
        for number in range(sum(run.status == "done" and run.kind == "identify" for run in project.runs()), given.runs):
            _write_run(project, number, given)
    write_experiment(project, [_row(number, given.out) for number in range(given.runs)])
    emit({}, figure="quantified_runs", runs=given.runs, cpu=round(time.process_time() - began, 1))


def _traces(ms1_spectra: Ms1Spectra, query: TraceQuery, *_: object) -> NDArray[np.float64]:
    """Return traces as `measured_traces` does, with an area that depends on the ion and the file."""
    rng, n = np.random.default_rng(int(ms1_spectra.scan[0])), len(query)
    result = np.zeros((n, N_VALUES))
    area = 1e6 * np.exp(3 * np.sin(query.mz * 1e4)) * rng.lognormal(0, 0.3, n)
    time = query.anchors[query.anchor_offsets[:-1]] + rng.normal(0, 1, n)
    for column, values in ((AREA, area), (APEX, area / 10), (TIME, time), (BEGIN, time - 9), (END, time + 9)):
        result[:, column] = values
    result[:, WIDTH], result[:, POINTS], result[:, AGREEMENT] = 8.0, 10.0, 0.99
    return result


def _memory() -> tuple[float, float]:
    """Return the present and the peak memory of this process, in MB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, int(status["VmHWM"].split()[0]) / 1024


def _watch(steps: dict[str, list[float]], module: ModuleType, name: str) -> None:
    """Record the CPU seconds and the peak memory (MB) of a function of a module."""
    function = getattr(module, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        before, began = _memory()[1], time.process_time()
        Path("/proc/self/clear_refs").write_text("5")
        result = function(*arguments, **named)
        now, peak = _memory()
        seconds = steps.get(name, [0.0])[0] + time.process_time() - began
        steps[name] = [round(seconds, 3), round(peak), round(now)]
        steps["peak"] = [max(before, peak, *steps.get("peak", []))]
        return result

    setattr(module, name, watched)


def _run(command: str, project: str, settings: Sequence[str], results: Connection) -> None:
    """Run a command in this process, and send its figures."""
    steps: dict[str, list[float]] = {}
    watched: tuple[tuple[ModuleType, str], ...] = ()
    if command == "report":
        watched = (report, "common_search"), (report, "report_experiment")
        arguments = ["experiment", "report", project]
    elif command != "quantify":
        name = {"msstats": "msstats.tsv", "mztab": "quantities.mzTab"}.get(command, command)
        arguments = ["export", project, "--format", command, "--out", str(Path(project).parent / "exports" / name)]
    else:
        arguments = ["quantify", project, "--experiment", "--device", "cpu", *(word for pair in settings for word in ("--set", pair))]
        watched = (
            *((search, name) for name in ("sources", "identified", "measure_label_free", "normalised_quantities", "protein_changes")),
            *((search, name) for name in ("quantity_tables", "localised_peptidoforms", "site_tables", "write_quantities")),
            *((amounts, name) for name in ("ratio_amounts", "pairwise_amounts")),
            (normalised, "level_amounts"),
            (results_module, "write_wide"),
        )
        for module in (label_free, transfers):
            vars(module).update(measured_traces=_traces, is_low=lambda values, *_: np.zeros(len(values), np.bool_))
        vars(transfers)["mass_errors"] = lambda _, mz, *__: np.random.default_rng(len(mz)).normal(0, 1e-6, len(mz))
        vars(label_free)["read_ms1_spectra"] = _spectra
    for module, name in watched:
        _watch(steps, module, name)
    began = time.process_time()
    code = main_of_program([*arguments, "--quiet"])
    steps["peak"] = [max(_memory()[1], *steps.get("peak", [0.0]))]
    results.send({"code": code, "cpu": round(time.process_time() - began, 1), "peak_mb": round(steps.pop("peak")[0]), "steps": steps})


def _spectra(path: str, **_: object) -> Ms1Spectra:
    number = int(re.sub(r"\D", "", Path(path).stem))
    return Ms1Spectra(np.linspace(0, 3600, 10), np.full(10, number), np.zeros(11, np.int64), np.zeros(0), np.zeros(0, np.float32))


def measure(given: argparse.Namespace) -> None:
    """Measure commands on the experiment, or on its first runs."""
    project = Project.open(given.out / "project")
    every = read_experiment(project)
    rows = every[: given.first or None]
    write_experiment(project, rows)
    context = multiprocessing.get_context("spawn")
    try:
        for command in given.measure:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_run, args=(command, str(project.folder), given.set, there))
            process.start()
            there.close()
            try:
                figures = here.recv()
            except EOFError:
                figures = {"code": "killed"}
            process.join()
            emit({}, figure=command, runs=len(rows), **figures)
    finally:
        write_experiment(project, every)


def main() -> None:
    """Create an experiment, or measure commands on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    for name, default in (("runs", 1000), ("peptides", 5000), ("proteins", 10_000), ("false", 30), ("sites", 0), ("first", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    formats = (export.name for export in search_of_kind("quantify").exports)
    parser.add_argument("--measure", nargs="*", choices=("report", "quantify", *formats), default=[])
    parser.add_argument("--set", nargs="*", default=[])
    given = parser.parse_args()
    (measure if given.measure else create)(given)


if __name__ == "__main__":
    main()
