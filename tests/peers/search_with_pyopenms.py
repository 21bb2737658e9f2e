"""A search by OpenMS's simple search engine, in the peers' own Python: its matches as idXML, mzIdentML and mzTab, and as JSON.

python search_with_pyopenms.py SPECTRA.mzML PROTEINS.fasta FOLDER
"""

import json
import sys
from pathlib import Path

import pyopenms as oms


def main(spectra: str, database: str, folder: str) -> None:
    peptides = oms.PeptideIdentificationList()
    engine = oms.SimpleSearchEngineAlgorithm()
    parameters = engine.getDefaults()
    parameters.setValue("decoys", "true")
    parameters.setValue("precursor:mass_tolerance", 10.0)
    parameters.setValue("fragment:mass_tolerance", 20.0)
    parameters.setValue("fragment:mass_tolerance_unit", "ppm")
    engine.setParameters(parameters)
    output = engine.search(spectra, database, peptides)
    proteins = next(part for part in output if isinstance(part, list))
    oms.FalseDiscoveryRate().apply(peptides)
    result = []
    for peptide in peptides:
        for hit in peptide.getHits():
            sequence = hit.getSequence()
            placed = [
                [i + 1, sequence.getResidue(i).getModificationName()] for i in range(sequence.size()) if sequence.getResidue(i).isModified()
            ]
            if sequence.hasNTerminalModification():
                placed.insert(0, [0, sequence.getNTerminalModificationName()])
            result.append(
                {
                    "spectrum": peptide.getSpectrumReference(),
                    "charge": hit.getCharge(),
                    "sequence": sequence.toUnmodifiedString(),
                    "modifications": placed,
                    "q_value": hit.getScore(),
                    "kind": str(hit.getMetaValue("target_decoy")),
                }
            )
    out = Path(folder)
    oms.IdXMLFile().store(str(out / "openms.idXML"), proteins, peptides)
    oms.MzIdentMLFile().store(str(out / "openms.mzid"), proteins, peptides)
    oms.MzTabFile().store(str(out / "openms.mzTab"), proteins, peptides, False, False, True)
    (out / "openms.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
