"""Results of a search that explains unidentified spectra: the table of explained spectra, and the points of the LC-MS map."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proteoscope.engine.clustering.explained_spectra import Explained
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.clustering.tables import EXPLAINED, MAP
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.identified_spectra import Identified
from proteoscope.engine.matches.tables import AcceptanceCounts
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import spectrum_columns

__all__ = ["EXPLAINED_FILE", "report"]

EXPLAINED_FILE = "explained.tsv"
"""Name of the file of explained spectra in the project folder."""
_UNEXPLAINED, _IDENTIFIED, _EXPLAINED = 0, 1, 2


def report(
    results: Run,
    matches: Explained,
    spectra: Spectra,
    identified: Identified,
    out: Path | None,
    parameters: ExplanationParameters,
    progress: Progress,
) -> tuple[Explained, AcceptanceCounts]:
    """Write the explained spectra to the project and to `out`; return those accepted at the false discovery rate, and their counts."""
    similar = matches.take(matches.similarity >= parameters.minimum_similarity)
    reported = similar.take(~similar.is_decoy)
    accepted = reported.take(reported.q_value <= parameters.fdr)
    order = np.lexsort((reported.spectrum, -reported.similarity, reported.q_value))
    table = _explained_table(reported.take(order), spectra, identified)
    results.write_table("explained", table)
    results.write_table("map", _map_table(spectra, identified, accepted))
    for path in (results.folder / EXPORTS / EXPLAINED_FILE, *([] if out is None else [out])):
        write_separated(path, table, EXPLAINED.saved_columns, progress, ROUNDED)
    progress.check()
    return accepted, AcceptanceCounts.of(similar.q_value, similar.is_decoy, parameters.fdr)


def _explained_table(reported: Explained, spectra: Spectra, identified: Identified) -> pa.Table:
    """Return the table of explained spectra."""
    rows, nearest = reported.spectrum, identified.spectrum[reported.identified]
    return EXPLAINED.arrow(
        {
            **spectrum_columns(spectra, rows, ("spectrum", "spectrum_file", "spectrum_id", "scan", "retention_time")),
            "peptide": taken(identified.peptides, identified.peptide[reported.identified]),
            "charge": pa.array(reported.charge.astype(np.int32)),
            "similarity": pa.array(reported.similarity),
            "mass_difference": pa.array(reported.mass_difference),
            "q_value": pa.array(reported.q_value),
            "nearest_spectrum": taken(spectra.identifier, nearest),
            "nearest": pa.array(nearest),
            "precursor_mz": or_null(spectra.precursor_mz[rows]),
            "kind": pa.array(np.where(reported.is_modified, "modified", "same"), pa.string()),
        }
    )


def _map_table(spectra: Spectra, identified: Identified, accepted: Explained) -> pa.Table:
    """Return the table of the map: retention time, precursor m/z, status and peptide of every spectrum."""
    status = np.full(len(spectra), _UNEXPLAINED, np.uint8)
    status[identified.spectrum], status[accepted.spectrum] = _IDENTIFIED, _EXPLAINED
    form = np.full(len(spectra), -1, np.int64)
    form[identified.spectrum] = identified.peptide
    form[accepted.spectrum] = identified.peptide[accepted.identified]
    return MAP.arrow(
        {
            **spectrum_columns(spectra, np.arange(len(spectra)), ("spectrum", "spectrum_file", "scan", "retention_time")),
            "precursor_mz": or_null(spectra.precursor_mz),
            "status": pa.array(status),
            "peptide": taken(identified.peptides, form),
        }
    )
