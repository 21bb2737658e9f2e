"""A score that the program does not have, and a copy of the program that has it: three changed files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["CHANGES", "with_new_score"]

REPOSITORY = Path(__file__).resolve().parents[1]

# Score of Morpheus (Wenger & Coon 2013, J Proteome Res 12:1377): number of matched ions plus their share of the spectrum.
CHANGES = {
    "kernels/score_kinds.py": (
        ')\n"""All scores,',
        "    ScoreKind(\n"
        '        "morpheus",\n'
        '        "Morpheus",\n'
        '        "Matched ions + SDP",\n'
        '        "morpheus",\n'
        '        "search_by_morpheus",\n'
        "        0.5,\n"
        '        "Morpheus\'s score",\n'
        '        "Wenger CD, Coon JJ. J Proteome Res 2013, 12:1377.",\n'
        '        term=("MS:1002662", "Morpheus:Morpheus score"),\n'
        '        in_pepxml="morpheus_score",\n'
        "        decimals=4,\n"
        "    ),\n",
    ),
    "kernels/cpu/scores.py": (
        "def _choice(",
        "@njit(nogil=True, cache=True, _nrt=False, forceinline=True)\n"
        "def morpheus(matched, settings):\n"
        "    return matched.count_n + matched.count_c + matched.dot\n\n\n",
    ),
    "kernels/cuda/sparse_search.cu": (
        "",
        "\nstruct Morpheus {\n"
        "    static constexpr bool kNeedsRoots = false, kNeedsCorrelation = false;\n"
        "    static __device__ __forceinline__ double of(const Match& match, const Inputs&) {\n"
        "        return match.count_n + match.count_c + match.dot;\n"
        "    }\n"
        "};\n\n"
        'extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)\n'
        "search_by_morpheus(const Settings* settings, const Inputs* inputs, int maximum_peaks) {\n"
        "    search<Morpheus>(settings, inputs, maximum_peaks);\n"
        "}\n",
    ),
}
"""For each changed file: the text before which the addition is inserted ('' for the end), and the addition."""

_COMPILED_ANEW = ("candidates", "matches", "scores")
"""Modules whose compiled functions contain the scores; Numba notices only changes of a function's own file."""


def with_new_score(folder: Path) -> dict[str, str]:
    """Copy the program with the score to a folder; the copy is links except for the kernels.

    Returns
    -------
    dict of str to str
        Environment in which Python imports the copy.
    """
    (folder / "proteoscope").mkdir()
    for path in (REPOSITORY / "proteoscope").iterdir():
        if path.name not in ("__pycache__", "kernels"):
            (folder / "proteoscope" / path.name).symlink_to(path.resolve())
    (folder / "proteoscope" / "kernels").symlink_to(folder / "kernels")
    # A checkout has its compiled kernels among the sources: those of other modules need not be compiled again.
    (folder / "pyproject.toml").symlink_to(REPOSITORY / "pyproject.toml")
    # Other tests may compile meanwhile, and rename files that they have written.
    left_out = shutil.ignore_patterns("*.tmp*", "*.sums?*", "*.lock", *(f"{name}.*.nb?" for name in _COMPILED_ANEW))
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels", ignore=left_out)
    for name, (place, text) in CHANGES.items():
        path = folder / name
        content = path.read_text(encoding="utf-8")
        assert not place or content.count(place) == 1, name
        path.write_text(content.replace(place, text + place) if place else content + text, encoding="utf-8")
    return {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"},
        "PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)]),
        "PROTEOSCOPE_CACHE": str(folder / "cache"),
    }
