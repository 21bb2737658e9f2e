"""The one name that is installed: importing it lets a process find the program's packages, which other programs' processes never meet.

A script says ``import proteoscope``, and then ``from engine.views import ...`` as the program's own files do. A wheel holds the packages in
the folder ``top-level`` beside this file, a checkout in the folder above. They go before all else on the path, so that a folder named
``resources`` beside a script does not stand in their place.
"""

import sys
from pathlib import Path

__all__ = ["PACKAGES"]

PACKAGES = ("gui", "engine", "kernels", "resources")


def _let_packages_be_found() -> None:
    """Put their folder on the path. Raises ImportError where another package of such a name is in use already."""
    # No name that Python could import: as proteoscope.engine, every module would be there twice.
    folder = Path(__file__).resolve().parent / "top-level"
    if not folder.is_dir():
        folder = folder.parents[1]
    for name in PACKAGES:
        if name in sys.modules and folder / name not in [Path(place).resolve() for place in getattr(sys.modules[name], "__path__", ())]:
            raise ImportError(f"a package named {name} of another program is in use; it and Proteoscope need processes of their own")
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))


_let_packages_be_found()
