"""Writer of mzML 1.1 (HUPO-PSI; Martens et al. 2011, Mol. Cell. Proteomics 10:R110.000133) with its index.

m/z are written as float64 and intensities as float32, like the columns of spectra, and compressed with zlib: a reader gets identical
values.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.formats.registry import find_format
from proteoscope.engine.formats.spectrum_blocks import HIGHEST_CHARGE, NEGATIVE
from proteoscope.engine.formats.xml_text import attribute, attributes
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.version import VERSION

__all__ = ["INDEX_FORMAT", "NO_FORMAT", "SCAN_FORMAT", "MzmlWriter", "native_format"]

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


_NATIVE = re.compile(r"[^\s=]+=\S+(?: [^\s=]+=\S+)*")
_ETD = ("MS:1000598", "electron transfer dissociation")
_ACTIVATIONS = {
    # The general term of the vocabulary.
    Activation.UNKNOWN: (("MS:1000044", "dissociation method"),),
    Activation.CID: (("MS:1000133", "collision-induced dissociation"),),
    Activation.HCD: (("MS:1000422", "beam-type collision-induced dissociation"),),
    Activation.ETD: (_ETD,),
    Activation.ECD: (("MS:1000250", "electron capture dissociation"),),
    Activation.EAD: (("MS:1003294", "electron activated dissociation"),),
    Activation.ETCID: (_ETD, ("MS:1002679", "supplemental collision-induced dissociation")),
    Activation.ETHCD: (_ETD, ("MS:1002678", "supplemental beam-type collision-induced dissociation")),
    Activation.PQD: (("MS:1000599", "pulsed q dissociation"),),
    Activation.UVPD: (("MS:1003246", "ultraviolet photodissociation"),),
    Activation.PD: (("MS:1000435", "photodissociation"),),
    Activation.IRMPD: (("MS:1000262", "infrared multiphoton dissociation"),),
}
_CHARGE, _POSSIBLE_CHARGE = ("MS:1000041", "charge state"), ("MS:1000633", "possible charge state")


def _sha1() -> hashlib._Hash:
    """Return a new SHA-1 object, which the standard requires; it detects accidental damage only."""
    return hashlib.sha1(usedforsecurity=False)


class MzmlWriter:
    """Writer of mzML.

    Spectra retain their native identifiers if all identifiers are valid and unique. Otherwise they get new names, and the former names
    become titles. The new names are the scan numbers if all are known and unique, otherwise the positions in the new file.

    Parameters
    ----------
    spectra : Spectra
        Spectra from which rows are written.
    """

    def __init__(self, spectra: Spectra) -> None:
        self._spectra = spectra
        self._names: list[str] = []
        self._place = np.empty(0, np.int64)
        self._has_titles = False
        self._digest = _sha1()
        self._n_bytes = 0
        self._offsets: list[int] = []

    def begin(self, rows: NDArray[np.int64]) -> bytes:
        """Return the text before the first spectrum; `rows` are the indices of the spectra in the order in which they are written."""
        spectra = self._spectra
        titles, scan = [spectra.identifier[row] for row in rows.tolist()], spectra.scan[rows]
        if all(map(_NATIVE.fullmatch, titles)) and len(set(titles)) == len(titles):
            self._names, written_as = titles, native_format(titles[0]) if titles else NO_FORMAT
        elif (scan >= 0).all() and len(np.unique(scan)) == len(scan):
            self._names, written_as = list(map("scan={}".format, scan.tolist())), SCAN_FORMAT
        else:
            self._names, written_as = list(map("index={}".format, range(len(rows)))), INDEX_FORMAT
        self._has_titles = self._names is not titles
        self._place = np.zeros(len(spectra), np.int64)
        self._place[rows] = np.arange(len(rows))
        return self._counted("".join(_head(spectra.files, written_as, len(rows))).encode())

    def text(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Return the XML element of each spectrum in `rows`, (n,)."""
        return ["".join(self._spectrum(row)).encode() for row in rows.tolist()]

    def written(self, texts: list[bytes]) -> bytes:
        """Return the elements of consecutive spectra as bytes, and record their positions for the index."""
        self._offsets += (self._n_bytes + np.cumsum([0, *map(len, texts)])[:-1]).tolist()
        return self._counted(b"".join(texts))

    def end(self) -> bytes:
        """Return the text after the last spectrum: the index, and the SHA-1 of all bytes before it."""
        closing = b"</spectrumList>\n</run>\n</mzML>\n"
        start = self._n_bytes + len(closing)
        positions = zip(self._names, self._offsets, strict=True)
        index = "".join(f'<offset idRef="{attribute(name)}">{offset}</offset>\n' for name, offset in positions)
        before = (
            f'<indexList count="1">\n<index name="spectrum">\n{index}</index>\n</indexList>\n'
            f"<indexListOffset>{start}</indexListOffset>\n<fileChecksum>"
        )
        text = self._counted(closing + before.encode())
        return text + f"{self._digest.hexdigest()}</fileChecksum>\n</indexedmzML>\n".encode()

    def _counted(self, text: bytes) -> bytes:
        self._digest.update(text)
        self._n_bytes += len(text)
        return text

    def _spectrum(self, row: SpectrumRow) -> Iterator[str]:
        spectra, position = self._spectra, int(self._place[row])
        mz, intensity = spectra.peaks(row)
        bits, time, height = int(spectra.charge_mask[row]), float(spectra.retention_time[row]), float(spectra.precursor_intensity[row])
        charges = [charge for charge in range(1, HIGHEST_CHARGE + 1) if bits >> charge & 1]
        source = f"SF{spectra.file[row] + 1}" if len(spectra.files) > 1 else None
        yield f"<spectrum{attributes(index=position, id=self._names[position], defaultArrayLength=len(mz), sourceFileRef=source)}>\n"
        yield _term("MS:1000580", "MSn spectrum") + _term("MS:1000511", "ms level", 2) + _term("MS:1000127", "centroid spectrum")
        yield _term("MS:1000129", "negative scan") if bits & NEGATIVE else _term("MS:1000130", "positive scan")
        if self._has_titles:
            yield _term("MS:1000796", "spectrum title", spectra.identifier[row])
        yield f'<scanList count="1">\n{_term("MS:1000795", "no combination")}<scan>\n'
        if time == time:
            yield _term("MS:1000016", "scan start time", time / 60.0, ("UO", "UO:0000031", "minute"))
        yield '</scan>\n</scanList>\n<precursorList count="1">\n<precursor>\n<selectedIonList count="1">\n<selectedIon>\n'
        yield _term("MS:1000744", "selected ion m/z", float(spectra.precursor_mz[row]), ("MS", "MS:1000040", "m/z"))
        if height > 0:
            yield _term("MS:1000042", "peak intensity", height, ("MS", "MS:1000131", "number of detector counts"))
        for charge in charges:
            yield _term(*(_CHARGE if len(charges) == 1 else _POSSIBLE_CHARGE), charge)
        activation = "".join(_term(*term) for term in _ACTIVATIONS[Activation(spectra.activation[row])])
        yield f"</selectedIon>\n</selectedIonList>\n<activation>\n{activation}</activation>\n</precursor>\n"
        yield '</precursorList>\n<binaryDataArrayList count="2">\n'
        yield _array(mz, "<f8", ("MS:1000523", "64-bit float"), _term("MS:1000514", "m/z array", "", ("MS", "MS:1000040", "m/z")))
        unit = ("MS", "MS:1000131", "number of detector counts")
        yield _array(intensity, "<f4", ("MS:1000521", "32-bit float"), _term("MS:1000515", "intensity array", "", unit))
        yield "</binaryDataArrayList>\n</spectrum>\n"


def _head(files: tuple[str, ...], written_as: tuple[str, str], n_spectra: int) -> Iterator[str]:
    yield (
        '<?xml version="1.0" encoding="utf-8"?>\n<indexedmzML xmlns="http://psi.hupo.org/ms/mzml" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:schemaLocation="http://psi.hupo.org/ms/mzml http://psidev.info/files/ms/mzML/xsd/mzML1.1.2_idx.xsd">\n'
        '<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">\n<cvList count="2">\n'
        '<cv id="MS" fullName="PSI-MS" URI="https://raw.githubusercontent.com/HUPO-PSI/psi-ms-CV/master/psi-ms.obo"/>\n'
        '<cv id="UO" fullName="Unit Ontology" URI="http://purl.obolibrary.org/obo/uo.obo"/>\n</cvList>\n'
    )
    contents = _term("MS:1000580", "MSn spectrum") + _term("MS:1000127", "centroid spectrum")
    yield f"<fileDescription>\n<fileContent>\n{contents}</fileContent>\n"
    yield f'<sourceFileList count="{len(files)}">\n'
    for number, (file, shared) in enumerate(zip(files, distinct_names(files), strict=True), 1):
        path, folder = Path(file), quote(PurePosixPath(shared).parent.as_posix())
        yield f"<sourceFile{attributes(id=f'SF{number}', name=path.name, location=folder)}>\n{_term(*written_as)}"
        source_format = find_format(path.name)
        if source_format is not None and source_format.term is not None:
            yield _term(*source_format.term)
        if path.is_file():
            with path.open("rb") as source:
                yield _term("MS:1000569", "SHA-1", hashlib.file_digest(source, _sha1).hexdigest())
        yield "</sourceFile>\n"
    yield "</sourceFileList>\n</fileDescription>\n"
    tool = _term("MS:1000799", "custom unreleased software tool", "Proteoscope")
    yield f'<softwareList count="1">\n<software{attributes(id="proteoscope", version=VERSION)}>\n{tool}</software>\n</softwareList>\n'
    yield '<instrumentConfigurationList count="1">\n<instrumentConfiguration id="IC1">\n'
    yield f"{_term('MS:1000031', 'instrument model')}</instrumentConfiguration>\n</instrumentConfigurationList>\n"
    yield '<dataProcessingList count="1">\n<dataProcessing id="DP1">\n<processingMethod order="0" softwareRef="proteoscope">\n'
    yield f"{_term('MS:1000544', 'Conversion to mzML')}</processingMethod>\n</dataProcessing>\n</dataProcessingList>\n"
    yield '<run id="run" defaultInstrumentConfigurationRef="IC1" defaultSourceFileRef="SF1">\n'
    yield f'<spectrumList count="{n_spectra}" defaultDataProcessingRef="DP1">\n'


def _term(accession: str, name: str, value: object = "", unit: tuple[str, str, str] | None = None) -> str:
    """Return the XML element of a term in a vocabulary; `unit` contains vocabulary, accession and name of the unit of the value."""
    measured = "" if unit is None else f' unitCvRef="{unit[0]}" unitAccession="{unit[1]}" unitName="{unit[2]}"'
    return f'<cvParam cvRef="MS" accession="{accession}" name="{name}" value="{attribute(str(value))}"{measured}/>\n'


def _array(values: NDArray[np.floating], dtype: str, kind: tuple[str, str], content: str) -> str:
    text = base64.b64encode(zlib.compress(values.astype(dtype).tobytes())).decode("ascii")
    return (
        f'<binaryDataArray encodedLength="{len(text)}">\n{_term(*kind)}{_term("MS:1000574", "zlib compression")}{content}'
        f"<binary>{text}</binary>\n</binaryDataArray>\n"
    )
