// k-means: assign each point or sparse vector to the nearest centroid, and sum the members of each cluster. Labels and sums are identical
// to those of kernels/cpu/k_means.py (Li's thesis, Algorithms 4.3, 4.4 and 4.6).
//
// Points of up to 16 dimensions: a thread keeps kPoints of them in registers, and the block's centroids pass through shared memory, where
// all threads read the same centroid. Points of more dimensions: a block computes the distances of 64 points from 64 centroids per step,
// from tiles of 16 dimensions in shared memory; a thread has 4 by 4 distances in registers. Both find the nearest and the second nearest
// centroid in float32. If rounding errors leave open which is nearer (see kernels/cpu/k_means.py), the warp compares all centroids exactly
// as defined: in float64, adding the dimensions in order.
//
// Sums of points: a block adds its points in shared memory, each number as two 16-bit halves in 32-bit counters, which cannot overflow for
// kPointsOfBlock points, and then adds the result to the sums in device memory.
//
// Sparse vectors: each bin has a list of the clusters whose sums are not zero in it, in segments of kTile clusters. A warp processes one
// vector: it walks the lists of the vector's bins in turn and adds to the products with kTile clusters in shared memory. A list contains no
// cluster twice, so lanes do not conflict. One block per bin creates the lists of the next round, from all vectors that have this bin.

// Macros of a launch, set by kernels/cuda/k_means.py. The value here is that of one of its variants.
#ifndef DIMENSIONS
#define DIMENSIONS 8
#endif

#include "warp.cuh"

constexpr int kDimensions = DIMENSIONS;
constexpr int kThreads = 256;
constexpr int kPoints = kDimensions <= 4 ? 8 : kDimensions <= 8 ? 4 : 2;  // points per thread
constexpr int kStride = (kDimensions + 3) / 4 * 4;                        // floats per centroid
constexpr int kFloats = 8192;                                             // floats of the centroids in shared memory at the same time
constexpr int kCentroids = kFloats / kStride;
constexpr int kSide = 64, kDepth = 16, kRow = kSide + 4;                  // dimensions of tiles
constexpr int kTile = 1024;                                               // clusters whose products a warp stores
constexpr int kWarps = 4;                                                 // warps of a block, for vectors
constexpr int kLowBits = 21;
constexpr double kRounding = 1.0 / 16777216.0;
constexpr float kFar = 3.4e38f;

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Return the squared distance, adding the dimensions in order.
__device__ __forceinline__ double distance(const int* point, const double* centroid, int d) {
    double whole = 0.0;
    for (int c = 0; c < d; ++c) {
        const double difference = static_cast<double>(point[c]) - centroid[c];
        whole += difference * difference;
    }
    return whole;
}

// Return a bound: centroids with a larger float32 distance are certainly farther than the centroid at the float32 distance `best`.
__device__ __forceinline__ double most_of_nearest(double best, double length_squared, int d) {
    const double slope = kRounding * (d + 8), root = 5.0 * kRounding * sqrt(length_squared);
    const double rest = 8.0 * kRounding * kRounding * length_squared;
    const double above = best + slope * best + root * sqrt(best) + rest;
    const double of_root = (root + sqrt(root * root + 4.0 * (1.0 - slope) * (above + rest))) / (2.0 * (1.0 - slope));
    return of_root * of_root * (1.0 + 1e-6);
}

// Return the nearest centroid as defined, the first if several are equally near. Called by all lanes with the same point.
__device__ __noinline__ int exact_nearest(const int* point, const double* centroids, int k, int d) {
    const int lane = threadIdx.x & 31;
    double best = 1e300;
    int label = k;
    for (int j = lane; j < k; j += 32) {
        const double found = distance(point, centroids + static_cast<long long>(j) * d, d);
        if (found < best) best = found, label = j;
    }
    for (int step = 16; step > 0; step >>= 1) {
        const double other = __shfl_xor_sync(kEveryLane, best, step);
        const int of_other = __shfl_xor_sync(kEveryLane, label, step);
        if (other < best || (other == best && of_other < label)) best = other, label = of_other;
    }
    return label;
}

// Four floats that are loaded together.
struct __align__(16) Four {
    float of[4];
};

// The nearest and the second nearest centroid so far, by float32 distances.
struct Nearest {
    float best = kFar, second = kFar;
    int label = 0;

    __device__ __forceinline__ void meet(float found, int j) {
        second = fminf(second, fmaxf(best, found));
        label = found < best ? j : label;
        best = fminf(best, found);
    }

    __device__ __forceinline__ void join(const Nearest& other) {
        second = fminf(fminf(second, other.second), fmaxf(best, other.best));
        label = other.best < best ? other.label : label;
        best = fminf(best, other.best);
    }
};

// State of points: coordinates (n, d); `first:last` are labelled. `labels` contains the labels of the previous round, and `changed` counts
// those that differ. `distances` receives the squared distances, if requested.
struct Points {
    const int* points;
    int* labels;
    double* distances;
    Word* changed;
    long long first;
    long long last;
    int d;
    int measures;
};

// The k centroids (k, d), exact and in float32, the latter with `stride` floats each.
struct Centroids {
    const double* exact;
    const float* quick;
    int k;
    int stride;
};

// Determine and write the label of point i in each lane with `is_mine`. Called by all lanes of the warp.
__device__ __forceinline__ void settle(const Points& points, const Centroids& centroids, long long i, bool is_mine, const Nearest& nearest,
                                       double length_squared) {
    const int d = points.d;
    int label = nearest.label;
    const bool is_near = is_mine && !(static_cast<double>(nearest.second) > most_of_nearest(nearest.best, length_squared, d));
    for (Word votes = __ballot_sync(kEveryLane, is_near); votes; votes &= votes - 1) {
        const int source = __ffs(static_cast<int>(votes)) - 1;
        const long long point = __shfl_sync(kEveryLane, i, source);
        const int found = exact_nearest(points.points + point * d, centroids.exact, centroids.k, d);
        if ((threadIdx.x & 31) == static_cast<unsigned>(source)) label = found;
    }
    const bool is_new = is_mine && points.labels[i] != label;
    const Word votes = __ballot_sync(kEveryLane, is_new);
    if ((threadIdx.x & 31) == 0 && votes) atomicAdd(points.changed, static_cast<Word>(__popc(votes)));
    if (!is_mine) return;
    points.labels[i] = label;
    if (points.measures) {
        points.distances[i] = distance(points.points + i * d, centroids.exact + static_cast<long long>(label) * d, d);
    }
}

// Label points with kDimensions dimensions; kPoints * kThreads points per block.
extern "C" __global__ void __launch_bounds__(256) nearest_in_registers(Points points, Centroids centroids) {
    Four* const tile = reinterpret_cast<Four*>(dynamic_shared);
    const Four* const quick = reinterpret_cast<const Four*>(centroids.quick);
    float x[kPoints][kDimensions];
    Nearest nearest[kPoints];
    const long long begin = points.first + static_cast<long long>(blockIdx.x) * kThreads * kPoints + threadIdx.x;
#pragma unroll
    for (int p = 0; p < kPoints; ++p) {
        const long long i = begin + p * kThreads;
#pragma unroll
        for (int c = 0; c < kDimensions; ++c) x[p][c] = i < points.last ? static_cast<float>(points.points[i * kDimensions + c]) : 0.0f;
    }
    for (int j_0 = 0; j_0 < centroids.k; j_0 += kCentroids) {
        const int n = centroids.k - j_0 < kCentroids ? centroids.k - j_0 : kCentroids;
        __syncthreads();
        for (int e = threadIdx.x; e < n * kStride / 4; e += kThreads) tile[e] = quick[static_cast<long long>(j_0) * (kStride / 4) + e];
        __syncthreads();
#pragma unroll 2
        for (int j = 0; j < n; ++j) {
            Four centroid[kStride / 4];
#pragma unroll
            for (int c = 0; c < kStride / 4; ++c) centroid[c] = tile[j * (kStride / 4) + c];
#pragma unroll
            for (int p = 0; p < kPoints; ++p) {
                float found = 0.0f;
#pragma unroll
                for (int c = 0; c < kDimensions; ++c) {
                    const float difference = x[p][c] - centroid[c / 4].of[c % 4];
                    found = fmaf(difference, difference, found);
                }
                nearest[p].meet(found, j_0 + j);
            }
        }
        COUNT_OPERATIONS(n * kPoints * kDimensions);
    }
#pragma unroll
    for (int p = 0; p < kPoints; ++p) {
        const long long i = begin + p * kThreads;
        double length_squared = 0.0;
#pragma unroll
        for (int c = 0; c < kDimensions; ++c) length_squared += static_cast<double>(x[p][c]) * static_cast<double>(x[p][c]);
        settle(points, centroids, i, i < points.last, nearest[p], length_squared);
    }
}

// Label points with any number of dimensions; kSide points per block.
extern "C" __global__ void __launch_bounds__(256) nearest_in_tiles(Points points, Centroids centroids) {
    float* const of_points = reinterpret_cast<float*>(dynamic_shared);
    float* const of_centroids = of_points + kDepth * kRow;
    const int d = points.d, column = threadIdx.x % 16, row = threadIdx.x / 16;
    const long long begin = points.first + static_cast<long long>(blockIdx.x) * kSide;
    Nearest nearest[4];
    for (int j_0 = 0; j_0 < centroids.k; j_0 += kSide) {
        float found[4][4] = {};
        for (int c_0 = 0; c_0 < d; c_0 += kDepth) {
            __syncthreads();
#pragma unroll
            for (int r = row; r < kSide; r += 16) {
                const long long i = begin + r, j = j_0 + r;
                const bool is_in = c_0 + column < d;
                of_points[column * kRow + r] = is_in && i < points.last ? static_cast<float>(points.points[i * d + c_0 + column]) : 0.0f;
                of_centroids[column * kRow + r] = is_in && j < centroids.k ? centroids.quick[j * centroids.stride + c_0 + column] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int c = 0; c < kDepth; ++c) {
                const Four a = *reinterpret_cast<const Four*>(of_points + c * kRow + 4 * row);
                const Four b = *reinterpret_cast<const Four*>(of_centroids + c * kRow + 4 * column);
#pragma unroll
                for (int q = 0; q < 4; ++q) {
#pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        const float difference = a.of[q] - b.of[r];
                        found[q][r] = fmaf(difference, difference, found[q][r]);
                    }
                }
            }
            COUNT_OPERATIONS(kDepth * 16);
        }
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int j = j_0 + 4 * column + r;
            if (j < centroids.k) {
#pragma unroll
                for (int q = 0; q < 4; ++q) nearest[q].meet(found[q][r], j);
            }
        }
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const long long i = begin + 4 * row + q;
        double length_squared = 0.0;
        if (i < points.last) {
            for (int c = column; c < d; c += 16) length_squared += static_cast<double>(points.points[i * d + c]) * points.points[i * d + c];
        }
        for (int step = 8; step > 0; step >>= 1) {
            Nearest other;
            other.best = __shfl_xor_sync(kEveryLane, nearest[q].best, step);
            other.second = __shfl_xor_sync(kEveryLane, nearest[q].second, step);
            other.label = __shfl_xor_sync(kEveryLane, nearest[q].label, step);
            nearest[q].join(other);
            length_squared += __shfl_xor_sync(kEveryLane, length_squared, step);
        }
        settle(points, centroids, i, column == 0 && i < points.last, nearest[q], length_squared);
    }
}

// Sums over the points of each cluster, `first:last`, in the dimensions `column:column + columns`; a block has `of_block` points. Adds to
// `sums` (k, d) and, with the first dimensions, to `counts` (k,).
extern "C" __global__ void __launch_bounds__(256)
    add_points(Points points, int k, int column, int columns, int of_block, Long* sums, Long* counts) {
    Word* const low = reinterpret_cast<Word*>(dynamic_shared);
    int* const high = reinterpret_cast<int*>(low + k * columns);
    Word* const members = reinterpret_cast<Word*>(high + k * columns);
    for (int e = threadIdx.x; e < k * columns; e += blockDim.x) low[e] = 0u, high[e] = 0;
    for (int j = threadIdx.x; j < k; j += blockDim.x) members[j] = 0u;
    __syncthreads();
    const long long begin = points.first + static_cast<long long>(blockIdx.x) * of_block;
    const int n = static_cast<int>(points.last - begin < of_block ? points.last - begin : of_block);
    for (int e = threadIdx.x; e < n * columns; e += blockDim.x) {
        const int of_point = e / columns, c = e - of_point * columns, label = points.labels[begin + of_point];
        const int value = points.points[(begin + of_point) * points.d + column + c];
        atomicAdd(low + label * columns + c, static_cast<Word>(value) & 0xffffu);
        atomicAdd(high + label * columns + c, value >> 16);
        if (c == 0 && column == 0) atomicAdd(members + label, 1u);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < k * columns; e += blockDim.x) {
        const long long value = static_cast<long long>(high[e]) * 65536 + low[e];
        const int label = e / columns, c = e - label * columns;
        if (value != 0) atomicAdd(sums + static_cast<long long>(label) * points.d + column + c, static_cast<Long>(value));
    }
    for (int j = threadIdx.x; j < k && column == 0; j += blockDim.x) {
        if (members[j]) atomicAdd(counts + j, static_cast<Long>(members[j]));
    }
}

// Same as add_points for more clusters than fit into shared memory: numbers are added individually.
extern "C" __global__ void __launch_bounds__(256) add_points_one_by_one(Points points, Long* sums, Long* counts) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x, n = (points.last - points.first) * points.d;
    for (long long e = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; e < n; e += step) {
        const long long i = points.first + e / points.d;
        const int c = static_cast<int>(e % points.d), label = points.labels[i];
        atomicAdd(sums + static_cast<long long>(label) * points.d + c, static_cast<Long>(static_cast<long long>(points.points[i * points.d + c])));
        if (c == 0) atomicAdd(counts + label, 1ull);
    }
}

// Compute the new centroids, `exact` and `quick`, from the sums (k, d) and counts of clusters, none of which is empty, and the `old`
// centroids; `moved` (k,) receives the squared movements. With `is_given`, the centroids in `exact` are unchanged and only rounded.
struct Means {
    const long long* sums;
    const long long* counts;
    const double* old;
    double* exact;
    float* quick;
    double* moved;
    int k;
    int d;
    int stride;
    int is_given;
};

// Compute the new centroids; one number per thread.
extern "C" __global__ void __launch_bounds__(256) move_centroids(Means means) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= means.k) return;
    double whole = 0.0;
    for (int c = 0; c < means.stride; ++c) {
        const long long place = static_cast<long long>(j) * means.d + c;
        double value = 0.0;
        if (c < means.d && means.is_given) value = means.exact[place];
        if (c < means.d && !means.is_given) {
            value = static_cast<double>(means.sums[place]) / static_cast<double>(means.counts[j]);
            const double difference = value - means.old[place];
            whole += difference * difference;
            means.exact[place] = value;
        }
        means.quick[static_cast<long long>(j) * means.stride + c] = static_cast<float>(value);
    }
    means.moved[j] = whole;
}

// n sparse vectors, by vector and by bin. `low`, `high`: range of allowed clusters of each vector, if any. Vectors are numbered from the
// first one on the device.
struct Vectors {
    const long long* offsets;
    const int* bins;
    const short* weights;
    const int* low;
    const int* high;
    const long long* bin_offsets;
    const int* vector_of;
    const short* weight_of;
    int has_ranges;
    int tiles;
};

// For each bin, tile by tile, the clusters with a non-zero sum, and the sums. Those of tile t begin at starts[bin * (tiles + 1) + t] and
// end at the next start.
struct Lists {
    long long* starts;
    int* clusters;
    long long* sums;
};

// Terms of the k clusters, whose values are dot * factor - square. `is_moved`: changed in the previous round; `moves`: a vector leaves or
// joins the cluster in this round; `changed`: number of such vectors. `squares` (3, k): products of the halves of sums, see LOW_BITS.
// `is_whole`: true if only the labels of the previous round are given.
struct Terms {
    double* factor;
    double* square;
    unsigned char* is_moved;
    unsigned char* moves;
    Word* changed;
    Long* squares;
    int k;
    int is_whole;
};

__device__ __forceinline__ bool is_better(double value, int label, double best, int best_label) {
    return value > best || (value == best && label < best_label);
}

// Label the vectors `first:last`, one warp per vector; see _assign_vectors of kernels/cpu/k_means.py.
extern "C" __global__ void __launch_bounds__(128)
    assign_vectors(Vectors vectors, Lists all, Lists of_moved, Terms terms, int first, int last, int* labels, double* values) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, none = terms.k;
    long long* const products = reinterpret_cast<long long*>(dynamic_shared) + warp * kTile;
    for (int j = lane; j < kTile; j += 32) products[j] = 0;
    __syncwarp();
    for (int i = first + static_cast<int>(blockIdx.x) * kWarps + warp; i < last; i += static_cast<int>(gridDim.x) * kWarps) {
        const int low = vectors.has_ranges ? vectors.low[i] : 0, high = vectors.has_ranges ? vectors.high[i] : terms.k;
        const int old = labels[i];
        const bool is_whole = terms.is_whole || old < 0 || terms.is_moved[old];
        const long long* const all_starts = is_whole ? all.starts : of_moved.starts;
        const int* const clusters = is_whole ? all.clusters : of_moved.clusters;
        const long long* const sums = is_whole ? all.sums : of_moved.sums;
        double best = is_whole ? -1e300 : values[i];
        int label = is_whole ? none : old;
        const long long begin = vectors.offsets[i], end = vectors.offsets[i + 1];
        for (int tile = low / kTile; tile * kTile < high; ++tile) {
            const int j_0 = tile * kTile, low_here = low - j_0, high_here = high - j_0 < kTile ? high - j_0 : kTile;
            for (long long element = begin + lane; element - lane < end; element += 32) {
                int weight = 0;
                long long from = 0, to = 0;
                if (element < end) {
                    const long long* const starts = all_starts + static_cast<long long>(vectors.bins[element]) * (vectors.tiles + 1) + tile;
                    weight = vectors.weights[element], from = starts[0], to = starts[1];
                }
                for (Word votes = __ballot_sync(kEveryLane, from < to); votes; votes &= votes - 1) {
                    const int source = __ffs(static_cast<int>(votes)) - 1;
                    const long long its_weight = __shfl_sync(kEveryLane, weight, source), its_end = __shfl_sync(kEveryLane, to, source);
                    for (long long at = __shfl_sync(kEveryLane, from, source) + lane; at < its_end; at += 32) {
                        products[clusters[at] - j_0] += its_weight * sums[at];
                        COUNT_OPERATIONS(1);
                    }
                    __syncwarp();
                }
            }
            for (int j = lane; j < kTile; j += 32) {
                const long long product = products[j];
                products[j] = 0;
                if (j < low_here || j >= high_here || !(is_whole || terms.is_moved[j_0 + j])) continue;
                const double value = static_cast<double>(product) * terms.factor[j_0 + j] - terms.square[j_0 + j];
                if (is_better(value, j_0 + j, best, label)) best = value, label = j_0 + j;
            }
            __syncwarp();
        }
        for (int step = 16; step > 0; step >>= 1) {
            const double other = __shfl_xor_sync(kEveryLane, best, step);
            const int of_other = __shfl_xor_sync(kEveryLane, label, step);
            if (is_better(other, of_other, best, label)) best = other, label = of_other;
        }
        if (lane == 0) {
            label = label == none ? -1 : label;
            values[i] = best;
            labels[i] = label;
            if (label != old) {
                atomicAdd(terms.changed, 1u);
                if (old >= 0) terms.moves[old] = 1;
                if (label >= 0) terms.moves[label] = 1;
            }
        }
    }
}

// Count the vectors `first:last` of each cluster.
extern "C" __global__ void __launch_bounds__(256) count_vectors(const int* labels, int first, int last, Long* counts) {
    for (int i = first + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < last; i += static_cast<int>(gridDim.x * blockDim.x)) {
        if (labels[i] >= 0) atomicAdd(counts + labels[i], 1ull);
    }
}

// Create lists of the sums of the vectors `first:last` by cluster, and their squares, one block per bin: lists of all clusters, and of
// those that a vector left or joined. The lists of a bin begin at its offset in `bin_offsets`.
extern "C" __global__ void __launch_bounds__(256)
    add_vectors(Vectors vectors, const int* labels, int first, int last, Lists all, Lists of_moved, Terms terms) {
    __shared__ Long sums[kTile];
    __shared__ Word before[kThreads / 32];
    const int bin = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long begin = vectors.bin_offsets[bin], end = vectors.bin_offsets[bin + 1];
    long long* const starts = all.starts + static_cast<long long>(bin) * (vectors.tiles + 1);
    long long* const starts_of_moved = of_moved.starts + static_cast<long long>(bin) * (vectors.tiles + 1);
    long long place = begin, place_of_moved = begin;
    for (int tile = 0; tile < vectors.tiles; ++tile) {
        const int j_0 = tile * kTile;
        for (int j = threadIdx.x; j < kTile; j += kThreads) sums[j] = 0;
        __syncthreads();
        for (long long e = begin + threadIdx.x; e < end; e += kThreads) {
            const int i = vectors.vector_of[e];
            if (i < first || i >= last) continue;
            const int j = labels[i] - j_0;
            if (labels[i] >= 0 && j >= 0 && j < kTile) atomicAdd(sums + j, static_cast<Long>(vectors.weight_of[e]));
        }
        __syncthreads();
        // A thread has neighbouring clusters, so that lists ascend. The lower half of a word counts all clusters, the upper half those that
        // moved.
        constexpr int kOwn = kTile / kThreads;
        Word own = 0;
        for (int r = 0; r < kOwn; ++r) {
            const int j = threadIdx.x * kOwn + r;
            if (sums[j]) own += 1u + (terms.moves[j_0 + j] ? 1u << 16 : 0u);
        }
        const Word up_to_lane = sum_up_to_lane(own, lane);
        if (lane == 31) before[warp] = up_to_lane;
        __syncthreads();
        Word offset = up_to_lane - own, whole = 0;
        for (int w = 0; w < kThreads / 32; ++w) {
            if (w < warp) offset += before[w];
            whole += before[w];
        }
        if (threadIdx.x == 0) starts[tile] = place, starts_of_moved[tile] = place_of_moved;
        long long at = place + (offset & 0xffffu), at_of_moved = place_of_moved + (offset >> 16);
        for (int r = 0; r < kOwn; ++r) {
            const int j = j_0 + threadIdx.x * kOwn + r;
            const Long sum = sums[j - j_0];
            if (!sum) continue;
            all.clusters[at] = j;
            all.sums[at++] = static_cast<long long>(sum);
            if (terms.moves[j]) {
                of_moved.clusters[at_of_moved] = j;
                of_moved.sums[at_of_moved++] = static_cast<long long>(sum);
            }
            const Long high = sum >> kLowBits, low = sum & ((1ull << kLowBits) - 1);
            if (high) {
                atomicAdd(terms.squares + j, high * high);
                atomicAdd(terms.squares + terms.k + j, high * low);
            }
            atomicAdd(terms.squares + 2ll * terms.k + j, low * low);
        }
        place += whole & 0xffffu;
        place_of_moved += whole >> 16;
        __syncthreads();
    }
    if (threadIdx.x == 0) starts[vectors.tiles] = place, starts_of_moved[vectors.tiles] = place_of_moved;
}

// Compute the terms of centroids from sums, one cluster per thread: see VectorSums.terms of kernels/clustering_layouts.py. No cluster is
// empty.
extern "C" __global__ void __launch_bounds__(256) make_terms(Terms terms, const long long* counts) {
    const Long* const squares = terms.squares;
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= terms.k) return;
    const double n = static_cast<double>(counts[j]);
    double whole = static_cast<double>(static_cast<long long>(squares[j])) * static_cast<double>(1ll << 2 * kLowBits);
    whole = whole + static_cast<double>(static_cast<long long>(squares[terms.k + j])) * static_cast<double>(1ll << (kLowBits + 1));
    whole = whole + static_cast<double>(static_cast<long long>(squares[2ll * terms.k + j]));
    terms.factor[j] = 2.0 / n;
    terms.square[j] = whole / n / n;
}
