"""Designs in the window: guessed from names, filled down, pasted, checked like a design file, loaded and saved."""

from __future__ import annotations

import random

import pytest

import proteoscope
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.experiments.rows import ExperimentRow
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.design import Design, read_design
from proteoscope.engine.quantification.identified import sources
from proteoscope.engine.views.quantity_design import (
    DESIGN_COLUMNS,
    DesignIssue,
    DesignTable,
    check_design,
    design_text,
    experiment_design,
    filled_down,
    guessed_design,
    list_run_files,
    pasted_cells,
    read_design_table,
)
from tests.engine.views.experiment_projects import project_with_experiment
from tests.engine.views.quantity_projects import FILES, identified_project

CASES = {
    ("BSA1.mzML.gz", "BSA2.mzML.gz"): [("BSA_1", "BSA", "1"), ("BSA_2", "BSA", "2")],
    ("x_ctl_r1_F1.raw", "x_ctl_r1_F2.raw", "x_trt_r1_F1.raw"): [("ctl_1", "ctl", "1"), ("ctl_1", "ctl", "1"), ("trt_1", "trt", "1")],
    ("a_wt.mzML", "a_ko.mzML"): [("wt_1", "wt", "1"), ("ko_1", "ko", "1")],
    ("2031_07_A_01.mzML", "2031_07_B_01.mzML"): [("A_1", "A", "1"), ("B_1", "B", "1")],
    ("ctl rep 2.mzML", "ctl_replicate2.mzML"): [("ctl_2", "ctl", "2"), ("ctl_3", "ctl", "3")],
}


@pytest.mark.parametrize("files", CASES)
def test_guessed_design_reads_conditions_from_file_names(files):
    assert [row[1:] for row in guessed_design(files).rows] == CASES[files]


def test_guessed_design_is_valid_for_any_file_names():
    rng = random.Random(7)
    for _ in range(300):
        stems = {"".join(rng.choice("ab1_-. F2r") for _ in range(rng.randint(1, 9))) + "x" * (rng.random() < 0.3) for _ in range(6)}
        files = [f"/data/{rng.randint(0, 2)}/{stem}.mzML" for stem in sorted({stem.strip() or "a" for stem in stems})]
        checked = check_design(guessed_design(files), files)
        assert isinstance(checked, Design), (files, checked)
        assert sorted(part.file for part in checked.parts) == list(range(len(files)))


def test_design_table_is_checked_by_the_rules_of_design_files(tmp_path):
    files = ["/d/a.mzML", "/d/b.mzML", "/d/c.mzML"]
    table = DesignTable(DESIGN_COLUMNS, (("a.mzML", "s1", "x", "1"), ("b.mzML", "", "", ""), ("c.mzML", "s3", "x", "2")))
    (tmp_path / "design.tsv").write_text(design_text(DesignTable(DESIGN_COLUMNS, (table.rows[0], table.rows[2]))))
    checked = check_design(table, files)
    assert checked == read_design(tmp_path / "design.tsv", files)
    assert isinstance(checked, Design) and checked.left_out == ("b.mzML",)
    wrong = DesignTable(DESIGN_COLUMNS, (*table.rows[:2], ("c.mzML", "s3", "x", "two")))
    issue = check_design(wrong, files)
    assert isinstance(issue, DesignIssue) and issue.row == 2 and issue.text.startswith("Row 3: 'two'") and "replicate" in issue.text
    assert isinstance(check_design(DesignTable(DESIGN_COLUMNS, ()), files), DesignIssue)


def test_design_table_round_trips_with_additional_columns(tmp_path):
    table = DesignTable((*DESIGN_COLUMNS, "channel"), (("a.mzML", "s 1", "x", "1", "126"), ("a.mzML", "s2", "y", "1", "127N")))
    (tmp_path / "design.tsv").write_text(design_text(table))
    assert read_design_table(tmp_path / "design.tsv") == table
    (tmp_path / "turned.tsv").write_text("Channel\tReplicate\tCondition\tSample\tFile\n126\t1\tx\ts 1\ta.mzML\n")
    assert read_design_table(tmp_path / "turned.tsv").rows == table.rows[:1]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"file\tsample\n", b"file\tfile\tsample\tcondition\treplicate\n", b"\0" * 50])
def test_read_design_table_rejects_invalid_files(tmp_path, content):
    (tmp_path / "design.tsv").write_bytes(content)
    with pytest.raises(InputError, match="Its columns are file, sample, condition, replicate"):
        read_design_table(tmp_path / "design.tsv")


def test_pasted_spreadsheet_text_becomes_design_rows():
    assert pasted_cells('a\t"b\nc"\t\r\nd\te') == [["a", "b\nc", ""], ["d", "e", ""]]
    assert pasted_cells("") == pasted_cells("\n") == []
    assert pasted_cells('one "quoted\ttwo') == [['one "quoted', "two"]]


def test_fill_down_repeats_texts_and_counts_numbers():
    assert filled_down(["control", "", "x"]) == ["control"] * 3
    assert filled_down(["3", "", ""]) == ["3", "4", "5"]
    assert filled_down(["wt2", "", ""]) == ["wt2"] * 3
    assert filled_down(["wt2", "wt3", ""]) == ["wt2", "wt3", "wt4"]


def test_design_of_a_label_has_a_row_for_each_channel():
    files = ["/d/plex1_F1.mzML", "/d/plex1_F2.mzML", "/d/plex2.mzML"]
    table = guessed_design(files, "tmt-6")
    assert table.columns[-1] == "channel" and len(table.rows) == 18
    assert table.rows[0] == ("plex1_F1.mzML", "plex1_126", "", "", "126") and table.rows[6][1] == "plex1_126"
    issue = check_design(table, files, "tmt-6")
    assert isinstance(issue, DesignIssue) and issue.row == 0 and "has no condition" in issue.text
    filled = []
    for row in table.rows:
        condition = "a" if row[4] < "129" else "b"
        filled.append((row[0], row[1], condition, str(int(row[4][:3]) - 125 + 6 * ("plex2" in row[0])), row[4]))
    filled[17] = (filled[17][0], "", "", "", filled[17][4])
    checked = check_design(DesignTable(table.columns, tuple(filled)), files, "tmt-6")
    assert isinstance(checked, Design) and len(checked.samples) == 11 and checked.groups(()) == ("a", "b")
    assert isinstance(check_design(DesignTable(table.columns, tuple(filled)), files), DesignIssue)


def test_design_of_an_experiment_has_its_samples_and_channels():
    files = ["/a/x.mzML", "/b/x.mzML", "/b/y.mzML"]
    rows = [ExperimentRow(f"run_{at}", file, f"s{at}", "ab"[at % 2], replicate=1 + at // 2) for at, file in enumerate(files)]
    design, parameters = experiment_design(rows)
    assert design.rows == (("/a/x.mzML", "s0", "a", "1"), ("/b/x.mzML", "s1", "b", "1"), ("y.mzML", "s2", "a", "2")) and not parameters
    assert isinstance(check_design(design, files), Design)
    same = [row._replace(condition="", replicate=1) for row in rows]
    assert [row[3] for row in experiment_design(same)[0].rows] == ["1", "2", "3"], "replicates of a condition differ"
    fractions = [rows[0], rows[1]._replace(sample="s0", condition="a"), rows[2]]
    assert [row[3] for row in experiment_design(fractions)[0].rows] == ["1", "1", "2"]
    labelled = [rows[2]._replace(sample=channel, label=channel) for channel in ("126", "127N", "131C")]
    design, parameters = experiment_design(labelled)
    assert parameters == {"method": "tmt", "label": "tmt-11"} and design.columns[-1] == "channel"
    checked = check_design(design, files[2:], "tmt-11")
    assert isinstance(checked, Design) and [sample.name for sample in checked.samples] == ["126", "127N", "131C"]


def test_files_of_runs_match_quantified_files(tmp_path):
    project = identified_project(tmp_path)
    assert list_run_files(project, ()) == [file.path for file in sources(project, ()).files]
    assert [row[2] for row in guessed_design(list_run_files(project, ("import-0001",))).rows] == [name[5:-2] for name in FILES]
    with pytest.raises(InputError, match="no finished identification none-0001"):
        list_run_files(project, ("none-0001",))


def test_experiment_is_quantified_with_its_design(tmp_path, capsys):
    project, _ = project_with_experiment(tmp_path / "p")
    command = ["quantify", str(project.folder), "--experiment", "--preset", "counts"]
    assert main(["estimate", *command]) == 0
    assert not (project.folder / "design").exists() and project.latest("quantify") is None
    assert main(command) == 0
    run = project.find_run(project.latest("quantify"))
    assert run.parameters["run"] == ["control_1", "control_2", "treated_1"], "only finished runs"
    design = next(file.path for file in project.inputs(run.id) if file.kind == "design")
    assert [line.split("\t") for line in design.read_text().splitlines()[1:]] == [
        [f"{name}.mgf", name, name[:-2], name[-1]] for name in ("control_1", "control_2", "treated_1")
    ]
    assert main([*command, "--run", "control_1"]) == 2
    assert "experiment cannot be combined with run or design" in capsys.readouterr().err
    empty, _ = project_with_experiment(tmp_path / "empty", n_done=0)
    assert main(["quantify", str(empty.folder), "--experiment"]) == 2
    assert "has no finished run of the experiment" in capsys.readouterr().err
    assert Project.open(project.folder).runs()[-1].id == run.id
    result = proteoscope.quantify(project.folder, experiment=True, preset="counts")
    assert result.samples["sample"].to_pylist() == ["control_1", "control_2", "treated_1"]
