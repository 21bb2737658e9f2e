"""Entry point of the command ``proteoscope``: the window or the command line."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from proteoscope import gui
from proteoscope.engine import command_line, execution

_USE_COMMAND_LINE = "The command line works without a window: proteoscope --help"


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window or run the command line, and return the exit code.

    No argument, a project folder or ``open FILE...`` opens the window; other arguments are passed to the command line. If a window cannot
    be opened, one line on standard error gives the reason and the remedy, and the exit code is 2.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    is_project = len(arguments) == 1 and (Path(arguments[0]) / "project.sqlite").is_file()
    if arguments and not is_project and arguments[0] != "open":
        if argv is None:
            execution.libraries.lighten_libraries()  # before the dataclasses of the command line are defined
        return command_line.main.main(None if argv is None else arguments)

    if wrong := command_line.system_limits.settings_error():
        print(f"proteoscope: {wrong}", file=sys.stderr)
        return 2
    execution.libraries.lighten_libraries()
    execution.heap.limit_retained_memory()
    reason = no_window_reason()
    if reason:
        print(f"proteoscope: {reason}. {_USE_COMMAND_LINE}", file=sys.stderr)
        return 2

    return gui.application.run_window([Path(argument) for argument in (arguments if is_project else arguments[1:])])


def no_window_reason() -> str:
    """Return the reason why no window can be opened, with the remedy, without a full stop; '' if a window can be opened.

    Qt aborts the process if it finds no display or a library is missing; therefore this is checked before Qt starts.
    """
    if not find_spec("PySide6"):
        return "the window is not installed; it is optional: in the folder of the source, pip install -e '.[gui]'"
    has_x, has_wayland = bool(os.environ.get("DISPLAY")), bool(os.environ.get("WAYLAND_DISPLAY"))
    platform = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    needs_display = sys.platform.startswith("linux") and platform in ("", "xcb", "wayland", "wayland-egl")
    if needs_display and not (has_x or has_wayland):
        return "no display is available (neither DISPLAY nor WAYLAND_DISPLAY is set); log in to a desktop, or use ssh -X"
    try:
        import PySide6  # only the window needs it, and it may be missing
        import PySide6.QtSvg  # only the window needs it, and it may be missing
        import PySide6.QtWidgets  # only the window needs it, and it may be missing
    except ImportError as error:
        return (
            f"the window's libraries cannot be loaded ({error}); on Debian and Ubuntu, sudo apt install libegl1 libgl1 libxkbcommon0 "
            "libfontconfig1 libdbus-1-3"
        )
    if needs_display and has_x and not has_wayland:
        return _no_x_window_reason(Path(PySide6.__file__).parent / "Qt" / "plugins" / "platforms" / "libqxcb.so")
    return ""


def _no_x_window_reason(plugin: Path) -> str:
    import ctypes  # only this system call needs it

    if plugin.exists():
        try:
            ctypes.CDLL(str(plugin))
        except OSError as error:
            return (
                f"Qt cannot open windows here ({str(error).split(':')[0]} is missing); on Debian and Ubuntu, sudo apt install "
                "libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 "
                "libxcb-xkb1 libxkbcommon-x11-0"
            )
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        # Qt then uses a copy of the library from another folder and reports its own errors.
        return ""
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    refused = xcb.xcb_connection_has_error(connection) != 0
    xcb.xcb_disconnect(connection)
    if refused:
        return f"the display {os.environ['DISPLAY']} cannot be opened; check DISPLAY, and xauth for a display of another user or machine"
    return ""
