"""Printed tables of the figures of an entrapment benchmark, optionally compared with those of an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrapment_estimators import (
    COUNTS,
    Bootstrap,
    Interval,
    Spread,
    at_equal_share,
    combined,
    holm,
    lower,
    net,
    paired,
    spread_over_spectra,
)
from benchmarks.entrapment_searches import LEVELS

__all__ = ["INDEPENDENT", "SETS", "exceeded", "print_comparison", "print_tables"]

INDEPENDENT = ("qc_shew", "metaproteome", "yeast_velos", "hela_a549", "ecoli_ltq", "bsa1")
"""The sets that are pooled; `bench` holds spectra of the others."""
SETS = (*INDEPENDENT, "bench")
ESTIMATORS: dict[str, Callable[[NDArray[np.float64]], float]] = {"lower": lower, "combined": combined, "paired": paired}
OURS = "proteoscope"
EQUAL_SHARES = (0.01, 0.02, 0.03)
MAXIMUM_FALSE = {"psm": 0.013, "peptide": 0.014, "group": 0.015}
"""Combined share at a reported 1 %, all sets together."""
MAXIMUM_FALSE_OF_FEW = 0.015
MAXIMUM_FALSE_OF_NULLS = 1.0
"""False PSMs accepted in a search of few spectra without a right answer, on average."""
MAXIMUM_SMALL_E_VALUES = 0.015
"""Of spectra without a right answer, those with E <= 0.01."""
LOSS = 2.0
"""Number of standard errors below zero from which the difference of a set is a loss."""
FEW = 300
"""Sets with fewer PSMs are listed, but are not decisive."""

Record = dict[str, Any]


def print_tables(records: Sequence[Record]) -> None:
    """Print all tables of the records."""
    header = next(record for record in records if record["figure"] == "examination")
    print(" ".join(f"{name}={value}" for name, value in header.items() if name != "figure"))
    for part in (
        "paired",
        "copies",
        "noisy",
        "small",
        "small null",
        "foreign",
        *sorted({part for record in records if (part := str(record.get("part", ""))).startswith("incomplete")}),
    ):
        _print_discoveries(_chosen(records, "discoveries", part=part, program=OURS), part)
    _print_null(_chosen(records, "null"))
    _print_permuted(_chosen(records, "permuted"))
    _print_programs(records)


def exceeded(records: Sequence[Record]) -> list[str]:
    """Describe the shares above their bound: those whose interval over spectra lies entirely above it."""
    lines = []
    discoveries = [record for record in _chosen(records, "discoveries", program=OURS, reported=0.01) if record["set"] in INDEPENDENT]
    for part, level in dict.fromkeys(
        (discovery["part"], discovery["level"]) for discovery in discoveries if discovery["part"] != "small null"
    ):
        spread = _spread([discovery for discovery in discoveries if (discovery["part"], discovery["level"]) == (part, level)])
        bound = MAXIMUM_FALSE_OF_FEW if part in ("small", "incomplete 50%") else MAXIMUM_FALSE[level]
        if spread.low > bound:
            lines.append(f"{part}, {level}: {_with_interval(spread)} % false, at most {_percent(bound)}")
    nulls = [discovery["entrapped"] for discovery in discoveries if (discovery["part"], discovery["level"]) == ("small null", "psm")]
    if nulls and np.mean(nulls) - 2 * np.std(nulls) / np.sqrt(len(nulls)) > MAXIMUM_FALSE_OF_NULLS:
        lines.append(f"small null: {np.mean(nulls):.2f} false PSMs in a search, at most {MAXIMUM_FALSE_OF_NULLS:g}")
    of_null = _chosen(records, "null")
    matched = sum(record["matched"] for record in of_null)
    small = sum(round(record["share"]["0.01"] * record["matched"]) for record in of_null)
    if small > MAXIMUM_SMALL_E_VALUES * matched + 3 * np.sqrt(MAXIMUM_SMALL_E_VALUES * matched):
        lines.append(f"null: {small} of {matched} without a right answer have E <= 0.01")
    accepted = sum(record["accepted"] for record in of_null)
    if accepted > len(of_null):
        lines.append(f"null: {accepted} PSMs accepted in {len(of_null)} searches")
    return lines


def _spread(records: Sequence[Record]) -> Spread:
    """Return the combined share of searches with its interval; spectra of different sets are distinct."""
    number = {name: i for i, name in enumerate(dict.fromkeys(record["set"] for record in records))}
    accepted = np.array([record["targets"] + record["entrapped"] for record in records], np.float64)
    factor = np.array([1 + 1 / record["ratio"] for record in records])
    # Earlier examinations did not record the spectra; each match then counts as a spectrum.
    false = [[number[record["set"]] << 32 | i for i in record.get("false_spectra", range(int(record["entrapped"])))] for record in records]
    return spread_over_spectra(accepted, false, factor)


def print_comparison(records: Sequence[Record], before: Sequence[Record]) -> None:
    """Print accepted minus twice entrapped discoveries, in the searches that both examinations have."""
    print("\nbeside the other examination: accepted minus twice those entrapped, for a search")
    titles = f"{'searches':>8} {'before':>9} {'now':>9} {'difference':>10} {'+-':>7}  combined % before, now"
    print(f"{'part':8} {'level':8} {'reported':>8} {titles}")
    for part in ("paired", "copies", "noisy", "small", "small null", "foreign"):
        now, then = (
            {_search(record): record for record in _chosen(each, "discoveries", part=part, program=OURS) if record["set"] in INDEPENDENT}
            for each in (records, before)
        )
        common = [key for key in now if key in then]
        for level, reported in dict.fromkeys((key[2], key[3]) for key in common):
            rows: dict[str, list[list[float]]] = {}
            for key in common:
                if key[2:] == (level, reported):
                    rows.setdefault(key[0], []).append([record[name] for record in (then[key], now[key]) for name in COUNTS])
            n = sum(map(len, rows.values()))
            drawn = Bootstrap.of({name: np.array(counts, np.float64) for name, counts in rows.items()})
            difference = drawn.interval(lambda counts, n=n: (net(counts[len(COUNTS) :]) - net(counts[: len(COUNTS)])) / n)
            each = (drawn.total[: len(COUNTS)], drawn.total[len(COUNTS) :])
            print(
                f"{part:8} {level:8} {reported:8.0%} {n:8} {net(each[0]) / n:9.2f} {net(each[1]) / n:9.2f} {difference.estimate:+10.2f}"
                f" {difference.error:7.2f}  {_percent(combined(each[0]))} {_percent(combined(each[1]))}"
            )

    curves = [
        {(record["set"], record["seed"]): record for record in _chosen(each, "curve", program=OURS) if record["set"] in INDEPENDENT}
        for each in (before, records)
    ]
    common_curves = sorted(set(curves[0]) & set(curves[1]))
    if common_curves:
        _print_equal_shares(curves[0], curves[1], common_curves)


def _print_equal_shares(before: Mapping[tuple[str, int], Record], now: Mapping[tuple[str, int], Record], common: Sequence[Any]) -> None:
    """Print PSMs at equal combined share, pooled, and of each set with the error of its difference over seeds."""
    rows: dict[str, list[list[float]]] = {}
    for key in common:
        rows.setdefault(key[0], []).append(np.concatenate([_counts_of_curve(each[key]) for each in (before, now)]).tolist())
    of_set = {name: np.array(counts) for name, counts in rows.items()}
    print("\nPSMs at equal combined share, for a search of part paired; the error is of seeds, of all sets together also of sets")
    print(f"{'set':14} {'share':>6} {'searches':>8} {'before':>9} {'now':>9} {'ratio':>7} {'difference':>10} {'+-':>7}")
    for name, chosen in [("pooled", of_set), *((name, {name: counts}) for name, counts in of_set.items())]:
        drawn, n = Bootstrap.of(chosen), sum(map(len, chosen.values()))
        for share in EQUAL_SHARES:
            then, after, difference = _at_equal_share(drawn, share, n)
            lost = "  loses" if difference.estimate < -LOSS * difference.error else ""
            print(
                f"{name:14} {share:6.0%} {n:8} {then:9.2f} {after:9.2f} {after / max(then, 1e-9):7.3f}"
                f" {difference.estimate:+10.2f} {difference.error:7.2f}{lost}"
            )


def _at_equal_share(drawn: Bootstrap, share: float, n_searches: int) -> tuple[float, float, Interval]:
    """Return PSMs per search at a combined share, of the first and the second curve, and their difference."""

    def each(counts: NDArray[np.float64]) -> tuple[float, float]:
        first, second = np.split(counts, 2)
        return at_equal_share(*np.split(first, 2), share) / n_searches, at_equal_share(*np.split(second, 2), share) / n_searches

    def difference(counts: NDArray[np.float64]) -> float:
        first, second = each(counts)
        return second - first

    return *each(drawn.total), drawn.interval(difference)


def _search(record: Record) -> tuple[str, int, str, float]:
    return record["set"], record["seed"], record["level"], record["reported"]


def _chosen(records: Iterable[Record], figure: str, **values: Any) -> list[Record]:
    """Return the records of a figure with these values."""
    return [record for record in records if record["figure"] == figure and all(record[name] == value for name, value in values.items())]


def _by_set(records: Iterable[Record], columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return rows of counts, one for each search, by set."""
    rows: dict[str, list[list[float]]] = {}
    for record in records:
        rows.setdefault(record["set"], []).append([record[column] for column in columns])
    return {name: np.array(counts, np.float64) for name, counts in rows.items()}


def _percent(value: float) -> str:
    return f"{100 * value:5.2f}"


def _with_interval(value: Interval | Spread) -> str:
    return f"{_percent(value.estimate)} [{_percent(value.low)},{_percent(value.high)}]"


def _print_discoveries(chosen: Sequence[Record], part: str) -> None:
    """Print accepted and false discoveries for each level and reported rate: pooled, and combined for each set at 1 %."""
    pooled = [record for record in chosen if record["set"] in INDEPENDENT]
    if pooled:
        n = len({(record["set"], record["seed"]) for record in pooled})
        print(f"\n{part}: {len({record['set'] for record in pooled})} sets, {n} searches; false share in % [95 %]; net is for a search")
        titles = " ".join(f"{name:>21}" for name in ESTIMATORS)
        print(f"{'level':8} {'reported':>8} {'accepted':>9} {'entrapped':>9} {titles} {'net':>8}")
    for level, reported in dict.fromkeys(
        (record["level"], record["reported"]) for record in sorted(pooled, key=lambda record: LEVELS.index(record["level"]))
    ):
        drawn = Bootstrap.of(_by_set((record for record in pooled if (record["level"], record["reported"]) == (level, reported)), COUNTS))
        shares = " ".join(f"{_with_interval(drawn.interval(estimator)):>21}" for estimator in ESTIMATORS.values())
        accepted = drawn.total[0] + drawn.total[1]
        print(f"{level:8} {reported:8.0%} {accepted:9.0f} {drawn.total[1]:9.0f} {shares} {net(drawn.total) / n:8.2f}")
    if chosen:
        print("each set at 1 %: accepted in a search, combined % [95 % over spectra], corrected chance that it is not above 1 %")
    sets, of_level = list(dict.fromkeys(record["set"] for record in chosen)), dict[str, dict[str, tuple[float, Spread]]]()
    for level in LEVELS:
        for name in sets:
            here = [record for record in chosen if (record["set"], record["level"], record["reported"]) == (name, level, 0.01)]
            if here:
                mean = sum(record["targets"] + record["entrapped"] for record in here) / len(here)
                of_level.setdefault(level, {})[name] = mean, _spread(here)
    corrected = {level: dict(zip(of, holm([spread.p_value for _, spread in of.values()]), strict=True)) for level, of in of_level.items()}
    for name in sets:
        cells = [
            f"{level} {of[name][0]:7.1f} {_with_interval(of[name][1])} {corrected[level][name]:5.3f}"
            for level, of in of_level.items()
            if name in of
        ]
        print(f"  {name:14} {'   '.join(cells)}")


def _print_null(chosen: Sequence[Record]) -> None:
    """Print how many PSMs searches without a right answer accept, and how often their E-values are small."""
    if not chosen:
        return
    print("\nno right answer: matched spectra, accepted at 1 %, and the share in % whose E-value is at most so much")
    levels = list(chosen[0]["share"])
    print(f"{'preset':18} {'spectra of':14} {'proteins of':12} {'matched':>8} {'accepted':>8} " + " ".join(f"{name:>7}" for name in levels))
    for record in chosen:
        shares = " ".join(f"{_percent(value):>7}" for value in record["share"].values())
        print(f"{record['preset']:18} {record['set']:14} {record['proteins']:12} {record['matched']:8} {record['accepted']:8} {shares}")


def _print_permuted(chosen: Sequence[Record]) -> None:
    """Print false targets accepted with and without rescoring."""
    if not chosen:
        return
    columns = ("false_without", "false_with", "true_without", "true_with")
    print("\npermuted labels: false targets accepted at 1 %, mean of the permutations; their share of what is accepted, %")
    print(f"{'set':20} {'without':>8} {'with':>8} {'difference':>10} {'+-':>6} {'share without':>14} {'share with':>11}")
    for copies in sorted({record["copies"] for record in chosen}):
        here = _by_set((record for record in chosen if record["copies"] == copies), columns)
        pooled = {name: rows for name, rows in here.items() if name in INDEPENDENT}
        for name, rows in [*((name, {name: rows}) for name, rows in here.items()), ("pooled", pooled)]:
            if not rows:
                continue
            n = sum(map(len, rows.values()))
            drawn = Bootstrap.of(rows)
            difference = drawn.interval(lambda counts, n=n: float(counts[1] - counts[0]) / n)
            shares = [drawn.total[i] / max(drawn.total[i] + drawn.total[i + 2], 1) for i in (0, 1)]
            label = name if copies == 1 else f"{name} x{copies}"
            print(
                f"{label:20} {drawn.total[0] / n:8.2f} {drawn.total[1] / n:8.2f} {difference.estimate:+10.2f} {difference.error:6.2f}"
                f" {_percent(shares[0]):>14} {_percent(shares[1]):>11}"
            )


def _print_programs(records: Sequence[Record]) -> None:
    """Print PSMs of each program at equal combined share, in the searches that it and ours did, and the curves."""
    of_each: dict[str, dict[tuple[str, int], Record]] = {}
    for record in _chosen(records, "curve"):
        of_each.setdefault(record["program"], {})[record["set"], record["seed"]] = record
    if len(of_each) < 2 or OURS not in of_each:
        return
    both = {program: sorted(set(searches) & set(of_each[OURS])) for program, searches in of_each.items() if program != OURS}
    print(f"\nPSMs for a search at equal combined share, pooled: the program's, {OURS}'s in the same searches, the difference +- its error")
    print(f"{'program':12} {'searches':>8} " + " ".join(f"{f'{share:.0%}':>30}" for share in EQUAL_SHARES))
    for program, keys in both.items():
        keys = [key for key in keys if key[0] in INDEPENDENT]
        drawn = Bootstrap.of(
            {
                name: np.array(
                    [
                        np.concatenate([_counts_of_curve(of_each[source][key]) for source in (program, OURS)])
                        for key in keys
                        if key[0] == name
                    ]
                )
                for name in dict.fromkeys(name for name, _ in keys)
            }
        )
        cells = []
        for share in EQUAL_SHARES:
            theirs, ours, more = _at_equal_share(drawn, share, len(keys))
            cells.append(f"{theirs:8.2f} {ours:8.2f} {more.estimate:+6.2f}+-{more.error:5.2f}")
        print(f"{program:12} {len(keys):8} {' '.join(cells)}")
    print(f"each set, the searches that all did: PSMs at {', '.join(f'{share:.0%}' for share in EQUAL_SHARES)}")
    common = set.intersection(*map(set, both.values()))
    sums = {
        (program, name): [_counts_of_curve(searches[key]) for key in common if key[0] == name]
        for program, searches in of_each.items()
        for name in dict.fromkeys(name for name, _ in sorted(common))
    }
    for name in dict.fromkeys(name for _, name in sums):
        cells = {
            program: [at_equal_share(*np.split(np.mean(sums[program, name], axis=0), 2), share) for share in EQUAL_SHARES]
            for program in of_each
        }
        few = "few" if max(cells[OURS]) < FEW else ""
        print(
            f"  {name:14} {few:4}"
            + "   ".join(f"{program} {'/'.join(f'{value:.0f}' for value in values)}" for program, values in cells.items())
        )
    print("the same searches, pooled: at each reported q-value targets for a search, and the combined share in %")
    print(f"{'reported':>8} " + " ".join(f"{program:>20}" for program in of_each))
    keys = [key for key in common if key[0] in INDEPENDENT]
    for i, threshold in enumerate(next(iter(of_each[OURS].values()))["q"]):
        if threshold in (0.0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1):
            columns_here = []
            for searches in of_each.values():
                accepted, weighted = np.sum([_counts_of_curve(searches[key]).reshape(2, -1)[:, i] for key in keys], axis=0)
                targets = sum(searches[key]["targets"][i] for key in keys)
                columns_here.append(f"{targets / len(keys):12.2f} {_percent(weighted / max(accepted, 1)):>7}")
            print(f"{threshold:8.1%} {' '.join(columns_here)}")


def _counts_of_curve(curve: Record) -> NDArray[np.float64]:
    """Return the number accepted at each threshold, then N_E (1 + 1/r)."""
    targets, entrapped = np.array(curve["targets"], np.float64), np.array(curve["entrapped"], np.float64)
    return np.concatenate((targets + entrapped, entrapped * (1 + 1 / curve["ratio"])))
