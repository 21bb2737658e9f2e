"""Counts of classes in summaries and records."""

import json

import pytest

from proteoscope.engine.matches.class_counts import ClassCounts, class_texts

CERTAINTY = {"targets": 120, "decoys": 1, "false_share_low": 0.0002, "false_share_high": 0.05, "targets_at_5_percent": 150}
CLASSES = (
    ClassCounts("specific", "group-walk", 800, CERTAINTY),
    ClassCounts("semi-specific", "transferred", 30, CERTAINTY | {"targets": 5}),
    ClassCounts("variant", "none", 12, {}),
)


def test_class_texts_name_the_number_the_rate_and_the_method():
    record = json.loads(json.dumps({"classes": [counts.record() for counts in CLASSES], "parameters": {"fdr": 0.01}}))
    texts = class_texts(record)
    assert texts == [(counts.name, counts.text(0.01)) for counts in CLASSES]
    assert texts[0][1] == "120 PSMs, with 1 decoy: 0.0 to 5.0 % false (95 % interval) (group-walk)"
    assert "few: 150 at 5 %" in texts[1][1] and "transferred" in texts[1][1]
    assert texts[2][1] == "no error rate: 12 matches, fewer than 20; none is accepted"
    assert CLASSES[2].line(0.01) == f"  variant: {texts[2][1]}"


@pytest.mark.parametrize(
    "classes",
    [
        None,
        7,
        "x",
        [1],
        [{}],
        [{"name": 3, "method": "none", "targets_of_any_score": 1}],
        [{"name": "a", "method": "?", "targets_of_any_score": 1}],
        [{"name": "a", "method": "none", "targets_of_any_score": "1"}],
        [{"name": "a", "method": "none", "targets_of_any_score": 1, "targets": 3}],
    ],
)
def test_class_texts_leave_out_invalid_entries(classes):
    assert class_texts({"classes": classes}) == []
    valid = {"name": "b" * 500, "method": "none", "targets_of_any_score": 1}
    assert [name for name, _ in class_texts({"classes": [*(classes if isinstance(classes, list) else []), valid]})] == ["b" * 60]
