"""Quantities of identified peptides in the window, each recomputed from the rows of the tables."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from statistics import mean

import numpy as np
import pytest

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.colouring import quantity_colours
from proteoscope.engine.views.coverage import cover
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.peptide_quantities import LinkedQuantities
from proteoscope.engine.views.quantity_traces import Ms1Reader, ion_traces, measured_between
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a project of four runs: two with fourfold amounts of the first protein, and each without one peptide."""
    folder, rng = tmp_path_factory.mktemp("quantified"), np.random.default_rng(8)
    peptides = random_peptides(10, 5)
    runs = {}
    for number, stem in enumerate(("a1", "a2", "b1", "b2")):
        run = SyntheticRun(seconds=200, seed=number, noise_peaks=30)
        for i, peptide in enumerate(peptides):
            fold = 4.0 if number > 1 and i < 5 else 1.0
            planted = Planted(peptide, 2, 4e6 * fold * rng.uniform(0.9, 1.1), 20.0 + 16 * i)
            run.planted.append(planted)
            if i != number:
                run.identified.append(planted)
        runs[stem] = run
    (folder / "design.tsv").write_text(
        "file\tsample\tcondition\treplicate\n" + "".join(f"{stem}\t{stem}\t{stem[0]}\t{stem[1]}\n" for stem in runs)
    )
    proteins = {"P0": peptides[:5], "P1": peptides[5:]}
    project = write_project(folder, runs, proteins)
    return project, folder / "design.tsv", {name: "".join(sequences) for name, sequences in proteins.items()}


def quantify(project, **options):
    run_search("quantify", {"project": [project]}, options=options, device="cpu", threads=2, normalisation="none")


def by_sequence(project) -> dict[str, dict[str | None, list[float]]]:
    quantities: dict[str, dict[str | None, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in table_of(project, "peptide_quantities"):
        if row["log2_quantity"] is not None:
            quantities[row["sequence"]][row["condition"]].append(row["log2_quantity"])
    return quantities


def test_linked_peptide_quantities_are_log2_changes_or_means(made):
    project, design, sequences = made
    opened = Project.open(project)
    linked = LinkedQuantities(opened, "import-0001")
    assert linked.newest() is None
    quantify(project)
    newest = linked.newest()
    assert newest is not None and not newest.is_change and newest.title == "log2 quantity"
    expected = {sequence: mean(chain.from_iterable(values.values())) for sequence, values in by_sequence(project).items()}
    assert {sequence: newest.values[sequence.replace("I", "L")] for sequence in expected} == pytest.approx(expected)
    assert LinkedQuantities(opened, "import-0002").newest() is None

    quantify(project, design=design)
    newest = linked.newest()
    assert newest is not None and newest.is_change and newest.title == "log2 b / a"
    rows = by_sequence(project)
    expected = {sequence: mean(values["b"]) - mean(values["a"]) for sequence, values in rows.items() if values["a"] and values["b"]}
    assert len(expected) > 6
    assert dict(newest.values) == pytest.approx({sequence.replace("I", "L"): value for sequence, value in expected.items()})
    assert np.median([newest.values[sequence.replace("I", "L")] for sequence in expected if sequence in sequences["P0"]]) == pytest.approx(
        2, abs=0.3
    )
    assert newest.scale.low == -newest.scale.high and newest.scale.is_change

    # A residue has the mean of its covering peptides; a peptide counts once, also if listed twice.
    first, second = (sequence for sequence in list(expected)[:2])
    sequence = f"K{first}{second}KKKK"
    rows = [
        {"row": i, "peptide": sequence, "sequence": sequence, "n_psms": 1, "q_value": 0.0}
        for i, sequence in enumerate([first, first, second, first + second])
    ]
    coverage = cover("X", sequence, rows)
    residues = newest.mean_by_residue(coverage)
    wanted = [np.nan, *[expected[first]] * len(first), *[expected[second]] * len(second), *[np.nan] * 4]
    np.testing.assert_allclose(residues, wanted)
    colours = quantity_colours(np.array([newest.scale.low, 0.0, newest.scale.high, np.nan]), newest.scale).tolist()
    assert colours == [[0, 114, 178], [236, 236, 236], [213, 94, 0], [184, 184, 184]]

    # If the table of the newest run cannot be read, there are no quantities of it.
    newest_run = opened.runs()[-1].id
    opened.table("peptide_quantities", newest_run).write_bytes(b"no table")
    assert linked.newest() is newest, "quantities read before are unchanged"
    assert LinkedQuantities(opened, "import-0001").newest() is None


def test_peptide_colours_follow_corrected_trace_borders(made):
    project, design, sequences = made
    quantify(project, design=design)
    opened = Project.open(project)
    run, linked = opened.latest("quantify") or "", LinkedQuantities(opened, "import-0001")
    before = linked.newest()
    assert before is not None and before.run == run and linked.newest() is before, "unchanged quantities are not read again"
    traces = table_of(project, "ion_traces")
    row = next(
        at
        for at, trace_row in enumerate(traces)
        if trace_row["file"] == "b1.mzML" and trace_row["area"] and trace_row["peptide"] in sequences["P0"]
    )
    with open_run(opened, run) as shown:
        ion = ion_traces(shown.tables.source("ion_traces"), row, shown, Ms1Reader(shown))
        trace = next(candidate for candidate in ion.traces if candidate.row == row)
        assert trace.begin is not None and trace.apex is not None
        opened.set_row_correction(run, "ion_traces", row, measured_between(trace, ion.pattern, trace.begin, trace.apex))
    after = linked.newest()
    assert after is not None and after is not before
    peptide = traces[row]["peptide"]
    # The area of one of two samples changes, so that the mean of both changes by half.
    share = opened.row_corrections(run, "ion_traces")[row]["area"] / traces[row]["area"]
    changed = dict(before.values) | {peptide.replace("I", "L"): before.values[peptide.replace("I", "L")] + np.log2(share) / 2}
    assert share < 0.8 and dict(after.values) == pytest.approx(changed)

    rows = [{"row": 0, "peptide": peptide, "sequence": peptide, "n_psms": 1, "q_value": 0.0}]
    coverage = cover("X", f"K{peptide}K", rows)
    colours = [quantity_colours(quantities.mean_by_residue(coverage), before.scale)[1:-1] for quantities in (before, after)]
    assert (colours[0] == colours[0][0]).all() and (colours[1] == colours[1][0]).all()
    assert colours[0][0].tolist() != colours[1][0].tolist()
    assert LinkedQuantities(Project.open(project), "import-0001").newest().values == after.values, "the correction is stored"

    opened.set_row_correction(run, "ion_traces", row, {})
    again = linked.newest()
    assert again is not None and dict(again.values) == dict(before.values)
