// Functions of a warp for all kernels: sums over its lanes, a list of the best candidates distributed over them, and copying into shared
// memory.
#pragma once

using Word = unsigned int;
using Long = unsigned long long;

constexpr Word kEveryLane = 0xffffffffu;

// Innermost steps, which `proteoscope.kernels.counts` predicts. They are counted only when kernels run on the CPU, in tests.
#ifndef COUNT_OPERATIONS
#define COUNT_OPERATIONS(n)
#endif

// Return the sum over this lane and all lower lanes.
template <class Value>
__device__ Value sum_up_to_lane(Value value, int lane) {
    for (int step = 1; step < 32; step <<= 1) {
        const Value before = __shfl_up_sync(kEveryLane, value, step);
        if (lane >= step) value += before;
    }
    return value;
}

// Return, in lane 0, the sum over all lanes.
template <class Value>
__device__ Value sum_of_lanes(Value value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_down_sync(kEveryLane, value, step);
    return value;
}

// The list of the best candidates is distributed over a warp: lane j stores the j-th best. All lanes insert the same candidate. The type
// has the functions `comes_before` and `candidate_above`, which returns the candidate of the previous lane.
template <class Candidate>
__device__ void insert(Candidate& kept, const Candidate& fresh, int lane) {
    const int place = __popc(__ballot_sync(kEveryLane, comes_before(kept, fresh)));
    const Candidate above = candidate_above(kept);
    if (lane == place) kept = fresh;
    if (lane > place) kept = above;
}

// All threads of the block copy a struct with members of 8 bytes into shared memory; the copy is complete after the next barrier.
template <class Struct>
__device__ void copy_together(Struct& shared, const Struct* in_memory) {
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Struct) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&shared)[i] = reinterpret_cast<const Long*>(in_memory)[i];
    }
}
