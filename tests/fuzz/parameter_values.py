"""Odd values of every parameter of every search: each is rejected in one sentence that names it, or the search runs with it to its end.

    python -m tests.fuzz.parameter_values [--commands NAME ...] [--only TEXT]

Values come from the models: bounds, neighbouring values, choices, and invalid texts. Searches run with the values that a model accepts,
each in a process of its own with a limit of memory and time. Pairs of a minimum and a maximum are also exchanged.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from proteoscope.engine.command_line.main import main as run_command
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.parameters import ParameterDescription, SearchParameters
from proteoscope.engine.searches import SEARCHES, search_of_kind
from tests.fuzz.environments import COMMANDS, make_inputs

MEMORY = 3 << 30
SECONDS = 60

TEXTS = (
    *("NaN", "nan", "inf", "-inf", "Infinity", "-0.0", "1e308", "1e-308", "1e400", "2147483648", "9223372036854775808", "-1", "0"),
    *(
        "",
        "   ",
        "9" * 5000,
        "1,5",
        "１２",
        "²",
        "true",
        "None",
        "null",
        "5 ppm",
        "nan ppm",
        "inf Da",
        "-1 ppm",
        "1e308 Da",
        "1e-308 ppm",
        "0 ppm",
    ),
    *("1_000", "0x10", "1/2", "[]", "{}", "a,b", ",", '"', "=", "1e5", "1000000", "\\x1b[31m", "é", "Oxidation (M)", "../..", "/dev/zero"),
    *("\x1b[31m", "\udcff", "\n", "a\nb", "\0", "1" + ",1" * 5000),
)

_HARMLESS = frozenset(TEXTS) - {
    "",
    "9" * 5000,
    "1,5",
    "0 ppm",
    "1e308 Da",
    "../..",
    "/dev/zero",
    "\x1b[31m",
    "\udcff",
    "\0",
    "1" + ",1" * 5000,
}
"""Texts that are equivalent to others for a parameter that accepts any text."""


def models() -> dict[str, tuple[type[SearchParameters], SearchParameters]]:
    """Return the model and the usual parameters of each command that has any."""
    models_of_kind = {search.kind: (search.model, search.parameters_of(_preset(search.kind))) for search in SEARCHES}
    return models_of_kind | {
        command.name: (command.model, command.model()) for search in SEARCHES for command in search.commands if command.parameters
    }


def _preset(kind: str) -> str:
    arguments = COMMANDS[kind]
    return arguments[arguments.index("--preset") + 1] if "--preset" in arguments else ""


def values_of(description: ParameterDescription) -> Iterator[str]:
    """Yield values for a parameter: those of its model, and invalid texts."""
    yield from description.choices
    for bound in (description.minimum, description.maximum):
        if bound is not None:
            yield from (
                f"{bound:.17g}",
                f"{bound + 1:.17g}",
                f"{bound - 1:.17g}",
                f"{bound * (1 + 1e-12):.17g}",
                f"{bound * (1 - 1e-12):.17g}",
            )
    yield from TEXTS


def accepted_values(command: str) -> tuple[list[tuple[str, str]], int]:
    """Return the values that the model of a command accepts, by the names of parameters, and the number of those that it refuses.

    Raises
    ------
    AssertionError
        A refusal does not name the parameter, or is not one short line.
    """
    accepted, n_refused = [], 0
    model, usual = models()[command]
    for description in model.describe():
        seen = set()
        for value in values_of(description):
            try:
                changed = usual.changed([f"{description.name}={value}"])
            except ParameterError as error:
                assert description.name in str(error), f"{command} {description.name}={value!r}: {error}"
                assert len(str(error)) < 1200, f"{command} {description.name}: {len(str(error))} characters"
                n_refused += 1
                continue
            result = str(getattr(changed, description.name))
            if result not in seen and changed != usual:
                seen.add(result)
                accepted.append((description.name, value))
    return accepted, n_refused


def worth_searching(command: str) -> Iterator[tuple[str, str]]:
    """Yield the accepted values that may do harm: the least, the greatest and the least positive number, each choice, and odd texts."""
    described = {parameter.name: parameter for parameter in models()[command][0].describe()}
    accepted = accepted_values(command)[0]
    for name, description in described.items():
        values = [value for parameter, value in accepted if parameter == name]
        if description.kind in ("integer", "number"):
            ordered = sorted(values, key=float)
            yield from (
                (name, value)
                for value in dict.fromkeys([*ordered[:1], *[value for value in ordered if float(value) > 0][:1], *ordered[-1:]])
            )
        else:
            yield from ((name, value) for value in values if value not in _HARMLESS)


TOML = (
    *("nan", "-inf", "1e308", "-0.0", "1e-308", "9223372036854775808", "-9223372036854775809", "1" + "0" * 400, "true", "-1", "0.5", "1"),
    *(
        '"text"',
        '""',
        "[]",
        "[[1]]",
        "[nan]",
        "{a = 1}",
        "[{a = 1}]",
        "1979-05-27",
        "07:32:00",
        '"\\u001b[31m"',
        '["\\u0000"]',
        "[true, 1, 'x']",
    ),
)
"""Values of TOML with other types than text."""


def refused_in_preset(command: str, folder: Path) -> int:
    """Return the number of values in a preset file that a search rejects, for each parameter and type of TOML.

    Raises
    ------
    AssertionError
        A rejection names neither the file nor the parameter.
    """
    search, path, n_refused = search_of_kind(command), folder / "preset.toml", 0
    for description in search.model.describe():
        for value in TOML:
            path.write_text(f"[parameters]\n{description.name} = {value}\n", encoding="utf-8")
            try:
                search.parameters_of(str(path))
            except ProteoscopeError as error:
                assert str(path) in str(error) and description.name in str(error), f"{description.name} = {value[:40]}: {error}"
                n_refused += 1
    return n_refused


def exchanged_pairs(command: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each pair of a minimum and a maximum, with values that contradict each other."""
    described = {parameter.name: parameter for parameter in models()[command][0].describe()}
    for low in described:
        high = low.replace("minimum", "maximum")
        if "minimum" in low and high in described:
            lowest, highest = described[low], described[high]
            yield low, f"{lowest.maximum:.17g}", high, f"{highest.minimum:.17g}"


class Place:
    """Inputs and results of searches, each in a process forked from this one, which has run the usual search."""

    def __init__(self, folder: Path, command: str) -> None:
        self.folder, self.command = folder, command
        self.inputs = folder / "inputs"

    def run(self, settings: list[str]) -> tuple[int, str]:
        """Run the command with settings and return its status (negative for a signal) and its standard error."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            out, errors = Path(name), self.folder / "errors"
            arguments = self._arguments(out, settings)
            child = os.fork()
            if child == 0:
                _run_command(arguments, errors)
            _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), errors.read_text(encoding="utf-8", errors="replace")

    def prepare(self) -> None:
        """Run the usual search in this process, which loads its modules."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name, redirect_stdout(io.StringIO()):
            assert run_command(self._arguments(Path(name), [])) == 0
        gc.collect()
        gc.freeze()

    def _arguments(self, out: Path, settings: list[str]) -> list[str]:
        arguments = [word.replace("IN/", f"{self.inputs}/").replace("OUT/", f"{out}/") for word in COMMANDS[self.command]]
        if "PROJECT" in arguments:
            shutil.copytree(self.inputs / "project", out / "project")
        arguments = [word.replace("PROJECT", str(out / "project")) for word in arguments]
        return [self.command, *arguments, *(part for setting in settings for part in ("--set", setting))]


def _run_command(arguments: list[str], errors: Path) -> None:
    """Run the command to its end, with limits of memory and time."""
    file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.alarm(10 * SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    status = 99
    try:
        status = run_command(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def check(place: Place, settings: list[str]) -> str:
    """Search with settings and describe the end.

    Raises
    ------
    AssertionError
        The end is not allowed.
    """
    status, errors = place.run(settings)
    assert status not in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL), f"longer than {SECONDS} s: {errors[-300:]}"
    assert status in (0, 2) and "Traceback" not in errors, f"{status} {errors[-1500:]}"
    sentences = [line for line in errors.splitlines() if line.startswith("proteoscope: ")]
    assert len(sentences) == (status == 2) and "memory" not in errors, f"{status} {errors[-1500:]}"
    return sentences[0] if sentences else "done"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", default=[*models()])
    parser.add_argument("--only", default="", help="parameters whose names hold this")
    options = parser.parse_args()
    n_cases = n_refused = n_wrong = 0
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as name:
        os.environ["PROTEOSCOPE_CACHE"] = f"{name}/cache"
        folder = Path(name)
        make_inputs(folder / "inputs")
        for command in options.commands:
            place = Place(folder, command)
            n_refused += accepted_values(command)[1]
            cases = [[f"{parameter}={value}"] for parameter, value in worth_searching(command) if options.only in parameter]
            cases += [[f"{low}={lowest}", f"{high}={highest}"] for low, lowest, high, highest in exchanged_pairs(command)]
            place.prepare()
            for settings in cases:
                n_cases += 1
                try:
                    reported = check(place, settings)
                except AssertionError as error:
                    reported, n_wrong = f"WRONG: {error}", n_wrong + 1
                print(f"{command} {' '.join(setting[:80] for setting in settings)!r}: {reported}".replace(name, ""), flush=True)
    print(f"{n_refused} values refused by the models, {n_cases} searches, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
