"""Signals by which users and systems end a program in order: Ctrl-C, a request to end, and a terminal that is closed."""

import signal

__all__ = ["END_SIGNALS", "heeded_signals"]

END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def heeded_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that are to end this process.

    `nohup` starts programs with SIGHUP ignored, which remains. Shell scripts start background programs with SIGINT
    ignored; if it is sent nevertheless, it is meant.
    """
    return tuple(number for number in END_SIGNALS if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN)
