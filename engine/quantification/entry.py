"""Entry of quantification in the registry of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proteoscope import engine
from proteoscope.engine import quantification
from proteoscope.engine.entry import IDENTIFICATION_INPUT, IDENTIFICATION_TABLES, Demo, Export, Option, Search, SearchRequest
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Expectation
    from proteoscope.engine.quantification.summary import QuantificationSummary

__all__ = ["QUANTIFICATION"]

_EPILOG = """
The files of one identification, or of several runs (--run ID,ID), are quantified. A design assigns files to samples: a tab-separated table
with the columns file, sample, condition and replicate, and, for isobaric labels, channel. Several files of a sample are its fractions.
Without a design, each file, or each channel of each file, is a sample. With --experiment, the runs and the design are those of the
experiment of the project.

The run may also be an import, a spectral library search or a search for modified peptides. For an explanation of unidentified spectra, the
explained identification is quantified, with the additional spectra that resemble a peptide of the same mass.

--method counts uses numbers of spectra, label-free the areas of ion traces in MS1, tmt the reporter ions of isobaric labels (--label).
Conditions with at least two samples are compared by moderated t-tests, with false discovery rates by Benjamini and Hochberg.
"""


def _run(request: SearchRequest, progress: Progress) -> QuantificationSummary:
    folder = request.folder("report")
    summary = quantification.search.quantify(_with_experiment(request), progress)
    QUANTIFICATION.write_report(summary, folder, {"tsv": "", "matrix": "", "mztab": "quantification.mzTab"}, progress)
    return summary


def _with_experiment(request: SearchRequest, *, writes: bool = True) -> SearchRequest:
    """Return the request; if it has the option ``experiment``, add the runs and the design of the experiment to it.

    A module of the views adds them, since experiments are in a package above this one.
    """
    return engine.views.quantity_design.experiment_request(request, writes=writes) if request.options.get("experiment") else request


def _estimate(request: SearchRequest) -> Expectation:
    return quantification.workload.estimate_workload(_with_experiment(request, writes=False))


QUANTIFICATION = Search(
    kind="quantify",
    name="quantification",
    question="How much of each protein is there, and what changes?",
    manual="quantification",
    purpose="Quantify identified peptides and proteins by sample, and compare conditions",
    description="Quantify the peptides and proteins of identifications: ion traces or numbers of spectra.",
    epilog=_EPILOG,
    job="Quantify {project}",
    icon="quantify",
    parameters=lambda: quantification.parameters.QuantificationParameters,
    preset="label-free",
    inputs=(IDENTIFICATION_INPUT,),
    options=(
        Option(
            "design",
            "Design",
            "table of the samples with the columns file, sample, condition and replicate",
            metavar="FILE",
            editor="design",
        ),
        Option("experiment", "", "quantify all finished runs of the experiment of the project; its table of runs is the design"),
        Option("impurities", "Impurities", "table of the isotope impurities of the label's channels, in percent", metavar="FILE"),
        Option("report", "Tables and pages", "write tables and pages into this folder, created if missing", metavar="DIR"),
    ),
    methods=lambda: quantification.summary.methods,
    # The views are above this package, and are imported when pages are written.
    pages=lambda: engine.views.quantity_figures.write_pages,
    shortcuts=("run", "method", "label", "match_between_runs", "conditions"),
    writes="given project",
    run=_run,
    modules=(lambda: quantification.search,),
    workload_estimator=lambda: _estimate,
    tables=lambda: quantification.tables.RESULT_TABLES,
    stored=lambda: quantification.tables.STORED,
    accepted_runs=IDENTIFICATION_TABLES,
    exports=(
        Export("tsv", "Tables, tab-separated", lambda: quantification.export.export_tables),
        Export("matrix", "Quantities with a column for each sample, tab-separated", lambda: quantification.export.export_matrix),
        Export("msstats", "Ion traces or reporter ions for MSstats", lambda: quantification.msstats.export_msstats, (".tsv",)),
        Export(
            "msstats-ptm",
            "Modified and unmodified peptides for MSstatsPTM",
            lambda: quantification.msstats.export_msstats_ptm,
            files=("ptm.tsv", "protein.tsv"),
        ),
        Export(
            "figures",
            "Figures: volcano plots, heat map, samples, missing values",
            lambda: engine.views.quantity_figures.export_figures,
            has_figures=True,
        ),
        Export("mztab", "Proteins and peptidoforms, mzTab", lambda: quantification.mztab.export_mztab, (".mzTab", ".mztab")),
    ),
    demo=Demo({}, "tmt", after="identify", data="simulated", options={"design": "simulated_tmt10_design.tsv"}),
    more_demos=(Demo({}, "label-free", after="identify", options={"design": "albumin_design.tsv"}),),
)
