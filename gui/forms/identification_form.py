"""The page “New identification”."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QCheckBox, QWidget

from engine.identification.parameters import IdentificationParameters
from engine.jobs import Progress
from engine.parameters import SearchParameters
from gui.certainty import certainty_text
from gui.devices import DeviceSurvey
from gui.forms.file_list import FileList
from gui.forms.file_survey import DATABASE_SUFFIXES, SPECTRUM_SUFFIXES, FileSurvey, Survey
from gui.forms.search_form import Input, SearchForm, SearchRequest, file_patterns

__all__ = ["IdentificationForm", "IdentificationRequest"]


@dataclass(frozen=True)
class IdentificationRequest(SearchRequest):
    """Everything that an identification needs to run."""

    spectra: tuple[Path, ...]
    databases: tuple[Path, ...]
    parameters: IdentificationParameters
    skip_broken: bool

    def run(self, progress: Progress) -> Any:
        """Identify. What computes is imported here, in the background thread: it takes longer than opening the window."""
        progress.stage("Starting")
        from engine.identification.search import identify

        return identify(
            self.spectra,
            self.databases,
            self.project_folder,
            self.parameters,
            device=self.device,
            skip_broken=self.skip_broken,
            progress=progress,
        )

    @staticmethod
    def outcome(summary: Any, locale: QLocale) -> str:
        """Numbers of PSMs, peptides and proteins, each with how certain it is where the summary tells."""
        certainty = summary.certainty
        return ", ".join(
            f"{locale.toString(number)} {name}" + (f" ({_certainty(certainty[kind], locale)})" if kind in certainty else "")
            for kind, name, number in (
                ("psms", "PSMs", summary.n_psms),
                ("peptides", "peptides", summary.n_peptides),
                ("proteins", "proteins", summary.n_proteins),
            )
        )


def _certainty(count: Mapping[str, Any], locale: QLocale) -> str:
    return certainty_text(count["decoys"], count["false_share_low"], count["false_share_high"], locale)


class IdentificationForm(SearchForm):
    """The page: spectra, protein databases, and the parameters of an identification."""

    def __init__(self, survey: FileSurvey, devices: DeviceSurvey) -> None:
        self.spectra = FileList(
            "spectra",
            survey,
            [f"Spectra ({file_patterns(SPECTRUM_SUFFIXES)})"],
            "Drop mzML, mzXML, MGF, MS2, DTA or PKL files or a folder here, or add them below",
        )
        self.databases = FileList(
            "database",
            survey,
            [f"FASTA files ({file_patterns(DATABASE_SUFFIXES)})"],
            "Drop one or more FASTA files here, or add them below",
        )
        self.skip_broken = QCheckBox("Leave out spectra that cannot be read, and count them")
        super().__init__(
            "New identification",
            "identify",
            IdentificationParameters,
            "high-resolution",
            (
                Input("Spectra", self.spectra, "Add spectra", "A spectrum file cannot be used"),
                Input("Protein databases", self.databases, "Add a protein database", "A database cannot be used"),
            ),
            {"spectra": self.spectra, "databases": self.databases},
            devices,
            (self.skip_broken,),
        )

    def take(self, found: Survey, target: QWidget | None) -> None:
        """Add spectra and databases, each to its list."""
        self.spectra.take(found)
        self.databases.take(found)

    def _request(self, parameters: SearchParameters) -> IdentificationRequest:
        assert isinstance(parameters, IdentificationParameters)
        spectra = tuple(self.spectra.paths)
        title = f"Identify {spectra[0].name}" + (f" and {len(spectra) - 1} more" if len(spectra) > 1 else "")
        return IdentificationRequest(
            title,
            self.project_folder(),
            self.device.value(),
            spectra,
            tuple(self.databases.paths),
            parameters,
            self.skip_broken.isChecked(),
        )

    def _first_file(self) -> Path | None:
        return next(iter(self.spectra.paths), None)
