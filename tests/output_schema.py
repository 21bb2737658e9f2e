"""The shipped schema of the commands' JSON output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proteoscope import resources

SCHEMA: dict[str, Any] = json.loads(resources.path("schemas", "command_output.json").read_text(encoding="utf-8"))


def check_output(command: str, record: Any) -> None:
    """Check the output of a command with ``--json``, or with ``progress`` a line of ``--progress json``."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks the shipped schema")
    schema = {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{command}"}
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(json.loads(json.dumps(record, allow_nan=False)))
