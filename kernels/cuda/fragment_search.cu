// Search in the fragment-ion index of fragments.cuh, with candidates, counters, scores and histograms that are bit-identical to those of
// kernels/cpu/postings.py.
//
// A block processes pairs of a query and a chunk in turn, in order of chunks, so that the data of a chunk stay in the level 2 cache. The
// ranges of keys of the query are looked up in the bins; each posting in a range adds the weight of its peak and a match to the counter of
// its form; then all counters are ranked and cleared. The blocks on a multiprocessor are in different phases: some wait for memory, some
// add, some rank. The best candidates of each query are in global memory, where the warps update them under a lock.

#include "fragments.cuh"

constexpr int kTile = 128;               // ranges of keys that are looked up together: four for each lane of a warp
constexpr int kRows = 8;                 // rows of 32 postings that a warp loads at once
constexpr int kStrip = 512;              // counters that a warp inspects together: 16 per lane
constexpr int kFours = kStrip / 128;     // groups of four adjacent counters per lane
constexpr int kFound = 256;              // candidates of a pair that are stored unsorted
constexpr int kPlaceBits = 40;           // low bits of a stored candidate: index of the form; above: isotope error
constexpr long long kPlaceMask = (1ll << kPlaceBits) - 1;
constexpr int kMostWindows = 16;         // maximum number of isotope errors
constexpr int kCounts = 256;             // number of values of a count of matched ions from one end
constexpr Word kOneNTerminal = 1, kOneCTerminal = 256;  // matches in a counter: weights << 16 | C-terminal << 8 | N-terminal
constexpr long long kNobody = 0x7fffffffffffffffll;

// Current work of a block: the ranges of keys of a query, and the chunk in which they are looked up.
struct __align__(16) Pair {
    int query, chunk, first_segment, n_segments;
};

struct __align__(16) FourWords {
    Word of[4];
};

// Input and results of queries. kernels/cuda/fragment_index.py fills this struct.
struct Queries {
    const int* windows;              // (queries, n_windows, 2), forms of the whole index
    const Word* segment_low;         // ranges of keys
    const Word* segment_high;
    const unsigned short* segment_weight;
    const Word* ends;                // (queries, kEnds), see weigh_ends
    const float* of_count;
    const float* of_dot;
    int* histogram;                  // (queries, n_bins)
    float* best_score;               // (queries, n_best)
    long long* best_number;
    int* locks;                      // (queries,)
    int n_windows, isotope_shift, minimum_matched_ions;
    float inverse_width;             // of a bin
    int n_bins, n_copies, n_best, unused;
};

// One warp per query computes what an ion of a single residue adds to a counter, by residue (queries, kEnds).
extern "C" __global__ void weigh_ends(const Masses* masses, const int* segment_offsets, const Word* segment_low, const Word* segment_high,
                                      const unsigned short* segment_weight, int n_queries, Word* ends) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (query >= n_queries) return;
    const long long key = lane < kResidues ? masses->end_key[lane] : -1;
    Word added = 0;
    for (int s = segment_offsets[query]; s < segment_offsets[query + 1]; ++s) {
        const bool is_inside = key >= static_cast<long long>(segment_low[s]) && key < static_cast<long long>(segment_high[s]);
        added += is_inside ? static_cast<Word>(segment_weight[s]) << 16 | kOneCTerminal : 0;
    }
    ends[query * kEnds + lane] = added;
}

// A candidate of a query. Among equal scores, the candidate with the lower number ranks first.
struct __align__(16) Candidate {
    long long number;
    float score;
};

__device__ bool comes_before(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.number < b.number;
}

__device__ Candidate nobody() { return Candidate{kNobody, __int_as_float(static_cast<int>(0xff800000u))}; }

__device__ Candidate candidate_of_lane(const Candidate& mine, int lane) {
    return Candidate{__shfl_sync(kEveryLane, mine.number, lane), __shfl_sync(kEveryLane, mine.score, lane)};
}

__device__ Candidate candidate_above(const Candidate& mine) {
    return Candidate{__shfl_up_sync(kEveryLane, mine.number, 1), __shfl_up_sync(kEveryLane, mine.score, 1)};
}

// A range of keys in a chunk: postings `begin:end`. Postings before `inner_begin` must not be below `lowest`, and postings from `inner_end`
// on not above `highest`, both compared as words; all others are in the range. Each posting adds `added`, and a match, to a counter.
struct __align__(16) Range {
    Word begin, end, inner_begin, inner_end, lowest, highest, added;
};

// State of a block's pair, without its counters.
struct Lookup {
    Range range[kTile];
    Pair pair;
    int low[kMostWindows], high[kMostWindows];                  // first and last forms of the chunk in the window of each isotope error
    int joined_low[kMostWindows], joined_length[kMostWindows];  // the same after joining overlapping or adjacent windows
    int n_joined, next_rows, n_found, n_late;
    float bar;
    Word of_end[kEnds];        // what the ion of the last residue adds to a counter
    int bin_of_end[kEnds];     // histogram bin of forms that match only this ion; -1 if it does not match
    int has_ends, has_good_ends;
    float of_count[kCounts];
};

// Dynamic shared memory of a block.
struct Room {
    Word* counters;    // one for each form of a chunk
    Candidate* found;  // unsorted, with the index of the form instead of its number; after kFound of them, n_best per warp
    int* histogram;    // several interleaved copies, so that lanes use different ones
    int* of_lane;      // the copy of this lane; candidates without a match are not counted
};

// State of a warp that ranks counters. Identical in all lanes except `kept` and `bar`.
struct Ranking {
    int chunk_form;       // first form of the chunk, among those on the device
    int low, length;      // of the first window
    int n_joined;
    bool has_ends, ranks_ends;
    Candidate kept;       // one of the best candidates that did not fit into `found`
    float bar;
};

// Add the postings of up to kTile ranges to the counters. Ranges are divided into rows of 32 postings, one per lane. A warp takes kRows
// rows per step, of one range or of several, so that this many loads are in flight. It finds the range of a row in the cumulative numbers
// of rows of the ranges; each lane stores four of these.
__device__ void add_postings(Lookup& lookup, Word* counters, const Word* postings, int n_ranges, int lane) {
    Word rows[4], total = 0;
    for (int j = 0; j < 4; ++j) {
        const int s = 4 * lane + j;
        if (s < n_ranges) total += (lookup.range[s].end - lookup.range[s].begin + 31) >> 5;
        rows[j] = total;
    }
    const Word before = sum_up_to_lane(total, lane) - total;
    const Word n_rows = __shfl_sync(kEveryLane, before + total, 31);
    Word taken = lane == 0 ? static_cast<Word>(atomicAdd(&lookup.next_rows, kRows)) : 0;
    taken = __shfl_sync(kEveryLane, taken, 0);
    while (taken < n_rows) {
        Word next = lane == 0 ? static_cast<Word>(atomicAdd(&lookup.next_rows, kRows)) : 0;
        const Word row = taken + (lane & (kRows - 1));
        int owner = 0;
        for (int step = 16; step > 0; step >>= 1) {
            const Word there = __shfl_sync(kEveryLane, before, owner + step);
            if (there <= row) owner += step;
        }
        const Word inside = row - __shfl_sync(kEveryLane, before, owner);
        const Word after_first = __shfl_sync(kEveryLane, rows[0], owner), after_second = __shfl_sync(kEveryLane, rows[1], owner);
        const Word after_third = __shfl_sync(kEveryLane, rows[2], owner);
        const int j = (inside >= after_first) + (inside >= after_second) + (inside >= after_third);
        const int own_range = 4 * owner + j;
        const Word of_range = inside - (j == 0 ? 0 : j == 1 ? after_first : j == 2 ? after_second : after_third);
        Word own_start = 0, own_end = 0;
        if (row < n_rows) {
            own_start = lookup.range[own_range].begin + 32 * of_range;
            own_end = lookup.range[own_range].end;
        }
        Word posting[kRows], at[kRows], is_there = 0;
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            at[k] = __shfl_sync(kEveryLane, own_start, k) + lane;
            const bool is_inside = at[k] < __shfl_sync(kEveryLane, own_end, k);
            is_there |= is_inside ? 1u << k : 0u;
            COUNT_OPERATIONS(is_inside);
            posting[k] = is_inside ? __ldcg(postings + at[k]) : 0;  // bypasses the level 1 cache, which holds the table of scores
        }
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            const Range range = lookup.range[__shfl_sync(kEveryLane, own_range, k)];
            if ((is_there >> k & 1u) && (at[k] >= range.inner_begin || posting[k] >= range.lowest) &&
                (at[k] < range.inner_end || posting[k] <= range.highest)) {
                atomicAdd(&counters[posting[k] & kFormMask], range.added + (posting[k] & kCTerminal ? kOneCTerminal : kOneNTerminal));
            }
        }
        taken = __shfl_sync(kEveryLane, next, 0);
    }
}

// Find the postings of a chunk in each range of keys; one range per thread.
__device__ void look_up(Lookup& lookup, const Queries& queries, int first, int n, const Word* bins, Word n_bins, int bin_shift) {
    for (int s = blockDim.x - 1 - threadIdx.x; s < n; s += blockDim.x) {  // last threads first: the first ones process the histogram
        const Word low = queries.segment_low[first + s], last = queries.segment_high[first + s] - 1;
        const Word first_bin = low >> bin_shift, last_bin = min(last >> bin_shift, n_bins - 1);
        Range range{0, 0, 0, 0, low << 16, last << 16 | 0xffffu, static_cast<Word>(queries.segment_weight[first + s]) << 16};
        if (first_bin < n_bins) {
            range.begin = bins[first_bin];
            range.inner_begin = bins[first_bin + 1];
            range.end = bins[last_bin + 1];
            range.inner_end = last_bin == last >> bin_shift ? bins[last_bin] : range.end;
        }
        lookup.range[s] = range;
    }
}

// One thread: find the windows of a query in a chunk, and join overlapping or adjacent windows.
__device__ void find_windows(Lookup& lookup, const int* windows, int n_windows, int first_form, int n_forms) {
    int n = 0;
    for (int e = 0; e < n_windows; ++e) {
        const int low = max(0, windows[2 * e] - first_form), high = min(n_forms, windows[2 * e + 1] - first_form);
        lookup.low[e] = low;
        lookup.high[e] = high;
        if (low >= high) continue;
        if (n > 0 && lookup.joined_low[n - 1] + lookup.joined_length[n - 1] == low) {
            lookup.joined_length[n - 1] += high - low;
        } else {
            lookup.joined_low[n] = low;
            lookup.joined_length[n++] = high - low;
        }
    }
    lookup.n_joined = n;
}

// One warp merges the candidates of its block into the best of the query in global memory. Blocks with the same query wait for its lock.
__device__ void merge(Lookup& lookup, const Candidate* found, const long long* form_code, const Queries& queries, int query, int lane) {
    const int n_best = queries.n_best;
    const int n_found = min(kFound, lookup.n_found), n = n_found + lookup.n_late;
    if (n == 0) return;
    if (lane == 0) {
        while (atomicCAS(&queries.locks[query], 0, 1) != 0) {
        }
    }
    __syncwarp();
    __threadfence();
    volatile float* score = queries.best_score + static_cast<long long>(query) * n_best;
    volatile long long* number = queries.best_number + static_cast<long long>(query) * n_best;
    Candidate kept = nobody();
    if (lane < n_best && number[lane] >= 0) kept = Candidate{number[lane], score[lane]};
    for (int first = 0; first < n; first += 32) {
        const int i = first + lane;
        Candidate mine = nobody();
        if (i < n_found) {
            const long long place = found[i].number;
            mine = Candidate{form_code[place & kPlaceMask] + (place >> kPlaceBits << queries.isotope_shift), found[i].score};
        } else if (i < n) {
            mine = found[kFound + i - n_found];
        }
        while (true) {
            const Candidate last = candidate_of_lane(kept, n_best - 1);
            const Word better = __ballot_sync(kEveryLane, comes_before(mine, last));
            if (better == 0) break;
            const int source = __ffs(static_cast<int>(better)) - 1;
            insert(kept, candidate_of_lane(mine, source), lane);
            if (lane == source) mine = nobody();
        }
    }
    if (lane < n_best && kept.number != kNobody) {
        score[lane] = kept.score;
        number[lane] = kept.number;
    }
    __threadfence();
    __syncwarp();
    if (lane == 0) {
        atomicCAS(&queries.locks[query], 1, 0);
        lookup.n_found = 0;
        lookup.n_late = 0;
    }
}

// All threads: clear counters and histogram, and take a first pair.
__device__ __forceinline__ Room begin_block(Lookup& lookup, const Index& index, const Queries& queries, const Pair* pairs, int n_pairs,
                                            int* next_pair, unsigned char* dynamic_shared) {
    const int lane = threadIdx.x & 31, n_warps = blockDim.x >> 5;
    Room room;
    room.counters = reinterpret_cast<Word*>(dynamic_shared);
    room.found = reinterpret_cast<Candidate*>(room.counters + index.forms_of_chunk);
    room.histogram = reinterpret_cast<int*>(room.found + kFound + n_warps * queries.n_best);
    room.of_lane = room.histogram + (lane & (queries.n_copies - 1));
    for (int i = threadIdx.x; i < index.forms_of_chunk; i += blockDim.x) room.counters[i] = 0;
    for (int i = threadIdx.x; i < queries.n_bins * queries.n_copies; i += blockDim.x) room.histogram[i] = 0;
    for (int i = threadIdx.x; i < kCounts; i += blockDim.x) lookup.of_count[i] = queries.of_count[i];
    if (threadIdx.x == 0) {
        const int p = atomicAdd(next_pair, 1);
        lookup.pair = p < n_pairs ? pairs[p] : Pair{-1, 0, 0, 0};
        lookup.n_found = 0;
        lookup.n_late = 0;
    }
    __syncthreads();
    return room;
}

// One warp: determine what the ions of last residues add, the minimum score of a candidate, and the windows of the query in the chunk.
__device__ __forceinline__ void know_query(Lookup& lookup, const Queries& queries, const Pair& pair, int first_form, int n_forms, int lane) {
    // Skip candidates with lower scores than the last stored one. An outdated value is lower and therefore harmless.
    const float last = *static_cast<volatile float*>(queries.best_score + static_cast<long long>(pair.query) * queries.n_best +
                                                     queries.n_best - 1);
    const Word added = queries.ends[pair.query * kEnds + lane];
    const int c = added >> 8 & 255;
    const float score = (lookup.of_count[0] + lookup.of_count[c]) + queries.of_dot[added >> 16];
    const bool is_good = added != 0 && score >= last && c >= queries.minimum_matched_ions;
    lookup.of_end[lane] = added;
    lookup.bin_of_end[lane] = added != 0 ? min(queries.n_bins - 1, static_cast<int>(score * queries.inverse_width)) : -1;
    const bool has_ends = __any_sync(kEveryLane, added != 0), has_good_ends = __any_sync(kEveryLane, is_good);
    if (lane == 0) {
        lookup.bar = last;
        lookup.has_ends = has_ends;
        lookup.has_good_ends = has_good_ends;
        find_windows(lookup, queries.windows + static_cast<long long>(pair.query) * queries.n_windows * 2, queries.n_windows, first_form,
                     n_forms);
    }
}

// All threads: compute the counters of a pair. Meanwhile, one warp merges the candidates of the query `previous`, and thread 0 takes the
// next pair and returns it.
__device__ __forceinline__ Pair count_matches(Lookup& lookup, const Room& room, const Index& index, const Queries& queries,
                                              const Pair& pair, const Pair* pairs, int n_pairs, int* next_pair, int previous) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const Chunk chunk = index.chunks[pair.chunk];
    const Word n_chunk_bins = static_cast<Word>(index.chunks[pair.chunk + 1].first_bin - chunk.first_bin) - 2;
    const int chunk_form = pair.chunk * index.forms_of_chunk;
    const int n_chunk_forms = min(index.forms_of_chunk, index.n_forms - chunk_form);
    Pair following{-1, 0, 0, 0};
    for (int tile = 0; tile < pair.n_segments; tile += kTile) {
        const int n_ranges = min(kTile, pair.n_segments - tile);
        look_up(lookup, queries, pair.first_segment + tile, n_ranges, index.bins + chunk.first_bin, n_chunk_bins, index.bin_shift);
        if (threadIdx.x == blockDim.x - 1) lookup.next_rows = 0;
        if (tile == 0 && warp == n_warps - 2) {
            know_query(lookup, queries, pair, index.first_form + chunk_form, n_chunk_forms, lane);
        }
        __syncthreads();
        // One warp merges the candidates of the previous pair while the others add postings.
        if (tile == 0 && warp == 0 && previous >= 0) merge(lookup, room.found, index.form_code, queries, previous, lane);
        int p = n_pairs;
        if (tile == 0 && threadIdx.x == 0) p = atomicAdd(next_pair, 1);  // arrives while postings are added
        add_postings(lookup, room.counters, index.postings + chunk.first_posting, n_ranges, lane);
        if (tile == 0 && threadIdx.x == 0 && p < n_pairs) following = pairs[p];  // arrives while counters are ranked
        __syncthreads();
    }
    return following;
}

// Return a bit for each of a lane's 16 counters in a strip that must be ranked. `four_ends` receives the last residues of the forms, four
// per word.
__device__ __forceinline__ Word counters_to_rank(const Lookup& lookup, const Ranking& ranking, const Word* counters,
                                                 const unsigned char* chunk_ends, int strip, int forms_of_chunk, int lane,
                                                 Word (&four_ends)[kFours]) {
    Word left = 0;
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
        const int at = strip + 128 * k + 4 * lane;
        // Values after the last form of the index are undefined, but outside every window.
        four_ends[k] = ranking.has_ends && at < forms_of_chunk ? *reinterpret_cast<const Word*>(chunk_ends + at) : 0;
    }
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
        const int at = strip + 128 * k + 4 * lane;
        if (at >= forms_of_chunk) continue;
        COUNT_OPERATIONS(4);
        const FourWords counter = *reinterpret_cast<const FourWords*>(counters + at);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            bool is_left = counter.of[j] != 0;
            if (ranking.ranks_ends) is_left |= lookup.of_end[four_ends[k] >> (8 * j) & (kEnds - 1)] != 0;
            left |= is_left ? 1u << (4 * k + j) : 0u;
        }
    }
    return left;
}

// The warp stores the candidates of the lanes in which `is_good` is true.
__device__ __forceinline__ void note(Lookup& lookup, const Room& room, Ranking& ranking, const Index& index, const Queries& queries, Word good,
                                     bool is_good, int form, float score, int lane) {
    int place = lane == 0 ? atomicAdd(&lookup.n_found, __popc(good)) : 0;
    place = __shfl_sync(kEveryLane, place, 0) + __popc(good & ((1u << lane) - 1));
    long long isotope = 0;
    while (is_good && (form < lookup.low[isotope] || form >= lookup.high[isotope])) ++isotope;
    if (is_good && place < kFound) {
        room.found[place] = Candidate{isotope << kPlaceBits | (ranking.chunk_form + form), score};
        is_good = false;
    }
    // No space left: each warp inserts its candidates into its own list. The minimum score rises, so there are soon few.
    for (Word late = __ballot_sync(kEveryLane, is_good); late; late &= late - 1) {
        const int source = __ffs(static_cast<int>(late)) - 1;
        const long long number = index.form_code[ranking.chunk_form + __shfl_sync(kEveryLane, form, source)];
        const long long own_isotope = __shfl_sync(kEveryLane, isotope, source);
        const Candidate fresh{number + (own_isotope << queries.isotope_shift), __shfl_sync(kEveryLane, score, source)};
        insert(ranking.kept, fresh, lane);
        ranking.bar = fmaxf(ranking.bar, __shfl_sync(kEveryLane, ranking.kept.score, queries.n_best - 1));
    }
}

// Each lane with a counter, that of `form` of the chunk, scores and clears it and counts the score in the histogram.
__device__ __forceinline__ void rank_counters(Lookup& lookup, const Room& room, Ranking& ranking, const Index& index, const Queries& queries,
                                              bool has_one, int form, int letter, int lane) {
    Word value = 0;
    if (has_one) {
        value = room.counters[form];
        room.counters[form] = 0;
    }
    if (ranking.has_ends) value += lookup.of_end[letter];
    const int n = value & 255, c = value >> 8 & 255;
    const float score = (lookup.of_count[n] + lookup.of_count[c]) + queries.of_dot[value >> 16];
    bool is_inside = static_cast<Word>(form - ranking.low) < static_cast<Word>(ranking.length);
    for (int w = 1; w < ranking.n_joined; ++w) {
        is_inside |= static_cast<Word>(form - lookup.joined_low[w]) < static_cast<Word>(lookup.joined_length[w]);
    }
    is_inside = is_inside && has_one;
    if (is_inside) {
        atomicAdd(&room.of_lane[min(queries.n_bins - 1, static_cast<int>(score * queries.inverse_width)) * queries.n_copies], 1);
        const int bin_of_end = ranking.has_ends && !ranking.ranks_ends ? lookup.bin_of_end[letter] : -1;
        if (bin_of_end >= 0) atomicAdd(&room.of_lane[bin_of_end * queries.n_copies], -1);  // already counted with its last residue
    }
    const bool is_good = is_inside && score >= ranking.bar && n + c >= queries.minimum_matched_ions;
    const Word good = __ballot_sync(kEveryLane, is_good);
    if (good != 0) note(lookup, room, ranking, index, queries, good, is_good, form, score, lane);
}

// All threads: compute scores from the counters of a pair. All forms that match only the ion of their last residue have the same score for
// the same residue. If no such score is high enough, and the window contains the whole chunk, these forms are counted by residue and not
// ranked.
__device__ __forceinline__ void rank_chunk(Lookup& lookup, const Room& room, const Index& index, const Queries& queries, const Pair& pair) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int chunk_form = pair.chunk * index.forms_of_chunk;
    const int n_chunk_forms = min(index.forms_of_chunk, index.n_forms - chunk_form);
    Ranking ranking{chunk_form, lookup.joined_low[0], lookup.joined_length[0], lookup.n_joined, lookup.has_ends != 0, false, nobody(),
                    lookup.bar};
    ranking.ranks_ends = ranking.has_ends && (lookup.has_good_ends || ranking.low > 0 || ranking.length < n_chunk_forms);
    if (ranking.has_ends && !ranking.ranks_ends && warp == 0 && lookup.of_end[lane] != 0) {
        atomicAdd(&room.of_lane[lookup.bin_of_end[lane] * queries.n_copies], static_cast<int>(index.forms_of_ends[pair.chunk * kEnds + lane]));
    }
    for (int strip = warp * kStrip; strip < index.forms_of_chunk; strip += n_warps * kStrip) {
        Word four_ends[kFours];
        Word left = counters_to_rank(lookup, ranking, room.counters, index.ends + chunk_form, strip, index.forms_of_chunk, lane, four_ends);
        while (__any_sync(kEveryLane, left != 0)) {
            const bool has_one = left != 0;
            const int bit = has_one ? __ffs(static_cast<int>(left)) - 1 : 0;
            left &= left - 1;
            const int form = strip + 128 * (bit >> 2) + 4 * lane + (bit & 3);
            Word ends_here = four_ends[0];
#pragma unroll
            for (int k = 1; k < kFours; ++k) ends_here = bit >> 2 == k ? four_ends[k] : ends_here;
            const int letter = ends_here >> (8 * (bit & 3)) & (kEnds - 1);
            rank_counters(lookup, room, ranking, index, queries, has_one, form, letter, lane);
        }
    }
    const Word own = __ballot_sync(kEveryLane, lane < queries.n_best && ranking.kept.number != kNobody);
    if (own) {
        int place = lane == 0 ? atomicAdd(&lookup.n_late, __popc(own)) : 0;
        place = __shfl_sync(kEveryLane, place, 0);
        if (own >> lane & 1u) room.found[kFound + place + lane] = ranking.kept;
    }
}

// All threads: add the histogram of a pair to that of its query, and clear it.
__device__ __forceinline__ void give_histogram(const Room& room, const Queries& queries, int query) {
    const int lane = threadIdx.x & 31;
    for (int b = threadIdx.x; b < queries.n_bins; b += blockDim.x) {
        int n = 0;
        for (int j = 0; j < queries.n_copies; ++j) {
            int* copy = room.histogram + b * queries.n_copies + ((lane + j) & (queries.n_copies - 1));  // lanes use different banks
            n += *copy;
            *copy = 0;
        }
        if (n) atomicAdd(&queries.histogram[static_cast<long long>(query) * queries.n_bins + b], n);
    }
}

// Blocks take pairs in turn until none is left. Between barriers, a block
//   looks up the ranges of a query in a chunk, while other threads add the previous pair's histogram to that of its query;
//   adds postings, while one warp merges the candidates of the previous pair, and one thread takes the next pair;
//   ranks the counters.
extern "C" __global__ void __launch_bounds__(kMostThreads)
search_chunks(Index index, Queries queries, const Pair* pairs, int n_pairs, int* next_pair) {
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    __shared__ Lookup lookup;
    const Room room = begin_block(lookup, index, queries, pairs, n_pairs, next_pair, dynamic_shared);
    int previous = -1;  // query whose candidates must still be merged
    while (true) {
        const Pair pair = lookup.pair;
        if (pair.query < 0) break;
        const Pair following = count_matches(lookup, room, index, queries, pair, pairs, n_pairs, next_pair, previous);
        rank_chunk(lookup, room, index, queries, pair);
        if (threadIdx.x == 0) lookup.pair = following;
        __syncthreads();
        previous = pair.query;
        give_histogram(room, queries, previous);
    }
    if (threadIdx.x < 32 && previous >= 0) merge(lookup, room.found, index.form_code, queries, previous, threadIdx.x);
}
