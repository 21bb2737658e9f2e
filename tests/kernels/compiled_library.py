"""Libraries in C that replace the CUDA driver."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def compiled_library(text: str, folder: Path, *options: str) -> Path:
    """Compile a source text to a library in a folder and return its path; skip the test without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = folder / "driver.c"
    source.write_text(text, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", *options, "-o", source.with_suffix(".so"), source], check=True)
    return source.with_suffix(".so")
