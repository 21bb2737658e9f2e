"""The kernels of a search of spectral libraries."""

from __future__ import annotations

from proteoscope import kernels
from proteoscope.engine import execution, formats, library_search, peptides
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.jobs.progress import Progress

__all__ = ["LIBRARY", "PREDICTION"]

_SPECTRUM = "BEGIN IONS\nTITLE={0}\nPEPMASS={1}\nCHARGE=2+\n147.11 1\n275.17 2\n446.23 {0}\n560.2 4\nEND IONS\n"

_ENTRY = "Name: GASPVK/2\nPrecursorMZ: 272.66\nNum peaks: 4\n147.11 1\n246.18 1\n343.23 1\n430.2 1\n"


def _use() -> None:
    """Search a minimal library."""
    resources = execution.resources.Resources(1, progress=Progress())
    with scratch_folder() as folder:
        path = folder / "spectra.mgf"
        path.write_text("".join(_SPECTRUM.format(i, 272.66 + i) for i in range(3)), encoding="ascii")
        spectra = formats.read_spectra([path], threads=1, takes_negative=True)
        path = folder / "library.msp"
        path.write_text(_ENTRY, encoding="ascii")
        library = formats.libraries.reading.read_libraries([path])
        for similarity in ("entropy", "cosine"):
            parameters = library_search.parameters.LibrarySearchParameters().changed(
                similarity=similarity, precursor_tolerance="100 Da", minimum_matched_peaks=1
            )
            own = folder / similarity
            own.mkdir()
            library_search.references.save_references(library, own, parameters, resources)
            references = library_search.references.load_references(own)
            queries = library_search.queries.prepare_queries(spectra, references, parameters, resources)
            for plan in (library_search.queries.plan_same_mass, library_search.queries.plan_other_masses):
                library_search.scoring.score(plan(queries, references, parameters), references, resources)


def _use_prediction() -> None:
    """Predict a minimal library."""
    parameters, resources = (
        library_search.prediction_parameters.PredictionParameters().changed(variable_modifications="Oxidation (M)"),
        execution.resources.Resources(1),
    )
    with scratch_folder() as folder:
        path = folder / "proteins.fasta"
        path.write_text(">P\nMGASPVTCLINDQKEMHFRYWGASPVTK\n", encoding="ascii")
        indexes = peptides.indexes.build_indexes(peptides.indexes.Databases([path], [], {}), folder, parameters, resources)
        for _ in library_search.prediction.PredictedLibrary(indexes, parameters, resources).pieces():
            pass


PREDICTION = Kernels("kernels that predict spectral libraries", lambda: kernels.cpu.library_entries.predicted_peaks, _use_prediction)
LIBRARY = Kernels("kernels that search spectral libraries", lambda: kernels.cpu.library_search._search, _use)
