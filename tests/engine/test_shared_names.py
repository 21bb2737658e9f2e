"""File names in output that is passed on."""

from pathlib import Path

import pytest

from proteoscope.engine import shared_names
from proteoscope.engine.shared_names import distinct_names, relative_name, without_folders, without_private


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/data/a/run.mzML", "/data/a/other.mzML"], ("run.mzML", "other.mzML")),
        (["/data/a/run.mzML", "/data/b/run.mzML"], ("a/run.mzML", "b/run.mzML")),
        (["/x/a/run.mzML", "/y/a/run.mzML", "/y/b/run.mzML"], ("x/a/run.mzML", "y/a/run.mzML", "b/run.mzML")),
        (["/a/x", "/b/a/x"], ("a/x", "b/a/x")),
        (["A/run.mzML", "B/../B/run.mzML"], ("A/run.mzML", "B/run.mzML")),
        (["/data/run.mzML", "/data/run.mzML"], ("run.mzML", "run.mzML")),
        ([], ()),
    ],
)
def test_shared_file_names_include_distinguishing_folders(paths: list[str], names: tuple[str, ...]) -> None:
    assert distinct_names(paths) == names


@pytest.mark.parametrize(
    ("path", "folder", "name"),
    [
        ("/data/lab/in/run.mzML", "/data/lab/out", "../in/run.mzML"),
        ("/data/lab/in/run.mzML", "/data/lab", "in/run.mzML"),
        ("/data/lab/in/run.mzML", "/exports", "run.mzML"),
        ("/scratch/ada/run.mzML", "/scratch/out", "run.mzML"),
        ("/home/ada/in/run.mzML", "/home/ada/out", "../in/run.mzML"),
        ("run.mzML", "/exports", "run.mzML"),
    ],
)
def test_shared_relative_names_do_not_contain_the_user_name(path: str, folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_names.getpass, "getuser", lambda: "ada")
    assert relative_name(path, Path(folder), "run.mzML") == name


def test_shared_messages_contain_no_home_folder() -> None:
    assert without_folders("/data/my lab/run.mzML: 3 spectra at m/z 500 skipped") == "…/run.mzML: 3 spectra at m/z 500 skipped"


@pytest.mark.parametrize("home", ["/", "", "~", "relative", "m/z", "."])
def test_anonymised_messages_are_unchanged_if_home_is_invalid(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    text = "run.mzML: 0.5 Da, m/z 500.25, relative"
    assert without_folders(text) == without_private(text) == text
    assert relative_name("/data/lab/in/run.mzML", Path("/data/lab/out"), "run.mzML") == "../in/run.mzML"


def test_shared_messages_replace_only_the_exact_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/h/ada")
    assert without_folders("/h/ada") == "~"
    assert without_folders("/h/ada: full") == "~: full"
    assert without_folders("cd /h/adam") == "cd …/adam"
    assert without_folders("/mnt/h/ada/x") == "…/x"


def test_shared_messages_are_written_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(shared_names.Path, "home", fail)
    assert without_folders("/data/run.mzML") == "…/run.mzML"
