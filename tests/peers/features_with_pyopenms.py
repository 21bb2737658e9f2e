"""Areas of identified peptides by OpenMS's FeatureFinderIdentification, in the peers' own Python, as JSON.

    python features_with_pyopenms.py SPECTRA.mzML IDENTIFIED.json OUT.json

IDENTIFIED holds a list of spectra: peptide (in OpenMS's notation), charge, mz, time in seconds. OUT has peptide, charge, area and time of
each feature, the area by the model of its shape; OpenMS skips features without a valid model.
"""

import json
import sys
from pathlib import Path

import pyopenms as oms


def main(spectra: str, identified: str, out: str, model: str = "symmetric") -> None:
    run, finder = oms.MSExperiment(), oms.FeatureFinderIdentificationAlgorithm()
    options = oms.PeakFileOptions()
    options.setMSLevels([1])
    file = oms.MzMLFile()
    file.setOptions(options)
    file.load(spectra, run)
    run.sortSpectra()
    protein = oms.ProteinIdentification()
    protein.setIdentifier("given")
    peptides = oms.PeptideIdentificationList()
    for row in json.loads(Path(identified).read_text()):
        hit, peptide = oms.PeptideHit(), oms.PeptideIdentification()
        hit.setSequence(oms.AASequence.fromString(row["peptide"]))
        hit.setCharge(row["charge"])
        hit.setScore(0.001)
        peptide.setIdentifier("given")
        peptide.setScoreType("q-value")
        peptide.setHigherScoreBetter(False)
        peptide.setRT(row["time"])
        peptide.setMZ(row["mz"])
        peptide.setHits([hit])
        peptides.push_back(peptide)
    parameters = finder.getParameters()
    parameters.setValue("model:type", model)
    finder.setParameters(parameters)
    finder.setMSData(run)
    features = oms.FeatureMap()
    finder.run(peptides, [protein], features)
    rows = []
    for feature in features:
        hits = [hit for peptide in feature.getPeptideIdentifications() for hit in peptide.getHits()]
        name = hits[0].getSequence().toString() if hits else str(feature.getMetaValue("PeptideRef")).split("/")[0]
        rows.append({"peptide": name, "charge": feature.getCharge(), "area": feature.getIntensity(), "time": feature.getRT()})
    Path(out).write_text(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
