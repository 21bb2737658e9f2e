// Local alignment of a query with all chains of a database by their descriptors in two phases, bit-identical to
// kernels/cpu/structure_alignment.py (Mrozek et al. 2014, J Mol Model 20:2067, sections "First phase" and "Second phase", equations 7-19).
//
// Recurrence (Gotoh 1982) of both phases; a gap of k positions costs first + (k - 1) * next:
//
//     H[i, j] = max(0, H[i-1, j-1] + reward, E[i, j], F[i, j])
//     E[i+1, j] = max(E[i, j] - next, H[i, j] - first)        rows i: positions in the chain
//     F[i, j+1] = max(F[i, j] - next, H[i, j] - first)        columns j: positions in the query
//
// Phase 1, secondary structure elements: a thread aligns a chain. Its row of the matrix is in device memory, with the elements of
// neighbouring threads adjacent, since neighbouring chains have nearly the same length.
//
// Phase 2, residues: a warp aligns a chain. Each lane holds kColumns columns of the query with their H and E in registers. Rows pass from
// lane to lane, each lane one step after its left neighbour. A query longer than 32 * kColumns is divided into strips, one launch each; H
// and F of a strip's last column are stored in device memory for the next strip. Warps take chains from a common counter, longest first,
// and skip those excluded by phase 1. Blocks are independent; a block has one barrier, after copying the tables.
//
// A reward is a sum of integers from tables in shared memory: one table per alphabet, indexed by both codes (five bits of a word each),
// and, with kCompares, one table indexed by the difference of lengths and one by that of angles. Without kCompares, and if the rewards fit
// 16 bits, the tables are replaced by the profile of the query: the values for the columns of each lane by the code of the row. A word has
// the values for two columns, and the words of the lanes lie in different banks.

// Macros of a launch, set by kernels/cuda/structure_alignment.py. The values here are those of one of its variants.
#ifndef COLUMNS
#define COLUMNS 8
#define SHIFTS 0, 5
#define COMPARES 1
#endif

using Word = unsigned int;

constexpr int kColumns = COLUMNS;                               // columns per lane
constexpr bool kCompares = COMPARES;                            // true if lengths and angles are compared directly
constexpr int kShifts[] = {SHIFTS};                             // first bit of the code of each alphabet in a word
constexpr int kAlphabets = sizeof(kShifts) / sizeof(kShifts[0]);
constexpr int kCodes = 32, kTable = kCodes * kCodes;
constexpr int kLengthSteps = 2049, kAngleSteps = 8192;
constexpr int kTables = kAlphabets * kTable + (kCompares ? kLengthSteps + kAngleSteps : 0);
constexpr Word kPadding = 0xffffffffu, kEveryLane = 0xffffffffu;
constexpr int kPairs = kColumns / 2;
constexpr int kProfileThreads = 1024;
constexpr int kUnits = 1 << 16;  // units of a reward of one in phase 1

__device__ __forceinline__ int greatest(int a, int b) { return a < b ? b : a; }
__device__ __forceinline__ int apart(int a, int b) { return a < b ? b - a : a - b; }

// Return the reward of two elements, rounded half up: 1, 1/2 (one of them is coil) or 0, times 2 min(a, b) / (a + b).
__device__ __forceinline__ int element_reward(int type_a, int length_a, int type_b, int length_b) {
    const int halves = type_a == 0 || type_b == 0 ? 1 : type_a == type_b ? 2 : 0;
    const unsigned long long whole = static_cast<unsigned long long>(length_a) + length_b;
    const unsigned long long shorter = length_a < length_b ? length_a : length_b;
    return static_cast<int>((2ull * halves * kUnits * shorter + whole) / (2ull * whole));
}

// Chains of the database that are on the device. Offsets count from the first chain of the whole database; `residues_before` and
// `elements_before` are the numbers of residues and elements in previous chains.
struct Chains {
    const long long* offsets;
    const Word* state;
    const unsigned short* length;
    const unsigned short* angle;
    const long long* element_offsets;
    const unsigned char* element_type;
    const int* element_length;
    long long residues_before;
    long long elements_before;
};

// The query: its n residues, its elements, the concatenated values of all tables of its rewards, and the lowest value of each table for
// residues; costs of gaps in both phases.
struct Query {
    const Word* state;
    const unsigned short* length;
    const unsigned short* angle;
    const unsigned char* element_type;
    const int* element_length;
    const int* tables;
    const int* lowest;
    int n;
    int n_elements;
    int gap_first;
    int gap_next;
    int element_gap_first;
    int element_gap_next;
};

// Results by chain, initially -1: `scores` of phase 2, `element_scores` of phase 1. Workspace: H and F at the right edge of a strip, by
// residue; two numbers per element of the query and thread of phase 1; a counter of chains, initially zero.
struct Results {
    int* scores;
    int* element_scores;
    uint2* border;
    int* rows;
    Word* next_chain;
};

// Phase 1 for the chains first:last.
extern "C" __global__ void align_elements(Chains chains, Query query, Results results, int first, int last) {
    const int threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x, m = query.n_elements;
    int* const h_row = results.rows + thread;
    int* const f_row = results.rows + static_cast<long long>(m) * threads + thread;
    for (int chain = first + thread; chain < last; chain += threads) {
        for (int i = 0; i < m; ++i) h_row[static_cast<long long>(i) * threads] = f_row[static_cast<long long>(i) * threads] = 0;
        const long long end = chains.element_offsets[chain + 1] - chains.elements_before;
        int best = 0;
        for (long long j = chains.element_offsets[chain] - chains.elements_before; j < end; ++j) {
            const int own_type = chains.element_type[j], own_length = chains.element_length[j];
            int diagonal = 0, e = 0;
            for (int i = 0; i < m; ++i) {
                const long long place = static_cast<long long>(i) * threads;
                const int f = f_row[place], left = h_row[place];
                const int paired = diagonal + element_reward(query.element_type[i], query.element_length[i], own_type, own_length);
                const int h = greatest(greatest(paired, 0), greatest(e, f));
                best = greatest(best, h);
                diagonal = left;
                h_row[place] = h;
                e = greatest(e - query.element_gap_next, h - query.element_gap_first);
                f_row[place] = greatest(f - query.element_gap_next, h - query.element_gap_first);
            }
        }
        results.element_scores[chain] = best;
    }
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// A residue of a column or a row: its codes and, if compared, the length of its Cα vector and the angle to the next vector.
struct Residue {
    Word codes;
    int length, angle;
};

__device__ __forceinline__ Residue residue_at(const Word* state, const unsigned short* length, const unsigned short* angle, long long i) {
    Residue residue{__ldg(state + i), 0, 0};
    if (kCompares) residue.length = __ldg(length + i), residue.angle = __ldg(angle + i);
    return residue;
}

__device__ __forceinline__ int reward_of(const int* tables, const Residue& mine, const Residue& other) {
    int reward = 0;
#pragma unroll
    for (int a = 0; a < kAlphabets; ++a) {
        const Word row = mine.codes >> kShifts[a] & (kCodes - 1), column = other.codes >> kShifts[a] & (kCodes - 1);
        reward += tables[a * kTable + static_cast<int>(row * kCodes + column)];
    }
    if (kCompares) {
        const int by_length = apart(mine.length, other.length);
        reward += tables[kAlphabets * kTable + (by_length < kLengthSteps ? by_length : kLengthSteps - 1)];
        reward += tables[kAlphabets * kTable + kLengthSteps + apart(mine.angle, other.angle)];
    }
    return reward;
}

// Write the profile: (alphabets, codes, pairs of columns, lanes). The lower half of a word is for the first column of a pair and counts
// from the lowest value of the table, so that a sum of words does not carry into the upper half, which is signed.
__device__ __forceinline__ void write_profile(Word* profile, const Query& query, int begin) {
    for (int i = threadIdx.x; i < kAlphabets * kCodes * kPairs * 32; i += blockDim.x) {
        const int pair = i / 32 % kPairs, code = i / 32 / kPairs % kCodes, alphabet = i / 32 / kPairs / kCodes;
        const int lowest = query.lowest[alphabet];
        int values[2];
        for (int c = 0; c < 2; ++c) {
            const int j = begin + (i & 31) * kColumns + 2 * pair + c;
            const Word codes = j < query.n ? query.state[j] : kPadding;
            int shift = 0;
#pragma unroll
            for (int a = 0; a < kAlphabets; ++a) shift = a == alphabet ? kShifts[a] : shift;
            const Word row = codes >> shift & (kCodes - 1);
            values[c] = greatest(lowest, query.tables[alphabet * kTable + static_cast<int>(row * kCodes) + code]);
        }
        profile[i] = static_cast<Word>(values[0] - lowest) | static_cast<Word>(values[1]) << 16;
    }
}

// Phase 2 for the chains first:last and the strip of the query that begins at column `begin`. Chains whose element score is below `least`
// are skipped. A strip replaces the score of a chain if its score is higher.
extern "C" __global__ void __launch_bounds__(256)
    align_residues(Chains chains, Query query, Results results, int first, int last, int least, int begin) {
    int* const tables = reinterpret_cast<int*>(dynamic_shared);
    for (int i = threadIdx.x; i < kTables; i += blockDim.x) tables[i] = query.tables[i];
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const bool has_left = begin > 0, has_right = begin + 32 * kColumns < query.n;
    Residue columns[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        const int j = begin + lane * kColumns + c;
        columns[c] = j < query.n ? residue_at(query.state, query.length, query.angle, j) : Residue{kPadding, 0, 0};
    }
    while (true) {
        Word taken = 0;
        if (lane == 0) taken = atomicAdd(results.next_chain, 1u);
        taken = __shfl_sync(kEveryLane, taken, 0);
        if (taken >= static_cast<Word>(last - first)) break;
        const int chain = last - 1 - static_cast<int>(taken);
        if (results.element_scores[chain] < least) continue;
        const long long start = chains.offsets[chain] - chains.residues_before;
        const int n = static_cast<int>(chains.offsets[chain + 1] - chains.offsets[chain]);

        int above[kColumns], e[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) above[c] = e[c] = 0;
        int best = 0, corner = 0, h_out = 0, f_out = 0;
        for (int step = 0; step < n + 31; ++step) {
            int h_left = __shfl_up_sync(kEveryLane, h_out, 1), f = __shfl_up_sync(kEveryLane, f_out, 1);
            const int row = step - lane;
            if (row < 0 || row >= n) continue;
            if (lane == 0) {
                const uint2 border = has_left ? results.border[start + row] : uint2{0, 0};
                h_left = static_cast<int>(border.x), f = static_cast<int>(border.y);
            }
            const Residue own = residue_at(chains.state, chains.length, chains.angle, start + row);
            int diagonal = corner;
            corner = h_left;
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                const int paired = diagonal + reward_of(tables, columns[c], own);
                const int h = greatest(greatest(paired, 0), greatest(e[c], f));
                diagonal = above[c];
                above[c] = h;
                best = greatest(best, h);
                e[c] = greatest(e[c] - query.gap_next, h - query.gap_first);
                f = greatest(f - query.gap_next, h - query.gap_first);
            }
            h_out = above[kColumns - 1], f_out = f;
            if (lane == 31 && has_right) results.border[start + row] = uint2{static_cast<Word>(h_out), static_cast<Word>(f_out)};
        }
        for (int distance = 16; distance > 0; distance >>= 1) best = greatest(best, __shfl_xor_sync(kEveryLane, best, distance));
        if (lane == 0 && best > results.scores[chain]) results.scores[chain] = best;
    }
}

// The same, with the profile of the query.
extern "C" __global__ void __launch_bounds__(kProfileThreads, 1)
    align_residues_by_profile(Chains chains, Query query, Results results, int first, int last, int least, int begin) {
    Word* const profile = reinterpret_cast<Word*>(dynamic_shared);
    write_profile(profile, query, begin);
    __syncthreads();
    const int lane = threadIdx.x & 31;
    const bool has_left = begin > 0, has_right = begin + 32 * kColumns < query.n;
    int lowest = 0;
#pragma unroll
    for (int a = 0; a < kAlphabets; ++a) lowest += query.lowest[a];
    while (true) {
        Word taken = 0;
        if (lane == 0) taken = atomicAdd(results.next_chain, 1u);
        taken = __shfl_sync(kEveryLane, taken, 0);
        if (taken >= static_cast<Word>(last - first)) break;
        const int chain = last - 1 - static_cast<int>(taken);
        if (results.element_scores[chain] < least) continue;
        const long long start = chains.offsets[chain] - chains.residues_before;
        const int n = static_cast<int>(chains.offsets[chain + 1] - chains.offsets[chain]);

        int above[kColumns], e[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) above[c] = e[c] = 0;
        int best = 0, corner = 0, h_out = 0, f_out = 0;
        Word next_codes = lane == 0 && n > 0 ? chains.state[start] : 0;
        for (int step = 0; step < n + 31; ++step) {
            int h_left = __shfl_up_sync(kEveryLane, h_out, 1), f = __shfl_up_sync(kEveryLane, f_out, 1);
            const int row = step - lane;
            const Word codes = next_codes;
            if (row + 1 >= 0 && row + 1 < n) next_codes = __ldg(chains.state + start + row + 1);  // arrives during this step
            if (row < 0 || row >= n) continue;
            if (lane == 0) {
                const uint2 border = has_left ? results.border[start + row] : uint2{0, 0};
                h_left = static_cast<int>(border.x), f = static_cast<int>(border.y);
            }
            int diagonal = corner;
            corner = h_left;
            const Word* rewards[kAlphabets];
#pragma unroll
            for (int a = 0; a < kAlphabets; ++a) {
                rewards[a] = profile + ((codes >> kShifts[a] & (kCodes - 1)) + a * kCodes) * (kPairs * 32) + lane;
            }
#pragma unroll
            for (int pair = 0; pair < kPairs; ++pair) {
                Word sum = rewards[0][pair * 32];
#pragma unroll
                for (int a = 1; a < kAlphabets; ++a) sum += rewards[a][pair * 32];
                const int values[2] = {static_cast<int>(sum & 0xffffu) + lowest, static_cast<int>(sum) >> 16};
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int c = 2 * pair + half;
                    const int h = __vimax3_s32_relu(diagonal + values[half], e[c], f);
                    diagonal = above[c];
                    above[c] = h;
                    e[c] = __viaddmax_s32(e[c], -query.gap_next, h - query.gap_first);
                    f = __viaddmax_s32(f, -query.gap_next, h - query.gap_first);
                }
                best = __vimax3_s32(best, above[2 * pair], above[2 * pair + 1]);
            }
            h_out = above[kColumns - 1], f_out = f;
            if (lane == 31 && has_right) results.border[start + row] = uint2{static_cast<Word>(h_out), static_cast<Word>(f_out)};
        }
        for (int distance = 16; distance > 0; distance >>= 1) best = greatest(best, __shfl_xor_sync(kEveryLane, best, distance));
        if (lane == 0 && best > results.scores[chain]) results.scores[chain] = best;
    }
}
