// Match scores of spectra, with the same candidates and scores as kernels/cpu/match_scores.py. kernels/match_score_layouts.py defines the
// score: the number of masses that query and candidate have in common, counted up from zero and counted down from their precursors.
//
// Candidates with adjacent masses form a chunk. A row is a mass that occurs, counted up from zero or down from the precursor. A block
// processes a query and a chunk; its counters, one per candidate of the chunk, are in shared memory, several per word. Candidates with
// sufficient counters are inserted into the best of the query. Chunks are processed by one launch after the other, so that only one block
// changes the best of a query. Counters are computed in one of two forms:
//
// * Postings: each row lists the candidates that have it, and threads add one for each posting in the rows of the query.
// * Bits: each row has one bit per candidate (Carroll's thesis, Algorithm 11), 32 per word. A thread sums the rows of the query in its own
//   columns: sums are stored across words, the lowest bit of all 32 in one word, the next bit in another, and eight rows are added by seven
//   full adders of two instructions each. This is less work if many candidates have a mass.

// Macros of a launch, set by kernels/cuda/match_scores.py.
#ifndef BITS
#define BITS 8
#endif

#include "warp.cuh"

constexpr int kThreads = 512;
constexpr int kFound = 512;  // candidates sorted together, including earlier ones
constexpr int kBits = BITS;  // bits of a counter
constexpr int kParts = 32 / kBits;
constexpr Word kMost = (1u << kBits) - 1;
constexpr Word kHigh = kBits == 8 ? 0x80808080u : 0x80008000u;  // the highest bit of each counter of a word
constexpr Word kOnes = kBits == 8 ? 0x01010101u : 0x00010001u;
constexpr Word kHalf = kMost / 2;
constexpr int kPlaceBits = 16;  // bits for the index of a candidate in its chunk
constexpr int kColumns = kBits == 8 ? 4 : 2;  // words of a row that a thread sums
constexpr int kPlanes = kBits;                // words of a sum: number of bits of the maximum score
constexpr int kRowsAtOnce = 8;

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Four words that are loaded together.
struct __align__(16) Four {
    Word of[4];
};

// Mass lists of n spectra; `masses` begins with the list of spectrum `before`.
struct Lists {
    const long long* offsets;
    const int* masses;
    const int* precursors;
    long long before;
    long long n;
};

// The masses that occur, counted up from zero and down from precursors: bits, and the number of bits set in the previous words.
struct Rows {
    Long* bits;
    Long* bits_below;
    const Word* before;
    const Word* before_below;
    int words;
    int n;  // rows of masses counted up from zero, followed by those counted down from precursors
};

// Postings of chunks: those of row r of chunk c are `starts[c * stride + r]` to `starts[c * stride + r + 1]`, relative to `firsts[c]`. Or
// bits: row r of chunk c consists of the `columns` words from `(c * stride + r) * columns` on; its last row, `stride - 1`, is empty.
struct Index {
    Word* starts;
    unsigned short* postings;
    const long long* firsts;
    Word* bits;
    long long stride;
    int chunk_size;
    int columns;
};

// Queries: `windows` (n, 2), indices of candidates; `rows` (2 * masses,), -1 for none; `best` (n, top), best first: the score in the upper
// 32 bits, 2^32 - 1 minus the candidate in the lower 32 bits; 0 for none.
struct Queries {
    const long long* offsets;
    const int* masses;
    const int* precursors;
    const long long* windows;
    int* rows;
    Long* best;
    int n;
    int top;
};

// A launch: chunk `chunk` of the index, whose first candidate has index `first`; `lanes` threads share the postings of a row, and sums of
// bits have `planes` bits. All scores are written to `scores` (n, row_length), unless it is null.
struct Pass {
    unsigned char* scores;
    long long row_length;
    long long first;
    int chunk;
    int n;
    int lanes;
    int planes;
};

__device__ __forceinline__ void set_bit(Long* bits, int mass) {
    const Long bit = Long{1} << (mass & 63);
    if (!(bits[mass >> 6] & bit)) atomicOr(bits + (mass >> 6), bit);
}

// Return the row of a mass, or -1 if the mass does not occur.
__device__ __forceinline__ int row_of(const Long* bits, const Word* before, int words, int mass) {
    const int word = mass >> 6;
    if (word >= words) return -1;
    const Long bit = Long{1} << (mass & 63), found = bits[word];
    return found & bit ? static_cast<int>(before[word]) + __popcll(found & (bit - 1)) : -1;
}

// Each warp processes a list: `act` is called with each of its masses, the difference from the precursor mass, and the index of the mass.
template <class Action>
__device__ void for_each_mass(const Lists& lists, Action act) {
    const long long list = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (list >= lists.n) return;
    const int precursor = lists.precursors[list];
    for (long long i = lists.offsets[list] + (threadIdx.x & 31); i < lists.offsets[list + 1]; i += 32) {
        const int mass = lists.masses[i - lists.before];
        act(list, mass, precursor - mass, i);
    }
}

extern "C" __global__ void __launch_bounds__(512) mark_masses(Lists lists, Rows rows) {
    for_each_mass(lists, [&](long long, int mass, int below, long long) {
        set_bit(rows.bits, mass);
        set_bit(rows.bits_below, below);
    });
}

// Count the postings of a row in the element two after it. After `add_up`, the element one after the row is the start of the row;
// `place_postings` advances it to the end of the row.
extern "C" __global__ void __launch_bounds__(512) count_postings(Lists lists, Rows rows, Index index) {
    for_each_mass(lists, [&](long long list, int mass, int below, long long) {
        Word* const starts = index.starts + list / index.chunk_size * index.stride;
        atomicAdd(starts + row_of(rows.bits, rows.before, rows.words, mass) + 2, 1u);
        atomicAdd(starts + rows.n + row_of(rows.bits_below, rows.before_below, rows.words, below) + 2, 1u);
        COUNT_OPERATIONS(2);
    });
}

// One block per chunk: each element becomes the sum of itself and all previous elements.
extern "C" __global__ void __launch_bounds__(512) add_up(Index index) {
    __shared__ Word sums[kThreads / 32];
    Word* const starts = index.starts + blockIdx.x * index.stride;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    Word before = 0;
    for (long long begin = 0; begin < index.stride; begin += kThreads) {
        const long long i = begin + threadIdx.x;
        Word sum = sum_up_to_lane(i < index.stride ? starts[i] : 0u, lane);
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        Word all = 0;
        for (int w = 0; w < kThreads / 32; ++w) {
            if (w == warp) sum += all;
            all += sums[w];
        }
        if (i < index.stride) starts[i] = before + sum;
        before += all;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(512) place_postings(Lists lists, Rows rows, Index index) {
    for_each_mass(lists, [&](long long list, int mass, int below, long long) {
        const long long chunk = list / index.chunk_size;
        Word* const starts = index.starts + chunk * index.stride + 1;
        unsigned short* const postings = index.postings + index.firsts[chunk];
        const unsigned short place = static_cast<unsigned short>(list - chunk * index.chunk_size);
        postings[atomicAdd(starts + row_of(rows.bits, rows.before, rows.words, mass), 1u)] = place;
        postings[atomicAdd(starts + rows.n + row_of(rows.bits_below, rows.before_below, rows.words, below), 1u)] = place;
        COUNT_OPERATIONS(2);
    });
}

// Set a bit for each posting.
extern "C" __global__ void __launch_bounds__(512) set_bits(Lists lists, Rows rows, Index index) {
    for_each_mass(lists, [&](long long list, int mass, int below, long long) {
        const long long chunk = list / index.chunk_size;
        const int place = static_cast<int>(list - chunk * index.chunk_size);
        Word* const column = index.bits + chunk * index.stride * index.columns + place / 32;
        const long long row = row_of(rows.bits, rows.before, rows.words, mass);
        const long long row_below = rows.n + row_of(rows.bits_below, rows.before_below, rows.words, below);
        atomicOr(column + row * index.columns, 1u << (place & 31));
        atomicOr(column + row_below * index.columns, 1u << (place & 31));
        COUNT_OPERATIONS(2);
    });
}

// Find the rows of the queries' masses.
extern "C" __global__ void __launch_bounds__(512) find_rows(Queries queries, Rows rows) {
    const Lists lists{queries.offsets, queries.masses, queries.precursors, queries.n ? queries.offsets[0] : 0, queries.n};
    for_each_mass(lists, [&](long long, int mass, int below, long long i) {
        int* const found = queries.rows + 2 * (i - lists.before);
        found[0] = row_of(rows.bits, rows.before, rows.words, mass);
        const int row = row_of(rows.bits_below, rows.before_below, rows.words, below);
        found[1] = row < 0 ? -1 : rows.n + row;
    });
}

// Return the sum of the values of all threads, in all threads of the block.
__device__ int sum_of_block(int value, int* total) {
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    value = sum_of_lanes(value);
    if ((threadIdx.x & 31) == 0 && value) atomicAdd(total, value);
    __syncthreads();
    const int sum = *total;
    __syncthreads();
    return sum;
}

// Return true if a counter of a word is above `worst`: the sum of its lower bits then carries into its highest bit.
__device__ __forceinline__ bool has_above(Word word, Word worst) {
    if (worst <= kHalf) return (((word & ~kHigh) + (kHalf - worst) * kOnes) | word) & kHigh;
    return ((word & ~kHigh) + (kMost - worst) * kOnes) & word & kHigh;
}

// Call `act` for the counters `low:high` above `worst`, with a key that has the score in the high bits and below it the index, larger for
// smaller indices.
template <class Action>
__device__ __forceinline__ void for_each_above(const Word* counters, int low, int high, Word worst, Action act) {
    for (int w = low / kParts + static_cast<int>(threadIdx.x); w < (high + kParts - 1) / kParts; w += kThreads) {
        const Word word = counters[w];
        if (!has_above(word, worst)) continue;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const Word score = word >> part * kBits & kMost;
            const int place = w * kParts + part;
            if (score > worst && place >= low && place < high) act(static_cast<Long>(score) << kPlaceBits | (0xffffu - static_cast<Word>(place)));
        }
    }
}

// Insert the candidates `low:high` of the chunk into the best of the query, all of which have lower indices.
__device__ void keep_best(const Word* counters, int low, int high, Long first, Long* best, int top, Long* found, int* total) {
    const Word worst = static_cast<Word>(best[top - 1] >> 32);
    const int room = kFound - top;
    const auto count = [&](Long least) {
        int n = 0;
        for_each_above(counters, low, high, worst, [&](Long one) { n += one >= least; });
        return sum_of_block(n, total);
    };
    // From `cut` on, the candidates fit into the space, and are either all above the worst, or as many as requested.
    Long cut = 0, some = 0, none = static_cast<Long>(kMost + 1) << kPlaceBits;
    int n = count(cut);
    if (n == 0) return;
    while (n > room) {
        cut = (some + none) / 2;
        n = count(cut);
        if (n > room) {
            some = cut;
        } else if (n < top) {
            none = cut;
            n = room + 1;
        }
    }
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    for_each_above(counters, low, high, worst, [&](Long one) {
        if (one < cut) return;
        const Long number = first + (0xffffu - (one & 0xffffu));
        found[atomicAdd(total, 1)] = one >> kPlaceBits << 32 | (0xffffffffu - number);
    });
    for (int i = threadIdx.x; i < top; i += kThreads) {
        if (best[i]) found[atomicAdd(total, 1)] = best[i];
    }
    __syncthreads();
    n = *total;
    for (int i = threadIdx.x; i < n; i += kThreads) {
        const Long one = found[i];
        int rank = 0;
        for (int j = 0; j < n; ++j) rank += found[j] > one;
        if (rank < top) best[rank] = one;
    }
}

__device__ void store_scores(const Word* counters, int n, unsigned char* scores) {
    for (int place = threadIdx.x; place < n; place += kThreads) {
        const Word score = counters[place / kParts] >> place % kParts * kBits & kMost;
        if (kBits == 8) {
            scores[place] = static_cast<unsigned char>(score);
        } else {
            reinterpret_cast<unsigned short*>(scores)[place] = static_cast<unsigned short>(score);
        }
    }
}

// Restrict `low:high` to the counters of the chunk in the window of the query; return false if there are none. All counters become zero.
__device__ __forceinline__ bool begin_chunk(const Index& index, const Queries& queries, const Pass& pass, int* low, int* high) {
    const long long begins = queries.windows[2 * blockIdx.x] - pass.first, ends = queries.windows[2 * blockIdx.x + 1] - pass.first;
    *low = begins > 0 ? static_cast<int>(min(begins, static_cast<long long>(pass.n))) : 0;
    *high = ends < pass.n ? static_cast<int>(max(ends, 0ll)) : pass.n;
    if (*low >= *high) return false;
    const int words = (index.chunk_size + kParts - 1) / kParts;
    for (int i = threadIdx.x; i < (words + 3) / 4; i += kThreads) reinterpret_cast<Four*>(dynamic_shared)[i] = Four{{0, 0, 0, 0}};
    __syncthreads();
    return true;
}

// Processing of the complete counters.
__device__ __forceinline__ void end_chunk(const Queries& queries, const Pass& pass, int low, int high, Long* found, int* total) {
    const Word* const counters = reinterpret_cast<const Word*>(dynamic_shared);
    const long long q = blockIdx.x;
    if (pass.scores) {
        store_scores(counters, pass.n, pass.scores + (q * pass.row_length + pass.first) * (kBits / 8));
    } else {
        keep_best(counters, low, high, static_cast<Long>(pass.first), queries.best + q * queries.top, queries.top, found, total);
    }
}

// Count with postings, one block per query.
extern "C" __global__ void __launch_bounds__(512) count_by_postings(Index index, Queries queries, Pass pass) {
    union Room {
        Word ranges[2][kThreads];
        Long found[kFound];
    };
    __shared__ Room room;
    __shared__ int total;
    Word* const counters = reinterpret_cast<Word*>(dynamic_shared);
    const int q = blockIdx.x, t = threadIdx.x;
    int low, high;
    if (!begin_chunk(index, queries, pass, &low, &high)) return;
    const Word* const starts = index.starts + pass.chunk * index.stride;
    const unsigned short* const postings = index.postings + index.firsts[pass.chunk];
    const long long first = 2 * (queries.offsets[q] - queries.offsets[0]), last = 2 * (queries.offsets[q + 1] - queries.offsets[0]);
    for (long long tile = first; tile < last; tile += kThreads) {
        const int row = tile + t < last ? queries.rows[tile + t] : -1;
        room.ranges[0][t] = row < 0 ? 0 : starts[row];
        room.ranges[1][t] = row < 0 ? 0 : starts[row + 1];
        __syncthreads();
        const int n = static_cast<int>(min(last - tile, static_cast<long long>(kThreads)));
        for (int r = t / pass.lanes; r < n; r += kThreads / pass.lanes) {
            const Word end = room.ranges[1][r];
            for (Word i = room.ranges[0][r] + t % pass.lanes; i < end; i += pass.lanes) {
                const Word place = postings[i];
                atomicAdd(counters + place / kParts, 1u << place % kParts * kBits);
                COUNT_OPERATIONS(1);
            }
        }
        __syncthreads();
    }
    end_chunk(queries, pass, low, high, room.found, &total);
}

// Words of a row that are loaded together.
struct __align__(4 * kColumns) Columns {
    Word of[kColumns];
};

// Sums of bits, one per bit of a word: bit i of plane p has the value 2^p in sum i.
struct Sums {
    Word planes[kPlanes];

    // A full adder for each bit: `low` becomes the sum, and the carry is returned.
    __device__ __forceinline__ static Word add(Word& low, Word a, Word b) {
        const Word both = low ^ a, carry = (low & a) | (both & b);
        low = both ^ b;
        return carry;
    }

    __device__ __forceinline__ void add_rows(const Word rows[kRowsAtOnce], int n_planes) {
        Word two = add(planes[0], rows[0], rows[1]);
        const Word four = add(planes[1], two, add(planes[0], rows[2], rows[3]));
        two = add(planes[0], rows[4], rows[5]);
        Word carry = add(planes[2], four, add(planes[1], two, add(planes[0], rows[6], rows[7])));
#pragma unroll
        for (int p = 3; p < kPlanes; ++p) {
            if (p >= n_planes) break;
            const Word next = planes[p] & carry;
            planes[p] ^= carry;
            carry = next;
        }
    }

    // Return a bit for each sum that is greater than `worst`.
    __device__ __forceinline__ Word above(Word worst) const {
        Word is_greater = 0, is_equal = ~0u;
#pragma unroll
        for (int p = kPlanes - 1; p >= 0; --p) {
            const Word of_worst = worst >> p & 1u ? ~0u : 0u;
            is_greater |= is_equal & planes[p] & ~of_worst;
            is_equal &= ~(planes[p] ^ of_worst);
        }
        return is_greater;
    }

    __device__ __forceinline__ Word of(int bit) const {
        Word sum = 0;
#pragma unroll
        for (int p = 0; p < kPlanes; ++p) sum |= (planes[p] >> bit & 1u) << p;
        return sum;
    }
};

// Count with bits, one block per query. Only sums that may be among the best are converted to counters.
extern "C" __global__ void __launch_bounds__(512) count_by_bits(Index index, Queries queries, Pass pass) {
    union Room {
        int rows[kThreads];
        Long found[kFound];
    };
    __shared__ Room room;
    __shared__ int total;
    Word* const counters = reinterpret_cast<Word*>(dynamic_shared);
    const int q = blockIdx.x, t = threadIdx.x;
    int low, high;
    if (!begin_chunk(index, queries, pass, &low, &high)) return;
    const Word* const bits = index.bits + pass.chunk * index.stride * index.columns + t * kColumns;
    const bool has_columns = t * kColumns < index.columns;
    const long long first = 2 * (queries.offsets[q] - queries.offsets[0]), last = 2 * (queries.offsets[q + 1] - queries.offsets[0]);
    Sums sums[kColumns] = {};
    for (long long tile = first; tile < last; tile += kThreads) {
        const int row = tile + t < last ? queries.rows[tile + t] : -1;
        room.rows[t] = row < 0 ? static_cast<int>(index.stride - 1) : row;
        __syncthreads();
        const int n = static_cast<int>(min(last - tile, static_cast<long long>(kThreads)));
        for (int r = 0; has_columns && r < n; r += kRowsAtOnce) {
            Columns found[kRowsAtOnce];
#pragma unroll
            for (int k = 0; k < kRowsAtOnce; ++k) {
                found[k] = *reinterpret_cast<const Columns*>(bits + static_cast<long long>(room.rows[r + k]) * index.columns);
            }
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                Word words[kRowsAtOnce];
#pragma unroll
                for (int k = 0; k < kRowsAtOnce; ++k) words[k] = found[k].of[c];
                sums[c].add_rows(words, pass.planes);
            }
            COUNT_OPERATIONS(kRowsAtOnce * kColumns);
        }
        __syncthreads();
    }
    const bool is_all = pass.scores != nullptr;
    const Word worst = is_all ? 0 : static_cast<Word>(queries.best[(q + 1ll) * queries.top - 1] >> 32);
#pragma unroll
    for (int c = 0; has_columns && c < kColumns; ++c) {
        for (Word votes = sums[c].above(worst); votes; votes &= votes - 1) {
            const int bit = __ffs(static_cast<int>(votes)) - 1, place = (t * kColumns + c) * 32 + bit;
            counters[place / kParts] |= sums[c].of(bit) << place % kParts * kBits;  // no other thread writes this word
        }
    }
    __syncthreads();
    end_chunk(queries, pass, low, high, room.found, &total);
}
