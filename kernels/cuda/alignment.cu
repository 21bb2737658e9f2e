// Smith-Waterman scores with affine gaps of queries against all sequences of a database, equal to those of kernels/cpu/alignment.py.
//
// Recurrence (Gotoh 1982), a gap of k residues costing gap_open + k * gap_extend; opening = gap_open + gap_extend:
//
//     H[i, j] = max(0, H[i-1, j-1] + s(q_j, d_i), E[i, j], F[i, j])
//     E[i+1, j] = max(E[i, j] - extending, H[i, j] - opening)        rows i: residues of the subject
//     F[i, j+1] = max(F[i, j] - extending, H[i, j] - opening)        columns j: residues of the query
//
// Division of labour. A query is cut into strips of kLanes * kColumns columns; a launch computes one strip against all subjects. kLanes
// neighbouring lanes of a warp share a subject, as in CUDASW++ 4.0 (Schmidt et al. 2024, BMC Bioinformatics 25:342): each keeps kColumns
// columns of H and E in registers, and the rows pass from lane to lane, two in a step, each lane one step after its left neighbour. H and F
// of each row at the right edge of a strip are stored in device memory for the next strip. Warps fetch subjects from a common counter, the
// longest first. Blocks are independent; a block has one barrier, after computing the table of scores.
//
// The few longest subjects would keep a warp busy long after all others. This is shortened if several warps share a subject (kWarps > 1).
// These warps are two phases of 32 steps apart, and pass on the rows of a phase in a ring in shared memory, with a barrier before each
// phase. The warps of a block then take subjects together, some subjects per group of kWarps warps.
//
// A word of 32 bits holds two alignments of 16 bits: two queries against one subject (kSubjects 1), or two subjects against one query
// (kSubjects 2). Scores of pairs of residues come from a table in shared memory with a row for each residue, made of the queries of the
// launch. A lane reads the scores of its columns in loads of 16 bytes. The lanes of a quarter of a warp are served together. Their
// addresses differ modulo 128 for all residues, so that there are no bank conflicts.
//
// Only H - opening is stored. E and F need this value, and so does the diagonal, since the opening is added to each score of the table.
//
// Numbers (NUMBERS):
// * 1: integers of 16 bits with DPX (compute capability 9.0 and later). Zero is represented by kZero, which is so large that H - opening
//   and F - extending are never negative. Sums of whole words then neither borrow nor carry between the halves. Such a sum is written as a
//   multiplication by `one`, whose value the compiler does not know, so that it uses the pipe of the multiplier while maxima use the other
//   one. The speed of the loop is also limited by the number of registers that its instructions read. Therefore all constants are compiled
//   in.
// * 2: half-precision floating point (8.x), exact up to 2,048.
// * 3: integers of 32 bits, one alignment in a word (7.5; on every device for pairs whose score exceeds 16 bits).

// Macros of a launch, set by kernels/cuda/alignment.py. The values here are those of one of its shapes.
#ifndef NUMBERS
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define NUMBERS 1
#elif __CUDA_ARCH__ >= 800
#define NUMBERS 2
#else
#define NUMBERS 3
#endif
#define SUBJECTS 1
#define LANES 4
#define COLUMNS 32
#define THREADS 384
#define BORROWS 0
#define ZERO 0x000d000du
#define MINUS_OPENING 0xfff3fff4u
#define MINUS_EXTENDING 0xffffffffu
#define MINUS_EXTENDING_WHOLE 0xfffeffffu
#endif

using Word = unsigned int;

constexpr int kNumbers = NUMBERS;
constexpr int kSubjects = SUBJECTS;                           // per word
constexpr int kLanes = LANES;                                 // lanes that share a subject, or a pair of subjects
constexpr int kColumns = COLUMNS;                             // per lane
constexpr bool kBorrows = BORROWS;                            // true if a score of the table, plus the opening, is negative
constexpr Word kZero = ZERO;                                  // represents a score of zero in both halves
constexpr Word kMinusOpening = MINUS_OPENING;                 // subtracts the opening from H, as a sum of whole words
constexpr Word kMinusExtending = MINUS_EXTENDING;             // subtracts the gap extension from E or F, for each half
constexpr Word kMinusExtendingWhole = MINUS_EXTENDING_WHOLE;  // the same, as a sum of whole words
constexpr int kDpx = 1, kWide = 3;
constexpr int kSymbols = 27, kPadding = 27, kTableRows = 28;  // symbols of the matrix, and a symbol that matches nothing
constexpr int kPlaces = kLanes < 8 ? 8 : kLanes;  // lanes whose scores are adjacent; repeated if kLanes < 8
constexpr int kColumnsOfLoad = kSubjects == 2 && kColumns % 8 == 0 ? 8 : 4;
constexpr int kLoads = kColumns / kColumnsOfLoad;
constexpr int kLoadBytes = kColumnsOfLoad * 4 / kSubjects;
constexpr int kRowBytes = kLoads * kPlaces * kLoadBytes;
constexpr int kWarps = kLanes > 32 ? kLanes / 32 : 1;       // warps that share a subject
constexpr int kLanesOfWarp = kLanes > 32 ? 32 : kLanes;     // lanes of a warp that share a subject
constexpr int kTogether = kWarps > 1 ? THREADS : 32;        // threads that take subjects together: a block, or a warp
constexpr int kStepsOfPhase = 32, kLag = 2, kRing = 128;    // phases between two warps of a subject; elements of their ring
constexpr Word kEveryLane = 0xffffffffu;
static_assert(kColumns % kColumnsOfLoad == 0 && 32 % kLanesOfWarp == 0, "a lane reads whole words");
static_assert(kLoadBytes == 16 || kPlaces >= 16, "lanes that are served together read from different banks");
static_assert(THREADS % kLanes == 0, "a block has whole groups of lanes");
static_assert(kSubjects == 1 || kNumbers != kWide, "a word of 32 bits holds one alignment");

__device__ __forceinline__ int as_int(Word word) { return static_cast<int>(word); }
__device__ __forceinline__ int greatest(int a, int b) { return a < b ? b : a; }

// Arithmetic: the maximum of three; the maximum of a sum and a third; H - opening; the score in a half of a word.
#if NUMBERS == 1
__device__ __forceinline__ Word greatest_of(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }
__device__ __forceinline__ Word sum_or(Word a, Word b, Word c) { return __viaddmax_s16x2(a, b, c); }
__device__ __forceinline__ Word whole_sum(Word a, Word b, Word one) { return a * one + b; }
__device__ __forceinline__ Word less_opening(Word h, Word one) { return whole_sum(h, kMinusOpening, one); }
__device__ __forceinline__ int score_of(Word best, int half) {
    return static_cast<int>(best >> 16 * half & 0xffffu) - static_cast<int>(kZero & 0xffffu);
}
#elif NUMBERS == 2
#ifdef __CUDACC__
#if __CUDA_ARCH__ < 800
#error "half precision has no maximum below compute capability 8.0"
#endif
// Inline assembly, since the intrinsics need a header that NVRTC does not provide.
__device__ __forceinline__ Word half_pair_sum(Word a, Word b) {
    Word sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
__device__ __forceinline__ Word half_pair_greatest(Word a, Word b) {
    Word greatest;
    asm("max.f16x2 %0, %1, %2;" : "=r"(greatest) : "r"(a), "r"(b));
    return greatest;
}
#endif
__device__ __forceinline__ Word greatest_of(Word a, Word b, Word c) { return half_pair_greatest(half_pair_greatest(a, b), c); }
__device__ __forceinline__ Word sum_or(Word a, Word b, Word c) { return half_pair_greatest(half_pair_sum(a, b), c); }
__device__ __forceinline__ Word whole_sum(Word a, Word b, Word) { return half_pair_sum(a, b); }
__device__ __forceinline__ Word less_opening(Word h, Word) { return half_pair_sum(h, kMinusOpening); }
__device__ __forceinline__ int score_of(Word best, int half) {
    const int bits = best >> 16 * half & 0x7fff, exponent = (bits >> 10) - 25, digits = (bits & 1023) | 1024;
    if (bits == 0) return 0;
    return exponent < 0 ? digits >> -exponent : digits << exponent;
}
#else
__device__ __forceinline__ Word greatest_of(Word a, Word b, Word c) {
    return static_cast<Word>(greatest(greatest(as_int(a), as_int(b)), as_int(c)));
}
__device__ __forceinline__ Word sum_or(Word a, Word b, Word c) { return static_cast<Word>(greatest(as_int(a + b), as_int(c))); }
__device__ __forceinline__ Word whole_sum(Word a, Word b, Word) { return a + b; }
__device__ __forceinline__ Word less_opening(Word h, Word) { return h + kMinusOpening; }
__device__ __forceinline__ int score_of(Word best, int) { return as_int(best); }
#endif

// State of a lane's columns between two steps: H - opening of the row above, and E of the next row.
struct Columns {
    Word above[kColumns], e[kColumns];
};

// Values that a lane receives from its left neighbour for the upper and the lower row of a step: H - opening, and F.
struct Left {
    Word upper, upper_f, lower, lower_f;
};

// True if a column limits the F that it passes on to at least zero. With DPX, this takes one more whole-word sum, in the multiplier's pipe,
// but saves the next column a maximum, in the slower pipe, since it need not limit H itself. Two of three columns do so, which balances the
// pipes. No column does if a whole-word sum could borrow.
__device__ __forceinline__ bool bounds_f(int column) { return kNumbers == kDpx && !kBorrows && column >= 0 && column % 3 != 2; }

// Compute one cell and return H - opening. `corner`: H - opening above and left of the cell. `e` and `f` are updated for the next row and
// the next column.
__device__ __forceinline__ Word advance(int column, Word corner, Word score, Word& e, Word& f, Word& h, Word one) {
    if (bounds_f(column - 1)) {
        h = greatest_of(whole_sum(corner, score, one), e, f);
    } else {
        h = sum_or(corner, score, greatest_of(e, f, kZero));
    }
    const Word opened = less_opening(h, one);
    e = sum_or(e, kMinusExtending, opened);
    if (bounds_f(column)) {
        f = greatest_of(whole_sum(f, kMinusExtendingWhole, one), opened, kZero);
    } else {
        f = sum_or(f, kMinusExtending, opened);
    }
    return opened;
}

// The scores of a lane's columns, in the table, for the residues of the two rows of a step.
struct Rows {
    const unsigned char *upper, *lower;
};

// Scores of a subject in the columns of a load, two columns in a word.
struct Pairs {
    Word words[4];
};

__device__ __forceinline__ Pairs pairs_at(const unsigned char* place) {
    if (kLoadBytes == 16) {
        const uint4 words = *reinterpret_cast<const uint4*>(place);
        return Pairs{{words.x, words.y, words.z, words.w}};
    }
    const uint2 words = *reinterpret_cast<const uint2*>(place);
    return Pairs{{words.x, words.y, 0, 0}};
}

// Scores of the columns of a load: unchanged, or of two subjects, with two columns in a word each, interleaved.
__device__ __forceinline__ void load_scores(const unsigned char* mine, const unsigned char* other, int load, Word* scores) {
    const int place = load * kPlaces * kLoadBytes;
    if (kSubjects == 1) {
        const uint4 words = *reinterpret_cast<const uint4*>(mine + place);
        scores[0] = words.x, scores[1] = words.y, scores[2] = words.z, scores[3] = words.w;
    } else {
        const Pairs first = pairs_at(mine + place), second = pairs_at(other + place);
#pragma unroll
        for (int k = 0; k < kColumnsOfLoad; ++k) scores[k] = __byte_perm(first.words[k / 2], second.words[k / 2], k % 2 == 0 ? 0x5410 : 0x7632);
    }
}

// Compute two rows in the columns of a lane. `corner`: H - opening above and left of the first column. `left` is replaced by the values for
// the next lane.
//
// The lower row is one column behind the upper row, so that a new H can overwrite the register with the H of the row above.
__device__ __forceinline__ void advance_rows(Columns& columns, const Rows& mine, const Rows& other, Word corner, Left& left, Word& best,
                                             Word one) {
    Word lower_corner = 0, lower_score = 0, upper_h, lower_h;
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
        Word upper[kColumnsOfLoad], lower[kColumnsOfLoad];
        load_scores(mine.upper, other.upper, load, upper);
        load_scores(mine.lower, other.lower, load, lower);
#pragma unroll
        for (int k = 0; k < kColumnsOfLoad; ++k) {
            const int c = load * kColumnsOfLoad + k;
            const Word opened = advance(c, corner, upper[k], columns.e[c], left.upper_f, upper_h, one);
            corner = columns.above[c];
            if (c > 0) {
                columns.above[c - 1] = advance(c - 1, lower_corner, lower_score, columns.e[c - 1], left.lower_f, lower_h, one);
                best = greatest_of(best, upper_h, lower_h);
            } else {
                best = greatest_of(best, upper_h, upper_h);
            }
            lower_corner = left.upper;
            lower_score = lower[k];
            left.upper = opened;
        }
    }
    left.lower = advance(kColumns - 1, lower_corner, lower_score, columns.e[kColumns - 1], left.lower_f, lower_h, one);
    columns.above[kColumns - 1] = left.lower;
    best = greatest_of(best, lower_h, lower_h);
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// The strip of a query: n residues of the query; its scores by subject (null if this half of the words is unused); and a flag that is set
// to 1 if a score exceeds `most`.
struct Strip {
    const signed char* residues;
    int* scores;
    int* passed;
    int n;
};

// Strips in the low and the high half of the words. continued: 1 in each half that continues a strip. most: largest score that cannot have
// overflowed.
struct Strips {
    Strip low, high;
    Word continued;
    int most;
};

// Subjects of a launch. residues: residues of the batch. offsets (n + 1): start indices of its n subjects, and the end of the last, in the
// whole database. order: indices of the subjects to score, in processing order; null: all, in reverse order. border_in, border_out: values
// at the right edge of the preceding strips and of these strips, two rows per element; may be the same array; null if no half has a
// preceding or following strip.
struct Subjects {
    const signed char* residues;
    const long long* offsets;
    const Word* order;
    const uint4* border_in;
    uint4* border_out;
    Word n, n_items;
};

// Write the scores of each residue with each column of the strips, in the order in which lanes read them.
__device__ void fill_table(const Strip& low, const Strip& high, const int* matrix) {
    for (int i = threadIdx.x; i < kTableRows * kLoads * kPlaces * kColumnsOfLoad; i += THREADS) {
        const int k = i % kColumnsOfLoad, place = i / kColumnsOfLoad % kPlaces, load = i / (kColumnsOfLoad * kPlaces) % kLoads;
        const int letter = i / (kColumnsOfLoad * kPlaces * kLoads);
        const int column = place % kLanes * kColumns + load * kColumnsOfLoad + k;
        const int score = letter == kPadding || column >= low.n ? 0 : matrix[low.residues[column] * kSymbols + letter];
        if (kSubjects == 2) {
            reinterpret_cast<unsigned short*>(dynamic_shared)[i] = static_cast<unsigned short>(score);
        } else {
            const int high_score = letter == kPadding || column >= high.n ? 0 : matrix[high.residues[column] * kSymbols + letter];
            const Word both = static_cast<Word>(high_score) << 16 | (static_cast<Word>(score) & 0xffffu);
            reinterpret_cast<Word*>(dynamic_shared)[i] = kNumbers == kWide ? static_cast<Word>(score) : both;
        }
    }
}

// The subject of a lane. `border`: index of its first element in the borders; an element holds two rows.
struct Subject {
    const signed char* residues;
    int n, number;
    long long border;
};

__device__ Subject subject_of(const Subjects& all, Word item) {
    if (item >= all.n_items) return Subject{all.residues, 0, -1, 0};
    const Word number = all.order != nullptr ? all.order[item] : all.n - 1 - item;
    const long long begin = all.offsets[number], place = begin - all.offsets[0];
    return Subject{all.residues + place, static_cast<int>(all.offsets[number + 1] - begin), static_cast<int>(number),
                   (place + number + 1) / 2};
}

// Return the residue of a row. Rows before the first and after the last residue of a subject are padding.
__device__ __forceinline__ Word letter_at(const Subject& subject, int row) {
    return static_cast<Word>(row) < static_cast<Word>(subject.n) ? __ldg(subject.residues + row) : kPadding;
}

// Residues of the two rows of a step, of both subjects.
struct Letters {
    Word upper, lower, other_upper, other_lower;
};

__device__ __forceinline__ Letters letters_at(const Subject& mine, const Subject& other, int row) {
    Letters letters{letter_at(mine, row), letter_at(mine, row + 1), kPadding, kPadding};
    if (kSubjects == 2) letters.other_upper = letter_at(other, row), letters.other_lower = letter_at(other, row + 1);
    return letters;
}

#ifdef __CUDACC__
// Prefetch a line of 128 bytes of device memory into the cache shared by all multiprocessors.
__device__ __forceinline__ void fetch_line(const void* place) { asm volatile("prefetch.global.L2 [%0];" ::"l"(place)); }
#endif

// Prefetch the cache lines that are read 16 steps later (residues: 64), one line per call; must be called every eighth step. The latency of
// device memory is longer than a step, and the compiler moves loads to shortly before their values are used.
__device__ __forceinline__ void fetch_ahead(const Subject& mine, const Subject& other, int row, const uint4* border, int n_in) {
    if (row + 128 < mine.n) fetch_line(mine.residues + row + 128);
    if (kSubjects == 2 && row + 128 < other.n) fetch_line(other.residues + row + 128);
    if (row + 32 < n_in) fetch_line(border + (row + 32) / 2);
}

__device__ __forceinline__ void keep_score(const Strip& strip, int most, int subject, int score) {
    if (strip.scores == nullptr || subject < 0) return;
    atomicMax(strip.scores + subject, score);
    if (score > most) *strip.passed = 1;
}

// Return the index of the first subject that the warp takes next or, if warps share subjects, the block.
__device__ __forceinline__ Word take_subjects(Word* next_item) {
    constexpr Word n = kTogether / kLanes * kSubjects;
    Word item = 0;
    if (kWarps == 1) {
        if ((threadIdx.x & 31) == 0) item = atomicAdd(next_item, n);
        return __shfl_sync(kEveryLane, item, 0);
    }
    __shared__ Word taken;
    __syncthreads();  // all threads have read the previous value
    if (threadIdx.x == 0) taken = atomicAdd(next_item, n);
    __syncthreads();
    return taken;
}

// Return the number of rows of the longest subject that is processed together with this lane's subject, which has `mine` rows.
__device__ __forceinline__ int maximum_rows(const Subjects& subjects, Word first, int mine) {
    int most = mine;
    if (kWarps == 1) {
        for (int distance = 16; distance > 0; distance >>= 1) most = greatest(most, __shfl_xor_sync(kEveryLane, most, distance));
    } else {
        for (Word i = 0; i < kTogether / kLanes * kSubjects; ++i) most = greatest(most, subject_of(subjects, first + i).n);
    }
    return most;
}

// Scores one strip of a query, or of two, against subjects.
//
// matrix: (27, 27), rows by the query's residue, with the opening added; in half precision if NUMBERS is 2. one: 1. next_item: initially
// zero. The stored scores of the queries are replaced if the scores of the strips are higher; see `Strip`.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    score_strips(Subjects subjects, Strips strips, const int* matrix, Word one, Word* next_item) {
    fill_table(strips.low, strips.high, matrix);
    __syncthreads();
    const int place = threadIdx.x % kLanesOfWarp, warp = threadIdx.x % kLanes / 32;  // among those that share a subject
    const unsigned char* table = dynamic_shared + threadIdx.x % kPlaces * kLoadBytes;
    uint4* const rings = reinterpret_cast<uint4*>(dynamic_shared + kTableRows * kRowBytes);
    uint4* const ring_out = rings + (threadIdx.x / kLanes * kWarps + warp) * kRing;  // the ring of the last warp is not read
    const uint4* const ring_in = ring_out - kRing;
    const bool is_first = place == 0 && warp == 0, is_last = place == kLanesOfWarp - 1 && warp == kWarps - 1;
    const Word nothing = less_opening(kZero, one), continued = strips.continued;
    const Word fresh = nothing & ~continued, fresh_f = kZero & ~continued;
    const Left nothing_left{nothing, kZero, nothing, kZero};
    while (true) {
        const Word taken = take_subjects(next_item);
        if (taken >= subjects.n_items) break;
        const Word item = taken + threadIdx.x % kTogether / kLanes * kSubjects;
        const Subject mine = subject_of(subjects, item);
        const Subject other = kSubjects == 2 ? subject_of(subjects, item + 1) : mine;
        const int n_rows = greatest(mine.n, other.n);
        const long long border = other.n > mine.n ? other.border : mine.border;
        const int n_in = subjects.border_in != nullptr && is_first ? n_rows : 0;
        const int n_out = subjects.border_out != nullptr && is_last ? n_rows : 0;
        const int steps = (maximum_rows(subjects, taken, n_rows) + 1) / 2 + kLanesOfWarp - 1;

        Columns columns;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            columns.above[c] = nothing;
            columns.e[c] = kZero;
        }
        Word best = kZero, corner = nothing;
        Left left = nothing_left;
        int row = -2 * place;  // index of the upper row of the step
        // Residues and borders are loaded two steps ahead.
        Letters letters = letters_at(mine, other, row), next_letters = letters_at(mine, other, row + 2);
        uint4 from_left{nothing, kZero, nothing, kZero}, next_from_left = from_left, from_ring = from_left;
        if (n_in > 0) from_left = subjects.border_in[border];
        if (n_in > 2) next_from_left = subjects.border_in[border + 1];
        const int phases = kWarps == 1 ? 1 : (steps + kStepsOfPhase - 1) / kStepsOfPhase + kLag * (kWarps - 1);
        for (int phase = 0; phase < phases; ++phase) {
            int step = 0, end = steps;
            if (kWarps > 1) {
                __syncthreads();
                step = (phase - kLag * warp) * kStepsOfPhase;
                if (warp > 0) from_ring = ring_in[step & (kRing - 1)];
                end = step < 0 || step + kStepsOfPhase > steps ? (step < 0 ? step : steps) : step + kStepsOfPhase;
            }
            for (; step < end; ++step) {
                left.upper = __shfl_up_sync(kEveryLane, left.upper, 1, kLanesOfWarp);
                left.upper_f = __shfl_up_sync(kEveryLane, left.upper_f, 1, kLanesOfWarp);
                left.lower = __shfl_up_sync(kEveryLane, left.lower, 1, kLanesOfWarp);
                left.lower_f = __shfl_up_sync(kEveryLane, left.lower_f, 1, kLanesOfWarp);
                if (is_first) {
                    left = Left{(from_left.x & continued) | fresh, (from_left.y & continued) | fresh_f, (from_left.z & continued) | fresh,
                                (from_left.w & continued) | fresh_f};
                }
                if (kWarps > 1) {
                    // The preceding warp provides no values after its last row. All lanes read anyway, since a branch costs more.
                    const bool is_there = step + kLanesOfWarp - 1 < steps, takes = place == 0 && warp > 0;
                    left.upper = takes ? (is_there ? from_ring.x : nothing) : left.upper;
                    left.upper_f = takes ? (is_there ? from_ring.y : kZero) : left.upper_f;
                    left.lower = takes ? (is_there ? from_ring.z : nothing) : left.lower;
                    left.lower_f = takes ? (is_there ? from_ring.w : kZero) : left.lower_f;
                    if (warp > 0) from_ring = ring_in[(step + 1) & (kRing - 1)];
                }
                const Rows rows{table + letters.upper * kRowBytes, table + letters.lower * kRowBytes};
                const Rows other_rows{table + letters.other_upper * kRowBytes, table + letters.other_lower * kRowBytes};
                letters = next_letters;
                from_left = next_from_left;
                next_letters = letters_at(mine, other, row + 4);
                if (step % 8 == 0) fetch_ahead(mine, other, row, subjects.border_in + border, n_in);
                if (static_cast<Word>(row + 4) < static_cast<Word>(n_in)) next_from_left = subjects.border_in[border + step + 2];
                const Word next_corner = left.lower;
                advance_rows(columns, rows, other_rows, corner, left, best, one);
                corner = next_corner;
                const uint4 handed_on{left.upper, left.upper_f, left.lower, left.lower_f};
                if (static_cast<Word>(row) < static_cast<Word>(n_out)) subjects.border_out[border + row / 2] = handed_on;
                if (kWarps > 1 && place == kLanesOfWarp - 1) ring_out[row / 2 & (kRing - 1)] = handed_on;
                row += 2;
            }
        }

        for (int distance = kLanesOfWarp / 2; distance > 0; distance >>= 1) {
            best = greatest_of(best, best, __shfl_xor_sync(kEveryLane, best, distance));
        }
        if (place == 0) {
            keep_score(strips.low, strips.most, mine.number, score_of(best, 0));
            if (kSubjects == 2) keep_score(strips.low, strips.most, other.number, score_of(best, 1));
            if (kSubjects == 1 && kNumbers != kWide) keep_score(strips.high, strips.most, mine.number, score_of(best, 1));
        }
    }
}

// List the subjects whose score exceeds `most`, so that it may have overflowed, and set this score to zero. scores (n): scores of one
// query. found: number of listed subjects (initially zero), followed by their indices.
extern "C" __global__ void list_overflows(int* scores, Word n, int most, Word* found) {
    for (Word i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (scores[i] > most) {
            scores[i] = 0;
            found[1 + atomicAdd(found, 1u)] = i;
        }
    }
}
