"""Entry of the structure search in the registry of searches."""

from proteoscope import engine
from proteoscope.engine import structure_search
from proteoscope.engine.entry import CachedIndexKind, Demo, Export, Input, Option, Search
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.structures.commands import COMMANDS

__all__ = ["STRUCTURE_SEARCH"]

_EPILOG = f"""
Queries and database: files ({format_names("structures")}, also gzipped), folders with all files in them, or a
list of files (.txt, one path per line). The name of a chain is the stem of its file, or stem:chain if the file has several chains;
QUERY.cif:B means only chain B, QUERY.cif all chains.
With --complexes FILE, the chains of a query's file are also searched together: each is matched to a different chain of the same target
file, and files are ranked by the sum over the matched chains, each superposed separately.

With --all, each chain of the database is compared with the following chains, in the order of the files. --clusters FILE groups the chains,
starting with the longest: each chain joins the representative with the highest TM-score, normalised by the longer chain, if this is at
least 0.5; otherwise it becomes a representative. With --project DIR, "export DIR --format figures" draws a map of all chains, ordered by
TM-score. The clusters and the map contain only pairs among the hits per query (at least a hundred are superposed); for more, raise
--hits-per-query.

Phase 1 aligns elements of secondary structure; chains that score less than QUALIFICATION_THRESHOLD of the query's score with itself
are rejected. Phase 2 aligns residues by their descriptors; a gap of k residues costs GAP_FIRST + (k - 1) * GAP_NEXT.

Sensitive mode: the score of two residues is the sum of log-odds, in bits, minus a constant. The log-odds of local conformation, of the
nearest neighbour in space with its position along the chain, of burial and of residue type are derived from superposed related chains. In
aligned related chains of a superfamily, 3 % of the bits come from the residue types; --weights 1,1,1,0 omits these. Secondary structure has
no weight here, since the conformation already contains it. The best hundred candidates of a query (more with --hits-per-query) are
superposed, and ranked by their TM-scores and z-scores.

Published mode: the score of two residues is the sum of exp(-(difference of Cα distances)^2), exp(-(difference of angles)^2), secondary
structure (1, 1/2, 0) and BLOSUM62 scaled to 0 to 1, as in Mrozek et al. (2014). Hits are ranked by the score. A quarter of the maximum
score of a pair comes from the sequence.

same_fold_probability is the probability that both chains have the same fold in SCOPe, from both TM-scores and the length, if one chain in
76 of the database has this fold; it is empty for chains under 30 residues. e_value is the expected number of unrelated chains with at least
this score in a database of this size; it is empty in the published mode and with other weights or gap costs.
The z-score is the number of standard deviations by which a score exceeds the scores of database chains of the same length with this query.
It is not a probability: of pairs with z-scores of 4 to 5, seven in eight have different folds. RMSD is computed over the aligned pairs.
x' = R x + t (rotation row by row, translation) moves the target onto the query. The CIGAR spans both chains.
"""


STRUCTURE_SEARCH: Search = Search(
    kind="structures",
    name="structure search",
    question="Which proteins have similar structures?",
    manual="structures",
    purpose="Find proteins with similar structures, and superpose them",
    description="Align every query structure with every chain of a database (GPU-CASSERT's two phases); report superposed hits.",
    epilog=_EPILOG,
    job="Search {queries} in {database}",
    icon="structure",
    parameters=lambda: structure_search.parameters.StructureSearchParameters,
    preset="standard",
    inputs=(
        Input(
            "queries",
            "Query structures",
            "structures",
            "QUERY",
            "files of structures, FILE:CHAIN, folders or lists of files",
            wanted="a query structure",
            singular="query",
            hint="files with the query structures",
            instead="all",
        ),
        Input(
            "database",
            "Structures to search in",
            "structures",
            "DATABASE",
            "a structure database, or files, folders or lists of files",
            option="--database",
            is_offered_again=True,
            wanted="structures to search in",
            singular="database",
            hint="a structure database, or files with structures,",
            second_content="structure database",
        ),
    ),
    options=(
        Option(
            "all",
            "Compare all chains of the database with each other",
            "compare the chains of the database with each other instead of queries, and report each pair once",
        ),
        Option(
            "superpose",
            "Write superposed hits into",
            "write the superposition of each hit: coordinates, alignment, PyMOL and ChimeraX scripts",
            metavar="DIR",
        ),
        Option(
            "complexes",
            "",
            "write a table of target files: all chains of a file are compared together and ranked by the sum of their scores",
            metavar="FILE",
            is_output_file=True,
        ),
        Option(
            "clusters",
            "",
            "with --all: write a table of clusters of chains with the same fold, by TM-score",
            metavar="FILE",
            is_output_file=True,
        ),
    ),
    shortcuts=("mode", "qualification_threshold", "weights", "hits_per_query"),
    writes="file",
    run=lambda request, progress: structure_search.search.find_structures(request, progress),
    modules=(lambda: structure_search.search,),
    tables=lambda: structure_search.tables.TABLES,
    stored=lambda: (structure_search.tables.CLUSTERS,),
    methods=lambda: structure_search.summary.methods,
    exports=(
        Export("tsv", "Table, tab-separated", lambda: structure_search.results.export_hits, (".tsv",)),
        Export("figures", "Map of folds of all chains", lambda: engine.views.fold_map.export_figures, has_figures=True),
    ),
    commands=COMMANDS,
    demo=Demo({"queries": ("albumin_domain_3.pdb.gz",), "database": ("folds.pdb.gz",)}, "standard"),
    workload_estimator=lambda: structure_search.workload.estimate_workload,
    workload_types=(
        ("structures", lambda: structure_search.scoring.StructureAgainstStructures),
        ("superpositions", lambda: structure_search.superposing.ChainsOnChains),
    ),
    keeps=(CachedIndexKind("structures", "chains of files, and descriptors of chains", "database"),),
)
