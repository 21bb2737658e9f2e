"""The first use of the processor's kernels on a machine compiles them: a step of its own, announced, that a user may leave at once."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import resources
from engine.jobs.progress import Progress

__all__ = ["compile_fragment_index", "compile_kernels", "is_compiling", "kernels_are_compiled"]

_THREAD = "proteoscope-compiler"
_PROTEIN = ">protein\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n"
_PEPTIDE = "DLGEEHFK"


def kernels_are_compiled() -> bool:
    """Whether `compile_kernels` has nothing to do."""
    from kernels.cpu.compilation import is_compiled
    from kernels.cpu.scoring import measure_matches

    return is_compiled(measure_matches)


def compile_kernels(progress: Progress) -> None:
    """Compile what every identification runs on the processor, unless this machine did it before (about 15 seconds, kept on disk).

    Raises
    ------
    Cancelled : the user asked to stop; the compiler ends with the program, for it cannot be interrupted.
    """
    from kernels.cpu.scoring import measure_matches

    _compile(progress, measure_matches, "kernels", lambda: _use_kernels(with_index=False))


def compile_fragment_index(progress: Progress) -> None:
    """Compile what searches of wide windows run besides (about 10 seconds); see `compile_kernels`, which comes first.

    Apart, since most users never need it. Only what is compiled together is inlined: the kernels of every search must not come in pieces.
    """
    from kernels.cpu.scoring import score_candidates

    _compile(progress, score_candidates, "fragment index", lambda: _use_kernels(with_index=True))


def _compile(progress: Progress, last: Any, what: str, use: Callable[[], None]) -> None:
    """Let a thread `use` kernels, of which `last` is compiled last."""
    from kernels.cpu.caching import why_not_kept
    from kernels.cpu.compilation import is_compiled, mark_compiled

    if is_compiled(last):
        return
    progress.stage("Compiling for this processor")
    progress.message(f"Compiling the {what} for this processor; this happens once and takes 10 to 20 seconds")
    failures: list[Exception] = []

    def work() -> None:
        try:
            use()
            with suppress(OSError):  # a cache that others keep is not ours to mark
                mark_compiled(last)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work, name=_THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        progress.check()
    if failures:
        raise failures[0]
    if reason := why_not_kept():
        progress.message(f"What was compiled may have to be compiled again: {reason}", "warning")


def is_compiling() -> bool:
    """Whether a compiler is still at work, whoever waited for it."""
    return any(thread.name == _THREAD for thread in threading.enumerate())


def _spectrum() -> str:
    """The peptide's fragments as MGF, so that there is a match to measure."""
    from engine.chemistry.fragments import fragment_ions
    from engine.chemistry.masses import mz, sequence_mass

    peaks = "".join(f"{one:.5f} 1.5\n" for one in sorted(fragment_ions(_PEPTIDE, max_charge=1).mz.tolist()))
    return f"BEGIN IONS\nTITLE=one\nPEPMASS={mz(sequence_mass(_PEPTIDE), 2):.5f}\nCHARGE=2+\n{peaks}END IONS\n"


def _use_kernels(*, with_index: bool) -> None:
    """Identify next to nothing, through the same functions and so with the same types as a real search."""
    from engine.formats import read_proteins, read_spectra
    from engine.identification.parameters import IdentificationParameters
    from engine.matches.fragment_index import FragmentSearch
    from engine.matches.scoring import Search, modification_arrays, scoring_settings
    from engine.peptides.peptide_index import Digestion, build_peptide_index
    from engine.peptides.protein_index import build_protein_index
    from engine.spectra.spectrum_index import build_spectrum_index

    parameters = IdentificationParameters()
    quiet = Progress()
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "protein.fasta").write_text(_PROTEIN, encoding="ascii")
        (folder / "spectrum.mgf").write_text(_spectrum(), encoding="ascii")
        read_spectra([resources.path("samples", "Ecoli_MS2_small.mzML.gz")], threads=1)
        spectra = read_spectra([folder / "spectrum.mgf"], threads=1)
        digestion = Digestion.of(parameters, parameters.specificity)
        proteins = build_protein_index(
            folder,
            read_proteins([folder / "protein.fasta"]),
            database="protein.fasta",
            decoys=parameters.decoys,
            decoy_prefix=parameters.decoy_prefix,
            cleaves=digestion.enzyme.cleavage_table(),
        )
        peptides = build_peptide_index(folder, proteins, digestion, threads=1, memory_bytes=1 << 26, progress=quiet)
        index = build_spectrum_index(spectra, parameters, 1, quiet)
        arrays, modifications = peptides.arrays(proteins), modification_arrays((), parameters)
        search = Search(index, arrays, modifications, parameters, 1)
        search.plan(quiet)
        if with_index:
            # So small a search is not worth a fragment-ion index.
            settings = scoring_settings(parameters, float(index.arrays.mz.max()))
            FragmentSearch(index, arrays, modifications, settings, 1, 1 << 26).run(search.score(quiet), quiet)
        else:
            search.run(quiet)
