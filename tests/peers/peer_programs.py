"""The compared programs, each run as a process with its wall time and peak memory: Proteoscope, Comet, X!Tandem, Sage's core.

All search with the same settings: trypsin (KR|P), 2 missed cleavages, 7-50 residues, carbamidomethylated cysteine, up to 3 oxidised
methionines, the same isotope errors (X!Tandem has only on and off), targets and reversed decoys together, best match of each spectrum.
Results of a peer are cached in the peers' folder until its settings, its inputs or its command change.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.peers.peer_datasets import PPM, Dataset, with_reversed_decoys

__all__ = ["PEERS", "Match", "Search", "installed", "peers_folder", "run_peer", "run_proteoscope"]

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SHORTEST, LONGEST = 7, 50
PEERS = ("comet", "xtandem", "sagepy")


@dataclass(frozen=True)
class Match:
    """The best match of a spectrum.

    Attributes
    ----------
    spectrum : int
        Number of the spectrum in the dataset, from 0 over all its MS2 spectra.
    peptide : str
        Unmodified sequence.
    score : float
        Ranking score, larger is better: minus the E-value for Comet and X!Tandem, the hyperscore for Sage's core.
    is_decoy : bool
        True if no target protein has the peptide.
    raw_score : float
        Score that an E-value is computed from (XCorr, hyperscore), not calibrated between spectra; otherwise equal to `score`.
    q_value : float
        The program's own, or NaN.
    """

    spectrum: int
    peptide: str
    score: float
    is_decoy: bool
    raw_score: float
    q_value: float = math.nan


@dataclass(frozen=True)
class Search:
    """Result of one program for one dataset, and the cost of the whole process: wall seconds, peak resident megabytes (10^6 bytes)."""

    program: str
    version: str
    seconds: float
    peak_megabytes: float
    matches: list[Match]
    details: dict[str, object]


def peers_folder() -> Path:
    """Return the folder of tests/peers/install.sh: ``PROTEOSCOPE_PEERS``, else ``~/.cache/proteoscope-peers``."""
    return Path(os.environ.get("PROTEOSCOPE_PEERS", Path.home() / ".cache" / "proteoscope-peers"))


def installed(program: str) -> bool:
    """True if the peer is installed; all of them need the peers' Python, which converts the spectra."""
    return _binary(program).exists() and _binary("sagepy").exists()


def _binary(program: str) -> Path:
    if program == "comet" and "PROTEOSCOPE_COMET" in os.environ:
        return Path(os.environ["PROTEOSCOPE_COMET"])
    places = {"comet": "debian/usr/bin/comet-ms", "xtandem": "debian/usr/bin/tandem", "sagepy": "python/bin/python"}
    return peers_folder() / places[program]


def run_peer(program: str, dataset: Dataset, data: Path, *, threads: int, isotope_errors: int = 1, refresh: bool = False) -> Search:
    """Search the dataset with a peer, or read its cached result for the same inputs, settings and binary.

    Precursors may be off by 0 to `isotope_errors` isotopes (at most 3).
    """
    inputs = [data / name for name in (*dataset.spectra, dataset.database)]
    search = {"comet": _comet, "xtandem": _xtandem, "sagepy": _sagepy}[program]
    code = (
        inspect.getsource(search)
        + COMET_PARAMETERS
        + "".join((HERE / name).read_text() for name in ("search_with_sagepy.py", "merge_spectra.py"))
    )
    tolerances = (dataset.precursor, dataset.fragment, isotope_errors, threads)
    digest = hashlib.sha256(repr((tolerances, str(_binary(program).resolve()))).encode() + code.encode())
    for path in inputs:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    retained = peers_folder() / "results" / f"{dataset.name}-{program}-{digest.hexdigest()[:16]}.json"
    if retained.exists() and not refresh:
        record = json.loads(retained.read_text())
        return Search(**{**record, "matches": [Match(*row) for row in record["matches"]]})
    folder = peers_folder() / "work" / f"{dataset.name}-{program}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _convert(inputs[:-1], folder / "spectra.mgf")
    psms = search(dataset, folder, data / dataset.database, threads, isotope_errors)
    retained.parent.mkdir(exist_ok=True)
    partial = retained.with_suffix(".partial")
    partial.write_text(
        json.dumps(asdict(replace(psms, matches=[])) | {"matches": [list(asdict(match).values()) for match in psms.matches]})
    )
    partial.rename(retained)
    shutil.rmtree(folder)
    return psms


def _convert(spectra: list[Path], out: Path) -> None:
    subprocess.run([_binary("sagepy"), HERE / "merge_spectra.py", out, *spectra], check=True)


def _measured(command: list[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> tuple[float, float, str]:
    """Run a command and return wall seconds, peak resident megabytes and standard output; a failure is an error with its output."""
    with (folder / "stdout").open("w+") as out, (folder / "stderr").open("w+") as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        output = out.read()
        if process.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {process.returncode}: {(output + err.read())[-2000:]}")
    return seconds, usage.ru_maxrss * 1024 / 1e6, output


# ------------------------------------------------------------------------------------------------------------------- Comet

COMET_PARAMETERS = """# comet_version {version}
database_name = {database}
decoy_search = 0
num_threads = {threads}
peptide_mass_tolerance = {precursor}
peptide_mass_units = {precursor_unit}
mass_type_parent = 1
mass_type_fragment = 1
precursor_tolerance_type = 1
isotope_error = {isotope_errors}
search_enzyme_number = 1
num_enzyme_termini = 2
allowed_missed_cleavage = 2
variable_mod01 = 15.994915 M 0 3 -1 0 0 0.0
max_variable_mods_in_peptide = 3
fragment_bin_tol = {bin}
fragment_bin_offset = {offset}
theoretical_fragment_ions = {theoretical}
use_A_ions = 0
use_B_ions = 1
use_C_ions = 0
use_X_ions = 0
use_Y_ions = 1
use_Z_ions = 0
use_NL_ions = 0
output_sqtfile = 0
output_txtfile = 1
output_pepxmlfile = 0
output_percolatorfile = 0
num_output_lines = 1
num_results = 100
sample_enzyme_number = 1
digest_mass_range = 500.0 5000.0
peptide_length_range = 7 50
max_fragment_charge = 3
max_precursor_charge = 6
clip_nterm_methionine = 0
spectrum_batch_size = 15000
decoy_prefix = DECOY_
equal_I_and_L = 1
minimum_peaks = 10
remove_precursor_peak = 0
clear_mz_range = 0.0 0.0
add_C_cysteine = 57.021464
[COMET_ENZYME_INFO]
0.  No_enzyme              0      -           -
1.  Trypsin                1      KR          P
"""


def _comet(dataset: Dataset, folder: Path, database: Path, threads: int, isotope_errors: int) -> Search:
    """Search with Comet, ranked by its E-value; bins of 0.02 for high-resolution fragments, 1.0005 for others, as in its manual."""
    fine = dataset.fragment[1] == PPM
    libraries = {"LD_LIBRARY_PATH": str(peers_folder() / "debian/usr/lib")}
    banner = subprocess.run([_binary("comet")], capture_output=True, text=True, check=False, env={**os.environ, **libraries})
    version = _found(r'Comet version "([^"]*)"', banner.stdout + banner.stderr)
    with_reversed_decoys(database, folder / "database.fasta")
    (folder / "comet.params").write_text(
        COMET_PARAMETERS.format(
            version=version,
            database=folder / "database.fasta",
            threads=threads,
            isotope_errors=isotope_errors,
            precursor=dataset.precursor[0],
            precursor_unit=2 if dataset.precursor[1] == PPM else 0,
            bin=0.02 if fine else 1.0005,
            offset=0.0 if fine else 0.4,
            theoretical=0 if fine else 1,
        )
    )
    seconds, peak, _ = _measured([_binary("comet"), "-Pcomet.params", "spectra.mgf"], folder, libraries)
    best: dict[int, Match] = {}
    with (folder / "spectra.txt").open() as file:
        next(file)
        for row in csv.DictReader(file, delimiter="\t"):
            proteins = row["protein"].split(",")
            # Comet numbers the spectra of an MGF from 1; a spectrum of unknown charge has a line for each charge tried.
            spectrum = int(row["scan"]) - 1
            is_decoy = all(name.startswith("DECOY_") for name in proteins)
            match = Match(spectrum, row["plain_peptide"], -float(row["e-value"]), is_decoy, float(row["xcorr"]))
            if spectrum not in best or match.score > best[spectrum].score:
                best[spectrum] = match
    return Search("comet", version, seconds, peak, list(best.values()), {})


# ---------------------------------------------------------------------------------------------------------------- X!Tandem


def _xtandem(dataset: Dataset, folder: Path, database: Path, threads: int, isotope_errors: int) -> Search:
    """Search with X!Tandem without refinement, ranked by its expectation value."""
    with_reversed_decoys(database, folder / "database.fasta")
    taxon = f'<taxon label="all"><file format="peptide" URL="{escape(str(folder / "database.fasta"))}"/></taxon>'
    (folder / "taxonomy.xml").write_text(f'<?xml version="1.0"?>\n<bioml>{taxon}</bioml>\n')
    settings = {
        "list path, taxonomy information": "taxonomy.xml",
        "protein, taxon": "all",
        "spectrum, path": "spectra.mgf",
        "output, path": "output.xml",
        "output, path hashing": "no",
        "output, results": "all",
        "output, maximum valid expectation value": "10000",
        "output, sort results by": "spectrum",
        "output, spectra": "yes",
        "output, histograms": "no",
        "output, sequences": "no",
        "output, proteins": "yes",
        "output, parameters": "no",
        "output, performance": "yes",
        "spectrum, fragment monoisotopic mass error": f"{dataset.fragment[0]}",
        "spectrum, fragment monoisotopic mass error units": "ppm" if dataset.fragment[1] == PPM else "Daltons",
        "spectrum, parent monoisotopic mass error plus": f"{dataset.precursor[0]}",
        "spectrum, parent monoisotopic mass error minus": f"{dataset.precursor[0]}",
        "spectrum, parent monoisotopic mass error units": "ppm" if dataset.precursor[1] == PPM else "Daltons",
        "spectrum, parent monoisotopic mass isotope error": "yes" if isotope_errors else "no",
        "spectrum, fragment mass type": "monoisotopic",
        "spectrum, dynamic range": "100.0",
        "spectrum, total peaks": "50",
        "spectrum, maximum parent charge": "6",
        "spectrum, use noise suppression": "no",
        "spectrum, minimum parent m+h": "500.0",
        "spectrum, minimum fragment mz": "100.0",
        "spectrum, minimum peaks": "10",
        "spectrum, threads": f"{threads}",
        "residue, modification mass": "57.021464@C",
        "residue, potential modification mass": "15.994915@M",
        "protein, cleavage site": "[RK]|{P}",
        "protein, cleavage semi": "no",
        "protein, quick acetyl": "no",
        "protein, quick pyrolidone": "no",
        "protein, stP bias": "no",
        "refine": "no",
        "scoring, minimum ion count": "4",
        "scoring, maximum missed cleavage sites": "2",
        "scoring, a ions": "no",
        "scoring, b ions": "yes",
        "scoring, c ions": "no",
        "scoring, x ions": "no",
        "scoring, y ions": "yes",
        "scoring, z ions": "no",
        "scoring, include reverse": "no",
    }
    notes = "".join(f'<note type="input" label="{escape(name)}">{escape(value)}</note>\n' for name, value in settings.items())
    (folder / "input.xml").write_text(f'<?xml version="1.0"?>\n<bioml>\n{notes}</bioml>\n')
    seconds, peak, output = _measured([_binary("xtandem"), "input.xml"], folder)
    matches = []
    for _, group in ElementTree.iterparse(folder / "output.xml"):
        if group.tag != "group" or group.get("type") != "model":
            continue
        # X!Tandem stores the title of the spectrum as the description of its peaks; proteins with the same best score are listed together.
        title = next(note.text for note in group.iter("note") if note.get("label") == "Description")
        hits = [
            (protein.get("label", "").startswith("DECOY_"), domain.get("seq", ""), float(domain.get("hyperscore", "nan")))
            for protein in group.iter("protein")
            for domain in protein.iter("domain")
            if SHORTEST <= len(domain.get("seq", "")) <= LONGEST
        ]
        if hits:
            is_decoy, peptide, hyperscore = min(hits)
            matches.append(Match(int(_found(r"^(\d+)", title or "")), peptide, -float(group.get("expect", "nan")), is_decoy, hyperscore))
        group.clear()
    return Search("xtandem", _found(r"X! TANDEM ([^\n]*?)\s*$", output), seconds, peak, matches, {})


# ------------------------------------------------------------------------------------------------------------- Sage's core


def _sagepy(dataset: Dataset, folder: Path, database: Path, threads: int, isotope_errors: int) -> Search:
    """Search with Sage's core through sagepy, ranked by its hyperscore without rescoring; it makes its own decoys by reversing peptides."""
    settings = {
        "spectra": "spectra.mgf",
        "database": str(database),
        "precursor": dataset.precursor,
        "fragment": dataset.fragment,
        "isotope_errors": [0, isotope_errors],
        "threads": threads,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    command = [_binary("sagepy"), HERE / "search_with_sagepy.py", "settings.json", "matches.tsv"]
    seconds, peak, output = _measured(command, folder, {"RAYON_NUM_THREADS": str(threads)})
    details = json.loads(output.strip().splitlines()[-1])
    matches = []
    for line in (folder / "matches.tsv").read_text().splitlines():
        title, peptide, hyperscore, is_decoy, _ = line.split("\t")
        matches.append(Match(int(title), peptide, float(hyperscore), is_decoy == "1", float(hyperscore)))
    return Search("sagepy", details.pop("version"), seconds, peak, matches, details)


# ------------------------------------------------------------------------------------------------------------- Proteoscope


def run_proteoscope(
    dataset: Dataset, data: Path, out: Path, *, threads: int, device: str = "cpu", settings: tuple[str, ...] = ()
) -> Search:
    """Search the dataset as a user does, with the command line and a preset; an index in the project folder `out` is reused."""
    out.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [sys.executable, "-c", "import sys; from proteoscope.gui.launch import main; sys.exit(main())", "identify"]
    command += [data / name for name in dataset.spectra]
    command += [
        "--database",
        data / dataset.database,
        "--out",
        out,
        "--preset",
        dataset.preset,
        "--device",
        device,
        "--threads",
        str(threads),
        "--quiet",
    ]
    for setting in settings:
        command += ["--set", setting]
    logs = out.parent / f"{out.name}-logs"
    logs.mkdir(exist_ok=True)
    paths = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    seconds, peak, _ = _measured(command, logs, {"PYTHONPATH": paths})
    record = json.loads((out / "run.json").read_text())
    numbers = _spectrum_numbers(dataset, data, out.parent)
    matches = []
    with (out / "exports" / "psms.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["rank"]) == 1:
                name = Path(row["spectrum_file"]).name
                # Readers of mzXML name a scan differently; its number is the same in all.
                identifier = row["scan"] if name.lower().endswith(".mzxml") else row["spectrum_id"]
                is_decoy = row["is_decoy"].lower() in {"true", "1"}
                score = float(row["score"])
                matches.append(Match(numbers[name, identifier], row["sequence"], score, is_decoy, score, float(row["q_value"])))
    return Search("proteoscope", str(record["version"]), seconds, peak, matches, record)


def _spectrum_numbers(dataset: Dataset, data: Path, folder: Path) -> dict[tuple[str, str], int]:
    """Return the number of each spectrum in the merged MGF that the peers search, by file and by its name in the file."""
    merged = folder / f"{dataset.name}.mgf"
    if not merged.exists():
        _convert([data / name for name in dataset.spectra], merged)
    rows = [line.split("\t") for line in merged.with_suffix(".tsv").read_text().splitlines()]
    return {(file, scan if scan != "-1" else identifier): number for number, (file, identifier, scan) in enumerate(rows)}


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else "unknown"
