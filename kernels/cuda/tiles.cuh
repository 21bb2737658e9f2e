// Tables of a tile for the kernel for dense mass windows: 32 queries that are neighbours in mass: the heaviest peak in reach as a function
// of an ion's m/z, and sums of matches that are exact in any order.
//
// The function is constant between the *edges*: where a peak comes within reach, or leaves it. A table over fine bins names that peak, or
// the first edge in the bin.
#pragma once

#include "search.cuh"

constexpr int kTile = 32;
constexpr int kFineBins = 1 << 15;       // of the table of a tile
constexpr double kClose = 1e-9;          // thomson: far above rounding
constexpr int kFirstEdge = 1 << 15;      // entries of the table from there on: an edge, else a peak
constexpr unsigned short kMore = 1 << 15;

// Sums of an arrangement in one word: in the low bits, the dot product in units of 1 / `units`, in which every weight is an integer; then
// 8 bits for the number of matched N-terminal ions and 8 bits for matched C-terminal ions. The launcher ensures that nothing overflows. For
// such weights, the CPU's sums of doubles are exact too.
constexpr int kDotBits = 48, kCountBits = 8;

__device__ Long packed(float weight, double units) { return static_cast<Long>(weight * units) + (1ull << kDotBits); }

// Convert a sum over C-terminal ions that were counted as if they were N-terminal.
__device__ Long as_c_terminal(Long sum) {
    const Word high = static_cast<Word>(sum >> 32);
    return static_cast<Long>(__byte_perm(high, 0, 0x2410)) << 32 | static_cast<Word>(sum);
}

// A peak as tables name it: where its packed weight lies in the columns of a tile, or 0 for none. The first row of weights is zero.
__device__ unsigned short entry_of(int peak, int lane) { return static_cast<unsigned short>(peak < 0 ? 0 : (peak + 1) * kTile + lane); }

// Positions at which the heaviest peak in reach changes: from `before` to `after`. Each query has two for each peak. A position is the
// number of a bin in the upper half of the word, and the place in the bin in the lower.
struct __align__(8) Edge {
    Long position;
    unsigned short before, after;  // entries; `after` has kMore where the next edge touches a bin of this one
};

__device__ Long position_of(double target, double bins_of_thomson) {
    return static_cast<Long>(static_cast<long long>(target * (bins_of_thomson * 4294967296.0)));
}

__device__ Long close_of(double bins_of_thomson) { return position_of(kClose, bins_of_thomson) + 2; }

// Arguments of a launch of kernels for tiles. kernels/cuda/scoring.py writes it.
struct Tiles {
    const int* first_item;    // of each query, and one beyond
    Edge* edges;              // (tiles, 2 maximum_peaks, kTile)
    unsigned short* table;    // (tiles, kFineBins, kTile), zero at the start
    double* bins_of_thomson;  // (tiles,)
    int* bars;                // (queries,), zero at the start
    double units;             // in which weights are summed
    int n_queries, maximum_peaks;
};
