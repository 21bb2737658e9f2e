"""Protein evidence from mass spectra, sequences and structures: the program's package.

Its parts are the subpackages `engine`, `gui`, `kernels` and `resources`. In a checkout these are links to the folders of these names at
the top of the repository; a wheel holds the folders themselves.
"""

from pathlib import Path

import lazy_loader

# Git writes a link as a small text file where the system has no symbolic links (Windows without developer mode).
if not Path(__file__).with_name("engine").is_dir():
    __path__.append(str(Path(__file__).resolve().parents[1]))

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
