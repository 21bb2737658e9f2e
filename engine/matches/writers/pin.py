"""Writer of PIN, the tab-separated input of Percolator and mokapot.

Columns are ``SpecId Label ScanNr ExpMass CalcMass``, the features, and ``Peptide Proteins``; further proteins follow as additional fields
(https://github.com/percolator/percolator/wiki/Interface). Masses are neutral, Da. A peptide includes its neighbouring residues in the first
protein, ``K.PEPTIDE.R``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import ENGINE_SCORES
from proteoscope.engine.matches.writers.tables import MatchesSource, columns, scalar, write_lines
from proteoscope.engine.results.queries import identifier
from proteoscope.kernels.score_kinds import ordered_scores

if TYPE_CHECKING:
    import duckdb

__all__ = ["write_pin"]

_OWN_SCORES = (*(kind.column for kind in ordered_scores("files") if kind.is_main), "delta_score")
"""Features that the score of another engine replaces in imported matches."""
_PLAIN_FEATURES = {
    "length": "length(sequence)",
    "charge": "charge",
    "missed_cleavages": "missed_cleavages",
    "matched_ions": "matched_ions",
    "matched_fraction": "matched_ions / greatest(total_ions, 1)",
    **{name: name for name in _OWN_SCORES},
    "absolute_mass_error_ppm": "abs(mass_error_ppm)",
    "absolute_isotope_error": "abs(isotope_error)",
}
"""Features as SQL expressions, for tables without feature columns.

Scores and error rates are excluded, since they may be trained on the labels.
"""
_CHARGE = "feature_charge_"
_LEARNT = re.compile(
    "|".join(
        (*(engine_score.column for engine_score in ENGINE_SCORES if engine_score.has_learnt), "score_peptideshaker.*", "score_.*q_value")
    )
)
"""Regular expression of the score columns of other engines that may have been trained on the labels, including unknown scores."""


def write_pin(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write PSMs as the input of Percolator and mokapot.

    Features are the ``feature_*`` columns of the table (or basic features if it has none), one column per charge (such as ``charge2``), and
    scores of other engines; missing values are 0. ``ScanNr`` is the scan number if all PSMs have a scan number and come from one file.
    Otherwise it is the index of the spectrum, from 1, because Percolator distinguishes spectra by this number.

    Raises
    ------
    StorageError
        If writing fails.
    """
    with source.connection(progress) as connection, atomic_file(out) as file:
        present = columns(connection, "psms")
        features = {name: identifier(name) for name in present if name.startswith("feature_")} or dict(_PLAIN_FEATURES)
        scores = {name: identifier(name) for name in present if name.startswith("score_") and not _LEARNT.fullmatch(name)}
        if scores:
            features = {name: value for name, value in features.items() if name not in _OWN_SCORES} | scores
        features = _with_charges(features, connection)
        progress.stage(f"writing {out.name}", scalar(connection, "SELECT count(*) FROM psms"))
        has_scans = scalar(connection, "SELECT count(DISTINCT spectrum_file) <= 1 AND count(scan) = count(*) FROM psms")
        cells = [
            f"{_on_one_line('parse_filename(spectrum_file)')} || '_' || spectrum || '_' || charge || '_' || rank",
            "CASE WHEN is_decoy THEN '-1' ELSE '1' END",
            "CAST(scan AS VARCHAR)" if has_scans else "CAST(spectrum + 1 AS VARCHAR)",
            "format('{:.6f}', observed_mass)",
            "format('{:.6f}', calculated_mass)",
            *map(_feature, features.values()),
            "concat(coalesce(residues_before[1], '-'), '.', peptide, '.', coalesce(residues_after[1], '-'))",
            f"array_to_string([{_on_one_line('one')} for one in proteins], chr(9))",
        ]
        file.write(("\t".join(["SpecId", "Label", "ScanNr", "ExpMass", "CalcMass", *features, "Peptide", "Proteins"]) + "\n").encode())
        write_lines(connection, f"SELECT concat_ws(chr(9), {', '.join(cells)}) || chr(10) FROM psms", file, progress)
    return [out]


def _on_one_line(text: str) -> str:
    """Return an SQL expression that replaces control characters in `text`; file names and manipulated tables may contain them."""
    return rf"regexp_replace({text}, '[\x00-\x1f\x7f]', ' ', 'g')"


def _with_charges(features: dict[str, str], connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the features with one 0/1 column per charge, such as ``charge2``, instead of charge features; readers need such columns."""
    charges = [row[0] for row in connection.execute("SELECT DISTINCT charge FROM psms ORDER BY 1").fetchall()]
    flags = {f"charge{charge}": f"charge = {charge}" for charge in charges}
    first = next((name for name in features if name.startswith(_CHARGE)), None)
    replaced: dict[str, str] = {}
    for name, value in features.items():
        if name == first:
            replaced |= flags
        elif not name.startswith(_CHARGE):
            replaced[name] = value
    return replaced


def _feature(value: str) -> str:
    text = f"format('{{:.7g}}', CAST({value} AS DOUBLE))"
    return f"CASE WHEN {text} IN ('nan', '-nan', 'inf', '-inf') THEN '0' ELSE coalesce({text}, '0') END"
