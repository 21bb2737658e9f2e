"""The program's version, as installed."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["VERSION"]


def _installed() -> str:
    try:
        return version("proteoscope")
    except PackageNotFoundError:
        return "0.1.0+source"


VERSION = _installed()
