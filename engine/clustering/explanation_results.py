"""Results of explaining spectra: the table of explained spectra, and the map of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proteoscope.engine.clustering.explained_spectra import Explained
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.clustering.tables import EXPLAINED, MAP
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.identified_spectra import Identified
from proteoscope.engine.matches.tables import Counted
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["EXPLAINED_FILE", "report"]

EXPLAINED_FILE = "explained.tsv"
"""File of the explained spectra that the project shows."""
_UNEXPLAINED, _IDENTIFIED, _EXPLAINED = 0, 1, 2


def report(
    results: Run,
    matches: Explained,
    spectra: Spectra,
    identified: Identified,
    out: Path | None,
    parameters: ExplanationParameters,
    progress: Progress,
) -> tuple[Explained, Counted]:
    """Write the explained spectra, also into the file `out`; return those accepted at the false discovery rate, and their counts."""
    similar = matches.take(matches.similarity >= parameters.minimum_similarity)
    reported = similar.take(~similar.is_decoy)
    accepted = reported.take(reported.q_value <= parameters.fdr)
    order = np.lexsort((reported.spectrum, -reported.similarity, reported.q_value))
    table = _explained_table(reported.take(order), spectra, identified)
    results.write_table("explained", table)
    results.write_table("map", _map(spectra, identified, accepted))
    for path in (results.folder / EXPORTS / EXPLAINED_FILE, *([] if out is None else [out])):
        write_separated(path, table, EXPLAINED.saved_columns, progress, ROUNDED)
    progress.check()
    return accepted, Counted.of(similar.q_value, similar.is_decoy, parameters.fdr)


def _explained_table(reported: Explained, spectra: Spectra, identified: Identified) -> pa.Table:
    """Return the table of explained spectra."""
    rows, nearest = reported.spectrum, identified.spectrum[reported.identified]
    names = pa.array(spectra.identifier, pa.string())
    scan, mz, time = spectra.scan[rows], spectra.precursor_mz[rows], spectra.retention_time[rows]
    return EXPLAINED.arrow(
        {
            "spectrum": pa.array(rows),
            "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file[rows])),
            "spectrum_id": names.take(pa.array(rows)),
            "scan": pa.array(scan, mask=scan < 0),
            "peptide": pa.array(identified.peptides, pa.string()).take(pa.array(identified.peptide[reported.identified])),
            "charge": pa.array(reported.charge.astype(np.int32)),
            "similarity": pa.array(reported.similarity),
            "mass_difference": pa.array(reported.mass_difference),
            "q_value": pa.array(reported.q_value),
            "nearest_spectrum": names.take(pa.array(nearest)),
            "nearest": pa.array(nearest),
            "precursor_mz": pa.array(mz, mask=np.isnan(mz)),
            "retention_time": pa.array(time, mask=np.isnan(time)),
            "kind": pa.array(np.where(reported.is_modified, "modified", "same"), pa.string()),
        }
    )


def _map(spectra: Spectra, identified: Identified, accepted: Explained) -> pa.Table:
    """Return a row for each spectrum: where it is in the run, and whether it is identified or explained."""
    status = np.full(len(spectra), _UNEXPLAINED, np.uint8)
    status[identified.spectrum], status[accepted.spectrum] = _IDENTIFIED, _EXPLAINED
    form = np.full(len(spectra), -1, np.int64)
    form[identified.spectrum] = identified.peptide
    form[accepted.spectrum] = identified.peptide[accepted.identified]
    return MAP.arrow(
        {
            "spectrum": pa.array(np.arange(len(spectra))),
            "retention_time": pa.array(spectra.retention_time, mask=np.isnan(spectra.retention_time)),
            "precursor_mz": pa.array(spectra.precursor_mz, mask=np.isnan(spectra.precursor_mz)),
            "status": pa.array(status),
            "peptide": pa.array(identified.peptides, pa.string()).take(pa.array(form, mask=form < 0)),
            "scan": pa.array(spectra.scan, mask=spectra.scan < 0),
            "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file)),
        }
    )
