"""Entry of the sequence search in the registry of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proteoscope.engine import sequence_search
from proteoscope.engine.entry import CachedIndexKind, Demo, Export, Input, Option, Search, SearchRequest
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.sequence_search.search import SequenceSearchSummary

__all__ = ["SEQUENCE_SEARCH"]

_EPILOG = """
Gaps: a gap of k residues costs GAP_OPEN + k * GAP_EXTEND, as in BLAST (with 11 and 1, the first residue costs 12). The default costs are
those that NCBI recommends for the matrix; without a recommendation, they are 11 and 1.

Residues: upper or lower case. U, O and J count as X. B, Z, X and * have the scores of the matrix; if it has none, B and Z count as X, X
scores -1 with everything, and * has the minimum score of the matrix. A * at the end of a sequence, digits, blanks and gaps (- and .) are
left out.

Matrices: BLOSUM30 to BLOSUM100, BLOSUMN, PAM10 to PAM500, DAYHOFF, GONNET, IDENTITY, or a file in NCBI's format (whole numbers).

E-values: lambda and K are from NCBI's tables (BLOSUM45, 50, 62, 80, 90; PAM30, 70, 250; IDENTITY), with the finite-size correction of
BLAST. For other matrices or gap costs they are fitted to the scores of the search, or to those of random sequences if the search has too
few unrelated pairs; the log then contains a message.

Devices: cpu; cuda, the first usable GPU; cuda:N; all, every usable GPU and the CPU together, each with a share in proportion to its
measured speed; auto, every usable GPU, or the CPU if there is no GPU or if the CPU finishes before a GPU would be ready.

Formats: tsv (with a header; positions from 1; identity and coverages from 0 to 1), blast6 (BLAST's -outfmt 6), sam, fasta (the two
sequences of each alignment, with gaps), clustal (an alignment for each hit), html (a page with tables and alignments). In stockholm, a3m,
phylip and clustal-stack, hits are stacked below their query, each as aligned with it; the last three contain the hits of one query only.
maf and psl contain aligned pairs with their positions in the whole sequences.
"""


def _run(request: SearchRequest, progress: Progress) -> SequenceSearchSummary:
    return sequence_search.search.align(request, progress)


def _export(name: str, title: str, *endings: str) -> Export:
    return Export(name, title, lambda: sequence_search.export.export_hits, endings, has_queries=True)


SEQUENCE_SEARCH: Search = Search(
    kind="align",
    name="sequence search",
    question="Which proteins have similar sequences?",
    manual="sequences",
    purpose="Find similar proteins in a database with Smith-Waterman alignments",
    description="Align every query with every sequence of a database (Smith-Waterman, without heuristics); report hits with E-values.",
    epilog=_EPILOG,
    job="Search {queries} in {database}",
    icon="search",
    parameters=lambda: sequence_search.parameters.SequenceSearchParameters,
    preset="standard",
    inputs=(
        Input(
            "queries",
            "Queries",
            "proteins",
            "QUERY",
            f"file with one or more proteins ({format_names('proteins')}), also gzipped",
            can_be_pasted=True,
            singular="query",
            hint="files with the query proteins",
        ),
        Input(
            "database",
            "Protein databases",
            "proteins",
            "DATABASE",
            f"files with proteins ({format_names('proteins')}), also gzipped",
            is_offered_again=True,
            wanted="a protein database",
            singular="database",
            hint="the files of proteins to search in",
        ),
    ),
    options=(
        Option(
            "all_scores",
            "",
            "write the scores of all pairs: int32 (queries, subjects), in file order",
            metavar="FILE.npy",
            is_output_file=True,
        ),
    ),
    shortcuts=("matrix", "gap_open", "gap_extend", "maximum_e_value", "hits_per_query", "statistics"),
    writes="file",
    run=_run,
    modules=(lambda: sequence_search.search,),
    tables=lambda: sequence_search.tables.TABLES,
    stored=lambda: sequence_search.tables.STORED,
    methods=lambda: sequence_search.summary.methods,
    exports=(
        _export("tsv", "Table, tab-separated", ".tsv"),
        _export("blast6", "Table as BLAST's format 6, without a header", ".blast6", ".b6", ".m8"),
        _export("sam", "Alignments as SAM", ".sam"),
        _export("fasta", "Aligned sequences as FASTA", ".fasta", ".fa", ".faa"),
        _export("clustal", "Alignments as Clustal", ".aln", ".clustal"),
        _export("html", "Page to read and print, HTML", ".html", ".htm"),
        _export("stockholm", "Hits stacked below their queries, Stockholm", ".sto", ".stk", ".stockholm"),
        _export("a3m", "Hits stacked below one query, A3M", ".a3m"),
        _export("phylip", "Hits stacked below one query, PHYLIP", ".phy", ".phylip"),
        _export("clustal-stack", "Hits stacked below one query, Clustal", ".clw"),
        _export("maf", "Alignments as MAF", ".maf"),
        _export("psl", "Alignments as PSL", ".psl"),
    ),
    demo=Demo({"queries": ("protein_queries.fasta",), "database": ("18Protein_SoCe_Tr_detergents_trace.fasta.gz",)}, "standard"),
    workload_estimator=lambda: sequence_search.workload.estimate_workload,
    workload_types=(("sequences", lambda: sequence_search.scoring.SequencesAgainstSequences),),
    keeps=(CachedIndexKind("sequences", "packed sequences", "database"),),
)
