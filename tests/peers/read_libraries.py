"""Read a library by another program and print its content: read_libraries.py matchms|mzspeclib FILE. The peers' Python runs this."""

import json
import sys


def matchms(path):
    from matchms.importing import load_from_msp

    for spectrum in load_from_msp(path, metadata_harmonization=False):
        yield (
            spectrum.metadata.get("compound_name") or spectrum.metadata.get("name"),
            spectrum.mz.tolist(),
            spectrum.intensities.tolist(),
            None,
        )


def mzspeclib(path):
    from mzspeclib import SpectrumLibrary

    for spectrum in SpectrumLibrary(filename=path):
        mz, heights = ([float(peak[at]) for peak in spectrum.peak_list] for at in (0, 1))
        (analyte,) = spectrum.analytes.values()
        # In its own text format it does not read the selected ion as a precursor.
        precursor_mz = spectrum.precursor_mz or spectrum.get_attribute("MS:1000744|selected ion m/z")
        yield str(analyte.peptide), mz, heights, float(precursor_mz)


if __name__ == "__main__":
    print(json.dumps(list(globals()[sys.argv[1]](sys.argv[2]))))
