"""Entry of the open modification search in the list of searches."""

from dataclasses import replace

from proteoscope.engine import matches, modified_search
from proteoscope.engine.entry import DATABASE_INPUT, SPECTRA_INPUT, STRICT_OPTION, CachedIndexKind, Demo, Export, Option, Search
from proteoscope.engine.matches.exports import (
    MATCH_FILES,
    MATCH_TABLE_FILES,
    PERCOLATOR_INPUT,
    PLACES_ON_GENOMES,
    SITE_TABLE_FILES,
    SITES_FOR_PERSEUS,
    SPECTRAL_LIBRARIES,
)
from proteoscope.engine.matches.kinds import FRAGMENT_INDEX, SPECTRA

__all__ = ["MODIFIED_SEARCH"]

_EPILOG = """
Finds peptides with modifications that no list contains. For each spectrum, the peptides that share most fragment masses with it are
selected, even if their masses differ from the precursor mass (within --mass-shift=LOW..HIGH). The best of them are scored with the
difference on each residue. The difference gets the name of a modification if mass and site match one. Error rates are estimated separately
for matches without a shift, with a named shift, and with another shift.

--from-project DIR searches the spectra that an identification left unidentified, in the proteins that it found, or in --database.
--published computes the score of the thesis from the matching masses alone.
"""


MODIFIED_SEARCH = Search(
    kind="modified",
    name="search for modified peptides",
    question="Which unexpected modifications are present?",
    manual="modified",
    purpose="Find peptides with unexpected modifications",
    description="Find modified peptides in tandem mass spectra. Results go into a project folder: exports/*.tsv, run.json.",
    epilog=_EPILOG,
    job="Find modified peptides in {spectra}",
    icon="spectrum",
    parameters=lambda: modified_search.parameters.ModifiedSearchParameters,
    preset="standard",
    inputs=(
        replace(SPECTRA_INPUT, instead="from_project"),
        replace(DATABASE_INPUT, instead="from_project"),
    ),
    options=(
        STRICT_OPTION,
        Option(
            "from_project",
            "Project whose unidentified spectra are searched",
            "search the spectra that an identification in this project left unidentified",
            metavar="DIR",
            is_project=True,
        ),
        Option("run", "Identification", "identification in the project of --from-project (default: the newest)", metavar="RUN"),
    ),
    shortcuts=("mass_shift", "hits_per_spectrum"),
    writes="project",
    run=lambda request, progress: modified_search.search.find_modified(request, progress),
    modules=(lambda: modified_search.search, lambda: modified_search.error_rates, lambda: matches.run_tables),
    tables=lambda: modified_search.tables.TABLES,
    stored=lambda: modified_search.tables.STORED,
    advising=lambda: matches.preset_advice.advise,
    methods=lambda: modified_search.summary.methods,
    exports=(
        Export(
            "tsv",
            "Tables, tab-separated",
            lambda: modified_search.results.export_modified_tables,
            files=(*MATCH_TABLE_FILES, "modifications.tsv", *SITE_TABLE_FILES),
            has_acceptance=True,
        ),
        *MATCH_FILES,
        PERCOLATOR_INPUT,
        SITES_FOR_PERSEUS,
        *PLACES_ON_GENOMES,
        *SPECTRAL_LIBRARIES,
    ),
    demo=Demo({}, "low-resolution", after="identify"),
    more_demos=(Demo({}, "tmt", after="identify", data="simulated"),),
    workload_estimator=lambda: modified_search.workload.estimate_workload,
    workload_types=(
        SPECTRA,
        FRAGMENT_INDEX,
        ("mass-lists", lambda: modified_search.candidate_search.SpectraAgainstMassLists),
    ),
    keeps=(CachedIndexKind("peptides", "peptide indexes", "database"),),
)
