"""A wrong argument raises an error of one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proteoscope
from proteoscope import resources
from proteoscope.engine.searches import run_search

SPECTRA, PROTEINS = resources.path("samples", "BSA1.mzML.gz"), resources.path("samples", "albumin_proteins.fasta.gz")
PEAKS = ([100.0, 200.0], [3.0, 4.0])
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "missing file": (lambda: proteoscope.identify("missing.mzML", PROTEINS), "missing.mzML: does not exist"),
    "bytes": (lambda: proteoscope.identify(b"run.mzML", PROTEINS), "spectra = b'run.mzML': expected a path"),  # type: ignore[arg-type]
    "number": (lambda: proteoscope.read_fasta(3), "files = 3: expected a path"),  # type: ignore[arg-type]
    "no file": (lambda: proteoscope.read_spectra([]), r"files = \[\]: no file is given"),
    "no spectra": (lambda: proteoscope.identify([], PROTEINS), "identify needs spectra"),
    "parameter": (lambda: proteoscope.identify(SPECTRA, PROTEINS, missed_cleavage=1), "did you mean missed_cleavages"),
    "value": (lambda: proteoscope.identify(SPECTRA, PROTEINS, missed_cleavages=-1), "missed_cleavages = -1: .* 0"),
    "model": (lambda: proteoscope.IdentificationParameters(fdr=2), "fdr = 2: "),
    "parameters of another search": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, parameters=proteoscope.ClusteringParameters()),  # type: ignore[arg-type]
        "parameters = ClusteringParameters: identify takes IdentificationParameters",
    ),
    "both": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, preset="tmt", parameters=proteoscope.IdentificationParameters()),
        "parameters and preset are both given",
    ),
    "preset": (lambda: proteoscope.identify(SPECTRA, PROTEINS, preset="none"), "there is no preset 'none'"),
    "threads": (lambda: proteoscope.identify(SPECTRA, PROTEINS, threads=0), "threads = 0: expected a whole number"),
    "device": (lambda: proteoscope.identify(SPECTRA, PROTEINS, device="gpu"), "gpu"),
    "progress": (lambda: proteoscope.identify(SPECTRA, PROTEINS, progress=3), "progress = 3: expected a function"),  # type: ignore[arg-type]
    "option": (lambda: proteoscope.identify(SPECTRA, PROTEINS, advice="some"), "advice = 'some': expected one of"),  # type: ignore[arg-type]
    "truth": (lambda: proteoscope.identify(SPECTRA, PROTEINS, strict="no"), "strict = 'no': expected True or False"),  # type: ignore[arg-type]
    "two references": (lambda: proteoscope.reads(["a.fasta", "b.fasta"], "c.fastq"), "references = .*: expected one path"),  # type: ignore[arg-type]
    "search without a project": (
        lambda: run_search("identify", {"spectra": SPECTRA, "database": PROTEINS}),
        "identify writes its results into a project: name its folder",
    ),
    "input of another search": (lambda: run_search("identify", {"queries": SPECTRA}), "identify has no input 'queries'; it has spectra"),
    "no project": (lambda: proteoscope.explain("nowhere"), "nowhere: does not exist. Give the folder of a project"),
    "None for a project": (lambda: proteoscope.quantify(None), "project = None: expected a path"),  # type: ignore[arg-type]
    "run without a project": (lambda: proteoscope.modified(SPECTRA, PROTEINS, run="identify-0001"), "needs from_project"),
    "one run": (lambda: proteoscope.compare(), "0 runs are given; from 2"),
    "sequence": (lambda: proteoscope.align({"a": "M-K"}, "MK"), "queries\\['a'\\] = 'M-K': expected the residues"),
    "sequences and files": (lambda: proteoscope.align(["MKW", "x.fasta"], "MKW"), "queries has sequences, and 'x.fasta'"),
    "spectrum": (lambda: proteoscope.annotate("a", "PEPTIDEK/2"), "spectrum = str: expected a Spectrum"),  # type: ignore[arg-type]
    "lengths": (lambda: proteoscope.annotate(([1.0, 2.0], [3.0]), "PEPTIDEK/2"), "give as many m/z as intensities"),
    "not a number": (lambda: proteoscope.annotate(([1.0, float("nan")], [3.0, 1.0]), "PEPTIDEK/2"), "leave these peaks out"),
    "charge": (lambda: proteoscope.annotate(PEAKS, "PEPTIDEK"), "has no charge; write PEPTIDEK/2"),
    "peptide": (lambda: proteoscope.annotate(PEAKS, "PEP!TIDEK/2"), "at character 4"),
    "tolerance": (lambda: proteoscope.annotate(PEAKS, "PEPTIDEK/2", tolerance="5"), "'5' is not a tolerance"),
    "losses": (lambda: proteoscope.annotate(PEAKS, "PEPTIDEK/2", losses=["H3O"]), "losses = "),
    "models": (lambda: proteoscope.superpose("a.pdb", "b.pdb", models="some"), "models = 'some': expected first or all"),  # type: ignore[arg-type]
    "format without a file": (
        lambda: proteoscope.align("MKV", "MKV", format="tsv"),
        "format = 'tsv': is the format of a file; give the file with out",
    ),
    "no sequence": (lambda: proteoscope.align({}, "MKV"), "queries = {}: no sequence is given"),
    "sequences of a generator": (
        lambda: proteoscope.align((text for text in ("MKV", "M-K")), "MKV"),  # type: ignore[arg-type]
        "queries has sequences, and 'M-K', which is not one",
    ),
    "certificates": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, certificates="folder"),
        "the certificates in folder are for workers at an address: give this address, too",
    ),
    "file for a project": (lambda: proteoscope.identify(SPECTRA, PROTEINS, out="r.tsv"), "r.tsv looks like a file, but several files"),
    "file for a folder": (lambda: proteoscope.superpose("a.pdb", "b.pdb", out="both.pdb.gz"), "both.pdb.gz looks like a file"),
    "run name": (lambda: proteoscope.identify(SPECTRA, PROTEINS, out="p", run_name=3), "run_name = 3: expected a text"),  # type: ignore[arg-type]
    "run name as a path": (lambda: proteoscope.align("MKV", "MKV", project="p", run_name="a/b"), "'a/b' cannot name a run"),
    "run name without a project": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, run_name="a"),
        "run_name = 'a' needs a run in a project: give the folder of a project, too",
    ),
    "overwrite": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, out="p", run_name="a", overwrite="yes"),  # type: ignore[arg-type]
        "overwrite = 'yes': expected True or False",
    ),
    "overwrite without a name": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, out="p", overwrite=True),
        "overwrite replaces a run by its name; give run_name, too",
    ),
    "skip without a name": (
        lambda: proteoscope.identify(SPECTRA, PROTEINS, out="p", skip_existing=True),
        "skip_existing finds the run of a project by its name; give run_name, too",
    ),
    "skip without a project": (lambda: proteoscope.align("MKV", "MKV", skip_existing=True), "skip_existing needs a run in a project"),
    "overwrite and skip": (
        lambda: proteoscope.align("MKV", "MKV", project="p", run_name="a", overwrite=True, skip_existing=True),
        "give either overwrite or skip_existing",
    ),
    "busy": (
        lambda: proteoscope.align("MKV", "MKV", project="p", if_busy="maybe"),  # type: ignore[arg-type]
        "if_busy = 'maybe': expected refuse or wait",
    ),
    "estimate of a name": (
        lambda: proteoscope.estimate("identify", SPECTRA, PROTEINS),  # type: ignore[arg-type]
        "search = 'identify': expected the function of a search, such as proteoscope.identify",
    ),
    "estimate of a missing file": (lambda: proteoscope.estimate(proteoscope.identify, "no.mzML", PROTEINS), "no.mzML: does not exist"),
    "charges": (lambda: proteoscope.convert(SPECTRA, "o.mgf", charges="2"), "charges = '2': expected whole numbers"),  # type: ignore[arg-type]
    "range": (lambda: proteoscope.convert(SPECTRA, "o.mgf", precursor_mass=(5, 1)), "precursor_mass = .*: the lowest is above the highest"),
    "one number": (
        lambda: proteoscope.convert(SPECTRA, "o.mgf", retention_time=500),  # type: ignore[arg-type]
        "retention_time = 500: expected two numbers",
    ),
    "identified or not": (lambda: proteoscope.convert(SPECTRA, "o.mgf", identified="a", unidentified="b"), "give one of them"),
    "format of spectra": (lambda: proteoscope.convert(SPECTRA, "o.xyz"), "'o.xyz' is not a format for writing spectra"),
    "no spectrum": (lambda: proteoscope.convert(SPECTRA, "o.mgf", precursor_mass=(1, 2)), "none of the 1,120 spectra matches"),
    "calibrate": (lambda: proteoscope.devices(calibrate="yes"), "calibrate = 'yes': expected True or False"),  # type: ignore[arg-type]
    "cost report": (lambda: proteoscope.cost_report("no/page.html"), "no/page.html: there is no folder no"),
    "processes": (lambda: proteoscope.compile_kernels(processes=0), "processes = 0: expected a number from 1 to 1024"),
    "kind of cached files": (lambda: proteoscope.clear_cache("x"), "kind = 'x': expected all, "),
    "search of presets": (lambda: proteoscope.presets("demo"), "search = 'demo': expected identify, "),
    "folder of samples": (lambda: proteoscope.copy_samples(3), "folder = 3: expected a path"),  # type: ignore[arg-type]
    "threshold": (lambda: proteoscope.compare("a", "b", threshold=2), "threshold = 2: expected a number from 0 to 1"),
}


@pytest.mark.parametrize("name", CALLS)
def test_api_error_names_the_wrong_argument_in_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, sentence = CALLS[name]
    with pytest.raises(proteoscope.ProteoscopeError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
