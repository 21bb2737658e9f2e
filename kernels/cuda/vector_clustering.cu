// Clustering of similar sparse vectors, compared within windows of following vectors; bit-identical to kernels/cpu/vector_clustering.py.
//
// Pairs. A block processes a tile of up to 32 consecutive vectors, one per lane, and builds a table of their elements in shared memory: a
// hash table of the bins that occur in them, and for each bin a row with the weights of all lanes. The following vectors are streamed past
// the tile, one per warp. Each lane looks up one of the vector's bins; for each bin in the table, the whole warp adds one row times one
// weight. An element thus costs one read of shared memory for 32 pairs, and nothing more if no vector of the tile has its bin. Windows
// determine the pairs of a tile. A class processes them: `wants` selects pairs before the dot product is computed, and `take` receives the
// dot product. The vectors of a tile are all vectors, or the members of groups, which are paired only within their group.
//
// Clusters. The parents of core points form trees in which each parent is smaller, so that the root is the smallest member of its cluster;
// trees are joined by compare-and-swap of a root. An outdated parent is still an ancestor, so that reads need no order; the result of the
// swap decides. Blocks share only these words, and the result does not depend on their order.
//
// Linkage. A block merges a group along nearest-neighbour chains (Murtagh 1983), using the full symmetric matrix of its similarities in
// integer units: `merge_group` follows `merge_nearest` of the CPU step by step.
#include "warp.cuh"

constexpr int kUnits = 1 << 20;  // units of a similarity of one
constexpr int kWidth = 32;       // vectors per tile
constexpr int kNone = -1;
constexpr int kMostWarps = 32;

// n sparse vectors, and the end (exclusive) of the vectors with which each is compared.
struct Vectors {
    const long long* offsets;
    const int* bins;
    const short* weights;
    const int* ends;
    int* squares;
};

// Vectors that are divided into tiles; with `members`, those of groups, group by group, with the end of its group for each. `starts` are
// the starts of the tiles; a table has `rows` rows and 2^(32 - shift) slots.
struct Tiles {
    const int* starts;
    const int* members;
    const int* limits;
    int rows;
    int shift;
};

// By vector. `neighbours`: number of similar vectors, excluding itself; null if all vectors are core points. `highest`: bits of the maximum
// similarity of a border point to a core point, initially 0; `nearest`: the smallest such core point, initially greater than all.
struct Clusters {
    int* neighbours;
    int* parents;
    Long* highest;
    int* nearest;
    double least;
    long long minimum_neighbours;
};

// Groups to merge. By group: `starts`, and the start of its matrix in the cells; `least` in units. By member: the group, the number of
// vectors that it represents, the resulting label, and workspace.
struct Groups {
    const int* starts;
    const long long* begins;
    const int* least;
    const int* of_member;
    int* counts;
    int* labels;
    int* active;
    int* places;
    int* chain;
    void* cells;
};

__device__ __forceinline__ double similarity_of(int dot, int square, int other_square) {
    return static_cast<double>(dot) / sqrt(static_cast<double>(square) * static_cast<double>(other_square));
}

// Return true if two vectors are as similar as `least`. Single precision detects clearly lower similarities.
struct Threshold {
    double least;
    float rough;

    __device__ explicit Threshold(double least) : least(least), rough(static_cast<float>(least * least * (1.0 - 1e-5))) {}

    __device__ bool is_reached(int dot, int square, int other_square) const {
        const float length = static_cast<float>(dot);
        if (length * length < rough * static_cast<float>(square) * static_cast<float>(other_square)) return false;
        return similarity_of(dot, square, other_square) >= least;
    }
};

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// The table of a tile, in dynamic shared memory.
struct Table {
    short* weights;          // weights of each row, by lane
    int* bins;               // bins by slot
    unsigned short* row_of;  // rows by slot
    int slots, shift;

    __device__ Table(int rows, int shift) : slots(1 << (32 - shift)), shift(shift) {
        weights = reinterpret_cast<short*>(dynamic_shared);
        bins = reinterpret_cast<int*>(weights + rows * kWidth);
        row_of = reinterpret_cast<unsigned short*>(bins + slots);
    }

    __device__ int first_slot(int bin) const { return static_cast<int>(static_cast<Word>(bin) * 2654435769u >> shift); }

    __device__ int row(int bin) const {
        for (int slot = first_slot(bin);; slot = (slot + 1) & (slots - 1)) {
            if (bins[slot] == bin) return row_of[slot];
            if (bins[slot] == kNone) return kNone;
        }
    }

    __device__ void insert(int bin, int* n_rows) {
        for (int slot = first_slot(bin);; slot = (slot + 1) & (slots - 1)) {
            const int before = atomicCAS(bins + slot, kNone, bin);
            if (before == kNone) row_of[slot] = static_cast<unsigned short>(atomicAdd(n_rows, 1));
            if (before == kNone || before == bin) return;
        }
    }
};

__device__ __forceinline__ int vector_at(const Tiles& tiles, int place) { return tiles.members ? tiles.members[place] : place; }

// All threads of the block fill the table with the vectors of a tile.
__device__ void fill_table(const Vectors& vectors, const Tiles& tiles, int first, int last, Table& table) {
    __shared__ int n_rows;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int slot = threadIdx.x; slot < table.slots; slot += blockDim.x) table.bins[slot] = kNone;
    if (threadIdx.x == 0) n_rows = 0;
    __syncthreads();
    for (int place = first + warp; place < last; place += warps) {
        const int i = vector_at(tiles, place);
        for (long long e = vectors.offsets[i] + lane; e < vectors.offsets[i + 1]; e += 32) table.insert(vectors.bins[e], &n_rows);
    }
    __syncthreads();
    Word* const words = reinterpret_cast<Word*>(table.weights);
    for (int word = threadIdx.x; word < n_rows * (kWidth / 2); word += blockDim.x) words[word] = 0;
    __syncthreads();
    for (int place = first + warp; place < last; place += warps) {
        const int i = vector_at(tiles, place);
        for (long long e = vectors.offsets[i] + lane; e < vectors.offsets[i + 1]; e += 32) {
            table.weights[table.row(vectors.bins[e]) * kWidth + place - first] = vectors.weights[e];
        }
    }
    __syncthreads();
}

// Return the dot product of a vector with the vector of each lane.
__device__ __forceinline__ int dot_with_tile(const Vectors& vectors, int j, const Table& table, int lane) {
    const long long end = vectors.offsets[j + 1];
    int dot = 0;
    for (long long e = vectors.offsets[j] + lane; e - lane < end; e += 32) {
        int found = kNone;  // row and weight
        if (e < end) {
            const int row = table.row(__ldg(vectors.bins + e));
            if (row != kNone) found = row << 16 | __ldg(vectors.weights + e);
        }
        for (Word hits = __ballot_sync(kEveryLane, found != kNone); hits; hits &= hits - 1) {
            const int one = __shfl_sync(kEveryLane, found, __ffs(static_cast<int>(hits)) - 1);
            dot += (one & 0xffff) * table.weights[(one >> 16) * kWidth + lane];
        }
    }
    return dot;
}

// Call `visit` for the pairs of a tile by their positions: (p, q), where p belongs to a lane and is smaller. All lanes call `take` at the
// same time.
template <class Visit>
__device__ void visit_pairs(const Vectors& vectors, const Tiles& tiles, int tile, Visit visit) {
    const int first = tiles.starts[tile], last = tiles.starts[tile + 1];
    const int farthest = vectors.ends[vector_at(tiles, last - 1)], stop = tiles.members ? tiles.limits[last - 1] : farthest;
    if (stop <= first + 1) return;
    Table table(tiles.rows, tiles.shift);
    fill_table(vectors, tiles, first, last, table);
    const int lane = threadIdx.x & 31, p = first + lane;
    int end = 0, limit = 0, square = 0;
    if (p < last) {
        const int i = vector_at(tiles, p);
        end = vectors.ends[i], limit = tiles.members ? tiles.limits[p] : end, square = vectors.squares[i];
        visit.begin(p);
    }
    for (int q = first + 1 + static_cast<int>(threadIdx.x >> 5); q < stop; q += blockDim.x >> 5) {
        const int j = vector_at(tiles, q);
        if (q >= last && j >= farthest) break;
        const int other_square = vectors.squares[j];
        const bool is_pair = q > p && q < limit && j < end;
        COUNT_OPERATIONS(is_pair);
        const bool is_wanted = is_pair && square > 0 && other_square > 0 && visit.wants(p, q);
        if (!__any_sync(kEveryLane, is_wanted)) continue;
        visit.take(is_wanted, p, q, dot_with_tile(vectors, j, table, lane), square, other_square);
    }
    if (p < last) visit.finish(p);
}

// Compute the squared length of each vector, and set each vector as its own parent.
extern "C" __global__ void sum_squares(Vectors vectors, int* parents, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int square = 0;
        for (long long e = vectors.offsets[i]; e < vectors.offsets[i + 1]; ++e) square += vectors.weights[e] * vectors.weights[e];
        vectors.squares[i] = square;
        parents[i] = i;
    }
}

__device__ __forceinline__ bool is_core(const Clusters& clusters, int i) {
    return clusters.neighbours == nullptr || clusters.neighbours[i] + 1 >= clusters.minimum_neighbours;
}

// Return the root of the tree of i as far as known, halving the path. Reads bypass the level 1 cache, which would return values from before
// the writes of other blocks.
__device__ __forceinline__ int root(int* parents, int i) {
    for (int parent = __ldcg(parents + i); parent != i; parent = __ldcg(parents + i)) {
        const int above = __ldcg(parents + parent);
        if (above != parent) parents[i] = above;
        i = above;
    }
    return i;
}

// Join the trees of two vectors. If another thread has meanwhile attached the larger root elsewhere, join its new parent instead.
__device__ void join(int* parents, int a, int b) {
    while (a != b) {
        const int greater = a < b ? b : a, smaller = a < b ? a : b;
        const int before = atomicCAS(parents + greater, greater, smaller);
        if (before == greater) return;
        a = before, b = smaller;
    }
}

class CountNeighbours {
   public:
    __device__ explicit CountNeighbours(const Clusters& clusters) : clusters_(clusters), threshold_(clusters.least) {}
    __device__ void begin(int) {}
    __device__ bool wants(int, int) const { return true; }
    __device__ void take(bool is_wanted, int, int q, int dot, int square, int other_square) {
        const bool is_similar = is_wanted && threshold_.is_reached(dot, square, other_square);
        const int lanes = __popc(__ballot_sync(kEveryLane, is_similar));
        own_ += is_similar;
        if (lanes > 0 && (threadIdx.x & 31) == 0) atomicAdd(clusters_.neighbours + q, lanes);
    }
    __device__ void finish(int p) {
        if (own_ > 0) atomicAdd(clusters_.neighbours + p, own_);
    }

   private:
    const Clusters& clusters_;
    Threshold threshold_;
    int own_ = 0;
};

class JoinNeighbours {
   public:
    __device__ explicit JoinNeighbours(const Clusters& clusters) : clusters_(clusters), threshold_(clusters.least) {}
    __device__ void begin(int p) { is_core_ = is_core(clusters_, p), root_ = root(clusters_.parents, p); }
    __device__ bool wants(int, int q) const {
        const bool is_other_core = is_core(clusters_, q);
        return is_core_ && is_other_core ? root(clusters_.parents, q) != root_ : is_core_ || is_other_core;
    }
    __device__ void take(bool is_wanted, int p, int q, int dot, int square, int other_square) {
        if (!is_wanted || !threshold_.is_reached(dot, square, other_square)) return;
        const bool is_other_core = is_core(clusters_, q);
        if (is_core_ && is_other_core) {
            join(clusters_.parents, root_, root(clusters_.parents, q));
            root_ = root(clusters_.parents, p);
        } else {
            const int border = is_core_ ? q : p;
            const Long bits = static_cast<Long>(__double_as_longlong(similarity_of(dot, square, other_square)));
            if (clusters_.highest[border] < bits) atomicMax(clusters_.highest + border, bits);
        }
    }
    __device__ void finish(int) {}

   private:
    const Clusters& clusters_;
    Threshold threshold_;
    bool is_core_ = false;
    int root_ = 0;
};

class ChooseNearest {
   public:
    __device__ explicit ChooseNearest(const Clusters& clusters) : clusters_(clusters) {}
    __device__ void begin(int p) { is_core_ = is_core(clusters_, p); }
    __device__ bool wants(int p, int q) const {
        return is_core_ != is_core(clusters_, q) && clusters_.highest[is_core_ ? q : p] > 0;
    }
    __device__ void take(bool is_wanted, int p, int q, int dot, int square, int other_square) {
        if (!is_wanted) return;
        const int core = is_core_ ? p : q, border = is_core_ ? q : p;
        const Long bits = static_cast<Long>(__double_as_longlong(similarity_of(dot, square, other_square)));
        if (bits == clusters_.highest[border]) atomicMin(clusters_.nearest + border, core);
    }
    __device__ void finish(int) {}

   private:
    const Clusters& clusters_;
    bool is_core_ = false;
};

// DBSCAN in three passes over the pairs, from a given tile on: count neighbours; build trees of core points, and find the maximum
// similarity of border points to core points; find these core points. If all vectors are core points, only the second pass is needed.
extern "C" __global__ void count_neighbours(Vectors vectors, Tiles tiles, Clusters clusters, int first) {
    visit_pairs(vectors, tiles, first + blockIdx.x, CountNeighbours(clusters));
}

extern "C" __global__ void join_neighbours(Vectors vectors, Tiles tiles, Clusters clusters, int first) {
    visit_pairs(vectors, tiles, first + blockIdx.x, JoinNeighbours(clusters));
}

extern "C" __global__ void choose_nearest(Vectors vectors, Tiles tiles, Clusters clusters, int first) {
    visit_pairs(vectors, tiles, first + blockIdx.x, ChooseNearest(clusters));
}

// Write the core point that names the cluster of each vector to `roots`.
extern "C" __global__ void name_clusters(Clusters clusters, int* roots, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const bool has_core = !is_core(clusters, i) && clusters.highest[i] > 0;
        roots[i] = root(clusters.parents, has_core ? clusters.nearest[i] : i);
    }
}

// Write similarities in units to the matrices of groups; for averages, multiplied by the counts of both members.
template <class Cell, bool kAverages>
class FillMatrix {
   public:
    __device__ explicit FillMatrix(const Groups& groups) : groups_(groups) {}
    __device__ void begin(int p) {
        const int group = groups_.of_member[p];
        start_ = groups_.starts[group], size_ = groups_.starts[group + 1] - start_;
        cells_ = static_cast<Cell*>(groups_.cells) + groups_.begins[group];
        if (kAverages) count_ = groups_.counts[p];
    }
    __device__ bool wants(int, int) const { return true; }
    __device__ void take(bool is_wanted, int p, int q, int dot, int square, int other_square) {
        if (!is_wanted) return;
        Cell units = static_cast<Cell>(static_cast<int>(similarity_of(dot, square, other_square) * kUnits + 0.5));
        if (kAverages) units *= static_cast<Cell>(count_) * groups_.counts[q];
        const long long a = p - start_, b = q - start_;
        cells_[a * size_ + b] = cells_[b * size_ + a] = units;
    }
    __device__ void finish(int) {}

   private:
    const Groups& groups_;
    Cell* cells_ = nullptr;
    int start_ = 0, size_ = 0, count_ = 1;
};

extern "C" __global__ void fill_averages(Vectors vectors, Tiles tiles, Groups groups, int first) {
    visit_pairs(vectors, tiles, first + blockIdx.x, FillMatrix<long long, true>(groups));
}

extern "C" __global__ void fill_minima(Vectors vectors, Tiles tiles, Groups groups, int first) {
    visit_pairs(vectors, tiles, first + blockIdx.x, FillMatrix<int, false>(groups));
}

// A cluster, and its similarity to another cluster.
struct Near {
    double value;
    int cluster;
};

__device__ __forceinline__ Near nearer(Near a, Near b) {
    return b.value > a.value || (b.value == a.value && b.cluster < a.cluster) ? b : a;
}

__device__ __forceinline__ Near nearest_of_warp(Near mine) {
    for (int step = 16; step > 0; step >>= 1) {
        mine = nearer(mine, Near{__shfl_xor_sync(kEveryLane, mine.value, step), __shfl_xor_sync(kEveryLane, mine.cluster, step)});
    }
    return mine;
}

// State of the group that a block merges. Clusters are identified by their smallest member, counted from the start of the group.
template <class Cell, bool kAverages>
struct Merging {
    Cell* cells;
    int *counts, *labels, *active, *places, *chain;
    long long n;

    __device__ Merging(const Groups& groups, int group) {
        const int start = groups.starts[group];
        n = groups.starts[group + 1] - start;
        cells = static_cast<Cell*>(groups.cells) + groups.begins[group];
        counts = groups.counts + start, labels = groups.labels + start, active = groups.active + start;
        places = groups.places + start, chain = groups.chain + start;
    }

    __device__ double value(long long a, int b) const {
        const double cell = static_cast<double>(cells[a * n + b]);
        return kAverages ? cell / static_cast<double>(static_cast<long long>(counts[a]) * counts[b]) : cell;
    }

    // Return the cluster nearest to a (of several the smallest) in all threads. Successive calls need different `bests`: threads may still
    // read those of the previous call.
    __device__ Near nearest_to(int a, int n_active, Near* bests) const {
        Near mine{-1.0, static_cast<int>(n)};
        for (int k = threadIdx.x; k < n_active; k += blockDim.x) {
            const int s = active[k];
            if (s != a) mine = nearer(mine, Near{value(a, s), s});
        }
        mine = nearest_of_warp(mine);
        const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
        if (lane == 0) bests[threadIdx.x >> 5] = mine;
        __syncthreads();
        return nearest_of_warp(lane < warps ? bests[lane] : Near{-1.0, static_cast<int>(n)});
    }

    // Update the similarities of a merged cluster to all others.
    __device__ void merge(int kept, int leaving, int n_active) const {
        for (int k = threadIdx.x; k < n_active; k += blockDim.x) {
            const long long s = active[k];
            if (s == kept || s == leaving) continue;
            const Cell own = cells[kept * n + s], other = cells[leaving * n + s];
            cells[kept * n + s] = cells[s * n + kept] = kAverages ? own + other : own < other ? own : other;
        }
    }

    // One thread removes a cluster from the list of remaining clusters.
    __device__ void remove(int leaving, int n_active) const {
        const int moved = active[n_active - 1], place = places[leaving];
        active[place] = moved, places[moved] = place;
        places[leaving] = kNone;
    }
};

// The chain: each cluster is the nearest of the previous one. See `merge_nearest` of the CPU.
template <class Cell, bool kAverages>
__device__ void merge_group(const Groups& groups, int group) {
    __shared__ Near bests[2][kMostWarps];
    const Merging<Cell, kAverages> state(groups, group);
    const int n = static_cast<int>(state.n), least = groups.least[group];
    for (int k = threadIdx.x; k < n; k += blockDim.x) state.active[k] = state.places[k] = state.labels[k] = k;
    __syncthreads();
    int n_active = n, length = 0, begin = 0, turn = 0, top = 0, below = 0;
    while (n_active > 0) {
        if (length == 0) {
            while (state.places[begin] == kNone) ++begin;
            top = begin, length = 1;
            if (threadIdx.x == 0) state.chain[0] = top;
        }
        const Near near = state.nearest_to(top, n_active, bests[turn]);
        turn ^= 1;
        int kept = kNone, leaving = kNone;
        if (near.value < least) {
            leaving = top, length -= 1;
        } else if (length > 1 && state.value(top, below) == near.value) {
            kept = min(top, below), leaving = max(top, below), length -= 2;
            state.merge(kept, leaving, n_active);
        } else {
            below = top, top = near.cluster;
            if (threadIdx.x == 0) state.chain[length] = top;
            length += 1;
        }
        if (leaving == kNone) continue;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (kept != kNone) state.counts[kept] += state.counts[leaving], state.labels[leaving] = kept;
            state.remove(leaving, n_active);
        }
        n_active -= 1;
        __syncthreads();
        if (length > 0) top = state.chain[length - 1];
        if (length > 1) below = state.chain[length - 2];
    }
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        int label = state.labels[k];
        while (state.labels[label] != label) label = state.labels[label];
        state.labels[k] = label;  // shortens the path for later reads
    }
}

// One block per group from `first` on.
extern "C" __global__ void merge_averages(Groups groups, int first) { merge_group<long long, true>(groups, first + blockIdx.x); }

extern "C" __global__ void merge_minima(Groups groups, int first) { merge_group<int, false>(groups, first + blockIdx.x); }
