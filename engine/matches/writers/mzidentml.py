"""Writer of mzIdentML 1.2, the PSI standard for identifications (Vizcaino et al. 2017, Mol Cell Proteomics 16:1275).

The file is streamed while DuckDB provides rows in the required order, so memory does not grow with the file. Identifiers are row numbers:
``Pep_7`` is peptidoform 7, ``PE_7_2`` is its position in the second of its proteins, ``SII_12`` is the PSM with ``psm_id`` 12.

If the run localised modifications, each modification has a number in its peptidoform. Each PSM lists the probabilities of the possible
sites of its modifications, and the false localisation rates, as ``number:value:position:is accepted`` (MS:1002505). These positions come
from the localisation, whereas the modifications of the peptidoform are at the positions from the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from proteoscope.engine.chemistry.masses import mz
from proteoscope.engine.chemistry.modification_places import terminal_position
from proteoscope.engine.creation_time import creation_time
from proteoscope.engine.files import atomic_file
from proteoscope.engine.formats.header_names import header_names
from proteoscope.engine.formats.mzml_writer import INDEX_FORMAT, SCAN_FORMAT, native_format
from proteoscope.engine.formats.registry import FileFormat, bare_name, find_format, select_formats
from proteoscope.engine.formats.xml_text import attribute, attributes, number
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.description import SearchDescription, file_addresses
from proteoscope.engine.matches.writers.tables import MatchesSource, columns, rows, scalar
from proteoscope.engine.results.queries import text_literal
from proteoscope.kernels.score_kinds import ordered_scores

if TYPE_CHECKING:
    import duckdb

    from proteoscope.engine.chemistry.tolerance import Tolerance

__all__ = ["write_mzidentml"]

_SPECIFICITY_RULES = {
    "peptide N-term": ("MS:1001189", "modification specificity peptide N-term"),
    "peptide C-term": ("MS:1001190", "modification specificity peptide C-term"),
    "protein N-term": ("MS:1002057", "modification specificity protein N-term"),
    "protein C-term": ("MS:1002058", "modification specificity protein C-term"),
}

_SCORES = (
    *((kind.column, *kind.term) for kind in ordered_scores("files") if kind.term),
    ("q_value", "MS:1002354", "PSM-level q-value"),
    # The local false discovery rate of a PSM is its posterior error probability.
    ("posterior_error_probability", "MS:1002351", "PSM-level local FDR"),
)
_OTHER_SCORES = (
    *(("score", "score"), ("delta_score", "delta score")),
    *((kind.column, kind.exported_as or kind.title) for kind in ordered_scores("files") if not kind.term),
    *(("search_score", "search score"), ("peptide_q_value", "peptide q-value"), ("mass_error_ppm", "mass error (ppm)")),
    *(("mass_shift", "mass shift (Da)"), ("site_probability", "site probability"), ("match_class", "class")),
)
"""Scores without a term in the vocabulary, or with a term specific to another program, and the class to which the q-value refers."""

_ENGINE = "Engine"
"""Identifier of the search engine that created imported matches."""


def write_mzidentml(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write matches as mzIdentML 1.2.

    All PSMs are written, including decoys and lower ranks; ``passThreshold`` is true for rank 1 targets within the false discovery rate of
    the search. The evidence of a protein group consists of its rank 1 PSMs that pass the threshold, or, if no PSM passes, of all its rank 1
    PSMs. Without PSMs, the list of spectra is empty, which readers accept although the schema does not.

    Raises
    ------
    StorageError
        If writing fails.
    """
    search = source.search
    with source.connection(progress) as connection, atomic_file(out) as file:
        _prepare(connection)
        progress.stage(f"writing {out.name}", scalar(connection, "SELECT count(*) FROM psms"))
        files = _spectrum_files(connection, search, out.parent)
        is_localised = source.tables.psm_sites is not None
        has_proteins = scalar(connection, "SELECT count(*) FROM proteins") > 0
        for part in (
            _head(search),
            _sequences(connection, search, numbers_modifications=is_localised),
            _analysis(files, len(_databases(search)), has_proteins),
            _protocols(search, has_proteins, is_localised=is_localised),
            _inputs(connection, search, files, out.parent),
        ):
            _write(file, part, progress)
        file.write(b'<AnalysisData>\n<SpectrumIdentificationList id="SIL">\n')
        for lines, n_rows in _spectra(connection, search, files, is_localised=is_localised):
            file.write("".join(lines).encode())
            progress.advance(n_rows)
        file.write(b"</SpectrumIdentificationList>\n")
        if has_proteins:
            _write(file, _protein_groups(connection, search), progress)
        file.write(b"</AnalysisData>\n</DataCollection>\n</MzIdentML>\n")
    return [out]


def _prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Create two tables: accessions, and peptidoforms, numbered in the order of their first PSMs."""
    connection.execute(
        """
        CREATE TEMP TABLE forms AS
        SELECT row_number() OVER (ORDER BY first_psm) AS form, * FROM (
            SELECT peptide, min(psm_id) AS first_psm, arg_min(sequence, psm_id) AS sequence, arg_min(is_decoy, psm_id) AS is_decoy,
                arg_min(modification_positions, psm_id) AS positions, arg_min(modification_names, psm_id) AS names,
                arg_min(modification_masses, psm_id) AS masses, arg_min(modification_unimod, psm_id) AS unimod,
                arg_min(proteins, psm_id) AS proteins, arg_min(protein_starts, psm_id) AS starts,
                arg_min(residues_before, psm_id) AS befores, arg_min(residues_after, psm_id) AS afters
            FROM psms GROUP BY peptide)
        """
    )
    connection.execute(
        """
        CREATE TEMP TABLE accessions AS
        SELECT row_number() OVER (ORDER BY accession) AS protein, accession
        FROM (SELECT unnest(proteins) AS accession FROM forms UNION SELECT unnest(accessions) FROM proteins)
        """
    )
    connection.execute(
        """
        CREATE TEMP TABLE evidence AS
        SELECT form, place, protein, accession, start, before, after, is_decoy, len AS length FROM (
            SELECT form, is_decoy, length(sequence) AS len, generate_subscripts(proteins, 1) AS place, unnest(proteins) AS accession,
                unnest(starts) AS start, unnest(befores) AS before, unnest(afters) AS after
            FROM forms) JOIN accessions USING (accession)
        """
    )


def _write(file: BinaryIO, lines: Iterable[str], progress: Progress) -> None:
    for line in lines:
        file.write(line.encode())
        progress.check()


def _term(accession: str, name: str, value: object = None) -> str:
    vocabulary = accession.partition(":")[0].replace("MS", "PSI-MS")
    return f"<cvParam{attributes(cvRef=vocabulary, accession=accession, name=name, value=value)}/>\n"


_UNKNOWN_MODIFICATION = _term("MS:1001460", "unknown modification")
"""Term of a modification that is not in Unimod.

The schema allows no other text, and the term has no value, so only the mass describes the modification.
"""


def _user(name: str, value: object) -> str:
    return f"<userParam{attributes(name=name, value=value)}/>\n"


def _head(search: SearchDescription) -> Iterator[str]:
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<MzIdentML id="proteoscope" version="1.2.0" xmlns="http://psidev.info/psi/pi/mzIdentML/1.2" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://psidev.info/psi/pi/mzIdentML/1.2 http://www.psidev.info/files/mzIdentML1.2.0.xsd" '
        f'creationDate="{creation_time():%Y-%m-%dT%H:%M:%SZ}">\n'
        "<cvList>\n"
        '<cv id="PSI-MS" fullName="PSI-MS" uri="https://raw.githubusercontent.com/HUPO-PSI/psi-ms-CV/master/psi-ms.obo"/>\n'
        '<cv id="UNIMOD" fullName="UNIMOD" uri="http://www.unimod.org/obo/unimod.obo"/>\n'
        '<cv id="UO" fullName="UNIT-ONTOLOGY" uri="https://raw.githubusercontent.com/bio-ontology-research-group/unit-ontology/master/unit.obo"/>\n'
        "</cvList>\n"
    )
    version = attributes(version=search.version or None)
    yield "<AnalysisSoftwareList>\n"
    if search.engine:
        yield f'<AnalysisSoftware id="{_ENGINE}"{attributes(name=search.engine)}>\n<SoftwareName>\n{_user(search.engine, None)}'
        yield "</SoftwareName>\n</AnalysisSoftware>\n"
    yield f'<AnalysisSoftware id="Proteoscope" name="Proteoscope"{version}>\n<SoftwareName>\n'
    # The vocabulary has no term for this program; this term is for such programs, with the name as value.
    yield _term("MS:1000799", "custom unreleased software tool", "Proteoscope")
    yield "</SoftwareName>\n</AnalysisSoftware>\n</AnalysisSoftwareList>\n"


def _sequences(connection: duckdb.DuckDBPyConnection, search: SearchDescription, *, numbers_modifications: bool) -> Iterator[str]:
    if not scalar(connection, "SELECT count(*) FROM forms") and not scalar(connection, "SELECT count(*) FROM accessions"):
        return
    yield "<SequenceCollection>\n"
    protein_columns = columns(connection, "proteins")
    length, sequence = ("length" if "length" in protein_columns else "NULL"), ("sequence" if "sequence" in protein_columns else "NULL")
    query = f"""
        SELECT protein, accession, any_value(description), any_value(length), any_value(sequence)
        FROM accessions LEFT JOIN (SELECT accessions[1] AS accession, description, {length} AS length, {sequence} AS sequence FROM proteins)
        USING (accession) GROUP BY protein, accession ORDER BY protein
        """
    for protein, accession, description, n_residues, residues in rows(connection, query):
        yield f'<DBSequence id="DBSeq_{protein}"{attributes(accession=accession, searchDatabase_ref="SDB_1", length=n_residues)}>\n'
        if residues:
            yield f"<Seq>{attribute(residues.replace('*', ''))}</Seq>\n"
        if description:
            yield _term("MS:1001088", "protein description", description)
            names = header_names(description)
            if names.organism is not None:
                yield _term("MS:1001469", "taxonomy: scientific name", names.organism)
            if names.taxonomy is not None:
                yield _term("MS:1001467", "taxonomy: NCBI TaxID", str(names.taxonomy))
        yield "</DBSequence>\n"
    for form, residues, *modifications in rows(
        connection, "SELECT form, sequence, positions, names, masses, unimod FROM forms ORDER BY form"
    ):
        yield f'<Peptide id="Pep_{form}">\n<PeptideSequence>{residues}</PeptideSequence>\n'
        for index, (position, name, mass, unimod) in enumerate(zip(*modifications, strict=True), start=1):
            yield _modification(residues, position, name, mass, unimod, index if numbers_modifications else None)
        yield "</Peptide>\n"
    pattern = search.decoy_pattern
    by_name = f" OR regexp_matches(accession, {text_literal(pattern)})" if pattern else ""
    for form, index, protein, start, end, before, after, is_decoy in rows(
        connection,
        f"SELECT form, place, protein, start, start + length - 1, before, after, is_decoy{by_name} FROM evidence ORDER BY form, place",
    ):
        yield (
            f'<PeptideEvidence id="PE_{form}_{index}" peptide_ref="Pep_{form}" dBSequence_ref="DBSeq_{protein}"'
            f"{attributes(start=start, end=end, pre=before, post=after, isDecoy=bool(is_decoy))}/>\n"
        )
    yield "</SequenceCollection>\n"


def _modification(residues: str, position: int, name: str, mass: float, unimod: int | None, index: int | None) -> str:
    residue = residues[position - 1] if 1 <= position <= len(residues) else None
    term = _UNKNOWN_MODIFICATION if unimod is None else _term(f"UNIMOD:{unimod}", name)
    placed = attributes(location=terminal_position(position, residues, unimod), residues=residue, monoisotopicMassDelta=f"{mass:.6f}")
    numbered = "" if index is None else _term("MS:1002504", "modification index", index)
    return f"<Modification{placed}>\n{term}{numbered}</Modification>\n"


class _SpectrumFile(NamedTuple):
    """Number of a spectrum file, from 1, and its URI."""

    number: int
    address: str


def _spectrum_files(connection: duckdb.DuckDBPyConnection, search: SearchDescription, folder: Path) -> dict[str, _SpectrumFile]:
    """Return the spectrum files, including files without PSMs, by their names in the tables."""
    named = [row[0] for row in connection.execute("SELECT DISTINCT spectrum_file FROM psms ORDER BY 1").fetchall()]
    paths = search.paths(named)
    every = paths | {path: path for path in search.spectrum_files if path not in paths.values()}
    addresses = dict(zip(every, file_addresses([*every.values()], folder), strict=True))
    # The schema requires at least one file.
    return {file: _SpectrumFile(number, addresses.get(file, file)) for number, file in enumerate([*every] or ["unknown"], start=1)}


def _databases(search: SearchDescription) -> list[str]:
    """Return the databases; all proteins refer to the first, since tables do not contain the database of a protein."""
    return list(search.database_files) or ["unknown"]


def _analysis(files: dict[str, _SpectrumFile], n_databases: int, has_proteins: bool) -> Iterator[str]:
    yield (
        '<AnalysisCollection>\n<SpectrumIdentification id="SI" spectrumIdentificationProtocol_ref="SIP" '
        'spectrumIdentificationList_ref="SIL">\n'
    )
    for file in files.values():
        yield f'<InputSpectra spectraData_ref="SD_{file.number}"/>\n'
    for database_number in range(1, n_databases + 1):
        yield f'<SearchDatabaseRef searchDatabase_ref="SDB_{database_number}"/>\n'
    yield "</SpectrumIdentification>\n"
    if has_proteins:
        yield (
            '<ProteinDetection id="PD" proteinDetectionProtocol_ref="PDP" proteinDetectionList_ref="PDL">\n'
            '<InputSpectrumIdentifications spectrumIdentificationList_ref="SIL"/>\n</ProteinDetection>\n'
        )
    yield "</AnalysisCollection>\n"


def _protocols(search: SearchDescription, has_proteins: bool, *, is_localised: bool) -> Iterator[str]:
    software = _ENGINE if search.engine else "Proteoscope"
    yield f'<AnalysisProtocolCollection>\n<SpectrumIdentificationProtocol id="SIP" analysisSoftware_ref="{software}">\n<SearchType>\n'
    yield _term("MS:1001083", "ms-ms search") + "</SearchType>\n<AdditionalSearchParams>\n"
    yield _term("MS:1001211", "parent mass type mono") + _term("MS:1001256", "fragment mass type mono")
    if is_localised:
        yield _term("MS:1002491", "modification localization scoring")
    else:
        yield _term("MS:1002495", "no special processing")
    for name, value in search.named_values():
        yield _user(name, value)
    yield "</AdditionalSearchParams>\n"
    if search.modifications:
        yield "<ModificationParams>\n"
        for modification, is_fixed in search.modifications:
            placed = attributes(fixedMod=is_fixed, massDelta=f"{modification.mass:.6f}", residues=" ".join(modification.residues) or ".")
            yield f"<SearchModification{placed}>\n"
            if modification.position in _SPECIFICITY_RULES:
                yield f"<SpecificityRules>\n{_term(*_SPECIFICITY_RULES[modification.position])}</SpecificityRules>\n"
            if modification.unimod_id is None:
                yield _UNKNOWN_MODIFICATION
            else:
                yield _term(f"UNIMOD:{modification.unimod_id}", modification.name)
            yield "</SearchModification>\n"
        yield "</ModificationParams>\n"
    yield from _enzyme(search)
    fragment = search.tolerance("fragment_tolerance")
    yield from _tolerance("FragmentTolerance", None if fragment is None else (fragment, fragment))
    yield from _tolerance("ParentTolerance", search.precursor_range)
    yield "<Threshold>\n" + _term("MS:1002260", "PSM:FDR threshold", number(search.threshold))
    if is_localised:
        yield _user("false localisation rate threshold", number(search.threshold))
    yield "</Threshold>\n"
    if search.searches_only_found_proteins:
        yield f"<DatabaseFilters>\n<Filter>\n<FilterType>\n{_term('MS:1001021', 'DB filter on accession numbers')}</FilterType>\n"
        yield f"<Include>\n{_user('proteins', 'those that were found before')}</Include>\n</Filter>\n</DatabaseFilters>\n"
    yield "</SpectrumIdentificationProtocol>\n"
    if has_proteins:
        yield '<ProteinDetectionProtocol id="PDP" analysisSoftware_ref="Proteoscope">\n<Threshold>\n'
        yield _term("MS:1002369", "protein group-level global FDR", number(search.threshold))
        yield "</Threshold>\n</ProteinDetectionProtocol>\n"
    yield "</AnalysisProtocolCollection>\n"


def _enzyme(search: SearchDescription) -> Iterator[str]:
    agent = search.enzyme
    if agent is None:
        return
    accession, name = agent.accession, agent.name
    if search.specificity == "non-specific":
        accession, name = "MS:1001956", "unspecific cleavage"
    described = attributes(name=name, missedCleavages=search.missed_cleavages, semiSpecific=search.specificity == "semi-specific")
    yield f'<Enzymes independent="false">\n<Enzyme id="ENZ_1"{described}>\n<EnzymeName>\n'
    yield _term(accession, name) + "</EnzymeName>\n</Enzyme>\n</Enzymes>\n"


def _tolerance(element: str, lower_and_upper: tuple[Tolerance, Tolerance] | None) -> Iterator[str]:
    if lower_and_upper is None:
        return
    yield f"<{element}>\n"
    terms = ("MS:1001412", "search tolerance plus value"), ("MS:1001413", "search tolerance minus value")
    for term, tolerance in zip(terms, reversed(lower_and_upper), strict=True):
        accession, unit = ("UO:0000169", "parts per million") if tolerance.unit == "ppm" else ("UO:0000221", "dalton")
        described = attributes(accession=term[0], name=term[1], value=number(tolerance.value))
        yield f'<cvParam cvRef="PSI-MS"{described} unitCvRef="UO" unitAccession="{accession}" unitName="{unit}"/>\n'
    yield f"</{element}>\n"


def _inputs(
    connection: duckdb.DuckDBPyConnection, search: SearchDescription, files: dict[str, _SpectrumFile], folder: Path
) -> Iterator[str]:
    yield "<DataCollection>\n<Inputs>\n"
    has_decoys = scalar(connection, "SELECT count(*) FROM forms WHERE is_decoy") > 0 or search.parameters.get("decoys", "none") != "none"
    databases = _databases(search)
    for database_number, (database, location) in enumerate(zip(databases, file_addresses(databases, folder), strict=True), start=1):
        described = attributes(id=f"SDB_{database_number}", location=location, name=Path(database).name)
        yield f"<SearchDatabase{described}>\n{_file_format(_database_format(database))}"
        yield f"<DatabaseName>\n{_user('name', Path(database).name)}</DatabaseName>\n"
        yield _term("MS:1001073", "database type amino acid")
        if has_decoys:
            yield from _decoys(search)
        yield "</SearchDatabase>\n"
    for file, spectra in files.items():
        identifier = scalar(connection, f"SELECT any_value(spectrum_id) FROM psms WHERE spectrum_file = {text_literal(file)}")
        named_by = _identifier_format(file, identifier or "")
        yield f'<SpectraData id="SD_{spectra.number}"{attributes(location=spectra.address, name=Path(file).name)}>\n'
        yield _file_format(find_format(file))
        yield f"<SpectrumIDFormat>\n{_term(*named_by)}</SpectrumIDFormat>\n</SpectraData>\n"
    yield "</Inputs>\n"


def _decoys(search: SearchDescription) -> Iterator[str]:
    yield _term("MS:1001197", "DB composition target+decoy")
    if search.decoy_pattern:
        yield _term("MS:1001283", "decoy DB accession regexp", search.decoy_pattern)
    made = search.parameters.get("decoys")
    if made in ("reverse", "pseudo-reverse"):
        yield _term("MS:1001195", "decoy DB type reverse")
    elif made == "shuffle":
        yield _term("MS:1001196", "decoy DB type randomized")


def _database_format(database: str) -> FileFormat:
    """Return the format of a database by its file name; FASTA if the name does not indicate a protein format."""
    written_as = find_format(database)
    return written_as if written_as is not None and written_as.content == "proteins" else select_formats("proteins")[0]


def _file_format(written_as: FileFormat | None) -> str:
    """Return the XML element that names a file format; '' if the vocabulary has no term."""
    return f"<FileFormat>\n{_term(*written_as.term)}</FileFormat>\n" if written_as is not None and written_as.term is not None else ""


def _spectra_called_by(file: str) -> str:
    """Return the type of spectrum identifiers in a file: `FileFormat.spectra_called_by` of the format that the file name indicates.

    For unknown formats, it is ``index``, or ``native`` if the file name has no suffix.
    """
    written_as = find_format(file)
    if written_as is None:
        return "index" if Path(bare_name(file)).suffix else "native"
    return written_as.spectra_called_by


def _identifier_format(file: str, identifier: str) -> tuple[str, str]:
    called_by = _spectra_called_by(file)
    if called_by == "native":
        return native_format(identifier)
    if called_by == "scan":
        return SCAN_FORMAT
    return INDEX_FORMAT


class _Psm(NamedTuple):
    """Values of a PSM and its spectrum: the first columns of a query, which the columns of scores follow."""

    spectrum: int
    file: str
    identifier: str
    scan: int | None
    place_in_file: int
    retention_time: float | None
    psm: int
    rank: int
    charge: int
    precursor_mz: float
    calculated_mass: float
    form: int
    n_proteins: int
    passes: bool
    matched_ions: int
    total_ions: int
    modifications: list[str]
    positions: list[int]
    sites: list[dict[str, Any]] | None


_SITES = """
    SELECT psm, list(struct_pack(modification, position, possible_positions, probabilities,
        q_value := CASE WHEN isnan(localisation_q_value) THEN NULL ELSE localisation_q_value END) ORDER BY modification, position) AS sites
    FROM psm_sites GROUP BY psm
    """
"""Query of the localised sites of each PSM."""


def _spectra(
    connection: duckdb.DuckDBPyConnection, search: SearchDescription, files: dict[str, _SpectrumFile], *, is_localised: bool
) -> Iterator[tuple[list[str], int]]:
    """Yield, for each identified spectrum, its lines (with its PSMs) and the number of its PSMs."""
    present = columns(connection, "psms")
    # Start of each score's line, up to the value.
    begins = {
        **{column: f'<cvParam cvRef="PSI-MS" accession="{accession}" name="{name}" value="' for column, accession, name in _SCORES},
        **{column: f'<userParam name="{name}" value="' for column, name in _OTHER_SCORES},
    }
    scores = {column: begin for column, begin in begins.items() if column in present}
    query = f"""
        SELECT spectrum, spectrum_file, spectrum_id, scan, spectrum_index, retention_time, psm_id, rank, charge, precursor_mz,
            calculated_mass, form, len(forms.proteins),
            rank = 1 AND NOT psms.is_decoy AND coalesce(q_value <= {number(search.threshold, 17)}, false), matched_ions, total_ions,
            forms.names, forms.positions, {"sites" if is_localised else "NULL"}, {", ".join(scores)}
        FROM psms JOIN forms USING (peptide) {f"LEFT JOIN ({_SITES}) ON psm = psm_id" if is_localised else ""}
        ORDER BY spectrum_file, spectrum, rank, psm_id
        """
    n_columns = len(_Psm._fields)
    for _, group in groupby(rows(connection, query), key=itemgetter(0, 1)):
        items = [(_Psm._make(row[:n_columns]), row[n_columns:]) for row in group]
        spectrum = items[0][0]
        reference = attributes(spectrumID=_identifier(spectrum), spectraData_ref=f"SD_{files[spectrum.file].number}")
        lines = [f'<SpectrumIdentificationResult id="SIR_{spectrum.spectrum}"{reference}>\n']
        for psm, values in items:
            lines += _item(psm)
            lines += [f'{begin}{_text(value)}"/>\n' for begin, value in zip(scores.values(), values, strict=True) if value is not None]
            lines += _site_values(psm, search.threshold)
            lines.append("</SpectrumIdentificationItem>\n")
        lines += _spectrum_terms(spectrum)
        lines.append("</SpectrumIdentificationResult>\n")
        yield lines, len(items)


def _text(value: float | str) -> str:
    return attribute(value) if isinstance(value, str) else number(value)


def _item(psm: _Psm) -> Iterator[str]:
    """Yield the lines of a PSM up to its scores."""
    yield (
        f'<SpectrumIdentificationItem id="SII_{psm.psm}" rank="{psm.rank}" chargeState="{psm.charge}" peptide_ref="Pep_{psm.form}" '
        f'experimentalMassToCharge="{psm.precursor_mz:.6f}" calculatedMassToCharge="{mz(psm.calculated_mass, psm.charge):.6f}" '
        f'passThreshold="{"true" if psm.passes else "false"}">\n'
    )
    for position in range(1, psm.n_proteins + 1):
        yield f'<PeptideEvidenceRef peptideEvidence_ref="PE_{psm.form}_{position}"/>\n'
    yield f'<cvParam cvRef="PSI-MS" accession="MS:1001121" name="number of matched peaks" value="{psm.matched_ions}"/>\n'
    yield f'<userParam name="predicted ions" value="{psm.total_ions}"/>\n'


def _site_values(psm: _Psm, threshold: float) -> Iterator[str]:
    """Yield the probability of each possible site of the localised modifications of a PSM, and the false localisation rates.

    The number in each value identifies the modification: the i-th reported site has the number of the i-th modification with the same name,
    and a site that is not reported has the number of the nearest reported site.
    """
    for name, group in groupby(psm.sites or (), key=itemgetter("modification")):
        sites = list(group)
        possible, probabilities = sites[0]["possible_positions"], sites[0]["probabilities"]
        numbers = (
            index
            for index, (modification, position) in enumerate(zip(psm.modifications, psm.positions, strict=True), start=1)
            if modification == name and position in possible  # modifications that stay in place are at other positions
        )
        number_of = dict(zip((site["position"] for site in sites), numbers, strict=False))
        if not number_of:
            continue
        for position, probability in zip(possible, probabilities, strict=True):
            nearest = min(number_of, key=lambda reported, position=position: abs(reported - position))  # type: ignore[misc]
            is_reported = "true" if position in number_of else "false"
            yield _user("modification site probability", f"{number_of[nearest]}:{min(probability, 1.0):.6f}:{position}:{is_reported}")
        for site in sites:
            position, rate = site["position"], site["q_value"]
            if rate is not None and position in number_of:
                is_accepted = "true" if rate <= threshold else "false"
                value = f"{number_of[position]}:{rate:.6f}:{position}:{is_accepted}"
                yield _term("MS:1002507", "modification rescoring:false localization rate", value)


def _spectrum_terms(spectrum: _Psm) -> Iterator[str]:
    if spectrum.scan is not None:
        yield _term("MS:1003057", "scan number", spectrum.scan)
    written_as = find_format(spectrum.file)
    if written_as is not None and written_as.has_titles:
        yield _term("MS:1000796", "spectrum title", spectrum.identifier)
    if spectrum.retention_time is not None:
        yield (
            f'<cvParam cvRef="PSI-MS" accession="MS:1000894" name="retention time" value="{number(spectrum.retention_time)}" '
            'unitCvRef="UO" unitAccession="UO:0000010" unitName="second"/>\n'
        )


def _identifier(spectrum: _Psm) -> str:
    """Return the identifier of a spectrum: native identifier for mzML, ``scan=`` for mzXML and MS2, ``index=`` for peak lists."""
    called_by = _spectra_called_by(spectrum.file)
    if called_by == "native":
        return spectrum.identifier
    if called_by == "scan" and spectrum.scan is not None:
        return f"scan={spectrum.scan}"
    return f"index={spectrum.place_in_file}"


def _protein_groups(connection: duckdb.DuckDBPyConnection, search: SearchDescription) -> Iterator[str]:
    threshold = number(search.threshold, 17)
    connection.execute("CREATE TEMP TABLE numbered_groups AS SELECT row_number() OVER () AS number, * FROM proteins")
    connection.execute(
        f"""
        CREATE TEMP TABLE support AS
        SELECT number, member, protein, form, place, psm_id FROM (
            SELECT number, member, protein, form, place, psm_id, q_value <= {threshold} AS passes,
                bool_or(q_value <= {threshold}) OVER (PARTITION BY number) AS any_passes
            FROM (SELECT number, generate_subscripts(accessions, 1) AS member, unnest(accessions) AS accession FROM numbered_groups)
            JOIN evidence USING (accession) JOIN forms USING (form) JOIN psms USING (peptide) WHERE rank = 1)
        WHERE passes OR NOT any_passes
        """
    )
    n_passing = scalar(connection, f"SELECT count(*) FROM numbered_groups WHERE q_value <= {threshold} AND NOT is_decoy")
    query = """
        SELECT number, member, protein, form, place, psm_id, q_value, is_decoy, score, coverage, n_peptides
        FROM support JOIN numbered_groups USING (number) ORDER BY number, member, form, place, psm_id
        """
    yield '<ProteinDetectionList id="PDL">\n'
    for group, members in groupby(rows(connection, query), key=itemgetter(0)):
        supports = list(members)
        q_value, is_decoy, score, coverage, n_peptides = supports[0][6:]
        passes = q_value is not None and q_value <= search.threshold and not is_decoy
        yield f'<ProteinAmbiguityGroup id="PAG_{group}">\n'
        for (member, protein), positions in groupby(supports, key=itemgetter(1, 2)):
            placed = attributes(id=f"PDH_{group}_{member}", dBSequence_ref=f"DBSeq_{protein}", passThreshold=passes)
            yield f"<ProteinDetectionHypothesis{placed}>\n"
            for (form, position), psms in groupby(positions, key=itemgetter(3, 4)):
                yield f'<PeptideHypothesis peptideEvidence_ref="PE_{form}_{position}">\n'
                for support in psms:
                    yield f'<SpectrumIdentificationItemRef spectrumIdentificationItem_ref="SII_{support[5]}"/>\n'
                yield "</PeptideHypothesis>\n"
            # All members of a group contain the same peptides, so that no protein is the leading protein.
            yield _term("MS:1002401", "leading protein") + _term("MS:1001097", "distinct peptide sequences", n_peptides)
            if member == 1 and coverage is not None:
                yield _term("MS:1001093", "sequence coverage", number(100 * coverage, 6))
            yield "</ProteinDetectionHypothesis>\n"
        if q_value is not None:
            yield _term("MS:1002373", "protein group-level q-value", number(q_value))
        yield _term("MS:1002415", "protein group passes threshold", "true" if passes else "false")
        if score is not None:
            yield _user("score", number(score))
        yield "</ProteinAmbiguityGroup>\n"
    yield _term("MS:1002404", "count of identified proteins", n_passing) + "</ProteinDetectionList>\n"
