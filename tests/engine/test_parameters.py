"""Descriptions of parameters: parsed from texts, checked against bounds, complete."""

import os
import tomllib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.parameters import (
    SearchParameters,
    list_text,
    parameter,
    preset_description,
    preset_names,
    read_preset,
    split_list,
)


class Parameters(SearchParameters):
    """Parameters of a toy search."""

    turns: int = parameter(3, ge=1, le=9, title="Turns", help="How often.", group="Workload")
    width: float = parameter(0.5, gt=0, lt=2, title="Width", unit="Da", help="How wide.", group="Workload", advanced=True)
    way: Literal["left", "right"] = parameter("left", title="Way", help="Where to.", group="Place")
    names: tuple[str, ...] = parameter(("a",), title="Names", help="Who.", group="Place")
    sizes: tuple[int, ...] = parameter((1, 2), title="Sizes", help="How large.", group="Place")
    quick: bool = parameter(False, title="Quick", help="Whether to hurry.", group="Workload")
    note: str = parameter("", title="Note", help="What else.", group="Workload")


def test_parameter_description_has_all_declared_properties():
    described = {parameter.name: parameter for parameter in Parameters.describe()}
    assert list(described) == ["turns", "width", "way", "names", "sizes", "quick", "note"]
    turns, width, way = described["turns"], described["width"], described["way"]
    assert (turns.kind, turns.minimum, turns.maximum, turns.default, turns.group, turns.help) == (
        "integer",
        1,
        9,
        3,
        "Workload",
        "How often.",
    )
    assert (width.kind, width.unit, width.minimum, width.maximum, width.advanced) == ("number", "Da", 0, 2, True)
    assert (way.kind, way.choices, way.minimum) == ("choice", ("left", "right"), None)
    assert [described[name].kind for name in ("names", "sizes", "quick", "note")] == ["list", "list", "truth", "text"]


def test_parameter_texts_are_converted_to_values():
    changed = Parameters().changed(["turns=4", " width = 1.5 ", "way=right", "names= x ; y,z", "sizes=3", "quick=yes", "note=a=b"])
    assert changed == Parameters(turns=4, width=1.5, way="right", names=("x", "y", "z"), sizes=(3,), quick=True, note="a=b")
    assert changed.changed(["names="]).names == ()
    assert changed.changed() is changed
    assert changed.changed(turns=5).changed(["turns=6"]).turns == 6


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"2,4-D", control', ("2,4-D", "control")),
        ('x;"a; ""b"""', ("x", 'a; "b"')),
        ('"a', ('"a',)),
        ('"a"b,c', ('"a"b', "c")),
        ('5" disk, 3"', ('5" disk', '3"')),
        ('"", ,', ()),
    ],
)
def test_parameter_list_item_with_commas_is_quoted(text, parts):
    assert Parameters().changed([f"names={text}"]).names == parts


@given(st.lists(st.text('ab",; \n')))
def test_parameter_list_text_round_trips(values):
    remaining = [stripped for text in values if (stripped := text.strip())]
    assert split_list(list_text(remaining)) == remaining


@given(st.integers(-(10**9), 10**9))
def test_parameter_number_is_accepted_only_within_bounds(value):
    if 1 <= value <= 9:
        assert Parameters.checked({"turns": str(value)}).turns == value
    else:
        with pytest.raises(ParameterError) as caught:
            Parameters.checked({"turns": str(value)})
        # Field, value and the bound that the value exceeds.
        assert "turns" in str(caught.value)
        assert str(value) in str(caught.value)
        assert str(caught.value).endswith(" 1" if value < 1 else " 9")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("turns=x", ("turns = 'x'", "whole number")),
        ("width=2", ("width = '2'", "less than 2 Da")),
        ("width=nan", ("width = 'nan'", "Da")),
        ("way=up", ("way = 'up'", "'left' or 'right'")),
        ("sizes=1,b", ("sizes = 'b'", "whole number")),
        ("quick=perhaps", ("quick = 'perhaps'", "neither true nor false")),
        ("turn=4", ("no parameter 'turn'", "did you mean turns?")),
        ("zzz=4", ("no parameter 'zzz'",)),
        ("turns", ("'turns' is not a setting", "field=value")),
        ("=4", ("no parameter ''",)),
    ],
)
def test_parameter_error_names_field_value_and_bounds(setting, message):
    with pytest.raises(ParameterError) as caught:
        Parameters().changed([setting])
    for part in message:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["\udcff", "a\x1b[31m", "\0", "\x9b2J", "a\x7f"])
@pytest.mark.parametrize("field", ["note", "names", "turns", "way"])
def test_parameters_reject_control_characters(field: str, value: str) -> None:
    with pytest.raises(ParameterError, match=f"{field} = .*holds control characters, or is not valid UTF-8") as caught:
        Parameters().changed([f"{field}=x{value}"])
    assert str(caught.value).isprintable()


def test_all_invalid_parameters_are_reported_together():
    with pytest.raises(ParameterError, match=r"turns = 0.*; width = 9"):
        Parameters.checked({"turns": 0, "width": 9})


def test_parameters_are_immutable():
    with pytest.raises(ParameterError, match=r"cannot be changed; make a copy with changed\(turns=VALUE\)"):
        Parameters().turns = 4


def test_constructor_reports_wrong_values_in_sentences():
    with pytest.raises(ParameterError, match=r"turns = 0: .*; width = 9") as caught:
        Parameters(turns=0, width=9)
    assert "\n" not in str(caught.value) and caught.value.__suppress_context__
    with pytest.raises(ParameterError, match="there is no parameter 'turn'; did you mean turns"):
        Parameters(turn=4)


@given(
    turns=st.integers(1, 9),
    width=st.floats(0, 2, exclude_min=True, exclude_max=True),
    names=st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1)),
    quick=st.booleans(),
)
def test_parameters_are_restored_from_json(turns, width, names, quick):
    parameters = Parameters(turns=turns, width=width, names=tuple(names), quick=quick)
    assert Parameters.checked(parameters.model_dump(mode="json")) == parameters


def test_preset_is_found_by_name_and_path(tmp_path):
    assert "high-resolution" in preset_names("identify")
    assert preset_description("identify", "phospho").startswith("Phospho")
    assert read_preset("identify", "tmt")["fixed_modifications"][1] == "TMT6plex (K)"
    with_table, plain = tmp_path / "with table.toml", tmp_path / "plain.toml"
    with_table.write_text('description = "Mine"\n[parameters]\nturns = 4\n', encoding="utf-8")
    plain.write_text('description = "Mine"\nturns = 4\n', encoding="utf-8")
    assert read_preset("identify", str(with_table)) == read_preset("identify", str(plain)) == {"turns": 4}


def test_error_on_missing_preset_lists_existing_presets():
    with pytest.raises(ParameterError, match=r"no preset 'phosho'.*phospho, tmt, ubiquitin or a .toml file"):
        read_preset("identify", "phosho")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"[parameters", "is not a preset"), (b"\xff\xfe\x00", "is not a preset"), (b"parameters = 3", "'parameters' is not a table")],
)
def test_preset_error_names_unreadable_file(tmp_path, content, message):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_preset("identify", str(path))
    assert str(path) in str(caught.value)


def test_missing_file_or_folder_is_rejected_as_preset(tmp_path):
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_preset("identify", str(path))


def test_presets_have_only_description_and_parameters():
    from proteoscope import resources

    for name in preset_names("identify"):
        content = tomllib.loads((resources.path("presets", "identify") / f"{name}.toml").read_text(encoding="utf-8"))
        assert set(content) == {"description", "parameters"}, name


HOSTILE_PRESETS = {
    "a key of 45,000 parts": (".".join("a" * 45_000) + " = 1", "line 1: has more than 1,000 dots"),
    "a key of 60,000 parts": (".".join("a" * 60_000) + " = 1", "longer than the 100,000 bytes"),
    "lists within lists": ("a = " + "[" * 30_000, "nested too deeply"),
    "tables within tables": ("a = " + "{a=" * 30_000, "nested too deeply"),
    "a number of 5,000 digits": ("turns = " + "9" * 5000, "is not a preset: Exceeds the limit"),
    "too large": ("# " + "x" * 100_000, "longer than the 100,000 bytes"),
}


@pytest.mark.parametrize("name", HOSTILE_PRESETS)
def test_hostile_preset_is_reported_briefly(tmp_path, name):
    content, message = HOSTILE_PRESETS[name]
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_preset("identify", str(path))
    assert len(str(caught.value)) < 700 + len(str(path))


def test_endless_preset_is_not_read_completely(tmp_path):
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="this is a pipe or a device, not a file"):
        read_preset("identify", str(tmp_path / "endless.toml"))


def test_invalid_preset_name_is_reported_briefly():
    with pytest.raises(ParameterError, match="there is no preset 'xxx") as caught:
        read_preset("identify", "x" * 100_000)
    assert len(str(caught.value)) < 400
    for name in ("a\0b.toml", "x" * 100_000 + ".toml"):
        with pytest.raises(InputError):
            read_preset("identify", name)


@pytest.mark.parametrize("values", [{"way": "x" * 50_000}, {"x" * 50_000: 1}, {"turns": ["x"] * 50_000}])
def test_parameter_error_shortens_long_values(values):
    with pytest.raises(ParameterError) as caught:
        Parameters.checked(values)
    assert len(str(caught.value)) < 700


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_read_preset_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="this is a pipe or a device, not a file"):
        read_preset("identify", str(tmp_path / "pipe.toml"))


def test_read_preset_reads_a_byte_order_mark(tmp_path):
    (tmp_path / "preset.toml").write_text("fdr = 0.02", encoding="utf-8-sig")
    assert read_preset("identify", str(tmp_path / "preset.toml")) == {"fdr": 0.02}
