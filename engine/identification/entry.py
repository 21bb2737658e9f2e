"""Entry of the identification in the registry of searches."""

from proteoscope.engine import identification, matches
from proteoscope.engine.entry import DATABASE_INPUT, SPECTRA_INPUT, STRICT_OPTION, CachedIndexKind, Demo, Option, Search
from proteoscope.engine.matches.exports import (
    MATCH_AND_SITE_TABLES,
    MATCH_FILES,
    PERCOLATOR_INPUT,
    PLACES_ON_GENOMES,
    SITES_FOR_PERSEUS,
    SPECTRAL_LIBRARIES,
)
from proteoscope.engine.matches.kinds import FRAGMENT_INDEX, SPECTRA

__all__ = ["IDENTIFICATION"]


IDENTIFICATION = Search(
    kind="identify",
    name="identification",
    question="Which peptides and proteins are in my sample?",
    manual="identification",
    purpose="Identify peptides and proteins from tandem mass spectra",
    description="Identify peptides and proteins. Results go into a project folder: exports/*.tsv for people, run.json for scripts.",
    job="Identify {spectra}",
    icon="spectrum",
    parameters=lambda: identification.parameters.IdentificationParameters,
    preset="high-resolution",
    inputs=(
        SPECTRA_INPUT,
        DATABASE_INPUT,
    ),
    options=(
        STRICT_OPTION,
        Option(
            "advice",
            "",
            "search for causes of few identifications: brief, in a tenth of the run's time (default); full; or none",
            metavar="brief|full|none",
            choices=("brief", "full", "none"),
        ),
    ),
    writes="project",
    run=lambda request, progress: identification.search.identify(request, progress),
    modules=(lambda: identification.search, lambda: matches.tables, lambda: matches.scoring, lambda: matches.run_tables),
    tables=lambda: identification.tables.TABLES,
    stored=lambda: identification.tables.STORED,
    advising=lambda: matches.preset_advice.advise,
    methods=lambda: matches.methods_paragraph.spectrum_search_methods,
    exports=(
        MATCH_AND_SITE_TABLES,
        *MATCH_FILES,
        PERCOLATOR_INPUT,
        SITES_FOR_PERSEUS,
        *PLACES_ON_GENOMES,
        *SPECTRAL_LIBRARIES,
    ),
    demo=Demo({"spectra": ("BSA1.mzML.gz", "BSA2.mzML.gz", "BSA3.mzML.gz"), "database": ("albumin_proteins.fasta.gz",)}, "low-resolution"),
    more_demos=(
        Demo({"spectra": ("simulated_tmt10.mzML.gz",), "database": ("simulated_tmt10_proteins.fasta.gz",)}, "tmt", data="simulated"),
    ),
    workload_estimator=lambda: identification.workload.estimate_workload,
    advise_later=lambda: identification.advice.advise,
    workload_types=(SPECTRA, FRAGMENT_INDEX),
    keeps=(CachedIndexKind("peptides", "peptide indexes", "database"),),
    identifies=True,
)
