"""Native identifiers of spectra in mzML and mzIdentML: patterns of the vendors, with their terms in the PSI-MS vocabulary."""

import re

__all__ = ["INDEX_FORMAT", "NO_FORMAT", "SCAN_FORMAT", "native_format"]

INDEX_FORMAT = ("MS:1000774", "multiple peak list nativeID format")
SCAN_FORMAT = ("MS:1000776", "scan number only nativeID format")
NO_FORMAT = ("MS:1000824", "no nativeID format")
_NATIVE_FORMATS = (
    (r"controllerType=\d+ controllerNumber=\d+ scan=\d+", ("MS:1000768", "Thermo nativeID format")),
    (r"function=\d+ process=\d+ scan=\d+", ("MS:1000769", "Waters nativeID format")),
    (r"sample=\d+ period=\d+ cycle=\d+ experiment=\d+", ("MS:1000770", "WIFF nativeID format")),
    (r"frame=\d+ scan=\d+", ("MS:1002818", "Bruker TDF nativeID format")),
    (r"scanId=\d+", ("MS:1001508", "Agilent MassHunter nativeID format")),
    (r"scan=\d+", SCAN_FORMAT),
    (r"spectrum=\d+", ("MS:1000777", "spectrum identifier nativeID format")),
    (r"index=\d+", INDEX_FORMAT),
)


def native_format(identifier: str) -> tuple[str, str]:
    """Return the accession and name of the PSI-MS term for the pattern of a native identifier.

    Examples
    --------
    >>> native_format("controllerType=0 controllerNumber=1 scan=12")
    ('MS:1000768', 'Thermo nativeID format')
    """
    return next((term for pattern, term in _NATIVE_FORMATS if re.search(pattern, identifier)), NO_FORMAT)
