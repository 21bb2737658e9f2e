// Global alignment of two chains by how near their residues lie, or by their secondary structure: that of
// kernels/cpu/distance_alignment.py, bit for bit (TM-align, Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309):
//
//     H[i, j] = max(H[i-1, j-1] + reward, G[i-1, j], G[i, j-1])      G[i, j] = H[i, j] + gap where the first was the greatest, else H[i, j]
//
// A warp aligns a pair of chains. Each lane has some consecutive residues of x in registers, a strip of 32 such groups at a time, and
// passes their last row to the next lane, which is one residue of y behind: lanes wait neither for memory nor for a barrier.
#pragma once

#include "warp.cuh"

constexpr int kUnit = 1 << 15;  // reward of two residues at the same position

// A residue in units of the scale: three coordinates (doubled for x) and their squared length (plus one for y).
struct Residue {
    float a, b, c, plus;
};

// Aligned residues: rows of x and of y.
struct Pair {
    int x, y;
};

// H and G of the last row of a strip at a residue of y.
struct Edge {
    int best, after;
};

// Weights of an alignment: what an open gap costs, 0 or less, and of both terms, in whole numbers of `kUnit`.
struct Weights {
    int gap, by_states;
    float by_distance;
    __device__ Weights(double gap, double by_states, double by_distance)
        : gap(static_cast<int>(gap * kUnit)),
          by_states(static_cast<int>(by_states * kUnit)),
          by_distance(static_cast<float>(by_distance * kUnit)) {}
};

// Chains to align: every n-th residue of x, which is moved; residues of y from `place_y`; states may be null if they have no weight.
struct ToAlign {
    Columns x;
    const Residue* y;
    const unsigned char *states_x, *states_y;
    int m, n;
};

// Logarithm to base 2 of the number of residues of x in a lane: most lanes have some of m.
__device__ inline int log_rows(int m) { return m <= 64 ? 1 : m <= 128 ? 2 : 3; }

// The residue i of x, moved.
__device__ inline Residue moved_residue(const Columns& x, int i, const double* move, double inverse) {
    const double p = x(0, i), q = x(1, i), r = x(2, i);
    const double a = (move[0] * p + move[1] * q + move[2] * r + move[9]) * inverse;
    const double b = (move[3] * p + move[4] * q + move[5] * r + move[10]) * inverse;
    const double c = (move[6] * p + move[7] * q + move[8] * r + move[11]) * inverse;
    return Residue{
        static_cast<float>(2.0 * a), static_cast<float>(2.0 * b), static_cast<float>(2.0 * c), static_cast<float>(a * a + b * b + c * c)};
}

// The residues of y. The block synchronises before and after.
__device__ void place_y(Residue* to, const Columns& y, int n, double scale) {
    const double inverse = 1.0 / scale;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += THREADS) {
        const double a = y(0, j) * inverse, b = y(1, j) * inverse, c = y(2, j) * inverse;
        to[j] = Residue{static_cast<float>(a), static_cast<float>(b), static_cast<float>(c), static_cast<float>(1.0 + a * a + b * b + c * c)};
    }
    __syncthreads();
}

// Align chains, x moved by `move`, and return the score of the best alignment in units of 1 / `kUnit`. With `kTraced`, the ways into the
// cells of a lane's rows, two bits each, go to `ways`: strip by strip, n + 31 steps, 32 lanes. edges: n, if x has several strips. The warp
// synchronises before and after.
template <int kLogRows, bool kTraced, bool kHasStates>
__device__ __noinline__ int align_strips(
    const ToAlign& chains, const double* move, double scale, const Weights& weights, unsigned short* ways, Edge* edges) {
    constexpr int kRows = 1 << kLogRows, kStrip = 32 * kRows;
    const int lane = threadIdx.x & 31, m = chains.m, n = chains.n, n_steps = n + 31;
    const double inverse = 1.0 / scale;
    int score = 0;
    for (int top = 0; top < m; top += kStrip) {
        __syncwarp();
        Residue own[kRows];
        int states[kRows], best[kRows], after[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = top + lane * kRows + r;
            own[r] = i < m ? moved_residue(chains.x, i, move, inverse) : Residue{0.0f, 0.0f, 0.0f, 0.0f};
            states[r] = kHasStates && i < m ? chains.states_x[i] : -1;
            best[r] = after[r] = 0;
        }
        const bool has_above = top > 0, has_below = top + kStrip < m;
        int above_before = 0;
        Edge above_here{0, 0};  // at up to 32 residues of y, one in each lane
        for (int step = 0; step < n_steps; ++step) {
            int above = __shfl_up_sync(kEveryLane, best[kRows - 1], 1), from_x = __shfl_up_sync(kEveryLane, after[kRows - 1], 1);
            if (has_above) {
                if ((step & 31) == 0) above_here = step + lane < n ? edges[step + lane] : Edge{0, 0};
                const int edge_best = __shfl_sync(kEveryLane, above_here.best, step & 31);
                const int edge_after = __shfl_sync(kEveryLane, above_here.after, step & 31);
                if (lane == 0) above = edge_best, from_x = edge_after;
            } else if (lane == 0) {
                above = from_x = 0;
            }
            const int j = step - lane;
            if (j >= 0 && j < n) {
                COUNT_OPERATIONS(m - top - lane * kRows < 0 ? 0 : m - top - lane * kRows < kRows ? m - top - lane * kRows : kRows);
                const Residue other = chains.y[j];
                const int state = kHasStates ? chains.states_y[j] : 0;
                int diagonal = above_before;
                Word word = 0;
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    float total = own[r].plus + other.plus;
                    total = total - own[r].a * other.a;
                    total = total - own[r].b * other.b;
                    total = total - own[r].c * other.c;
                    int reward = static_cast<int>(weights.by_distance / total);
                    if (kHasStates && states[r] == state) reward += weights.by_states;
                    const int straight = diagonal + reward, from_y = after[r];
                    const int gapped = from_x > from_y ? from_x : from_y;
                    const bool is_gapped = gapped > straight;
                    if (kTraced) word |= (is_gapped ? (from_x > from_y ? 2u : 1u) : 0u) << 2 * r;
                    diagonal = best[r];
                    best[r] = is_gapped ? gapped : straight;
                    from_x = after[r] = is_gapped ? gapped : straight + weights.gap;
                }
                above_before = above;
                if (kTraced) ways[(static_cast<long long>(top / kStrip) * n_steps + step) * 32 + lane] = static_cast<unsigned short>(word);
                if (has_below && lane == 31) edges[j] = Edge{best[kRows - 1], after[kRows - 1]};
            }
        }
        if (!has_below) {
            int value = 0;
#pragma unroll
            for (int r = 0; r < kRows; ++r) value = (m - 1 - top) % kRows == r ? best[r] : value;
            score = __shfl_sync(kEveryLane, value, (m - 1 - top) / kRows);
        }
    }
    __syncwarp();
    return score;
}

template <bool kTraced, bool kHasStates>
__device__ int align(const ToAlign& chains, const double* move, double scale, const Weights& weights, unsigned short* ways, Edge* edges) {
    const int rows = log_rows(chains.m);
    if (rows == 1) return align_strips<1, kTraced, kHasStates>(chains, move, scale, weights, ways, edges);
    if (rows == 2) return align_strips<2, kTraced, kHasStates>(chains, move, scale, weights, ways, edges);
    return align_strips<3, kTraced, kHasStates>(chains, move, scale, weights, ways, edges);
}

// The pairs of the alignment, ascending, to the end of `pairs`, which has space for m; return their number. For one warp.
//
// The ways come for the rows of a lane at up to 32 residues of y, one of which each lane holds: one wait for memory for all of them.
__device__ __noinline__ int trace(const unsigned short* ways, int m, int n, Pair* pairs) {
    const int lane = threadIdx.x & 31, rows = log_rows(m), n_steps = n + 31;
    int i = m, j = n, place = m;
    while (i > 0 && j > 0) {
        const int group = (i - 1) >> rows, first = group << rows, corner = j, owner = group & 31, column = corner - 1 - lane;
        const long long at = (static_cast<long long>(group >> 5) * n_steps + column + owner) * 32 + owner;
        const Word word = column >= 0 ? ways[at] : 0;
        while (i > first && j > 0 && corner - j < 32) {
            const Word way = __shfl_sync(kEveryLane, word, corner - j) >> 2 * (i - 1 - first) & 3;
            if (way == 1) {
                --j;
            } else if (way == 2) {
                --i;
            } else {
                --i, --j, --place;
                if (lane == 0) pairs[place] = Pair{i, j};
            }
        }
    }
    __syncwarp();
    return m - place;
}
