"""Counts of classes in summaries and records."""

import json

import pytest

from proteoscope.engine.identification.report import IdentificationSummary
from proteoscope.engine.matches.class_counts import ClassCounts, class_texts

CERTAINTY = {"targets": 120, "decoys": 1, "false_share_low": 0.0002, "false_share_high": 0.05, "targets_at_5_percent": 150}
CLASSES = (
    ClassCounts("specific", "group-walk", 800, CERTAINTY),
    ClassCounts("semi-specific", "transferred", 30, CERTAINTY | {"targets": 5}),
    ClassCounts("variant", "none", 12, {}),
)


def summary_of(classes):
    certainty = dict.fromkeys(("psms", "peptides", "proteins"), CERTAINTY)
    return IdentificationSummary(
        run_id=None,
        folder=None,
        seconds=1.0,
        device="CPU",
        stages={},
        messages=(),
        n_spectra=1000,
        n_searched=900,
        n_proteins_in_database=10,
        n_peptides_in_index=100,
        n_psms=120,
        n_peptides=100,
        n_sequences=90,
        n_proteins=5,
        certainty=certainty,
        classes=classes,
    )


def test_class_texts_have_count_error_rate_and_method():
    record = json.loads(json.dumps({"classes": [counts.record() for counts in CLASSES], "parameters": {"fdr": 0.01}}))
    texts = class_texts(record)
    assert texts == [(counts.name, counts.text(0.01)) for counts in CLASSES]
    assert texts[0][1] == "120 PSMs, with 1 decoy: 0.0 to 5.0 % false (95 % interval) (group-walk)"
    assert "few: 150 at 5 %" in texts[1][1] and "transferred" in texts[1][1]
    assert texts[2][1] == "no error rate: 12 matches, fewer than 20; none is accepted"
    assert CLASSES[2].line(0.01) == f"  variant: {texts[2][1]}"


def test_class_texts_omit_empty_classes_and_empty_intervals():
    nothing = {"targets": 0, "decoys": 0, "false_share_low": 0.0, "false_share_high": 1.0, "targets_at_5_percent": 0}
    unseen = ClassCounts("non-specific", "none", 0, {}), ClassCounts("isotope error", "own decoys", 0, nothing | {"decoys": 2})
    seen = ClassCounts("variant", "transferred", 25, nothing), ClassCounts("contaminant", "none", 1, {})
    looser = ClassCounts("second pass", "transferred", 40, nothing | {"targets_at_5_percent": 7})
    classes = [CLASSES[0], *unseen, *seen, looser]
    texts = dict(class_texts({"classes": [counts.record() for counts in classes], "parameters": {"fdr": 0.01}}))
    assert texts == {
        "specific": CLASSES[0].text(0.01),
        "variant": "none of 25 matches is accepted (transferred)",
        "contaminant": "no error rate: 1 match, fewer than 20; none is accepted",
        "second pass": "PSMs: 0 at 1 % FDR; 7 at 5 % FDR (transferred)",
    }
    lines = [line.partition(":")[0].strip() for line in summary_of(tuple(classes)).lines()]
    assert [name for name in lines if name in {counts.name for counts in classes}] == list(texts)
    assert not any("by class" in line for line in summary_of(unseen).lines())


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
def test_class_texts_omit_invalid_entries(classes):
    assert class_texts({"classes": classes}) == []
    valid = {"name": "b" * 500, "method": "none", "targets_of_any_score": 1}
    assert [name for name, _ in class_texts({"classes": [*(classes if isinstance(classes, list) else []), valid]})] == ["b" * 60]
