// Global alignment of two chains by the distances of their residues, or by secondary structure; bit-identical to
// kernels/cpu/distance_alignment.py (TM-align, Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309). Antidiagonals are computed
// one after the other:
//
//     H[i, j] = max(H[i-1, j-1] + reward, G[i-1, j], G[i, j-1])      G[i, j] = H[i, j] + gap where the first was the greatest, else H[i, j]
//
// A team of threads, which is a warp or the block, aligns a pair; cells of an antidiagonal do not depend on each other. Two antidiagonals
// of H and one of G are stored, in addition to the one being written; then the team synchronises.
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

// Workspace of an alignment. `best` and `after`: m + 1 each.
struct Rows {
    Residue* x;
    int* best[3];
    int* after[2];
};

struct WarpTeam {
    static constexpr int kSize = 32;
    __device__ static int rank() { return threadIdx.x & 31; }
    __device__ static void meet() { __syncwarp(); }
};

struct BlockTeam {
    static constexpr int kSize = THREADS;
    __device__ static int rank() { return threadIdx.x; }
    __device__ static void meet() { __syncthreads(); }
};

// Weights of an alignment: score of opening a gap (0 or less), and weights of both terms, in units of 1 / `kUnit`.
struct Weights {
    int gap, by_states;
    float by_distance;
    __device__ Weights(double gap, double by_states, double by_distance)
        : gap(static_cast<int>(gap * kUnit)), by_states(static_cast<int>(by_states * kUnit)), by_distance(static_cast<float>(by_distance * kUnit)) {}
};

// Bytes of `Rows` for chains of up to m residues, without those of y.
__device__ inline int bytes_of_rows(int m) { return m * static_cast<int>(sizeof(Residue)) + 5 * (m + 2) * static_cast<int>(sizeof(int)); }

__device__ inline Rows rows_at(unsigned char* place, int m) {
    Rows rows;
    rows.x = reinterpret_cast<Residue*>(place);
    int* at = reinterpret_cast<int*>(rows.x + m);
    for (int k = 0; k < 3; ++k) rows.best[k] = at + k * (m + 2);
    for (int k = 0; k < 2; ++k) rows.after[k] = at + (3 + k) * (m + 2);
    return rows;
}

// Set the transformed residues of x. The team synchronises before and after.
template <class Team>
__device__ void place_x(Residue* to, const Columns& x, int m, const double* move, double scale) {
    const double inverse = 1.0 / scale;
    Team::meet();
    for (int i = Team::rank(); i < m; i += Team::kSize) {
        const double p = x(0, i), q = x(1, i), r = x(2, i);
        const double a = (move[0] * p + move[1] * q + move[2] * r + move[9]) * inverse;
        const double b = (move[3] * p + move[4] * q + move[5] * r + move[10]) * inverse;
        const double c = (move[6] * p + move[7] * q + move[8] * r + move[11]) * inverse;
        to[i] = Residue{
            static_cast<float>(2.0 * a), static_cast<float>(2.0 * b), static_cast<float>(2.0 * c),
            static_cast<float>(a * a + b * b + c * c)};
    }
    Team::meet();
}

// Set the residues of y. The block synchronises before and after.
__device__ void place_y(Residue* to, const Columns& y, int n, double scale) {
    const double inverse = 1.0 / scale;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += THREADS) {
        const double a = y(0, j) * inverse, b = y(1, j) * inverse, c = y(2, j) * inverse;
        to[j] = Residue{static_cast<float>(a), static_cast<float>(b), static_cast<float>(c), static_cast<float>(1.0 + a * a + b * b + c * c)};
    }
    __syncthreads();
}

// Align the residues in the workspace, and return the score of the best alignment in units of 1 / `kUnit`. States may be null if they have
// no weight. With `kTraced`, the direction of each cell is written to `ways`, (m + n + 1) rows of m: cell (i, j) at row i + j, column i -
// 1. The team synchronises.
template <class Team, bool kTraced>
__device__ int align(
    Rows rows, const Residue* y, const unsigned char* states_x, const unsigned char* states_y, int m, int n, Weights weights,
    unsigned char* ways) {
    int *earlier = rows.best[0], *before = rows.best[1], *values = rows.best[2], *after = rows.after[0], *opened = rows.after[1];
    if (Team::rank() < 2) {
        const int i = Team::rank();
        earlier[i] = before[i] = values[i] = after[i] = opened[i] = 0;
    }
    Team::meet();
    for (int k = 2; k <= m + n; ++k) {
        const int low = k - n > 1 ? k - n : 1, high = k - 1 < m ? k - 1 : m;
        for (int i = low + Team::rank(); i <= high; i += Team::kSize) {
            COUNT_OPERATIONS(1);
            const int j = k - i;
            const Residue one = rows.x[i - 1], other = y[j - 1];
            float total = one.plus + other.plus;
            total = total - one.a * other.a;
            total = total - one.b * other.b;
            total = total - one.c * other.c;
            int reward = static_cast<int>(weights.by_distance / total);
            if (weights.by_states != 0 && states_x[i - 1] == states_y[j - 1]) reward += weights.by_states;
            const int straight = earlier[i - 1] + reward, from_x = after[i - 1], from_y = after[i];
            const int gapped = from_x > from_y ? from_x : from_y;
            const bool is_gapped = gapped > straight;
            values[i] = is_gapped ? gapped : straight;
            opened[i] = is_gapped ? gapped : straight + weights.gap;
            if (kTraced) ways[static_cast<long long>(k) * m + i - 1] = is_gapped ? (from_x > from_y ? 2 : 1) : 0;
        }
        if (Team::rank() == 0 && k <= m) values[k] = opened[k] = 0;
        Team::meet();
        int* const spare = earlier;
        earlier = before, before = values, values = spare;
        int* const other = after;
        after = opened, opened = other;
    }
    return before[m];
}

// Write the pairs of the alignment, ascending, to the end of `pairs`, which has space for m; return their number. Called by one warp.
// Directions are loaded in squares of 32 antidiagonals by 32 residues of x; each lane holds those of one antidiagonal as bits, so that
// there is one wait for memory per square.
__device__ __noinline__ int trace(const unsigned char* ways, int m, int n, Pair* pairs) {
    const int lane = threadIdx.x & 31;
    int i = m, j = n, place = m;
    while (i > 0 && j > 0) {
        const int corner_k = i + j, corner_i = i - 1;
        Word low = 0, high = 0;
#pragma unroll 8
        for (int row = 0; row < 32; ++row) {
            const int k = corner_k - row, column = corner_i - lane;
            const int way = k >= 2 && column >= 0 ? ways[static_cast<long long>(k) * m + column] : 0;
            const Word of_low = __ballot_sync(kEveryLane, way & 1), of_high = __ballot_sync(kEveryLane, way & 2);
            if (lane == row) low = of_low, high = of_high;
        }
        while (i > 0 && j > 0) {
            const int row = corner_k - (i + j), column = corner_i - (i - 1);
            if (row >= 32 || column >= 32) break;
            const Word is_1 = __shfl_sync(kEveryLane, low, row) >> column & 1, is_2 = __shfl_sync(kEveryLane, high, row) >> column & 1;
            if (is_1) {
                --j;
            } else if (is_2) {
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
