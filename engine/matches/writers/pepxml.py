"""Writer of pepXML 1.22 of the Trans-Proteomic Pipeline (Keller et al. 2005, Mol Syst Biol 1:2005.0017).

PSMs of one spectrum with different charges are written as separate queries; each PSM retains its rank in the spectrum. The mass
shift of an open modification search is written as `massdiff`, not as part of the peptide's mass or modifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proteoscope.engine.chemistry.masses import HYDROGEN_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.creation_time import creation_time
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats.xml_text import attribute, attributes, number
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import MatchesSource, columns, rows, scalar
from proteoscope.engine.results.queries import text_literal
from proteoscope.engine.shared_names import distinct_names, relative_name
from proteoscope.kernels.score_kinds import SCORE_KINDS, parted_scores

if TYPE_CHECKING:
    import duckdb

    from proteoscope.engine.chemistry.enzymes import Enzyme
    from proteoscope.engine.chemistry.modifications import SearchModification

__all__ = ["write_pepxml"]

_NAMESPACE = "http://regis-web.systemsbiology.net/pepXML"
_SCHEMA = "http://sashimi.sourceforge.net/schema_revision/pepXML/pepXML_v122.xsd"
_HYDROXYL_MASS = WATER_MASS - HYDROGEN_MASS
_RESIDUES = "ACDEFGHIKLMNPQRSTUVWYO"
_UNKNOWN = "?"
"""Symbol of the neighbouring residue of a peptide whose position is unknown."""

_TERMED, _OTHERS = parted_scores("files")
_SCORES = (
    *("score", *(kind.column for kind in _TERMED), "delta_score", *(kind.column for kind in _OTHERS), "search_score"),
    *(
        "q_value",
        "match_class",
        "peptide_q_value",
        "posterior_error_probability",
        "isotope_error",
        "mass_shift",
        "shift_position",
        "site_probability",
    ),
)
_NAMES = {kind.column: kind.in_pepxml for kind in SCORE_KINDS if kind.in_pepxml}
"""Score names in pepXML by column name, if both differ."""


def write_pepxml(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write PSMs as pepXML, including decoys and lower ranks.

    ``start_scan`` is the scan number; if the scan number is unknown, it is the number of the spectrum in its file, from 1.

    Raises
    ------
    StorageError
        If writing fails.
    """
    search, indexes = source.search, count(1)
    with source.connection(progress) as connection, atomic_file(out) as file:
        progress.stage(f"writing {out.name}", scalar(connection, "SELECT count(*) FROM psms"))
        named = [row[0] for row in connection.execute("SELECT DISTINCT spectrum_file FROM psms ORDER BY 1").fetchall()]
        paths = search.paths(named or list(search.spectrum_files) or ["unknown"])
        names = distinct_names([*paths.values()])
        files = {name: relative_name(path, out.parent, distinct) for (name, path), distinct in zip(paths.items(), names, strict=True)}
        file.write(_head(out).encode())
        for number_of_file, (spectrum_file, path) in enumerate(files.items(), start=1):
            file.write("".join(_run_summary(path, number_of_file, search, out.parent)).encode())
            for lines, n_psms in _queries(connection, spectrum_file, search, indexes):
                file.write("".join(lines).encode())
                progress.advance(n_psms)
            file.write(b"</msms_run_summary>\n")
        file.write(b"</msms_pipeline_analysis>\n")
    return [out]


def _head(out: Path) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<msms_pipeline_analysis date="{creation_time():%Y-%m-%dT%H:%M:%S}" summary_xml="{attribute(out.name)}" xmlns="{_NAMESPACE}" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="{_NAMESPACE} {_SCHEMA}">\n'
    )


def _stem_and_suffix(file: str) -> tuple[str, str]:
    """Split a file name such as ``folder/run.mzML.gz`` into ``run`` and ``.mzML.gz``."""
    name = Path(file).name
    unpacked = name[:-3] if name.lower().endswith(".gz") else name
    stem = Path(unpacked).stem
    return stem, name[len(stem) :]


def _run_summary(file: str, search_id: int, search: SearchDescription, folder: Path) -> Iterator[str]:
    _, suffix = _stem_and_suffix(file)
    base = file.removesuffix(suffix)
    yield f"<msms_run_summary{attributes(base_name=base, raw_data_type='raw', raw_data=suffix)}>\n"
    if search.enzyme is not None:
        yield from _enzyme(search.enzyme, search.specificity)
    described = attributes(
        base_name=base,
        search_engine=search.engine or "Proteoscope",
        search_engine_version=None if search.engine else search.version or None,
        precursor_mass_type="monoisotopic",
        fragment_mass_type="monoisotopic",
        search_id=search_id,
    )
    yield f"<search_summary{described}>\n"
    database = search.database_files[0] if search.database_files else "unknown"
    local_path = relative_name(database, folder, distinct_names([database])[0])
    yield f"<search_database{attributes(local_path=local_path, type='AA')}/>\n"
    if search.enzyme is not None and search.missed_cleavages is not None:
        n_termini = {"specific": 2, "semi-specific": 1}.get(search.specificity, 0)
        constraint = attributes(enzyme=search.enzyme.name, max_num_internal_cleavages=search.missed_cleavages, min_number_termini=n_termini)
        yield f"<enzymatic_search_constraint{constraint}/>\n"
    on_residues = [modification for modification in search.modifications if modification[0].position == "anywhere"]
    for on_residue, is_fixed in on_residues:
        yield from _residue_modifications(on_residue, is_fixed)
    for other, is_fixed in search.modifications:
        if other.position != "anywhere":
            yield _terminal_modification(other, is_fixed)
    if search.engine:
        yield f"<parameter{attributes(name='converted by', value=f'Proteoscope {search.version}'.strip())}/>\n"
    for name, value in search.named_values():
        yield f"<parameter{attributes(name=name, value=value)}/>\n"
    yield "</search_summary>\n"


def _enzyme(enzyme: Enzyme, specificity: str) -> Iterator[str]:
    fidelity = {"specific": "specific", "semi-specific": "semispecific"}.get(specificity, "nonspecific")
    yield f"<sample_enzyme{attributes(name=enzyme.name, fidelity=fidelity)}>\n"
    for sense, cut, no_cut in (("C", enzyme.after, enzyme.not_before), ("N", enzyme.before, "")):
        if cut:
            yield f"<specificity{attributes(sense=sense, cut=cut, no_cut=no_cut or None)}/>\n"
    if not enzyme.after and not enzyme.before:
        yield '<specificity sense="C" cut=""/>\n'
    yield "</sample_enzyme>\n"


def _residue_modifications(modification: SearchModification, is_fixed: bool) -> Iterator[str]:
    for residue in modification.residues or _RESIDUES:
        described = attributes(
            aminoacid=residue,
            massdiff=f"{modification.mass:+.6f}",
            mass=f"{_residue_mass(residue) + modification.mass:.6f}",
            variable="N" if is_fixed else "Y",
            description=modification.name,
        )
        yield f"<aminoacid_modification{described}/>\n"


def _terminal_modification(modification: SearchModification, is_fixed: bool) -> str:
    is_front = modification.position.endswith("N-term")
    described = attributes(
        terminus="N" if is_front else "C",
        massdiff=f"{modification.mass:+.6f}",
        mass=f"{(HYDROGEN_MASS if is_front else _HYDROXYL_MASS) + modification.mass:.6f}",
        variable="N" if is_fixed else "Y",
        protein_terminus="Y" if modification.position.startswith("protein") else "N",
        description=f"{modification.name} ({modification.residues})" if modification.residues else modification.name,
    )
    return f"<terminal_modification{described}/>\n"


def _residue_mass(residue: str) -> float:
    return float(RESIDUE_MASS[ord(residue) - ord("A")])


class _Psm(NamedTuple):
    """Values of a PSM and its spectrum, in the order of the first columns of the SQL query; the columns of scores follow."""

    spectrum: int
    charge: int
    identifier: str
    scan: int
    retention_time: float | None
    observed_mass: float
    calculated_mass: float
    rank: int
    sequence: str
    proteins: Sequence[str]
    residues_before: Sequence[str]
    residues_after: Sequence[str]
    matched_ions: int
    total_ions: int
    missed_cleavages: int
    positions: Sequence[int]
    masses: Sequence[float]
    shift_position: int | None
    carried_mass: float

    def without_shift(self) -> _Psm:
        """Return the PSM without the modification that is its mass shift; the shift then remains as the mass difference of the PSM."""
        if self.shift_position is None:
            return self
        placed = list(zip(self.positions, self.masses, strict=True))
        shift = min(
            placed,
            key=lambda placed_modification: (
                placed_modification[0] != self.shift_position,
                abs(placed_modification[1] - self.carried_mass),
            ),
        )
        placed.remove(shift)
        retained = [position for position, _ in placed], [mass for _, mass in placed]
        return self._replace(positions=retained[0], masses=retained[1], calculated_mass=self.calculated_mass - self.carried_mass)


def _queries(
    connection: duckdb.DuckDBPyConnection, file: str, search: SearchDescription, indexes: Iterator[int]
) -> Iterator[tuple[list[str], int]]:
    """Yield, for each spectrum and charge in a file, the lines of its query with its PSMs, and the number of PSMs."""
    present = columns(connection, "psms")
    scores = [name for name in _SCORES if name in present]
    query = f"""
        SELECT spectrum, charge, spectrum_id, coalesce(scan, spectrum_index + 1), retention_time, observed_mass, calculated_mass, rank,
            sequence, proteins, residues_before, residues_after, matched_ions, total_ions, missed_cleavages, modification_positions,
            modification_masses, {"shift_position, carried_mass" if "carried_mass" in present else "NULL, 0.0"}, {", ".join(scores)}
        FROM psms WHERE spectrum_file = {text_literal(file)} ORDER BY spectrum, charge, rank, psm_id
        """
    stem, _ = _stem_and_suffix(file)
    n_columns = len(_Psm._fields)
    for _, group in groupby(rows(connection, query), key=itemgetter(0, 1)):
        hits = [(_Psm._make(row[:n_columns]).without_shift(), row[n_columns:]) for row in group]
        lines = [_query_head(hits[0][0], stem, next(indexes))]
        for psm, values in hits:
            lines += _hit(psm, search.enzyme)
            lines += [
                f'<search_score name="{_NAMES.get(name, name)}" value="{attribute(value) if isinstance(value, str) else number(value)}"/>\n'
                for name, value in zip(scores, values, strict=True)
                if value is not None
            ]
            lines.append("</search_hit>\n")
        lines.append("</search_result>\n</spectrum_query>\n")
        yield lines, len(hits)


def _query_head(psm: _Psm, stem: str, index: int) -> str:
    described = attributes(
        spectrum=f"{stem}.{psm.scan:05d}.{psm.scan:05d}.{psm.charge}",
        spectrumNativeID=psm.identifier,
        start_scan=psm.scan,
        end_scan=psm.scan,
        precursor_neutral_mass=f"{psm.observed_mass:.6f}",
        assumed_charge=psm.charge,
        index=index,
        retention_time_sec=None if psm.retention_time is None else number(psm.retention_time),
    )
    return f"<spectrum_query{described}>\n<search_result>\n"


def _hit(psm: _Psm, enzyme: Enzyme | None) -> Iterator[str]:
    """Yield the lines of a PSM up to its scores."""
    before, after = psm.residues_before[0] or _UNKNOWN, psm.residues_after[0] or _UNKNOWN
    termini = None if enzyme is None else _n_enzymatic_termini(psm.sequence, before, after, enzyme)
    described = (
        f'hit_rank="{psm.rank}" peptide="{psm.sequence}" peptide_prev_aa="{before}" peptide_next_aa="{after}" '
        f'protein="{attribute(psm.proteins[0])}" num_tot_proteins="{len(psm.proteins)}" num_matched_ions="{psm.matched_ions}" '
        f'tot_num_ions="{psm.total_ions}" calc_neutral_pep_mass="{psm.calculated_mass:.6f}" '
        f'massdiff="{psm.observed_mass - psm.calculated_mass:.6f}"{attributes(num_tol_term=termini)} '
        f'num_missed_cleavages="{psm.missed_cleavages}" is_rejected="0"'
    )
    yield f"<search_hit {described}>\n"
    for protein, one_before, one_after in zip(psm.proteins[1:], psm.residues_before[1:], psm.residues_after[1:], strict=True):
        described = attributes(protein=protein, peptide_prev_aa=one_before or _UNKNOWN, peptide_next_aa=one_after or _UNKNOWN)
        yield f"<alternative_protein{described}/>\n"
    if psm.positions:
        yield from _modification_info(psm)


def _modification_info(psm: _Psm) -> Iterator[str]:
    """Yield the elements with the masses of modified residues and termini; a mass includes the residue (or H, OH) and its modifications."""
    added: dict[int, float] = {}
    for position, mass in zip(psm.positions, psm.masses, strict=True):
        added[position] = added.get(position, 0.0) + mass
    front, back = added.pop(0, None), added.pop(len(psm.sequence) + 1, None)
    ends = attributes(
        mod_nterm_mass=None if front is None else f"{HYDROGEN_MASS + front:.6f}",
        mod_cterm_mass=None if back is None else f"{_HYDROXYL_MASS + back:.6f}",
    )
    yield f"<modification_info{ends}>\n"
    for position, mass in sorted(added.items()):
        yield f'<mod_aminoacid_mass position="{position}" mass="{_residue_mass(psm.sequence[position - 1]) + mass:.6f}"/>\n'
    yield "</modification_info>\n"


def _n_enzymatic_termini(sequence: str, before: str, after: str, enzyme: Enzyme) -> int:
    """Return the number of termini of a peptide that are enzymatic or protein termini."""
    table = enzyme.cleavage_table()

    def is_cut(left: str, right: str) -> bool:
        if not (left.isalpha() and right.isalpha()):
            return "-" in (left, right)
        return bool(table[ord(left) - ord("A"), ord(right) - ord("A")])

    return is_cut(before, sequence[0]) + is_cut(sequence[-1], after)
