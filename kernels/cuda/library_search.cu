// The most similar reference of each spectrum, with the same references and similarities as kernels/cpu/library_search.py.
// kernels/library_layouts.py defines the similarity: sums of integers, which do not depend on the order.
//
// A block processes one query, whose peaks are in shared memory. Its threads take the references of the query's pools in turn, one complete
// comparison per thread, and store their best; a tree reduction finds the best of the block. Peaks are so far apart that each has at most
// one unshifted partner: one pass along both lists finds all. If fragments may be shifted by the mass difference, a peak has up to two
// partners, and matches that exclude each other form paths along the shift; from each path, the compatible matches with the highest sum are
// used. The state of a path is stored per peak of the query, in local memory of the thread.

#include "warp.cuh"

constexpr int kThreads = 128;
constexpr int kMostPeaks = 256;
constexpr double kEntropyWhole = 2.0 * 32768.0 * 16384.0;

// Peaks of spectra; `before` is the index of the first peak on the device.
struct Peaks {
    const long long* offsets;
    const int* mz;
    const unsigned short* weight;
    const int* mass;
    long long before;
};

// Pools of a query: `ranges` pairs of first and last reference.
struct Pools {
    const long long* low;
    const long long* high;
    long long ranges;
};

// See Matching of kernels/library_layouts.py; `table` is empty for cosines.
struct Rules {
    const int* table;
    long long absolute, relative, least, is_entropy, is_shifted, nearest;
};

struct Answer {
    long long* found;
    double* similarity;
    int* matched;
};

struct Best {
    double value;
    long long reference;
    int matched;
};

struct Query {
    int n;
    long long square;
    int mz[kMostPeaks];
    int weight[kMostPeaks];
};

struct Sum {
    long long total;
    int matched;
};

__device__ bool is_better(const Best& one, const Best& other) {
    return one.value > other.value || (one.value == other.value && one.value > 0.0 && one.reference < other.reference);
}

__device__ long long width_of(long long mz, const Rules& rules) { return rules.absolute + mz * rules.relative / 1000000000LL; }

__device__ long long worth(int a, int b, const Rules& rules) {
    if (rules.is_entropy) return static_cast<long long>(rules.table[a + b]) - rules.table[a] - rules.table[b];
    return static_cast<long long>(a) * b;
}

// Sum over peaks that match without a shift.
__device__ Sum plain(const Query& query, const Peaks& references, long long first, long long last, const Rules& rules) {
    Sum sum = {0, 0};
    int i = 0;
    for (long long j = first; j < last; ++j) {
        COUNT_OPERATIONS(1);
        const long long place = references.mz[j], width = width_of(place, rules);
        while (i < query.n && query.mz[i] < place - width) ++i;
        if (i == query.n) break;
        if (query.mz[i] <= place + width) {
            sum.total += worth(query.weight[i], references.weight[j], rules);
            ++sum.matched;
            ++i;
        }
    }
    return sum;
}

// Return the query's peak at `goal`, searching from `at` in the direction of the shift; -1 if there is none.
__device__ int partner(const Query& query, long long goal, long long width, bool is_up, int& at) {
    for (; at < query.n; ++at) {
        const int i = is_up ? at : query.n - 1 - at;
        const long long distance = is_up ? query.mz[i] - goal : goal - query.mz[i];
        if (distance >= -width) return distance <= width ? i : -1;
    }
    return -1;
}

// Sum over peaks that match unshifted or shifted, each used once. For a query's peak that a path has reached, `without` is the maximum sum
// of the path without this peak, and `in_all` the maximum sum; both are valid if `stamp` equals `mark`.
__device__ Sum shifted(const Query& query, const Peaks& references, long long first, long long last, long long shift, const Rules& rules,
                       long long* without, long long* in_all, int* stamp, int mark) {
    Sum sum = {0, 0};
    int at = 0, moved = 0;
    const bool is_up = shift > 0;
    for (long long k = 0; k < last - first; ++k) {
        COUNT_OPERATIONS(2);
        const long long j = is_up ? first + k : last - 1 - k;
        const long long place = references.mz[j], width = width_of(place, rules);
        const int here = partner(query, place, width, is_up, at);
        const int there = partner(query, place + shift, width, is_up, moved);
        if (here < 0 && there < 0) continue;
        ++sum.matched;
        long long free = 0, most = 0, with_here = 0;
        if (here >= 0) {
            if (stamp[here] == mark) {
                free = without[here];
                most = in_all[here];
            }
            with_here = free + worth(query.weight[here], references.weight[j], rules);
        }
        const long long best = most > with_here ? most : with_here;
        if (there >= 0) {
            const long long moved_there = most + worth(query.weight[there], references.weight[j], rules);
            const long long further = best > moved_there ? best : moved_there;
            without[there] = best;
            in_all[there] = further;
            stamp[there] = mark;
            sum.total += further - most;
        } else {
            sum.total += best - most;
        }
    }
    return sum;
}

// Block b processes query b; its rows of `queries.offsets`, pools and answer have index b.
extern "C" __global__ void __launch_bounds__(128)
search_library(Peaks queries, Peaks references, const long long* squares, Pools pools, Rules rules, Answer answer) {
    __shared__ Query query;
    __shared__ Best kept[kThreads];
    const int lane = threadIdx.x;
    const long long q = blockIdx.x;
    const long long low = queries.offsets[q] - queries.before;
    if (lane == 0) {
        query.n = static_cast<int>(queries.offsets[q + 1] - queries.offsets[q]);
        query.square = 0;
    }
    __syncthreads();
    for (int i = lane; i < query.n; i += kThreads) {
        query.mz[i] = queries.mz[low + i];
        query.weight[i] = queries.weight[low + i];
    }
    __syncthreads();
    if (lane == 0) {
        for (int i = 0; i < query.n; ++i) query.square += static_cast<long long>(query.weight[i]) * query.weight[i];
    }
    __syncthreads();

    long long without[kMostPeaks], in_all[kMostPeaks];
    int stamp[kMostPeaks], mark = 0;
    if (rules.is_shifted) {
        for (int i = 0; i < query.n; ++i) stamp[i] = 0;
    }
    Best best = {0.0, -1, 0};
    for (long long r = 0; r < pools.ranges; ++r) {
        const long long until = pools.high[q * pools.ranges + r];
        for (long long c = pools.low[q * pools.ranges + r] + lane; c < until; c += kThreads) {
            const long long begin = references.offsets[c] - references.before, end = references.offsets[c + 1] - references.before;
            Sum sum;
            if (rules.is_shifted) {
                const long long shift = static_cast<long long>(queries.mass[q]) - references.mass[c];
                if ((shift < 0 ? -shift : shift) <= rules.nearest) continue;
                if (shift == 0) sum = plain(query, references, begin, end, rules);
                else sum = shifted(query, references, begin, end, shift, rules, without, in_all, stamp, ++mark);
            } else {
                sum = plain(query, references, begin, end, rules);
            }
            if (sum.matched < rules.least || sum.total <= 0) continue;
            const double total = static_cast<double>(sum.total);
            const double value = rules.is_entropy ? total / kEntropyWhole
                                                  : total / sqrt(static_cast<double>(query.square) * static_cast<double>(squares[c]));
            const Best fresh = {value < 1.0 ? value : 1.0, c, sum.matched};  // rounding may give more than 1
            if (is_better(fresh, best)) best = fresh;
        }
    }
    kept[lane] = best;
    for (int step = kThreads / 2; step > 0; step >>= 1) {
        __syncthreads();
        if (lane < step && is_better(kept[lane + step], kept[lane])) kept[lane] = kept[lane + step];
    }
    if (lane == 0) {
        answer.found[q] = kept[0].reference;
        answer.similarity[q] = kept[0].value;
        answer.matched[q] = kept[0].matched;
    }
}
