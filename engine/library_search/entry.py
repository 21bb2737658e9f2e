"""Entry of the spectral library search in the list of searches."""

from proteoscope.engine import library_search, matches
from proteoscope.engine.entry import SPECTRA_INPUT, STRICT_OPTION, CachedIndexKind, Demo, Export, Input, Search
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.library_search.commands import COMMANDS
from proteoscope.engine.matches.exports import MATCH_FILES, MATCH_TABLE_FILES, SITE_TABLE_FILES, SITES_FOR_PERSEUS, SPECTRAL_LIBRARIES

__all__ = ["LIBRARY_SEARCH"]

_EPILOG = """
Each spectrum is compared with the library entries of the same mass (--precursor-tolerance "10 ppm"), by the spectral entropy or the cosine
of their peaks (--similarity). With a tolerance wider than 3 Da ("200 Da"), modified peptides and related compounds are found too: fragments
may be at the m/z of the entry, or shifted by the mass difference. If a modification has this mass difference, its name is given.

Error rates are estimated with the library's own decoys or with shuffled peptides, separately for matches of the same mass and of another
mass. For a library of small molecules without decoys, the summary reports that error rates are unknown. With --database, peptides are
mapped to proteins.
"""


LIBRARY_SEARCH = Search(
    kind="library",
    name="library search",
    question="Which spectra match a library?",
    manual="library_search",
    purpose="Search spectral libraries of peptides or small molecules",
    description="Search spectral libraries. Results are written into a project folder: exports/*.tsv for people, run.json for scripts.",
    epilog=_EPILOG,
    job="Search {spectra} in {library}",
    icon="spectrum",
    parameters=lambda: library_search.parameters.LibrarySearchParameters,
    preset="high-resolution",
    demo=Demo(
        {"spectra": ("BSA1.mzML.gz",), "library": ("bsa_library.msp.gz",), "database": ("albumin_proteins.fasta.gz",)},
        "low-resolution",
    ),
    inputs=(
        SPECTRA_INPUT,
        Input(
            "library",
            "Spectral libraries",
            "libraries",
            "LIBRARY",
            f"spectral library ({format_names('libraries')}, or MGF with SEQ= or NAME= lines); may be given several times",
            option="--library",
            is_offered_again=True,
            wanted="a spectral library",
            singular="library",
            hint=f"one or more libraries ({format_names('libraries')}, or MGF with SEQ= or NAME= lines)",
        ),
        Input(
            "database",
            "Protein databases",
            "proteins",
            "FASTA",
            "proteins to which peptides are mapped; may be given several times",
            option="--database",
            is_offered_again=True,
            wanted="a protein database",
            singular="database",
            hint="FASTA files with the proteins of the peptides",
            is_optional=True,
        ),
    ),
    options=(STRICT_OPTION,),
    shortcuts=("precursor_tolerance", "fragment_tolerance", "similarity", "decoys"),
    writes="project",
    run=lambda request, progress: library_search.search.search_library(request, progress),
    modules=(lambda: library_search.search, lambda: library_search.results, lambda: matches.run_tables),
    workload_estimator=lambda: library_search.workload.estimate_workload,
    tables=lambda: library_search.tables.TABLES,
    stored=lambda: library_search.tables.STORED,
    methods=lambda: library_search.summary.methods,
    exports=(
        Export(
            "tsv",
            "Tables, tab-separated",
            lambda: library_search.results.export_library_tables,
            files=(*MATCH_TABLE_FILES, "matches.tsv", *SITE_TABLE_FILES),
        ),
        *MATCH_FILES,
        SITES_FOR_PERSEUS,
        *SPECTRAL_LIBRARIES,
    ),
    commands=COMMANDS,
    workload_types=(("library-spectra", lambda: library_search.scoring.SpectraAgainstReferences),),
    keeps=(CachedIndexKind("library", "spectral libraries", "library"),),
    identifies=True,
)
