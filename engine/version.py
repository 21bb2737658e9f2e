"""Version of the installed program."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["VERSION", "__version__"]


def _installed() -> str:
    try:
        return version("proteoscope")
    except PackageNotFoundError:
        return "0.1.0+source"


VERSION = __version__ = _installed()
