"""Identify peptides and proteins: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

import importlib
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.chemistry.modifications import SearchModification, parse_modification
from engine.entry import Certainty, Count
from engine.errors import InputError, ParameterError, StorageError
from engine.execution.clock import StageClock
from engine.execution.devices import Device, chosen_device, gpus, processor
from engine.execution.threads import available_threads
from engine.execution.workers import cards
from engine.files import atomic_file, storage_errors, sync_folder
from engine.formats import Spectra, read_proteins, read_spectra
from engine.identification.compilation import compile_kernels, kernels_are_compiled
from engine.identification.parameters import IdentificationParameters
from engine.jobs.background import Background
from engine.jobs.progress import Progress, RecordingProgress
from engine.peptides.peptide_index import Digestion, PeptideIndex, build_peptide_index, open_peptide_index
from engine.peptides.protein_index import ProteinIndex, build_protein_index, open_protein_index
from engine.project import Project, RunInput
from engine.project.cache import index_store
from engine.project.digests import file_digest
from engine.project.paths import check_folder_name
from engine.version import VERSION

if TYPE_CHECKING:
    from engine.matches.psms import Psms
    from engine.matches.tables import Scored
    from engine.project.run import Run
    from kernels.cuda.modules import Card

__all__ = ["IdentificationSummary", "identify"]

_EXPORTS = "exports"
_INDEX_FORMAT = 4
_MB = 1_000_000
_SPECTRA_PER_GROUP = 256  # a window draws one at a time
_SPECTRA_PER_PIECE = 16 * _SPECTRA_PER_GROUP


@dataclass(frozen=True)
class IdentificationSummary:
    """What an identification found, counted at the false discovery rate, targets only.

    `folder` is the project's, `run_id` the run in it. `n_peptides` counts peptidoforms by their own q-values (target rows of the peptide
    table), `n_sequences` the different sequences among them, `n_proteins` groups by theirs. `certainty` holds for ``psms``, ``peptides``
    and ``proteins`` the targets and decoys accepted and the 95 % interval of the share of false ones among the targets (``targets``,
    ``decoys``, ``false_share_low``, ``false_share_high``; `engine.statistics.target_decoy.false_share_interval`). `stages` holds
    seconds and peak memory of each of the five steps (of making the index, which goes on beside reading, what it took longer), `messages`
    what the user should know. `top_proteins`: (accession, description, peptides, coverage) of the best groups.
    """

    run_id: str
    folder: Path
    n_spectra: int
    n_searched: int
    n_proteins_in_database: int
    n_peptides_in_index: int
    n_psms: int
    n_peptides: int
    n_sequences: int
    n_proteins: int
    certainty: dict[str, dict[str, float]]
    seconds: float
    device: str
    stages: dict[str, dict[str, float]]
    messages: tuple[str, ...] = ()
    top_proteins: tuple[tuple[str, str, int, float], ...] = field(default=())
    fdr: float = 0.01

    def counts(self) -> list[Count]:
        """PSMs, peptides and protein groups at the false discovery rate, with how certain they are."""
        return [
            Count(number, one, several, Certainty(int(known["decoys"]), known["false_share_low"], known["false_share_high"]))
            for number, one, several, known in (
                (self.n_psms, "PSM", "PSMs", self.certainty["psms"]),
                (self.n_peptides, "peptide", "peptides", self.certainty["peptides"]),
                (self.n_proteins, "protein", "proteins", self.certainty["proteins"]),
            )
        ]

    def lines(self) -> list[str]:
        """What was searched, what was found and how certain that is, and the best proteins."""
        lines = [
            f"{self.n_searched:,} of {self.n_spectra:,} spectra searched against {self.n_proteins_in_database:,} proteins",
            f"At {self.fdr * 100:.3g} % FDR:",
        ]
        names = "PSMs", f"peptides ({self.n_sequences:,} sequences)", "protein groups"
        for name, one in zip(names, self.counts(), strict=True):
            assert one.certainty is not None
            share = f"{one.certainty.low * 100:.1f} to {one.certainty.high * 100:.1f} % false"
            lines.append(f"  {one.number:,} {name}, with {one.certainty.decoys:,} decoys: {share} (95 % interval)")
        for accession, description, n_peptides, coverage in self.top_proteins:
            lines.append(f"  {accession:<24.24} {n_peptides:>4} peptides {coverage * 100:5.1f} %  {description:.70}")
        return lines


def identify(
    spectra: Sequence[str | Path],
    databases: Sequence[str | Path],
    project_folder: str | Path,
    parameters: IdentificationParameters,
    *,
    device: str = "auto",
    threads: int | None = None,
    skip_broken: bool = False,
    progress: Progress | None = None,
) -> IdentificationSummary:
    """Identify the peptides and proteins of spectrum files and write them into a project.

    Parameters
    ----------
    spectra, databases : spectrum files of any known format; FASTA files.
    project_folder : made where it does not exist; a run is added to a project that does. ``exports/*.tsv`` and ``run.json`` of the
        newest run stand beside it.
    device : ``auto`` (all usable GPUs, else the processor), ``cpu``, ``cuda`` (the first usable GPU), ``cuda:N``, or ``all`` (all usable
        GPUs and the processor together). threads : of the processor, all when None.
    skip_broken : leave out spectra that cannot be read, and count them, instead of stopping.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    progress = RecordingProgress(progress or Progress())
    threads = threads or available_threads()
    began, clock = time.perf_counter(), StageClock()
    spectrum_files, database_files = [Path(path) for path in spectra], [Path(path) for path in databases]
    contaminants = [Path(path) for path in parameters.contaminants]
    check_folder_name(project_folder)
    kinds = _kinds(spectrum_files, database_files, contaminants)

    def read_them(progress: Progress) -> Spectra:
        with clock.stage("read"):
            return read_spectra(spectrum_files, progress=progress, skip_broken=skip_broken, threads=threads)

    # Reading runs kernels: where these are not compiled yet, it comes after that.
    with Background(progress, threads if kernels_are_compiled() else 1) as early:
        found = early.begin(lambda progress: chosen_device(device, progress))
        spectra_read = early.begin(read_them)
        inputs = [RunInput(path, kind, file_digest(path, progress)) for path, kind in kinds]
        chosen = found()
        project = Project.create_or_open(project_folder)
        values = parameters.model_dump(mode="json")
        with (
            project.run("identify", values, inputs, version=VERSION, device=chosen.name, progress=progress) as run,
            tempfile.TemporaryDirectory(prefix="index-", dir=run.folder, ignore_cleanup_errors=True) as spare,
            Background(progress, threads) as behind,
        ):
            progress.log_to(run.log)
            if device in ("auto", "all"):
                for gpu in gpus():
                    if gpu.numbers and not gpu.usable:
                        progress.message(f"{gpu.name} is not used: {gpu.reason}", "warning")
            compile_kernels(progress)
            digests = {kind: [one.sha256 for one in inputs if one.kind == kind] for kind in ("database", "contaminants")}

            def prepare(progress: Progress) -> tuple[list[Card], ProteinIndex, PeptideIndex]:
                used = _opened(chosen, parameters, progress)
                return used, *_indexes(Path(spare), database_files, contaminants, digests, parameters, threads, used, progress)

            prepared = behind.begin(prepare)
            read = spectra_read()
            with clock.stage("index"):  # what it takes longer than reading
                used, proteins, peptides = prepared()
            variable = tuple(parse_modification(name) for name in parameters.variable_modifications)
            psms, n_searched = _search(
                read, proteins, peptides, variable, parameters, threads, used, chosen.with_processor, clock, progress
            )
            # Not before: what is loaded for writing would come on top of what scoring holds.
            spectra_written = behind.begin(lambda progress: _write_spectra(run, read, progress))
            behind.begin(lambda _: importlib.import_module("duckdb"))  # which the tables need
            scored = _judged(psms, parameters, threads, clock, progress)
            if parameters.second_pass:
                scored = _second_pass(scored, read, proteins, run.folder, parameters, threads, used, chosen.with_processor, clock, progress)
            run.device = "+".join([*(card.name for card in used), *(["cpu"] if chosen.with_processor or not used else [])])
            progress.message(scored.message)
            with clock.stage("report"):
                from engine.matches.exporting import export
                from engine.matches.tables import write_tables
                from engine.matches.writers.tables import IdentificationTables

                progress.stage("Writing results")
                tables = write_tables(scored, read, proteins, parameters)
                exported = IdentificationTables(tables.psms, tables.peptides, tables.proteins)
                written = behind.begin(lambda progress: export(exported, "tsv", run.folder / _EXPORTS, values, progress))
                for name, table in (("psms", tables.psms), ("peptides", tables.peptides), ("proteins", tables.proteins)):
                    run.write_table(name, table)
                    progress.check()
                spectra_written()
                written()
                progress.check()
            n_psms, n_peptides, n_proteins = (tables.counted[name].targets for name in ("psms", "peptides", "proteins"))
            run.message = f"{n_psms} PSMs, {n_peptides} peptides, {n_proteins} proteins at {parameters.fdr:.3g} FDR"
    # The run is kept now: what follows takes no time and heeds no cancel, so that the tables and run.json are those of one run.
    _move_files(run.folder / _EXPORTS, project.inside(_EXPORTS))
    best = tables.proteins.filter(_found(tables.proteins, parameters)).slice(0, 10).to_pylist()
    summary = IdentificationSummary(
        run.id, project.folder, len(read), n_searched, proteins.n_targets, len(peptides), n_psms, n_peptides, tables.n_sequences,
        n_proteins,
        {name: count.certainty() for name, count in tables.counted.items()},
        round(time.perf_counter() - began, 3), run.device,
        clock.stages, progress.messages,
        tuple((row["accessions"][0], row["description"], row["n_peptides"], row["coverage"]) for row in best), parameters.fdr,
    )  # fmt: skip
    _write_run_json(project.inside("run.json"), summary, parameters, inputs, threads)
    return summary


def _opened(chosen: Device, parameters: IdentificationParameters, progress: Progress) -> list[Card]:
    """The cards of the device that was chosen; the user is told on what his spectra are scored."""
    used = cards(chosen, progress, memory_bytes=parameters.device_memory * _MB)
    taken = chosen if used else processor()
    progress.message(f"Scoring on {taken.name}: {taken.description}")
    return used


def _write_spectra(run: Run, spectra: Spectra, progress: Progress) -> None:
    """Write the spectra with their peaks, piece by piece, so that a cancel is heeded in between."""
    from engine.matches.tables import spectra_table

    table = spectra_table(spectra)
    with run.table_writer("spectra", table.schema, _SPECTRA_PER_GROUP) as writer:
        for first in range(0, len(table), _SPECTRA_PER_PIECE):
            writer.write(table.slice(first, _SPECTRA_PER_PIECE))
            progress.check()


def _kinds(spectra: list[Path], databases: list[Path], contaminants: list[Path]) -> list[tuple[Path, str]]:
    if not spectra:
        raise ParameterError("no spectrum file was given")
    if not databases:
        raise ParameterError("no database was given; add --database PROTEINS.fasta")
    kinds = [
        (path, kind) for kind, paths in (("spectra", spectra), ("database", databases), ("contaminants", contaminants)) for path in paths
    ]
    for number, (path, kind) in enumerate(kinds):
        _check_name(path)
        if not path.exists():
            raise InputError(path, "does not exist", remedy="Check the path")
        if path.is_dir():
            raise InputError(path, "is a folder", remedy=f"Give the {'spectrum' if kind == 'spectra' else 'FASTA'} files in it")
        if any(path.samefile(other) for other, _ in kinds[:number]):
            raise InputError(path, "is given twice", remedy="Name each file once")
    return kinds


def _check_name(path: Path) -> None:
    """Tables and XML hold Unicode, which the bytes of a file's name need not be."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(ascii(str(path)), "the file's name is not valid UTF-8", remedy="Rename it") from None


def _move_files(folder: Path, target: Path) -> None:
    """Put the files of `folder`, on the same disk, into `target`, each in place of the one before it."""
    with storage_errors(target):
        target.mkdir(exist_ok=True)
        for path in sorted(folder.iterdir()):
            path.replace(target / path.name)
        folder.rmdir()
        sync_folder(target)


def _indexes(
    spare: Path,
    databases: list[Path],
    contaminants: list[Path],
    digests: dict[str, list[str | None]],
    parameters: IdentificationParameters,
    threads: int,
    used: list[Card],
    progress: Progress,
) -> tuple[ProteinIndex, PeptideIndex]:
    """The protein and the peptide index, opened where the user's cache has them, else built; in `spare` where they cannot be kept."""
    digestion = Digestion.of(parameters, parameters.specificity)
    names = (
        "enzyme",
        "specificity",
        "missed_cleavages",
        "minimum_length",
        "maximum_length",
        "minimum_mass",
        "maximum_mass",
        "clip_methionine",
    )
    parts: dict[str, Any] = {
        "format": _INDEX_FORMAT,
        "inputs": digests,
        "decoys": parameters.decoys,
        "decoy_prefix": parameters.decoy_prefix,
        "fixed_modifications": list(parameters.fixed_modifications),
        **{name: getattr(parameters, name) for name in names},
    }

    def build(building: Path) -> None:
        proteins = build_protein_index(
            building,
            read_proteins(databases, progress=progress),
            database=str(databases[0]),
            decoys=parameters.decoys,
            decoy_prefix=parameters.decoy_prefix,
            cleaves=digestion.enzyme.cleavage_table(),
            contaminants=read_proteins(contaminants, progress=progress) if contaminants else None,
        )
        peptides = build_peptide_index(
            building, proteins, digestion, threads=threads, cards=used, memory_bytes=parameters.index_memory * _MB, progress=progress
        )
        if len(peptides) == 0:
            raise InputError(
                databases[0],
                "no protein gives a peptide within the limits of length and mass",
                remedy="Check the enzyme and the limits",
            )

    def load(folder: Path) -> tuple[ProteinIndex, PeptideIndex]:
        proteins = open_protein_index(folder)
        return proteins, open_peptide_index(folder, proteins, digestion)

    progress.stage("Opening the peptide index")
    title = ", ".join([*(path.name for path in (*databases, *contaminants)), parameters.enzyme, f"decoys {parameters.decoys}"])
    try:
        return index_store("peptides").get(parts, title, build, load, progress)
    except StorageError as error:
        progress.message(f"The index could not be kept for other searches, and is made for this run alone: {error}", "warning")
    with storage_errors(spare, only_disk=True):
        build(spare)
    return load(spare)


def _search(
    spectra: Spectra,
    proteins: ProteinIndex,
    peptides: PeptideIndex,
    variable: tuple[SearchModification, ...],
    parameters: IdentificationParameters,
    threads: int,
    used: list[Card],
    with_processor: bool,
    clock: StageClock,
    progress: Progress,
    *,
    is_first: bool = True,
) -> tuple[Psms, int]:
    """Plan and score one pass; the matches and the number of spectra searched."""
    from engine.matches.psms import collect_psms
    from engine.matches.scoring import Search, modification_arrays
    from engine.spectra.spectrum_index import build_spectrum_index

    with clock.stage("plan"):
        index = build_spectrum_index(spectra, parameters, threads, progress)
        if is_first and not index.n_searched:
            raise _nothing_to_search(spectra, parameters)
        search = Search(
            index, peptides.arrays(proteins), modification_arrays(variable, parameters), parameters, threads, used,
            with_processor=with_processor,
        )  # fmt: skip
        search.plan(progress)
    with clock.stage("score"):
        return collect_psms(search.run(progress), peptides, proteins, variable), index.n_searched


def _nothing_to_search(spectra: Spectra, parameters: IdentificationParameters) -> InputError:
    """Why none of the spectra can be searched, as far as that can be told."""
    peaks = np.diff(spectra.offsets)
    n, n_empty, n_without_precursor = len(spectra), int((peaks == 0).sum()), int((~np.isfinite(spectra.precursor_mz)).sum())
    path = spectra.files[0] if len(spectra.files) == 1 else f"{len(spectra.files)} files"
    if n == 0:
        return InputError(path, "holds no spectrum of fragments", remedy="Give a run with MS/MS spectra")
    reasons = [f"{n_empty:,} hold no peak"] if n_empty else []
    reasons += [f"{n_without_precursor:,} have no precursor m/z"] if n_without_precursor else []
    if not reasons or max(n_empty, n_without_precursor) < n:
        reasons.append(f"{'the others' if reasons else 'they'} keep fewer than minimum_peaks={parameters.minimum_peaks} peaks")
    return InputError(
        path,
        f"none of the {n:,} spectra can be searched: {', '.join(reasons)}",
        remedy="Check how the run was converted, or lower minimum_peaks",
    )


def _judged(
    psms: Psms, parameters: IdentificationParameters, threads: int, clock: StageClock, progress: Progress, second: Psms | None = None
) -> Scored:
    """The matches, of one pass or of both, with their statistics."""
    from engine.matches.tables import score_statistics

    with clock.stage("report"):
        progress.stage("Estimating false discovery rates")
        return score_statistics(psms, parameters, threads, progress, second=second)


def _second_pass(
    first: Scored,
    spectra: Spectra,
    proteins: ProteinIndex,
    run_folder: Path,
    parameters: IdentificationParameters,
    threads: int,
    used: list[Card],
    with_processor: bool,
    clock: StageClock,
    progress: Progress,
) -> Scored:
    """Search the spectra that the first pass left, on the proteins it found and their decoys.

    With more modifications and fewer required cuts. The index is made for this once; it stands in the run's folder, which is swept when the
    run does not end well.
    """
    from engine.matches.tables import identified_proteins

    found = identified_proteins(first, proteins, parameters.fdr)
    partners = proteins.partners()[found]
    selected = np.unique(np.concatenate((found, partners[partners >= 0])))
    identified = first.psms.spectrum[first.q_value <= parameters.fdr]
    remaining = np.setdiff1d(np.arange(len(spectra)), identified)
    if len(found) == 0 or len(remaining) == 0:
        return first
    names = dict.fromkeys((*parameters.variable_modifications, *parameters.second_pass_modifications))
    variable = tuple(parse_modification(name) for name in names)
    with storage_errors(run_folder, only_disk=True), tempfile.TemporaryDirectory(prefix="second-pass-", dir=run_folder) as folder:
        with clock.stage("index"):
            digestion = Digestion.of(parameters, parameters.second_pass_specificity)
            peptides = build_peptide_index(
                Path(folder), proteins, digestion, selected=selected, threads=threads, cards=used,
                memory_bytes=parameters.index_memory * _MB, progress=progress,
            )  # fmt: skip
        psms, _ = _search(
            spectra.only(remaining), proteins, peptides, variable, parameters, threads, used, with_processor, clock, progress,
            is_first=False,
        )  # fmt: skip
    return _judged(first.psms, parameters, threads, clock, progress, second=psms)


def _found(table: Any, parameters: IdentificationParameters) -> Any:
    import pyarrow.compute as pc

    is_target = pc.invert(table["is_decoy"])
    return is_target if parameters.decoys == "none" else pc.and_(is_target, pc.less_equal(table["q_value"], parameters.fdr))


def _write_run_json(
    path: Path, summary: IdentificationSummary, parameters: IdentificationParameters, inputs: list[RunInput], threads: int
) -> None:
    """What was done and what it cost, for scripts."""
    import json

    content = {
        "version": VERSION,
        "python": platform.python_version(),
        "run": summary.run_id,
        "device": summary.device,
        "threads": threads,
        "inputs": [{"path": str(one.path), "kind": one.kind, "sha256": one.sha256} for one in inputs],
        "parameters": parameters.model_dump(mode="json"),
        "counts": {
            name.removeprefix("n_"): getattr(summary, name)
            for name in (
                *("n_spectra", "n_searched", "n_proteins_in_database", "n_peptides_in_index"),
                *("n_psms", "n_peptides", "n_sequences", "n_proteins"),
            )
        },
        "certainty": summary.certainty,
        "seconds": summary.seconds,
        "steps": summary.stages,
        "messages": list(summary.messages),
    }
    with atomic_file(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
