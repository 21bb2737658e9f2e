// Residues, modifications and fragments, for all kernels.
#pragma once

#include "warp.cuh"

constexpr int kResidues = 26;
constexpr int kLongest = 64;             // maximum residues of a peptide, plus one
constexpr int kMostSeries = 3;           // maximum ion series from each end
constexpr unsigned char kNone = 255;     // no modification in a slot
constexpr double kProtonMass = 1.007276466621;
