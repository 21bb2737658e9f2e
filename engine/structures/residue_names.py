"""One-character codes of residue names: names in gemmi's table, and names of molecular dynamics programs.

AMBER, CHARMM, GROMACS and other programs have separate names for protonation states (HID, HSE, ASH, HISD, LYSP), disulphide bonds (CYX)
and chain ends (NALA, CLEU).
"""

from functools import lru_cache

from proteoscope.engine.sequences.matrices import SYMBOLS

__all__ = ["dynamics_parent", "residue_kind"]

_X = SYMBOLS.index("X")
_STANDARD = frozenset(
    "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split()  # noqa: SIM905
)
_STATES = {
    "ARG": ("ARN", "AR0", "ARGN", "ARGP"),
    "ASP": ("ASH", "ASPP", "ASPH", "ASPM", "ASP1", "ASP2", "AS4", "ASPN"),
    "CYS": ("CYX", "CYM", "CYN", "CYSH", "CYSX", "CYSS", "CYSM", "CYSN", "CYSD", "CYS1", "CYS2", "CYSP", "CYSZ"),
    "GLU": ("GLH", "GLUP", "GLUH", "GLUM", "GLU1", "GLU2", "GL4", "GLUN"),
    "GLN": ("GLNH",),
    "HIS": (
        "HID",
        "HIE",
        "HIP",
        "HIN",
        "HSD",
        "HSE",
        "HSP",
        "HISD",
        "HISE",
        "HISP",
        "HISH",
        "HISA",
        "HISB",
        "HISN",
        "HISM",
        "HISX",
        "HIS1",
        "HIS2",
        "HID1",
        "HIE2",
        "HSD1",
        "HSE1",
        "HSP1",
    ),
    "LYS": ("LYN", "LSN", "LYP", "LYSP", "LYSH", "LYSN", "LYSM", "LYS1", "LYS2"),
    "MET": ("METM",),
    "SER": ("SERP", "SERD"),
    "THR": ("THRP", "THRD"),
    "TYR": ("TYM", "TYRM", "TYRP", "TYRD", "TYRU"),
}
"""Names of states of standard residues in molecular dynamics programs."""
_PARENTS = {name: parent for parent, names in _STATES.items() for name in names}


@lru_cache(maxsize=4096)
def dynamics_parent(name: str) -> str:
    """Return the standard residue that a name of molecular dynamics programs means; '' for other names, including standard names.

    Examples
    --------
    >>> dynamics_parent("HSD"), dynamics_parent("NALA"), dynamics_parent("CHIE"), dynamics_parent("ALA")
    ('HIS', 'ALA', 'HIS', '')
    """
    if name in _PARENTS:
        return _PARENTS[name]
    end = name[1:]
    if len(name) == 4 and name[0] in "NC":
        return end if end in _STANDARD else _PARENTS.get(end, "")
    return ""


@lru_cache(maxsize=4096)
def residue_kind(name: str) -> tuple[int, bool, bool]:
    """Return the code of a residue, whether it is an amino acid, and whether it is a nucleotide.

    The code is that of the standard residue from which a modified residue is derived, an index in
    `proteoscope.engine.sequences.matrices.SYMBOLS`; X for unknown residues.
    """
    import gemmi  # slow to import: only structures need it

    tabulated = gemmi.find_tabulated_residue(name)
    parent = "" if tabulated.is_nucleic_acid() else dynamics_parent(name)
    if parent and (not tabulated.is_amino_acid() or tabulated.one_letter_code.upper() == "X"):
        tabulated = gemmi.find_tabulated_residue(parent)
    symbol = tabulated.one_letter_code.upper() if tabulated.is_amino_acid() else "X"
    return (SYMBOLS.index(symbol) if symbol in SYMBOLS[:26] else _X), tabulated.is_amino_acid(), tabulated.is_nucleic_acid()
