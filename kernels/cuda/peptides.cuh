// Residues, modifications and fragments, for all kernels.
#pragma once

#include "warp.cuh"

constexpr int kResidues = 26;
constexpr int kLongest = 64;             // residues of a peptide, and one
constexpr int kMostSeries = 3;           // of ions, from each end
constexpr unsigned char kNone = 255;     // no modification in a slot
constexpr double kProtonMass = 1.007276466621;
