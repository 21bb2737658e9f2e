// The superposition of pairs of chains that has the greatest TM-score (Zhang & Skolnick, Proteins 57, 2004, 702-710): the search of
// kernels/cpu/superposition.py, bit for bit, which follows TM-align (Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309).
//
// Superpose fragments of an alignment, then the pairs that are near, realign by the distances, repeat. A block takes pairs of chains from a
// common counter, the costliest first, independently of other blocks. The starts of a pair do not depend on each other: each warp of the
// block takes one after another, aligns (distance_alignment.cuh), superposes in batches of sixteen (least_squares.cuh) and writes what it
// found to the place of the start. Between the stages of a pair, thread 0 puts the results in order, as the CPU does. x is the shorter
// chain, or as long as y.

// Macros of a launch, set by kernels/cuda/superposition.py.
#ifndef THREADS
#define THREADS 128
#define RESIDENT 4
#endif

#include "least_squares.cuh"
#include "distance_alignment.cuh"

constexpr int kWarps = THREADS / 32;
constexpr int kRounds = 20, kHalvings = 6, kMinimumPiece = 4;  // as kernels/cpu/superposition.py explains them, and all that follow
constexpr int kCoarse = 40;
constexpr int kHopelessRounds = 2;
constexpr double kHopeless = 0.9, kWider = 0.8, kGap = -0.6, kMinimumGain = 1e-4, kHopelessStart = 0.5;
constexpr int kMaximumRefinements = 12, kSparseRefinements = 2;
constexpr int kTable = 1024, kProbes = 16, kMaximumFragments = 600, kSparse = 4, kSparseLength = 40;
constexpr int kMostKept = 16, kMostSparse = 64;  // maximum numbers of stored starts, and of sparsely refined fragments
constexpr int kMostTasks = 32;                   // starts of a stage
constexpr int kStripRows = 256;                  // residues of x in a strip of an alignment
constexpr double kSimilar = 3.0, kCell = 3.0, kReach = 8.0, kGrowth = 1.25;
constexpr int kMaximumCells = 1 << 15;
constexpr Long kNoResidue = ~0ull;

// A pair of chains: offsets of their residues, their initial alignment and its pairs.
struct Item {
    long long x, y, start, out;
    int m, n, n_start, is_aligned;
    double scale_x, scale_y, limit;  // d0 by m and by n; Å beyond which residues are not paired in the result
    double units;                    // of the grid of coordinates, per Å
};

// Extent of a search (`SearchSteps`).
struct Steps {
    int n_fragments, n_sparse, n_searched, n_refined, n_finished, coarse_halvings, last_step;
};

// All chains: coordinates axis by axis, chain after chain, and a third as many states; initial alignments of the pairs.
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
    int best_order, n_best;   // number of the start that found it, in the order of the CPU; its pairs
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

// A block at work on a pair of chains, and its workspace in device memory, some of it of each warp.
struct Block {
    Shared& shared;
    Team& team;
    Steps steps;
    Columns x, y;
    int m = 0, n = 0, every = 1;
    const unsigned char *states_x = nullptr, *states_y = nullptr;
    Residue *placed_y = nullptr, *sparse_y = nullptr;
    double* near_pairs = nullptr;      // (2, 3, m): those that are searched
    Long* nearest = nullptr;           // table: bits of the squared distance (float32), then the residue of y
    int* ranked = nullptr;             // (n_fragments)
    double* totals = nullptr;          // (2, kMaximumFragments)
    double* fragment_moves = nullptr;  // (2, kMaximumFragments, 12)
    double* kept_scores = nullptr;     // (n_fragments): of the fragments that fit best
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

// The lanes of a warp copy a superposition; those of it see it after its next barrier.
__device__ void copy_by_lanes(double* to, const double* from) {
    const int lane = threadIdx.x & 31;
    if (lane < kMove) to[lane] = from[lane];
}

// The next start for a warp. All lanes get the same.
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

// The superposition of the first n pairs that were gathered with the greatest sum of scores, to `best`; the sum is returned. All of it as
// `search` of kernels/cpu/pair_superposition.py; the warp synchronises before and after. Lane k < 16 decides on run k.
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
        // The greatest sum so far, in the order of the runs; the first run that has it gives the superposition.
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
            // Of the same pairs the sums are the same to the last bit.
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

// The coordinates of pairs of every n-th residue, gathered for a search by a warp. The warp synchronises before; a search does after.
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

// The best shift of one chain along the other without gaps, found by a warp: pairs at the end of `pairs`; return their number.
__device__ __noinline__ int thread_chains(Block& block, double scale, double near) {
    Runs& runs = block.team.runs;
    const int m = block.m, n = block.n, k = threadIdx.x & 31;
    const int half = m / 2, five = m < 5 ? m : 5, shortest = half > five ? half : five;
    double greatest = -1.0;
    int chosen = 0;
    __syncwarp();
    if (k < kBatch) runs.limits[k] = near;
    for (int shift = shortest - m; shift < n - shortest + 1; shift += kBatch) {
        if (k < kBatch) {
            const int first = -shift - k > 0 ? -shift - k : 0, last = n - shift - k < m ? n - shift - k : m;
            runs.first_x[k] = first, runs.first_y[k] = first + shift + k;
            runs.lengths[k] = shift + k <= n - shortest ? last - first : 0;
        }
        __syncwarp();
        moments(runs, block.x, block.y, runs.first_x, runs.first_y, runs.lengths);
        for (int round = 0; round < 2; ++round) {
            superpositions(runs);
            near_moments(runs, block.x, block.y, scale);
            const bool is_used = k < kBatch && runs.lengths[k] > 0;
            const double total = is_used ? runs.totals[k] : -1.0, before = greatest;
            double highest = total;
            for (int distance = 16; distance > 0; distance >>= 1) {
                const double other = __shfl_xor_sync(kEveryLane, highest, distance);
                highest = other > highest ? other : highest;
            }
            greatest = highest > before ? highest : before;
            if (greatest > before) chosen = shift + __ffs(static_cast<int>(__ballot_sync(kEveryLane, is_used && total == greatest))) - 1;
            const bool goes_on = is_used && total >= kHopeless * greatest;
            if (k < kBatch && !goes_on) runs.lengths[k] = 0;
            __syncwarp();
            if (!__any_sync(kEveryLane, goes_on)) break;
        }
    }
    const int first = -chosen > 0 ? -chosen : 0, last = m < n - chosen ? m : n - chosen;
    for (int i = first + k; i < last; i += 32) block.pairs[m - last + i] = Pair{i, i + chosen};
    __syncwarp();
    return last - first;
}

// Return the rank of the k-th of n numbers: the number of greater ones, and of equal ones before it.
__device__ int rank_of(const double* values, int n, int k) {
    const double own = values[k];
    int rank = 0;
    for (int other = 0; other < n; ++other) rank += values[other] > own || (values[other] == own && other < k);
    return rank;
}

// Short (0) or long (1) fragments of both chains: their length, the distance between their starts, and their numbers.
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

// Write the table of the residues of y that are nearest to the cells of a lattice: kernels/cpu/nearest_residues.py explains it. The block
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

// The nearness of every n-th residue of x, moved by a run of the warp, to y. All lanes get it.
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

// Superpose the fragments of a kind from `begin` on, a batch of them, by a warp.
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
// many they are to `shared.n_chosen`. The block synchronises before and after.
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

// Insert a superposition among the best, which are sorted, unless one with the same score is there. For one thread.
__device__ void keep(double found, const double* move, double* scores, double (*moves)[kMove], int n) {
    for (int k = 0; k < n; ++k) {
        if (fabs(scores[k] - found) < 1e-6) return;
    }
    if (found <= scores[n - 1]) return;
    int place = n - 1;
    while (place > 0 && scores[place - 1] < found) {
        scores[place] = scores[place - 1];
        copy(moves[place], moves[place - 1]);
        --place;
    }
    scores[place] = found;
    copy(moves[place], move);
}

// A warp aligns anew under a superposition, searches what is aligned, and replaces `move` by what is found. The sum of scores is returned;
// the pairs, `count` of them, are at the end of those of the m residues. For every n-th residue.
template <bool kHasStates>
__device__ __noinline__ double realigned(
    Block& block, double* move, int every, double guide, double near, const Weights& weights, int* count) {
    const int m = (block.m + every - 1) / every, n = (block.n + every - 1) / every;
    const ToAlign chains{
        Columns{block.x.at, block.x.stride, every}, every == 1 ? block.placed_y : block.sparse_y, block.states_x, block.states_y, m, n};
    __syncwarp();
    align<true, kHasStates>(chains, move, guide, weights, block.ways, block.edges);
    *count = trace(block.ways, m, n, block.pairs);
    gather(block, block.pairs + m - *count, *count, every);
    return search(block, *count, guide, near, kCoarse, block.steps.coarse_halvings, kHopeless, move);
}

// Take the alignment of a warp, at the end of its pairs, as its best so far, if it is. order: what the CPU tries earlier is lower.
__device__ void take(Block& block, double found, int order, const double* move, const Pair* pairs, int count) {
    Team& team = block.team;
    if (!(found > team.best || (found == team.best && order < team.best_order))) return;
    __syncwarp();
    copy_by_lanes(team.best_move, move);
    if ((threadIdx.x & 31) == 0) team.best = found, team.best_order = order, team.n_best = count;
    for (int k = threadIdx.x & 31; k < count; k += 32) block.best_pairs[k] = pairs[k];
    __syncwarp();
}

// Choose the best alignment of all warps, the first of equals. The block synchronises before and after.
__device__ void choose(Block& block, Team* teams) {
    __syncthreads();
    if (threadIdx.x == 0) {
        int best = 0;
        for (int warp = 1; warp < kWarps; ++warp) {
            const Team &one = teams[warp], &other = teams[best];
            if (one.best > other.best || (one.best == other.best && one.best_order < other.best_order)) best = warp;
        }
        block.shared.best_warp = best;
    }
    __syncthreads();
}

// Rank fragments of both chains by sparse alignments, refine the best, and write the numbers of the best results to `shared.order` and the
// superpositions to `refined`; return how many they are. The block synchronises.
__device__ int best_fragments(Block& block, double guide, double near) {
    Shared& shared = block.shared;
    const Steps steps = block.steps;
    const int every = block.every, m = (block.m + every - 1) / every, n = (block.n + every - 1) / every;
    const Weights weights(kGap, 0.0, 1.0);
    const ToAlign chains{Columns{block.x.at, block.x.stride, every}, block.sparse_y, nullptr, nullptr, m, n};
    keep_fragments(block);
    begin_stage(shared);
    for (int k = next_task(shared); k < steps.n_fragments; k = next_task(shared)) {
        if (!(block.kept_scores[k] > 0.0)) continue;
        const int score = align<false, false>(chains, block.kept_moves + k * kMove, guide, weights, nullptr, block.edges);
        if ((threadIdx.x & 31) == 0) block.kept_scores[k] = score;
    }
    choose_different(block, block.kept_scores, block.kept_moves, steps.n_sparse);
    for (int k = threadIdx.x; k < steps.n_fragments; k += THREADS) block.best_scores[k] = 0.0;
    begin_stage(shared);
    const int n_sparse = shared.n_chosen;
    for (int rank = next_task(shared); rank < n_sparse; rank = next_task(shared)) {
        const int k = shared.order[rank];
        double* move = block.team.move;
        __syncwarp();
        copy_by_lanes(move, block.kept_moves + k * kMove);
        double best = 0.0;
        for (int round = 0; round < kSparseRefinements; ++round) {
            int count;
            const double found = realigned<false>(block, move, every, guide, near, weights, &count);
            if (found > best) {
                best = found;
                copy_by_lanes(block.refined + k * kMove, move);
            }
        }
        if ((threadIdx.x & 31) == 0) block.best_scores[k] = best;
    }
    choose_different(block, block.best_scores, block.refined, steps.n_searched);
    return shared.n_chosen;
}

// Note the result of a start for the end of its stage. The warp synchronises before.
__device__ void note(Shared& shared, int task, double found, const double* move) {
    __syncwarp();
    if ((threadIdx.x & 31) == 0) shared.found[task] = found;
    copy_by_lanes(shared.moves[task], move);
}

// Put the results of a stage into the list of the best. The block synchronises before and after.
__device__ void keep_results(Block& block, int n_tasks) {
    Shared& shared = block.shared;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int task = 0; task < n_tasks; ++task) {
            if (shared.found[task] >= 0.0) keep(shared.found[task], shared.moves[task], shared.scores, shared.kept, block.steps.n_refined);
        }
    }
    __syncthreads();
}

// The starts and their refinement: the best alignment of each warp is in its `best_pairs`, the warp in `shared.best_warp`.
__device__ void align_by_distance(Block& block, Team* teams, double start_score, double guide, double near) {
    Shared& shared = block.shared;
    Team& team = block.team;
    const Steps steps = block.steps;
    const int halvings = steps.coarse_halvings;
    double* move = team.move;
    const int n_fragments = best_fragments(block, guide, near);
    // Starts: the best shift, secondary structure, and matching fragments.
    begin_stage(shared);
    if (threadIdx.x == 0) {
        for (int place = 0; place < steps.n_refined; ++place) shared.scores[place] = -1.0;
        if (start_score >= 0.0) keep(start_score, teams[0].best_move, shared.scores, shared.kept, steps.n_refined);
    }
    const int n_starts = 2 + n_fragments;
    for (int task = next_task(shared); task < n_starts; task = next_task(shared)) {
        double found;
        int count;
        __syncwarp();
        if (task == 0) {
            count = thread_chains(block, guide, near);
            gather(block, block.pairs + block.m - count, count, 1);
            found = search(block, count, guide, near, kCoarse, halvings, kHopeless, move);
        } else if (task == 1) {
            if ((threadIdx.x & 31) < kMove) move[threadIdx.x & 31] = 0.0;
            found = realigned<true>(block, move, 1, guide, near, Weights(-1.0, 1.0, 0.0), &count);
        } else {
            copy_by_lanes(move, block.refined + shared.order[task - 2] * kMove);
            found = realigned<false>(block, move, 1, guide, near, Weights(kGap, 0.0, 1.0), &count);
        }
        note(shared, task, found, move);
        take(block, found, task, move, block.pairs + block.m - count, count);
    }
    keep_results(block, n_starts);
    choose(block, teams);
    // Each is refined once; secondary structure with distances is aligned under the best.
    const double best_start = teams[shared.best_warp].best;
    for (int i = threadIdx.x; i < steps.n_refined * kMove; i += THREADS) {
        shared.moves[i / kMove][i % kMove] = shared.kept[i / kMove][i % kMove];
    }
    if (threadIdx.x < kMove) shared.moves[steps.n_refined][threadIdx.x] = shared.kept[0][threadIdx.x];
    begin_stage(shared);
    const int n_short = steps.n_refined + 1;
    for (int task = next_task(shared); task < n_short; task = next_task(shared)) {
        const bool is_mixed = task == steps.n_refined;
        if (is_mixed ? !(best_start > 0.0) : shared.scores[task] < kHopelessStart * best_start) continue;
        int count;
        __syncwarp();
        copy_by_lanes(move, shared.moves[task]);
        const double found = is_mixed ? realigned<true>(block, move, 1, guide, near, Weights(-1.0, 0.5, 1.0), &count)
                                      : realigned<false>(block, move, 1, guide, near, Weights(kGap, 0.0, 1.0), &count);
        note(shared, task, found, move);
        take(block, found, n_starts + task, move, block.pairs + block.m - count, count);
    }
    __syncthreads();
    if (threadIdx.x < kMostKept) shared.scores[threadIdx.x] = -1.0;
    keep_results(block, n_short);
    choose(block, teams);
    // The best are refined until nothing is gained, with gaps that cost and with free ones.
    const double best_short = teams[shared.best_warp].best;
    begin_stage(shared);
    const int n_long = 2 * (steps.n_finished < steps.n_refined ? steps.n_finished : steps.n_refined);
    for (int task = next_task(shared); task < n_long; task = next_task(shared)) {
        double before = shared.scores[task / 2];
        if (before < kHopelessStart * best_short) continue;
        __syncwarp();
        copy_by_lanes(move, shared.kept[task / 2]);
        const Weights weights(task % 2 == 0 ? kGap : 0.0, 0.0, 1.0);
        for (int round = 0; round < kMaximumRefinements; ++round) {
            int count;
            const double found = realigned<false>(block, move, 1, guide, near, weights, &count);
            take(block, found, n_starts + n_short + task * kMaximumRefinements + round, move, block.pairs + block.m - count, count);
            if (fabs(found - before) < kMinimumGain * block.m) break;
            before = found;
        }
    }
    choose(block, teams);
}

// Refine the best alignment of all warps, with the scale of the TM-score. The block synchronises.
__device__ void refine_best(Block& block, Team* teams, double scale, double near) {
    Shared& shared = block.shared;
    Team& team = block.team;
    const int halvings = block.steps.coarse_halvings;
    double* move = team.move;
    const int best_warp = shared.best_warp, n_best = teams[best_warp].n_best, warp = threadIdx.x / 32;
    const Pair* best_pairs = block.best_pairs + static_cast<long long>(best_warp - warp) * block.m;
    place_y(block.placed_y, block.y, block.n, scale);
    begin_stage(shared);
    if (warp == 0) {
        gather(block, best_pairs, n_best, 1);
        const double found = search(block, n_best, scale, near, kCoarse, halvings, kHopeless, move);
        note(shared, 0, found, move);
        team.best = -1.0;
        __syncwarp();
        if (best_warp != 0) {
            take(block, found, -1, move, best_pairs, n_best);
        } else {
            if ((threadIdx.x & 31) == 0) team.best = found, team.best_order = -1;
            copy_by_lanes(team.best_move, move);
        }
    }
    __syncthreads();
    if (warp > 0 && (threadIdx.x & 31) == 0) team.best = -1.0;
    for (int task = next_task(shared); task < 2; task = next_task(shared)) {
        double before = shared.found[0];
        __syncwarp();
        copy_by_lanes(move, shared.moves[0]);
        const Weights weights(task == 0 ? kGap : 0.0, 0.0, 1.0);
        for (int round = 0; round < kMaximumRefinements; ++round) {
            int count;
            const double found = realigned<false>(block, move, 1, scale, near, weights, &count);
            take(block, found, task * kMaximumRefinements + round, move, block.pairs + block.m - count, count);
            if (fabs(found - before) < kMinimumGain * block.m) break;
            before = found;
        }
    }
    choose(block, teams);
}

// Keep the pairs under a superposition that lie within `limit`, in place; return their number. For one warp.
__device__ int near_enough(Block& block, Pair* pairs, int n, const double* move, double limit) {
    const int lane = threadIdx.x & 31;
    double r[kMove];
    for (int c = 0; c < kMove; ++c) r[c] = move[c];
    int kept = 0;
    for (int first = 0; first < n; first += 32) {
        const int k = first + lane;
        Pair pair{0, 0};
        bool is_kept = false;
        if (k < n) {
            pair = pairs[k];
            const double apart = apart_squared(
                r, block.x(0, pair.x), block.x(1, pair.x), block.x(2, pair.x), block.y(0, pair.y), block.y(1, pair.y), block.y(2, pair.y));
            is_kept = apart <= limit * limit;
        }
        const Word kept_here = __ballot_sync(kEveryLane, is_kept);
        if (is_kept) pairs[kept + __popc(kept_here & ((1u << lane) - 1))] = pair;
        kept += __popc(kept_here);
        __syncwarp();
    }
    return kept;
}

// The part of a workspace for `n` values, which ends where the next part begins.
template <class Value>
__device__ Value* part(unsigned char*& place, long long n) {
    Value* const values = reinterpret_cast<Value*>(place);
    place += n * static_cast<long long>(sizeof(Value));
    return values;
}

// Give a block, and a warp of it, their parts of a workspace from `place` on.
__device__ void divide_workspace(Block& block, unsigned char* place, int warp) {
    const int m = block.m, n = block.n, n_strips = (m + kStripRows - 1) / kStripRows;
    const Steps steps = block.steps;
    block.near_pairs = part<double>(place, 6LL * m * kWarps) + 6LL * m * warp;
    block.nearest = part<Long>(place, kMaximumCells);
    block.totals = part<double>(place, 2 * kMaximumFragments);
    block.fragment_moves = part<double>(place, 2 * kMaximumFragments * kMove);
    block.kept_scores = part<double>(place, steps.n_fragments);
    block.best_scores = part<double>(place, steps.n_fragments);
    block.kept_moves = part<double>(place, static_cast<long long>(steps.n_fragments) * kMove);
    block.refined = part<double>(place, static_cast<long long>(steps.n_fragments) * kMove);
    block.ranked = part<int>(place, (steps.n_fragments + 1LL) / 2 * 2);
    block.pairs = part<Pair>(place, static_cast<long long>(m) * kWarps) + static_cast<long long>(m) * warp;
    block.best_pairs = part<Pair>(place, static_cast<long long>(m) * kWarps) + static_cast<long long>(m) * warp;
    if (n_strips > 1) block.edges = part<Edge>(place, static_cast<long long>(n) * kWarps) + static_cast<long long>(n) * warp;
    const long long n_ways = static_cast<long long>(n_strips) * (n + 31) * 32;
    block.ways = part<unsigned short>(place, n_ways * kWarps) + n_ways * warp;
}

// Superpose all items. shared_bytes: dynamic shared memory for the warps and, if they fit, the residues of y.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    superpose_pairs(Chains chains, Found found, Steps steps, int n_items, int shared_bytes) {
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    __shared__ Shared shared;
    Team* const teams = reinterpret_cast<Team*>(dynamic_shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) shared.item = atomicAdd(found.next_item, 1);
        __syncthreads();
        if (shared.item >= n_items) return;
        const Item item = chains.items[shared.item];
        const int number = shared.item, m = item.m, n = item.n;
        unsigned char* place = found.workspace + static_cast<long long>(blockIdx.x) * found.workspace_bytes;
        const int parts = m / kSparseLength > 1 ? m / kSparseLength : 1, every = parts < kSparse ? parts : kSparse;
        const int some_n = (n + every - 1) / every;
        const long long residue_bytes = static_cast<long long>(n + some_n) * static_cast<long long>(sizeof(Residue));
        const bool is_shared = static_cast<long long>(kWarps * sizeof(Team)) + residue_bytes <= shared_bytes;
        Residue* const residues = is_shared ? reinterpret_cast<Residue*>(teams + kWarps) : part<Residue>(place, n + some_n);
        double* const columns = part<double>(place, 3LL * (m + n));
        Block block{shared, teams[warp], steps, Columns{columns, m, 1}, Columns{columns + 3 * m, n, 1}};
        block.m = m, block.n = n, block.every = every;
        block.states_x = chains.states + item.x, block.states_y = chains.states + item.y;
        divide_workspace(block, place, warp);
        Pair* const all_best = block.best_pairs - static_cast<long long>(m) * warp;
        // Coordinates on the grid of this pair.
        for (int i = threadIdx.x; i < 3 * (m + n); i += THREADS) {
            const double value = i < 3 * m ? chains.position[3 * item.x + i] : chains.position[3 * item.y + i - 3 * m];
            columns[i] = rint(value * item.units) / item.units;
        }
        block.placed_y = residues, block.sparse_y = residues + n;
        const double near = near_of(item.scale_x), guide = item.scale_x + kWider;
        place_y(residues, block.y, n, guide);
        place_y(residues + n, Columns{block.y.at, block.y.stride, every}, some_n, guide);
        if (warp == 0) {
            double squares = 0.0;
            for (int i = lane; i < 3 * m; i += 32) squares += columns[i] * columns[i];
            for (int distance = 16; distance > 0; distance >>= 1) squares += __shfl_xor_sync(kEveryLane, squares, distance);
            if (lane == 0) shared.spread = squares / m / 3.0;
        }
        // The given alignment, then fragments of both chains.
        if (lane == 0) block.team.best = -1.0, block.team.best_order = 1 << 30, block.team.n_best = 0;
        if (lane < kMove) block.team.best_move[lane] = lane % 4 == 0 && lane < 9 ? 1.0 : 0.0;
        begin_stage(shared);
        if (warp == 0 && item.n_start) {
            const Pair* start = chains.start_pairs + item.start;
            gather(block, start, item.n_start, 1);
            const double score = search(block, item.n_start, guide, near, kCoarse, steps.coarse_halvings, kHopeless, block.team.move);
            take(block, score, -1, block.team.move, start, item.n_start);
        }
        if (item.is_aligned) {
            find_nearest(block);
            const int n_short = (fragments_of(0, m, n).n + kBatch - 1) / kBatch, n_long = (fragments_of(1, m, n).n + kBatch - 1) / kBatch;
            for (int task = next_task(shared); task < n_short + n_long; task = next_task(shared)) {
                superpose_fragments(block, task < n_short ? 0 : 1, (task < n_short ? task : task - n_short) * kBatch, guide);
            }
            __syncthreads();
            align_by_distance(block, teams, teams[0].best, guide, near);
            refine_best(block, teams, item.scale_x, near);
        } else {
            choose(block, teams);
        }
        // Finally, more fragments; and pairs that are far apart are removed. Two warps score what remains by m and by n.
        const Team& best = teams[shared.best_warp];
        Pair* const pairs = all_best + static_cast<long long>(m) * shared.best_warp;
        double* const move = block.team.move;
        if (warp == 0) {
            copy_by_lanes(move, best.best_move);
            gather(block, pairs, best.n_best, 1);
            search(block, best.n_best, guide, near, steps.last_step, kHalvings, kHopeless, move);
            const int kept = near_enough(block, pairs, best.n_best, move, item.limit);
            if (lane == 0) shared.count = kept;
        }
        __syncthreads();
        const int kept = shared.count;
        for (int by = warp; by < 2; by += kWarps) {
            if (by == 1 && n == m) continue;
            const double scale = by == 0 ? item.scale_x : item.scale_y;
            gather(block, pairs, kept, 1);
            const double score = search(block, kept, scale, near_of(scale), steps.last_step, kHalvings, kHopeless, move);
            if (lane == 0) shared.final_score[by] = score;
            if (by == 0 && lane < kMove) found.moves[number * kMove + lane] = move[lane];
        }
        for (int k = threadIdx.x; k < kept; k += THREADS) found.pairs[item.out + k] = pairs[k];
        __syncthreads();
        if (threadIdx.x == 0) {
            const double by_x = shared.final_score[0] / m;
            found.scores[2 * number] = by_x, found.scores[2 * number + 1] = n != m ? shared.final_score[1] / n : by_x;
            found.counts[number] = kept;
        }
    }
}
