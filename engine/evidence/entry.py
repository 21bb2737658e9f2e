"""Entry of evidence on structures in the list of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proteoscope import engine
from proteoscope.engine import evidence, sequence_search, structure_search
from proteoscope.engine.entry import IDENTIFICATION_INPUT, IDENTIFICATION_TABLES, Demo, Export, Input, Option, Search, SearchRequest
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.evidence.summary import EvidenceSummary

__all__ = ["EVIDENCE"]

_EPILOG = """
The peptides of an identification are mapped onto their proteins. The run may also be an import, a search for modified peptides, or an
explanation of unidentified spectra. The proteins are aligned with every chain of the structures (Smith-Waterman, BLOSUM62, gap costs 11/1),
and properties of the residues of the most similar chains are transferred to the proteins. The results are coverage; uncovered regions, with
enzymes that would cover them; modified residues, with their exposure and their neighbours; pairs of lysines and modified residues that are
close enough for contact; and proteins that share peptides. --homologues adds the conservation of residues, and --remote-chains adds chains
that are similar only in fold.

Exposure is computed for the isolated chain, from all of its atoms (Shrake & Rupley); it is not available for files with only Cα atoms.
"""


def _run(request: SearchRequest, progress: Progress) -> EvidenceSummary:
    folder = request.folder("report")
    summary = evidence.search.find_evidence(request, progress)
    EVIDENCE.write_report(summary, folder, {}, progress)
    return summary


EVIDENCE = Search(
    kind="evidence",
    name="evidence on structures",
    question="Where do my peptides lie on a structure?",
    manual="evidence",
    purpose="Map identified peptides and modified residues onto the structures of their proteins",
    description="Map the peptides of an identification onto their proteins, and these onto the most similar structures of a database.",
    epilog=_EPILOG,
    job="Show {project} on {structures}",
    icon="evidence",
    parameters=lambda: evidence.parameters.EvidenceParameters,
    preset="standard",
    inputs=(
        IDENTIFICATION_INPUT,
        Input(
            "structures",
            "Structures",
            "structures",
            "STRUCTURES",
            "a structure database, or files, folders or lists of files",
            option="--structures",
            is_offered_again=True,
            wanted="structures to show the peptides on",
            singular="database",
            hint="a structure database, or files with structures,",
            second_content="structure database",
        ),
        Input(
            "homologues",
            "Homologues",
            "proteins",
            "FASTA",
            "sequences among which homologues of the proteins are found, for the conservation of their residues",
            option="--homologues",
            is_offered_again=True,
            is_optional=True,
            wanted="sequences to find homologues among",
            singular="database",
        ),
    ),
    options=(Option("report", "Pages of proteins", "write a page for each protein into this folder, created if missing", metavar="DIR"),),
    methods=lambda: evidence.summary.methods,
    # The views are above this package, and are imported when pages are written.
    pages=lambda: engine.views.evidence_pages.write_pages,
    shortcuts=("run", "proteins", "chains_per_protein", "maximum_e_value", "remote_chains"),
    accepted_runs=IDENTIFICATION_TABLES,
    writes="given project",
    run=_run,
    modules=(lambda: evidence.search,),
    workload_estimator=lambda: evidence.workload.estimate_workload,
    tables=lambda: evidence.tables.TABLES,
    stored=lambda: evidence.tables.STORED,
    exports=(
        Export("tsv", "Tables, tab-separated", lambda: evidence.export.export_tables),
        Export("gff3", "Peptides and modified residues along proteins (GFF3)", lambda: evidence.export.export_gff3, (".gff3", ".gff")),
        Export(
            "structures",
            "Structures with their coverage, for PyMOL, ChimeraX and others",
            lambda: evidence.export.export_structures,
            structure_folders=lambda project, run: evidence.export.recorded_folders(project, run),
        ),
    ),
    # An identification of so few spectra has no modified residue, but the search of its unidentified spectra has some.
    demo=Demo({"structures": ("1ao6_A.pdb.gz",)}, "standard", after="modified"),
    workload_types=(*sequence_search.SEQUENCE_SEARCH.workload_types, *structure_search.STRUCTURE_SEARCH.workload_types),
)
