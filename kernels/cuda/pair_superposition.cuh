// State of a block of superposition.cu that processes a pair of chains, and its search for the superposition of given residue pairs with
// the highest TM-score, bit-identical to kernels/cpu/pair_superposition.py.
//
// A warp superposes fragments in batches of sixteen (least_squares.cuh), then the pairs that are near, and repeats this.

#pragma once

#include "least_squares.cuh"
#include "distance_alignment.cuh"

constexpr int kWarps = THREADS / 32;
// kernels/cpu/superposition.py explains these constants.
constexpr int kRounds = 20, kHalvings = 6, kMinimumPiece = 4;
constexpr int kCoarse = 40;
constexpr int kHopelessRounds = 2;
constexpr double kHopeless = 0.9, kWider = 0.8, kGap = -0.6, kMinimumGain = 1e-4, kHopelessStart = 0.5;
constexpr int kMaximumRefinements = 12, kSparseRefinements = 2;
constexpr int kTable = 1024, kProbes = 16, kMaximumFragments = 600, kSparse = 4, kSparseLength = 40;
constexpr int kMostKept = 16, kMostSparse = 64;  // maximum numbers of stored starts, and of sparsely refined fragments
constexpr int kMostTasks = 32;                   // starts of a stage
constexpr int kStripRows = 32 * kMostRows;       // maximum number of residues of x in a strip of an alignment
constexpr double kSimilar = 3.0, kCell = 3.0, kReach = 8.0, kGrowth = 1.25;
constexpr int kMaximumCells = 1 << 15;
constexpr Long kNoResidue = ~0ull;

// A pair of chains: offsets of their residues, their initial alignment and its pairs.
struct Item {
    long long x, y, start, out;
    int m, n, n_start, is_aligned;
    double scale_x, scale_y, limit;  // d0 by m and by n; maximum distance (Å) of residue pairs in the result
    double units;                    // units of the coordinate grid per Å
};

// Extent of a search (`SearchSteps`).
struct Steps {
    int n_fragments, n_sparse, n_searched, n_refined, n_finished, coarse_halvings, last_step;
    int minimum_sparse_percent, n_sparse_if_unlike, n_searched_if_unlike, minimum_start_percent;
};

// All chains: coordinates axis by axis, chain after chain; one state for each three coordinates; initial alignments of the pairs.
struct Chains {
    const Item* items;
    const double* position;
    const unsigned char* states;
    const Pair* start_pairs;
};

// Results of each item: superposition, both scores, number of pairs, and pairs.
struct Found {
    double* moves;
    double* scores;
    int* counts;
    Pair* pairs;
    unsigned char* workspace;  // of each block
    long long workspace_bytes;
    int* next_item;
};

// Shared variables of a warp.
struct Team {
    Runs runs;
    double move[kMove], best_move[kMove];
    double best;              // score of the best alignment of this warp, in `best_pairs`
    int best_order, n_best;   // number of the start that found it, in the order of the CPU; number of its pairs
    int begin[kBatch], fresh[kBatch];  // pairs of new fragments; 0 for other fragments
    Word seen[kTable];
};

// Shared variables of a block.
struct Shared {
    double found[kMostTasks], moves[kMostTasks][kMove];  // of the starts of a stage; -1 for those that were not taken
    double scores[kMostKept], kept[kMostKept][kMove];
    double final_score[2];
    double low[3], high[3], cell, spread;  // of the table of nearest residues; of x
    int cells[3];
    int next_task, item, best_warp, count, n_chosen;
    int order[kMostSparse];
};
static_assert(sizeof(Team) == 8592 && sizeof(Shared) <= 5376, "kernels/cuda/superposition.py divides the shared memory");

// State of a block that processes a pair of chains, and its workspace in device memory, parts of which belong to one warp each.
struct Block {
    Shared& shared;
    Team& team;
    Steps steps;
    Columns x, y;
    int m = 0, n = 0, every = 1;
    const unsigned char *states_x = nullptr, *states_y = nullptr;
    Residue *placed_y = nullptr, *sparse_y = nullptr;
    Residue* moved_x = nullptr;        // with zeros to the end of the strips
    double* near_pairs = nullptr;      // (2, 3, m): those that are searched
    Long* nearest = nullptr;           // table: bits of the squared distance (float32), then the residue of y
    int* ranked = nullptr;             // (n_fragments)
    double* totals = nullptr;          // (2, kMaximumFragments)
    double* fragment_moves = nullptr;  // (2, kMaximumFragments, 12)
    double* kept_scores = nullptr;     // (n_fragments): of the best fragments
    double* kept_moves = nullptr;      // (n_fragments, 12)
    double* best_scores = nullptr;     // (n_fragments)
    double* refined = nullptr;         // (n_fragments, 12)
    Pair *pairs = nullptr, *best_pairs = nullptr;
    Edge* edges = nullptr;
    unsigned short* ways = nullptr;
};

__device__ double near_of(double scale) {
    const double above = scale > 4.5 ? scale : 4.5;
    return above < 8.0 ? above : 8.0;
}

__device__ void copy(double* to, const double* from) {
    for (int c = 0; c < kMove; ++c) to[c] = from[c];
}

// The lanes of a warp copy a superposition; they see the copy after the next barrier of the warp.
__device__ void copy_by_lanes(double* to, const double* from) {
    const int lane = threadIdx.x & 31;
    if (lane < kMove) to[lane] = from[lane];
}

// Return the next start for a warp, the same in all lanes.
__device__ int next_task(Shared& shared) {
    int task = 0;
    if ((threadIdx.x & 31) == 0) task = atomicAdd(&shared.next_task, 1);
    return __shfl_sync(kEveryLane, task, 0);
}

// Begin a stage: its starts are counted from 0. The block synchronises before and after.
__device__ void begin_stage(Shared& shared) {
    __syncthreads();
    if (threadIdx.x == 0) shared.next_task = 0;
    if (threadIdx.x < kMostTasks) shared.found[threadIdx.x] = -1.0;
    __syncthreads();
}

// Return true if a selection is new; record it while there is space. All lanes of the warp have the same mark.
__device__ bool is_new(Word mark, Word* seen) {
    const int lane = threadIdx.x & 31, place = static_cast<int>(mark * 0x9E3779B1u >> 22);
    const int slot = (place + lane) & (kTable - 1);
    const Word value = lane < kProbes ? seen[slot] : 0;
    const Word same = __ballot_sync(kEveryLane, lane < kProbes && value == mark);
    const Word empty = __ballot_sync(kEveryLane, lane < kProbes && value == 0);
    const int first_same = same ? __ffs(static_cast<int>(same)) - 1 : kProbes;
    const int first_empty = empty ? __ffs(static_cast<int>(empty)) - 1 : kProbes;
    if (first_same < first_empty) return false;
    if (lane == first_empty) seen[slot] = mark;
    __syncwarp();
    return true;
}

// Write the superposition of the first n gathered pairs with the highest sum of scores to `best`, and return the sum, like `search` in
// kernels/cpu/pair_superposition.py. The warp synchronises before and after. Lane k < 16 decides on run k.
__device__ __noinline__ double search(
    Block& block, int n, double scale, double near, int step, int halvings, double hopeless, double* best) {
    Team& team = block.team;
    Runs& runs = team.runs;
    const int lane = threadIdx.x & 31;
    __syncwarp();
    if (n == 0) {
        if (lane < kMove) best[lane] = lane == 0 || lane == 4 || lane == 8 ? 1.0 : 0.0;
        __syncwarp();
        return 0.0;
    }
    const Columns x{block.near_pairs, block.m, 1}, y{block.near_pairs + 3 * block.m, block.m, 1};
    for (int i = lane; i < kTable; i += 32) team.seen[i] = 0;
    if (lane < kBatch) runs.first_x[lane] = runs.first_y[lane] = runs.lengths[lane] = 0;
    const int least = halvings == kHalvings ? 0 : n >> (halvings - 1);
    const int smallest = kMinimumPiece < n ? kMinimumPiece : n, shortest = smallest > least ? smallest : least;
    int halving = 0, start = 0, length = n, rounds = 0;
    bool is_more = true, is_running = false;
    double greatest = -1.0;
    while (true) {
        Word idle = ~__ballot_sync(kEveryLane, is_running) & ((1u << kBatch) - 1);
        int fresh = 0;
        for (; is_more && idle; idle &= idle - 1) {
            if (lane == __ffs(static_cast<int>(idle)) - 1) {
                team.begin[lane] = start, fresh = length;
                rounds = 0, is_running = true;
                runs.lengths[lane] = n, runs.limits[lane] = near - 1.0;
            }
            if (start < n - length) {
                const int after = start + (step ? step : length / 4 > 2 ? length / 4 : 2);
                start = after < n - length ? after : n - length;
            } else if (length == shortest) {
                is_more = false;
            } else {
                ++halving, start = 0;
                length = halving < halvings - 1 && n >> halving > shortest ? n >> halving : shortest;
            }
        }
        if (lane < kBatch) team.fresh[lane] = fresh;
        if (!__any_sync(kEveryLane, is_running)) break;
        __syncwarp();
        if (__any_sync(kEveryLane, fresh > 0)) moments(runs, x, y, team.begin, team.begin, team.fresh);
        superpositions(runs);
        near_moments(runs, x, y, scale);
        // The highest sum so far; the superposition is that of the first run with this sum.
        const double total = is_running ? runs.totals[lane] : -1.0, before = greatest;
        double so_far = total;
        for (int distance = 1; distance < kBatch; distance <<= 1) {
            const double other = __shfl_up_sync(kEveryLane, so_far, distance);
            if (lane >= distance && other > so_far) so_far = other;
        }
        if (before > so_far) so_far = before;
        greatest = __shfl_sync(kEveryLane, so_far, kBatch - 1);
        if (greatest > before) {
            const int first = __ffs(static_cast<int>(__ballot_sync(kEveryLane, is_running && total == greatest))) - 1;
            if (lane < kMove) best[lane] = runs.moves[lane][first];
        }
        ++rounds;
        bool goes_on = is_running && rounds <= kRounds && !(rounds >= kHopelessRounds && total < hopeless * so_far);
        Word mark = 0;
        if (is_running) {
            runs.limits[lane] = near + 1.0;
            // The same pairs have bit-identical sums.
            const Long bits = static_cast<Long>(__double_as_longlong(runs.sums[6][lane]))
                ^ static_cast<Long>(__double_as_longlong(runs.sums[15][lane])) << 1;
            mark = static_cast<Word>(bits ^ bits >> 32) | 1;
        }
        for (Word some = __ballot_sync(kEveryLane, goes_on); some; some &= some - 1) {
            const int k = __ffs(static_cast<int>(some)) - 1;
            const bool is_first = is_new(__shfl_sync(kEveryLane, mark, k), team.seen);
            if (lane == k) goes_on = is_first;
        }
        if (is_running && !goes_on) runs.lengths[lane] = 0;
        is_running = goes_on;
        __syncwarp();
    }
    __syncwarp();
    return greatest;
}

// Gather the coordinates of pairs of every n-th residue for a search by a warp. The warp synchronises before; the search synchronises
// afterwards.
__device__ void gather(Block& block, const Pair* pairs, int n, int every) {
    __syncwarp();
    for (int k = threadIdx.x & 31; k < n; k += 32) {
        const Pair pair = pairs[k];
        for (int axis = 0; axis < 3; ++axis) {
            block.near_pairs[axis * block.m + k] = block.x(axis, pair.x * every);
            block.near_pairs[(3 + axis) * block.m + k] = block.y(axis, pair.y * every);
        }
    }
}
