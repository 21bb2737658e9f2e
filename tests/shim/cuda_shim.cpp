// Runs the grids of cuda_shim.hpp: compiled once into a library that the libraries of all sources use.
#include <link.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#define SHIM_RUNNER
#include "cuda_shim.hpp"

dim3 blockDim, gridDim;
uint3 threadIdx, blockIdx;

namespace shim {

unsigned long long operations = 0;
unsigned current = 0;

namespace {

constexpr size_t kStackBytes = 128 * 1024 + 448;  // not a power of two, which would map the upper ends of all stacks to the same cache line
constexpr unsigned char kGarbage = 0xa5;

// Reasons for which lanes wait for each other.
enum class Exchange { nothing, value, vote };

struct Warp {
    unsigned arrived = 0, mask = 0;
    unsigned long generation = 0;
    Exchange exchange = Exchange::nothing;
    int source[32];
    unsigned long long stored[32], answer[32];
};

// A thread of the block. Its stack stays from block to block: it waits where it finished the previous block.
struct Fiber {
    void* where[5];                          // as GCC stores a position to resume at, which costs a tenth of setjmp
    const unsigned long* awaited = nullptr;  // it resumes when this value changes
    unsigned long seen = 0;
    bool begun = false, finished = false;
    uint3 index;
};

std::vector<Fiber> fibers;
std::vector<Warp> warps;
std::unique_ptr<char[]> stacks;
void* scheduler[5];
unsigned n_waiting = 0, n_live = 0;
unsigned long barrier_generation = 0;
std::string error;
void (*body)(void**) = nullptr;
void** body_arguments = nullptr;

// GCC requires that no function contains both the position and the jump; variables of a function with a position are not safe. Callers must
// not rely on registers that only an analysis of this file shows to be preserved (noipa).
[[noreturn]] __attribute__((noipa)) void jump_to(void** where) { __builtin_longjmp(where, 1); }

// Returns control to the scheduler.
__attribute__((noipa)) void yield() {
    if (__builtin_setjmp(fibers[current].where) == 0) jump_to(scheduler);
}

void yield_until_changed(const unsigned long& generation) {
    fibers[current].awaited = &generation;
    fibers[current].seen = generation;
    yield();
}

void release_block() {
    n_waiting = 0;
    ++barrier_generation;
}

void begin_fiber() {
    for (;;) {
        body(body_arguments);
        fibers[current].finished = true;
        if (--n_live == n_waiting && n_live > 0) release_block();
        yield();
    }
}

// Lets the current fiber run until it waits or ends.
__attribute__((noipa)) void resume() {
    Fiber& fiber = fibers[current];
    if (__builtin_setjmp(scheduler) != 0) return;
    if (fiber.begun) jump_to(fiber.where);
    fiber.begun = true;
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = stacks.get() + current * kStackBytes;
    start.uc_stack.ss_size = kStackBytes;
    start.uc_link = nullptr;
    makecontext(&start, begin_fiber, 0);
    setcontext(&start);
}

// Prepares fibers for a number of threads; their stacks are reset if there were fewer or if a kernel was interrupted.
void prepare_fibers(unsigned n) {
    if (n > fibers.size()) stacks.reset(new char[n * kStackBytes]);
    if (n > fibers.size() || !error.empty()) fibers.assign(std::max<size_t>(n, fibers.size()), Fiber());
    error.clear();
}

struct Place {
    unsigned char *holds, *begin;
    size_t bytes;
};

// Returns this library's thread-local storage for the calling thread, which is all shared memory of its kernels; `memory_start` is in it.
Place shared_memory(unsigned char* memory_start) {
    Place place{memory_start, memory_start, kSharedBytes + kGuardBytes};
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

void report_waiting_threads() {
    error = "threads of block " + std::to_string(blockIdx.x) + " wait for each other forever: " + std::to_string(n_waiting) + " of " +
            std::to_string(n_live) + " at the block's barrier";
}

bool wrote_beyond(const unsigned char* memory_start, size_t shared) {
    const unsigned char* const end = memory_start + shared + kGuardBytes;
    if (std::all_of(memory_start + shared, end, [](unsigned char byte) { return byte == kGarbage; })) return false;
    error = "a write beyond the " + std::to_string(shared) + " bytes of dynamic shared memory";
    return true;
}

}  // namespace

void fail(const char* text) {
    if (error.empty()) error = std::string(text) + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(current) + ")";
    jump_to(scheduler);
}

void block_barrier() {
    if (++n_waiting == n_live) {
        release_block();
    } else {
        yield_until_changed(barrier_generation);
    }
}

namespace {

// All lanes in `mask` must arrive with the same mask and reason before any resumes. The last lane computes all answers, which stay until a
// lane arrives again, so no lane waits for others to read theirs.
unsigned long long meet(unsigned mask, Exchange exchange, unsigned long long bits = 0, int source = 0) {
    Warp& warp = warps[current >> 5];
    const unsigned lane = current & 31, bit = 1u << lane;
    if (!(mask & bit)) fail("a lane is not in the mask that it names");
    if (warp.arrived == 0) {
        warp.mask = mask;
        warp.exchange = exchange;
    } else if (warp.mask != mask) {
        fail("lanes of a warp name different masks");
    } else if (warp.exchange != exchange) {
        fail("lanes of a warp exchange different things");
    }
    warp.stored[lane] = bits;
    warp.source[lane] = source;
    warp.arrived |= bit;
    if (warp.arrived != mask) {
        yield_until_changed(warp.generation);
        return warp.answer[lane];
    }
    warp.arrived = 0;
    ++warp.generation;
    if (exchange == Exchange::nothing) return 0;
    unsigned votes = 0;
    for (unsigned one = mask; one != 0; one &= one - 1) {
        const int i = __builtin_ctz(one);
        if (exchange == Exchange::value) warp.answer[i] = warp.stored[warp.source[i]];
        votes |= warp.stored[i] != 0 ? 1u << i : 0u;
    }
    for (unsigned one = exchange == Exchange::vote ? mask : 0u; one != 0; one &= one - 1) warp.answer[__builtin_ctz(one)] = votes;
    return warp.answer[lane];
}

// Runs the threads of a warp, each until it waits, as long as any can run. Returns true if any could.
bool run_warp(unsigned begin, unsigned end, bool descending) {
    for (bool any = false;; any = true) {
        bool goes_on = false;
        for (unsigned turn = begin; turn < end; ++turn) {
            current = descending ? begin + end - 1 - turn : turn;
            const Fiber& fiber = fibers[current];
            if (fiber.finished || (fiber.awaited != nullptr && *fiber.awaited == fiber.seen)) continue;
            threadIdx = fiber.index;
            resume();
            if (!error.empty()) return true;
            goes_on = true;
        }
        if (!goes_on) return any;
    }
}

}  // namespace

void warp_barrier(unsigned mask) { meet(mask, Exchange::nothing); }

unsigned votes(unsigned mask, bool vote) { return static_cast<unsigned>(meet(mask, Exchange::vote, vote)); }

unsigned long long shuffled(unsigned mask, unsigned long long bits, int source) {
    if (source < 0 || source > 31 || !(mask >> source & 1u)) fail("a shuffle reads a lane that is not in its mask");
    return meet(mask, Exchange::value, bits, source);
}

const char* run(void (*call)(void** arguments), const unsigned* grid, const unsigned* block, bool descending, void** arguments,
                unsigned char* memory_start, size_t shared) {
    if (shared > kSharedBytes) return "too much shared memory";
    body = call;
    body_arguments = arguments;
    gridDim = dim3{grid[0], grid[1], grid[2]};
    blockDim = dim3{block[0], block[1], block[2]};
    const unsigned n = blockDim.x * blockDim.y * blockDim.z;
    prepare_fibers(n);
    for (unsigned t = 0; t < n; ++t) fibers[t].index = uint3{t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    const Place memory = shared_memory(memory_start);
    unsigned char* const end = memory.begin + memory.bytes;
    unsigned char* const used = memory_start + shared + kGuardBytes;  // of the dynamic part, which is much larger than the request
    for (unsigned b = 0; b < gridDim.x * gridDim.y * gridDim.z; ++b) {
        blockIdx = uint3{b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
        std::fill(memory.begin, used, kGarbage);
        std::fill(memory_start + kSharedBytes + kGuardBytes, end, kGarbage);
        warps.assign((n + 31) / 32, Warp());
        n_waiting = 0;
        n_live = n;
        for (unsigned t = 0; t < n; ++t) {
            fibers[t].awaited = nullptr;
            fibers[t].finished = false;
        }
        while (n_live > 0) {
            bool any = false;
            for (unsigned turn = 0; turn < warps.size(); ++turn) {
                const unsigned begin = 32 * static_cast<unsigned>(descending ? warps.size() - 1 - turn : turn);
                any |= run_warp(begin, std::min(n, begin + 32), descending);
                if (!error.empty()) return error.c_str();
            }
            if (!any) {
                report_waiting_threads();
                return error.c_str();
            }
        }
        if (wrote_beyond(memory_start, shared)) return error.c_str();
    }
    return "";
}

}  // namespace shim

// Intrinsics on two signed 16-bit numbers in a word.
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

unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) {
    return shim::by_halves([](int x, int y, int z) { return max(max(x, y), z); }, a, b, c);
}
unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) {
    return shim::by_halves([](int x, int y, int z) { return max<int>(static_cast<int16_t>(x + y), z); }, a, b, c);
}
unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned answer = 0;
    for (int i = 0; i < 4; ++i) answer |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return answer;
}

// The instruction prmt: the fourth bit of a selector copies the sign of its byte to all eight bits.
unsigned signed_bytes(unsigned a, unsigned b, unsigned places) {
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
_Float16 as_half(int bits) { return from_bits<_Float16>(static_cast<uint16_t>(bits)); }
int half_bits(_Float16 value) { return static_cast<int>(as_bits(value)); }
}  // namespace shim

unsigned half_pair_sum(unsigned a, unsigned b) {
    return shim::by_halves([](int x, int y) { return shim::half_bits(shim::as_half(x) + shim::as_half(y)); }, a, b);
}
unsigned half_pair_greatest(unsigned a, unsigned b) {
    return shim::by_halves([](int x, int y) { return shim::as_half(x) < shim::as_half(y) ? y : x; }, a, b);
}

extern "C" unsigned long long counted_operations() {
    const unsigned long long counted = shim::operations;
    shim::operations = 0;
    return counted;
}
