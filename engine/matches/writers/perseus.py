"""Writer of protein sites as a table for Perseus, with the column names of MaxQuant's tables of sites (Tyanova 2016, Nat Methods 13:731).

Each site has one row. If a peptide occurs in several proteins, the row is for the leading protein of the best match of the site: the first
protein of the match that belongs to the best protein group.
"""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.writers.tables import MatchesSource
from proteoscope.engine.results.columns import Column, Kind
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["NO_SITES", "write_perseus"]

NO_SITES = "the run localised no modification. Search a variable modification of residues, such as Phospho (STY), with localise=automatic"
"""Message for runs that localised no modification."""
_KINDS: dict[str, Kind] = {
    "Proteins": "texts",
    "Positions within proteins": "texts",
    "Leading proteins": "texts",
    "Protein": "text",
    "Fasta headers": "text",
    "Gene names": "text",
    "Localization prob": "number",
    "Localization FLR": "number",
    "Score for localization": "number",
    "PEP": "number",
    "Score": "number",
    "Delta score": "number",
    "Modification": "text",
    "Amino acid": "text",
    "Position": "integer",
    "Sequence window": "text",
    "Sequence": "text",
    "Modified sequence": "text",
    "Probabilities": "text",
    "Position in peptide": "integer",
    "Multiplicity": "integer",
    "Charge": "integer",
    "Mass error [ppm]": "number",
    "MS/MS count": "integer",
    "Reverse": "text",
    "id": "integer",
}
_COLUMNS = tuple(Column(name, kind=kind) for name, kind in _KINDS.items())
_QUERY = """
    WITH members AS (
        SELECT accession, min(number) AS number
        FROM (SELECT row_number() OVER () AS number, unnest(accessions) AS accession FROM proteins WHERE NOT is_decoy) GROUP BY accession
    ), descriptions AS (
        SELECT accessions[1] AS accession, any_value(description) AS description FROM proteins WHERE NOT is_decoy GROUP BY accessions[1]
    ), best AS (
        SELECT * FROM psms WHERE psm_id IN (SELECT best_psm FROM protein_sites)
    ), held AS (
        SELECT psm_id, accession, place, coalesce(number, 1000000000000) AS number
        FROM (SELECT psm_id, unnest(proteins) AS accession, generate_subscripts(proteins, 1) AS place FROM best)
            LEFT JOIN members USING (accession)
    ), chosen AS (
        SELECT psm_id, arg_min(accession, (number, place)) AS accession, min(number) AS number FROM held GROUP BY psm_id
    ), groups AS (
        SELECT psm_id, list(DISTINCT held.accession ORDER BY held.accession) AS accessions
        FROM held JOIN chosen USING (psm_id, number) GROUP BY psm_id
    ), placed AS (
        SELECT psm, modification, residue, position, proteins, protein_positions, possible_positions, probabilities, peptide,
            unnest(proteins) AS protein, unnest(protein_positions) AS protein_position
        FROM psm_sites WHERE psm IN (SELECT psm_id FROM best)
    ), counts AS (
        SELECT psm, modification, count(*) AS number FROM psm_sites GROUP BY psm, modification
    )
    SELECT placed.proteins AS "Proteins", list_transform(placed.protein_positions, lambda k: CAST(k AS VARCHAR))
            AS "Positions within proteins", groups.accessions AS "Leading proteins", sites.protein AS "Protein",
        coalesce(descriptions.description, '') AS "Fasta headers", sites.site_probability AS "Localization prob",
        sites.localisation_q_value AS "Localization FLR", sites.site_score AS "Score for localization",
        best.posterior_error_probability AS "PEP", best.score AS "Score", best.delta_score AS "Delta score",
        sites.modification AS "Modification", sites.residue AS "Amino acid", sites.position AS "Position",
        sites.sequence_window AS "Sequence window", best.sequence AS "Sequence", placed.peptide AS "Modified sequence",
        array_to_string(list_transform(range(0, length(best.sequence) + 2), lambda k: best.sequence[k]
            || coalesce('(' || printf('%.3f', probabilities[list_position(possible_positions, k)]) || ')', '')), '') AS "Probabilities",
        placed.position AS "Position in peptide", counts.number AS "Multiplicity", best.charge AS "Charge",
        best.mass_error_ppm AS "Mass error [ppm]", sites.n_psms AS "MS/MS count", '' AS "Reverse"
    FROM protein_sites AS sites JOIN chosen ON sites.best_psm = chosen.psm_id AND sites.protein = chosen.accession
        JOIN groups USING (psm_id) JOIN best USING (psm_id)
        JOIN placed ON placed.psm = sites.best_psm AND placed.modification = sites.modification AND placed.residue = sites.residue
            AND placed.protein = sites.protein AND placed.protein_position = sites.position
        JOIN counts ON counts.psm = sites.best_psm AND counts.modification = sites.modification
        LEFT JOIN descriptions ON descriptions.accession = sites.protein
    WHERE NOT sites.is_decoy AND ({condition})
    ORDER BY sites.protein, sites.position, sites.modification, sites.residue
    """


def write_perseus(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write the protein sites of a run; with `accepted_only`, write only accepted sites and sites without an alternative.

    Raises
    ------
    ParameterError
        If the run localised no modification.
    StorageError
        If writing fails.
    """
    if source.tables.protein_sites is None or source.tables.psm_sites is None:
        raise ParameterError(NO_SITES)
    accepted = f"sites.localisation_q_value <= {source.search.threshold!r} OR NOT sites.has_alternative"
    with source.connection(progress) as connection:
        rows = connection.sql(_QUERY.format(condition=accepted if source.accepted_only else "true")).to_arrow_table()
    # There are as many rows as sites, not as matches, so they fit into memory.
    rows = rows.append_column("id", pa.array(range(len(rows))))
    rows = rows.append_column("Gene names", name_columns(rows["Fasta headers"].combine_chunks())["gene"])
    progress.stage(f"writing {out.name}", len(rows))
    names = [column.name for column in _COLUMNS]
    write_separated(out, rows.select(names), _COLUMNS, progress, DIGITS, spreadsheet_safe=source.spreadsheet_safe)
    return [out]
