"""Row of the table of an experiment."""

from typing import NamedTuple

__all__ = ["ExperimentRow"]


class ExperimentRow(NamedTuple):
    """Run of an experiment, or one label channel of it.

    Attributes
    ----------
    run : str
        Name of the run in the project; '' until it has one.
    file : str
        Absolute path of the spectrum file.
    sample, condition : str
        Names of the sample and its condition; the condition may be ''.
    fraction, replicate : int
        Numbers of the fraction and the replicate, from 1.
    label : str
        Channel of an isobaric label; '' without labels.
    sha256 : str
        SHA-256 of the file in hexadecimal; '' until it is known.
    """

    run: str
    file: str
    sample: str
    condition: str = ""
    fraction: int = 1
    replicate: int = 1
    label: str = ""
    sha256: str = ""
