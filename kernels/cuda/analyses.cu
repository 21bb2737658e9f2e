// The example problems of the ATGPU model: vector addition, matrix multiplication by tiles in shared memory, and reduction and prefix scan
// by trees (Carroll's thesis, 2018, section 4.4; the scan is Blelloch's). In addition, loops over one operation, with which its rate is
// measured. Numbers are 32-bit integers whose sums wrap around.

using Word = unsigned int;
using Place = long long;

#ifndef COUNT_OPERATIONS
#define COUNT_OPERATIONS(n)
#endif
#ifndef RATE
#define RATE 0
#endif

constexpr int kBlock = 256, kTile = 16, kTogether = 8;
enum Rate { kInteger, kPacked, kBytes, kFloat, kLookup, kAtomic, kCached };

extern "C" __global__ void add_vectors(const Word* a, const Word* b, Word* c, Place n) {
    const Place i = static_cast<Place>(blockIdx.x) * kBlock + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
        COUNT_OPERATIONS(1);
    }
}

// Each block computes one tile of the product of two matrices (n, n).
extern "C" __global__ void multiply_matrices(const Word* a, const Word* b, Word* c, int n) {
    __shared__ Word of_a[kTile][kTile], of_b[kTile][kTile];
    const int tiles = (n + kTile - 1) / kTile, row = threadIdx.x / kTile, column = threadIdx.x % kTile;
    const int y = blockIdx.x / tiles * kTile + row, x = blockIdx.x % tiles * kTile + column;
    Word sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        const int across = tile * kTile + column, down = tile * kTile + row;
        of_a[row][column] = y < n && across < n ? a[static_cast<Place>(y) * n + across] : 0;
        of_b[row][column] = down < n && x < n ? b[static_cast<Place>(down) * n + x] : 0;
        __syncthreads();
        for (int k = 0; k < kTile; ++k) sum += of_a[row][k] * of_b[k][column];
        COUNT_OPERATIONS(kTile);
        __syncthreads();
    }
    if (y < n && x < n) c[static_cast<Place>(y) * n + x] = sum;
}

// Each block writes the sum of 2 kBlock values.
extern "C" __global__ void reduce_blocks(const Word* values, Word* sums, Place n) {
    __shared__ Word kept[kBlock];
    const int own = threadIdx.x;
    const Place i = static_cast<Place>(blockIdx.x) * 2 * kBlock + own;
    kept[own] = (i < n ? values[i] : 0) + (i + kBlock < n ? values[i + kBlock] : 0);
    COUNT_OPERATIONS(1);
    __syncthreads();
    for (int half = kBlock / 2; half > 0; half /= 2) {
        if (own < half) kept[own] += kept[own + half];
        __syncthreads();
    }
    if (own == 0) sums[blockIdx.x] = kept[0];
}

// Each block replaces its 2 kBlock values by their exclusive prefix sums, and writes the sum of all.
extern "C" __global__ void scan_blocks(Word* values, Word* sums, Place n) {
    __shared__ Word kept[2 * kBlock];
    const int own = threadIdx.x;
    const Place first = static_cast<Place>(blockIdx.x) * 2 * kBlock;
    for (int half = 0; half < 2; ++half) {
        const Place i = first + own + half * kBlock;
        kept[own + half * kBlock] = i < n ? values[i] : 0;
    }
    COUNT_OPERATIONS(2);
    for (int step = 1; step <= kBlock; step *= 2) {  // up the tree
        __syncthreads();
        const int right = (own + 1) * 2 * step - 1;
        if (right < 2 * kBlock) kept[right] += kept[right - step];
    }
    __syncthreads();
    if (own == 0) {
        sums[blockIdx.x] = kept[2 * kBlock - 1];
        kept[2 * kBlock - 1] = 0;
    }
    for (int step = kBlock; step > 0; step /= 2) {  // and down
        __syncthreads();
        const int right = (own + 1) * 2 * step - 1;
        if (right < 2 * kBlock) {
            const Word left = kept[right - step];
            kept[right - step] = kept[right];
            kept[right] += left;
        }
    }
    __syncthreads();
    for (int half = 0; half < 2; ++half) {
        const Place i = first + own + half * kBlock;
        if (i < n) values[i] = kept[own + half * kBlock];
    }
}

// Add to each value of a block the sum of all previous blocks.
extern "C" __global__ void add_to_blocks(Word* values, const Word* before, Place n) {
    const Place first = static_cast<Place>(blockIdx.x) * 2 * kBlock;
    for (int half = 0; half < 2; ++half) {
        const Place i = first + threadIdx.x + half * kBlock;
        if (i < n) values[i] += before[blockIdx.x];
    }
    COUNT_OPERATIONS(2);
}

// Each thread does `steps` times kTogether operations of one kind. Results are written, so that the compiler cannot omit the operations.
extern "C" __global__ void repeat_operation(Word* results, int steps) {
    __shared__ Word table[kBlock];
    const Word own = threadIdx.x;
    table[own] = RATE == kLookup ? 7 : own * 2654435761u;  // different banks for lanes that read at the same time
    __syncthreads();
    Word values[kTogether];
    float sums[kTogether];
    for (int i = 0; i < kTogether; ++i) {
        values[i] = own * 40503u + i;
        sums[i] = static_cast<float>(own + i);
    }
    // Read values that other blocks may have written at their end; volatile, to bypass the multiprocessor's own cache.
    const volatile Word* kept = results;
    const int n_best = gridDim.x * kBlock;
    int place = blockIdx.x * kBlock + own;
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            if (RATE == kInteger) values[i] = static_cast<Word>(max(static_cast<int>(values[i] + own), static_cast<int>(values[(i + 1) % kTogether])));
            if (RATE == kPacked) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
                values[i] = __viaddmax_s16x2(values[i], own, values[(i + 1) % kTogether]);
#else
                values[i] = max(values[i] + own, values[(i + 1) % kTogether]);
#endif
            }
            if (RATE == kBytes) values[i] = __byte_perm(values[i], values[(i + 1) % kTogether], own & 0x7777u);
            if (RATE == kFloat) sums[i] = fmaf(sums[i], 0.999f, sums[(i + 1) % kTogether]);
            if (RATE == kLookup) values[i] = table[(values[i] + own) & (kBlock - 1)];
            if (RATE == kCached) {
                values[i] += kept[place];
                place += 5 * kBlock;
                if (place >= n_best) place -= n_best;
            }
            if (RATE == kAtomic) atomicAdd(&table[(values[i] + own) & (kBlock - 1)], 1u);
        }
        COUNT_OPERATIONS(kTogether);
    }
    Word found = 0;
    for (int i = 0; i < kTogether; ++i) found ^= values[i] ^ static_cast<Word>(static_cast<int>(sums[i] * 1e-6f));
    __syncthreads();
    results[static_cast<Place>(blockIdx.x) * kBlock + own] = found + table[own];
}
