"""Spectra of known peptides, simulated from masses computed by pyteomics."""

import gzip

import numpy as np
from pyteomics import mass

__all__ = ["N_PROTEINS", "PROTON", "Simulation", "proteins_of"]

PROTON = mass.nist_mass["H+"][0][0]
N_PROTEINS = 300


def proteins_of(path):
    with gzip.open(path, "rt") as file:
        entries = file.read().split(">")[1 : N_PROTEINS + 1]
    return {entry.split(None, 1)[0]: "".join(entry.split("\n")[1:]).rstrip("*") for entry in entries}


class Simulation:
    """Simulated spectra of known peptides, as MGF."""

    def __init__(self, seed, precursor_error, fragment_error, *, relative=True):
        self.random = np.random.default_rng(seed)
        self.precursor_error, self.fragment_error, self.relative = precursor_error, fragment_error, relative
        self.known, self.entries = {}, []

    def erring(self, mz, error):
        spread = mz * error * 1e-6 if self.relative else error
        return mz + self.random.uniform(-spread, spread)

    def add(self, sequence, charge, shifts=None, *, write_charge=True):
        """Add a spectrum of a peptide; `shifts` are in dalton by position 1..L, 0 for the N-terminus."""
        shifts = shifts or {}
        residues = np.array([mass.std_aa_mass[residue] + shifts.get(i + 1, 0.0) for i, residue in enumerate(sequence)])
        residues[0] += shifts.get(0, 0.0)
        prefix = np.cumsum(residues)
        water = mass.calculate_mass(formula="H2O")
        ions = np.concatenate((prefix[:-1] + PROTON, prefix[-1] - prefix[:-1] + water + PROTON))
        if charge > 2:
            ions = np.concatenate((ions, (ions + PROTON) / 2))
        shown = ions[self.random.random(len(ions)) < 0.67]
        self._write(f"known {len(self.entries)}", prefix[-1] + water, charge, shown, 0.3, write_charge)
        self.known[f"known {len(self.entries) - 1}"] = sequence

    def add_noise(self, neutral_mass, charge, *, write_charge=True):
        self._write(f"noise {len(self.entries)}", neutral_mass, charge, np.empty(0), 1.0, write_charge)

    def _write(self, title, neutral_mass, charge, ions, noise_level, write_charge):
        precursor = self.erring(neutral_mass, self.precursor_error) / charge + PROTON
        noise = self.random.uniform(100, max(neutral_mass, 300), 25)
        mz = np.concatenate((self.erring(ions, self.fragment_error), noise))
        height = np.concatenate((self.random.lognormal(3, 0.7, len(ions)), noise_level * self.random.lognormal(3, 0.7, len(noise))))
        order = np.argsort(mz)
        peaks = "".join(f"{mz[i]:.5f} {height[i]:.2f}\n" for i in order)
        charge_line = f"CHARGE={charge}+\n" if write_charge else ""
        self.entries.append(f"BEGIN IONS\nTITLE={title}\nPEPMASS={precursor:.6f}\n{charge_line}{peaks}END IONS\n")

    def write(self, path):
        path.write_text("\n".join(self.entries))
        return path
