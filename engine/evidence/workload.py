"""Estimated workload of mapping a project's peptides onto structures, from its records and the structure files."""

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation
from proteoscope.engine.evidence.identified_peptides import OTHER_SHOWN_KINDS
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.formats.sizes import InputSize, input_size
from proteoscope.engine.matches.recorded_counts import recorded_counts
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search.workload import estimate_scoring
from proteoscope.engine.structure_search.structures import chain_input, check_sources
from proteoscope.engine.structure_search.workload import estimate_chains, estimate_workloads

__all__ = ["estimate_workload"]

_USUAL_PROTEINS, _LENGTH = 500.0, 450.0
_FILE, _ALIGNED = 0.02, 1e-3  # s per file read, and per pair aligned and written
_PROTEIN = 1.5e-3  # s per protein, for its tables
_STACKED, _RESIDUE = 1e-4, 1.2e-8  # s per homologue in a stack, and per byte of sequences read
_QUERY = 0.05  # s per chain searched by structure


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`).

    Raises
    ------
    InputError
        If the folder is not a project, or there are no structures.
    """
    parameters = request.parameters_as(EvidenceParameters)
    (folder,) = request.files("project")[:1]
    counts = recorded_counts(Project.open(folder), parameters.run, OTHER_SHOWN_KINDS)
    proteins = float(len(parameters.proteins) or counts.get("proteins", _USUAL_PROTEINS))
    source = chain_input(request.inputs.get("structures", ()))
    check_sources(source.files)
    chains = estimate_chains(source)
    queries, subjects = (InputSize(1, 0, n * _LENGTH, n, n * _LENGTH, (round(_LENGTH),)) for n in (proteins, chains))
    workloads = [estimate_scoring(queries, subjects)]
    aligned = proteins * min(chains, parameters.chains_per_protein)
    host = {
        "read": proteins * _PROTEIN,
        "index": len(source.files) * _FILE,
        "plan": 0.1,
        "report": proteins * _PROTEIN + aligned * _ALIGNED + min(aligned, float(len(source.files))) * _FILE,
    }
    memory = chains * _LENGTH * 40
    if request.inputs.get("homologues"):
        others = input_size(request.files("homologues"))
        workloads.append(estimate_scoring(queries, others))
        homologues = proteins * min(others.records, parameters.homologues_per_protein)
        host["index"] += others.unpacked * _RESIDUE
        host["report"] += homologues * (_ALIGNED + _STACKED)
        memory += 2 * others.unpacked
    if parameters.remote_chains:
        workloads += estimate_workloads(proteins, chains)
        host["report"] += proteins * _QUERY
    return Expectation(tuple(workloads), host, {"proteins": proteins, "chains": chains}, memory)
