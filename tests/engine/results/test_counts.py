"""Counts and their uncertainty in terminals and reports."""

from __future__ import annotations

import pytest

from proteoscope.engine.results.counts import Count, nothing_accepted_warning

NOTHING = {"targets": 0, "decoys": 0, "false_share_low": 0.0, "false_share_high": 1.0, "targets_at_5_percent": 103}


def test_count_line_shows_1_and_5_percent_when_none_is_accepted() -> None:
    assert Count.from_acceptance(0, "PSM", "PSMs", NOTHING, 0.01).line() == "  PSMs: 0 at 1 % FDR; 103 at 5 % FDR"
    assert nothing_accepted_warning(NOTHING, 0.002) == "No match is accepted: 0 at 0.2 % FDR; 103 at 5 % FDR"


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"targets_at_5_percent": 0}, "  0 PSMs, with 0 decoys: 0.0 to 100.0 % false (95 % interval)"),
        ({"targets": 40, "false_share_high": 0.1}, "  40 PSMs, with 0 decoys: 0.0 to 10.0 % false (95 % interval); few: 103 at 5 %"),
        ({"targets": 100, "false_share_high": 0.1}, "  100 PSMs, with 0 decoys: 0.0 to 10.0 % false (95 % interval)"),
    ],
)
def test_count_line_shows_interval_of_false_matches(changed: dict[str, float], line: str) -> None:
    interval = NOTHING | changed
    assert Count.from_acceptance(int(interval["targets"]), "PSM", "PSMs", interval, 0.01).line() == line
    assert nothing_accepted_warning(interval, 0.01) == ""
