"""Turns Unimod's table export into `unimod.json.gz`, which the program reads.

    python resources/modifications/build_unimod.py unimod_tables.xml[.gz]

The export is https://www.unimod.org/xml/unimod_tables.xml; the package `psims` carries a copy. Nothing is fetched here, and the same
input gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

from lxml import etree

OUTPUT = Path(__file__).with_name("unimod.json.gz")
NAMESPACE = "{http://www.unimod.org/xmlns/schema/unimod_tables_1}"


def table(root: etree._Element, name: str) -> list[dict[str, str]]:
    """Rows of one table of the export, as attributes."""
    return [dict(row.attrib) for row in root.iter(f"{NAMESPACE}{name}_row")]


def convert(xml: bytes) -> dict[str, object]:
    """The catalogue as plain data: see `proteoscope.engine.chemistry.modifications` for what each column means."""
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    classifications = {row["record_id"]: row["classification"] for row in table(root, "classifications")}
    positions = {row["record_id"]: row["position"] for row in table(root, "positions")}
    losses = defaultdict(set)
    for row in table(root, "spec2nl"):
        # Unimod writes "may also stay whole" as a loss of nothing.
        if float(row["nl_mono_mass"]) != 0:
            losses[row["spec_key"]].add(float(row["nl_mono_mass"]))
    sites = defaultdict(list)
    class_names = sorted(set(classifications.values()))
    for row in sorted(table(root, "specificity"), key=lambda row: (row["hidden"], int(row["spec_group"]), row["one_letter"])):
        residue, position = row["one_letter"], positions[row["position_key"]]
        if residue in ("N-term", "C-term"):
            # A few entries say "anywhere" of a terminus; it can only be any peptide's.
            residue, position = "", f"Any {residue}" if position == "Anywhere" else position
        classification = class_names.index(classifications[row["classifications_key"]])
        site_losses = sorted(losses[row["record_id"]])
        sites[row["mod_key"]].append([residue, position, classification, int(row["hidden"]), site_losses])
    alternative_names = defaultdict(list)
    for row in sorted(table(root, "alt_names"), key=lambda row: int(row["record_id"])):
        alternative_names[row["mod_key"]].append(row["alt_name"])
    entries = []
    modifications = sorted(table(root, "modifications"), key=lambda row: int(row["record_id"]))
    for row in modifications:
        # The PSI-MS name where there is one, else Unimod's interim name: what unimod.xml calls the title.
        title = row["ex_code_name"] or row["code_name"]
        names = [row["code_name"]] if row["code_name"] not in ("", title) else []
        entries.append(
            [
                int(row["record_id"]),
                title,
                row["full_name"],
                float(row["mono_mass"]),
                float(row["avge_mass"]),
                row["composition"].strip(),
                names + alternative_names[row["record_id"]],
                int(row["approved"]),
                sites[row["record_id"]],
            ]
        )
    return {
        "source": "https://www.unimod.org/xml/unimod_tables.xml",
        "modified": max(row["date_time_modified"] for row in modifications),
        "classifications": class_names,
        "entries": entries,
    }


def main() -> None:
    """Read the XML that the command line names and write the catalogue into the folder of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("xml", type=Path, help="unimod_tables.xml, or the same with gzip")
    path = parser.parse_args().xml
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    catalogue = convert(content)
    packed = gzip.compress(json.dumps(catalogue, ensure_ascii=False, separators=(",", ":")).encode(), mtime=0)
    temporary = OUTPUT.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        stream.write(packed)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(OUTPUT)
    print(f"{len(catalogue['entries'])} entries, last changed {catalogue['modified']}, {len(packed)} bytes: {OUTPUT}")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
