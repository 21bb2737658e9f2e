"""Experiment designs: valid ones are read, invalid ones are rejected with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.quantification.design import DesignRow, Sample, design_of_files, read_design

FILES = ["/data/one.mzML", "/data/two.mzML.gz", "/other/three.mzML"]
HEADER = "file\tsample\tcondition\treplicate\n"
GOOD = HEADER + "one.mzML\tA\tcontrol\t1\ntwo\tB\ttreated\t1\n/other/three.mzML\tC\ttreated\t2\n"


def test_read_design_accepts_any_file_name_and_column_order(tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(
        "Replicate\tnote\tFile\tCondition\tSample\n1\tx\tone.mzML\tcontrol\tA\n\n1\ty\ttwo\ttreated\tB\n2\tz\t/other/three.mzML\ttreated\tC\n"
    )
    design = read_design(path, FILES)
    assert design.samples == (Sample("A", "control", 1), Sample("B", "treated", 1), Sample("C", "treated", 2))
    assert design.parts == (DesignRow(0, 0), DesignRow(1, 1), DesignRow(2, 2))
    path.write_text(GOOD)
    assert design.unused == ("note",)
    assert read_design(path, FILES) == replace(design, unused=())


def test_design_joins_sample_files_and_omits_unlisted_files(tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(HEADER + "one\tA\tcontrol\t1\ntwo\tA\tcontrol\t1\n")
    design = read_design(path, FILES)
    assert design.parts == (DesignRow(0, 0), DesignRow(1, 0))
    assert design.left_out == ("three.mzML",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("file\tsample\tcondition\n", "line 1.*has no column 'replicate'"),
        ("file\tfile\tsample\tcondition\treplicate\n", "has the column 'file' twice"),
        (HEADER, "names no file"),
        (HEADER + "four\tA\tc\t1\n", "line 2.*'four' is not a file of the identification.*one.mzML"),
        (HEADER + "one\tA\tc\t1\none.mzML\tB\tc\t2\n", "line 3.*names file one.mzML a second time, after line 2"),
        (HEADER + "one\tA\tc\t1\ntwo\tB\tc\t1\n", "two samples, A and B, as replicate 1 of c"),
        (HEADER + "one\tA\tc\t1\ntwo\tA\td\t1\n", "line 3.*sample 'A' has other values than in line 2"),
        (HEADER + "one\tA\tc\tfirst\n", "line 2.*'first' is not a replicate number"),
        (HEADER + "one\tA\tc\t0\n", "'0' is not a replicate number"),
        (HEADER + "one\tA\t\t1\n", "line 2.*has no condition"),
        (HEADER + "one\n", "line 2.*has no sample"),
        (HEADER + "one\tA\x1b[31m\tc\t1\n", "unprintable characters"),
        (HEADER + "one\tA\tc\u2028d\t1\n", "line 2.*unprintable characters"),
        (HEADER + "one\tA\tc\x85d\t1\n", "line 2.*unprintable characters"),
        (HEADER + "one\tA\tc\u202ed\t1\n", "line 2.*unprintable characters"),
        (HEADER + 'one\tA\t"c\td"\t1\n', "line 2.*unprintable characters"),
        (HEADER + 'one\tA\t"c\nd"\t1\n', "line 2.*expected a row of a table"),
        (HEADER + 'one\tA\tc\t1\n\ntwo\tB\t"c"d\t1\n', "line 4.*expected a row of a table"),
        (HEADER + "one\tA\t" + "c" * 10_000 + "\t1\n", "line 2.*more than 1000 characters"),
        (HEADER + "one\tA\tc\t1\ntwo\ta\tc\t1\n", "two samples, A and a, as replicate 1 of c"),
        (HEADER + "one\t" + "A" * 1001 + "\tc\t1\n", "more than 1000 characters"),
        ("channel\t" + HEADER + "126\tone\tA\tc\t1\n", "has channels of isobaric labels, which this method does not use"),
    ],
)
def test_read_design_rejects_invalid_rows(text, message, tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_design(path, FILES)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_read_design_accepts_any_encoding_and_line_ending(tmp_path, encoding, end):
    path = tmp_path / "design.tsv"
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    path.write_bytes(mark + GOOD.replace("\n", end).replace("control", '"contrôle / 0"').encode(encoding))
    design = read_design(path, FILES)
    assert design.conditions == ("contrôle / 0", "treated") and design.parts == (DesignRow(0, 0), DesignRow(1, 1), DesignRow(2, 2))
    path.write_bytes(GOOD.replace("control", "contrôle").encode("latin-1"))
    with pytest.raises(InputError, match="expected text in UTF-8"):
        read_design(path, FILES)


def test_read_design_reports_names_that_look_alike(tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(HEADER + "one\tA\tcafe\u0301 noir\t1\ntwo\tB\tCAFÉ  NOIR\t1\nthree\tb\tthé\t1\n", encoding="utf-8")
    assert read_design(path, FILES).look_alikes == (("cafe\u0301 noir", "CAFÉ  NOIR"), ("B", "b"))
    path.write_text(GOOD)
    assert read_design(path, FILES).look_alikes == ()


def test_read_design_rejects_binary_and_truncated_text(tmp_path):
    path = tmp_path / "design.tsv"
    for data in (
        b"\xff\xfe\x00f",
        GOOD.encode("utf-32"),
        GOOD.encode("utf-16-be"),
        bytes(range(256)) * 40,
        HEADER.encode() + b'one\t"A\tc\t1\n',
    ):
        path.write_bytes(data)
        with pytest.raises(InputError):
            read_design(path, FILES)


def test_read_design_requires_paths_for_files_of_one_name(tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(HEADER + "one\tA\tc\t1\n")
    with pytest.raises(InputError, match="is the name of several files"):
        read_design(path, ["/a/one.mzML", "/b/one.mzML"])
    path.write_text(HEADER + "/b/one.mzML\tA\tc\t1\n")
    assert read_design(path, ["/a/one.mzML", "/b/one.mzML"]).parts == (DesignRow(1, 0),)


def test_design_of_files_makes_each_file_a_sample():
    assert [sample.name for sample in design_of_files(["/a/run.mzML", "/b/run.mzML.gz"]).samples] == ["run", "run_2"]


def test_design_groups_rejects_incomparable_conditions(tmp_path):
    path = tmp_path / "design.tsv"
    path.write_text(HEADER + "one\tA\tc\t1\ntwo\tB\tc\t2\nthree\tC\td\t1\n")
    design = read_design(path, FILES)
    assert design.groups(()) == ()
    for conditions, message in ((("d", "c"), "'d' has one replicate"), (("e",), "conditions c, d"), (("c",), "needs two conditions")):
        with pytest.raises(ParameterError, match=message):
            design.groups(conditions)
