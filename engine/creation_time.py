"""Time of creation in written files, which can be set for reproducible files."""

import os
from datetime import UTC, datetime

from proteoscope.engine.errors import ParameterError

__all__ = ["EPOCH", "creation_time"]

EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable with the seconds since 1970 that replace the present time in files; see reproducible-builds.org."""

_MAXIMUM_EPOCH = 253_402_300_799  # the end of the year 9999


def creation_time() -> datetime:
    """Return the time to write into new files as their date, in UTC.

    This is the time in the environment variable ``SOURCE_DATE_EPOCH`` if it is set, otherwise the present time.

    Raises
    ------
    ParameterError
        If the variable is not a number of seconds.
    """
    value = os.environ.get(EPOCH, "")
    if not value:
        return datetime.now(UTC)
    if not (value.isascii() and value.isdecimal() and len(value) < 13 and int(value) <= _MAXIMUM_EPOCH):
        raise ParameterError(f"the environment variable {EPOCH} is '{value:.40}'; expected seconds since 1970. Change or unset it")
    return datetime.fromtimestamp(int(value), UTC)
