"""Print the content of an export as psm_utils reads it: read_identifications.py FORMAT FILE. The peers' Python runs this."""

import json
import sys

from psm_utils.io import read_file


def main(format, path):
    psms = read_file(path, filetype=format)
    rows = [
        (psm.spectrum_id, str(psm.peptidoform), psm.peptidoform.precursor_charge, psm.is_decoy, psm.qvalue, psm.score, psm.protein_list)
        for psm in psms
    ]
    psms.find_decoys("^DECOY_")
    print(json.dumps([(*row, psm.is_decoy) for row, psm in zip(rows, psms, strict=True)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
