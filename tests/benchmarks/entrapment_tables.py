"""The figures of an examination as tables to read, alone or beside those of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from entrapment_estimators import COUNTS, Bootstrap, Interval, at_equal_share, combined, lower, net, paired
from entrapment_searches import LEVELS
from numpy.typing import NDArray

__all__ = ["INDEPENDENT", "SETS", "print_comparison", "print_tables"]

INDEPENDENT = ("qc_shew", "metaproteome", "yeast_velos", "hela_a549", "ecoli_ltq", "bsa1")
"""The sets that are pooled; `bench` holds spectra of the others."""
SETS = (*INDEPENDENT, "bench")
ESTIMATORS: dict[str, Callable[[NDArray[np.float64]], float]] = {"lower": lower, "combined": combined, "paired": paired}
OURS = "proteoscope"
EQUAL_SHARES = (0.01, 0.02, 0.03)
FEW = 300
"""Sets with fewer PSMs are listed, and do not decide alone."""

Record = dict[str, Any]


def print_tables(records: Sequence[Record]) -> None:
    """All that the records tell."""
    header = next(one for one in records if one["figure"] == "examination")
    print(" ".join(f"{name}={value}" for name, value in header.items() if name != "figure"))
    for part in ("paired", "copies", "noisy", "foreign"):
        _print_discoveries(_chosen(records, "discoveries", part=part, program=OURS), part)
    _print_null(_chosen(records, "null"))
    _print_permuted(_chosen(records, "permuted"))
    _print_programs(records)


def print_comparison(records: Sequence[Record], before: Sequence[Record]) -> None:
    """Accepted minus twice those entrapped, in the searches that both examinations hold."""
    print("\nbeside the other examination: accepted minus twice those entrapped, for a search")
    titles = f"{'searches':>8} {'before':>9} {'now':>9} {'difference':>10} {'+-':>7}  combined % before, now"
    print(f"{'part':8} {'level':8} {'reported':>8} {titles}")
    for part in ("paired", "copies", "noisy", "foreign"):
        now, then = (
            {_search(one): one for one in _chosen(each, "discoveries", part=part, program=OURS) if one["set"] in INDEPENDENT}
            for each in (records, before)
        )
        common = [key for key in now if key in then]
        for level, reported in dict.fromkeys((key[2], key[3]) for key in common):
            rows: dict[str, list[list[float]]] = {}
            for key in common:
                if key[2:] == (level, reported):
                    rows.setdefault(key[0], []).append([one[name] for one in (then[key], now[key]) for name in COUNTS])
            n = sum(map(len, rows.values()))
            drawn = Bootstrap.of({name: np.array(one, np.float64) for name, one in rows.items()})
            difference = drawn.interval(lambda counts, n=n: (net(counts[len(COUNTS) :]) - net(counts[: len(COUNTS)])) / n)
            each = (drawn.total[: len(COUNTS)], drawn.total[len(COUNTS) :])
            print(
                f"{part:8} {level:8} {reported:8.0%} {n:8} {net(each[0]) / n:9.2f} {net(each[1]) / n:9.2f} {difference.estimate:+10.2f}"
                f" {difference.error:7.2f}  {_percent(combined(each[0]))} {_percent(combined(each[1]))}"
            )


def _search(record: Record) -> tuple[str, int, str, float]:
    return record["set"], record["seed"], record["level"], record["reported"]


def _chosen(records: Iterable[Record], figure: str, **values: Any) -> list[Record]:
    """The records of a figure with these values."""
    return [one for one in records if one["figure"] == figure and all(one[name] == value for name, value in values.items())]


def _by_set(records: Iterable[Record], columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Rows of counts, one for each search, by set."""
    rows: dict[str, list[list[float]]] = {}
    for record in records:
        rows.setdefault(record["set"], []).append([record[column] for column in columns])
    return {name: np.array(one, np.float64) for name, one in rows.items()}


def _percent(value: float) -> str:
    return f"{100 * value:5.2f}"


def _with_interval(value: Interval) -> str:
    return f"{_percent(value.estimate)} [{_percent(value.low)},{_percent(value.high)}]"


def _print_discoveries(chosen: Sequence[Record], part: str) -> None:
    """What is accepted and what of it is false, for each level and reported rate: pooled, and combined for each set at 1 %."""
    pooled = [one for one in chosen if one["set"] in INDEPENDENT]
    if pooled:
        n = len({(one["set"], one["seed"]) for one in pooled})
        print(f"\n{part}: {len({one['set'] for one in pooled})} sets, {n} searches; share that is false in % [95 %]; net is for a search")
        titles = " ".join(f"{name:>21}" for name in ESTIMATORS)
        print(f"{'level':8} {'reported':>8} {'accepted':>9} {'entrapped':>9} {titles} {'net':>8}")
    for level, reported in dict.fromkeys(
        (one["level"], one["reported"]) for one in sorted(pooled, key=lambda one: LEVELS.index(one["level"]))
    ):
        drawn = Bootstrap.of(_by_set((one for one in pooled if (one["level"], one["reported"]) == (level, reported)), COUNTS))
        shares = " ".join(f"{_with_interval(drawn.interval(estimator)):>21}" for estimator in ESTIMATORS.values())
        accepted = drawn.total[0] + drawn.total[1]
        print(f"{level:8} {reported:8.0%} {accepted:9.0f} {drawn.total[1]:9.0f} {shares} {net(drawn.total) / n:8.2f}")
    if chosen:
        print("each set at 1 %: accepted in a search, combined %")
    for name in dict.fromkeys(one["set"] for one in chosen):
        told = []
        for level in LEVELS:
            rows = [
                [one[column] for column in COUNTS] for one in chosen if (one["set"], one["level"], one["reported"]) == (name, level, 0.01)
            ]
            if rows:
                total = np.sum(rows, axis=0)
                told.append(f"{level} {(total[0] + total[1]) / len(rows):8.1f} {_percent(combined(total))}")
        print(f"  {name:14} {'   '.join(told)}")


def _print_null(chosen: Sequence[Record]) -> None:
    """What searches without a right answer accept, and how often their E-values are small."""
    if not chosen:
        return
    print("\nno right answer: matched spectra, accepted at 1 %, and the share in % whose E-value is at most so much")
    levels = list(chosen[0]["share"])
    print(f"{'preset':18} {'spectra of':14} {'proteins of':12} {'matched':>8} {'accepted':>8} " + " ".join(f"{name:>7}" for name in levels))
    for one in chosen:
        shares = " ".join(f"{_percent(value):>7}" for value in one["share"].values())
        print(f"{one['preset']:18} {one['set']:14} {one['proteins']:12} {one['matched']:8} {one['accepted']:8} {shares}")


def _print_permuted(chosen: Sequence[Record]) -> None:
    """False targets accepted with and without rescoring."""
    if not chosen:
        return
    columns = ("false_without", "false_with", "true_without", "true_with")
    print("\npermuted labels: false targets accepted at 1 %, mean of the permutations; their share of what is accepted, %")
    print(f"{'set':20} {'without':>8} {'with':>8} {'difference':>10} {'+-':>6} {'share without':>14} {'share with':>11}")
    for copies in sorted({one["copies"] for one in chosen}):
        here = _by_set((one for one in chosen if one["copies"] == copies), columns)
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
    """PSMs of each program at equal combined share, in the searches that all did; and the curves."""
    curves = [one for one in records if one["figure"] == "curve"]
    programs = list(dict.fromkeys(one["program"] for one in curves))
    if len(programs) < 2:
        return
    of_each = {program: {(one["set"], one["seed"]): one for one in curves if one["program"] == program} for program in programs}
    common = set.intersection(*(set(searches) for searches in of_each.values()))
    n_thresholds = len(curves[0]["q"])

    def rows(program: str, names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """For each set and seed: accepted at each threshold, then the weighted entrapped."""
        return {name: np.array([_counts_of_curve(of_each[program][key]) for key in sorted(common) if key[0] == name]) for name in names}

    sets = [name for name in SETS if any(key[0] == name for key in common)]
    pool = [name for name in sets if name in INDEPENDENT]
    n = sum(key[0] in INDEPENDENT for key in common)
    print(
        f"\nPSMs for a search at equal combined share, {len(pool)} sets, {n} searches pooled; + : more than the program, +- bootstrap error"
    )
    print(f"{'program':16} " + " ".join(f"{f'{share:.0%}':>10} {f'+ {OURS}':>22}" for share in EQUAL_SHARES))
    ours = rows(OURS, pool)
    for program in programs:
        theirs = rows(program, pool)
        drawn = Bootstrap.of({name: np.hstack((ours[name], theirs[name])) for name in pool})
        told = []
        for share in EQUAL_SHARES:
            accepted = at_equal_share(*np.split(drawn.total[2 * n_thresholds :], 2), share) / n
            told.append(f"{accepted:10.2f}")
            if program == OURS:
                told.append(f"{'':22}")
                continue
            more = drawn.interval(
                lambda counts, share=share: (
                    (
                        at_equal_share(*np.split(counts[: 2 * n_thresholds], 2), share)
                        - at_equal_share(*np.split(counts[2 * n_thresholds :], 2), share)
                    )
                    / n
                )
            )
            told.append(f"{more.estimate:+10.2f} +- {more.error:7.2f} ")
        print(f"{program:16} {' '.join(told)}")
    for name in sets:
        told = []
        for program in programs:
            total = rows(program, [name])[name]
            told.append(
                f"{program} "
                + "/".join(f"{at_equal_share(*np.split(total.sum(axis=0), 2), share) / len(total):.0f}" for share in EQUAL_SHARES)
            )
        few = max(len(rows(OURS, [name])[name]) and float(rows(OURS, [name])[name][:, n_thresholds - 1].mean()), 0.0) < FEW
        print(f"  {name:14}{' (few)' if few else '      '} {'   '.join(told)}")
    print("curves: at each reported q-value, targets for a search and their combined share in %")
    print(f"{'reported':>8} " + " ".join(f"{program:>20}" for program in programs))
    for i, threshold in enumerate(curves[0]["q"]):
        if threshold in (0.0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1):
            told = []
            for program in programs:
                total = np.sum([one.sum(axis=0) for one in rows(program, pool).values()], axis=0)
                accepted, weighted = total[i], total[n_thresholds + i]
                entrapped = sum(of_each[program][key]["entrapped"][i] for key in common if key[0] in pool)
                told.append(f"{(accepted - entrapped) / n:12.2f} {_percent(weighted / max(accepted, 1)):>7}")
            print(f"{threshold:8.1%} {' '.join(told)}")


def _counts_of_curve(curve: Record) -> NDArray[np.float64]:
    """Accepted at each threshold, then N_E (1 + 1/r)."""
    targets, entrapped = np.array(curve["targets"], np.float64), np.array(curve["entrapped"], np.float64)
    return np.concatenate((targets + entrapped, entrapped * (1 + 1 / curve["ratio"])))
