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
// columns of H and E in registers, and the rows pass from lane to lane, kRows in a step, each lane one step after its left neighbour. H and
// F of each row at the right edge of a strip are stored in device memory for the next strip. Warps fetch subjects from a common counter,
// the longest first. Blocks are independent; a block has one barrier, after computing the table of scores.
//
// The few longest subjects would keep a warp busy long after all others. This is shortened if several warps share a subject (kWarps > 1).
// These warps are two phases of 32 steps apart, and pass on the rows of a phase in a ring in shared memory, with a barrier before each
// phase. The warps of a block then take subjects together, some subjects per group of kWarps warps.
//
// A word of 32 bits holds two alignments of 16 bits: two queries against one subject (kSubjects 1), or two subjects against one query
// (kSubjects 2). Scores of pairs of residues come from a table in shared memory with a row for each residue, made of the queries of the
// launch. A lane reads the scores of its columns in loads of 16 bytes. The lanes of a quarter of a warp are served together. Their
// addresses differ modulo 128 for all residues, so that there are no bank conflicts. The scores of two subjects are combined in a word by a
// multiplication by 0x10000 and a sum, since a permutation of bytes would use the pipe of the maxima.
//
// Only H - opening is stored. E and F need this value, and so does the diagonal, since the opening is added to each score of the table.
//
// Numbers (NUMBERS):
// * 1: integers of 16 bits with DPX (compute capability 9.0 and later). Zero is represented by kZero, which is so large that H - opening
//   and F - extending are never negative. Sums of whole words then neither borrow nor carry between the halves. Such a sum is written as a
//   multiplication by `one`, whose value the compiler does not know, so that it uses the pipe of the multiplier while maxima use the other
//   one, which is slower. The speed of the loop is also limited by the number of registers that its instructions read. Therefore all
//   constants are compiled in, and sums of two registers use `same_one`, which the instruction reads from constant memory.
//   If kSkewed, scores in row r and column c of a step, both counted from 0, are larger by r + c extensions. Then E and F are passed on
//   without subtracting an extension, and F is limited to at least zero, a constant of each diagonal, in the same maximum of three. H need
//   not be limited itself. Two pairs of cells thus take seven instructions of the slower pipe and five of the multiplier's.
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
#define ZERO 0x000d000du
#define MINUS_OPENING 0xfff3fff4u
#define MINUS_EXTENDING 0xffffffffu
#define SKEW (NUMBERS == 1 ? 0x00010001u : 0u)
#endif

using Word = unsigned int;

constexpr int kNumbers = NUMBERS;
constexpr int kSubjects = SUBJECTS;                           // per word
constexpr int kLanes = LANES;                                 // lanes that share a subject, or a pair of subjects
constexpr int kColumns = COLUMNS;                             // per lane
constexpr Word kZero = ZERO;                                  // represents a score of zero in both halves
constexpr Word kMinusOpening = MINUS_OPENING;                 // subtracts the opening from H, as a sum of whole words
constexpr Word kMinusExtending = MINUS_EXTENDING;             // subtracts the gap extension from E or F, for each half
constexpr Word kSkew = SKEW;                                  // the gap extension in both halves if scores are skewed, otherwise 0
constexpr bool kSkewed = kSkew != 0;
constexpr int kDpx = 1, kWide = 3;
constexpr int kSymbols = 27, kPadding = 27, kTableRows = 28;  // symbols of the matrix, and a symbol that matches nothing
constexpr int kPlaces = kLanes < 8 ? 8 : kLanes;            // lanes whose scores are adjacent; repeated if kLanes < 8
constexpr int kLoads = kColumns / 4, kLoadBytes = 16;         // of the scores of a lane's columns
constexpr int kRowBytes = kLoads * kPlaces * kLoadBytes;
constexpr int kWarps = kLanes > 32 ? kLanes / 32 : 1;       // warps that share a subject
constexpr int kRows = kWarps > 1 ? 2 : 4;                   // rows of a step
constexpr int kElements = kRows / 2;                        // elements of a border in a step: two rows each
constexpr int kLanesOfWarp = kLanes > 32 ? 32 : kLanes;     // lanes of a warp that share a subject
constexpr int kTogether = kWarps > 1 ? THREADS : 32;        // threads that take subjects together: a block, or a warp
constexpr int kStepsOfPhase = 32, kLag = 2, kRing = 128;    // phases between two warps of a subject; elements of their ring
constexpr Word kEveryLane = 0xffffffffu;
static_assert(kColumns % 4 == 0 && 32 % kLanesOfWarp == 0, "a lane reads whole words");
static_assert(THREADS % kLanes == 0, "a block has whole groups of lanes");
static_assert(kSubjects == 1 || kNumbers != kWide, "a word of 32 bits holds one alignment");
static_assert(!kSkewed || (kNumbers == kDpx && kColumns + kRows <= 80), "_DIAGONALS of alignment.py");

__device__ __forceinline__ int as_int(Word word) { return static_cast<int>(word); }
__device__ __forceinline__ int greatest(int a, int b) { return a < b ? b : a; }

// Arithmetic: the maximum of two and of three; the maximum of a sum and a third; a sum; H - opening; the score in a half of a word.
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

// Values that a lane receives from its left neighbour for the rows of a step: H - opening, and F.
struct Left {
    Word h[kRows], f[kRows];
};

// Replace the values of a lane by those of its left neighbour or, in the first lane, by those at the border of the preceding strip. In the
// halves that do not continue a strip, `nothing_left` takes the place of the border.
__device__ __forceinline__ void take_from_left(Left& left, const Left& nothing_left, const uint4* border, Word continued, bool is_first) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        left.h[i] = __shfl_up_sync(kEveryLane, left.h[i], 1, kLanesOfWarp);
        left.f[i] = __shfl_up_sync(kEveryLane, left.f[i], 1, kLanesOfWarp);
    }
    if (!is_first) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        const uint4 rows = border[i / 2];
        left.h[i] = ((i % 2 == 0 ? rows.x : rows.z) & continued) | (nothing_left.h[i] & ~continued);
        left.f[i] = ((i % 2 == 0 ? rows.y : rows.w) & continued) | (nothing_left.f[i] & ~continued);
    }
}

// Replace the values of the lane that `takes` those of the preceding warp, which provides none after its last row (`is_there`). All lanes
// compute this, since a branch costs more.
__device__ __forceinline__ void take_from_warp(Left& left, const Left& nothing_left, const uint4& ring, bool takes, bool is_there) {
    left.h[0] = takes ? (is_there ? ring.x : nothing_left.h[0]) : left.h[0];
    left.f[0] = takes ? (is_there ? ring.y : nothing_left.f[0]) : left.f[0];
    left.h[1] = takes ? (is_there ? ring.z : nothing_left.h[1]) : left.h[1];
    left.f[1] = takes ? (is_there ? ring.w : nothing_left.f[1]) : left.f[1];
}

// Subtracts n extensions from each half.
template <int n>
constexpr Word kMinusExtensions = (0u - n * (kSkew & 0xffffu) & 0xffffu) * 0x10001u;

// Numbers whose values the compiler does not know: 1, in a register; 1 and 0x10000, in constant memory.
struct Factors {
    Word one, same_one, shift;
};

// Compute one cell. `corner`: H - opening above and left of the cell. `e` and `f` are updated for the next row and the next column.
// `opened` becomes H - opening, and `below` the same for the next row, which belongs to the next step if `is_last`. `diagonal`: row plus
// column of the cell, both counted from 0 in each step.
__device__ __forceinline__ void advance(bool is_last, int diagonal, Word corner, Word score, Word& e, Word& f, Word& h, Word& opened,
                                        Word& below, const Factors& factors) {
    if (kSkewed) {
        h = greatest_of(whole_sum(corner, score, factors.same_one), e, f);
        opened = whole_sum(h, kMinusOpening + kSkew, factors.one);
        below = is_last ? whole_sum(h, kMinusOpening + kSkew - kRows * kSkew, factors.one) : opened;
        e = sum_or(e, is_last ? kMinusExtensions<kRows> : 0, below);
        f = greatest_of(f, opened, kZero + (diagonal + 1) * kSkew);
    } else {
        h = sum_or(corner, score, greatest_of(e, f, kZero));
        below = opened = less_opening(h, factors.one);
        e = sum_or(e, kMinusExtending, opened);
        f = sum_or(f, kMinusExtending, opened);
    }
}

// The scores of a lane's columns, in the table, for the residues of the rows of a step.
struct Rows {
    const unsigned char* row[kRows];
};

__device__ __forceinline__ Rows rows_at(const unsigned char* table, const Word* letters) {
    Rows rows;
#pragma unroll
    for (int i = 0; i < kRows; ++i) rows.row[i] = table + letters[i] * kRowBytes;
    return rows;
}

// Scores of a subject in the columns of a load.
struct Scores {
    Word words[4];
};

__device__ __forceinline__ Scores scores_at(const unsigned char* place) {
    const uint4 all = *reinterpret_cast<const uint4*>(place);
    return Scores{{all.x, all.y, all.z, all.w}};
}

// Compute the rows of a step in the columns of a lane. `corner`: H - opening above and left of the first column. `left` is replaced by the
// values for the next lane.
//
// Each row is one column behind the row above it, so that the cells of a diagonal are independent.
__device__ __forceinline__ void advance_rows(Columns& columns, const Rows& mine, const Rows& other, Word corner, Left& left, Word& best,
                                             const Factors& factors) {
    constexpr int kDiagonals = kColumns + kRows - 1;
    Word corners[kRows], h[kRows], best_of_step = kSkewed ? kZero : best;
    Scores scores[kRows];
    corners[0] = corner;
#pragma unroll
    for (int diagonal = 0; diagonal < kDiagonals; ++diagonal) {
        Word next_corners[kRows] = {};
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const int c = diagonal - row;
            if (c < 0 || c >= kColumns) continue;
            if (c % 4 == 0) {
                scores[row] = scores_at(mine.row[row] + c / 4 * kPlaces * kLoadBytes);
                if (kSubjects == 2) {
                    const Scores high = scores_at(other.row[row] + c / 4 * kPlaces * kLoadBytes);
#pragma unroll
                    for (int k = 0; k < 4; ++k) scores[row].words[k] += high.words[k] * factors.shift;
                }
            }
            const bool is_last = row + 1 == kRows;
            const Word score = scores[row].words[c % 4];
            Word opened, below;
            advance(is_last, diagonal, corners[row], score, columns.e[c], left.f[row], h[row], opened, below, factors);
            if (row == 0) next_corners[0] = columns.above[c];
            if (is_last) columns.above[c] = below;
            if (!is_last) next_corners[row + 1] = left.h[row];
            left.h[row] = opened;
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row) corners[row] = next_corners[row];
#pragma unroll
        for (int row = 0; row < kRows; row += 2) {
            const bool has_upper = row <= diagonal && diagonal - row < kColumns, has_lower = row < diagonal && diagonal - row <= kColumns;
            if (has_upper || has_lower) {
                best_of_step = greatest_of(best_of_step, h[has_upper ? row : row + 1], h[has_lower ? row + 1 : row]);
            }
        }
        if (kSkewed) best_of_step = whole_sum(best_of_step, kSkew, factors.one);
    }
    best = kSkewed ? sum_or(best_of_step, kMinusExtensions<kDiagonals>, best) : best_of_step;
#pragma unroll
    for (int row = 0; kSkewed && row < kRows; ++row) {
        left.h[row] = whole_sum(left.h[row], 0u - kColumns * kSkew, factors.one);
        left.f[row] = whole_sum(left.f[row], 0u - kColumns * kSkew, factors.one);
    }
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
    for (int i = threadIdx.x; i < kTableRows * kLoads * kPlaces * 4; i += THREADS) {
        const int place = i / 4 % kPlaces, load = i / (4 * kPlaces) % kLoads, letter = i / (4 * kPlaces * kLoads);
        const int column = place % kLanes * kColumns + load * 4 + i % 4;
        const int score = letter == kPadding || column >= low.n ? 0 : matrix[low.residues[column] * kSymbols + letter];
        const bool has_high = kSubjects == 1 && letter != kPadding && column < high.n;
        const int high_score = has_high ? matrix[high.residues[column] * kSymbols + letter] : 0;
        const Word both = static_cast<Word>(high_score) << 16 | (static_cast<Word>(score) & 0xffffu);
        reinterpret_cast<Word*>(dynamic_shared)[i] = kNumbers == kWide ? static_cast<Word>(score) : both;
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

// Residues of the rows of a step, of both subjects.
struct Letters {
    Word mine[kRows], other[kRows];
};

__device__ __forceinline__ Letters letters_at(const Subject& mine, const Subject& other, int row) {
    Letters letters;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        letters.mine[i] = letter_at(mine, row + i);
        letters.other[i] = kSubjects == 2 ? letter_at(other, row + i) : kPadding;
    }
    return letters;
}

#ifdef __CUDACC__
// Prefetch a line of 128 bytes of device memory into the cache shared by all multiprocessors.
__device__ __forceinline__ void fetch_line(const void* place) { asm volatile("prefetch.global.L2 [%0];" ::"l"(place)); }
#endif

// Prefetch the cache lines that are read 32 rows later (residues: 128), one line per call; must be called every 16 rows. The latency of
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
// matrix: (27, 27), rows by the query's residue, with the opening added and, if scores are skewed, the extension; in half precision if
// NUMBERS is 2. next_item: initially zero. The stored scores of the queries are replaced if the scores of the strips are higher; see
// `Strip`. one, same_one, shift: see `Factors`; the compiler loads adjacent parameters together into registers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    score_strips(Subjects subjects, Strips strips, const int* matrix, Word one, Word* next_item, Word same_one, Word shift) {
    const Factors factors{one, same_one, shift};
    fill_table(strips.low, strips.high, matrix);
    __syncthreads();
    const int place = threadIdx.x % kLanesOfWarp, warp = threadIdx.x % kLanes / 32;  // among those that share a subject
    const unsigned char* table = dynamic_shared + threadIdx.x % kPlaces * kLoadBytes;
    uint4* const rings = reinterpret_cast<uint4*>(dynamic_shared + kTableRows * kRowBytes);
    uint4* const ring_out = rings + (threadIdx.x / kLanes * kWarps + warp) * kRing;  // the ring of the last warp is not read
    const uint4* const ring_in = ring_out - kRing;
    const bool is_first = place == 0 && warp == 0, is_last = place == kLanesOfWarp - 1 && warp == kWarps - 1;
    const Word nothing = less_opening(kZero, factors.one);
    Left nothing_left;
#pragma unroll
    for (int i = 0; i < kRows; ++i) nothing_left.h[i] = nothing + i * kSkew, nothing_left.f[i] = kZero + i * kSkew;
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
        const int steps = (maximum_rows(subjects, taken, n_rows) + kRows - 1) / kRows + kLanesOfWarp - 1;

        Columns columns;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            columns.above[c] = nothing + c * kSkew;
            columns.e[c] = kZero + c * kSkew;
        }
        Word best = kZero, corner = nothing - kSkew;
        Left left = nothing_left;
        int row = -kRows * place;  // index of the first row of the step
        // Residues and borders are loaded two steps ahead.
        Letters letters = letters_at(mine, other, row), next_letters = letters_at(mine, other, row + kRows);
        uint4 from_left[kElements], next_from_left[kElements], from_ring{};
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
            from_left[i] = next_from_left[i] =
                uint4{nothing_left.h[2 * i], nothing_left.f[2 * i], nothing_left.h[2 * i + 1], nothing_left.f[2 * i + 1]};
            if (n_in > 2 * i) from_left[i] = subjects.border_in[border + i];
            if (n_in > kRows + 2 * i) next_from_left[i] = subjects.border_in[border + kElements + i];
        }
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
                take_from_left(left, nothing_left, from_left, strips.continued, is_first);
                if (kWarps > 1) {
                    take_from_warp(left, nothing_left, from_ring, place == 0 && warp > 0, step + kLanesOfWarp - 1 < steps);
                    if (warp > 0) from_ring = ring_in[(step + 1) & (kRing - 1)];
                }
                const Rows rows = rows_at(table, letters.mine), other_rows = rows_at(table, letters.other);
                letters = next_letters;
                next_letters = letters_at(mine, other, row + 2 * kRows);
                if (step % (16 / kRows) == 0) fetch_ahead(mine, other, row, subjects.border_in + border, n_in);
#pragma unroll
                for (int i = 0; i < kElements; ++i) {
                    from_left[i] = next_from_left[i];
                    if (static_cast<Word>(row + 2 * kRows + 2 * i) < static_cast<Word>(n_in)) {
                        next_from_left[i] = subjects.border_in[border + kElements * (step + 2) + i];
                    }
                }
                const Word next_corner = left.h[kRows - 1] - kRows * kSkew;
                advance_rows(columns, rows, other_rows, corner, left, best, factors);
                corner = next_corner;
#pragma unroll
                for (int i = 0; i < kElements; ++i) {
                    const uint4 handed_on{left.h[2 * i], left.f[2 * i], left.h[2 * i + 1], left.f[2 * i + 1]};
                    if (static_cast<Word>(row + 2 * i) < static_cast<Word>(n_out)) subjects.border_out[border + row / 2 + i] = handed_on;
                    if (kWarps > 1 && place == kLanesOfWarp - 1) ring_out[row / 2 & (kRing - 1)] = handed_on;
                }
                row += kRows;
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
