"""Protein evidence from mass spectra, sequences and structures: the program's package.

Its subpackages are `engine`, `gui`, `kernels` and `resources`. In a checkout these are symbolic links to the folders with these names at
the top of the repository; a wheel contains the folders themselves.
"""

from pathlib import Path

import lazy_loader

# Without symbolic links (Windows without developer mode), Git writes a link as a small text file.
if not Path(__file__).with_name("engine").is_dir():
    __path__.append(str(Path(__file__).resolve().parents[1]))

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
