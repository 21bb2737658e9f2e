// Local alignment of a query with all chains of a database by their descriptors, in two phases: that of kernels/cpu/structure_alignment.py,
// bit for bit (Mrozek et al. 2014, J Mol Model 20:2067, sections "First phase" and "Second phase", equations 7-19).
//
// Recurrence (Gotoh 1982) of both phases, a gap of k places costing first + (k - 1) * next:
//
//     H[i, j] = max(0, H[i-1, j-1] + reward, E[i, j], F[i, j])
//     E[i+1, j] = max(E[i, j] - next, H[i, j] - first)        rows i: places of the chain
//     F[i, j+1] = max(F[i, j] - next, H[i, j] - first)        columns j: places of the query
//
// Phase 1, elements of secondary structure: a thread aligns a chain. Its row of the matrix lies in device memory, elements of neighbouring
// threads side by side, since neighbouring chains are of nearly equal length.
//
// Phase 2, residues: a warp aligns a chain. Each lane keeps kColumns columns of the query with their H and E in registers; the rows pass
// from lane to lane, each lane a step behind its left neighbour. A query longer than 32 * kColumns is cut into strips, a launch each; H and
// F of a strip's last column wait in device memory for the next strip. Warps take chains from a common counter, the longest first, and skip
// those that phase 1 forbids. Blocks know nothing of each other; in a block there is one barrier, behind the copying of the tables.
//
// A reward is a sum of whole numbers from tables in shared memory: for each alphabet one by the two codes, five bits of a word each, and,
// with kCompares, one by the difference of lengths and one by that of angles.

// What a launch is compiled for; kernels/cuda/structure_alignment.py sets all of it. The values here are those of one of its forms.
#ifndef COLUMNS
#define COLUMNS 8
#define SHIFTS 0, 5
#define COMPARES 1
#endif

using Word = unsigned int;

constexpr int kColumns = COLUMNS;                               // of a lane
constexpr bool kCompares = COMPARES;                            // lengths and angles as they are
constexpr int kShifts[] = {SHIFTS};                             // where the code of each alphabet begins in a word
constexpr int kAlphabets = sizeof(kShifts) / sizeof(kShifts[0]);
constexpr int kCodes = 32, kTable = kCodes * kCodes;
constexpr int kLengthSteps = 2049, kAngleSteps = 8192;
constexpr int kTables = kAlphabets * kTable + (kCompares ? kLengthSteps + kAngleSteps : 0);
constexpr Word kPadding = 0xffffffffu, kEveryLane = 0xffffffffu;
constexpr int kUnits = 1 << 16;  // to a reward of one in phase 1

__device__ __forceinline__ int greatest(int a, int b) { return a < b ? b : a; }
__device__ __forceinline__ int apart(int a, int b) { return a < b ? b - a : a - b; }

// Reward of two elements, rounded half up: 1, 1/2 (one of them is coil) or 0, times 2 min(a, b) / (a + b).
__device__ __forceinline__ int element_reward(int type_a, int length_a, int type_b, int length_b) {
    const int halves = type_a == 0 || type_b == 0 ? 1 : type_a == type_b ? 2 : 0;
    const unsigned long long whole = static_cast<unsigned long long>(length_a) + length_b;
    const unsigned long long shorter = length_a < length_b ? length_a : length_b;
    return static_cast<int>((2ull * halves * kUnits * shorter + whole) / (2ull * whole));
}

// Phase 1 of n chains.
//
// offsets: where the elements of each chain begin in `type` and `length`, less `base`. query_type, query_length: of the query's m elements.
// room: 2 m numbers for each thread. scores: by chain.
extern "C" __global__ void align_elements(const long long* offsets, long long base, const unsigned char* type, const int* length, int n,
                                          const unsigned char* query_type, const int* query_length, int m, int gap_first, int gap_next,
                                          int* room, int* scores) {
    const int threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    int* const h_row = room + thread;
    int* const f_row = room + static_cast<long long>(m) * threads + thread;
    for (int chain = thread; chain < n; chain += threads) {
        for (int i = 0; i < m; ++i) h_row[static_cast<long long>(i) * threads] = f_row[static_cast<long long>(i) * threads] = 0;
        int best = 0;
        for (long long j = offsets[chain] - base; j < offsets[chain + 1] - base; ++j) {
            const int own_type = type[j], own_length = length[j];
            int diagonal = 0, e = 0;
            for (int i = 0; i < m; ++i) {
                const long long place = static_cast<long long>(i) * threads;
                const int f = f_row[place], left = h_row[place];
                const int paired = diagonal + element_reward(query_type[i], query_length[i], own_type, own_length);
                const int h = greatest(greatest(paired, 0), greatest(e, f));
                best = greatest(best, h);
                diagonal = left;
                h_row[place] = h;
                e = greatest(e - gap_next, h - gap_first);
                f_row[place] = greatest(f - gap_next, h - gap_first);
            }
        }
        scores[chain] = best;
    }
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// A residue, of a column or a row: its codes, and, where they are compared, the length of its Cα vector and the angle to the next.
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

// Phase 2 of the chains first:last, for one strip of the query.
//
// offsets: where the residues of each chain begin in `state`, `length` and `angle`, less `base`. element_scores: of phase 1; a chain with
// less than `least` is left alone; none: all take part. query_*: the query's m residues, of which the strip begins at `begin`. table_values:
// of all tables, one behind the other. border_in, border_out: H and F on the right of the strip before and of this one, by residue; may be
// the same; none where there is no strip before or after. scores: by chain, -1 at first; raised where this strip has a better one.
// next_chain: zero at first.
extern "C" __global__ void __launch_bounds__(256)
    align_residues(const long long* offsets, long long base, const Word* state, const unsigned short* length, const unsigned short* angle,
                   int first, int last, const int* element_scores, int least, const Word* query_state, const unsigned short* query_length,
                   const unsigned short* query_angle, int m, int begin, const int* table_values, int gap_first, int gap_next,
                   const uint2* border_in, uint2* border_out, int* scores, Word* next_chain) {
    int* const tables = reinterpret_cast<int*>(dynamic_shared);
    for (int i = threadIdx.x; i < kTables; i += blockDim.x) tables[i] = table_values[i];
    __syncthreads();
    const int lane = threadIdx.x & 31;
    Residue columns[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        const int j = begin + lane * kColumns + c;
        columns[c] = j < m ? residue_at(query_state, query_length, query_angle, j) : Residue{kPadding, 0, 0};
    }
    while (true) {
        Word taken = 0;
        if (lane == 0) taken = atomicAdd(next_chain, 1u);
        taken = __shfl_sync(kEveryLane, taken, 0);
        if (taken >= static_cast<Word>(last - first)) break;
        const int chain = last - 1 - static_cast<int>(taken);
        if (element_scores != nullptr && element_scores[chain] < least) continue;
        const long long start = offsets[chain] - base;
        const int n = static_cast<int>(offsets[chain + 1] - offsets[chain]);

        int above[kColumns], e[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) above[c] = e[c] = 0;
        int best = 0, corner = 0, h_out = 0, f_out = 0;
        for (int step = 0; step < n + 31; ++step) {
            int h_left = __shfl_up_sync(kEveryLane, h_out, 1), f = __shfl_up_sync(kEveryLane, f_out, 1);
            const int row = step - lane;
            if (row < 0 || row >= n) continue;
            if (lane == 0) {
                h_left = f = 0;
                if (border_in != nullptr) {
                    const uint2 border = border_in[start + row];
                    h_left = static_cast<int>(border.x), f = static_cast<int>(border.y);
                }
            }
            const Residue own = residue_at(state, length, angle, start + row);
            int diagonal = corner;
            corner = h_left;
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                const int paired = diagonal + reward_of(tables, columns[c], own);
                const int h = greatest(greatest(paired, 0), greatest(e[c], f));
                diagonal = above[c];
                above[c] = h;
                best = greatest(best, h);
                e[c] = greatest(e[c] - gap_next, h - gap_first);
                f = greatest(f - gap_next, h - gap_first);
            }
            h_out = above[kColumns - 1], f_out = f;
            if (lane == 31 && border_out != nullptr) border_out[start + row] = uint2{static_cast<Word>(h_out), static_cast<Word>(f_out)};
        }
        for (int distance = 16; distance > 0; distance >>= 1) best = greatest(best, __shfl_xor_sync(kEveryLane, best, distance));
        if (lane == 0 && best > scores[chain]) scores[chain] = best;
    }
}
