// Fragments of both chains of a pair, superposed in batches and ranked by a table of nearest residues (kernels/cpu/nearest_residues.py),
// and the selection of different superpositions, bit-identical to the functions of the same names in kernels/cpu/superposition.py.

#pragma once

#include "pair_superposition.cuh"

// Return the rank of the k-th of n numbers: the number of larger ones, plus the number of equal ones before it.
__device__ int rank_of(const double* values, int n, int k) {
    const double own = values[k];
    int rank = 0;
    for (int other = 0; other < n; ++other) rank += values[other] > own || (values[other] == own && other < k);
    return rank;
}

// Short (0) or long (1) fragments of both chains: their length, the distance between their starts, and how many there are.
struct Fragments {
    int length, jump, n_y, n;
};

__device__ Fragments fragments_of(int kind, int m, int n) {
    const int longer = m / 2 > 30 ? m / 2 : 30, wanted = kind == 0 ? 20 : longer, length = m < wanted ? m : wanted;
    int jump = length / 3 > 5 ? length / 3 : 5;
    int places_x = (m - length) / jump + 1, places_y = (n - length) / jump + 1;
    while (places_x * places_y > kMaximumFragments) {
        jump += jump / 2;
        places_x = (m - length) / jump + 1, places_y = (n - length) / jump + 1;
    }
    return Fragments{length, jump, places_y, places_x * places_y};
}

// Write the table of the residues of y that are nearest to the cells of a lattice (see kernels/cpu/nearest_residues.py). The block
// synchronises before and after.
__device__ void find_nearest(Block& block) {
    Shared& shared = block.shared;
    const int lane = threadIdx.x & 31, n = block.n;
    __syncthreads();
    for (int axis = threadIdx.x / 32; axis < 3; axis += kWarps) {
        double low = block.y(axis, 0), high = low;
        for (int j = lane; j < n; j += 32) {
            const double value = block.y(axis, j);
            low = value < low ? value : low, high = value > high ? value : high;
        }
        for (int distance = 16; distance > 0; distance >>= 1) {
            const double other_low = __shfl_xor_sync(kEveryLane, low, distance), other_high = __shfl_xor_sync(kEveryLane, high, distance);
            low = other_low < low ? other_low : low, high = other_high > high ? other_high : high;
        }
        if (lane == 0) shared.low[axis] = low - kReach, shared.high[axis] = high + kReach;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double cell = kCell;
        while (true) {
            double n_cells = 1.0;
            for (int axis = 0; axis < 3; ++axis) n_cells *= floor((shared.high[axis] - shared.low[axis]) / cell) + 1.0;
            if (!(n_cells > kMaximumCells)) break;
            cell *= kGrowth;
        }
        for (int axis = 0; axis < 3; ++axis) shared.cells[axis] = static_cast<int>((shared.high[axis] - shared.low[axis]) / cell) + 1;
        shared.cell = cell;
    }
    __syncthreads();
    const int *cells = shared.cells, n_cells = cells[0] * cells[1] * cells[2];
    const double* low = shared.low;
    const double cell = shared.cell;
    for (int at = threadIdx.x; at < n_cells; at += THREADS) block.nearest[at] = kNoResidue;
    __syncthreads();
    const int reach = static_cast<int>(kReach / cell) + 1, side = 2 * reach + 1, cube = side * side * side;
    for (int j = threadIdx.x / 32; j < n; j += kWarps) {
        const double px = block.y(0, j), py = block.y(1, j), pz = block.y(2, j);
        const int p = static_cast<int>((px - low[0]) / cell), q = static_cast<int>((py - low[1]) / cell);
        const int r = static_cast<int>((pz - low[2]) / cell);
        for (int k = lane; k < cube; k += 32) {
            const int a = p - reach + k / (side * side), b = q - reach + k / side % side, c = r - reach + k % side;
            if (a < 0 || b < 0 || c < 0 || a >= cells[0] || b >= cells[1] || c >= cells[2]) continue;
            const double da = low[0] + (a + 0.5) * cell - px, db = low[1] + (b + 0.5) * cell - py, dc = low[2] + (c + 0.5) * cell - pz;
            const float distance = static_cast<float>(da * da + db * db + dc * dc);
            if (distance < static_cast<float>(kReach * kReach)) {
                const Long key = static_cast<Long>(static_cast<Word>(__float_as_int(distance))) << 32 | static_cast<Word>(j);
                atomicMin(&block.nearest[(a * cells[1] + b) * cells[2] + c], key);
            }
        }
    }
    __syncthreads();
}

// Return the nearness of every n-th residue of x, moved by a run of the warp, to y; the same in all lanes.
__device__ double nearness(Block& block, int run, double scale) {
    const Shared& shared = block.shared;
    const double inverse = 1.0 / (scale * scale), cell = shared.cell;
    double r[kMove], total = 0.0;
#pragma unroll
    for (int c = 0; c < kMove; ++c) r[c] = block.team.runs.moves[c][run];
    for (int i = (threadIdx.x & 31) * block.every; i < block.m; i += 32 * block.every) {
        const double s = block.x(0, i), t = block.x(1, i), u = block.x(2, i);
        const double a = r[0] * s + r[1] * t + r[2] * u + r[9];
        const double b = r[3] * s + r[4] * t + r[5] * u + r[10];
        const double c = r[6] * s + r[7] * t + r[8] * u + r[11];
        const double along_a = (a - shared.low[0]) / cell, along_b = (b - shared.low[1]) / cell, along_c = (c - shared.low[2]) / cell;
        if (!(along_a >= 0.0 && along_b >= 0.0 && along_c >= 0.0)) continue;
        if (!(along_a < shared.cells[0] && along_b < shared.cells[1] && along_c < shared.cells[2])) continue;
        const int row = static_cast<int>(along_a) * shared.cells[1] + static_cast<int>(along_b);
        const Long found = block.nearest[row * shared.cells[2] + static_cast<int>(along_c)];
        if (found == kNoResidue) continue;
        const int j = static_cast<int>(static_cast<Word>(found));
        const double d = a - block.y(0, j), e = b - block.y(1, j), f = c - block.y(2, j);
        total += share_of(d * d + e * e + f * f, inverse);
    }
    for (int distance = 16; distance > 0; distance >>= 1) total += __shfl_xor_sync(kEveryLane, total, distance);
    return total;
}

// A warp superposes a batch of fragments of a kind, from `begin` on.
__device__ __noinline__ void superpose_fragments(Block& block, int kind, int begin, double scale) {
    Runs& runs = block.team.runs;
    const int k = threadIdx.x & 31;
    const Fragments some = fragments_of(kind, block.m, block.n);
    double* totals = block.totals + kind * kMaximumFragments;
    double* moves = block.fragment_moves + kind * kMaximumFragments * kMove;
    __syncwarp();
    if (k < kBatch) {
        runs.limits[k] = kFarthest;
        runs.lengths[k] = begin + k < some.n ? some.length : 0;
        runs.first_x[k] = (begin + k) / some.n_y * some.jump, runs.first_y[k] = (begin + k) % some.n_y * some.jump;
    }
    __syncwarp();
    moments(runs, block.x, block.y, runs.first_x, runs.first_y, runs.lengths);
    superpositions(runs);
    for (int i = k; i < kBatch * kMove; i += 32) {
        if (runs.lengths[i / kMove]) moves[begin * kMove + i] = runs.moves[i % kMove][i / kMove];
    }
    for (int run = 0; run < kBatch && begin + run < some.n; ++run) {
        const double total = nearness(block, run, scale);
        if (k == 0) totals[begin + run] = total;
    }
}

// Write the best superpositions of short and of long fragments to `kept_moves` and `kept_scores`. The block synchronises.
__device__ void keep_fragments(Block& block) {
    const int half = block.steps.n_fragments / 2;
    for (int i = threadIdx.x; i < block.steps.n_fragments; i += THREADS) block.kept_scores[i] = -1.0;
    __syncthreads();
    for (int kind = 0; kind < 2; ++kind) {
        const int n = fragments_of(kind, block.m, block.n).n;
        const double* totals = block.totals + kind * kMaximumFragments;
        const double* moves = block.fragment_moves + kind * kMaximumFragments * kMove;
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const int rank = rank_of(totals, n, i);
            if (rank >= half) continue;
            block.kept_scores[kind * half + rank] = totals[i];
            copy(block.kept_moves + (kind * half + rank) * kMove, moves + i * kMove);
        }
    }
    __syncthreads();
}

// Return true if two superpositions move x to nearly the same place.
__device__ bool are_similar(const double* move, const double* other, double spread) {
    double turned = 0.0, shifted = 0.0;
    for (int c = 0; c < 9; ++c) turned += (move[c] - other[c]) * (move[c] - other[c]);
    for (int c = 9; c < kMove; ++c) shifted += (move[c] - other[c]) * (move[c] - other[c]);
    return turned * spread + shifted < kSimilar * kSimilar;
}

// Write the numbers of up to n fragments with the highest scores above 0, none of them similar to a better one, to `shared.order`, and how
// many there are to `shared.n_chosen`. The block synchronises before and after.
__device__ void choose_different(Block& block, const double* scores, const double* moves, int n) {
    Shared& shared = block.shared;
    const int n_fragments = block.steps.n_fragments, lane = threadIdx.x & 31;
    __syncthreads();
    for (int k = threadIdx.x; k < n_fragments; k += THREADS) block.ranked[rank_of(scores, n_fragments, k)] = k;
    __syncthreads();
    if (threadIdx.x < 32) {
        int count = 0;
        for (int rank = 0; rank < n_fragments && count < n; ++rank) {
            const int k = block.ranked[rank];
            if (!(scores[k] > 0.0)) break;
            bool is_known = false;
            for (int c = lane; c < count; c += 32) {
                is_known = is_known || are_similar(moves + k * kMove, moves + shared.order[c] * kMove, shared.spread);
            }
            if (__any_sync(kEveryLane, is_known)) continue;
            if (lane == 0) shared.order[count] = k;
            ++count;
            __syncwarp();
        }
        if (lane == 0) shared.n_chosen = count;
    }
    __syncthreads();
}
