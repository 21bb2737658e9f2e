"""Compare what is installed with the versions that are known to have holes, and refuse them.

    python installer/audit.py            # of the environment that runs this: Proteoscope, its extras that are there, and all that they need
    python installer/audit.py --list     # name every package and version that was looked at

The list is `known_holes.toml` beside this file. Nothing is asked of any network. The exit code is 1 where a package has a hole, 2
where the package `packaging` is missing.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import Version
except ImportError:
    print("The package packaging is not installed here, which compares versions. Run pip install packaging.", file=sys.stderr)
    sys.exit(2)

__all__ = ["Hole", "KnownHoles", "installed", "read_holes"]

LIST = Path(__file__).with_name("known_holes.toml")
_MONTHS = 6


@dataclass(frozen=True)
class Hole:
    """Versions of a package with a hole: those from `first` on (empty: all) and below `below`. `unreached`: why it does not matter."""

    package: str
    below: str
    id: str
    what: str
    first: str = ""
    unreached: str = ""

    def has(self, version: str) -> bool:
        """Whether a version has it."""
        return (not self.first or Version(self.first) <= Version(version)) and Version(version) < Version(self.below)


@dataclass(frozen=True)
class KnownHoles:
    """The list, and when somebody last went through all packages."""

    looked_at: date
    holes: tuple[Hole, ...]

    def found(self, versions: Mapping[str, str]) -> list[Hole]:
        """The holes that these versions of packages have, those that do not matter among them."""
        return [hole for hole in self.holes if hole.package in versions and hole.has(versions[hole.package])]

    def is_old(self, today: date) -> bool:
        """Whether it is time to go through them again."""
        return (today - self.looked_at).days > _MONTHS * 30


def read_holes(path: Path = LIST) -> KnownHoles:
    """The list as it stands in a file.

    Raises
    ------
    KeyError, TypeError, InvalidVersion : an entry is not what one is.
    """
    content = tomllib.loads(path.read_text())
    holes = []
    for entry in content["hole"]:
        package, first, unreached = canonicalize_name(entry["package"]), entry.get("from", ""), entry.get("unreached", "")
        hole = Hole(package, entry["below"], entry["id"], entry["what"], first, unreached)
        hole.has("1")  # versions that are none are told at once
        holes.append(hole)
    return KnownHoles(content["looked_at"], tuple(holes))


def installed(roots: Iterable[str] = ("proteoscope",)) -> dict[str, str]:
    """Versions of packages and all that they need, as far as it is installed, by canonical name; extras count where they are there."""
    versions, waiting = dict[str, str](), [canonicalize_name(root) for root in roots]
    while waiting:
        name = waiting.pop()
        if name in versions:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # of another system, or an extra that was not asked for
        versions[name] = found.version
        waiting += [canonicalize_name(Requirement(text).name) for text in found.requires or ()]
    return versions


def main(arguments: list[str] | None = None) -> int:
    """Tell what was found; 1 where a package has a hole that matters."""
    parser = argparse.ArgumentParser(description="Refuse installed versions that are known to have holes.")
    parser.add_argument("--list", action="store_true", help="name every package and version that was looked at")
    asked = parser.parse_args(arguments)
    known, versions = read_holes(), installed()
    if "proteoscope" not in versions:
        print("Proteoscope is not installed in this environment", file=sys.stderr)
        return 1
    if asked.list:
        print("\n".join(f"{name} {version}" for name, version in sorted(versions.items())))
    found = known.found(versions)
    for hole in found:
        verdict = f"unreached: {hole.unreached}" if hole.unreached else f"install {hole.below} or newer"
        where = sys.stdout if hole.unreached else sys.stderr
        print(f"{hole.package} {versions[hole.package]}: {hole.id}, {hole.what}; {verdict}", file=where)
    if known.is_old(datetime.now(UTC).date()):
        print(f"The list of holes was last gone through on {known.looked_at}: it is time again", file=sys.stderr)
    n_bad = sum(not hole.unreached for hole in found)
    print(f"{len(versions)} packages, {n_bad} with a known hole (list of {known.looked_at})")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
