"""Write the MS2 spectra of mzML, mzXML and MGF files as one MGF: merge_spectra.py OUT.mgf FILES...

The Python of the peers' environment runs this. The titles are ``0``, ``1``, ...; OUT.tsv has the origin of each: file, the spectrum's
name there, scan number (-1 if unknown). X!Tandem and Sage's core do not read mzXML, and one input in one format for all the peers
excludes their readers from the comparison. Pyteomics reads the files, so that the spectra do not pass through the readers of the program
under test.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyteomics import mgf, mzml, mzxml

# Identifier, scan, precursor m/z, charges, seconds, m/z array, intensity array.
Row = tuple[str, int, float, list[int], float | None, Any, Any]


def from_mgf(path: str) -> Iterator[Row]:
    """Yield every spectrum."""
    with mgf.read(path, use_index=False, convert_arrays=1) as reader:
        for spectrum in reader:
            header = spectrum["params"]
            charges = [int(charge) for charge in header.get("charge", ())]
            seconds = float(header["rtinseconds"]) if "rtinseconds" in header else None
            yield header["title"], -1, header["pepmass"][0], charges, seconds, spectrum["m/z array"], spectrum["intensity array"]


def from_mzxml(path: str) -> Iterator[Row]:
    """Yield the MS2 spectra."""
    with mzxml.read(path) as reader:
        for spectrum in reader:
            if spectrum["msLevel"] == 2:
                precursor = spectrum["precursorMz"][0]
                charges = [int(precursor["precursorCharge"])] if "precursorCharge" in precursor else []
                mz, intensity = spectrum["m/z array"], spectrum["intensity array"]
                seconds = float(spectrum["retentionTime"]) * 60
                yield spectrum["id"], int(spectrum["num"]), precursor["precursorMz"], charges, seconds, mz, intensity


def from_mzml(path: str) -> Iterator[Row]:
    """Yield the MS2 spectra."""
    with mzml.read(path) as reader:
        for spectrum in reader:
            if spectrum.get("ms level") == 2:
                ion = spectrum["precursorList"]["precursor"][0]["selectedIonList"]["selectedIon"][0]
                charges = [int(ion["charge state"])] if "charge state" in ion else []
                start = spectrum["scanList"]["scan"][0].get("scan start time")
                seconds = None
                if start is not None:
                    seconds = float(start) * (1.0 if getattr(start, "unit_info", "minute") == "second" else 60.0)
                yield spectrum["id"], -1, ion["selected ion m/z"], charges, seconds, spectrum["m/z array"], spectrum["intensity array"]


READERS = {".mgf": from_mgf, ".mzxml": from_mzxml, ".mzml": from_mzml}


def main() -> None:
    """Convert files; the MGF gets its name last, so that a partial file is never used."""
    out = Path(sys.argv[1])
    partial = out.with_suffix(".partial")
    number = 0
    with partial.open("w") as file, out.with_suffix(".tsv").open("w") as listing:
        for path in map(Path, sys.argv[2:]):
            for identifier, scan, precursor_mz, charges, seconds, mz, intensity in READERS[path.suffix.lower()](str(path)):
                file.write(f"BEGIN IONS\nTITLE={number}\nPEPMASS={precursor_mz:.8f}\n")
                if charges:
                    file.write("CHARGE=" + " and ".join(f"{charge}+" for charge in charges) + "\n")
                if seconds is not None:
                    file.write(f"RTINSECONDS={seconds:.4f}\n")
                file.writelines(f"{m:.6f} {i:.6g}\n" for m, i in zip(mz, intensity, strict=True) if i > 0)
                file.write("END IONS\n\n")
                listing.write(f"{path.name}\t{identifier}\t{scan}\n")
                number += 1
    partial.rename(out)


main()
