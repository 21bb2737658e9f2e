"""Estimated workload of an identification, computed from its request."""

from pathlib import Path

from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import LOCALISE_SECONDS, Expectation
from proteoscope.engine.formats.sizes import InputSize, input_size
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.localisation import is_localised
from proteoscope.engine.matches.workload import estimate_peptides, estimate_scoring

__all__ = ["estimate_workload", "expectation"]

_READ, _INDEX, _PREPARE, _REPORT = 1.4e-8, 4e-7, 6e-5, 1.1e-4  # s per byte, per peptide, per spectrum, and per reported spectrum
_MEASURE, _SECOND_PASS = 4e-5, 0.4  # s per measured match; maximum work of the second pass as a multiple of the first
_CHARGES_OF_QUERY = 1.05
_PEPTIDE_BYTES, _SPECTRUM_BYTES = 60.0, 1500.0  # pages of memory-mapped files count once they are read


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(IdentificationParameters)
    spectra = input_size(request.files("spectra"))
    database = input_size([*request.files("database"), *(Path(contaminant) for contaminant in parameters.contaminants)])
    return expectation(spectra, database, parameters)


def expectation(spectra: InputSize, database: InputSize, parameters: IdentificationParameters) -> Expectation:
    """Return the estimated workload of an identification, given the sizes of spectrum files and databases."""
    peptides = estimate_peptides(database, parameters)
    queries = spectra.records * _CHARGES_OF_QUERY * (1.0 + _SECOND_PASS * parameters.second_pass)
    work, candidates = estimate_scoring(queries, peptides, parameters, len(parameters.variable_modifications))
    host = {
        "read": spectra.unpacked * _READ,
        "index": peptides * _INDEX,
        "plan": spectra.records * _PREPARE,
        "score": spectra.records * _MEASURE,
        "report": spectra.records * _REPORT,
    }
    if any(is_localised(modification, parameters.localise) for modification in map(parse_modification, parameters.variable_modifications)):
        host["localise"] = spectra.records * LOCALISE_SECONDS
    counts = {"spectra": spectra.records, "residues": database.residues, "peptides": peptides, "candidates": candidates * queries}
    memory = peptides * _PEPTIDE_BYTES + spectra.records * _SPECTRUM_BYTES + spectra.held_bytes
    return Expectation((work,), host, counts, memory)
