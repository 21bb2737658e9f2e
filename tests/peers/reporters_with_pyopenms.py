"""Reporter ions by OpenMS, in the peers' own Python: measured and corrected intensities of the channels of each spectrum, as JSON.

python reporters_with_pyopenms.py SPECTRA.mzML tmt-10|itraq-4 TOLERANCE OUT.json
"""

import json
import sys
from pathlib import Path

import pyopenms as oms


def main(spectra: str, label: str, tolerance: str, out: str) -> None:
    run, method = oms.MSExperiment(), {"tmt-10": oms.TMTTenPlexQuantitationMethod, "itraq-4": oms.ItraqFourPlexQuantitationMethod}[label]()
    oms.MzMLFile().load(spectra, run)
    extractor, quantities, corrected = oms.IsobaricChannelExtractor(method), oms.ConsensusMap(), oms.ConsensusMap()
    parameters = extractor.getParameters()
    parameters.setValue("reporter_mass_shift", float(tolerance))
    extractor.setParameters(parameters)
    extractor.extractChannels(run, quantities)
    rows = [
        [feature.getIntensity() for feature in sorted(each.getFeatureList(), key=lambda feature: feature.getMapIndex())]
        for each in quantities
    ]
    oms.IsobaricQuantifier(method).quantify(quantities, corrected)
    clean = [
        [feature.getIntensity() for feature in sorted(each.getFeatureList(), key=lambda feature: feature.getMapIndex())]
        for each in corrected
    ]
    matrix = [text.split("/") for text in method.getParameters().getValue("correction_matrix")]
    Path(out).write_text(
        json.dumps({"measured": rows, "corrected": clean, "times": [each.getRT() for each in quantities], "percents": matrix})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
