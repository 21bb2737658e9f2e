// The superposition of pairs of chains that has the greatest TM-score (Zhang & Skolnick, Proteins 57, 2004, 702-710): the search of
// kernels/cpu/superposition.py, bit for bit, which follows TM-align (Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309).
//
// Superpose fragments of an alignment, then the pairs that are near, realign by the distances, repeat. A block takes pairs of chains from a
// common counter, the costliest first, independently of other blocks. Sixteen superpositions are computed together; all threads compute
// their sums, shared among the superpositions that continue (least_squares.cuh). The whole block computes an alignment; a warp computes an
// alignment of every fourth residue, by which fragments of chains are ranked (distance_alignment.cuh). Thread 0 decides on the next step,
// as the CPU does, so that all threads of a block take the same branch. x is the shorter chain, or as long as y.

// What a launch is compiled for; kernels/cuda/superposition.py sets it.
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
constexpr int kTable = 2048, kMaximumFragments = 600, kSparse = 4, kSparseLength = 40;
constexpr int kMostKept = 16, kMostSparse = 64;  // maximum numbers of stored beginnings, and of sparsely refined fragments

// A pair of chains: offsets of its columns (in numbers), its initial alignment and its pairs.
struct Item {
    long long x, y, start, out;
    int m, n, n_start, is_aligned;
    double scale_x, scale_y, limit;  // d0 by m and by n; Å beyond which residues are not paired in the result
};

// How far a search goes (`SearchSteps`).
struct Steps {
    int n_fragments, n_sparse, n_searched, n_refined, n_finished, coarse_halvings, last_step;
};

// All pairs of chains: coordinates axis by axis, chain after chain, and a third as many states.
struct Chains {
    const Item* items;
    const double* position;
    const unsigned char* states;
    const Pair* start_pairs;
};

// Of each item: its superposition, both scores and how many pairs; and its pairs.
struct Found {
    double* moves;
    double* scores;
    int* counts;
    Pair* pairs;
    unsigned char* workspace;  // of each block
    long long workspace_bytes;
    int* next_item;
};

// What a block shares.
struct Shared {
    Runs runs;
    double move[kMove], best_move[kMove], own_move[kMove];
    double scores[kMostKept], moves[kMostKept][kMove];
    double some_scores[kMostKept], some_moves[kMostKept][kMove];
    double greatest;
    int begin[kBatch], fresh[kBatch], rounds[kBatch];  // pairs of new fragments; 0 for other fragments
    int n_running, count, chosen, item;
    int order[kMostSparse];
    long long seen[kTable];
};

// A block at work on a pair of chains, and its workspace in device memory.
struct Block {
    Shared& shared;
    Steps steps;
    Columns x, y;
    int m = 0, n = 0;
    const unsigned char *states_x = nullptr, *states_y = nullptr;
    double* near_pairs = nullptr;      // (2, 3, m): those that are searched
    double* totals = nullptr;          // (2, kMaximumFragments)
    double* fragment_moves = nullptr;  // (2, kMaximumFragments, 12)
    double* kept_scores = nullptr;     // (n_fragments): of the fragments that fit best
    double* kept_moves = nullptr;      // (n_fragments, 12)
    double* best_scores = nullptr;     // (n_fragments)
    double* refined = nullptr;         // (n_fragments, 12)
    Pair *pairs = nullptr, *best_pairs = nullptr;
    unsigned char* ways = nullptr;
    unsigned char* rows = nullptr;  // of alignments: y, then those of the block or of its warps
};

__device__ double near_of(double scale) {
    const double above = scale > 4.5 ? scale : 4.5;
    return above < 8.0 ? above : 8.0;
}

__device__ void copy(double* to, const double* from) {
    for (int c = 0; c < kMove; ++c) to[c] = from[c];
}

// Whether a selection was not met before; notes it while there is workspace.
__device__ bool is_new(long long mark, long long* seen) {
    int place = static_cast<int>((mark ^ (mark >> 29) ^ (mark >> 47)) & (kTable - 1));
    for (int step = 0; step < 16; ++step) {
        if (seen[place] == mark) return false;
        if (seen[place] == 0) {
            seen[place] = mark;
            return true;
        }
        place = (place + 1) & (kTable - 1);
    }
    return true;
}

// The superposition of the first n pairs that were gathered with the greatest sum of scores, to `best`; the sum is returned. All of it as
// `_search` of kernels/cpu/superposition.py; the block meets before and after.
__device__ __noinline__ double search(Block& block, int n, double scale, double near, int step, int halvings, double hopeless, double* best) {
    Shared& shared = block.shared;
    Runs& runs = shared.runs;
    __syncthreads();
    if (n == 0) {
        if (threadIdx.x == 0) {
            for (int c = 0; c < kMove; ++c) best[c] = c == 0 || c == 4 || c == 8 ? 1.0 : 0.0;
        }
        __syncthreads();
        return 0.0;
    }
    const Columns x{block.near_pairs, block.m, 1}, y{block.near_pairs + 3 * block.m, block.m, 1};
    for (int i = threadIdx.x; i < kTable; i += THREADS) shared.seen[i] = 0;
    if (threadIdx.x < kBatch) runs.first_x[threadIdx.x] = runs.first_y[threadIdx.x] = runs.lengths[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        shared.greatest = -1.0;
        shared.n_running = 0;
    }
    const int least = halvings == kHalvings ? 0 : n >> (halvings - 1);
    const int smallest = kMinimumPiece < n ? kMinimumPiece : n, shortest = smallest > least ? smallest : least;
    int halving = 0, start = 0, length = n;  // thread 0 knows what comes next
    bool is_more = true;
    __syncthreads();
    while (true) {
        if (threadIdx.x == 0) {
            for (int k = 0; k < kBatch; ++k) {
                shared.fresh[k] = 0;
                if (!is_more || runs.lengths[k] != 0) continue;
                shared.begin[k] = start, shared.fresh[k] = length;
                runs.lengths[k] = n, shared.rounds[k] = 0, runs.limits[k] = near - 1.0;
                ++shared.n_running;
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
        }
        __syncthreads();
        if (shared.n_running == 0) break;
        moments(runs, x, y, shared.begin, shared.begin, shared.fresh);
        superpositions(runs);
        near_moments(runs, x, y, scale);
        if (threadIdx.x == 0) {
            for (int k = 0; k < kBatch; ++k) {
                if (runs.lengths[k] == 0) continue;
                if (runs.totals[k] > shared.greatest) {
                    shared.greatest = runs.totals[k];
                    for (int c = 0; c < kMove; ++c) best[c] = runs.moves[c][k];
                }
                ++shared.rounds[k];
                runs.limits[k] = near + 1.0;
                const bool is_hopeless = shared.rounds[k] >= kHopelessRounds && runs.totals[k] < hopeless * shared.greatest;
                // Of the same pairs the sums are the same to the last bit.
                const long long mark = (__double_as_longlong(runs.sums[6][k])
                    ^ static_cast<long long>(static_cast<Long>(__double_as_longlong(runs.sums[15][k])) << 1)) | 1;
                if (shared.rounds[k] > kRounds || is_hopeless || !is_new(mark, shared.seen)) {
                    runs.lengths[k] = 0;
                    --shared.n_running;
                }
            }
        }
        __syncthreads();
    }
    const double greatest = shared.greatest;
    __syncthreads();
    return greatest;
}

// The coordinates of pairs of every so manieth residue, gathered for a search. The block meets before; a search meets after.
__device__ void gather(Block& block, const Pair* pairs, int n, int every) {
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += THREADS) {
        const Pair pair = pairs[k];
        for (int axis = 0; axis < 3; ++axis) {
            block.near_pairs[axis * block.m + k] = block.x(axis, pair.x * every);
            block.near_pairs[(3 + axis) * block.m + k] = block.y(axis, pair.y * every);
        }
    }
}

// The best shift of one chain along the other without gaps: pairs at the end of `pairs`, as many as are returned. The block meets.
__device__ __noinline__ int thread_chains(Block& block, double scale, double near) {
    Shared& shared = block.shared;
    Runs& runs = shared.runs;
    const int m = block.m, n = block.n, k = threadIdx.x;
    const int half = m / 2, five = m < 5 ? m : 5, shortest = half > five ? half : five;
    __syncthreads();
    if (k < kBatch) runs.limits[k] = near;
    if (k == 0) {
        shared.greatest = -1.0;
        shared.chosen = 0;
    }
    for (int shift = shortest - m; shift < n - shortest + 1; shift += kBatch) {
        __syncthreads();
        if (k < kBatch) {
            const int first = -shift - k > 0 ? -shift - k : 0, last = n - shift - k < m ? n - shift - k : m;
            runs.first_x[k] = first, runs.first_y[k] = first + shift + k;
            runs.lengths[k] = shift + k <= n - shortest ? last - first : 0;
        }
        __syncthreads();
        moments(runs, block.x, block.y, runs.first_x, runs.first_y, runs.lengths);
        for (int round = 0; round < 2; ++round) {
            superpositions(runs);
            near_moments(runs, block.x, block.y, scale);
            if (k == 0) {
                for (int run = 0; run < kBatch; ++run) {
                    if (runs.lengths[run] && runs.totals[run] > shared.greatest) {
                        shared.greatest = runs.totals[run];
                        shared.chosen = shift + run;
                    }
                }
                for (int run = 0; run < kBatch; ++run) {
                    if (runs.lengths[run] && !(runs.totals[run] >= kHopeless * shared.greatest)) runs.lengths[run] = 0;
                }
            }
            __syncthreads();
        }
    }
    __syncthreads();
    const int chosen = shared.chosen, first = -chosen > 0 ? -chosen : 0, last = m < n - chosen ? m : n - chosen;
    for (int i = first + k; i < last; i += THREADS) block.pairs[m - last + i] = Pair{i, i + chosen};
    __syncthreads();
    return last - first;
}

// How many of n numbers come before the k-th: the greater ones, and of equal ones those before it.
__device__ int rank_of(const double* values, int n, int k) {
    const double own = values[k];
    int rank = 0;
    for (int other = 0; other < n; ++other) rank += values[other] > own || (values[other] == own && other < k);
    return rank;
}

// Write the best superpositions of short and of long fragments of both chains to `kept_moves` and `kept_scores`. The block synchronises.
__device__ __noinline__ void fragments(Block& block, double scale) {
    Shared& shared = block.shared;
    Runs& runs = shared.runs;
    const int m = block.m, n = block.n, k = threadIdx.x, half = block.steps.n_fragments / 2;
    __syncthreads();
    if (k < kBatch) runs.limits[k] = kFarthest;
    for (int i = k; i < block.steps.n_fragments; i += THREADS) block.kept_scores[i] = -1.0;
    for (int kind = 0; kind < 2; ++kind) {
        const int longer = m / 2 > 30 ? m / 2 : 30, wanted = kind == 0 ? 20 : longer, length = m < wanted ? m : wanted;
        int jump = length / 3 > 5 ? length / 3 : 5;
        int places_x = (m - length) / jump + 1, places_y = (n - length) / jump + 1;
        while (places_x * places_y > kMaximumFragments) {
            jump += jump / 2;
            places_x = (m - length) / jump + 1, places_y = (n - length) / jump + 1;
        }
        const int n_places = places_x * places_y;
        double* totals = block.totals + kind * kMaximumFragments;
        double* moves = block.fragment_moves + kind * kMaximumFragments * kMove;
        for (int begin = 0; begin < n_places; begin += kBatch) {
            __syncthreads();
            if (k < kBatch) {
                runs.lengths[k] = begin + k < n_places ? length : 0;
                runs.first_x[k] = (begin + k) / places_y * jump, runs.first_y[k] = (begin + k) % places_y * jump;
            }
            __syncthreads();
            moments(runs, block.x, block.y, runs.first_x, runs.first_y, runs.lengths);
            superpositions(runs);
            near_moments(runs, block.x, block.y, scale);
            for (int i = k; i < kBatch * kMove; i += THREADS) {
                if (runs.lengths[i / kMove]) moves[begin * kMove + i] = runs.moves[i % kMove][i / kMove];
            }
            if (k < kBatch && runs.lengths[k]) totals[begin + k] = runs.totals[k] / length;
        }
        __syncthreads();
        for (int i = k; i < n_places; i += THREADS) {
            const int rank = rank_of(totals, n_places, i);
            if (rank >= half) continue;
            block.kept_scores[kind * half + rank] = totals[i];
            copy(block.kept_moves + (kind * half + rank) * kMove, moves + i * kMove);
        }
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

// Align anew under a superposition, search what is aligned, and replace `move` by what is found; y was placed. The sum of scores is
// returned; the pairs, `count` of them, are at the end of those of the m residues. Of every so manieth residue. The block meets.
__device__ __noinline__ double realigned(
    Block& block, double* move, int every, double guide, double gap, double by_states, double by_distance, int* count) {
    const int m = (block.m + every - 1) / every, n = (block.n + every - 1) / every;
    const Columns x{block.x.at, block.x.stride, every};
    Residue* placed_y = reinterpret_cast<Residue*>(block.rows);
    const Rows rows = rows_at(block.rows + n * sizeof(Residue), m);
    place_x<BlockTeam>(rows.x, x, m, move, guide);
    align<BlockTeam, true>(rows, placed_y, block.states_x, block.states_y, m, n, Weights(gap, by_states, by_distance), block.ways);
    if (threadIdx.x < 32) {
        const int found = trace(block.ways, m, n, block.pairs);
        if (threadIdx.x == 0) block.shared.count = found;
    }
    __syncthreads();
    *count = block.shared.count;
    gather(block, block.pairs + m - *count, *count, every);
    return search(block, *count, guide, near_of(guide - kWider), kCoarse, block.steps.coarse_halvings, kHopeless, move);
}

// Write the fragments of both chains, ordered by a sparse alignment, to `shared.order`, and their superpositions to `refined`; return their
// number. The block synchronises.
__device__ int best_fragments(Block& block, double guide) {
    Shared& shared = block.shared;
    const Steps steps = block.steps;
    const int parts = block.m / kSparseLength > 1 ? block.m / kSparseLength : 1, every = parts < kSparse ? parts : kSparse;
    const int m = (block.m + every - 1) / every, n = (block.n + every - 1) / every, warp = threadIdx.x / 32;
    fragments(block, guide);
    const Columns x{block.x.at, block.x.stride, every}, y{block.y.at, block.y.stride, every};
    Residue* placed_y = reinterpret_cast<Residue*>(block.rows);
    place_y(placed_y, y, n, guide);
    const int bytes = (bytes_of_rows(m) + 15) / 16 * 16;
    const Rows rows = rows_at(block.rows + n * sizeof(Residue) + warp * bytes, m);
    for (int k = warp; k < steps.n_fragments; k += kWarps) {
        if (!(block.kept_scores[k] > 0.0)) continue;
        place_x<WarpTeam>(rows.x, x, m, block.kept_moves + k * kMove, guide);
        const int score = align<WarpTeam, false>(rows, placed_y, nullptr, nullptr, m, n, Weights(kGap, 0.0, 1.0), nullptr);
        __syncwarp();
        if (threadIdx.x % 32 == 0) block.kept_scores[k] = score;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < steps.n_fragments; k += THREADS) {
        const int rank = rank_of(block.kept_scores, steps.n_fragments, k);
        if (rank < steps.n_sparse) shared.order[rank] = k;
        block.best_scores[k] = 0.0;
    }
    __syncthreads();
    const int n_sparse = steps.n_sparse < steps.n_fragments ? steps.n_sparse : steps.n_fragments;
    for (int rank = 0; rank < n_sparse; ++rank) {
        const int k = shared.order[rank];
        double* move = block.kept_moves + k * kMove;
        for (int round = 0; round < (block.kept_scores[k] > 0.0 ? kSparseRefinements : 0); ++round) {
            int count;
            const double found = realigned(block, move, every, guide, kGap, 0.0, 1.0, &count);
            if (threadIdx.x == 0 && found > block.best_scores[k]) {
                block.best_scores[k] = found;
                copy(block.refined + k * kMove, move);
            }
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < steps.n_fragments; k += THREADS) {
        const int rank = rank_of(block.best_scores, steps.n_fragments, k);
        if (rank < steps.n_searched) shared.order[rank] = k;
    }
    __syncthreads();
    return steps.n_searched < steps.n_fragments ? steps.n_searched : steps.n_fragments;
}

// Take an alignment and its superposition as the best so far. The block meets before; a search meets after.
__device__ void take(Block& block, const double* move, int count) {
    __syncthreads();
    if (threadIdx.x == 0) copy(block.shared.best_move, move);
    for (int k = threadIdx.x; k < count; k += THREADS) block.best_pairs[k] = block.pairs[block.m - count + k];
}

// The beginnings, and their refinement: the alignment that is found is in `best_pairs`, as many pairs as are returned.
__device__ int aligned_by_distance(Block& block, int n_best, double best, double guide, double near) {
    Shared& shared = block.shared;
    const Steps steps = block.steps;
    const int m = block.m, halvings = steps.coarse_halvings, k = threadIdx.x;
    Residue* placed_y = reinterpret_cast<Residue*>(block.rows);
    double* move = shared.own_move;
    __syncthreads();
    if (k == 0) {
        for (int place = 0; place < steps.n_refined; ++place) shared.scores[place] = -1.0;
        if (n_best) keep(best, shared.best_move, shared.scores, shared.moves, steps.n_refined);
    }
    const int n_fragments = best_fragments(block, guide);
    int order[kMostKept];
    for (int place = 0; place < n_fragments; ++place) order[place] = shared.order[place];
    place_y(placed_y, block.y, block.n, guide);
    // Beginnings: the given alignment, the best shift, secondary structure, secondary structure with distances, and matching fragments.
    for (int kind = 0; kind < 3 + steps.n_searched; ++kind) {
        double found;
        int count;
        __syncthreads();
        if (kind == 0) {
            count = thread_chains(block, guide, near);
            gather(block, block.pairs + m - count, count, 1);
            found = search(block, count, guide, near, kCoarse, halvings, kHopeless, move);
        } else if (kind == 1) {
            if (k == 0) copy(move, shared.best_move);
            found = realigned(block, move, 1, guide, -1.0, 1.0, 0.0, &count);
        } else if (kind < 2 + steps.n_searched) {
            if (kind - 2 >= n_fragments || !(block.best_scores[order[kind - 2]] > 0.0)) continue;
            if (k == 0) copy(move, block.refined + order[kind - 2] * kMove);
            found = realigned(block, move, 1, guide, kGap, 0.0, 1.0, &count);
        } else {
            if (!(best > 0.0)) continue;
            if (k == 0) copy(move, shared.moves[0]);
            found = realigned(block, move, 1, guide, -1.0, 0.5, 1.0, &count);
        }
        if (k == 0) keep(found, move, shared.scores, shared.moves, steps.n_refined);
        if (found > best) {
            best = found, n_best = count;
            take(block, move, count);
        }
    }
    // All are refined once, then the best until nothing is gained, with gaps that cost and with free ones.
    __syncthreads();
    if (k == 0) {
        for (int place = 0; place < steps.n_refined; ++place) {
            shared.some_scores[place] = shared.scores[place];
            copy(shared.some_moves[place], shared.moves[place]);
            shared.scores[place] = -1.0;
        }
    }
    for (int kind = 0; kind < steps.n_refined + 2 * steps.n_finished; ++kind) {
        __syncthreads();
        const bool is_short = kind < steps.n_refined;
        const int chosen = is_short ? kind : (kind - steps.n_refined) / 2;
        if (chosen >= steps.n_refined) continue;
        double before = is_short ? shared.some_scores[chosen] : shared.scores[chosen];
        if (k == 0) copy(move, is_short ? shared.some_moves[chosen] : shared.moves[chosen]);
        const double gap = is_short || (kind - steps.n_refined) % 2 == 0 ? kGap : 0.0;
        if (before < kHopelessStart * best) continue;
        for (int round = 0; round < (is_short ? 1 : kMaximumRefinements); ++round) {
            int count;
            const double found = realigned(block, move, 1, guide, gap, 0.0, 1.0, &count);
            if (k == 0 && is_short) keep(found, move, shared.scores, shared.moves, steps.n_refined);
            if (found > best) {
                best = found, n_best = count;
                take(block, move, count);
            }
            if (fabs(found - before) < kMinimumGain * m) break;
            before = found;
        }
    }
    return n_best;
}

// The pairs under the best superposition that lie within `limit`, in place; how many they are. The block meets.
__device__ int near_enough(Block& block, int n_best, double limit) {
    __syncthreads();
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        double r[kMove];
        for (int c = 0; c < kMove; ++c) r[c] = block.shared.best_move[c];
        int kept = 0;
        for (int first = 0; first < n_best; first += 32) {
            const int k = first + lane;
            Pair pair{0, 0};
            bool is_kept = false;
            if (k < n_best) {
                pair = block.best_pairs[k];
                const double apart = apart_squared(
                    r, block.x(0, pair.x), block.x(1, pair.x), block.x(2, pair.x), block.y(0, pair.y), block.y(1, pair.y), block.y(2, pair.y));
                is_kept = apart <= limit * limit;
            }
            const Word kept_here = __ballot_sync(kEveryLane, is_kept);
            if (is_kept) block.best_pairs[kept + __popc(kept_here & ((1u << lane) - 1))] = pair;
            kept += __popc(kept_here);
            __syncwarp();
        }
        if (lane == 0) block.shared.count = kept;
    }
    __syncthreads();
    return block.shared.count;
}

// Superpose all items. longest: residues of the longest x; shared_bytes: what a block has for the rows of alignments.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    superpose_pairs(Chains chains, Found found, Steps steps, int n_items, int longest, int shared_bytes) {
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    __shared__ Shared shared;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) shared.item = atomicAdd(found.next_item, 1);
        __syncthreads();
        if (shared.item >= n_items) return;
        const Item item = chains.items[shared.item];
        const int number = shared.item, m = item.m, n = item.n;
        unsigned char* workspace = found.workspace + static_cast<long long>(blockIdx.x) * found.workspace_bytes;
        double* numbers = reinterpret_cast<double*>(workspace);
        Block block{shared, steps, Columns{chains.position + item.x, m, 1}, Columns{chains.position + item.y, n, 1}};
        block.m = m, block.n = n;
        block.states_x = chains.states + item.x / 3, block.states_y = chains.states + item.y / 3;
        block.best_pairs = found.pairs + item.out;
        block.near_pairs = numbers, numbers += 6 * longest;
        block.totals = numbers, numbers += 2 * kMaximumFragments;
        block.fragment_moves = numbers, numbers += 2 * kMaximumFragments * kMove;
        block.kept_scores = numbers, numbers += steps.n_fragments;
        block.best_scores = numbers, numbers += steps.n_fragments;
        block.kept_moves = numbers, numbers += steps.n_fragments * kMove;
        block.refined = numbers, numbers += steps.n_fragments * kMove;
        block.pairs = reinterpret_cast<Pair*>(numbers), numbers += longest;
        // Where the rows of its alignments do not fit into shared memory, they are in the block's workspace.
        unsigned char* behind = reinterpret_cast<unsigned char*>(numbers);
        const int parts = m / kSparseLength > 1 ? m / kSparseLength : 1, every = parts < kSparse ? parts : kSparse;
        const int some_m = (m + every - 1) / every, some_n = (n + every - 1) / every;
        const int fine = n * static_cast<int>(sizeof(Residue)) + bytes_of_rows(m);
        const int sparse = some_n * static_cast<int>(sizeof(Residue)) + kWarps * ((bytes_of_rows(some_m) + 15) / 16 * 16);
        const int needed = ((fine > sparse ? fine : sparse) + 15) / 16 * 16;
        block.rows = needed <= shared_bytes ? dynamic_shared : behind;
        block.ways = needed <= shared_bytes ? behind : behind + needed;
        if (threadIdx.x < kMove) shared.best_move[threadIdx.x] = threadIdx.x % 4 == 0 && threadIdx.x < 9 ? 1.0 : 0.0;
        const double near = near_of(item.scale_x), guide = item.scale_x + kWider;
        double best = -1.0;
        int n_best = item.n_start;
        if (n_best) {
            const Pair* start = chains.start_pairs + item.start;
            for (int k = threadIdx.x; k < n_best; k += THREADS) block.best_pairs[k] = start[k];
            gather(block, start, n_best, 1);
            best = search(block, n_best, guide, near, kCoarse, steps.coarse_halvings, kHopeless, shared.best_move);
        }
        if (item.is_aligned) n_best = aligned_by_distance(block, n_best, best, guide, near);
        // Finally, more fragments; and pairs that are far apart are removed.
        gather(block, block.best_pairs, n_best, 1);
        search(block, n_best, guide, near, steps.last_step, kHalvings, kHopeless, shared.best_move);
        const int kept = near_enough(block, n_best, item.limit);
        gather(block, block.best_pairs, kept, 1);
        const double by_x = search(block, kept, item.scale_x, near, steps.last_step, kHalvings, kHopeless, shared.best_move) / m;
        double by_y = by_x;
        if (n != m) {
            by_y = search(block, kept, item.scale_y, near_of(item.scale_y), steps.last_step, kHalvings, kHopeless, shared.own_move) / n;
        }
        if (threadIdx.x < kMove) found.moves[number * kMove + threadIdx.x] = shared.best_move[threadIdx.x];
        if (threadIdx.x == 0) {
            found.scores[2 * number] = by_x, found.scores[2 * number + 1] = by_y;
            found.counts[number] = kept;
        }
    }
}
