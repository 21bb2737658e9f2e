"""A cancelled export leaves an existing file unchanged and no partial file."""

import pytest

from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.matches.writers.tables import IdentificationTables
from tests.engine.identification_tables import identification, many_psms
from tests.engine.matches.exported import FORMATS, OF_GENOMES, export


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in OF_GENOMES])
def test_cancelled_export_leaves_existing_file_unchanged(tmp_path, format):
    small = identification()
    tables = IdentificationTables(many_psms(small, 20_000), small.peptides, small.proteins)
    out = tmp_path if format == "tsv" else tmp_path / "file"
    old = tmp_path / ("psms.tsv" if format == "tsv" else "file")
    old.write_text("old")
    events: list[ProgressEvent] = []

    def cancel_when_some_rows_are_done(event: ProgressEvent) -> None:
        events.append(event)
        if event.done:
            progress.cancel()

    progress = Progress(cancel_when_some_rows_are_done, interval=0.0)
    with pytest.raises(Cancelled):
        export(tables, format, out, small.parameters, progress)
    assert events[0].total == 20_000
    assert 0 < events[-1].done < 20_000
    assert [path.name for path in tmp_path.iterdir()] == [old.name]
    assert old.read_text() == "old"


@pytest.mark.parametrize("format", FORMATS)
def test_export_progress_ends_at_its_total(tmp_path, format):
    small = identification()
    events: list[ProgressEvent] = []
    export(small.write(tmp_path, is_translated=format in OF_GENOMES), format, tmp_path / "out", small.parameters, Progress(events.append))
    last = {event.stage: event for event in events}
    assert all(event.done == event.total > 0 for event in last.values())
