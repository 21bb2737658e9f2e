"""Progress at a terminal and in a file."""

import io

from engine.command_line.terminal import TerminalProgress
from engine.jobs.progress import Progress, ProgressEvent


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_a_line_for_each_stage_and_message():
    stream = io.StringIO()
    with TerminalProgress(stream) as terminal:
        progress = Progress(terminal.handle, interval=0)
        progress.stage("Reading", 2)
        progress.advance()
        progress.advance()
        progress.message("Two were left out")
        progress.stage("Scoring")
    assert stream.getvalue() == "Reading\nTwo were left out\nScoring\n"


def test_nothing_is_shown_on_no_stream():
    with TerminalProgress(None) as terminal:
        terminal.handle(ProgressEvent("Reading", 1, 2, 0.5, "hello"))


def screen(text, width):
    """What a terminal of `width` columns shows in the end: a carriage return goes back to the line's begin."""
    lines = []
    for line in text.split("\n"):
        shown = [" "] * width
        column = 0
        for character in line:
            if character == "\r":
                column = 0
            else:
                assert column < width, "the line wraps"
                shown[column] = character
                column += 1
        lines.append("".join(shown).rstrip())
    return lines


def test_a_terminal_has_one_line_that_is_drawn_over_and_leaves_no_trace(monkeypatch):
    monkeypatch.setenv("COLUMNS", "76")
    stream = Terminal()
    with TerminalProgress(stream) as terminal:
        terminal.handle(ProgressEvent("Scoring spectra", 50, 200, 10.0))
        drawn = screen(stream.getvalue(), 76)
        terminal.handle(ProgressEvent("Scoring spectra", 60, 200, 11.0, "One message"))
        terminal.handle(ProgressEvent("Writing a table with a name that is very much longer than this terminal is wide", 0, 0, 0.0))
    assert len(drawn) == 1
    assert drawn[0].startswith("Scoring spectra")
    assert "[######                  ]  25 %" in drawn[0]
    # 50 steps took 10 s, 150 are left.
    assert drawn[0].endswith("30 s left")
    assert screen(stream.getvalue(), 76) == ["One message", ""]


def test_more_steps_than_were_announced_do_not_break_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    TerminalProgress(stream).handle(ProgressEvent("Reading", 300, 200, 10.0))
    assert "100 %" in screen(stream.getvalue(), 100)[0]
