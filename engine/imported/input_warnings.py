"""Warnings about imported results: whose the q-values are, what is left out, and what does not fit the spectra or the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proteoscope.engine.formats import Proteins
from proteoscope.engine.imported.reading import describe_unread
from proteoscope.engine.imported.summary import rate_sources
from proteoscope.engine.imported.tables import LEFT_OUT_FILE
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.listed.identifications import Identifications
from proteoscope.engine.matches.listed.matches import ListedMatches
from proteoscope.engine.matches.listed.places import cut_off_proteins
from proteoscope.engine.matches.listed.references import FoundSpectra
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.imported.results import WrittenImport

__all__ = ["warn_of_import"]

_FAR = 5.0  # dalton: no isotope and no rounding makes a precursor differ so from its peptide
_MAXIMUM_SHOWN = 5


def warn_of_import(
    found: Identifications,
    matches: ListedMatches,
    in_spectra: FoundSpectra,
    database: Proteins | None,
    written: WrittenImport,
    score: str,
    spectra: Sequence[str | Path],
    progress: Progress,
) -> None:
    """Show whose the q-values are, and what the user may have to correct.

    Parameters
    ----------
    score : title of the score that ranks. spectra : files.
    """
    progress.message(f"{rate_sources(written.source_of, score)}. Matched ions, mass errors, ranks and protein groups are computed here.")
    if found.format == "Percolator or mokapot" and written.source_of["psms"] == "decoys":
        progress.message(
            f"Features for Percolator or mokapot (.pin) carry no q-values. Those here rest on one of them, {score}, and accept "
            "fewer than rescoring does: for its q-values import the table of PSMs, mzIdentML or pepXML",
            "warning",
        )
    places = describe_unread(found)
    for reason, n in written.left_out.items():
        where = f" ({places[reason]})" if reason in places else ""
        left_out = f"{counted(n, 'match', 'matches')} left out, listed in {EXPORTS}/{LEFT_OUT_FILE}"
        progress.message(f"{left_out}: {reason}{where}", "warning")
    if in_spectra.ignores_files:
        progress.message(f"The results name another file of spectra than {Path(spectra[0]).name}; that is taken for it", "warning")
    if matches.unknown:
        names = ", ".join(list(matches.unknown)[:_MAXIMUM_SHOWN])
        progress.message(f"Modifications that are not known: {names:.300}", "warning")
    _warn_of_database(found, matches, database, progress)
    _warn_of_masses(found, matches, progress)
    for warning in [] if database is None else cut_off_proteins(found, database):
        progress.message(warning, "warning")


def _warn_of_database(found: Identifications, matches: ListedMatches, database: Proteins | None, progress: Progress) -> None:
    """Show how many proteins are not in the database, and how many peptides are found there only."""
    used = np.unique(matches.protein)
    n_unplaced = int(np.count_nonzero(matches.places.row[used] < 0))
    if database is not None and n_unplaced:
        progress.message(
            f"{n_unplaced:,} of {len(used):,} proteins of the results are not in the database, and have no coverage", "warning"
        )
    if matches.places.from_database:
        progress.message(f"The results name no protein of {matches.places.from_database:,} peptides, which are found in the database")


def _warn_of_masses(found: Identifications, matches: ListedMatches, progress: Progress) -> None:
    """Warn of peptides whose mass is another one in the results, and of precursors far from their peptides."""
    difference = found.calculated_mass[matches.row] - matches.calculated_mass
    # Some files give the mass of the ion with one proton.
    apart = np.minimum(np.abs(difference), np.abs(found.calculated_mass[matches.row] - 1.007276 - matches.calculated_mass))
    is_other = np.isfinite(apart) & (apart > 0.02)
    if is_other.any():
        progress.message(
            f"{int(is_other.sum()):,} peptides weigh another mass in the results than their residues and modifications do (most "
            f"{float(np.median(difference[is_other])):+.4f} Da): a modification that the file leaves unsaid goes into fixed_modifications",
            "warning",
        )
    is_far = np.abs(matches.observed_mass - matches.calculated_mass) > _FAR
    if is_far.mean() > 0.5:
        progress.message(
            f"{int(is_far.sum()):,} precursors are more than {_FAR:g} Da from their peptides: are these the spectra that were searched?",
            "warning",
        )
