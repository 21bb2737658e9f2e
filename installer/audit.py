"""Check the installed packages for known security holes.

    python installer/audit.py            # the environment that runs this: Proteoscope, its installed extras, and their dependencies
    python installer/audit.py --list     # list every inspected package and version

The holes are listed in `known_holes.toml` in this folder. The network is not used. The exit code is 1 if a package has a hole, 2 if the
package `packaging` is missing.
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
    """Versions of a package with a hole: from `first` (empty: any) to before `below`; `unreached` is why it does not affect the program."""

    package: str
    below: str
    id: str
    what: str
    first: str = ""
    unreached: str = ""

    def has(self, version: str) -> bool:
        """Return True if a version has the hole."""
        return (not self.first or Version(self.first) <= Version(version)) and Version(version) < Version(self.below)


@dataclass(frozen=True)
class KnownHoles:
    """The list of holes and the date of the last review of all packages."""

    looked_at: date
    holes: tuple[Hole, ...]

    def found(self, versions: Mapping[str, str]) -> list[Hole]:
        """Return the holes of these package versions, including those that do not affect the program."""
        return [hole for hole in self.holes if hole.package in versions and hole.has(versions[hole.package])]

    def is_old(self, today: date) -> bool:
        """Return True if the list needs a review."""
        return (today - self.looked_at).days > _MONTHS * 30


def read_holes(path: Path = LIST) -> KnownHoles:
    """Read the list of holes.

    Raises
    ------
    KeyError, TypeError, InvalidVersion
        If an entry is invalid.
    """
    content = tomllib.loads(path.read_text())
    holes = []
    for entry in content["hole"]:
        package, first, unreached = canonicalize_name(entry["package"]), entry.get("from", ""), entry.get("unreached", "")
        hole = Hole(package, entry["below"], entry["id"], entry["what"], first, unreached)
        hole.has("1")  # raise InvalidVersion now rather than during the audit
        holes.append(hole)
    return KnownHoles(content["looked_at"], tuple(holes))


def installed(roots: Iterable[str] = ("proteoscope",)) -> dict[str, str]:
    """Return the versions of packages and their installed dependencies, including those of installed extras, by canonical name."""
    versions, waiting = dict[str, str](), [canonicalize_name(root) for root in roots]
    while waiting:
        name = waiting.pop()
        if name in versions:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # the dependency is for another system, or of an extra that was not requested
        versions[name] = package.version
        waiting += [canonicalize_name(Requirement(text).name) for text in package.requires or ()]
    return versions


def main(arguments: list[str] | None = None) -> int:
    """Print the holes of the installed packages and return 1 if any affects the program."""
    parser = argparse.ArgumentParser(description="Refuse installed versions that are known to have holes.")
    parser.add_argument("--list", action="store_true", help="list every inspected package and version")
    options = parser.parse_args(arguments)
    known_holes, versions = read_holes(), installed()
    if "proteoscope" not in versions:
        print("Proteoscope is not installed in this environment", file=sys.stderr)
        return 1
    if options.list:
        print("\n".join(f"{name} {version}" for name, version in sorted(versions.items())))
    holes = known_holes.found(versions)
    for hole in holes:
        verdict = f"unreached: {hole.unreached}" if hole.unreached else f"install {hole.below} or newer"
        where = sys.stdout if hole.unreached else sys.stderr
        print(f"{hole.package} {versions[hole.package]}: {hole.id}, {hole.what}; {verdict}", file=where)
    if known_holes.is_old(datetime.now(UTC).date()):
        print(f"The list of holes was last gone through on {known_holes.looked_at}: it is time again", file=sys.stderr)
    n_bad = sum(not hole.unreached for hole in holes)
    print(f"{len(versions)} packages, {n_bad} with a known hole (list of {known_holes.looked_at})")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
