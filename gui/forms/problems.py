"""Validation errors of parameters, by parameter name."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from proteoscope.engine.parameters import ParameterDescription, SearchParameters
from proteoscope.gui.forms.numbers import number_text


def find_problems(model: type[SearchParameters], values: Mapping[str, Any]) -> tuple[SearchParameters | None, dict[str, str]]:
    """Return the validated parameters, or None if they are invalid, and the errors by parameter name.

    An error that concerns several parameters is an error of each parameter that is named in its message.
    """
    try:
        return model.validated(values), {}
    except ValidationError as error:
        issues = error.errors()
    descriptions = {description.name: description for description in model.describe()}
    problems: dict[str, str] = {}
    for issue in issues:
        if issue["loc"]:
            name = str(issue["loc"][0])
            problems.setdefault(name, _in_words(issue, descriptions[name]))
            continue
        text = str(issue["msg"]).removeprefix("Value error, ")
        named = [name for name in descriptions if re.search(rf"\b{name}\b", text)]
        for name in named:
            text = re.sub(rf"\b{name}\b", f"“{descriptions[name].title}”", text)
        problems.update({name: problems.get(name, text) for name in named or [next(iter(descriptions))]})
    return None, problems


def _in_words(issue: Any, description: ParameterDescription) -> str:
    limits = issue.get("ctx", {})
    unit = f" {description.unit}" if description.unit else ""
    for key, words in (("ge", "Expected at least"), ("gt", "Expected more than"), ("le", "Expected at most"), ("lt", "Expected less than")):
        if key in limits:
            return f"{words} {number_text(limits[key])}{unit}"
    kind = issue["type"]
    if kind.startswith("int_"):
        return "Expected whole numbers such as 0, 1, 2" if description.kind == "list" else "Expected a whole number"
    if kind == "string_too_short":
        return f"Expected at least {limits['min_length']} character" + ("s" if limits["min_length"] > 1 else "")
    if kind == "string_too_long":
        return f"Expected at most {limits['max_length']} characters"
    text = str(issue["msg"]).removeprefix("Value error, ")
    return text[:1].upper() + text[1:]
