"""Projects with tables of modification sites, for tests of views: the phosphorylated PSMs of random proteins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from proteoscope.engine.matches.site_columns import PROTEIN_SITES, PSM_SITES
from proteoscope.engine.project import Project
from tests.engine.identification_tables import identification
from tests.engine.views.result_projects import PARAMETERS, spectra_table

SITE_PARAMETERS = {**PARAMETERS, "localise": "automatic", "variable_modifications": ["Phospho (STY)"]}
_RATES = ("localisation_q_value", "q_value_by_alanine", "q_value_by_leucine")


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _with_column(table: pa.Table, name: str, values: list[int]) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, table.schema.field(name).type))


def project_with_sites(folder: Path) -> tuple[Project, list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a project with an identification, and the rows of its PSMs, PSM sites and protein sites."""
    results = identification(n_spectra=240)
    table = results.psms.sort_by([("rank", "ascending"), ("score", "descending")])
    row_of = {number: row for row, number in enumerate(table["psm_id"].to_pylist())}
    table = _with_column(table, "psm_id", list(row_of.values()))
    peptides = _with_column(results.peptides, "best_psm", [row_of[number] for number in results.peptides["best_psm"].to_pylist()])
    psms, chosen = table.to_pylist(), []
    sites: dict[tuple[str, int], dict[str, Any]] = {}
    for row, psm in enumerate(psms):
        phospho = [at for at, name in zip(psm["modification_positions"], psm["modification_names"], strict=True) if name == "Phospho"]
        if psm["rank"] > 1 or psm["is_decoy"] or psm["q_value"] > 0.01 or len(phospho) != 1 or not 0 < phospho[0] <= len(psm["sequence"]):
            continue
        (position,), sequence = phospho, psm["sequence"]
        possible = [at for at, residue in enumerate(sequence, 1) if residue in "STY"]
        best = round(0.99 - 0.05 * (row % 10), 4) if len(possible) > 1 else 1.0
        # Among the others, the last site is the most likely one.
        others = [at for at in possible if at != position]
        shares = {position: best, **{at: (1 - best) * 2 * (i + 1) / (len(others) * (len(others) + 1)) for i, at in enumerate(others)}}
        common = {
            "modification": "Phospho",
            "residue": sequence[position - 1],
            "site_probability": best,
            "site_score": None if len(possible) == 1 else 1.0,
            "localisation_q_value": None if len(possible) == 1 else round(1 - best, 4),
            "has_alternative": len(possible) > 1,
            "peptide": psm["peptide"],
        }
        places = [start + position - 1 for start in psm["protein_starts"]]
        listed = {
            "mixed_with": others[-1] if others and row % 3 == 0 else None,
            "possible_positions": possible,
            "probabilities": [shares[at] for at in possible],
        }
        of_psm = {"psm": row, "charge": psm["charge"], "position": position, "proteins": psm["proteins"], "protein_positions": places}
        chosen.append({**common, **of_psm, **listed})
        for protein, place in zip(psm["proteins"], places, strict=True):
            site = {
                **common,
                "protein": protein,
                "position": place,
                "n_psms": 1,
                "n_mixed": 0,
                "n_peptidoforms": 1,
                "is_decoy": False,
                "sequence_window": "A" * 15,
                "best_psm": row,
                **dict.fromkeys(_RATES, common["localisation_q_value"]),
            }
            sites.setdefault((protein, place), site)
    proteins = list(sites.values())
    proteins.append({**proteins[0], "residue": "A", "position": proteins[0]["position"] + 1, "is_decoy": True, "site_probability": 0.0})
    project = Project.create_or_open(folder)
    with project.run("identify", SITE_PARAMETERS) as run:
        run.write_table("psms", table)
        run.write_table("peptides", peptides.sort_by([("best_score", "descending")]))
        run.write_table("proteins", results.proteins.sort_by([("score", "descending")]))
        run.write_table("spectra", spectra_table(results))
        run.write_table("psm_sites", PSM_SITES.arrow(_columns(chosen)))
        run.write_table("protein_sites", PROTEIN_SITES.arrow(_columns(proteins)))
    return project, psms, chosen, proteins
