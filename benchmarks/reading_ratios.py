"""Reading speed of each format compared with another checkout: one JSON line for each kind of file.

    python -m benchmarks.reading_ratios --data FOLDER --against CHECKOUT [--rounds N] [--only NAME ...]

FOLDER is the unpacked test data, from which larger files are made. Two processes, one for each checkout, read every file in turns, after
one reading that compiles the kernels. `seconds` and `seconds_before` are the CPU time of all threads, the minimum of all rounds, since
other programs on the machine can only add time. `ratio` is `seconds` divided by `seconds_before`; above 1, reading has become slower. It is
missing for a format that the other checkout does not read.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import emit, existing
from benchmarks.simulated_reads import genome_of, write_reads
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra.columns import Spectra

REPOSITORY = Path(__file__).resolve().parents[1]
_PROTON_MASS = 1.007276466621
_PAIRS = 200_000
_STRUCTURES = 150


class Case(NamedTuple):
    """A kind of file, how it is read (see `timed_reader`), and its files."""

    name: str
    kind: str
    paths: list[Path]


class Reader:
    """A process that reads files by the program of a checkout."""

    def __init__(self, checkout: Path, cache: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout), "PROTEOSCOPE_CACHE": str(cache)}
        command = [sys.executable, str(Path(__file__).with_name("timed_reader.py"))]
        self._process = subprocess.Popen(command, cwd=checkout, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def seconds(self, case: Case) -> tuple[float, str]:
        """Return the CPU seconds of a reading, or why there are none."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([case.kind, *map(str, case.paths)]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer.get("seconds", 0.0), answer.get("reason", "")

    def end(self) -> None:
        """Wait for the process to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def cases(data: Path, made: Path) -> Iterator[Case]:
    """Yield all kinds of files, those that are made from others in a folder."""
    yield from _of_spectra(data / "spectra", made)
    yield Case("MGF of small molecules", "spectra", [data / "clustering" / "massbank_esi_ms2.mgf"])
    yield from _of_libraries(data / "libraries", made)
    yield from _of_proteins(data / "proteomes", made)
    yield from _of_reads(data / "dna", made)
    yield from _of_structures(data / "structures", made)


def _of_spectra(folder: Path, made: Path) -> Iterator[Case]:
    mgf = folder / "bench_hires_2269.mgf"
    spectra = read_spectra([mgf])
    yield Case("MGF", "spectra", [_repeated(mgf, 8, made)])
    for name, write in (("MS2", _ms2_text), ("DTA", _dta_text), ("PKL", _pkl_text)):
        path = made / f"spectra.{name.lower()}"
        path.write_text("".join(write(spectra, i) for i in range(len(spectra))) * 4)
        yield Case(name, "spectra", [path])
    yield Case("mzML, arrays not compressed", "spectra", [folder / "bsa_ltq" / "BSA1.mzML"])
    yield Case("mzML, zlib", "spectra", sorted((folder / "hela_velos").glob("*.mzML")) + sorted(folder.glob("metaproteome_qe/*.mzML")))
    yield Case("mzXML", "spectra", [folder / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML"])


def _peak_text(spectra: Spectra, i: int) -> str:
    here = slice(int(spectra.offsets[i]), int(spectra.offsets[i + 1]))
    peaks = zip(spectra.mz[here].tolist(), spectra.intensity[here].tolist(), strict=True)
    return "".join(f"{mz:.5f} {intensity:.1f}\n" for mz, intensity in peaks)


def _charge(spectra: Spectra, i: int) -> int:
    return max(1, int(spectra.charge_mask[i]).bit_length() - 1)


def _ms2_text(spectra: Spectra, i: int) -> str:
    mz, charge = spectra.precursor_mz[i], _charge(spectra, i)
    mass = mz * charge - (charge - 1) * _PROTON_MASS
    return f"S\t{i + 1}\t{i + 1}\t{mz:.5f}\nI\tRTime\t{i / 60:.4f}\nZ\t{charge}\t{mass:.5f}\n{_peak_text(spectra, i)}"


def _dta_text(spectra: Spectra, i: int) -> str:
    mz, charge = spectra.precursor_mz[i], _charge(spectra, i)
    return f"{mz * charge - (charge - 1) * _PROTON_MASS:.5f} {charge}\n{_peak_text(spectra, i)}\n"


def _pkl_text(spectra: Spectra, i: int) -> str:
    return f"{spectra.precursor_mz[i]:.5f} 1000.0 {_charge(spectra, i)}\n{_peak_text(spectra, i)}\n"


def _repeated(path: Path, times: int, made: Path) -> Path:
    """Return a file with its entries repeated."""
    target = made / path.name
    target.write_bytes((existing(path).read_bytes().rstrip() + b"\n\n") * times)
    return target


def _of_libraries(folder: Path, made: Path) -> Iterator[Case]:
    yield Case("MSP of NIST", "library", [_repeated(folder / "nist-bsa_consensus.msp", 3, made)])
    yield Case("MSP of Broad", "library", [_repeated(folder / "broad_tcga_nonphospho_consensus_rec.head.msp", 100, made)])
    yield Case("sptxt", "library", [_repeated(folder / "testlib.sptxt", 200, made)])
    yield Case("mzSpecLib text", "library", [folder / "IARPA3_best_tissue_add_info.head.mzSpecLib.txt"])
    yield Case("mzSpecLib JSON", "library", [folder / "IARPA3_best_tissue_add_info.head.mzSpecLib.json"])
    yield Case("blib", "library", [folder / "filtered.existing.blib"])
    yield Case("DIA-NN table", "library", [folder / "phl004_canonical_sall_pv_plasma.head.diann.tsv"])
    yield Case("Spectronaut table", "library", [folder / "human_serum.head.spectronaut.tsv"])
    yield Case("MGF that names peptides", "library", [folder.parent / "spectra" / "known_ids" / "proteometools_171_kuester_test.mgf"])


def _of_proteins(folder: Path, made: Path) -> Iterator[Case]:
    yield Case("FASTA", "proteins", [folder / "combo.fasta"])
    records = [record.partition("\n") for record in (folder / "18Protein_SoCe_Tr_detergents_trace.fasta").read_text().split(">")[1:]]
    proteins = [(f"Q{i:05}", "".join(sequence.split()).rstrip("*")) for i, (_, _, sequence) in enumerate(records)]
    for name, write in (("UniProt text", _uniprot_text), ("GenBank of proteins", _genbank_text)):
        path = made / f"{name.split()[0]}.txt"
        path.write_text("".join(write(accession, sequence) for accession, sequence in proteins))
        yield Case(name, "proteins", [path])


def _uniprot_text(accession: str, sequence: str) -> str:
    lines = "\n".join(f"     {sequence[i : i + 60]}" for i in range(0, len(sequence), 60))
    return (
        f"ID   {accession}_BOVIN{'Reviewed':>20};{len(sequence):>12} AA.\nAC   {accession};\nDE   RecName: Full=Protein;\n"
        f"OS   Bos taurus (Bovine).\nOX   NCBI_TaxID=9913;\nFT   CHAIN           1..{len(sequence)}\n"
        f'FT                   /note="Protein"\nSQ   SEQUENCE   {len(sequence)} AA;  7000 MW;  0123456789ABCDEF CRC64;\n{lines}\n//\n'
    )


def _genbank_text(accession: str, sequence: str) -> str:
    small = sequence.lower()
    lines = "\n".join(f"{i + 1:>9} {small[i : i + 60]}" for i in range(0, len(small), 60))
    return (
        f"LOCUS       {accession:<16}{len(sequence):>12} aa            linear   MAM 15-NOV-2007\nDEFINITION  protein [Bos taurus].\n"
        f"ACCESSION   {accession}\nSOURCE      Bos taurus (cattle)\n  ORGANISM  Bos taurus\nFEATURES             Location/Qualifiers\n"
        f'     Protein         1..{len(sequence)}\n                     /product="protein"\nORIGIN\n{lines}\n//\n'
    )


def _of_reads(folder: Path, made: Path) -> Iterator[Case]:
    single, first, second = made / "single.fastq", made / "first.fastq", made / "second.fastq"
    write_reads(single, genome_of(folder / "dna_lambda.fasta"), _PAIRS, length=100)
    lines = single.read_bytes().split(b"\n")
    for path, tag in ((first, b"/1"), (second, b"/2")):
        named = list(lines)
        named[0:-1:4] = [b"@M01234:55:000000000-A1B2C:1:" + name[1:] + tag for name in lines[0:-1:4]]
        path.write_bytes(b"\n".join(named))
    yield Case("FASTQ", "reads", [single])
    yield Case("FASTQ in pairs", "pairs", [first, second])


def _of_structures(folder: Path, made: Path) -> Iterator[Case]:
    import gemmi  # slow to import: only structures need it

    domains = sorted((folder / "malidup_malisam").rglob("*.pdb"))[:_STRUCTURES]
    yield Case("PDB of domains", "structures", domains)
    yield Case("PDB of chains", "structures", sorted((folder / "pdbchains").glob("*.pdb"))[:_STRUCTURES])
    converted = []
    for path in domains:
        converted.append(made / f"{len(converted)}.cif")
        gemmi.read_structure(str(path)).make_mmcif_document().write_file(str(converted[-1]))
    yield Case("mmCIF of domains", "structures", converted)
    odd = folder / "odd"
    yield Case("PDB with header, large", "structures", [odd / name for name in ("2XHE.pdb", "biojava_1lnl.pdb", "biojava_2gox_v315.pdb")])
    yield Case("PDB of several models", "structures", [odd / name for name in ("2BEG.pdb", "1LCD.pdb")])
    yield Case("mmCIF of one model", "structures", [odd / name for name in ("1A8O.cif", "2XHE.cif", "4ZHL.cif", "biotite_1aki.cif")])
    yield Case("mmCIF of several models", "structures", [odd / name for name in ("2BEG.cif", "biojava_2kc9.cif")])
    yield Case("BinaryCIF of one model", "structures", [odd / name for name in ("biotite_1aki.bcif", "biotite_4osx.bcif")])
    yield Case("BinaryCIF of several models", "structures", [odd / "biojava_2kc9.bcif"])


def measure(case: Case, readers: dict[str, Reader], rounds: int, against: str) -> None:
    """Read a case in turns, and print its figure."""
    ratios: dict[str, list[float]] = {version: [] for version in readers}
    reasons: dict[str, str] = {}
    for turn in range(rounds + 1):
        for version in sorted(readers, reverse=bool(turn % 2)):
            if version not in reasons:
                seconds, reason = readers[version].seconds(case)
                if reason:
                    reasons[version] = reason
                elif turn:
                    ratios[version].append(seconds)
    if "now" in reasons:
        sys.exit(f"{case.name}: {reasons['now']}")
    now = min(ratios["now"])
    megabytes = sum(path.stat().st_size for path in case.paths) / 1e6
    figures = {"megabytes": round(megabytes, 1), "seconds": round(now, 4), "megabytes_per_second": round(megabytes / now, 1)}
    before = min(ratios["before"]) if ratios["before"] else None
    compared = {"seconds_before": round(before, 4), "ratio": round(now / before, 3)} if before else {}
    emit(
        {"figure": "reading compared", "date": str(date.today()), "before": against, "files": case.name},
        rounds=rounds,
        **figures,
        **compared,
    )


def revision(checkout: Path) -> str:
    """Return the commit of a checkout, or ''."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--against", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only files whose names begin so")
    arguments = parser.parse_args()
    checkouts = {"before": arguments.against.resolve(), "now": REPOSITORY}
    against = revision(checkouts["before"])
    with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
        readers = {version: Reader(checkout, Path(scratch, version)) for version, checkout in checkouts.items()}
        made = Path(scratch, "made")
        made.mkdir()
        for case in cases(arguments.data, made):
            if not arguments.only or case.name.startswith(tuple(arguments.only)):
                measure(case, readers, arguments.rounds, against)
        for reader in readers.values():
            reader.end()


if __name__ == "__main__":
    main()
