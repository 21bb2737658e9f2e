"""Progress on a terminal and in a file."""

import io

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.command_line.terminal import TerminalProgress, printable
from proteoscope.engine.jobs.progress import Progress, ProgressEvent


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_progress_writes_a_line_per_stage_to_a_file():
    stream = io.StringIO()
    with TerminalProgress(stream) as terminal:
        progress = Progress(terminal.handle, interval=0)
        progress.stage("Reading", 2)
        progress.advance()
        progress.advance()
        progress.message("Two were left out")
        progress.stage("Scoring")
    assert stream.getvalue() == "Reading\nTwo were left out\nScoring\n"


def test_terminal_progress_without_stream_writes_nothing():
    with TerminalProgress(None) as terminal:
        terminal.handle(ProgressEvent("Reading", 1, 2, 0.5, "hello"))


def screen(text, width):
    """Return the final lines of a terminal of `width` columns; a carriage return goes back to the start of the line."""
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


def test_terminal_progress_redraws_and_clears_one_line(monkeypatch):
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
    # 50 steps took 10 s, and 150 remain.
    assert drawn[0].endswith("30 s left")
    assert screen(stream.getvalue(), 76) == ["One message", ""]


def test_progress_bar_stops_at_100_percent_beyond_the_total(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    TerminalProgress(stream).handle(ProgressEvent("Reading", 300, 200, 10.0))
    assert "100 %" in screen(stream.getvalue(), 100)[0]


ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202e"


def is_harmless(text):
    """True if a terminal prints every character; only line ends and carriage returns are allowed as controls."""
    return text.replace("\n", "").replace("\r", "").isprintable()


@pytest.mark.parametrize("text", ["", "plain", "Köln, µ-calpain 日本", "no-break\u00a0space", "👩‍🔬".replace("\u200d", "")])
def test_printable_returns_visible_text_unchanged(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jred", r"\x1b[2Jred"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("exe.\u202efdp", r"exe.\u202efdp"),
        ("n\udcff.mgf", r"n\udcff.mgf"),
        ("\u2028\u0085", r"\u2028\x85"),
    ],
)
def test_printable_escapes_control_characters(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_terminal_progress_escapes_control_characters(kind):
    stream = kind()
    with TerminalProgress(stream) as terminal:
        terminal.handle(ProgressEvent(f"Reading {ESCAPES}", 1, 2, 0.5))
        terminal.handle(ProgressEvent(f"Reading {ESCAPES}", 1, 2, 0.5, f"left out {ESCAPES}"))
    assert "Reading" in stream.getvalue()
    assert "left out" in stream.getvalue()
    assert is_harmless(stream.getvalue())


def test_printed_errors_escape_control_characters(tmp_path, capsys):
    name = "spectra\x1b[2J.mgf"
    (tmp_path / name).write_text("BEGIN IONS\nTITLE=x\nPEPMASS=0\nEND IONS\n")
    (tmp_path / "d.fasta").write_text(f">P1{ESCAPES}\nPEPTIDEK\n>P1{ESCAPES}\nPEPTIDER\n")
    for spectra, database in ((name, "d.fasta"), ("d.fasta", "d.fasta"), ("none\x1b[2J", "d.fasta")):
        assert main(["identify", str(tmp_path / spectra), "--database", str(tmp_path / database), "--out", str(tmp_path / "o")]) == 2
        captured = capsys.readouterr()
        assert is_harmless(captured.err + captured.out)
        assert "\\x1b" in captured.err or spectra == "d.fasta"
    assert main(["align", str(tmp_path / "none\x1b[2J"), str(tmp_path / "d.fasta"), "--out", str(tmp_path / "o.tsv")]) == 2
    assert (
        main(["align", f"--matrix=x{ESCAPES}", str(tmp_path / "d.fasta"), str(tmp_path / "d.fasta"), "--out", str(tmp_path / "o.tsv")]) == 2
    )
    assert main([f"identify{ESCAPES}"]) == 2
    assert is_harmless(capsys.readouterr().err)


def test_printed_summaries_escape_control_characters(tmp_path, capsys):
    residues = "MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK"
    (tmp_path / "d.fasta").write_text(f">P1{ESCAPES} a description {ESCAPES}\n{residues}\n")
    out = tmp_path / "hits\x1b[2J.tsv"
    assert main(["align", str(tmp_path / "d.fasta"), str(tmp_path / "d.fasta"), "--out", str(out), "--device", "cpu"]) == 0
    captured = capsys.readouterr()
    assert r"\x1b[2J" in captured.out
    assert "a description" in captured.out
    assert is_harmless(captured.out + captured.err)
    # Tables contain spaces in place of the control characters of names.
    assert "a description" in out.read_text() and "\x1b" not in out.read_text()
