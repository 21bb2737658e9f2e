"""Reporter ions: channels, impurities, peaks, interference, and planted ratios in real spectra and whole runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import nnls

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.formats.reporter_regions import read_reporter_regions
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.quantification.identified import Forms, warn_of_identified
from proteoscope.engine.quantification.impurities import corrected, read_impurities
from proteoscope.engine.quantification.isobaric import interference, reporter_peaks
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.searches import run_search
from proteoscope.engine.statistics.nonnegative import nonnegative_least_squares
from tests.engine.quantification.synthetic_runs import (
    Planted,
    SyntheticRun,
    mzml_text,
    random_peptides,
    spectrum_text,
    table_of,
    write_project,
)

CARBON, NITROGEN, HYDROGEN, ELECTRON = (12.0, 13.0033548), (14.0030740, 15.0001089), 1.00782503, 0.00054858
TMT10 = tuple(
    zip(
        ("126", "127N", "127C", "128N", "128C", "129N", "129C", "130N", "130C", "131"),
        (5.1, 5.3, 5.4, 4.2, 3.1, 3.0, 2.6, 2.7, 2.2, 1.7),
        strict=True,
    )
)
PERCENTS = "channel\t-1\t+1\n" + "".join(f"{name}\t0.8\t{percent}\n" for name, percent in TMT10)


@pytest.mark.parametrize("kit", ["tmt-6", "tmt-6-older", "tmt-10", "tmt-11", "tmt-16", "tmt-18"])
def test_tmt_channels_have_the_mass_of_their_heavy_atoms(kit):
    for channel, mz in zip(label(kit).channels, label(kit).mz, strict=True):
        apart = {}
        for kind, weight in zip("CN", NITROGEN, strict=True):
            heavy = int(channel[:3]) - 126 - (kind == "N")
            if 0 <= heavy <= 8:
                apart[kind] = abs(heavy * CARBON[1] + (8 - heavy) * CARBON[0] + weight + 16 * HYDROGEN - ELECTRON - mz)
        assert min(apart.values()) < 2e-5
        assert not channel[3:] or min(apart, key=apart.__getitem__) == channel[3:]


@pytest.mark.parametrize("kit", ["itraq-4", "itraq-8"])
def test_itraq_channels_are_one_dalton_apart(kit):
    nominal = np.array([int(channel) for channel in label(kit).channels])
    assert np.abs(label(kit).mz - label(kit).mz[0] - (nominal - nominal[0])).max() < 0.03


@pytest.mark.parametrize("k", [1, 4, 18])
def test_nonnegative_least_squares_equals_scipy(k):
    rng = np.random.default_rng(k)
    matrix = np.eye(k) + rng.uniform(0, 0.3, (k, k))
    right = rng.lognormal(0, 2, (300, k))
    right[rng.random(right.shape) < 0.4] = 0
    expected = np.array([nnls(matrix, row)[0] for row in right])
    np.testing.assert_allclose(nonnegative_least_squares(matrix, right), expected, rtol=1e-9, atol=1e-9)
    tall, any_right = rng.normal(0, 1, (k + 3, k)), rng.normal(0, 1, (300, k + 3))
    expected = np.array([nnls(tall, row)[0] for row in any_right])
    np.testing.assert_allclose(nonnegative_least_squares(tall, any_right), expected, atol=1e-9)
    with pytest.raises(ValueError, match="rank"):
        nonnegative_least_squares(np.ones((3, 2)), np.ones((1, 3)))


def test_read_impurities_assigns_percentages_to_channels(tmp_path):
    path = tmp_path / "kit.tsv"
    path.write_text(PERCENTS)
    kit = label("tmt-10")
    matrix = read_impurities(path, kit)
    assert matrix[kit.number("127C"), kit.number("126")] == pytest.approx(0.051)
    assert matrix[kit.number("127N"), kit.number("126")] == 0
    assert matrix[kit.number("126"), kit.number("127C")] == pytest.approx(0.008)
    assert matrix[0, 0] == pytest.approx(1 - 0.059)
    path.write_text("channel\t-13C\t+15N\t+2x13C\n" + "".join(f"{name}\t1\t2\t0.5\n" for name, _ in TMT10))
    matrix = read_impurities(path, kit)
    assert matrix[kit.number("127N"), 0] == pytest.approx(0.02)
    assert matrix[kit.number("128C"), 0] == pytest.approx(0.005)
    whole = "channel\t114\t115\t116\t117\n114\t95\t5\t0\t0\n115\t2\t94\t4\t0\n116\t0\t3\t93\t4\n117\t0\t0\t5\t95\n"
    path.write_text(whole)
    assert read_impurities(path, label("itraq-4"))[1, 0] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("name\t+1\n126\t1\n", "has no column 'channel'"),
        ("channel\tup\n126\t1\n", "'up' is neither a shift nor a channel of tmt-10"),
        ("channel\t+1\t+1\n126\t1\t1\n", "has a column twice"),
        ("channel\t+1\n140\t1\n", "'140' is not a channel of tmt-10"),
        ("channel\t+1\n126\t1\n126\t1\n", "has channel 126 twice, as in line 2"),
        ("channel\t+1\n126\tmuch\n", "'much' is not a percentage"),
        ("channel\t+1\n126\tnan\n", "'nan' is not a percentage"),
        ("channel\t+1\n126\t99\n", "do not add up to 100"),
        ("channel\t+1\n126\t5\n", "lacks channel 127N"),
        ("channel\t126\t128N\n" + "".join(f"{name}\t50\t50\n" for name, _ in TMT10[:1] + TMT10[3:4]), "lacks channel 127N"),
        (
            "\t".join(["channel", *(name for name, _ in TMT10)])
            + "".join(f"\n{name}" + "".join(f"\t{50 * (j // 2 == i // 2)}" for j in range(10)) for i, (name, _) in enumerate(TMT10)),
            "cannot be separated",
        ),
    ],
)
def test_read_impurities_rejects_and_locates_invalid_tables(tmp_path, text, why):
    (tmp_path / "kit.tsv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_impurities(tmp_path / "kit.tsv", label("tmt-10"))
    assert why in str(caught.value) and "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def real(shared_data, tmp_path_factory):
    """Write real spectra with planted reporter ions of ten channels, mixed by the impurities, and return the planted amounts."""
    folder, kit = tmp_path_factory.mktemp("real"), label("tmt-10")
    (folder / "kit.tsv").write_text(PERCENTS)
    matrix = read_impurities(folder / "kit.tsv", kit)
    rng = np.random.default_rng(5)
    texts, planted = [], []
    for name in ("TMTTenPlexMethod_test", "IsobaricAnalyzer_input_1"):
        spectra = read_spectra([shared_data / "spectra" / "isobaric" / f"{name}.mzML"])
        for i in range(len(spectra)):
            amounts = 1e4 * np.geomspace(1, 50, 10)[rng.permutation(10)]
            amounts[rng.permutation(10)[: i % 3]] = 0
            mz, intensity = spectra.peaks(i)
            retained = (np.abs(mz[:, None] - kit.mz) > 0.003).all(axis=1)
            shown = matrix @ amounts
            mz = np.concatenate([mz[retained], (kit.mz + rng.uniform(-0.001, 0.001, 10))[shown > 0]])
            intensity = np.concatenate([intensity[retained].astype(np.float64), shown[shown > 0]])
            order = np.argsort(mz)
            texts.append(spectrum_text(len(texts), 2, 60.0 + i, mz[order], intensity[order], Planted("PEPTIDEK", 2, 1.0, 60.0)))
            planted.append(amounts)
    (folder / "real.mzML").write_text(mzml_text(texts))
    return folder, np.array(planted)


@pytest.mark.parametrize("by", ["most-intense", "nearest"])
def test_planted_reporter_ratios_are_recovered_in_real_spectra(real, by):
    folder, planted = real
    kit = label("tmt-10")
    regions = read_reporter_regions(folder / "real.mzML", kit.mz.min() - 0.1, kit.mz.max() + 0.1)
    peaks = reporter_peaks(regions, np.arange(len(regions)), kit.mz, Tolerance(0.003, "Da"), by)
    intensities = np.nan_to_num(corrected(peaks.intensity, read_impurities(folder / "kit.tsv", kit)))
    np.testing.assert_allclose(intensities / intensities.sum(axis=1)[:, None], planted / planted.sum(axis=1)[:, None], rtol=1e-6, atol=1e-6)


def test_interference_is_interpolated_between_ms1_spectra():
    spectra = Ms1Spectra(
        np.array([0.0, 10.0]),
        np.array([1, 2]),
        np.array([0, 3, 5]),
        np.array([499.6, 500.0, 500.3, 500.0, 500.6]),
        np.array([5, 30, 10, 20, 20], np.float32),
    )
    arguments = (np.array([500.0]), np.array([2]), np.array([2.0]), Tolerance(10, "ppm"))
    # Isotopes of two charges are half a thomson apart.
    first, second = 15 / 45, 20 / 40
    assert interference(spectra, np.array([2.5]), *arguments)[0] == pytest.approx(0.75 * first + 0.25 * second)
    assert interference(spectra, np.array([11.0]), *arguments)[0] == pytest.approx(second)
    assert np.isnan(interference(spectra, np.array([np.nan]), *arguments)[0])
    assert np.isnan(interference(spectra, np.array([2.5]), np.array([700.0]), *arguments[1:])[0])


def test_interference_uses_ms1_spectra_of_the_same_faims_voltage():
    times, counts = np.array([0.0, 4.0, 10.0]), np.array([0, 2, 4, 6])
    mz = np.array([500.0, 500.3, 500.0, 500.3, 500.0, 500.3])
    spectra = Ms1Spectra(times, np.arange(3), counts, mz, np.array([3, 1, 1, 9, 1, 1], np.float32), voltage=np.array([-45.0, -60.0, -45.0]))
    arguments = (np.array([500.0]), np.array([2]), np.array([2.0]), Tolerance(10, "ppm"))
    assert interference(spectra, np.array([2.5]), *arguments)[0] == pytest.approx(0.75 * 0.25 + 0.25 * 0.5)
    assert interference(spectra, np.array([5.0]), *arguments)[0] == pytest.approx(0.9)


@pytest.fixture(scope="module")
def plexes(tmp_path_factory):
    """Write two TMT10 plexes as two runs of the same peptides, the second with doubled quantities.

    Channel 126 is a pool; 127N to 131 are x, y and z with 1, 2 and 4 times as much of the first half of the proteins.
    """
    kit, rng = label("tmt-10"), np.random.default_rng(3)
    peptides = random_peptides(24, 31)
    proteins = {f"P{i}": peptides[3 * i : 3 * i + 3] for i in range(8)}
    runs = {}
    for number, stem in enumerate(("one", "two")):
        run = SyntheticRun(seconds=200, seed=number, noise_peaks=40)
        fragments = {}
        for name, sequences in proteins.items():
            for sequence in sequences:
                peptide = Planted(sequence, 2, 4e6, rng.uniform(30, 170))
                run.planted.append(peptide)
                run.identified.append(peptide)
                fold = np.array([2, 1, 1, 1, 2, 2, 2, 4, 4, 4]) if int(name[1:]) < 4 else np.full(10, 2)
                values = fold * (number + 1) * rng.uniform(5e3, 6e3) * rng.lognormal(0, 0.02, 10)
                fragments[sequence] = ([*kit.mz, 175.1, 301.2], [*values, 100.0, 200.0])
        run.fragments = fragments
        runs[stem] = run
    folder = tmp_path_factory.mktemp("plexes")
    rows = ["file\tchannel\tsample\tcondition\treplicate"]
    for number, stem in enumerate(runs):
        conditions = [("pool", number + 1), *((name, 3 * number + i + 1) for name in "xyz" for i in range(3))]
        rows += [f"{stem}\t{channel}\t{stem}_{channel}\t{name}\t{i}" for channel, (name, i) in zip(kit.channels, conditions, strict=True)]
    (folder / "design.tsv").write_text("\n".join(rows) + "\n")
    return write_project(folder, runs, proteins), folder / "design.tsv", rows


def quantify(project, design=None, **parameters):
    options = {} if design is None else {"design": design}
    return run_search("quantify", {"project": [project]}, preset="tmt", options=options, device="cpu", threads=2, **parameters)


def test_quantify_scales_plexes_by_pools(plexes):
    project, design, _ = plexes
    summary = quantify(project, design, reference="pool", conditions=("x", "y", "z"))
    assert (summary.n_samples, summary.n_proteins) == (20, 8)
    assert not any("no reference" in text for text in summary.messages)
    changes = {(row["comparison"], row["accession"]): row for row in table_of(project, "protein_changes")}
    for protein in range(8):
        for k, name in ((1, "y"), (2, "z")):
            row = changes[f"{name} / x", f"P{protein}"]
            # Normalised to the median sample. Half of the proteins change, so differences between proteins are planted.
            other = changes[f"{name} / x", f"P{7 if protein < 4 else 0}"]
            planted = k if protein < 4 else -k
            assert row["log2_fold_change"] - other["log2_fold_change"] == pytest.approx(planted, abs=0.1)
    rows = table_of(project, "reporter_ions")
    assert len(rows) == 2 * 24 * 10 and {row["sample"] for row in rows} == {
        f"{stem}_{name}" for stem in ("one", "two") for name, _ in TMT10
    }
    assert all(row["interference"] is not None and row["interference"] < 0.5 for row in rows if row["refused"] is None)
    pools = [row["quantity"] for row in table_of(project, "protein_quantities") if row["condition"] == "pool" and row["accession"] == "P1"]
    assert pools[0] == pytest.approx(pools[1], rel=1e-9)


def test_quantify_without_design_uses_each_channel_as_sample(plexes):
    project = plexes[0]
    summary = quantify(project, peptide_quantity="median", protein_quantity="median", normalisation="none")
    assert summary.n_samples == 20
    assert any(text.startswith("2 plexes and no reference") for text in summary.messages)
    quantities = {(row["accession"], row["sample"]): row["quantity"] for row in table_of(project, "protein_quantities")}
    assert quantities["P0", "one_131"] / quantities["P0", "one_127N"] == pytest.approx(4, rel=0.15)
    assert quantities["P0", "two_131"] / quantities["P0", "one_131"] == pytest.approx(2, rel=0.3)


def older_kit_project(folder, shift):
    """Write a project of a run with the six reporter ions of the older kit, moved by a shift."""
    kit, peptides = label("tmt-6-older"), random_peptides(6, 9)
    run = SyntheticRun(seconds=100, seed=4, noise_peaks=10)
    run.identified = run.planted = [Planted(peptide, 2, 4e6, 10.0 + 12 * i) for i, peptide in enumerate(peptides)]
    run.fragments = {peptide: ([*(kit.mz + shift), 301.2], [*np.linspace(1e3, 2e3, 6), 50.0]) for peptide in peptides}
    return write_project(folder, {"one": run}, {"P": peptides})


def test_quantify_suggests_the_older_kit_for_shifted_channels(tmp_path):
    project = older_kit_project(tmp_path, 0.0)
    messages = quantify(project, label="tmt-6").messages
    (warning,) = [message for message in messages if "outside the reporter tolerance" in message]
    assert "127 (+6.3 mDa, 100 % of the spectra)" in warning and "129" in warning and "128 (" not in warning
    assert "quantify with --label tmt-6-older" in warning
    messages = quantify(project, label="tmt-6-older").messages
    assert not any("outside the reporter tolerance" in message for message in messages)
    assert all(row["measured"] is not None for row in table_of(project, "reporter_ions"))


def test_quantify_reports_channel_shift_that_fits_no_kit(tmp_path):
    with pytest.raises(InputError, match=r"no identified spectrum .*126 \(\+4.5 mDa.*widen reporter_tolerance"):
        quantify(older_kit_project(tmp_path, 0.0045), label="tmt-6-older")


def test_quantify_without_reference_uses_plexes_as_blocks(plexes, tmp_path):
    project, _, rows = plexes
    plain = [row for row in rows if "pool" not in row]
    (tmp_path / "design.tsv").write_text("\n".join(plain) + "\n")
    summary = quantify(project, tmp_path / "design.tsv", conditions=("x", "y", "z"))
    assert any(message == "Blocks of the comparison: plex" for message in summary.messages)
    table = {row["sample"]: row["plex"] for row in table_of(project, "quantified_samples")}
    assert {name.split("_")[0]: plex for name, plex in table.items()} == {"one": "1", "two": "2"}
    apart = [row.replace("\tx\t", "\tu\t") if row.startswith("two") else row for row in plain if "\tx\t" in row or row.startswith("file")]
    (tmp_path / "apart.tsv").write_text("\n".join(apart) + "\n")
    with pytest.raises(ParameterError, match="u cannot be compared with x: conditions and plex change together"):
        quantify(project, tmp_path / "apart.tsv", conditions=("x", "u"))
    refused = quantify(project, tmp_path / "apart.tsv")
    assert refused.n_tested == 0 and any("change together" in message for message in refused.messages)
    named = [plain[0] + "\tplex", *(f"{row}\tp" for row in plain[1:])]
    (tmp_path / "named.tsv").write_text("\n".join(named) + "\n")
    with pytest.raises(InputError, match="a column plex that contradicts the files"):
        quantify(project, tmp_path / "named.tsv")


def test_quantify_rejects_spectra_with_too_much_interference(plexes):
    project = plexes[0]
    quantify(project, maximum_interference=0.0)
    rows = table_of(project, "reporter_ions")
    mixed = {row["peptide"] for row in rows if row["interference"] > 0 and row["file"] == "one.mzML"}
    assert len(mixed) > 3
    assert all((row["refused"] == "too much interference") == (row["interference"] > 0) for row in rows)
    states = {(row["peptide"], row["sample"]): row for row in table_of(project, "peptidoform_quantities")}
    assert all(states[peptide, "one_126"]["state"] == "refused" and states[peptide, "one_126"]["quantity"] is None for peptide in mixed)


def test_quantify_rejects_spectra_with_reporter_ions_near_noise(tmp_path):
    kit, peptides = label("tmt-10"), random_peptides(6, 9)
    run = SyntheticRun(seconds=100, seed=4, noise_peaks=10, noise={peptide: 100.0 * 4**i for i, peptide in enumerate(peptides[:5])})
    run.identified = run.planted = [Planted(peptide, 2, 4e6, 10.0 + 12 * i) for i, peptide in enumerate(peptides)]
    run.fragments = {peptide: ([*kit.mz, 301.2], [*np.linspace(1e3, 2e3, 10), 50.0]) for peptide in peptides}
    project = write_project(tmp_path, {"one": run}, {"P": peptides})
    quantify(project, minimum_signal_to_noise=1.0)
    rows = table_of(project, "reporter_ions")
    assert len(rows) == 60
    for row in rows:
        noise = run.noise.get(row["peptide"])
        if noise is None:
            assert row["signal_to_noise"] is None and row["refused"] is None
        else:
            assert row["signal_to_noise"] == pytest.approx(row["measured"] / noise, rel=1e-5)
            assert row["refused"] == ("too near the noise" if 1500 / noise < 1 else None)
    states = {(row["peptide"], row["sample"]): row["state"] for row in table_of(project, "peptidoform_quantities")}
    assert {states[peptides[2], name] for _, name in states if _ == peptides[2]} == {"refused"}
    assert {states[peptides[1], name] for _, name in states if _ == peptides[1]} == {"measured"}


def test_error_names_setting_that_rejects_reporter_spectra(tmp_path):
    kit, peptides = label("tmt-10"), random_peptides(2, 9)
    run = SyntheticRun(seconds=60, seed=4, noise_peaks=10, noise=dict.fromkeys(peptides, 1e3))
    run.identified = run.planted = [Planted(peptide, 2, 4e6, 10.0 + 12 * i) for i, peptide in enumerate(peptides)]
    run.fragments = {peptide: (kit.mz.tolist(), [1e3] * 10) for peptide in peptides}
    project = write_project(tmp_path, {"one": run}, {"P": peptides})
    with pytest.raises(InputError, match=r"no.* has a quantity in any sample\. Look at .*minimum_signal_to_noise"):
        quantify(project, minimum_signal_to_noise=100.0)
    with pytest.raises(InputError, match=r"has no fragment spectra \(MS3\)\. Take reporter ions of MS2"):
        quantify(project, reporter_level="ms3")


def test_quantify_warns_when_no_file_reports_noise(plexes):
    project = plexes[0]
    summary = quantify(project, minimum_signal_to_noise=10.0)
    assert any("no spectrum was refused by its signal-to-noise ratio" in text for text in summary.messages)
    assert {row["signal_to_noise"] for row in table_of(project, "reporter_ions")} == {None}


def test_quantify_rejects_a_run_without_reporter_ions(plexes):
    with pytest.raises(InputError, match="no identified spectrum has a reporter ion of itraq-4"):
        quantify(plexes[0], label="itraq-4")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: [*rows, rows[1]], "names channel 126 of file one a second time, after line 2"),
        (
            lambda rows: [*rows[:2], rows[2].replace("one_127N\tx\t1", "one_126\tpool\t1")],
            "gives sample 'one_126' two channels",
        ),
        (
            lambda rows: [*rows[:3], "two\t126\tone_126\tpool\t1"],
            "assigns sample 'one_126' to one.mzML and two.mzML",
        ),
        (lambda rows: [*rows, "one\t150\tZ\tq\t1"], "'150' is not a channel of tmt-10"),
        (lambda rows: [*rows, "three\t126\tZ\tq\t1"], "'three' is not a file of the identification"),
        (lambda rows: ["\t".join(row.split("\t")[:1] + row.split("\t")[2:]) for row in rows], "has no column 'channel'"),
    ],
)
def test_quantify_rejects_invalid_channel_designs(plexes, tmp_path, change, why):
    project, _, rows = plexes
    (tmp_path / "design.tsv").write_text("\n".join(change(rows)) + "\n")
    with pytest.raises(InputError) as caught:
        quantify(project, tmp_path / "design.tsv")
    assert why in str(caught.value) and "\n" not in str(caught.value)


def test_quantify_rejects_a_reference_missing_from_a_plex(plexes, tmp_path):
    project, design, rows = plexes
    with pytest.raises(ParameterError, match="the design has the conditions pool, x, y, z"):
        quantify(project, design, reference="water")
    (tmp_path / "design.tsv").write_text("\n".join(row for row in rows if not row.startswith("two\t126")) + "\n")
    with pytest.raises(ParameterError, match="the plex of sample 'two_127N' has no channel of this condition"):
        quantify(project, tmp_path / "design.tsv", reference="pool")


@pytest.mark.parametrize(("method", "is_proposed"), [("counts", True), ("label-free", True), ("tmt", False)])
def test_quantify_suggests_reporter_ions_for_labelled_peptides(method, is_proposed):
    peptides = ["[TMT6plex]-AK[TMT6plex]", "[TMT6plex]-AR", "AAR"]
    identified = SimpleNamespace(forms=Forms(peptides, np.arange(3), np.ones(3), np.ones((3, 7))), unrated=())
    progress = RecordingProgress(Progress())
    warn_of_identified(identified, method, progress)
    proposals = [message for message in progress.messages if "2 of 3 peptidoforms carry TMT6plex" in message]
    assert bool(proposals) == is_proposed
    assert not proposals or "--method tmt and --label tmt-6 or tmt-10 or tmt-11" in proposals[0]
