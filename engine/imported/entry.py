"""Entry of the import of results in the list of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proteoscope.engine import imported, matches
from proteoscope.engine.entry import STRICT_OPTION, Demo, Input, Search, SearchRequest
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.exports import MATCH_AND_SITE_TABLES, MATCH_FILES, PERCOLATOR_INPUT, SITES_FOR_PERSEUS, SPECTRAL_LIBRARIES

if TYPE_CHECKING:
    from proteoscope.engine.imported.summary import ImportSummary

__all__ = ["IMPORT"]

_EPILOG = f"""
Results of other search engines become a run, with annotated spectra, tables, filters and exports. Formats:
{format_names("identifications")}.

Spectra are found by native id, scan number or title, in this order; if a file has none of these, by index, or by retention time and m/z.
Matches without a spectrum are counted, and listed in exports/left_out.tsv. q-values are taken from the file, or else are computed from its
decoys; without decoys there are none. The summary shows the source of the q-values. With --database, peptides are mapped to the sequences.
Several files of one format form one run.
"""


def _run(request: SearchRequest, progress: Progress) -> ImportSummary:
    return imported.search.import_results(request, progress)


IMPORT = Search(
    kind="import",
    name="import of results",
    question="What did another search engine find?",
    manual="imported",
    purpose="Import the results of another search engine",
    description="Import results of another search engine into a project folder: exports/*.tsv for people, run.json for scripts.",
    epilog=_EPILOG,
    job="Import {results}",
    icon="results",
    parameters=lambda: imported.parameters.ImportParameters,
    preset="high-resolution",
    inputs=(
        Input("results", "Results", "identifications", "RESULTS", singular="file of results", wanted="results of a search engine"),
        Input(
            "spectra",
            "Spectra",
            "spectra",
            "RUN",
            "searched spectrum files, one or several; RESULTS must precede this option",
            option="--spectra",
            singular="spectrum file",
            in_a_row=True,
        ),
        Input(
            "database",
            "Protein databases",
            "proteins",
            "FASTA",
            "the sequences of the proteins; may be given several times",
            option="--database",
            is_offered_again=True,
            wanted="a protein database",
            singular="database",
            hint="FASTA files with the proteins of the peptides",
            is_optional=True,
        ),
    ),
    options=(STRICT_OPTION,),
    writes="project",
    run=_run,
    modules=(lambda: imported.search, lambda: matches.match_lists.tables, lambda: matches.run_tables),
    demo=Demo(
        {
            "results": ("BSA1_comet.pep.xml.gz", "BSA2_comet.pep.xml.gz", "BSA3_comet.pep.xml.gz"),
            "spectra": ("BSA1.mzML.gz", "BSA2.mzML.gz", "BSA3.mzML.gz"),
            "database": ("albumin_proteins.fasta.gz",),
        },
        "low-resolution",
    ),
    workload_estimator=lambda: imported.workload.estimate_workload,
    tables=lambda: imported.tables.TABLES,
    stored=lambda: imported.tables.STORED,
    advising=lambda: matches.preset_advice.advise,
    methods=lambda: imported.summary.methods,
    exports=(MATCH_AND_SITE_TABLES, *MATCH_FILES, PERCOLATOR_INPUT, SITES_FOR_PERSEUS, *SPECTRAL_LIBRARIES),
    identifies=True,
)
