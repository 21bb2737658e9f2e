// Alignment of reads (patterns) with references (texts), with a bounded number of gaps; bit-identical to kernels/cpu/gapsmis.py (the
// problem of GapsMis: Flouri et al. 2011; Carroll 2018, chapter 5).
//
// Recurrence for a cell (i, j), after i symbols of the text and j symbols of the pattern, with the cost o of a gap and the cost x of each
// of its symbols:
//
//     G[q, i, j] = max(G[q, i-1, j-1] + s(p_j, t_i), F[q, i, j], E[q, i, j])
//     F[q, i, j] = max(F[q, i, j-1] - x, G[q-1, i, j-1] - o - x)      symbols of the pattern only
//     E[q, i, j] = max(E[q, i-1, j] - x, G[q-1, i-1, j] - o - x)      symbols of the text only
//
// Symbols of the text are columns and symbols of the pattern are rows. An alignment may thus start and end in any column of the first and
// the last row, which are each processed once, instead of in any row. The seed is excluded from both: the alignment starts where the seed
// ends.
//
// Division of labour. kLanes neighbouring lanes of a warp share a unit: two pairs, one in each half of the words (kNumbers 1), or one pair
// (2). Each lane holds kColumns columns with G and F of all layers in registers. Rows pass from lane to lane, each lane one step after its
// left neighbour. A longer text is divided into strips; values at the right edge of a strip are stored in device memory for the next strip.
// Warps are independent. Only with kScores kProfile, a block has one text, whose scores with each symbol are in shared memory.
//
// Numbers are never negative: `zero` represents a score of 0, and kNone, which is at least the cost of opening a gap, represents impossible
// cells. The cost of a gap can thus be subtracted from both halves of a word by one subtraction of the whole word without a borrow; it is
// written as a multiplication by `one`, whose value the compiler does not know, so that it uses another pipe than maxima. A sum below kNone
// becomes kNone.
//
// Directions (kTraces): scores are multiplied by four, and the last two bits rank steps with equal scores: 3 to start here, 2 a pair, 1 a
// symbol of the pattern only, 0 a symbol of the text only; for a gap, 2 to leave it. The maximum is then the selected step, and its last
// bits are the direction. Four bits per cell and layer are written to device memory: these two, and one bit each that shows whether the gap
// in the text or in the pattern ends here. A second kernel follows the directions, one thread per pair.

// Macros of a launch, set by kernels/cuda/gapsmis.py. The values here are those of one of its plans.
#ifndef GAPS
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define NUMBERS 1
#else
#define NUMBERS 2
#endif
#define GAPS 2
#define MODE 0
#define SEEDED 0
#define PUBLISHED 0
#define TRACES 1
#define SCORES 4
#define LANES 16
#define COLUMNS 16
#define THREADS 128
#define OPENING 28
#define EXTENDING 8
#endif
#ifndef COUNT_OPERATIONS
#define COUNT_OPERATIONS(n)
#endif

using Word = unsigned int;
using Place = long long;

constexpr int kPrefix = 0, kLocal = 2;
constexpr int kGaps = GAPS, kLayers = kGaps + 1, kGapRoom = kGaps > 0 ? kGaps : 1;
constexpr int kMode = MODE;
constexpr bool kSeeded = SEEDED;                            // an alignment starts wherever the seed is found
constexpr bool kFree = kMode != kPrefix && !kSeeded;        // it starts anywhere
constexpr bool kFloored = kMode == kLocal && !kSeeded;      // it starts anywhere in the pattern, too
constexpr bool kPublished = PUBLISHED, kTraces = TRACES;
constexpr bool kNarrow = NUMBERS == 1;
constexpr int kHalves = kNarrow ? 2 : 1;
constexpr int kScores = SCORES;                             // source of the scores of symbols: one of the following four
constexpr int kTable = 0, kProfile = 1, kFour = 4, kEight = 8;  // a table by both symbols; a table of the text; texts of 4 or 8 symbols
constexpr int kLanes = LANES, kColumns = COLUMNS, kWidth = kLanes * kColumns;
constexpr int kUnits = 32 / kLanes;                         // units of a warp
constexpr int kScale = kTraces ? 4 : 1;
constexpr Word kEveryLane = 0xffffffffu;
constexpr int kCodes = 32, kPadding = 31;                   // symbols, and the row after the end of a pattern
constexpr int kBitsOfCode = 4, kCodesOfWord = kNarrow ? 4 : 8;
constexpr int kFirstStored = kFloored ? 0 : 1;              // first layer whose directions are stored: otherwise layer 0 has only pairs
constexpr int kWords = (kColumns + kCodesOfWord - 1) / kCodesOfWord, kStepWords = (kLayers - kFirstStored) * kWords;
constexpr int kFromText = 0, kFromPattern = 1, kFromPair = 2, kFromStart = 3, kTextLeft = 4, kPatternLeft = 8;
constexpr int kBorderWords = 2 * kGaps + 1;
constexpr int kPlaces = kLanes < 8 ? 8 : kLanes, kLoads = (kColumns + 7) / 8;  // of a table of the text: 8 columns per load
static_assert(kScores == kTable || kScores == kProfile || kScores == kFour || kScores == kEight, "scores come from one of these");
static_assert(kScores != kProfile || (kNarrow && kColumns % 8 == 0), "a load of a profile is of eight columns");

__host__ __device__ constexpr Word both(int value) { return kNarrow ? static_cast<Word>(value) * 0x10001u : static_cast<Word>(value); }
__host__ __device__ constexpr Word both_bits(Word bits) { return kNarrow ? bits | bits << 16 : bits; }

constexpr int kOpening = OPENING, kExtending = EXTENDING;   // multiplied by kScale
constexpr int kExtendingOnce = kExtending > 0 ? kExtending / kScale : 1;
constexpr Word kNone = both(kOpening);
constexpr Word kMinusOpening = both(-kOpening + (kTraces ? 2 : 0));  // as a sum of whole words
constexpr Word kMinusExtending = kNarrow ? (static_cast<Word>(-kExtending) & 0xffffu) * 0x10001u : static_cast<Word>(-kExtending);
constexpr Word kClean = kTraces ? ~both_bits(3) : kEveryLane;

#if NUMBERS == 1
__device__ __forceinline__ Word greatest_of(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }
__device__ __forceinline__ Word sum_or(Word a, Word b, Word c) { return __viaddmax_s16x2(a, b, c); }
#else
__device__ __forceinline__ Word greatest(Word a, Word b) { return static_cast<int>(a) < static_cast<int>(b) ? b : a; }
__device__ __forceinline__ Word greatest_of(Word a, Word b, Word c) { return greatest(greatest(a, b), c); }
__device__ __forceinline__ Word sum_or(Word a, Word b, Word c) { return greatest(a + b, c); }
#endif
#ifdef __CUDACC__
// Four bytes of eight; the fourth bit of a selector replicates the sign of its byte.
__device__ __forceinline__ Word signed_bytes(Word a, Word b, Word places) {
    Word found;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(found) : "r"(a), "r"(b), "r"(places));
    return found;
}
#endif
__device__ __forceinline__ Word opened(Word below, Word one) { return below * one + kMinusOpening; }
__device__ __forceinline__ Word clean(Word value) { return kTraces ? value & kClean : value; }
// F has the last bit 1, so that it is preferred to E.
__device__ __forceinline__ Word clean_pattern_gap(Word value) { return kTraces ? (value & kClean) | both_bits(1) : value; }
__device__ __forceinline__ int half_of(Word word, int half) { return kNarrow ? static_cast<int>(word >> 16 * half & 0xffffu) : static_cast<int>(word); }
__device__ __forceinline__ Word in_half(int value, int half) { return static_cast<Word>(value) << (kNarrow ? 16 * half : 0); }

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Texts, patterns, and the pairs to align. text_of, pattern_of: text and pattern of each of the n pairs. order: pairs at the n_places
// places of the units; null: the pairs from `first` on. windows: start and end of the section of each pair's text; null: the whole text.
// chunks: first and last place of each block; null: as many places as a block has, in order. scores: words by the symbol of the pattern,
// see fill_scores. ranks: index of each symbol of the texts (with kProfile, of the patterns) among those that occur. diagonal: score of
// each symbol with itself, multiplied.
struct Pairs {
    const signed char *texts, *patterns;
    const Place *text_offsets, *pattern_offsets, *text_of, *pattern_of;
    const Word* order;
    const Place* window_begins;
    const int *window_ends, *chunks;
    const Word* scores;
    const signed char* ranks;
    const int* diagonal;
    int n, first, n_places, n_items, seed, zero, lowest, gain, loss, n_symbols;
};

// found: for the n pairs, n values each of score, text start, text end, pattern start, pattern end, and gaps. runs: 2 * kGaps + 1 per pair.
// border: `border_rows` rows per warp of the launch. directions: `strips` of `steps` for the units of each warp.
struct Results {
    int *found, *runs;
    Word *border, *directions;
    int strips, steps, border_rows;
};

// A pair to align, without the seed. text_begin: start of the section of its text, including the seed.
struct Pair {
    const signed char *text, *pattern;
    Place text_begin;
    int number, n, m;
    bool is_alive;
};

// Return the pair at a place; a pair that cannot have an alignment has no symbols.
__device__ Pair pair_at(const Pairs& pairs, int place, int last) {
    Pair pair{nullptr, nullptr, 0, -1, 0, 0, false};
    if (place >= last) return pair;
    pair.number = pairs.order != nullptr ? static_cast<int>(pairs.order[place]) : pairs.first + place;
    const Place text = pairs.text_of[pair.number], pattern = pairs.pattern_of[pair.number];
    Place begin = pairs.text_offsets[text], end = pairs.text_offsets[text + 1];
    const Place first = pairs.pattern_offsets[pattern], m = pairs.pattern_offsets[pattern + 1] - first;
    if (pairs.window_begins != nullptr) {
        pair.text_begin = pairs.window_begins[pair.number];
        end = begin + pairs.window_ends[pair.number];
        begin += pair.text_begin;
    } else if (kMode == kPrefix && kExtending > 0) {
        // A longer gap costs more than the symbols of the pattern can contribute.
        const Place reach = m + (m * pairs.gain + m * pairs.loss + kOpening / kScale) / kExtendingOnce;
        if (reach < end - begin) end = begin + reach;
    }
    pair.text = pairs.texts + begin + pairs.seed;
    pair.pattern = pairs.patterns + first + pairs.seed;
    const Place n = end - begin - pairs.seed;
    if (n < 0 || m < pairs.seed) return pair;
    pair.n = static_cast<int>(n);
    pair.m = static_cast<int>(m) - pairs.seed;
    pair.is_alive = true;
    return pair;
}

// Return true if the seed ends after this number of symbols of the text.
__device__ bool has_seed(const Pair& pair, int seed, int i) {
    for (int k = 0; k < seed; ++k) {
        if (pair.text[i + k - seed] != pair.pattern[k - seed]) return false;
    }
    return true;
}

// Score in the first row of an alignment that starts after this number of symbols of the text; kNone if none may start there.
__device__ int begun_at(const Pairs& pairs, const Pair& pair, int i) {
    const bool may = pair.is_alive && i <= pair.n && (kMode != kPrefix || i == 0);
    if (!may || !has_seed(pair, pairs.seed, i)) return kOpening;
    int score = pairs.zero;
    for (int k = 0; k < pairs.seed; ++k) score += pairs.diagonal[static_cast<int>(pair.pattern[k - pairs.seed])];
    return score;
}

// Best alignment of a lane so far: its end, and its minimum number of gaps.
struct Best {
    int score, text_end, pattern_end, gaps;
};

__device__ __forceinline__ void note(Best& best, int score, int text_end, int pattern_end, int gaps) {
    if (score > best.score) best = Best{score, text_end, pattern_end, gaps};
}

// Scores of symbols: values that a lane stores for its columns, and values that it loads for a row.
#if SCORES == 1
struct Row {
    const unsigned char *low, *high;
};
#else
struct Row {
    Word low, low_more, high, high_more;
};
#endif

__device__ __forceinline__ Word column_code(const signed char* ranks, int low, int high) {
    if (kScores == kTable) return static_cast<Word>(low | high << 8);
    if (kScores == kProfile) return 0;
    const Word a = static_cast<Word>(ranks[low]), b = static_cast<Word>(ranks[high]);
    if (!kNarrow) return a | (a | 8) * 0x1110u;
    if (kScores == kFour) return a | (a | 8) << 4 | (b | 4) << 8 | (b | 12) << 12;
    return a | (a | 8) << 4 | b << 8 | (b | 8) << 12;
}

// Values that are loaded for a row, by the symbols in the two halves: words of bytes, rows of the table, or rows of the table of the text.
#if SCORES == 1
__device__ __forceinline__ Row row_of(const Word*, const signed char* ranks, int low, int high, int lane_of_warp) {
    const int row_bytes = kLoads * kPlaces * 16, place = lane_of_warp % kPlaces * 16;
    return Row{dynamic_shared + ranks[low] * row_bytes + place, dynamic_shared + ranks[high] * row_bytes + place};
}
#else
__device__ __forceinline__ Row row_of(const Word* table, const signed char*, int low, int high, int) {
    if (kScores == kTable) return Row{static_cast<Word>(low * kCodes), 0, static_cast<Word>(high * kCodes), 0};
    if (kScores == kFour) return Row{table[low], 0, table[high], 0};
    return Row{table[2 * low], table[2 * low + 1], table[2 * high], table[2 * high + 1]};
}

__device__ __forceinline__ Word score_in(const Row& row, const Word* table, Word code) {
    if (kScores == kTable) {
        const Word low = table[row.low + (code & 255)];
        return kNarrow ? __byte_perm(low, table[row.high + (code >> 8)], 0x5410) : low;
    }
    if (kScores == kFour) return signed_bytes(row.low, row.high, code);
    if (!kNarrow) return signed_bytes(row.low, row.low_more, code);
    return __byte_perm(signed_bytes(row.low, row.low_more, code), signed_bytes(row.high, row.high_more, code >> 8), 0x5410);
}
#endif

// State of a lane's columns between two rows.
struct Columns {
    Word g[kLayers][kColumns], f[kGapRoom][kColumns], code[kColumns], most[kMode == kLocal ? kColumns : 1];
};

// Values that pass from one lane to the next: G of its last column, and E after it.
struct Edge {
    Word g[kLayers], e[kGapRoom];
};

// The first row: starts of alignments, and symbols of the text only.
__device__ void begin_row(const Pairs& pairs, const Pair* pair, Columns& columns, Edge& edge, int base) {
    const Word zero = both(pairs.zero);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        if (kFree) {
#pragma unroll
            for (int q = 0; q < kLayers; ++q) columns.g[q][c] = zero;
#pragma unroll
            for (int q = 0; q < kGaps; ++q) columns.f[q][c] = clean_pattern_gap(zero - both(kOpening));
            continue;
        }
        Word begun = kNone;
        if (kSeeded) {
            begun = in_half(begun_at(pairs, pair[0], base + c + 1), 0);
            if (kNarrow) begun |= in_half(begun_at(pairs, pair[kHalves - 1], base + c + 1), 1);
        }
        Word below = columns.g[0][c] = begun;
#pragma unroll
        for (int q = 0; q < kGaps; ++q) {
            const Word from_below = below - both(kOpening);
            below = columns.g[q + 1][c] = greatest_of(begun, edge.e[q], kNone);
            edge.e[q] = sum_or(edge.e[q], kMinusExtending, from_below);
            columns.f[q][c] = clean_pattern_gap(kPublished ? kNone - both(kOpening) : from_below);
        }
    }
#pragma unroll
    for (int q = 0; q < kLayers; ++q) edge.g[q] = columns.g[q][kColumns - 1];
}

// Compute another row. `corner`: G above and left of the first column, replaced by that of the next row. `edge`: values from the left,
// replaced by those for the right. directions: those of this lane and step.
__device__ __forceinline__ void advance_row(Columns& columns, Edge& corner, Edge& edge, const Row& row, [[maybe_unused]] const Word* table,
                                            Word floor, Word one, Word* directions, int j, int base) {
    Word diagonal[kLayers], codes[kLayers];
#pragma unroll
    for (int q = 0; q < kLayers; ++q) diagonal[q] = corner.g[q], corner.g[q] = edge.g[q], codes[q] = 0;
#if SCORES == 1
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
        const uint4 low = *reinterpret_cast<const uint4*>(row.low + load * kPlaces * 16);
        const uint4 high = *reinterpret_cast<const uint4*>(row.high + load * kPlaces * 16);
        const Word lows[4] = {low.x, low.y, low.z, low.w}, highs[4] = {high.x, high.y, high.z, high.w};
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const int c = load * 8 + k;
            const Word score = __byte_perm(lows[k / 2], highs[k / 2], k % 2 == 0 ? 0x5410 : 0x7632);
#else
    {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            const Word score = score_in(row, table, columns.code[c]);
#endif
            Word value = sum_or(diagonal[0], score, floor);
            diagonal[0] = columns.g[0][c];
            if (kTraces && kFirstStored == 0) codes[0] = (c % kCodesOfWord ? codes[0] * 16 : 0) + (value & both_bits(3));
            Word below = columns.g[0][c] = clean(value);
#pragma unroll
            for (int q = 0; q < kGaps; ++q) {
                const Word from_below = opened(below, one);
                value = sum_or(diagonal[q + 1], score, greatest_of(edge.e[q], columns.f[q][c], floor));
                diagonal[q + 1] = columns.g[q + 1][c];
                below = columns.g[q + 1][c] = clean(value);
                Word text_gap = sum_or(edge.e[q], kMinusExtending, from_below);
                Word pattern_gap = sum_or(columns.f[q][c], kMinusExtending, from_below);
                if (kTraces) {
                    Word code = (c % kCodesOfWord ? codes[q + 1] * 16 : 0) + (value & both_bits(3));
                    code += (text_gap & both_bits(2)) * 2;
                    codes[q + 1] = code + (pattern_gap & both_bits(2)) * 4;
                }
                if (kPublished) {
                    if (j < base + c + 1) pattern_gap = kNone - both(kOpening);
                    if (j > base + c + 1) text_gap = kNone - both(kOpening);
                }
                edge.e[q] = clean(text_gap);
                columns.f[q][c] = clean_pattern_gap(pattern_gap);
            }
            if (kTraces && (c % kCodesOfWord == kCodesOfWord - 1 || c == kColumns - 1)) {
#pragma unroll
                for (int q = kFirstStored; q < kLayers; ++q) {
                    const int missing = kCodesOfWord - 1 - c % kCodesOfWord;
                    directions[((q - kFirstStored) * kWords + c / kCodesOfWord) * 32] = codes[q] << kBitsOfCode * missing;
                }
            }
        }
    }
#pragma unroll
    for (int q = 0; q < kLayers; ++q) edge.g[q] = columns.g[q][kColumns - 1];
    COUNT_OPERATIONS(kColumns * kLayers * kHalves);
}

// Return the minimum number of gaps of an alignment with the maximum score.
template <class Layers>
__device__ __forceinline__ int fewest_gaps(const Layers& g, int c, int half) {
    int n = 0;
#pragma unroll
    for (int q = 0; q < kGaps; ++q) n += half_of(g[q][c], half) < half_of(g[kGaps][c], half);
    return n;
}

// Record the best of a finished row or, in mode local, of the maximum of each column.
__device__ void note_columns(const Columns& columns, const Pair& pair, Best& best, int half, int base) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        if (base + c + 1 > pair.n) continue;
        const Word word = kMode == kLocal ? columns.most[kMode == kLocal ? c : 0] : columns.g[kGaps][c];
        if (half_of(word, half) > best.score) note(best, half_of(word, half), base + c + 1, pair.m, fewest_gaps(columns.g, c, half));
    }
}

// For a local alignment whose text is cut at its end: the first row in which the last column has the maximum score.
__device__ void note_last_column(const Columns& columns, const Pair& pair, Best& best, int half, int base, int j) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        if (base + c + 1 == pair.n) note(best, half_of(columns.g[kGaps][c], half), pair.n, j, fewest_gaps(columns.g, c, half));
    }
}

__device__ void fill_scores(const Pairs& pairs, const Pair& first, Word* table, signed char* ranks) {
    for (int k = threadIdx.x; k < kCodes; k += THREADS) ranks[k] = pairs.ranks[k];
    if (kScores == kProfile) {
        // Scores of the block's text, up to the last column that one of its patterns needs; pairs.scores is indexed by the rank of the
        // pattern's symbol and the symbol of the text.
        const Place text = first.number < 0 ? 0 : pairs.text_of[first.number];
        const Place n = first.number < 0 ? 0 : pairs.text_offsets[text + 1] - pairs.text_offsets[text] - pairs.seed;
        for (int k = threadIdx.x; k < (pairs.n_symbols + 1) * kLoads * kPlaces * 8; k += THREADS) {
            const int place = k / 8 % kPlaces, load = k / 8 / kPlaces % kLoads, letter = k / 8 / kPlaces / kLoads;
            const int c = place % kLanes * kColumns + load * 8 + k % 8;
            const int code = c < n ? static_cast<int>(first.text[c]) : kPadding;
            reinterpret_cast<unsigned short*>(dynamic_shared)[k] = static_cast<unsigned short>(pairs.scores[letter * kCodes + code]);
        }
    } else {
        constexpr int n = kScores == kTable ? kCodes * kCodes : kCodes * kScores / 4;
        for (int k = threadIdx.x; k < n; k += THREADS) table[k] = pairs.scores[k];
    }
    __syncthreads();
}

// The pairs of a unit, and the best alignment of each in this lane. begun: G before the first symbols; n, m: maximum lengths.
struct Unit {
    Pair pair[kHalves];
    Best best[kHalves];
    Word begun;
    int n, m;
};

__device__ __forceinline__ Unit unit_at(const Pairs& pairs, int place, int last, int lane) {
    Unit unit;
    unit.begun = 0, unit.n = 0, unit.m = 0;
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
        const Pair pair = unit.pair[half] = pair_at(pairs, place + half, last);
        const int begun = begun_at(pairs, pair, 0);
        unit.begun |= in_half(begun, half);
        unit.n = unit.n < pair.n ? pair.n : unit.n;
        unit.m = unit.m < pair.m ? pair.m : unit.m;
        Best& best = unit.best[half];
        best = Best{kMode == kLocal ? pairs.zero : pairs.lowest, -1, -1, 0};
        if (lane > 0 || !pair.is_alive) continue;
        // Before the first symbol of the text: nothing, or symbols of the pattern only.
        if (kMode == kLocal || pair.m == 0) note(best, begun, 0, 0, 0);
        if (kMode != kLocal && pair.m > 0 && kGaps > 0) note(best, begun - kOpening - (pair.m - 1) * kExtending, 0, pair.m, 1);
    }
    return unit;
}

// Left border of the first lane: values of the previous strip, or those before the first symbol of the text. `side`: G of symbols of the
// pattern only.
__device__ __forceinline__ void enter(Edge& edge, Word& side, const Word* border, Word begun, Word zero, int strip, int j) {
    if (strip > 0) {
#pragma unroll
        for (int q = 0; q < kLayers; ++q) edge.g[q] = border[(j * kBorderWords + q) * kUnits];
#pragma unroll
        for (int q = 0; q < kGaps; ++q) edge.e[q] = border[(j * kBorderWords + kLayers + q) * kUnits];
        return;
    }
    if (j > 0) side = sum_or(side, kMinusExtending, kNone);
    edge.g[0] = kFloored ? zero : j == 0 ? begun : kNone;
#pragma unroll
    for (int q = 0; q < kGaps; ++q) {
        edge.g[q + 1] = kFloored ? zero : j == 0 ? begun : side;
        edge.e[q] = (kPublished && j > 0 ? kNone : edge.g[q]) - both(kOpening);
    }
}

__device__ __forceinline__ void leave(const Edge& edge, Word* border, int j) {
#pragma unroll
    for (int q = 0; q < kLayers; ++q) border[(j * kBorderWords + q) * kUnits] = edge.g[q];
#pragma unroll
    for (int q = 0; q < kGaps; ++q) border[(j * kBorderWords + kLayers + q) * kUnits] = edge.e[q];
}

// Search a row for ends of alignments.
__device__ __forceinline__ void note_row(Columns& columns, Unit& unit, int base, int j) {
    if (kMode == kLocal && !kTraces) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            Word& most = columns.most[kMode == kLocal ? c : 0];
            most = greatest_of(most, columns.g[kGaps][c], 0);
        }
    }
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
        if (kMode == kLocal && kTraces) {
            if (j <= unit.pair[half].m) note_last_column(columns, unit.pair[half], unit.best[half], half, base, j);
        } else if (j == unit.pair[half].m) {
            note_columns(columns, unit.pair[half], unit.best[half], half, base);
        }
    }
}

// Return the best alignment of all lanes of a unit; of equal scores, the one that ends first in the text.
__device__ __forceinline__ void write_best(const Pairs& pairs, const Results& results, Unit& unit, int lane) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
        Best& mine = unit.best[half];
        for (int bits = kLanes / 2; bits > 0; bits /= 2) {
            const int score = __shfl_xor_sync(kEveryLane, mine.score, bits), end = __shfl_xor_sync(kEveryLane, mine.text_end, bits);
            const int pattern_end = __shfl_xor_sync(kEveryLane, mine.pattern_end, bits), gaps = __shfl_xor_sync(kEveryLane, mine.gaps, bits);
            if (score > mine.score || (score == mine.score && end >= 0 && (mine.text_end < 0 || end < mine.text_end))) {
                mine = Best{score, end, pattern_end, gaps};
            }
        }
        const Pair& pair = unit.pair[half];
        if (lane > 0 || pair.number < 0) continue;
        const bool is_none = mine.text_end < 0;
        int* const found = results.found + pair.number;
        found[0] = is_none ? static_cast<int>(0x80000000u) : (mine.score - pairs.zero) / kScale;
        found[2 * pairs.n] = is_none ? -1 : static_cast<int>(pair.text_begin) + mine.text_end + pairs.seed;
        found[5 * pairs.n] = is_none ? -1 : kTraces ? mine.gaps : 0;
        if (kTraces) found[4 * pairs.n] = is_none ? -1 : mine.pattern_end + pairs.seed;
    }
}

// Return the maximum over all lanes of a warp.
__device__ __forceinline__ int greatest_of_warp(int value) {
    for (int bits = 16; bits > 0; bits /= 2) {
        const int other = __shfl_xor_sync(kEveryLane, value, bits);
        value = value < other ? other : value;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS) align_reads(const Pairs pairs, const Results results, Word one) {
    __shared__ Word table[kScores == kTable ? kCodes * kCodes : 2 * kCodes];
    __shared__ signed char ranks[kCodes];
    constexpr int kWarps = THREADS / 32;
    const int lane_of_warp = threadIdx.x % 32, lane = lane_of_warp % kLanes;
    const int first_of_block = pairs.chunks != nullptr ? pairs.chunks[2 * blockIdx.x] : 0;
    const int last_of_block = pairs.chunks != nullptr ? pairs.chunks[2 * blockIdx.x + 1] : pairs.n_places;
    fill_scores(pairs, pair_at(pairs, first_of_block, last_of_block), table, ranks);
    const int slot = blockIdx.x * kWarps + threadIdx.x / 32;
    const Word zero = both(pairs.zero);
    const Word floor = kFloored ? zero | (kTraces ? both_bits(3) : 0) : kNone;
    Word* const border = results.border + static_cast<Place>(slot) * results.border_rows * kBorderWords * kUnits + lane_of_warp / kLanes;
    for (int item = slot; item < pairs.n_items; item += gridDim.x * kWarps) {
        const int of_block = pairs.chunks != nullptr ? item - blockIdx.x * kWarps : item;
        Unit unit = unit_at(pairs, first_of_block + (of_block * kUnits + lane_of_warp / kLanes) * kHalves, last_of_block, lane);
        const int steps = greatest_of_warp(unit.m) + kLanes, strips = greatest_of_warp((unit.n + kWidth - 1) / kWidth);
        const Pair &low_pair = unit.pair[0], &high_pair = unit.pair[kHalves - 1];
        for (int strip = 0; strip < strips; ++strip) {
            const int base = strip * kWidth + lane * kColumns;
            Columns columns;
            Edge corner, edge;
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                const int low = base + c < low_pair.n ? low_pair.text[base + c] : 0;
                const int high = base + c < high_pair.n ? high_pair.text[base + c] : 0;
                columns.code[c] = column_code(ranks, low, high);
                if (kMode == kLocal) columns.most[kMode == kLocal ? c : 0] = 0;
            }
#pragma unroll
            for (int q = 0; q < kLayers; ++q) edge.g[q] = corner.g[q] = kNone;
#pragma unroll
            for (int q = 0; q < kGapRoom; ++q) edge.e[q] = kNone;
            Word side = unit.begun - both(kOpening) + both(kExtending);
            int next_low = kPadding, next_high = kPadding;
            const Place first_step = (static_cast<Place>(item) * results.strips + strip) * results.steps;
            Word* directions = kTraces ? results.directions + first_step * kStepWords * 32 + lane_of_warp : nullptr;
            for (int step = 0; step < steps; ++step) {
                const int j = step - lane;
                if (kLanes > 1) {
#pragma unroll
                    for (int q = 0; q < kLayers; ++q) edge.g[q] = __shfl_up_sync(kEveryLane, edge.g[q], 1, kLanes);
#pragma unroll
                    for (int q = 0; q < kGaps; ++q) edge.e[q] = __shfl_up_sync(kEveryLane, edge.e[q], 1, kLanes);
                }
                if (j >= 0 && j <= unit.m) {
                    const int low = next_low, high = next_high;
                    next_low = j < low_pair.m ? low_pair.pattern[j] : kPadding;
                    next_high = j < high_pair.m ? high_pair.pattern[j] : kPadding;
                    if (lane == 0) enter(edge, side, border, unit.begun, zero, strip, j);
                    if (j == 0) {
                        corner = edge;
                        begin_row(pairs, unit.pair, columns, edge, base);
                    } else {
                        advance_row(columns, corner, edge, row_of(table, ranks, low, high, lane_of_warp), table, floor, one, directions, j, base);
                    }
                    note_row(columns, unit, base, j);
                    if (lane == kLanes - 1 && strip + 1 < strips) leave(edge, border, j);
                }
                if (kTraces) directions += kStepWords * 32;
            }
            __syncwarp();
        }
        write_best(pairs, results, unit, lane);
    }
}

// Follow the directions of each pair from its end to its start.
extern "C" __global__ void trace_reads(const Pairs pairs, const Results results) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    constexpr int kRuns = 2 * kGaps + 1, kPlacesOfWarp = kUnits * kHalves, kPlacesOfBlock = THREADS / 32 * kPlacesOfWarp;
    int first = 0, last = pairs.n_places, of_item = place;
    Place item = place / kPlacesOfWarp;
    if (pairs.chunks != nullptr) {
        const int chunk = place / kPlacesOfBlock;
        if (item >= pairs.n_items) return;
        first = pairs.chunks[2 * chunk], last = pairs.chunks[2 * chunk + 1];
        of_item = place % kPlacesOfBlock;
    }
    const Pair pair = pair_at(pairs, first + of_item, last);
    if (pair.number < 0) return;
    int* const found = results.found + pair.number;
    int* const runs = results.runs + static_cast<Place>(pair.number) * kRuns;
    for (int k = 0; k < kRuns; ++k) runs[k] = 0;
    if (found[2 * pairs.n] < 0) {
        found[pairs.n] = found[3 * pairs.n] = -1;
        return;
    }
    const int unit = place % kPlacesOfWarp / kHalves, half = place % kHalves;
    int i = found[2 * pairs.n] - pairs.seed - static_cast<int>(pair.text_begin), j = found[4 * pairs.n] - pairs.seed, q = found[5 * pairs.n];
    int n_pairs = 0;
    const auto code_at = [&](int q, int i, int j) {
        const int column = (i - 1) % kWidth, lane = column / kColumns, c = column % kColumns;
        const Place step = (item * results.strips + (i - 1) / kWidth) * results.steps + j + lane;
        const int word = (q - kFirstStored) * kWords + c / kCodesOfWord;
        const Word codes = results.directions[(step * kStepWords + word) * 32 + unit * kLanes + lane];
        return static_cast<int>(codes >> (16 * half + kBitsOfCode * (kCodesOfWord - 1 - c % kCodesOfWord)) & 15u);
    };
    while (true) {
        if (kFloored && (i == 0 || j == 0)) break;
        if (j == 0) {
            // Symbols of the text only, back to a position where an alignment may start.
            int length = 0;
            while (i > 0 && begun_at(pairs, pair, i) == kOpening) --i, ++length;
            if (length > 0) runs[2 * q - 1] = -length, runs[2 * q] = n_pairs, n_pairs = 0, --q;
            break;
        }
        if (i == 0) {
            runs[2 * q - 1] = j, runs[2 * q] = n_pairs, n_pairs = 0, --q;
            j = 0;
            break;
        }
        if (q == 0 && !kFloored) {
            n_pairs += j;
            i -= j, j = 0;
            break;
        }
        const int source = code_at(q, i, j) & 3;
        if (source == kFromStart) break;
        if (source == kFromPair) {
            --i, --j, ++n_pairs;
            continue;
        }
        int length = 0;
        bool grows = true;
        while (grows && source == kFromPattern) --j, ++length, grows = j > 0 && !(code_at(q, i, j) & kPatternLeft);
        while (grows && source == kFromText) --i, --length, grows = i > 0 && !(code_at(q, i, j) & kTextLeft);
        runs[2 * q - 1] = length, runs[2 * q] = n_pairs, n_pairs = 0, --q;
    }
    runs[2 * (q < 0 ? 0 : q)] = n_pairs;
    runs[0] += pairs.seed;
    found[pairs.n] = i + static_cast<int>(pair.text_begin);
    found[3 * pairs.n] = j;
}
