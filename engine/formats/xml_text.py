"""Format attributes and numbers of XML for the writers of files."""

import re
from xml.sax.saxutils import escape

__all__ = ["attribute", "attributes", "number"]

_ENTITIES = {'"': "&quot;"}
_SPECIAL = re.compile(r"""[&<>"]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]""")
_FORBIDDEN = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def attribute(text: str) -> str:
    """Escape text for an attribute in double quotes, and replace control characters by spaces."""
    if _SPECIAL.search(text) is None:
        return text
    return escape(_FORBIDDEN.sub(" ", text), _ENTITIES)


def attributes(**values: object) -> str:
    """Return attributes, each after a space; None values are omitted, and booleans become ``true`` and ``false``."""
    return "".join(f' {name}="{_value(value)}"' for name, value in values.items() if value is not None)


def number(value: float, digits: int = 8) -> str:
    """Format a number with `digits` significant digits in the notation of XML Schema: ``0.0125``, ``1e-09``, ``NaN``, ``INF``."""
    text = f"{value:.{digits}g}"
    return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return attribute(str(value))
