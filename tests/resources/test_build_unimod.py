"""The script that converts Unimod's export, on an export of one entry."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "resources" / "modifications" / "build_unimod.py"

EXPORT = b"""<?xml version="1.0"?>
<unimod xmlns="http://www.unimod.org/xmlns/schema/unimod_tables_1">
<alt_names><alt_names_row record_id="1" alt_name="Hydroxylation" mod_key="35"/></alt_names>
<classifications><classifications_row record_id="6" classification="Artefact"/></classifications>
<positions><position_row/><positions_row record_id="2" position="Anywhere"/></positions>
<specificity>
<specificity_row record_id="7" mod_key="35" one_letter="N-term" position_key="2" classifications_key="6" hidden="1" spec_group="2"/>
<specificity_row record_id="8" mod_key="35" one_letter="M" position_key="2" classifications_key="6" hidden="0" spec_group="1"/>
</specificity>
<spec2nl><spec2nl_row spec_key="8" nl_mono_mass="0"/><spec2nl_row spec_key="8" nl_mono_mass="63.998285"/></spec2nl>
<modifications><modifications_row record_id="35" ex_code_name="Oxidation" code_name="Hydroxyl" full_name="Oxidation or Hydroxylation"
 mono_mass="15.994915" avge_mass="15.9994" composition=" O" approved="1" date_time_modified="2020-01-01 00:00:00"/></modifications>
</unimod>"""


def test_convert_joins_the_tables_of_a_unimod_export() -> None:
    pytest.importorskip("lxml")
    specification = importlib.util.spec_from_file_location("build_unimod", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    catalogue = script.convert(EXPORT)
    assert catalogue["modified"] == "2020-01-01 00:00:00"
    sites = [["M", "Anywhere", 0, 0, [63.998285]], ["", "Any N-term", 0, 1, []]]
    names = ["Hydroxyl", "Hydroxylation"]
    assert catalogue["entries"] == [[35, "Oxidation", "Oxidation or Hydroxylation", 15.994915, 15.9994, "O", names, 1, sites]]
