// Runs a CUDA C++ kernel on the CPU, to test its logic without a GPU.
//
// The threads of a block are fibers that take turns. A thread runs until it waits at a barrier or for lanes of its warp, and a warp until
// all its threads wait at a barrier, so that a missing barrier changes the result. Blocks run one after another. Shared memory is
// thread-local storage of the only thread, and is filled with a garbage pattern before each block. A kernel that cannot continue (a
// barrier that some threads never reach, lanes that name different masks, a write beyond the dynamic shared memory) is reported as an
// error. Fibers run in ascending or descending order, which detects results that depend on the order, but not races on a real GPU.
#pragma once

// Every source is compiled with this header, so it includes nothing: headers of the standard library would take longer than most sources.
// Functions that need no template are in cuda_shim.cpp, which is compiled once.
using size_t = decltype(sizeof 0);
extern "C" {
double fabs(double) noexcept;
double floor(double) noexcept;
double fmax(double, double) noexcept;
double rint(double) noexcept;
double sqrt(double) noexcept;
float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float fminf(float, float) noexcept;
float logf(float) noexcept;
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __shared__ thread_local
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

// Counts the operations that `proteoscope.kernels.counts` predicts.
#define COUNT_OPERATIONS(n) (shim::operations += static_cast<unsigned long long>(n))

extern dim3 blockDim, gridDim;
extern uint3 threadIdx, blockIdx;
constexpr int warpSize = 32;

namespace shim {

extern unsigned long long operations;
extern unsigned current;  // thread of the block

constexpr size_t kSharedBytes = 256 * 1024;
constexpr size_t kGuardBytes = 4096;  // after the dynamic shared memory that a launch requests

[[noreturn]] void fail(const char* text);
void block_barrier();
void warp_barrier(unsigned mask);
// Returns a bit for each lane of `mask` with a true vote.
unsigned votes(unsigned mask, bool vote);
// Stores bits of this lane, and returns those that lane `source` has stored.
unsigned long long shuffled(unsigned mask, unsigned long long bits, int source);
// Runs a grid, with `call` for each thread, and returns an error or an empty text; `memory` is the dynamic shared memory.
const char* run(void (*call)(void** arguments), const unsigned* grid, const unsigned* block, bool descending, void** arguments,
                unsigned char* memory, size_t shared);

template <class Value>
unsigned long long as_bits(Value value) {
    unsigned long long bits = 0;
    static_assert(sizeof(Value) <= sizeof bits);
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class Value>
Value from_bits(unsigned long long bits) {
    Value value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

template <class Value>
Value shuffle(unsigned mask, Value value, int source) {
    return from_bits<Value>(shuffled(mask, as_bits(value), source));
}

// Calls a kernel with the values at some addresses; braces evaluate them in order.
template <class Value>
Value next(void**& arguments) {
    return *static_cast<Value*>(*arguments++);
}
template <class... Arguments>
struct Call {
    Call(void (*kernel)(Arguments...), Arguments... arguments) { kernel(arguments...); }
};
template <class... Arguments>
void call(void (*kernel)(Arguments...), void** arguments) {
    Call<Arguments...>{kernel, next<Arguments>(arguments)...};
}

}  // namespace shim

inline void __syncthreads() { shim::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { shim::warp_barrier(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class Value>
Value __shfl_sync(unsigned mask, Value value, int source, int width = 32) {
    const int lane = shim::current & 31;
    return shim::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)));
}

template <class Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned delta, int width = 32) {
    const int lane = shim::current & 31, base = lane & ~(width - 1), source = lane - static_cast<int>(delta);
    return shim::shuffle(mask, value, source < base ? lane : source);
}

template <class Value>
Value __shfl_down_sync(unsigned mask, Value value, unsigned delta, int width = 32) {
    const int lane = shim::current & 31, base = lane & ~(width - 1), source = lane + static_cast<int>(delta);
    return shim::shuffle(mask, value, source >= base + width ? lane : source);
}

template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int bits, int width = 32) {
    const int lane = shim::current & 31, base = lane & ~(width - 1), source = lane ^ bits;
    return shim::shuffle(mask, value, source >= base + width ? lane : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) { return shim::votes(mask, predicate != 0); }
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// The fibers of a kernel take turns only where they wait, so plain reads and writes are atomic.
template <class Value>
Value atomicAdd(Value* place, Value value) {
    const Value before = *place;
    *place = before + value;
    return before;
}
template <class Value>
Value atomicOr(Value* place, Value value) {
    const Value before = *place;
    *place = before | value;
    return before;
}
template <class Value>
Value atomicMax(Value* place, Value value) {
    const Value before = *place;
    if (value > before) *place = value;
    return before;
}
template <class Value>
Value atomicMin(Value* place, Value value) {
    const Value before = *place;
    if (value < before) *place = value;
    return before;
}
template <class Value>
Value atomicCAS(Value* place, Value expected, Value value) {
    const Value before = *place;
    if (before == expected) *place = value;
    return before;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline float __int_as_float(int bits) { return shim::from_bits<float>(static_cast<unsigned>(bits)); }
inline int __float_as_int(float value) { return static_cast<int>(shim::as_bits(value)); }
inline double __longlong_as_double(long long bits) { return shim::from_bits<double>(static_cast<unsigned long long>(bits)); }
inline long long __double_as_longlong(double value) { return static_cast<long long>(shim::as_bits(value)); }
template <class Value>
Value __ldg(const Value* place) {
    return *place;
}
template <class Value>
Value __ldcg(const Value* place) {
    return *place;
}
template <class Value>
Value min(Value a, Value b) {
    return b < a ? b : a;
}
template <class Value>
Value max(Value a, Value b) {
    return a < b ? b : a;
}

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline void fetch_line(const void*) {}

// Intrinsics on two signed 16-bit numbers in a word.
unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c);
unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c);
// The same on one signed number.
inline int __vimax3_s32(int a, int b, int c) { return max(max(a, b), c); }
inline int __vimax3_s32_relu(int a, int b, int c) { return max(__vimax3_s32(a, b, c), 0); }
inline int __viaddmax_s32(int a, int b, int c) { return max(static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)), c); }
unsigned __byte_perm(unsigned a, unsigned b, unsigned selector);
// The instruction prmt: the fourth bit of a selector copies the sign of its byte to all eight bits.
unsigned signed_bytes(unsigned a, unsigned b, unsigned places);
// Two numbers of half precision in a word, rounded to the nearest even after each operation.
unsigned half_pair_sum(unsigned a, unsigned b);
unsigned half_pair_greatest(unsigned a, unsigned b);

// Memory for `extern __shared__` arrays named dynamic_shared, defined in each source so that the compiler can address it.
#ifndef SHIM_RUNNER
alignas(16) thread_local unsigned char dynamic_shared[shim::kSharedBytes + shim::kGuardBytes];
#endif

// Defines `launch_NAME` for external callers: arguments are pointers to the values, as for cuLaunchKernel.
#define SHIM_KERNEL(NAME)                                                                                                  \
    extern "C" const char* launch_##NAME(const unsigned* grid, const unsigned* block, unsigned long shared, int descending, \
                                         void** arguments) {                                                               \
        const auto call = [](void** arguments) { shim::call(NAME, arguments); };                                           \
        return shim::run(call, grid, block, descending != 0, arguments, dynamic_shared, shared);                           \
    }
