"""Signals with which users and systems end a program: SIGINT (Ctrl-C), SIGTERM, and SIGHUP (the terminal was closed)."""

import signal

__all__ = ["END_SIGNALS", "heeded_signals"]

END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def heeded_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that should end this process.

    If `nohup` started this program, SIGHUP is ignored, and this program continues to ignore it. Shell scripts start background programs
    that ignore SIGINT; this program handles SIGINT nevertheless, since users send it to such a program only deliberately.
    """
    return tuple(number for number in END_SIGNALS if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN)
