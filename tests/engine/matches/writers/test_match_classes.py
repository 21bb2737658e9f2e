"""Exports name the class that the q-value of each match refers to."""

import csv
from dataclasses import replace

import pyarrow as pa
import pytest
from pyteomics import mzid, pepxml

from tests.engine.identification_tables import identification
from tests.engine.matches.exported import export

NAMES = ("specific", "isotope error", "second pass")
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return the classes of matches by number, and a function that exports their tables in a format."""
    small, folder = identification(40), tmp_path_factory.mktemp("classes")
    classes = [NAMES[i % len(NAMES)] for i in range(len(small.psms))]
    small = replace(small, psms=small.psms.append_column("match_class", pa.array(classes)))
    written = small.write(folder / "tables")
    by_number = dict(zip(small.psms["psm_id"].to_pylist(), classes, strict=True))
    return by_number, small, lambda form, name: export(written, form, folder / name, small.parameters, spectra=small.spectra)


def test_mzidentml_names_the_class_of_each_match(exported):
    by_number, _, write = exported
    (path,) = write("mzid", "x.mzid")
    with mzid.read(str(path)) as reader:
        items = [item for result in reader for item in result["SpectrumIdentificationItem"]]
    assert len(items) == len(by_number)
    text = path.read_text(encoding="utf-8")
    for number, name in by_number.items():
        item = text[text.index(f'<SpectrumIdentificationItem id="SII_{number}"') :].partition("</SpectrumIdentificationItem>")[0]
        assert f'<userParam name="class" value="{name}"/>' in item


def test_pepxml_names_the_class_of_each_match(exported):
    by_number, small, write = exported
    (path,) = write("pepxml", "x.pep.xml")
    with pepxml.read(str(path)) as reader:
        written = [
            (query["spectrumNativeID"], hit["hit_rank"], hit["search_score"]["match_class"])
            for query in reader
            for hit in query["search_hit"]
        ]
    rows = small.psms.to_pylist()
    assert sorted(written) == sorted((row["spectrum_id"], row["rank"], by_number[row["psm_id"]]) for row in rows)


def test_tsv_names_the_class_of_each_match(exported):
    by_number, small, write = exported
    paths = write("tsv", "tsv")
    with next(path for path in paths if path.name == "psms.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["match_class"] for row in rows] == [by_number[number] for number in small.psms["psm_id"].to_pylist()]
