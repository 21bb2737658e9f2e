"""Parameters of searches: base class of each search's parameters, from which the command line, forms and presets are derived.

A parameter is a field of a frozen pydantic model. It is declared with `parameter`, which takes its title, unit, bounds, default, group and
a short help text.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from proteoscope import resources
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.files import is_there, read_beginning

ParameterKind = Literal["truth", "integer", "number", "text", "choice", "list"]

__all__ = [
    "Editor",
    "ParameterDescription",
    "PresetAdvice",
    "SearchParameters",
    "list_text",
    "parameter",
    "preset_description",
    "preset_names",
    "read_preset",
    "split_list",
]


_PLAIN = {
    "int_parsing": "is not a whole number",
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "float_type": "is not a number",
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
}
"""Messages about invalid values by pydantic's error type, which replace pydantic's technical messages."""

_PART = re.compile(r'\s*+"(?P<quoted>(?:[^"]|"")*+)"\s*+(?=[,;]|\Z)|(?P<plain>[^,;]+)')
"""Pattern of an item of a list, up to the next comma or semicolon."""

_UNUSABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Pattern of control characters except tabs and line ends, and of surrogates, which represent bytes that are not UTF-8."""
_MAXIMUM_PRESET_BYTES = 100_000
"""Maximum size of a preset file in bytes; a preset has one line per parameter."""
_MAXIMUM_POINTS = 1000
"""Maximum number of dots in a line of a preset file. Dots separate the parts of a TOML key, whose parsing time grows quadratically."""
_MAXIMUM_COMPARED = 100
"""Maximum length in characters of an unknown name for which a similar known name is suggested."""
_MAXIMUM_EXPLAINED = 400
"""Maximum length in characters of the message about an invalid value."""


Editor = Literal["", "enzyme", "matrix", "tolerance", "ion series", "modifications", "protein files", "descriptor weights", "run"]
"""Editor of a parameter in a form; '' if the type of the parameter determines it."""


def parameter(
    default: Any,
    *,
    title: str,
    help: str,
    group: str,
    unit: str = "",
    advanced: bool = False,
    editor: Editor = "",
    zero: str = "",
    **bounds: Any,
) -> Any:
    """Declare a parameter: a pydantic field with the texts that users see.

    Parameters
    ----------
    default : Any
        Default value, which also determines the type of the option.
    title, help, group, unit : str
        Title, help of one or two sentences, title of the group in forms, and unit.
    advanced : bool
        True if forms hide the parameter initially.
    editor : Editor
        Editor in forms, '' if the type determines it.
    zero : str
        Word that forms and pages of runs show for the value 0, such as "automatic".
    **bounds : Any
        Constraints of pydantic, such as `ge`, `le`, `gt`, `lt` or `min_length`.
    """
    extra: JsonDict = {"group": group, "unit": unit, "advanced": advanced, "editor": editor, "zero": zero}
    return Field(default, title=title, description=help, json_schema_extra=extra, **bounds)


@dataclass(frozen=True)
class ParameterDescription:
    """Description of a parameter for forms, the manual and ``--help``; `choices` is empty if all values of the type are allowed."""

    name: str
    title: str
    help: str
    group: str
    unit: str
    advanced: bool
    default: Any
    choices: tuple[str, ...]
    minimum: float | None
    maximum: float | None
    kind: ParameterKind
    editor: Editor
    zero: str


@dataclass(frozen=True)
class PresetAdvice:
    """Advice about settings that do not suit the files, with the preset that suits them.

    Attributes
    ----------
    preset : str
        Preset that suits all files better, or ''.
    reasons : tuple of str
        Reasons why the settings do not suit the files, as sentences without a full stop.
    are_mixed : bool
        True if the files need different settings.
    """

    preset: str
    reasons: tuple[str, ...]
    are_mixed: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """Reasons and remedy, as sentences without full stops."""
        if self.preset:
            return (*self.reasons[:-1], f"{self.reasons[-1]}; the preset {self.preset} suits these spectra better")
        return (*self.reasons, "The files need different settings: search them in separate runs") if self.are_mixed else self.reasons

    @property
    def text(self) -> str:
        """Reasons and remedy on one line."""
        return ". ".join(self.sentences)


class SearchParameters(BaseModel):
    """Base class of the parameters of a search: a frozen model, whose values are validated and can be given as texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)

    if not TYPE_CHECKING:  # type checkers derive the arguments from the fields, and report assignments to fields

        def __init__(self, /, **values: Any) -> None:
            fields = type(self).model_fields
            for name in values:
                if name not in fields:
                    close = get_close_matches(name[:_MAXIMUM_COMPARED], fields, 3, 0.5)
                    raise ParameterError(
                        f"there is no parameter '{shortened(name)}'; "
                        + (f"did you mean {' or '.join(close)}?" if close else "proteoscope parameters lists them")
                    )
            for name, value in values.items():
                _require_text(name, value)
            try:
                super().__init__(**{name: _listed(fields[name], value) for name, value in values.items()})
            except ValidationError as error:
                raise ParameterError("; ".join(self._explain(detail) for detail in error.errors())) from None

        def __setattr__(self, name: str, value: object) -> None:
            raise ParameterError(f"{type(self).__name__} cannot be changed; make a copy with changed({name}=VALUE)")

    @classmethod
    def describe(cls) -> list[ParameterDescription]:
        """Return the descriptions of all parameters, in the order of their declaration."""
        return [_description(name, field) for name, field in cls.model_fields.items()]

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Return the parameters with the given values after validation; a value may be a text, which is parsed.

        Raises
        ------
        ParameterError
            If a value is invalid; the message has each invalid value and the allowed values.
        """
        return cls(**values)

    @classmethod
    def validated(cls, values: Mapping[str, Any]) -> Self:
        """Return the parameters with the given values, which are not parsed.

        Raises
        ------
        pydantic.ValidationError
            If values are invalid; the exception lists the errors by parameter.
        """
        parameters = cls.__new__(cls)
        cls.__pydantic_validator__.validate_python(dict(values), self_instance=parameters)
        return parameters

    @classmethod
    def following(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of parameters that are not in `changes`, but follow from it; for example, a matrix implies gap costs."""
        return {}

    def changed(self, settings: Iterable[str] = (), **values: Any) -> Self:
        """Return a copy in which the given values, and the values that they imply (see `following`), are changed.

        `settings` are texts of the form ``field=value``; values of list fields are parsed by `split_list`.
        """
        changes = dict(values)
        for setting in settings:
            name, equals, value = setting.partition("=")
            if not equals:
                raise ParameterError(f"'{shortened(setting)}' is not a setting; write field=value, as missed_cleavages=1")
            changes[name.strip()] = value.strip()
        return type(self).checked({**self.model_dump(), **self.following(changes), **changes}) if changes else self

    @classmethod
    def _explain(cls, error: Any) -> str:
        if not error["loc"]:
            return shortened(str(error["msg"]).removeprefix("Value error, "), _MAXIMUM_EXPLAINED)
        name = str(error["loc"][0])
        description = _description(name, cls.model_fields[name])
        message = _PLAIN.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
        unit = f" {description.unit}" if description.unit else ""
        message = shortened(f"{message[:1].lower()}{message[1:]}", _MAXIMUM_EXPLAINED)
        return f"{name} = {shortened(repr(error['input']))}: {message}{unit if 'than' in message else ''}"


def split_list(text: str) -> list[str]:
    """Return the items of a list in a text, which commas or semicolons separate, without surrounding blanks and without empty items.

    An item that contains commas is enclosed in double quotes, and quotes in it are doubled (RFC 4180): ``"2,4-D", control``. A quote that
    is not closed, or is closed before the end of the item, is an ordinary character.
    """
    parts = (match["quoted"].replace('""', '"') if match["quoted"] is not None else match["plain"] for match in _PART.finditer(text))
    return [stripped for part in parts if (stripped := part.strip())]


def list_text(values: Iterable[object]) -> str:
    """Return a text that `split_list` parses into the given values."""
    return ", ".join(_quoted(str(value)) for value in values)


def _quoted(text: str) -> str:
    is_plain = text and not text.startswith('"') and not set(text) & set(",;")
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def _require_text(name: str, value: Any) -> None:
    """Raise an error if `value` is a text, or a list with a text, that contains control characters or surrogates (invalid bytes).

    Raises
    ------
    ParameterError
        If a text is not plain text.
    """
    for text in value if isinstance(value, list | tuple) else (value,):
        if isinstance(text, str) and not text.isprintable() and _UNUSABLE.search(text.strip()):
            raise ParameterError(f"{name} = {shortened(ascii(text))}: holds control characters, or is not valid UTF-8; expected plain text")


def _listed(field: FieldInfo, value: Any) -> Any:
    """Return the items of a list field whose value is given as one text; return any other value unchanged."""
    if get_origin(field.annotation) is tuple and isinstance(value, str):
        return split_list(value)
    return value


def _description(name: str, field: FieldInfo) -> ParameterDescription:
    extra: dict[str, Any] = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    bounds: dict[str, float] = {}
    for constraint in field.metadata:
        for bound, end in (("ge", "minimum"), ("gt", "minimum"), ("le", "maximum"), ("lt", "maximum")):
            if getattr(constraint, bound, None) is not None:
                bounds[end] = getattr(constraint, bound)
    origin = get_origin(field.annotation)
    simple: dict[Any, ParameterKind] = {bool: "truth", int: "integer", float: "number"}
    containers: dict[Any, ParameterKind] = {Literal: "choice", tuple: "list"}
    return ParameterDescription(
        name=name,
        title=field.title or name,
        help=field.description or "",
        group=str(extra.get("group", "")),
        unit=str(extra.get("unit", "")),
        advanced=bool(extra.get("advanced")),
        default=field.default if isinstance(field.default, bool | int | float | str | tuple | None) else str(field.default),
        choices=tuple(str(choice) for choice in get_args(field.annotation)) if origin is Literal else (),
        minimum=bounds.get("minimum"),
        maximum=bounds.get("maximum"),
        kind=containers.get(origin) or simple.get(field.annotation, "text"),
        editor=extra.get("editor", ""),
        zero=extra.get("zero", ""),
    )


def preset_names(search: str) -> list[str]:
    """Return the names of the presets delivered with the program for a search, such as "identify"."""
    return sorted(path.stem for path in resources.path("presets", search).glob("*.toml"))


def read_preset(search: str, preset: str) -> dict[str, Any]:
    """Return the parameter values of a preset delivered with the program, given by name, or of a TOML file, given by path.

    A preset has a `description` and a table `parameters`; a file may also consist only of the parameters.

    Raises
    ------
    ParameterError
        If there is no such preset.
    InputError
        If the file is not valid TOML.
    """
    path = resources.path("presets", search) / f"{preset}.toml"
    if preset not in preset_names(search):
        path = Path(preset)
        if path.suffix != ".toml" and not is_there(path):
            raise ParameterError(f"there is no preset '{shortened(preset)}'; choose {', '.join(preset_names(search))} or a .toml file")
    content = _read_toml(path)
    parameters = content.get("parameters", {name: value for name, value in content.items() if name != "description"})
    if not isinstance(parameters, dict):
        raise InputError(
            path, "'parameters' is not a table", remedy="Write [parameters], and below it one line field = value per parameter"
        )
    return parameters


def _read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a preset file.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, or is not valid TOML.
    """
    remedy = "A preset is a TOML file with one line field = value per parameter"
    try:
        data = read_beginning(path, _MAXIMUM_PRESET_BYTES + 1)
        if len(data) > _MAXIMUM_PRESET_BYTES:
            raise InputError(path, f"is longer than the {_MAXIMUM_PRESET_BYTES:,} bytes of a preset", remedy=remedy)
        for number, line in enumerate(data.split(b"\n"), 1):
            if line.count(b".") > _MAXIMUM_POINTS:
                raise InputError(path, f"has more than {_MAXIMUM_POINTS:,} dots", place=f"line {number}", remedy=remedy)
        return tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}", remedy="Check the name of the preset file") from None
    except RecursionError:
        raise InputError(path, "is not a preset: its values are nested too deeply", remedy=remedy) from None
    except ValueError as error:
        # Invalid TOML, text that is not UTF-8, a number with thousands of digits, or an invalid path.
        raise InputError(path, f"is not a preset: {shortened(str(error), _MAXIMUM_EXPLAINED)}", remedy=remedy) from None


def preset_description(search: str, preset: str) -> str:
    """Return the description of a preset delivered with the program."""
    content = tomllib.loads((resources.path("presets", search) / f"{preset}.toml").read_text(encoding="utf-8"))
    return str(content.get("description", ""))
