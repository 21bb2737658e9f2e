// Runs a CUDA C++ kernel on the processor, so that its logic is tested where there is no GPU.
//
// A block's threads are fibers that take turns; a thread runs until it waits at a barrier or for lanes of its warp. Blocks run one after
// another. Shared memory is thread-local storage of the one thread that runs everything, and is filled with rubbish before each block.
// What cannot go on (a barrier that some threads never reach, lanes that name different masks, a write behind the dynamic shared memory) is
// reported as an error. Fibers run in turn, in ascending or descending order: a result that depends on the order shows, races on a real
// card do not.
#pragma once

#include <link.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

// What `kernels.counts` tells beforehand is counted here.
#define COUNT_OPERATIONS(n) (shim::operations += static_cast<unsigned long long>(n))

inline dim3 blockDim, gridDim;
inline uint3 threadIdx, blockIdx;
constexpr int warpSize = 32;

namespace shim {

inline unsigned long long operations = 0;

constexpr size_t kStackBytes = 128 * 1024;
constexpr size_t kSharedBytes = 256 * 1024;
constexpr size_t kGuardBytes = 4096;  // behind the dynamic shared memory that a launch asks for
constexpr unsigned char kRubbish = 0xa5;

struct Warp {
    unsigned arrived = 0, mask = 0;
    unsigned long generation = 0;
    unsigned long long slot[32];
};

struct Fiber {
    ucontext_t start;
    jmp_buf where;
    bool begun = false, finished = false;
    uint3 index;
};

inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline std::vector<char> stacks;
inline jmp_buf scheduler;
inline ucontext_t scheduler_context;
inline unsigned current = 0, n_waiting = 0, n_live = 0;
inline unsigned long barrier_generation = 0;
inline bool progressed = false;
inline std::string error;
inline void (*body)(void*) = nullptr;
inline void* body_argument = nullptr;

inline void yield() {
    if (_setjmp(fibers[current].where) == 0) _longjmp(scheduler, 1);
}

[[noreturn]] inline void fail(const std::string& text) {
    if (error.empty()) error = text + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(current) + ")";
    _longjmp(scheduler, 2);
}

inline void begin_fiber() {
    body(body_argument);
    fibers[current].finished = true;
    --n_live;
    progressed = true;
    _longjmp(scheduler, 1);
}

inline void block_barrier() {
    const unsigned long mine = barrier_generation;
    ++n_waiting;
    progressed = true;
    while (barrier_generation == mine) {
        if (n_waiting == n_live) {
            n_waiting = 0;
            ++barrier_generation;
            progressed = true;
            return;
        }
        yield();
    }
}

// All lanes in `mask` must come with the same mask before any goes on.
inline void warp_barrier(unsigned mask) {
    Warp& warp = warps[current >> 5];
    const unsigned bit = 1u << (current & 31);
    if (!(mask & bit)) fail("a lane is not in the mask that it names");
    if (warp.arrived == 0) {
        warp.mask = mask;
    } else if (warp.mask != mask) {
        fail("lanes of a warp name different masks");
    }
    warp.arrived |= bit;
    progressed = true;
    if (warp.arrived == mask) {
        warp.arrived = 0;
        ++warp.generation;
        return;
    }
    const unsigned long mine = warp.generation;
    while (warp.generation == mine) yield();
}

template <class Value>
unsigned long long as_bits(Value value) {
    unsigned long long bits = 0;
    static_assert(sizeof(Value) <= sizeof bits);
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class Value>
Value from_bits(unsigned long long bits) {
    Value value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Every lane of `mask` lays down its value and sees what all have laid down; `pick` makes the answer of this lane from it.
template <class Value, class Pick>
auto exchange(unsigned mask, Value value, Pick pick) {
    Warp& warp = warps[current >> 5];
    warp.slot[current & 31] = as_bits(value);
    warp_barrier(mask);
    const auto answer = pick(warp.slot);
    warp_barrier(mask);
    return answer;
}

template <class Value>
Value shuffle(unsigned mask, Value value, int source) {
    if (source < 0 || source > 31 || !(mask >> source & 1u)) fail("a shuffle reads a lane that is not in its mask");
    return exchange(mask, value, [=](const unsigned long long* slot) { return from_bits<Value>(slot[source]); });
}

// Lets the current fiber run until it waits or ends. On its own, because variables of a function that calls setjmp are not safe.
__attribute__((noinline)) inline void resume() {
    Fiber& fiber = fibers[current];
    if (_setjmp(scheduler) != 0) return;
    if (fiber.begun) _longjmp(fiber.where, 1);
    fiber.begun = true;
    setcontext(&fiber.start);
}

template <class... Arguments, size_t... i>
std::tuple<Arguments...> unpacked(void** arguments, std::index_sequence<i...>) {
    return std::tuple<Arguments...>(*static_cast<Arguments*>(arguments[i])...);
}

struct Place {
    unsigned char *holds, *begin;
    size_t bytes;
};

// Where this library keeps its thread-local storage for the thread that asks, which is all shared memory of its kernels; `room` lies in it.
inline Place shared_memory(unsigned char* room) {
    Place place{room, room, kSharedBytes + kGuardBytes};
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* argument) {
            Place& place = *static_cast<Place*>(argument);
            unsigned char* const begin = static_cast<unsigned char*>(library->dlpi_tls_data);
            for (int i = 0; begin != nullptr && i < library->dlpi_phnum; ++i) {
                const auto& segment = library->dlpi_phdr[i];
                if (segment.p_type != PT_TLS || place.holds < begin || place.holds >= begin + segment.p_memsz) continue;
                place.begin = begin;
                place.bytes = segment.p_memsz;
                return 1;
            }
            return 0;
        },
        &place);
    return place;
}

__attribute__((noinline)) inline void tell_of_threads_that_wait() {
    error = "threads of block " + std::to_string(blockIdx.x) + " wait for each other for ever: " + std::to_string(n_waiting) + " of " +
            std::to_string(n_live) + " at the block's barrier";
}

__attribute__((noinline)) inline bool wrote_behind(const unsigned char* room, size_t shared) {
    for (size_t i = shared; i < shared + kGuardBytes && error.empty(); ++i) {
        if (room[i] != kRubbish) error = "a write behind the " + std::to_string(shared) + " bytes of dynamic shared memory";
    }
    return !error.empty();
}

// Runs a grid. Returns an empty text, or what went wrong.
template <class... Arguments>
std::string run(void (*kernel)(Arguments...), dim3 grid, dim3 block, bool descending, void** arguments, unsigned char* room, size_t shared) {
    if (shared > kSharedBytes) return "too much shared memory";
    std::tuple<Arguments...> values = unpacked<Arguments...>(arguments, std::index_sequence_for<Arguments...>());
    auto call = [&] { std::apply(kernel, values); };
    body = [](void* f) { (*static_cast<decltype(call)*>(f))(); };
    body_argument = &call;
    gridDim = grid;
    blockDim = block;
    const unsigned n = block.x * block.y * block.z;
    stacks.resize(n * kStackBytes);
    const Place memory = shared_memory(room);
    error.clear();
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
        blockIdx = uint3{b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        std::memset(memory.begin, kRubbish, memory.bytes);
        fibers.assign(n, Fiber());
        warps.assign((n + 31) / 32, Warp());
        n_waiting = 0;
        n_live = n;
        for (unsigned t = 0; t < n; ++t) {
            fibers[t].index = uint3{t % block.x, t / block.x % block.y, t / block.x / block.y};
            getcontext(&fibers[t].start);
            fibers[t].start.uc_stack.ss_sp = stacks.data() + t * kStackBytes;
            fibers[t].start.uc_stack.ss_size = kStackBytes;
            fibers[t].start.uc_link = nullptr;
            makecontext(&fibers[t].start, begin_fiber, 0);
        }
        while (n_live > 0) {
            progressed = false;
            for (unsigned turn = 0; turn < n; ++turn) {
                current = descending ? n - 1 - turn : turn;
                if (fibers[current].finished) continue;
                threadIdx = fibers[current].index;
                resume();
                if (!error.empty()) return error;
            }
            if (!progressed) {
                tell_of_threads_that_wait();
                return error;
            }
        }
        if (wrote_behind(room, shared)) return error;
    }
    return {};
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

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return shim::exchange(mask, predicate != 0, [=](const unsigned long long* slot) {
        unsigned votes = 0;
        for (int lane = 0; lane < 32; ++lane) votes |= (mask >> lane & 1u && slot[lane]) ? 1u << lane : 0u;
        return votes;
    });
}

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

// Two signed numbers of 16 bits in a word, as the intrinsics of that name compute on them.
namespace shim {
template <class Operation, class... Words>
unsigned by_halves(Operation operation, Words... words) {
    unsigned answer = 0;
    for (int half = 0; half < 32; half += 16) {
        answer |= static_cast<unsigned>(static_cast<uint16_t>(operation(static_cast<int16_t>(words >> half)...))) << half;
    }
    return answer;
}
}  // namespace shim

inline unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) {
    return shim::by_halves([](int x, int y, int z) { return max(max(x, y), z); }, a, b, c);
}
inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) {
    return shim::by_halves([](int x, int y, int z) { return max<int>(static_cast<int16_t>(x + y), z); }, a, b, c);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned answer = 0;
    for (int i = 0; i < 4; ++i) answer |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return answer;
}

// The instruction prmt, whose fourth bit of a place asks for the sign of its byte in all eight bits.
inline unsigned signed_bytes(unsigned a, unsigned b, unsigned places) {
    const unsigned chosen = __byte_perm(a, b, places & 0x7777u);
    unsigned answer = 0;
    for (int i = 0; i < 32; i += 8) {
        const unsigned byte = chosen >> i & 255u;
        answer |= (places >> (i / 2 + 3) & 1u ? (byte & 128u ? 255u : 0u) : byte) << i;
    }
    return answer;
}

// Two numbers of half precision in a word, rounded to the nearest even after each operation (_Float16 of GCC and Clang).
namespace shim {
inline _Float16 as_half(int bits) { return from_bits<_Float16>(static_cast<uint16_t>(bits)); }
inline int half_bits(_Float16 value) { return static_cast<int>(as_bits(value)); }
}  // namespace shim

inline unsigned half_pair_sum(unsigned a, unsigned b) {
    return shim::by_halves([](int x, int y) { return shim::half_bits(shim::as_half(x) + shim::as_half(y)); }, a, b);
}
inline unsigned half_pair_greatest(unsigned a, unsigned b) {
    return shim::by_halves([](int x, int y) { return shim::as_half(x) < shim::as_half(y) ? y : x; }, a, b);
}

// Room for `extern __shared__` arrays of the name dynamic_shared.
alignas(16) thread_local unsigned char dynamic_shared[shim::kSharedBytes + shim::kGuardBytes];

// Makes `launch_NAME` for a caller outside: arguments are pointers to the values, as cuLaunchKernel takes them.
#define SHIM_KERNEL(NAME)                                                                                                        \
    extern "C" const char* launch_##NAME(const unsigned* grid, const unsigned* block, unsigned long shared, int descending,      \
                                         void** arguments) {                                                                     \
        static std::string answer;                                                                                               \
        answer = shim::run(NAME, dim3{grid[0], grid[1], grid[2]}, dim3{block[0], block[1], block[2]}, descending != 0, arguments, \
                           dynamic_shared, shared);                                                                              \
        return answer.c_str();                                                                                                   \
    }

extern "C" unsigned long long counted_operations() {
    const unsigned long long counted = shim::operations;
    shim::operations = 0;
    return counted;
}
