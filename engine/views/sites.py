"""Data of the view of modification sites: filtered rows, the PSM of a site, and the best other site."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.matches.localisation import is_localised
from proteoscope.engine.matches.site_columns import PROTEIN_SITES, PSM_SITES
from proteoscope.engine.views.annotation import SelectedSite
from proteoscope.engine.views.conditions import Condition, any_of, compares, contains_in, given
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import find_linked_rows
from proteoscope.engine.views.tables import TableSource

__all__ = ["LinkedSite", "SiteFilter", "has_sites", "link_site", "missing_sites_reason", "select_psm_sites", "site_conditions", "with_site"]


@dataclass(frozen=True)
class SiteFilter:
    """Filter of protein sites.

    Attributes
    ----------
    text
        Text in the protein, modification, residue, peptide or sequence window.
    probability
        Minimum site probability.
    q_value
        Maximum false localisation rate, or None; sites without an alternative, which have no rate, pass.
    shows_decoys
        True to select decoy residues too.
    """

    text: str = ""
    probability: float = 0.0
    q_value: float | None = None
    shows_decoys: bool = False


def site_conditions(chosen: SiteFilter) -> list[Condition]:
    """Return the conditions of a filter on the table of protein sites."""
    conditions = [] if chosen.shows_decoys else [compares("is_decoy", "=", False)]
    conditions += given(("site_probability", ">=", chosen.probability or None))
    if chosen.q_value is not None:
        conditions.append(any_of((compares("localisation_q_value", "<=", chosen.q_value), compares("has_alternative", "=", False))))
    return [*conditions, *contains_in(("protein", "modification", "residue", "peptide", "sequence_window"), chosen.text)]


def has_sites(run: FinishedRun) -> bool:
    """Return True if a run has tables of sites."""
    return {PROTEIN_SITES.name, PSM_SITES.name} <= run.tables.paths.keys()


def missing_sites_reason(run: FinishedRun) -> str:
    """Return the reason why a run has no tables of sites, and what to do."""
    choice = run.parameters.get("localise")
    if choice not in ("automatic", "all", "none"):
        return (
            "No modification was localised: the matches have no modification whose sites are reported, or there is no database. Import the"
            " results again with the database to see the sites."
        )
    if choice == "none":
        return "No sites were requested. Set “Localise modifications” to “automatic” and search again."
    requested = run.parameters.get("variable_modifications") or ()
    try:
        is_requested = any(is_localised(parse_modification(str(text)), choice) for text in requested)
    except ProteoscopeError:
        is_requested = False
    if is_requested:
        return "This run was made by a version that did not localise modifications. Search again to see their sites."
    return (
        "This run searched no variable modification whose sites are reported. Add one, such as Phospho (STY), to “Variable modifications”"
        " (preset “phospho”), or set “Localise modifications” to “all”, which includes Oxidation (M). Then search again."
    )


def select_psm_sites(psm: int) -> list[Condition]:
    """Return the conditions that select the sites of a PSM."""
    return [compares("psm", "=", psm)]


@dataclass(frozen=True)
class LinkedSite:
    """Rows of other tables that belong to a protein site; None if missing.

    Attributes
    ----------
    psm
        Row of the PSM with the best evidence.
    psm_site
        Row of the table of PSM sites.
    protein
        Row of the protein group.
    peptide
        Row of the peptide.
    residue
        Index of the modified residue, from 0, if the site is in the first protein of the group; None for sites of other proteins.
    name
        Peptide of the PSM in ProForma.
    """

    psm: int
    psm_site: int | None
    protein: int | None
    peptide: int | None
    residue: int | None
    name: str


def link_site(source: TableSource, site: Mapping[str, Any]) -> LinkedSite:
    """Find the rows that belong to a row of the table of protein sites; `source` is any open table of the run.

    For a decoy residue, which has no row in the table of PSM sites, `psm_site` is the first site of the PSM with the same modification.
    """
    psm, accession, position = int(site["best_psm"]), str(site["protein"]), int(site["position"])
    candidates = source.query(
        "SELECT file_row_number AS row, proteins, protein_positions FROM psm_sites WHERE psm = ? AND modification = ? ORDER BY row",
        [psm, str(site["modification"])],
    ).to_pylist()
    here = [row for row in candidates if (accession, position) in zip(row["proteins"], row["protein_positions"], strict=True)]
    matched = [row["row"] for row in (here or candidates)]
    match = source.query("SELECT peptide, proteins, is_decoy FROM psms WHERE file_row_number = ?", [psm]).to_pylist()[0]
    _, peptide = find_linked_rows(source, match)
    group = source.query(
        "SELECT file_row_number AS row, accessions[1] = ? AS is_first FROM proteins WHERE list_contains(accessions, ?) AND NOT is_decoy "
        "ORDER BY is_first DESC, q_value, row LIMIT 1",
        [accession, accession],
    ).to_pylist()
    residue = max(position, 1) - 1 if group and group[0]["is_first"] else None
    return LinkedSite(psm, matched[0] if matched else None, group[0]["row"] if group else None, peptide, residue, str(match["peptide"]))


def with_site(details: Mapping[str, Any], site: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a PSM, with its modifications moved to the most likely sites and the selected ``site`` (`SelectedSite`) added.

    Parameters
    ----------
    details
        Values of the PSM.
    site
        Row of the table of PSM sites.

    Raises
    ------
    ProteoscopeError
        If the peptide of the row is invalid.
    """
    form = parse(str(site["peptide"]))
    position, name = int(site["position"]), str(site["modification"])
    # ProForma has the mass in place of the name of a custom modification.
    here = [of for at, of, _ in form.modifications if at == position]
    name = here[0] if here and name not in here else name
    carried = {at for at, of, _ in form.modifications if of == name}
    others = [
        (float(probability), -int(at))
        for at, probability in zip(site["possible_positions"], site["probabilities"], strict=True)
        if at not in carried and 0 <= at <= len(form.sequence) + 1
    ]
    selected = SelectedSite(name, position, float(site["site_probability"]))
    if others:
        probability, negated = max(others)
        selected = replace(selected, alternative=-negated, alternative_probability=probability)
    return {
        **details,
        "peptide": str(site["peptide"]),
        "sequence": form.sequence,
        "modification_positions": [at for at, _, _ in form.modifications],
        "modification_names": [of for _, of, _ in form.modifications],
        "modification_masses": [mass for _, _, mass in form.modifications],
        "site": selected,
    }
