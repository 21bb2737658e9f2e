// Superposition of pairs of chains with the highest TM-score (Zhang & Skolnick, Proteins 57, 2004, 702-710). The search is bit-identical to
// that of kernels/cpu/superposition.py, which follows TM-align (Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309).
//
// The search superposes fragments of an alignment, then the pairs that are near, realigns by the distances, and repeats this. A block takes
// pairs of chains from a common counter, beginning with the costliest, independently of other blocks. The starts of a pair do not depend on
// each other: each warp of the block takes one after another, aligns (distance_alignment.cuh), superposes in batches of sixteen
// (least_squares.cuh) and writes the result to the position of the start. Between the stages of a pair, thread 0 puts the results in order,
// as the CPU does. x is the shorter chain, or as long as y.

// Macros of a launch, set by kernels/cuda/superposition.py.
#ifndef THREADS
#define THREADS 128
#define RESIDENT 4
#endif

#include "superposed_fragments.cuh"

// A warp finds the best shift of one chain along the other without gaps, and writes its pairs to the end of `pairs`; return their number.
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

// Insert a superposition into the sorted list of the best, unless one with the same score is present. For one thread.
__device__ __noinline__ void keep(double found, const double* move, double* scores, double (*moves)[kMove], int n) {
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

// A warp realigns every n-th residue under a superposition, searches the superposition of the aligned pairs, and replaces `move` by the
// result. Returns the sum of scores; the `count` pairs are at the end of the space for m pairs.
template <bool kHasStates>
__device__ __noinline__ double realigned(
    Block& block, double* move, int every, double guide, double near, const Weights& weights, int* count) {
    const int m = (block.m + every - 1) / every, n = (block.n + every - 1) / every;
    const ToAlign chains{
        Columns{block.x.at, block.x.stride, every}, block.moved_x, every == 1 ? block.placed_y : block.sparse_y, block.states_x, block.states_y, m, n};
    __syncwarp();
    align<true, kHasStates>(chains, move, guide, weights, block.ways, block.edges);
    *count = trace(block.ways, m, n, block.pairs);
    gather(block, block.pairs + m - *count, *count, every);
    return search(block, *count, guide, near, kCoarse, block.steps.coarse_halvings, kHopeless, move);
}

// Store the alignment of a warp, at the end of its pairs, if it is the best of the warp so far. order: lower for starts that the CPU tries
// earlier.
__device__ __noinline__ void take(Block& block, double found, int order, const double* move, const Pair* pairs, int count) {
    Team& team = block.team;
    if (!(found > team.best || (found == team.best && order < team.best_order))) return;
    __syncwarp();
    copy_by_lanes(team.best_move, move);
    if ((threadIdx.x & 31) == 0) team.best = found, team.best_order = order, team.n_best = count;
    for (int k = threadIdx.x & 31; k < count; k += 32) block.best_pairs[k] = pairs[k];
    __syncwarp();
}

// Choose the best alignment of all warps, the first of several with equal scores. The block synchronises before and after.
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
// superpositions to `refined`; return their number. The block synchronises.
__device__ int best_fragments(Block& block, double guide, double near) {
    Shared& shared = block.shared;
    const Steps steps = block.steps;
    const int every = block.every, m = (block.m + every - 1) / every, n = (block.n + every - 1) / every;
    const Weights weights(kGap, 0.0, 1.0);
    const ToAlign chains{Columns{block.x.at, block.x.stride, every}, block.moved_x, block.sparse_y, nullptr, nullptr, m, n};
    keep_fragments(block);
    begin_stage(shared);
    for (int k = next_task(shared); k < steps.n_fragments; k = next_task(shared)) {
        if (!(block.kept_scores[k] > 0.0)) continue;
        const int score = align<false, false>(chains, block.kept_moves + k * kMove, guide, weights, nullptr, block.edges);
        if ((threadIdx.x & 31) == 0) block.kept_scores[k] = score;
    }
    choose_different(block, block.kept_scores, block.kept_moves, steps.n_sparse);
    for (int k = threadIdx.x; k < steps.n_fragments; k += THREADS) block.best_scores[k] = 0.0;
    const double limit = static_cast<double>(steps.minimum_sparse_percent) * kUnit * m;
    const bool are_unlike = shared.n_chosen > 0 && 100.0 * block.kept_scores[shared.order[0]] < limit;
    const int n_sparse = are_unlike && steps.n_sparse_if_unlike < shared.n_chosen ? steps.n_sparse_if_unlike : shared.n_chosen;
    begin_stage(shared);
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
    choose_different(block, block.best_scores, block.refined, are_unlike ? steps.n_searched_if_unlike : steps.n_searched);
    return shared.n_chosen;
}

// Record the result of a start until the end of its stage. The warp synchronises before.
__device__ void note(Shared& shared, int task, double found, const double* move) {
    __syncwarp();
    if ((threadIdx.x & 31) == 0) shared.found[task] = found;
    copy_by_lanes(shared.moves[task], move);
}

// Insert the results of a stage into the list of the best. The block synchronises before and after.
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

// Try and refine the starts; of unlike chains, refine the best start only. Return whether the chains are alike. The best alignment of each
// warp is in its `best_pairs`, and the number of the best warp in `shared.best_warp`.
__device__ bool align_by_distance(Block& block, Team* teams, double start_score, double guide, double near) {
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
    // Refine each start once, and align by secondary structure and distances under the best.
    const double best_start = teams[shared.best_warp].best;
    const bool are_alike = 100.0 * best_start >= static_cast<double>(steps.minimum_start_percent) * block.m;
    for (int i = threadIdx.x; i < steps.n_refined * kMove; i += THREADS) {
        shared.moves[i / kMove][i % kMove] = shared.kept[i / kMove][i % kMove];
    }
    if (threadIdx.x < kMove) shared.moves[steps.n_refined][threadIdx.x] = shared.kept[0][threadIdx.x];
    begin_stage(shared);
    const int n_short = are_alike ? steps.n_refined + 1 : 0;
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
    if (are_alike && threadIdx.x < kMostKept) shared.scores[threadIdx.x] = -1.0;
    keep_results(block, n_short);
    choose(block, teams);
    // Refine the best until the score no longer rises, with and without gap costs.
    const double best_short = teams[shared.best_warp].best;
    begin_stage(shared);
    const int n_long = are_alike ? 2 * (steps.n_finished < steps.n_refined ? steps.n_finished : steps.n_refined) : 2;
    for (int task = next_task(shared); task < n_long; task = next_task(shared)) {
        if (task == 0 && !are_alike) continue;
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
    return are_alike;
}

// Refine the best alignment of all warps, with the scale of the TM-score; of unlike chains, only without gap costs. The block synchronises.
__device__ void refine_best(Block& block, Team* teams, double scale, double near, bool are_alike) {
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
        if (task == 0 && !are_alike) continue;
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

// Retain, in place, the pairs that are within `limit` under a superposition; return their number. For one warp.
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

// Return the section of a workspace for `n` values, and advance to the next section.
template <class Value>
__device__ Value* part(unsigned char*& place, long long n) {
    Value* const values = reinterpret_cast<Value*>(place);
    place += n * static_cast<long long>(sizeof(Value));
    return values;
}

// Assign sections of a workspace, from `place` on, to a block and to one of its warps.
__device__ void divide_workspace(Block& block, unsigned char* place, int warp) {
    const int m = block.m, n = block.n, n_strips = (m + kStripRows - 1) / kStripRows;
    const Steps steps = block.steps;
    const long long moved = m + 32LL * n_strips + 32;
    block.moved_x = part<Residue>(place, moved * kWarps) + moved * warp;
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
        double* const columns = part<double>(place, 3LL * (m + n) + ((m + n) & 1));  // residues follow, which are aligned to 16 bytes
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
        bool are_alike = true;
        if (item.is_aligned) {
            find_nearest(block);
            const int n_short = (fragments_of(0, m, n).n + kBatch - 1) / kBatch, n_long = (fragments_of(1, m, n).n + kBatch - 1) / kBatch;
            for (int task = next_task(shared); task < n_short + n_long; task = next_task(shared)) {
                superpose_fragments(block, task < n_short ? 0 : 1, (task < n_short ? task : task - n_short) * kBatch, guide);
            }
            __syncthreads();
            are_alike = align_by_distance(block, teams, teams[0].best, guide, near);
            refine_best(block, teams, item.scale_x, near, are_alike);
        } else {
            choose(block, teams);
        }
        // Finally, search with more fragments, and remove distant pairs. Two warps score the remaining pairs by m and by n.
        const int halvings = are_alike ? kHalvings : steps.coarse_halvings;
        const Team& best = teams[shared.best_warp];
        Pair* const pairs = all_best + static_cast<long long>(m) * shared.best_warp;
        double* const move = block.team.move;
        if (warp == 0) {
            copy_by_lanes(move, best.best_move);
            gather(block, pairs, best.n_best, 1);
            search(block, best.n_best, guide, near, steps.last_step, halvings, kHopeless, move);
            const int kept = near_enough(block, pairs, best.n_best, move, item.limit);
            if (lane == 0) shared.count = kept;
        }
        __syncthreads();
        const int kept = shared.count;
        for (int by = warp; by < 2; by += kWarps) {
            if (by == 1 && n == m) continue;
            const double scale = by == 0 ? item.scale_x : item.scale_y;
            gather(block, pairs, kept, 1);
            const double score = search(block, kept, scale, near_of(scale), steps.last_step, halvings, kHopeless, move);
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
