"""Quantities of peptides beside the identification that they are of, each computed again from the rows of the tables."""

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
from proteoscope.engine.views.quantity_traces import RunSurveys, ion_traces, measured_between
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project of four runs, two of them with four times as much of the first of two proteins, and not all peptides in each."""
    folder, rng = tmp_path_factory.mktemp("quantified"), np.random.default_rng(8)
    peptides = random_peptides(10, 5)
    runs = {}
    for number, stem in enumerate(("a1", "a2", "b1", "b2")):
        run = SyntheticRun(seconds=200, seed=number, noise_peaks=30)
        for i, one in enumerate(peptides):
            fold = 4.0 if number > 1 and i < 5 else 1.0
            planted = Planted(one, 2, 4e6 * fold * rng.uniform(0.9, 1.1), 20.0 + 16 * i)
            run.planted.append(planted)
            if i != number:
                run.identified.append(planted)
        runs[stem] = run
    (folder / "design.tsv").write_text(
        "file\tsample\tcondition\treplicate\n" + "".join(f"{one}\t{one}\t{one[0]}\t{one[1]}\n" for one in runs)
    )
    proteins = {"P0": peptides[:5], "P1": peptides[5:]}
    project = write_project(folder, runs, proteins)
    return project, folder / "design.tsv", {name: "".join(own) for name, own in proteins.items()}


def quantify(project, **options):
    run_search("quantify", {"project": [project]}, options=options, device="cpu", threads=2, normalisation="none")


def by_sequence(project) -> dict[str, dict[str | None, list[float]]]:
    found: dict[str, dict[str | None, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in table_of(project, "peptide_quantities"):
        if row["log2_quantity"] is not None:
            found[row["sequence"]][row["condition"]].append(row["log2_quantity"])
    return found


def test_changes_are_those_of_the_first_comparison_and_else_means_count(made):
    project, design, sequences = made
    opened = Project.open(project)
    beside = LinkedQuantities(opened, "import-0001")
    assert beside.newest() is None
    quantify(project)
    found = beside.newest()
    assert found is not None and not found.is_change and found.title == "log2 quantity"
    expected = {one: mean(chain.from_iterable(values.values())) for one, values in by_sequence(project).items()}
    assert {one: found.values[one.replace("I", "L")] for one in expected} == pytest.approx(expected)
    assert LinkedQuantities(opened, "import-0002").newest() is None

    quantify(project, design=design)
    found = beside.newest()
    assert found is not None and found.is_change and found.title == "log2 b / a"
    rows = by_sequence(project)
    expected = {one: mean(values["b"]) - mean(values["a"]) for one, values in rows.items() if values["a"] and values["b"]}
    assert len(expected) > 6
    assert dict(found.values) == pytest.approx({one.replace("I", "L"): value for one, value in expected.items()})
    assert np.median([found.values[one.replace("I", "L")] for one in expected if one in sequences["P0"]]) == pytest.approx(2, abs=0.3)
    assert found.scale.low == -found.scale.high and found.scale.is_change

    # Residues have the mean of what covers them; a peptide counts once however often it is told.
    first, second = (one for one in list(expected)[:2])
    sequence = f"K{first}{second}KKKK"
    rows = [
        {"row": i, "peptide": one, "sequence": one, "n_psms": 1, "q_value": 0.0}
        for i, one in enumerate([first, first, second, first + second])
    ]
    coverage = cover("X", sequence, rows)
    residues = found.of_residues(coverage)
    wanted = [np.nan, *[expected[first]] * len(first), *[expected[second]] * len(second), *[np.nan] * 4]
    np.testing.assert_allclose(residues, wanted)
    colours = quantity_colours(np.array([found.scale.low, 0.0, found.scale.high, np.nan]), found.scale).tolist()
    assert colours == [[0, 114, 178], [236, 236, 236], [213, 94, 0], [184, 184, 184]]

    # A newest run whose table cannot be read tells nothing, and spoils nothing.
    newest = opened.runs()[-1].id
    opened.table("peptide_quantities", newest).write_bytes(b"no table")
    assert beside.newest() is found, "what was read stays"
    assert LinkedQuantities(opened, "import-0001").newest() is None


def test_colours_of_peptides_follow_a_border_that_somebody_dragged(made):
    project, design, sequences = made
    quantify(project, design=design)
    opened = Project.open(project)
    run, beside = opened.latest("quantify") or "", LinkedQuantities(opened, "import-0001")
    before = beside.newest()
    assert before is not None and before.run == run and beside.newest() is before, "nothing is read again without need"
    traces = table_of(project, "ion_traces")
    row = next(at for at, one in enumerate(traces) if one["file"] == "b1.mzML" and one["area"] and one["peptide"] in sequences["P0"])
    with open_run(opened, run) as shown:
        ion = ion_traces(shown.tables.source("ion_traces"), row, shown, RunSurveys(shown))
        trace = next(one for one in ion.traces if one.row == row)
        assert trace.begin is not None and trace.apex is not None
        opened.set_row_correction(run, "ion_traces", row, measured_between(trace, ion.pattern, trace.begin, trace.apex))
    after = beside.newest()
    assert after is not None and after is not before
    peptide = traces[row]["peptide"]
    # One of the two samples of the condition has another area; by definition the mean of both follows by half.
    share = opened.row_corrections(run, "ion_traces")[row]["area"] / traces[row]["area"]
    changed = dict(before.values) | {peptide.replace("I", "L"): before.values[peptide.replace("I", "L")] + np.log2(share) / 2}
    assert share < 0.8 and dict(after.values) == pytest.approx(changed)

    rows = [{"row": 0, "peptide": peptide, "sequence": peptide, "n_psms": 1, "q_value": 0.0}]
    coverage = cover("X", f"K{peptide}K", rows)
    colours = [quantity_colours(one.of_residues(coverage), before.scale)[1:-1] for one in (before, after)]
    assert (colours[0] == colours[0][0]).all() and (colours[1] == colours[1][0]).all()
    assert colours[0][0].tolist() != colours[1][0].tolist()
    assert LinkedQuantities(Project.open(project), "import-0001").newest().values == after.values, "it is kept"

    opened.set_row_correction(run, "ion_traces", row, {})
    again = beside.newest()
    assert again is not None and dict(again.values) == dict(before.values)
