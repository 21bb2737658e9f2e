// Tables of a tile for the kernel for dense mass windows. A tile consists of 32 queries with adjacent masses; a table gives the heaviest
// peak in reach of an ion by m/z. Sums of matches are exact in any order.
//
// The heaviest peak is constant between the *edges*, at which a peak comes into reach or goes out of reach. For each fine bin, a table
// contains this peak, or the first edge in the bin.
#pragma once

#include "search.cuh"

constexpr int kTile = 32;
constexpr int kFineBins = 1 << 15;       // of the table of a tile
constexpr double kClose = 1e-9;          // thomson: far above rounding
constexpr int kFirstEdge = 1 << 15;      // entries of the table from here on are edges, lower entries are peaks
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

// A peak as stored in tables: index of its packed weight in the columns of a tile, or 0 for none. The first row of weights is zero.
__device__ unsigned short entry_of(int peak, int lane) { return static_cast<unsigned short>(peak < 0 ? 0 : (peak + 1) * kTile + lane); }

// Positions at which the heaviest peak in reach changes, from `before` to `after`. Each query has two per peak. The upper half of a
// position is the index of a bin, the lower half the position in the bin.
struct __align__(8) Edge {
    Long position;
    unsigned short before, after;  // entries; `after` has the bit kMore if the next edge is in the same bin
};

__device__ Long position_of(double target, double bins_of_thomson) {
    return static_cast<Long>(static_cast<long long>(target * (bins_of_thomson * 4294967296.0)));
}

__device__ Long close_of(double bins_of_thomson) { return position_of(kClose, bins_of_thomson) + 2; }

// Arguments of a launch of kernels for tiles. kernels/cuda/scoring.py fills this struct.
struct Tiles {
    const int* first_item;    // first item of each query, followed by the number of items
    Edge* edges;              // (tiles, 2 maximum_peaks, kTile)
    unsigned short* table;    // (tiles, kFineBins, kTile), initially zero
    Word* matches;            // (tiles, coarse bins), initially zero: bit j is set if query j of the tile can have a match in the bin
    double* bins_of_thomson;  // (tiles,)
    int* bars;                // (queries,), initially zero
    double units;             // units of weight in sums
    int n_queries, maximum_peaks;
    int coarse_shift;         // a coarse bin consists of 2^coarse_shift fine bins
};
