"""Simulate the TMT 10-plex sample run with two conditions, changed proteins and modified peptides; `SOURCES.md` describes the files.

    python -m installer.simulated_run [--proteins MMSEQS_DB.fasta]

Protein sequences are real, all measurements are random. Fragment intensities are predicted by the shipped network, which ignores the label.
Reporter ions follow the planted amounts, with noise of samples, peptides and ion counting. Some peptides carry a modification that the
identification does not search, and some spectra are of sequences that are in no protein. The same database gives the same bytes; with
--proteins (`DB.fasta` of Debian's `mmseqs2-examples`) the database is created as well.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.made_spectra import fragment_ions, residue_masses
from installer.reduced_runs import rounded
from proteoscope import resources
from proteoscope.engine.chemistry.isotopes import isotope_patterns, sequence_elements
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.matches.fragment_intensities import load_network
from proteoscope.engine.quantification.labels import label

__all__ = ["SIMULATED", "Simulation", "simulate"]

FOLDER = Path(__file__).resolve().parents[1] / "resources" / "samples"
SIMULATED = "simulated_tmt10"
"""Prefix of the names of all files."""
_SEED = 10_126
_STANDARD = frozenset("ACDEFGHIKLMNPQRSTVWY")
_N_ENTRIES = 600
_MAMMALS = re.compile("OS=(Homo|Mus|Rattus|Macaca|Pan|Bos|Sus|Ovis|Canis|Felis|Equus|Gorilla|Pongo|Callithrix|Papio|Nomascus|Chlorocebus)")

_CONDITIONS, _REPLICATES = ("control", "treated"), 5
_N_PROTEINS, _N_UP, _N_DOWN = 110, 14, 14
_FOLD = (0.7, 2.0)  # range of the absolute log2 change of changed proteins
_OF_SAMPLE, _OF_PEPTIDE = 0.25, 0.12  # standard deviations of log2 amounts, per protein and sample and per peptide and sample
_REPORTER_IONS = 4000.0  # number of ions counted per channel in the most intense spectra

_LENGTHS, _PEPTIDES, _FEWEST = (7, 24), 5, 3  # range of residues; maximum and minimum number of peptides per protein
_SHIFTED = (("Phospho", "STY", 60), ("Methyl", "DE", 25), ("Oxidation", "HW", 20), ("Nitro", "Y", 15), ("Acetyl", "ST", 10))
"""Modifications that the usual TMT identification does not search: name, residues, and number of modified peptides."""
_N_FOREIGN = 60

_MS2_PER_MS1, _SECONDS_PER_SPECTRUM = 6, 1.0
_ELUTION = 8.0  # standard deviation of an elution peak in seconds
_MS1_RANGE = (350.0, 1600.0)
_FAINTEST_MS1, _FAINTEST_MS2 = 0.002, 0.004
_PRECURSOR_PPM, _FRAGMENT_PPM, _SYSTEMATIC_PPM = 1.5, 3.0, 1.0
_DROPPED, _STRAY_MS1, _STRAY_MS2, _SCATTER = 0.1, 40, 20, 0.3
_INTENSITY_BITS = 6


@dataclass(frozen=True)
class Simulation:
    """Contents of the simulated files: the run (mzML), its design, and the planted changes."""

    run: str
    design: str
    truth: str


@dataclass(frozen=True)
class _Precursor:
    """A measured precursor of a peptide; for sequences that are in no protein, `protein` is -1 and there are no planted amounts."""

    sequence: str
    protein: int
    shift: NDArray[np.float64]
    charge: int
    height: float
    apex: float

    @property
    def masses(self) -> NDArray[np.float64]:
        return residue_masses(self.sequence, self.shift, is_labelled=True)

    @property
    def mz(self) -> float:
        return (float(self.masses.sum()) + WATER_MASS) / self.charge + PROTON_MASS


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--proteins", type=Path, help="the sequences of mmseqs2-examples, to make the database anew")
    given = parser.parse_args()
    database = FOLDER / f"{SIMULATED}_proteins.fasta.gz"
    if given.proteins is not None:
        database.write_bytes(gzip.compress(_database(given.proteins.read_text("ascii")).encode(), 9, mtime=0))
    made = simulate(gzip.decompress(database.read_bytes()).decode())
    (FOLDER / f"{SIMULATED}.mzML.gz").write_bytes(gzip.compress(made.run.encode(), 9, mtime=0))
    (FOLDER / f"{SIMULATED}_design.tsv").write_text(made.design)
    (FOLDER / f"{SIMULATED}_truth.tsv").write_text(made.truth)


def simulate(database: str) -> Simulation:
    """Simulate the run from the FASTA text of its database."""
    generator = np.random.default_rng(_SEED)
    proteins = [(header, sequence) for header, sequence in _records(database) if "OS=Homo sapiens" in header]
    present = _peptides_of_proteins(database, proteins, generator)
    n = len(present)
    change = np.zeros(n)
    change[:_N_UP] = generator.uniform(*_FOLD, _N_UP)
    change[_N_UP : _N_UP + _N_DOWN] = -generator.uniform(*_FOLD, _N_DOWN)
    condition = np.repeat(np.arange(len(_CONDITIONS)), _REPLICATES)
    levels = change[:, None] * condition + generator.normal(0, _OF_SAMPLE, (n, len(condition)))
    precursors = _precursors([peptides for _, peptides in present], generator)
    spectra = list(_spectra(precursors, levels, generator))
    names = [proteins[row][0] for row, _ in present]
    return Simulation(_mzml(spectra), _design(), _truth(names, change))


def _database(text: str) -> str:
    """Choose the database entries: the longest human protein of each gene, and evenly spaced proteins of distant organisms."""
    human: dict[str, tuple[str, str]] = {}
    others = []
    for header, sequence in _records(text):
        header = header.strip().removesuffix("Split=0").strip()
        gene = re.search(r"GN=(\S+)", header)
        if not set(sequence) <= _STANDARD:
            continue
        if "OS=Homo sapiens" in header and gene:
            human[gene[1]] = max(human.get(gene[1], ("", "")), (header, sequence), key=lambda entry: len(entry[1]))
        elif not _MAMMALS.search(header):
            others.append((header, sequence))
    entries = [*human.values(), *others[:: len(others) // (_N_ENTRIES - len(human))]][:_N_ENTRIES]
    return "".join(f">{header}\n{_wrapped(sequence)}\n" for header, sequence in entries)


def _records(text: str) -> list[tuple[str, str]]:
    """Return the header and sequence of each entry in FASTA text."""
    records = (record.partition("\n") for record in text.split(">")[1:])
    return [(header, "".join(lines.split())) for header, _, lines in records]


def _wrapped(sequence: str) -> str:
    return "\n".join(sequence[start : start + 60] for start in range(0, len(sequence), 60))


def _peptides_of_proteins(
    database: str, proteins: Sequence[tuple[str, str]], generator: np.random.Generator
) -> list[tuple[int, list[str]]]:
    """Return the proteins of the sample: row index, and tryptic peptides that occur in no other entry (with I = L)."""
    whole = "|".join(sequence for _, sequence in _records(database)).replace("I", "L")
    result = []
    for row in generator.permutation(len(proteins)).tolist():
        tryptic = re.findall(r"(?<=[KR])(?!P)[^KR]*(?:[KR]P[^KR]*)*[KR](?!P)", proteins[row][1])
        usable = [
            peptide
            for peptide in dict.fromkeys(tryptic)
            if _LENGTHS[0] <= len(peptide) <= _LENGTHS[1] and whole.count(peptide.replace("I", "L")) == 1
        ]
        if len(usable) >= _FEWEST:
            result.append((row, generator.permutation(usable)[:_PEPTIDES].tolist()))
        if len(result) == _N_PROTEINS:
            break
    return result


def _precursors(peptides: Sequence[Sequence[str]], generator: np.random.Generator) -> list[_Precursor]:
    """Return the measured precursors by elution time: peptides, modified peptides, and sequences that are in no protein."""
    planted = [(sequence, protein, np.zeros(len(sequence))) for protein, some in enumerate(peptides) for sequence in some]
    plain = list(planted)
    for name, residues, count in _SHIFTED:
        mass = unimod().by_name(name).mass
        fitting = [
            (sequence, protein, k) for sequence, protein, _ in plain for k, residue in enumerate(sequence[1:-1], 1) if residue in residues
        ]
        for at in generator.permutation(len(fitting))[:count].tolist():
            sequence, protein, k = fitting[at]
            planted.append((sequence, protein, np.where(np.arange(len(sequence)) == k, mass, 0.0)))
    residues = list("".join(sequence for sequence, _, _ in plain))
    for _ in range(_N_FOREIGN):
        length = int(generator.integers(*_LENGTHS))
        planted.append(("".join(generator.choice(residues, length)) + "K", -1, np.zeros(length + 1)))
    step = _SECONDS_PER_SPECTRUM * (1 + 1 / _MS2_PER_MS1)
    result = []
    for place, row in enumerate(generator.permutation(len(planted)).tolist()):
        sequence, protein, shift = planted[row]
        charge = 3 if len(sequence) > 15 or sum(sequence.count(residue) for residue in "KRH") > 2 else 2
        apex = 300.0 + place * step + float(generator.normal(0, 3))
        result.append(_Precursor(sequence, protein, shift, charge, float(generator.lognormal(np.log(3e6), 0.9)), apex))
    return result


def _spectra(precursors: Sequence[_Precursor], levels: NDArray[np.float64], generator: np.random.Generator) -> Iterator[str]:
    """Yield the spectra of the run as mzML: an MS1 spectrum before every few MS2 spectra, and one at the end."""
    network = load_network(resources.path("fragmentation", "intensities.npz"))
    patterns = isotope_patterns(sequence_elements([precursor.sequence for precursor in precursors]), 5)
    time, index = 300.0, 0
    for place, precursor in enumerate(precursors):
        if place % _MS2_PER_MS1 == 0:
            yield _spectrum(index, time, *_survey(precursors, patterns, time, generator))
            time, index = time + _SECONDS_PER_SPECTRUM, index + 1
        amounts = np.exp2(levels[precursor.protein]) if precursor.protein >= 0 else np.ones(levels.shape[1])
        yield _spectrum(index, time, *_fragments(network, precursor, amounts, generator), precursor)
        time, index = time + _SECONDS_PER_SPECTRUM, index + 1
    yield _spectrum(index, time, *_survey(precursors, patterns, time, generator))


def _survey(
    precursors: Sequence[_Precursor], patterns: NDArray[np.float64], time: float, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return m/z and intensities of an MS1 spectrum: isotope peaks of the eluting precursors, and noise peaks."""
    mz, height = [generator.uniform(*_MS1_RANGE, _STRAY_MS1)], [generator.lognormal(np.log(2e4), 0.7, _STRAY_MS1)]
    for precursor, pattern in zip(precursors, patterns, strict=True):
        share = float(np.exp(-0.5 * ((time - precursor.apex) / _ELUTION) ** 2))
        if share > _FAINTEST_MS1:
            mz.append(precursor.mz + np.arange(len(pattern)) * ISOTOPE_SPACING / precursor.charge)
            height.append(precursor.height * share * pattern * np.exp(generator.normal(0, 0.05, len(pattern))))
    return _measured(np.concatenate(mz), np.concatenate(height), _PRECURSOR_PPM, generator)


def _fragments(
    network: object, precursor: _Precursor, amounts: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return m/z and intensities of an MS2 spectrum: fragments, reporter ions for the channels' `amounts`, and noise peaks."""
    mz, height = fragment_ions(network, precursor.sequence, precursor.charge, precursor.masses)
    is_seen = (generator.random(len(mz)) >= _DROPPED) & (height > _FAINTEST_MS2)
    mz, height = mz[is_seen], height[is_seen] * np.exp(generator.normal(0, _SCATTER, int(is_seen.sum())))
    stray = generator.uniform(150.0, 1400.0, _STRAY_MS2), generator.lognormal(np.log(0.01), 0.8, _STRAY_MS2)
    reporters = 0.5 * amounts * np.exp2(generator.normal(0, _OF_PEPTIDE, len(amounts)))
    counted = generator.poisson(reporters * _REPORTER_IONS) / _REPORTER_IONS
    return _measured(
        np.concatenate((label("tmt-10").mz, mz, stray[0])),
        np.concatenate((counted, height, stray[1])) * precursor.height * 0.05,
        _FRAGMENT_PPM,
        generator,
    )


def _measured(
    mz: NDArray[np.float64], height: NDArray[np.float64], ppm: float, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return peaks sorted by m/z, after adding random mass errors: a systematic one, and one with standard deviation `ppm`."""
    mz = mz * (1 + (_SYSTEMATIC_PPM + generator.normal(0, ppm, len(mz))) * 1e-6)
    order = np.argsort(mz, kind="stable")
    return mz[order], height[order]


def _spectrum(index: int, time: float, mz: NDArray[np.float64], height: NDArray[np.float64], precursor: _Precursor | None = None) -> str:
    """Return a spectrum as mzML; without a precursor it is an MS1 spectrum."""
    ion, level = "", 1
    if precursor is not None:
        target = f"{precursor.mz * (1 + _SYSTEMATIC_PPM * 1e-6):.5f}"
        level = 2
        ion = (
            '<precursorList count="1"><precursor><isolationWindow>'
            f'<cvParam cvRef="MS" accession="MS:1000827" name="isolation window target m/z" value="{target}"/>'
            '<cvParam cvRef="MS" accession="MS:1000828" name="isolation window lower offset" value="0.35"/>'
            '<cvParam cvRef="MS" accession="MS:1000829" name="isolation window upper offset" value="0.35"/>'
            '</isolationWindow><selectedIonList count="1"><selectedIon>'
            f'<cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="{target}"/>'
            f'<cvParam cvRef="MS" accession="MS:1000041" name="charge state" value="{precursor.charge}"/>'
            "</selectedIon></selectedIonList><activation>"
            '<cvParam cvRef="MS" accession="MS:1000422" name="beam-type collision-induced dissociation"/>'
            "</activation></precursor></precursorList>"
        )
    return (
        f'<spectrum index="{index}" id="scan={index + 1}" defaultArrayLength="{len(mz)}">'
        f'<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="{level}"/>'
        '<cvParam cvRef="MS" accession="MS:1000127" name="centroid spectrum"/>'
        '<scanList count="1"><cvParam cvRef="MS" accession="MS:1000795" name="no combination"/><scan>'
        f'<cvParam cvRef="MS" accession="MS:1000016" name="scan start time" value="{time:.2f}" '
        'unitCvRef="UO" unitAccession="UO:0000010" unitName="second"/></scan></scanList>'
        f'{ion}<binaryDataArrayList count="2">'
        + _array(mz.astype("<f4"), "MS:1000514", "m/z array")
        + _array(rounded(height.astype("<f4"), _INTENSITY_BITS), "MS:1000515", "intensity array")
        + "</binaryDataArrayList></spectrum>\n"
    )


def _array(values: NDArray[np.float32], accession: str, name: str) -> str:
    """Return an array as mzML without compression, so that its content does not depend on the version of zlib; the file is gzipped."""
    text = base64.b64encode(values.tobytes()).decode("ascii")
    return (
        f'<binaryDataArray encodedLength="{len(text)}"><cvParam cvRef="MS" accession="MS:1000521" name="32-bit float"/>'
        '<cvParam cvRef="MS" accession="MS:1000576" name="no compression"/>'
        f'<cvParam cvRef="MS" accession="{accession}" name="{name}"/><binary>{text}</binary></binaryDataArray>'
    )


def _mzml(spectra: Sequence[str]) -> str:
    """Return the text of an mzML file."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">\n<cvList count="2">'
        '<cv id="MS" fullName="PSI-MS" URI="https://purl.obolibrary.org/obo/ms.obo"/>'
        '<cv id="UO" fullName="Unit Ontology" URI="https://purl.obolibrary.org/obo/uo.obo"/></cvList>\n'
        '<fileDescription><fileContent><cvParam cvRef="MS" accession="MS:1000580" name="MSn spectrum"/>'
        '<userParam name="simulated" value="made by installer/simulated_run.py of Proteoscope; nothing was measured"/>'
        "</fileContent></fileDescription>\n"
        '<softwareList count="1"><software id="proteoscope" version="1">'
        '<cvParam cvRef="MS" accession="MS:1000799" name="custom unreleased software tool" value="simulated_run"/>'
        "</software></softwareList>\n"
        '<instrumentConfigurationList count="1"><instrumentConfiguration id="simulated"/></instrumentConfigurationList>\n'
        '<dataProcessingList count="1"><dataProcessing id="simulation"><processingMethod order="0" softwareRef="proteoscope">'
        '<cvParam cvRef="MS" accession="MS:1000544" name="Conversion to mzML"/></processingMethod></dataProcessing></dataProcessingList>\n'
        f'<run id="{SIMULATED}" defaultInstrumentConfigurationRef="simulated">'
        f'<spectrumList count="{len(spectra)}" defaultDataProcessingRef="simulation">\n{"".join(spectra)}</spectrumList></run></mzML>\n'
    )


def _design() -> str:
    """Return the design table, which assigns samples to channels."""
    channels = iter(label("tmt-10").channels)
    rows = [
        f"{SIMULATED}.mzML.gz\t{next(channels)}\t{condition}_{replicate}\t{condition}\t{replicate}"
        for condition in _CONDITIONS
        for replicate in range(1, _REPLICATES + 1)
    ]
    return "\n".join(["file\tchannel\tsample\tcondition\treplicate", *rows, ""])


def _truth(names: Sequence[str], change: NDArray[np.float64]) -> str:
    """Return a table of the planted log2 change, treated versus control, of each protein in the sample."""
    rows = [f"{name.partition(' ')[0]}\t{value:.3f}" for name, value in zip(names, change.tolist(), strict=True)]
    return "\n".join(["protein\tlog2_change", *rows, ""])


if __name__ == "__main__":
    main()
