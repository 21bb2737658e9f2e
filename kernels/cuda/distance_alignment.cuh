// Global alignment of two chains by the distances of their residues, or by their secondary structure, bit-identical to
// kernels/cpu/distance_alignment.py (TM-align, Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309):
//
//     H[i, j] = max(H[i-1, j-1] + reward, G[i-1, j], G[i, j-1])      G[i, j] = H[i, j] + gap if the first was the largest, else H[i, j]
//
// A warp aligns a pair of chains, strip by strip. Each lane has some consecutive residues of x in registers; a strip consists of the
// residues of 32 lanes. A lane passes its last row to the next lane, which is one residue of y behind, so that lanes wait neither for
// memory nor for a barrier.
#pragma once

#include "warp.cuh"

constexpr int kUnit = 1 << 15;  // reward of two residues at the same position

// A residue in units of the scale: three coordinates (doubled for x) and their squared length (plus one for y).
struct __align__(16) Residue {
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

// Weights of an alignment, in integer units of 1 / `kUnit`: score of opening a gap (0 or less), and weights of both terms.
struct Weights {
    int gap, by_states;
    float by_distance;
    __device__ Weights(double gap, double by_states, double by_distance)
        : gap(static_cast<int>(gap * kUnit)),
          by_states(static_cast<int>(by_states * kUnit)),
          by_distance(static_cast<float>(by_distance * kUnit)) {}
};

// Chains to align: every n-th residue of x, and space for these residues after moving; residues of y from `place_y`. States may be null if
// they have no weight.
struct ToAlign {
    Columns x;
    Residue* moved;
    const Residue* y;
    const unsigned char *states_x, *states_y;
    int m, n;
};

constexpr int kMostRows = 8;  // residues of x in a lane

// The number of residues of x in a lane, at least 2, such that strips are equal and most lanes have some of the m residues.
__device__ inline int rows_of_lane(int m) {
    const int n_strips = (m + 32 * kMostRows - 1) / (32 * kMostRows), rows = (m + 32 * n_strips - 1) / (32 * n_strips);
    return rows > 2 ? rows : 2;
}

// Return unit / total, correctly rounded, where unit is a power of two or 0. One step of Newton's method, from a reciprocal that is wrong
// by at most one unit in the last place, gives the rounded reciprocal (Markstein, IBM Journal of Research and Development 34, 1990,
// 111-119). Only for a `total` just below a power of two may the result be one unit too low; it is then the next power of two and thus has
// the same whole part.
__device__ __forceinline__ float part_of_unit(float unit, float total) {
#ifdef __CUDACC__
    float rough;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(rough) : "f"(total));
    return __fmaf_rn(rough, __fmaf_rn(-total, rough, 1.0f), rough) * unit;
#else
    return unit / total;
#endif
}

// Write the moved residues of x, and zeros up to `n`, to `chains.moved`. The warp synchronises afterwards.
__device__ __noinline__ void place_x(const ToAlign& chains, int n, const double* move, double scale) {
    const double inverse = 1.0 / scale;
#pragma unroll 1
    for (int i = threadIdx.x & 31; i < n; i += 32) {
        if (i >= chains.m) {
            chains.moved[i] = Residue{0.0f, 0.0f, 0.0f, 0.0f};
            continue;
        }
        const double p = chains.x(0, i), q = chains.x(1, i), r = chains.x(2, i);
        const double a = (move[0] * p + move[1] * q + move[2] * r + move[9]) * inverse;
        const double b = (move[3] * p + move[4] * q + move[5] * r + move[10]) * inverse;
        const double c = (move[6] * p + move[7] * q + move[8] * r + move[11]) * inverse;
        const double squares = a * a + b * b + c * c;
        chains.moved[i] =
            Residue{static_cast<float>(2.0 * a), static_cast<float>(2.0 * b), static_cast<float>(2.0 * c), static_cast<float>(squares)};
    }
    __syncwarp();
}

// Write the residues of y. The block synchronises before and after.
__device__ void place_y(Residue* to, const Columns& y, int n, double scale) {
    const double inverse = 1.0 / scale;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += THREADS) {
        const double a = y(0, j) * inverse, b = y(1, j) * inverse, c = y(2, j) * inverse;
        to[j] = Residue{static_cast<float>(a), static_cast<float>(b), static_cast<float>(c), static_cast<float>(1.0 + a * a + b * b + c * c)};
    }
    __syncthreads();
}

// Align chains, x from `place_x`, and return the score of the best alignment in units of 1 / `kUnit`. With `kTraced`, the ways into the
// cells of a lane's rows are written to `ways`: strip by strip, n + 31 steps, 32 lanes. In a word, bit r is set if row r ends in a gap
// there, and bit kMostRows + r if this gap would skip a residue of x. edges: n, if x has several strips. The warp synchronises before and
// after.
template <int kRows, bool kTraced, bool kHasStates>
__device__ __noinline__ int align_strips(
    const ToAlign& chains, const Weights& weights, unsigned short* ways, Edge* edges) {
    constexpr int kStrip = 32 * kRows;
    const int lane = threadIdx.x & 31, m = chains.m, n = chains.n, n_steps = n + 31;
    int score = 0;
    for (int top = 0; top < m; top += kStrip) {
        __syncwarp();
        Residue own[kRows];
        int states[kRows], best[kRows], after[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = top + lane * kRows + r;
            own[r] = chains.moved[i];
            states[r] = kHasStates && i < m ? chains.states_x[i] : -1;
            best[r] = after[r] = 0;
        }
        const bool has_above = top > 0, has_below = top + kStrip < m;
        int above_before = 0;
        Edge above_here{0, 0};  // at up to 32 residues of y, one in each lane
#pragma unroll 1
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
                    int reward = static_cast<int>(part_of_unit(weights.by_distance, total));
                    if (kHasStates && states[r] == state) reward += weights.by_states;
                    const int straight = diagonal + reward, from_y = after[r];
                    // `from_x`, from the row above, is available last; only few operations depend on it.
                    const bool is_gapped = (from_y > straight) | (from_x > straight);
                    const int gapped = from_x > from_y ? from_x : from_y;
                    if (kTraced && is_gapped) word |= 1u << r;
                    if (kTraced && from_x > from_y) word |= 1u << (kMostRows + r);
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

// The same, with x moved by `move`.
template <bool kTraced, bool kHasStates>
__device__ int align(const ToAlign& chains, const double* move, double scale, const Weights& weights, unsigned short* ways, Edge* edges) {
    const int rows = rows_of_lane(chains.m), strip = 32 * rows;
    place_x(chains, (chains.m + strip - 1) / strip * strip, move, scale);
    switch (rows) {
        case 2: return align_strips<2, kTraced, kHasStates>(chains, weights, ways, edges);
        case 3: return align_strips<3, kTraced, kHasStates>(chains, weights, ways, edges);
        case 4: return align_strips<4, kTraced, kHasStates>(chains, weights, ways, edges);
        case 5: return align_strips<5, kTraced, kHasStates>(chains, weights, ways, edges);
        case 6: return align_strips<6, kTraced, kHasStates>(chains, weights, ways, edges);
        case 7: return align_strips<7, kTraced, kHasStates>(chains, weights, ways, edges);
        default: return align_strips<kMostRows, kTraced, kHasStates>(chains, weights, ways, edges);
    }
}

// Write the pairs of the alignment, ascending, to the end of `pairs`, which has space for m; return their number. For one warp.
//
// The ways are read for the rows of one lane at up to 32 residues of y, one residue per lane, so that all of them need only one wait for
// memory.
__device__ __noinline__ int trace(const unsigned short* ways, int m, int n, Pair* pairs) {
    const int lane = threadIdx.x & 31, rows = rows_of_lane(m), n_steps = n + 31;
    int i = m, j = n, place = m;
    while (i > 0 && j > 0) {
        const int group = (i - 1) / rows, first = group * rows, corner = j, owner = group & 31, column = corner - 1 - lane;
        const long long at = (static_cast<long long>(group >> 5) * n_steps + column + owner) * 32 + owner;
        const Word word = column >= 0 ? ways[at] : 0;
        while (i > first && j > 0 && corner - j < 32) {
            const Word way = __shfl_sync(kEveryLane, word, corner - j) >> (i - 1 - first);
            if (!(way & 1u)) {
                --i, --j, --place;
                if (lane == 0) pairs[place] = Pair{i, j};
            } else if (way >> kMostRows & 1u) {
                --i;
            } else {
                --j;
            }
        }
    }
    __syncwarp();
    return m - place;
}
