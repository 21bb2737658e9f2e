"""Print what psm_utils finds in an export: read_identifications.py FORMAT FILE. Run by the peers' Python."""

import json
import sys

from psm_utils.io import read_file


def main(format, path):
    psms = read_file(path, filetype=format)
    found = [
        (one.spectrum_id, str(one.peptidoform), one.peptidoform.precursor_charge, one.is_decoy, one.qvalue, one.score, one.protein_list)
        for one in psms
    ]
    psms.find_decoys("^DECOY_")
    print(json.dumps([(*row, one.is_decoy) for row, one in zip(found, psms, strict=True)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
