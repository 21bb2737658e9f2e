// Construction of the tables of tiles.cuh, which give the heaviest matching peak by m/z for tiles of queries.

#include "tiles.cuh"

// One block per tile of queries writes its edges (2 maximum_peaks, kTile), its table (kFineBins, kTile), initially zero, its coarse bins, also
// zero, and the number of bins per thomson: the table extends to the last peak of the tile, and its last bin is empty.
extern "C" __global__ void tabulate_peaks(const Settings* settings, const Inputs* inputs, Tiles tiles) {
    const int n_queries = tiles.n_queries, maximum_peaks = tiles.maximum_peaks;
    Edge* edges = tiles.edges;
    unsigned short* table = tiles.table;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int query = blockIdx.x * kTile + lane;
    const int first_peak = query < n_queries ? inputs->offsets[query] : 0;
    const int n = query < n_queries ? inputs->offsets[query + 1] - first_peak : 0;
    const double* mz = inputs->mz + first_peak;
    const float* weight = inputs->weight + first_peak;
    const double absolute = settings->fragment_absolute, relative = settings->fragment_relative;
    double last = n > 0 ? (mz[n - 1] + absolute) / (1.0 - relative) : 0.0;
    for (int step = 16; step > 0; step >>= 1) last = max(last, __shfl_xor_sync(kEveryLane, last, step));
    const double scale = (kFineBins - 2) / (max(last, 1.0) + 2 * kClose);
    const Long close = close_of(scale);
    if (threadIdx.x == 0) tiles.bins_of_thomson[blockIdx.x] = scale;
    const auto low_end = [&](int i) { return position_of(max(0.0, (mz[i] - absolute) / (1.0 + relative)), scale); };
    const auto high_end = [&](int i) { return position_of((mz[i] + absolute) / (1.0 - relative), scale); };
    const auto first_bin = [&](const Edge& edge) { return static_cast<int>((max(edge.position, close) - close) >> 32); };
    const auto last_bin = [&](const Edge& edge) { return static_cast<int>((edge.position + close) >> 32); };

    // The lower ends and the upper ends of the peaks' reaches both ascend; of equal positions, a lower end comes first.
    edges += static_cast<long long>(blockIdx.x) * 2 * maximum_peaks * kTile + lane;
    for (int i = warp; i < n; i += n_warps) {
        const Long low = low_end(i), high = high_end(i);
        int other = -1, first = i;  // heaviest of the previous peaks whose reach includes the lower end
        for (; first > 0 && high_end(first - 1) >= low; --first) {
            if (other < 0 || weight[first - 1] >= weight[other]) other = first - 1;
        }
        int with = other >= 0 && weight[other] >= weight[i] ? other : i;
        edges[(i + first) * kTile] = Edge{low, entry_of(other, lane), entry_of(with, lane)};
        other = -1;
        int following = i + 1;  // the same for the following peaks and the upper end
        for (; following < n && low_end(following) <= high; ++following) {
            if (other < 0 || weight[following] > weight[other]) other = following;
        }
        with = other >= 0 && weight[other] > weight[i] ? other : i;
        edges[(i + following) * kTile] = Edge{high, entry_of(with, lane), entry_of(other, lane)};
    }
    __syncthreads();
    // Each edge fills the bins in which it is the first edge, and the bins up to the next edge.
    table += static_cast<long long>(blockIdx.x) * kFineBins * kTile + lane;
    Word* matches = tiles.matches + static_cast<long long>(blockIdx.x) * (kFineBins >> tiles.coarse_shift);
    const auto fill = [&](int bin, int entry) {
        table[bin * kTile] = static_cast<unsigned short>(entry);
        if (entry) atomicOr(&matches[bin >> tiles.coarse_shift], 1u << lane);
    };
    for (int e = warp; e < 2 * n; e += n_warps) {
        const Edge edge = edges[e * kTile];
        int bin = first_bin(edge);
        if (e > 0) bin = max(bin, last_bin(edges[(e - 1) * kTile]) + 1);
        for (; bin <= last_bin(edge); ++bin) {
            bool changes = false;
            for (int other = e; other < 2 * n && first_bin(edges[other * kTile]) <= bin; ++other) {
                changes = changes || edges[other * kTile].before != edges[other * kTile].after;
            }
            fill(bin, changes ? kFirstEdge + e : edge.before);
        }
        const int stop = e + 1 < 2 * n ? first_bin(edges[(e + 1) * kTile]) : 0;
        for (; bin < stop && edge.after; ++bin) fill(bin, edge.after);
    }
    __syncthreads();
    for (int e = warp; e + 1 < 2 * n; e += n_warps) {
        if (first_bin(edges[(e + 1) * kTile]) <= last_bin(edges[e * kTile])) edges[e * kTile].after |= kMore;
    }
}
