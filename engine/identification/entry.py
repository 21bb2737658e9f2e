"""The entry of the identification in the list of searches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope.engine.entry import LIBRARY_EXPORTS, Demo, Export, ExportRequest, Input, KeptKind, Option, Search, SearchRequest
from proteoscope.engine.formats.registry import names_of
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.identification.search import IdentificationSummary
    from proteoscope.engine.project import Project

__all__ = ["IDENTIFICATION"]


def _run(request: SearchRequest, progress: Progress) -> IdentificationSummary:
    from proteoscope.engine.identification.search import identify

    return identify(request, progress)


def _export(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    from proteoscope.engine.matches.run_exporting import export_run

    return export_run(project, request, progress)


IDENTIFICATION = Search(
    kind="identify",
    name="identification",
    question="What is in my sample?",
    manual="identification",
    purpose="Identify peptides and proteins from tandem mass spectra",
    description="Identify peptides and proteins. Results go into a project folder: exports/*.tsv for people, run.json for scripts.",
    job="Identify {spectra}",
    icon="spectrum",
    parameters="proteoscope.engine.identification.parameters:IdentificationParameters",
    preset="high-resolution",
    inputs=(
        Input("spectra", "Spectra", "spectra", "SPECTRA", one="spectrum file"),
        Input(
            "database", "Protein databases", "proteins", "PROTEINS",
            f"protein sequences ({names_of('proteins')}); may be given several times",
            option="--database", is_kept=True, wanted="a protein database", one="database",
            hint=f"one or more databases ({names_of('proteins')})",
        ),
    ),
    options=(
        Option(
            "skip_broken", "Leave out spectra that cannot be read, and count them", "leave out spectra that cannot be read, and count them"
        ),
    ),
    writes="project",
    run=_run,
    kernels=(
        "proteoscope.engine.identification.compilation:SCORING", "proteoscope.engine.identification.compilation:FRAGMENT_INDEX",
        "proteoscope.engine.identification.compilation:KNOWN_FORMS", "proteoscope.engine.formats.compilation:TRANSLATION",
    ),
    modules=("proteoscope.engine.identification.search", "proteoscope.engine.matches.tables", "proteoscope.engine.matches.scoring", "proteoscope.engine.matches.exporting"),
    tables="proteoscope.engine.identification.tables:TABLES",
    stored="proteoscope.engine.identification.tables:STORED",
    advising="proteoscope.engine.matches.preset_advice:advise",
    methods="proteoscope.engine.matches.methods_paragraph:spectrum_search_methods",
    exports=(
        Export("tsv", "Tables, tab-separated"),
        Export("mzid", "mzIdentML", (".mzid",)),
        Export("pepxml", "pepXML", (".pep.xml", ".pepxml")),
        Export("pin", "Features for Percolator and mokapot", (".pin",)),
        Export("gff3", "Places on the genome, GFF3", (".gff3", ".gff")),
        Export("bed", "Places on the genome, BED", (".bed",)),
        *LIBRARY_EXPORTS,
    ),
    export=_export,
    demo=Demo({"spectra": "BSA1.mzML.gz", "database": "18Protein_SoCe_Tr_detergents_trace.fasta.gz"}, "low-resolution"),
    expecting="proteoscope.engine.identification.expecting",
    work=(
        ("spectra", "proteoscope.engine.matches.spectrum_scoring:SpectraAgainstPeptides"),
        ("fragment-index", "proteoscope.engine.matches.fragment_scoring:SpectraAgainstFragments"),
    ),
    keeps=(KeptKind("peptides", "peptide indexes"),),
    identifies=True,
)  # fmt: skip
