"""The same few matches in every imported format, written from the format definitions, and their spectra, written by pyteomics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyteomics import mass

__all__ = ["DATABASE", "FORMATS", "TRUTH", "Truth", "write_database", "write_parquet_report", "write_results", "write_spectra"]

PROTON = 1.00727646688
MODIFICATIONS = {"Carbamidomethyl": 57.021464, "Oxidation": 15.994915, "Acetyl": 42.010565}


class Truth(NamedTuple):
    """A match: scan, charge, sequence, modification positions and names, proteins, E-value, q-value, and its ProForma text."""

    scan: int
    charge: int
    sequence: str
    modifications: tuple[tuple[int, str], ...]
    proteins: tuple[str, ...]
    e_value: float
    q_value: float
    text: str

    @property
    def is_decoy(self) -> bool:
        return all(name.startswith("DECOY_") for name in self.proteins)

    @property
    def mass(self) -> float:
        return mass.fast_mass(self.sequence) + sum(MODIFICATIONS[name] for _, name in self.modifications)

    @property
    def mz(self) -> float:
        return self.mass / self.charge + PROTON


TRUTH = (
    Truth(11, 2, "PEPTLDEK", (), ("P1",), 1e-6, 0.001, "PEPTLDEK"),
    Truth(12, 2, "ACDMKGK", ((2, "Carbamidomethyl"), (4, "Oxidation")), ("P1", "P2"), 1e-5, 0.002, "AC[Carbamidomethyl]DM[Oxidation]KGK"),
    Truth(13, 3, "MEEPLKSR", ((0, "Acetyl"),), ("P2",), 1e-4, 0.003, "[Acetyl]-MEEPLKSR"),
    Truth(14, 2, "KEDLTPEPR", (), ("DECOY_P1",), 0.5, 0.25, "KEDLTPEPR"),
    Truth(15, 2, "GGSWAVLR", (), ("P3",), 1e-3, 0.004, "GGSWAVLR"),
)
DATABASE = {"P1": "KPEPTLDEKRACDMKGK", "P2": "MEEPLKSRACDMKGKW", "P3": "MKGGSWAVLR", "DECOY_P1": "KGKMDCARKEDLTPEPR"}


def write_database(path: Path) -> Path:
    path.write_text("".join(f">{name} protein {name}\n{sequence}\n" for name, sequence in DATABASE.items()))
    return path


def write_spectra(path: Path) -> Path:
    """Write an MGF with all b and y ions of each match, of one charge."""
    lines = []
    for psm in TRUTH:
        added = dict(psm.modifications)
        weights = [mass.std_aa_mass[residue] + MODIFICATIONS.get(added.get(i, ""), 0.0) for i, residue in enumerate(psm.sequence, 1)]
        weights[0] += MODIFICATIONS.get(added.get(0, ""), 0.0)
        whole = sum(weights)
        front = [sum(weights[:i]) for i in range(1, len(weights))]
        peaks = sorted([*(value + PROTON for value in front), *(whole - value + 18.010565 + PROTON for value in front)])
        lines += ["BEGIN IONS", f"TITLE=run.{psm.scan}.{psm.scan}.{psm.charge}", f"SCANS={psm.scan}", f"RTINSECONDS={60 * psm.scan}"]
        lines += [f"PEPMASS={psm.mz:.6f}", f"CHARGE={psm.charge}+", *(f"{mz:.5f} {i + 1}" for i, mz in enumerate(peaks)), "END IONS", ""]
    path.write_text("\n".join(lines))
    return path


def _table(header: str, rows: list[list[object]]) -> str:
    return "\n".join(["\t".join(header.split("|")), *("\t".join(map(str, row)) for row in rows)]) + "\n"


def _bracketed(psm: Truth, written: Callable[[str], str], first: str) -> str:
    """Return the residues, each modification after its residue as formatted by `written`; `first` formats an N-terminal one."""
    added = dict(psm.modifications)
    residues = "".join(residue + (written(added[i]) if i in added else "") for i, residue in enumerate(psm.sequence, 1))
    return (first.format(written(added[0])) if 0 in added else "") + residues


def _delta(name: str) -> str:
    return f"[{MODIFICATIONS[name]:+.4f}]"


def percolator() -> str:
    rows = [
        [f"run_{psm.scan}_{psm.charge}_1", 10 - i, psm.q_value, psm.q_value / 2, f"K.{_bracketed(psm, _delta, 'n{}')}.R", *psm.proteins]
        for i, psm in enumerate(TRUTH)
    ]
    return _table("PSMId|score|q-value|posterior_error_prob|peptide|proteinIds", rows)


def mokapot() -> str:
    rows = [
        [
            f"run_{psm.scan}_{psm.charge}_1",
            not psm.is_decoy,
            psm.scan,
            psm.mass + PROTON,
            psm.mass + PROTON,
            f"K.{_bracketed(psm, _delta, 'n{}')}.R",
            5 - i,
            psm.q_value,
            psm.q_value / 2,
            *psm.proteins,
        ]
        for i, psm in enumerate(TRUTH)
    ]
    return _table("SpecId|Label|ScanNr|ExpMass|CalcMass|Peptide|mokapot score|mokapot q-value|mokapot PEP|Proteins", rows)


def pin() -> str:
    rows = [
        [
            f"run_{psm.scan}_{psm.charge}_1",
            -1 if psm.is_decoy else 1,
            psm.scan,
            psm.mass,
            psm.mass,
            3.0 - 0.1 * i,
            0.5,
            int(psm.charge == 2),
            int(psm.charge == 3),
            f"K.{_bracketed(psm, _delta, 'n{}')}.R",
            *psm.proteins,
        ]
        for i, psm in enumerate(TRUTH)
    ]
    return _table("SpecId|Label|ScanNr|ExpMass|CalcMass|Xcorr|deltCn|Charge2|Charge3|Peptide|Proteins", rows)


def crux() -> str:
    rows = [
        [
            "spectra/run.mzML",
            psm.scan,
            psm.charge,
            psm.mz,
            psm.mass,
            psm.mass,
            10 - i,
            1 + i,
            psm.q_value,
            psm.q_value / 2,
            100,
            _bracketed(psm, _delta, "{}"),
            ",".join(psm.proteins),
            "KR",
            "decoy" if psm.is_decoy else "target",
        ]
        for i, psm in enumerate(TRUTH)
    ]
    header = (
        "file|scan|charge|spectrum precursor m/z|spectrum neutral mass|peptide mass|percolator score|percolator rank|percolator q-value|"
        "percolator PEP|distinct matches/spectrum|sequence|protein id|flanking aa|target/decoy"
    )
    return _table(header, rows)


def sage() -> str:
    rows = [
        [
            i,
            _bracketed(psm, _delta, "{}-"),
            ";".join(psm.proteins),
            len(psm.proteins),
            "run.mzML",
            f"controllerType=0 controllerNumber=1 scan={psm.scan}",
            1,
            -1 if psm.is_decoy else 1,
            psm.mass,
            psm.mass,
            psm.charge,
            30 - i,
            psm.scan,
            5.0 - i,
            -3.0,
            psm.q_value,
            psm.q_value,
        ]
        for i, psm in enumerate(TRUTH)
    ]
    header = (
        "psm_id|peptide|proteins|num_proteins|filename|scannr|rank|label|expmass|calcmass|charge|hyperscore|rt|sage_discriminant_score|"
        "posterior_error|spectrum_q|peptide_q"
    )
    return _table(header, rows)


def comet() -> str:
    rows = [
        [
            psm.scan,
            1,
            psm.charge,
            psm.mass,
            psm.mass,
            psm.e_value,
            3.0,
            0.3,
            100,
            10,
            14,
            psm.sequence,
            f"K.{psm.sequence}.R",
            "K",
            "R",
            ",".join(psm.proteins),
            len(psm.proteins),
            ",".join(f"{max(i, 1)}_V_{MODIFICATIONS[name]:.6f}{'_n' if i == 0 else ''}" for i, name in psm.modifications) or "-",
            "",
        ]
        for psm in TRUTH
    ]
    header = (
        "scan|num|charge|exp_neutral_mass|calc_neutral_mass|e-value|xcorr|delta_cn|sp_score|ions_matched|ions_total|plain_peptide|"
        "modified_peptide|prev_aa|next_aa|protein|protein_count|modifications"
    )
    return "CometVersion 2019.01 rev. 5\trun\t11/23/2026, 03:46:48 PM\tdb.fasta\n" + _table(header, rows)


def _assigned(psm: Truth) -> str:
    return ", ".join(
        f"N-term({MODIFICATIONS[name]})" if place == 0 else f"{place}{psm.sequence[place - 1]}({MODIFICATIONS[name]})"
        for place, name in psm.modifications
    )


def msfragger() -> str:
    rows = [
        [
            psm.scan,
            psm.mass,
            psm.scan,
            psm.charge,
            1,
            psm.sequence,
            "K",
            "R",
            psm.proteins[0],
            10,
            14,
            psm.mass,
            0.0,
            2,
            0,
            _assigned(psm),
            20,
            10,
            psm.e_value,
            "@@".join(psm.proteins[1:]),
        ]
        for psm in TRUTH
    ]
    header = (
        "scannum|precursor_neutral_mass|retention_time|charge|hit_rank|peptide|peptide_prev_aa|peptide_next_aa|protein|num_matched_ions|"
        "tot_num_ions|calc_neutral_pep_mass|massdiff|num_tol_term|num_missed_cleavages|modification_info|hyperscore|nextscore|expectscore|"
        "alternative_proteins"
    )
    return _table(header, rows)


def philosopher() -> str:
    rows = [
        [
            f"run.{psm.scan:05d}.{psm.scan:05d}.{psm.charge}",
            "interact-run.pep.xml",
            psm.sequence,
            "",
            psm.charge,
            60 * psm.scan,
            psm.mass,
            psm.mass,
            0.0,
            psm.e_value,
            20,
            10,
            0.99,
            _assigned(psm),
            psm.proteins[0],
            ", ".join(psm.proteins[1:]),
        ]
        for psm in TRUTH
    ]
    header = (
        "Spectrum|Spectrum File|Peptide|Modified Peptide|Charge|Retention|Observed Mass|Calculated Peptide Mass|Delta Mass|Expectation|"
        "Hyperscore|Nextscore|Probability|Assigned Modifications|Protein|Mapped Proteins"
    )
    return _table(header, rows)


def maxquant() -> str:
    names = {"Carbamidomethyl": "(Carbamidomethyl (C))", "Oxidation": "(Oxidation (M))", "Acetyl": "(Acetyl (Protein N-term))"}
    rows = [
        [
            "run",
            psm.scan,
            i,
            psm.sequence,
            len(psm.sequence),
            f"_{_bracketed(psm, names.__getitem__, '{}')}_",
            ";".join(psm.proteins),
            psm.charge,
            psm.mz,
            psm.mass,
            psm.scan,
            psm.q_value,
            100 - i,
            50,
            "+" if psm.is_decoy else "",
            i,
        ]
        for i, psm in enumerate(TRUTH)
    ]
    header = (
        "Raw file|Scan number|Scan index|Sequence|Length|Modified sequence|Proteins|Charge|m/z|Mass|Retention time|PEP|Score|Delta score|"
        "Reverse|id"
    )
    return _table(header, rows)


def dia_nn() -> str:
    numbers = {"Carbamidomethyl": "(UniMod:4)", "Oxidation": "(UniMod:35)", "Acetyl": "(UniMod:1)"}
    rows = [
        [
            "/data/run.mzML",
            "run",
            ";".join(psm.proteins),
            ";".join(psm.proteins),
            _bracketed(psm, numbers.__getitem__, "{}"),
            psm.sequence,
            psm.charge,
            psm.q_value,
            psm.q_value / 2,
            psm.q_value,
            psm.scan,
            psm.mz,
            psm.scan,
        ]
        for psm in TRUTH
        if not psm.is_decoy
    ]
    header = (
        "File.Name|Run|Protein.Group|Protein.Ids|Modified.Sequence|Stripped.Sequence|Precursor.Charge|Q.Value|PEP|Global.Q.Value|RT|"
        "Precursor.Mz|MS2.Scan"
    )
    return _table(header, rows)


def peptideshaker() -> str:
    names = {"Carbamidomethyl": "Carbamidomethylation of C", "Oxidation": "Oxidation of M", "Acetyl": "Acetylation of protein N-term"}
    rows = [
        [
            i,
            ", ".join(psm.proteins),
            psm.sequence,
            "NH2-X-COOH",
            ", ".join(f"{names[name]} ({max(place, 1)})" for place, name in psm.modifications if name != "Carbamidomethyl"),
            ", ".join(f"{names[name]} ({place})" for place, name in psm.modifications if name == "Carbamidomethyl"),
            "run.mgf",
            f"run.{psm.scan}.{psm.scan}.{psm.charge}",
            "",
            60 * psm.scan,
            psm.mz,
            f"{psm.charge}+",
            f"{psm.charge}+",
            psm.mass,
            99.0,
            "Confident",
        ]
        for i, psm in enumerate(TRUTH)
        if not psm.is_decoy
    ]
    header = (
        " |Protein(s)|Sequence|Modified Sequence|Variable Modifications|Fixed Modifications|Spectrum File|Spectrum Title|"
        "Spectrum Scan Number|"
        "RT|m/z|Measured Charge|Identification Charge|Theoretical Mass|Confidence [%]|Validation"
    )
    return _table(header, rows)


def mztab() -> str:
    records = {"Carbamidomethyl": "UNIMOD:4", "Oxidation": "UNIMOD:35", "Acetyl": "UNIMOD:1"}
    lines = [
        "MTD\tmzTab-version\t1.0.0",
        "MTD\tmzTab-mode\tSummary",
        "MTD\tmzTab-type\tIdentification",
        "MTD\tms_run[1]-location\tfile:///data/run.mzML",
        "MTD\tpsm_search_engine_score[1]\t[MS, MS:1002257, Comet:expectation value, ]",
        "MTD\tpsm_search_engine_score[2]\t[MS, MS:1002354, PSM-level q-value, ]",
        "",
        "PSH\tsequence\tPSM_ID\taccession\tsearch_engine_score[1]\tsearch_engine_score[2]\tmodifications\tretention_time\tcharge\t"
        "exp_mass_to_charge\tcalc_mass_to_charge\tspectra_ref\topt_global_cv_MS:1002217_decoy_peptide",
    ]
    for i, psm in enumerate(TRUTH):
        placed = ",".join(f"{place}-{records[name]}" for place, name in psm.modifications) or "null"
        for protein in psm.proteins:
            cells = [
                "PSM",
                psm.sequence,
                i,
                protein,
                psm.e_value,
                psm.q_value,
                placed,
                60 * psm.scan,
                psm.charge,
                psm.mz,
                psm.mz,
                f"ms_run[1]:controllerType=0 controllerNumber=1 scan={psm.scan}",
                int(psm.is_decoy),
            ]
            lines.append("\t".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def pepxml() -> str:
    queries = []
    for psm in TRUTH:
        others = "".join(f'<alternative_protein protein="{name}"/>' for name in psm.proteins[1:])
        parts = "".join(
            f'<mod_aminoacid_mass position="{place}" mass="{mass.std_aa_mass[psm.sequence[place - 1]] + MODIFICATIONS[name]:.6f}"/>'
            for place, name in psm.modifications
            if place
        )
        end = next((f' mod_nterm_mass="{MODIFICATIONS[name] + 1.007825:.6f}"' for place, name in psm.modifications if not place), "")
        info = f"<modification_info{end}>{parts}</modification_info>" if psm.modifications else ""
        queries.append(
            f'<spectrum_query spectrum="run.{psm.scan:05d}.{psm.scan:05d}.{psm.charge}" start_scan="{psm.scan}" end_scan="{psm.scan}" '
            f'precursor_neutral_mass="{psm.mass:.6f}" assumed_charge="{psm.charge}" index="1" retention_time_sec="{60 * psm.scan}">'
            f'<search_result><search_hit hit_rank="1" peptide="{psm.sequence}" protein="{psm.proteins[0]}" '
            f'num_tot_proteins="{len(psm.proteins)}" '
            f'calc_neutral_pep_mass="{psm.mass:.6f}" massdiff="0.0">{others}{info}<search_score name="expect" value="{psm.e_value}"/>'
            f'<search_score name="xcorr" value="3.1"/></search_hit></search_result></spectrum_query>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<msms_pipeline_analysis xmlns="http://regis-web.systemsbiology.net/pepXML">'
        '<msms_run_summary base_name="/data/run" raw_data=".mzML"><search_summary base_name="/data/run" search_engine="Comet"/>'
        f"{''.join(queries)}</msms_run_summary></msms_pipeline_analysis>"
    )


def mzidentml() -> str:
    names = sorted({name for sequence in TRUTH for name in sequence.proteins})
    records = {"Carbamidomethyl": 4, "Oxidation": 35, "Acetyl": 1}
    sequences = "".join(f'<DBSequence id="{name}" accession="{name}" searchDatabase_ref="db"/>' for name in names)
    peptides = evidence = results = ""
    for i, psm in enumerate(TRUTH):
        placed = "".join(
            f'<Modification location="{place}" monoisotopicMassDelta="{MODIFICATIONS[name]}"><cvParam cvRef="UNIMOD" '
            f'accession="UNIMOD:{records[name]}" name="{name}"/></Modification>'
            for place, name in psm.modifications
        )
        peptides += f'<Peptide id="p{i}"><PeptideSequence>{psm.sequence}</PeptideSequence>{placed}</Peptide>'
        for k, name in enumerate(psm.proteins):
            decoy = str(name.startswith("DECOY_")).lower()
            evidence += f'<PeptideEvidence id="e{i}_{k}" peptide_ref="p{i}" dBSequence_ref="{name}" isDecoy="{decoy}"/>'
        references = "".join(f'<PeptideEvidenceRef peptideEvidence_ref="e{i}_{k}"/>' for k in range(len(psm.proteins)))
        results += (
            f'<SpectrumIdentificationResult id="r{i}" spectrumID="scan={psm.scan}" spectraData_ref="sd">'
            f'<SpectrumIdentificationItem id="i{i}" rank="1" chargeState="{psm.charge}" peptide_ref="p{i}" '
            f'experimentalMassToCharge="{psm.mz:.6f}" '
            f'calculatedMassToCharge="{psm.mz:.6f}" passThreshold="true">{references}<cvParam cvRef="PSI-MS" accession="MS:1002257" '
            f'name="Comet:expectation value" value="{psm.e_value}"/><cvParam cvRef="PSI-MS" accession="MS:1002354" '
            f'name="PSM-level q-value" value="{psm.q_value}"/></SpectrumIdentificationItem></SpectrumIdentificationResult>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<MzIdentML xmlns="http://psidev.info/psi/pi/mzIdentML/1.1" id="x" version="1.1.0">'
        f"<SequenceCollection>{sequences}{peptides}{evidence}</SequenceCollection><DataCollection><Inputs>"
        '<SpectraData id="sd" location="file:///data/run.mgf"/></Inputs><AnalysisData><SpectrumIdentificationList id="l">'
        f"{results}</SpectrumIdentificationList></AnalysisData></DataCollection></MzIdentML>"
    )


def xtandem() -> str:
    groups = []
    for psm in TRUTH:
        placed = "".join(
            f'<aa type="{psm.sequence[max(place, 1) - 1]}" at="{4 + max(place, 1)}" modified="{MODIFICATIONS[name]:.3f}"/>'
            for place, name in psm.modifications
        )
        domain = (
            f'<domain id="1" start="5" end="{4 + len(psm.sequence)}" expect="{psm.e_value}" mh="{psm.mass + PROTON:.4f}" delta="0.0" '
            f'hyperscore="30" nextscore="10" y_score="8" y_ions="6" b_score="7" b_ions="2" pre="K" post="R" seq="{psm.sequence}" '
            f'missed_cleavages="0">{placed}</domain>'
        )
        proteins = "".join(
            f'<protein expect="-2.1" id="1" uid="1" label="{name}" sumI="5"><note label="description">{name} protein</note>'
            f'<peptide start="1" end="99">{domain}</peptide></protein>'
            for name in psm.proteins
        )
        groups.append(
            f'<group id="{psm.scan}" mh="{psm.mass + PROTON:.6f}" z="{psm.charge}" rt="PT{60 * psm.scan}S" expect="{psm.e_value}" '
            f'label="{psm.proteins[0]}" type="model" act="0">{proteins}<group type="support" label="fragment ion mass spectrum">'
            f'<note label="Description">run.{psm.scan}.{psm.scan}.{psm.charge}</note><GAML:trace id="{psm.scan}" '
            f'type="tandem mass spectrum"><GAML:attribute type="charge">{psm.charge}</GAML:attribute></GAML:trace></group></group>'
        )
    return (
        f'<?xml version="1.0"?>\n<bioml xmlns:GAML="http://www.bioml.com/gaml/" label="models from \'run.mgf\'">{"".join(groups)}</bioml>'
    )


def idxml() -> str:
    names = sorted({name for sequence in TRUTH for name in sequence.proteins})
    hits = "".join(f'<ProteinHit id="PH_{i}" accession="{name}" score="0" sequence=""/>' for i, name in enumerate(names))
    xml = ""
    for psm in TRUTH:
        references = " ".join(f"PH_{names.index(name)}" for name in psm.proteins)
        xml += (
            f'<PeptideIdentification score_type="q-value" higher_score_better="false" significance_threshold="0" MZ="{psm.mz:.6f}" '
            f'RT="{60 * psm.scan}" spectrum_reference="scan={psm.scan}"><PeptideHit score="{psm.q_value}" '
            f'sequence="{_bracketed(psm, lambda name: f"({name})", ".{}")}" charge="{psm.charge}" protein_refs="{references}">'
            f'<UserParam type="float" name="expect" value="{psm.e_value}"/><UserParam type="string" name="target_decoy" '
            f'value="{"decoy" if psm.is_decoy else "target"}"/></PeptideHit></PeptideIdentification>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<IdXML version="1.5"><SearchParameters id="SP_0"/>'
        '<IdentificationRun search_engine="Comet" search_engine_version="1"><ProteinIdentification score_type="" '
        f'higher_score_better="true" significance_threshold="0">{hits}'
        f'<UserParam type="stringList" name="spectra_data" value="[/data/run.mgf]"/></ProteinIdentification>{xml}'
        "</IdentificationRun></IdXML>"
    )


FORMATS: dict[str, tuple[str, Callable[[], str]]] = {
    "percolator": ("x.psms.tsv", percolator),
    "mokapot": ("mokapot.psms.txt", mokapot),
    "pin": ("x.pin", pin),
    "crux": ("percolator.target.psms.txt", crux),
    "sage": ("results.sage.tsv", sage),
    "comet": ("x.txt", comet),
    "msfragger": ("x.tsv", msfragger),
    "philosopher": ("psm.tsv", philosopher),
    "maxquant": ("msms.txt", maxquant),
    "dia-nn": ("report.tsv", dia_nn),
    "peptideshaker": ("report.txt", peptideshaker),
    "mztab": ("x.mzTab", mztab),
    "pepxml": ("x.pep.xml", pepxml),
    "mzidentml": ("x.mzid", mzidentml),
    "xtandem": ("output.xml", xtandem),
    "idxml": ("x.idXML", idxml),
}
"""File names and contents by format. DIA-NN and PeptideShaker report only targets."""


def write_results(name: str, folder: Path) -> Path:
    file, make = FORMATS[name]
    path = folder / file
    path.write_text(make(), encoding="utf-8")
    return path


def write_parquet_report(path: Path, **changed: pa.Array) -> Path:
    """Write a DIA-NN report with the types of version 2, with some columns replaced."""
    header, *rows = [line.split("\t") for line in dia_nn().splitlines()]
    single, whole = {"Q.Value", "PEP", "Global.Q.Value", "RT", "Precursor.Mz"}, {"Precursor.Charge", "MS2.Scan"}
    columns = {
        name: pa.array(column).cast(pa.float32() if name in single else pa.int64() if name in whole else pa.string())
        for name, column in zip(header, zip(*rows, strict=True), strict=True)
    }
    pq.write_table(pa.table(columns | changed), path, compression="zstd")
    return path
