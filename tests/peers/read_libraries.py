"""Read a library by another program, and print what it finds: read_libraries.py matchms|mzspeclib FILE. Run by the peers' Python."""

import json
import sys


def matchms(path):
    from matchms.importing import load_from_msp

    for one in load_from_msp(path, metadata_harmonization=False):
        yield one.metadata.get("compound_name") or one.metadata.get("name"), one.mz.tolist(), one.intensities.tolist(), None


def mzspeclib(path):
    from mzspeclib import SpectrumLibrary

    for one in SpectrumLibrary(filename=path):
        mz, heights = ([float(peak[at]) for peak in one.peak_list] for at in (0, 1))
        (analyte,) = one.analytes.values()
        # Of its own text it takes the selected ion for no precursor.
        precursor_mz = one.precursor_mz or one.get_attribute("MS:1000744|selected ion m/z")
        yield str(analyte.peptide), mz, heights, float(precursor_mz)


if __name__ == "__main__":
    print(json.dumps(list(globals()[sys.argv[1]](sys.argv[2]))))
