// Search of spectra against the mass-sorted peptide dictionary, query by query: the same candidates, modified forms and scores as
// kernels/cpu/candidates.py.
//
// The spectral dot product, the pre-calculation of its cost and the search in mass windows are those of Li (BMC Bioinformatics 2014,
// 15:121); KSDP is that of Fu (Bioinformatics 2004, 20:1948), the hyperscore that of X!Tandem, XCorr that of SEQUEST in its fast form
// (Eng 2008).
//
// A block processes one query, or a part of its candidates. It enters the peaks into a bit table in shared memory, in which one read shows
// whether a theoretical ion may match. The windows of all combinations of modifications and isotope errors are joined into one run of
// candidates. Each warp takes 32 candidates per step, queues those that can carry the modifications, and gives each lane some arrangements
// of the modifications of one peptide; a lane that has finished gets further ones, so that one peptide with many arrangements keeps all
// lanes busy. Theoretical ions are computed when needed and never stored. The best candidates are held in the registers of the warp, one
// per lane, and are merged at the end of the block and over the blocks of a query. Scores of other candidates are only counted in a
// histogram.
//
// Double precision: cumulative masses and fragment m/z are doubles, and are added in the order of the CPU's kernel, so that an ion at the
// edge of its tolerance matches on both devices or on neither. Looking up ions in single precision was not faster on an H200 (2.31 against
// 2.36 billion scorings per second).

#include "arrangements.cuh"
#include "scores.cuh"
#include "windows.cuh"

constexpr int kMostWarps = 8;            // warps per block
constexpr int kBlocks = 4;               // blocks per multiprocessor: leaves 64 registers per thread
constexpr int kMostThreads = 32 * kMostWarps;
constexpr int kQueue = 64;               // queued candidates per warp
constexpr int kRefill = 16;              // minimum idle lanes before the queue is read
constexpr Word kTogether = 0xffffffffu;  // instead of a number of arrangements: one lane takes all of them

// In this order: correlation_sum, correlation_bin (both for XCorr only), histogram, words, first.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Static shared memory of a block.
struct Block {
    Settings settings;
    Inputs in;
    double residue_mass[kResidues];
    int window_low[kMostThreads], window_high[kMostThreads], window_start[kMostThreads + 1];
    int next_candidate, n_correlation_bins;
    // For each queued candidate: peptide, window, number of arrangements to try, and number already assigned.
    Word queue_peptide[kMostWarps][kQueue], queue_window[kMostWarps][kQueue];
    Word queue_total[kMostWarps][kQueue], queue_begun[kMostWarps][kQueue];
    Candidate best_of_warps[kMostWarps][32];
};

// Current work of a lane: the arrangements from `number` up to `last` of a peptide with a combination of modifications.
struct Task {
    Form form;
    Word number, last;
    Long key;
    bool is_active;
};

// Queue of a warp. The same in all lanes.
struct Queue {
    int n;
    bool is_exhausted;  // no further candidates will be queued
};

// The indexed peaks of a query; `histogram` is its cleared position in dynamic shared memory.
template <class Score>
__device__ __forceinline__ Peaks begin_item(Block& block, int query, int maximum_peaks, int*& histogram) {
    const Settings& settings = block.settings;
    const Inputs& in = block.in;
    for (int i = threadIdx.x; i < kResidues; i += blockDim.x) block.residue_mass[i] = settings.residue_mass[i];
    const bool is_correlation = Score::kNeedsCorrelation;
    const int n_bins = static_cast<int>(settings.n_bins);
    long long* correlation_sum = reinterpret_cast<long long*>(dynamic_shared);
    int* correlation_bin = reinterpret_cast<int*>(correlation_sum + (is_correlation ? maximum_peaks + 1 : 0));
    histogram = correlation_bin + (is_correlation ? maximum_peaks : 0);
    Word* words = reinterpret_cast<Word*>(histogram + n_bins);
    unsigned short* first = reinterpret_cast<unsigned short*>(words + settings.n_words);
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) histogram[b] = 0;
    const int first_peak = in.offsets[query];
    Peaks peaks{in.mz + first_peak, in.weight + first_peak, in.offsets[query + 1] - first_peak, words, first, 0, 0.0,
                settings.fragment_absolute, settings.fragment_relative, correlation_bin, correlation_sum, 0};
    fit_table(peaks, settings.bin_width, static_cast<int>(settings.n_words));
    index_peaks(peaks);
    if (is_correlation) index_correlation(peaks, in.height + first_peak, settings, &block.n_correlation_bins);
    return peaks;
}

// All threads: find the windows `tile:tile + n_tile` of a query as one run of candidates. Candidates before `skipped` belong to other
// blocks.
__device__ __forceinline__ void find_windows(Block& block, int query, int tile, int n_tile, long long skipped) {
    const int isotopes = static_cast<int>(block.settings.n_isotope_errors);
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < n_tile) {
        const int w = tile + threadIdx.x;
        const Window window =
            mass_window(block.settings, block.in.mass, block.in.query_mass[query], w % isotopes, block.in.combination_mass[w / isotopes]);
        block.window_low[threadIdx.x] = window.low;
        block.window_high[threadIdx.x] = window.high;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // Isotope errors are in descending order, so windows ascend; skip what the previous window has covered.
        int done = 0, start = 0;
        for (int w = 0; w < n_tile; ++w) {
            if (w % isotopes == 0) done = 0;
            const int low = max(block.window_low[w], done);
            done = max(done, block.window_high[w]);
            block.window_low[w] = low;
            block.window_start[w] = start;
            start += max(0, block.window_high[w] - low);
        }
        block.window_start[n_tile] = start;
        block.next_candidate = static_cast<int>(max(0ll, min(skipped, static_cast<long long>(start))));
    }
    __syncthreads();
}

// Return the number of arrangements of a combination to try on a peptide.
__device__ __forceinline__ Word arrangements_of(const Block& block, Word peptide, const unsigned char* slots) {
    if (slots[0] == kNone) return 1;
    if (!may_carry(block.in.letters[peptide], slots, block.in.residue_mask)) return 0;
    Form tried;
    if (!first_arrangement(tried, block.in, peptide, slots, static_cast<int>(block.settings.maximum_with_known))) return 0;
    return may_collide(tried) ? kTogether : count_arrangements(tried, block.settings.maximum_forms);
}

// Each lane inspects one of the next 32 candidates; those that can carry their modifications are queued, until a warp has enough.
__device__ __forceinline__ void fill_queue(Block& block, Queue& queue, int tile, int n_tile, int stop, int warp, int lane) {
    const int isotopes = static_cast<int>(block.settings.n_isotope_errors);
    while (queue.n < 32 && !queue.is_exhausted) {
        int batch = lane == 0 ? atomicAdd(&block.next_candidate, 32) : 0;
        batch = __shfl_sync(kEveryLane, batch, 0);
        if (batch >= stop) {
            queue.is_exhausted = true;
            break;
        }
        const int candidate = batch + lane;
        Word peptide = 0, arrangements = 0;
        int w = 0;
        if (candidate < stop) {
            w = window_of(block.window_start, n_tile, candidate);
            peptide = block.window_low[w] + candidate - block.window_start[w];
            w += tile;
            arrangements = arrangements_of(block, peptide, block.in.combination_slots + w / isotopes * kMostSlots);
        }
        const Word all = __ballot_sync(kEveryLane, arrangements > 0);
        if (arrangements > 0) {
            const int at = queue.n + __popc(all & ((1u << lane) - 1));
            block.queue_peptide[warp][at] = peptide;
            block.queue_window[warp][at] = w;
            block.queue_total[warp][at] = arrangements;
            block.queue_begun[warp][at] = 0;
        }
        queue.n += __popc(all);
        __syncwarp();
    }
}

// Idle lanes take one arrangement each from the end of the queue, or all arrangements of a peptide if these must be enumerated.
__device__ __forceinline__ void hand_out(Block& block, Queue& queue, Task& task, Word idle, int warp, int lane) {
    const int isotopes = static_cast<int>(block.settings.n_isotope_errors);
    // Lane j inspects the j-th candidate from the end of the queue; `shares` is the cumulative number of arrangements up to it.
    const int own = queue.n - 1 - lane;
    Word shares = 0;
    if (own >= 0) {
        const Word total = block.queue_total[warp][own];
        shares = total == kTogether ? 1 : total - block.queue_begun[warp][own];  // one arrangement per lane
    }
    shares = sum_up_to_lane(shares, lane);
    const Word nearer = __shfl_up_sync(kEveryLane, shares, 1), shares_before = lane > 0 ? nearer : 0;
    // The idle lane with rank `rank` takes the arrangement with this number, from the first candidate that contains it.
    const Word rank = __popc(idle & ((1u << lane) - 1)), n_idle = __popc(idle);
    int giver = 0;
    for (int step = 16; step > 0; step >>= 1) {
        if (__shfl_sync(kEveryLane, shares, giver + step - 1) <= rank) giver += step;
    }
    const Word first_share = __shfl_sync(kEveryLane, shares_before, giver);
    const bool has_share = rank < __shfl_sync(kEveryLane, shares, 31);
    if (!task.is_active && has_share) {
        const int at = queue.n - 1 - giver;
        const Word peptide = block.queue_peptide[warp][at], w = block.queue_window[warp][at], total = block.queue_total[warp][at];
        task.key = static_cast<Long>(w) << kPeptideBits | peptide;
        first_arrangement(task.form, block.in, peptide, block.in.combination_slots + w / isotopes * kMostSlots,
                          static_cast<int>(block.settings.maximum_with_known));
        task.is_active = true;
        task.number = 0;
        task.last = static_cast<Word>(block.settings.maximum_forms);
        if (total != kTogether) {
            task.number = block.queue_begun[warp][at] + rank - first_share;
            task.last = task.number + 1;
            task.form.sites = sites_of_rank(task.form, task.number);
        }
    }
    __syncwarp();
    // Candidates whose arrangements are all assigned leave the queue; the next candidate may be partly assigned.
    if (own >= 0 && shares_before < n_idle && n_idle < shares) block.queue_begun[warp][own] += n_idle - shares_before;
    queue.n -= __popc(__ballot_sync(kEveryLane, own >= 0 && shares <= n_idle));
    __syncwarp();
}

// Score the next free arrangement of a lane's task and return it as a candidate.
template <class Score>
__device__ __forceinline__ Candidate try_arrangement(const Block& block, Task& task, const Peaks& peaks, int charges,
                                                     double inverse_histogram, int* histogram) {
    const Settings& settings = block.settings;
    Candidate fresh = nobody();
    bool more = true;
    while (more && !is_free(task.form.sites, task.form.n_slots)) more = next_arrangement(task.form);
    if (more) {
        const Matched matched = score_form<Score>(task.form, settings, block.in, peaks, block.residue_mass, charges);
        const long long bin = static_cast<long long>(matched.score * inverse_histogram);
        atomicAdd(&histogram[max(0ll, min(bin, settings.n_bins - 1))], 1);
        if (matched.count >= settings.minimum_matched_ions) {
            fresh = Candidate{static_cast<float>(matched.score), task.number, task.key, task.form.sites};
        }
        ++task.number;
        more = task.number < task.last && next_arrangement(task.form);
    }
    task.is_active = more;
    return fresh;
}

// All threads: write the best candidates of the block's warps as the result of the item.
__device__ __forceinline__ void give_away(Block& block, const Candidate& kept, const int* histogram, int query, int warp, int lane) {
    const int n_bins = static_cast<int>(block.settings.n_bins), n_best = static_cast<int>(block.settings.n_best);
    const int n_warps = blockDim.x >> 5;
    block.best_of_warps[warp][lane] = kept;
    __syncthreads();
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
        if (histogram[b]) atomicAdd(&block.in.histogram[static_cast<long long>(query) * n_bins + b], histogram[b]);
    }
    if (warp > 0) return;
    Candidate joined = kept;
    for (int other = 1; other < n_warps; ++other) {
        for (int j = 0; j < n_best && block.best_of_warps[other][j].key != kNobody; ++j) {
            insert(joined, block.best_of_warps[other][j], lane);
        }
    }
    if (lane < n_best) block.in.best_of_items[static_cast<long long>(blockIdx.x) * n_best + lane] = joined;
}

// A block scores the candidates from part * candidates_of_item on of one query. A spectrum has at most `maximum_peaks` peaks.
template <class Score>
__device__ __forceinline__ void search(const Settings* settings_in_memory, const Inputs* inputs_in_memory, int maximum_peaks) {
    __shared__ Block block;
    const Settings& settings = block.settings;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    copy_together(block.settings, settings_in_memory);
    copy_together(block.in, inputs_in_memory);
    __syncthreads();
    const int query = block.in.item_query[blockIdx.x];
    int* histogram;
    const Peaks peaks = begin_item<Score>(block, query, maximum_peaks, histogram);
    const int charges = max(1, min(static_cast<int>(settings.maximum_fragment_charge), block.in.query_charge[query] - 1));
    const double inverse_histogram = 1.0 / settings.histogram_width;
    const int isotopes = static_cast<int>(settings.n_isotope_errors), n_best = static_cast<int>(settings.n_best);
    const int n_windows = peaks.n > 0 ? static_cast<int>(settings.n_combinations) * isotopes : 0;
    const int windows_of_tile = static_cast<int>(blockDim.x) / isotopes * isotopes;
    const long long begin = block.in.item_part[blockIdx.x] * settings.candidates_of_item, end = begin + settings.candidates_of_item;
    long long before_tile = 0;  // candidates in the tiles of windows before this one

    Candidate kept = nobody(), worst = nobody();
    for (int tile = 0; tile < n_windows && before_tile < end; tile += windows_of_tile) {
        const int n_tile = min(windows_of_tile, n_windows - tile);
        find_windows(block, query, tile, n_tile, begin - before_tile);
        const int stop = static_cast<int>(min(end - before_tile, static_cast<long long>(block.window_start[n_tile])));
        Queue queue{0, false};
        Task task;
        task.is_active = false;
        while (true) {
            const Word idle = __ballot_sync(kEveryLane, !task.is_active);
            if (idle == kEveryLane || __popc(idle) >= kRefill) {
                fill_queue(block, queue, tile, n_tile, stop, warp, lane);
                hand_out(block, queue, task, idle, warp, lane);
                if (!__any_sync(kEveryLane, task.is_active)) {
                    if (queue.n == 0 && queue.is_exhausted) break;
                    continue;
                }
            }
            Candidate fresh = nobody();
            if (task.is_active) fresh = try_arrangement<Score>(block, task, peaks, charges, inverse_histogram, histogram);
            Word good = __ballot_sync(kEveryLane, fresh.key != kNobody && comes_before(fresh, worst));
            while (good) {
                const int source = __ffs(static_cast<int>(good)) - 1;
                insert(kept, candidate_of_lane(fresh, source), lane);
                good &= good - 1;
                if (!good) worst = candidate_of_lane(kept, n_best - 1);
            }
        }
        before_tile += block.window_start[n_tile];
    }
    give_away(block, kept, histogram, query, warp, lane);
}

// Scores: the properties of a spectrum that each needs, and its computation from a match. Each has a separate kernel, so that none uses the
// registers of another; kernels/score_kinds.py lists them.
struct SpectralDotProduct {
    static constexpr bool kNeedsRoots = false, kNeedsCorrelation = false;
    static __device__ __forceinline__ double of(const Match& match, const Inputs&) { return match.dot; }
};

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_dot_product(const Settings* settings, const Inputs* inputs, int maximum_peaks) {
    search<SpectralDotProduct>(settings, inputs, maximum_peaks);
}

struct KernelDotProduct {
    static constexpr bool kNeedsRoots = true, kNeedsCorrelation = false;
    static __device__ __forceinline__ double of(const Match& match, const Inputs&) { return match.kernel_sum; }
};

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_kernel_dot_product(const Settings* settings, const Inputs* inputs, int maximum_peaks) {
    search<KernelDotProduct>(settings, inputs, maximum_peaks);
}

struct Hyperscore {
    static constexpr bool kNeedsRoots = false, kNeedsCorrelation = false;
    static __device__ __forceinline__ double of(const Match& match, const Inputs& in) {
        if (!(match.dot > 0)) return 0.0;
        return in.factorial_log[match.count_n] + in.factorial_log[match.count_c] + logarithm(1.0 + 100.0 * match.dot);
    }
};

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_hyperscore(const Settings* settings, const Inputs* inputs, int maximum_peaks) {
    search<Hyperscore>(settings, inputs, maximum_peaks);
}

struct CrossCorrelation {
    static constexpr bool kNeedsRoots = false, kNeedsCorrelation = true;
    static __device__ __forceinline__ double of(const Match& match, const Inputs&) {
        return static_cast<double>(match.correlation) * kXCorrOfSum;
    }
};

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_cross_correlation(const Settings* settings, const Inputs* inputs, int maximum_peaks) {
    search<CrossCorrelation>(settings, inputs, maximum_peaks);
}
