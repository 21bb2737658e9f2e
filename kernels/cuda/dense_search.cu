// Search of spectra against the mass-sorted peptide dictionary if mass windows are dense: queries with adjacent masses share most of their
// candidates. Candidates, modified forms and scores are those of kernels/cpu/candidates.py.
//
// A tile consists of kTile such queries, one per lane; a block streams the peptides in the union of their windows past the tile. A warp
// processes one peptide with one combination of modifications after the other. The theoretical ions are computed once, distributed over the
// lanes; one word in shared memory says for which queries an ion may match. Only these matches are looked up.
//
// Arrangements of the same modifications share most of their ions: the mass of an ion depends only on the numbers of modifications of each
// kind on it (the *state*), not on their sites. Therefore each state is matched once, over the ions that can have it, and the sums up to
// each site are stored. An arrangement passes from state to state at its sites; its sum is that of the last state up to the end, plus the
// difference of two stored sums per site. Sums are integers and thus exact in any order: see `packed`.
//
// The look-up is exact, by the tables of tile_tables.cu. If an ion is within kClose of an edge, rounding decides whether it matches; the
// arrangements are then matched again for this query with sums of doubles, as on the CPU.

#include "arrangements.cuh"
#include "elementary.cuh"
#include "tile_ions.cuh"
#include "windows.cuh"

enum Score { kSpectralDotProduct, kHyperscore };  // scores with a kernel in this file

constexpr int kDenseWarps = 24;          // maximum number of warps of a block, of which a multiprocessor runs one
constexpr int kMostDenseBest = 8;
constexpr int kMostDenseWindows = 96;
constexpr int kTaken = 8;                // candidates that a warp takes at once
constexpr float kDoubt = 1e-5f;          // uncertainty of a score in single precision, several rounding errors
constexpr int kMostStates = 32;
constexpr int kMostSums = 96;            // states x sites; if there are more, arrangements are matched one by one
constexpr int kFactorials = 1 << kCountBits;

// During the search: memory of the warps; weights of peaks (index 0 has weight zero), histogram and ends of the windows, each with one column
// per query; and the coarse bins. After the search: the hits of the warps.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Current work of a warp: a peptide with a combination of modifications, and the values that its arrangements share. In shared memory
// because they are the same for all lanes.
struct Family {
    Form form;
    Word peptide, window;
    int n_ions, n_states, n_sites;
    bool one_by_one;
    Long ways;          // number of arrangements
    Long sites_of_any;  // residues that any modification may occupy
    Long strides;       // one byte per slot: increment of the state index by its modification
    double total;       // mass of the peptide
};

// Static shared memory of a block.
template <int kScore>
struct Block {
    Settings settings;
    Inputs in;
    int window_low[kMostDenseWindows], window_start[kMostDenseWindows + 1];
    int next_handful;
    double inverse_histogram, inverse_units;
    float inverse_width;
    float rough_factorial_log[kScore == kHyperscore ? kFactorials : 1];
    double factorial_log[kScore == kHyperscore ? kFactorials : 1], bins_of_charge[kMostFragmentCharge];
};

// Shared memory of a warp: the peptide with its modifications, cumulative masses up to each residue, and table bins of ions.
struct WarpMemory {
    Family family;
    double prefix[kLongest];
    __align__(16) Word bins[2][kLongest];
    __align__(16) Word places[2][kLongest];
};
static_assert(sizeof(WarpMemory) == 1696, "kernels/cuda/scoring.py allocates it");

__device__ WarpMemory& memory_of_warp() { return reinterpret_cast<WarpMemory*>(dynamic_shared)[threadIdx.x >> 5]; }

// The query of a lane, and its best candidates so far.
struct Query {
    int number, charges;
    bool is_there;
    float bar, worst;  // minimum score to be stored, for all warps and for this warp
    Candidate kept[kMostDenseBest];
};

// For lane s: the mass of state s, and the ions that can be in it: from the first site at which it can be reached to the last site at which
// it must be left.
struct State {
    double mass;
    int begin, end;
};

// For each modification of an arrangement, write the index of the stored sum to add (of the state that ends at its site) plus 256 times the
// index of the sum to subtract (of the state that begins there). Returns the number of modifications, equal for all arrangements.
__device__ int write_steps(unsigned short* steps, const Family& family, Long sites) {
    const Form& form = family.form;
    int n = 0;
#pragma unroll 1
    for (int t = 0; t < form.n_slots; ++t) {
        if (form.possible[t] == 0) continue;
        const int site = max(1, static_cast<int>(sites >> (8 * t) & 255u));
        int state = 0;
#pragma unroll 1
        for (int u = 0; u < form.n_slots; ++u) {
            const bool is_before = form.possible[u] && static_cast<int>(sites >> (8 * u) & 255u) < site;
            state += is_before ? static_cast<int>(family.strides >> (8 * u) & 255u) : 0;
        }
        const int ends = state * family.n_sites + __popcll(family.sites_of_any & ((1ull << (site - 1)) - 1));
        const int begins = ends + static_cast<int>(family.strides >> (8 * t) & 255u) * family.n_sites;
        steps[n++] = static_cast<unsigned short>(ends | begins << 8);
    }
    return n;
}

// Insert a candidate into the best candidates of a query, which one lane stores.
__device__ void keep(Candidate* kept, int n_best, const Candidate& fresh) {
    int place = n_best;
#pragma unroll 1
    for (; place > 0 && comes_before(fresh, kept[place - 1]); --place) {
        if (place < n_best) kept[place] = kept[place - 1];
    }
    if (place < n_best) kept[place] = fresh;
}

// All threads: find the windows of the tile's queries for each combination, and the union of the windows of all queries.
template <int kScore>
__device__ __forceinline__ void find_windows(Block<kScore>& block, int query, int n_peaks, int* lows, int* highs) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int isotopes = static_cast<int>(block.settings.n_isotope_errors);
    const int n_combinations = static_cast<int>(block.settings.n_combinations), n_windows = n_combinations * isotopes;
    for (int c = warp; c < n_combinations; c += n_warps) {
        // Isotope errors are in descending order, so windows ascend; skip what the previous window has covered.
        int done = 0;
        for (int isotope = 0; isotope < isotopes; ++isotope) {
            Window window{0, 0};
            if (n_peaks > 0) {
                window = mass_window(block.settings, block.in.mass, block.in.query_mass[query], isotope, block.in.combination_mass[c]);
            }
            window.low = max(window.low, done);
            done = max(done, window.high);
            const int w = c * isotopes + isotope;
            const bool is_empty = window.low >= window.high;
            lows[w * kTile + lane] = window.low;
            highs[w * kTile + lane] = window.high;
            int low = is_empty ? 0x7fffffff : window.low, high = is_empty ? 0 : window.high;
            for (int step = 16; step > 0; step >>= 1) {
                low = min(low, __shfl_xor_sync(kEveryLane, low, step));
                high = max(high, __shfl_xor_sync(kEveryLane, high, step));
            }
            if (lane == 0) {
                block.window_low[w] = low;
                block.window_start[w] = max(0, high - min(low, high));  // temporarily its size
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int start = 0;
        for (int w = 0; w < n_windows; ++w) {
            const int size = block.window_start[w];
            block.window_start[w] = start;
            start += size;
        }
        block.window_start[n_windows] = start;
        block.next_handful = block.in.item_part[blockIdx.x];
    }
    __syncthreads();
}

// All threads: load constants, the spectra of the tile, and logarithms of factorials into shared memory.
template <int kScore>
__device__ __forceinline__ void lay_out(Block<kScore>& block, const Tiles& tiles, long long tile, int first_peak, int n_peaks, Long* weights,
                                        int* histogram, Word* matches) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int n_bins = static_cast<int>(block.settings.n_bins);
    const float* weight = block.in.weight + first_peak;
    if (threadIdx.x == 0) {
        block.inverse_histogram = 1.0 / block.settings.histogram_width;
        block.inverse_width = static_cast<float>(block.inverse_histogram);
        block.inverse_units = 1.0 / tiles.units;
    }
    if (threadIdx.x < kMostFragmentCharge) block.bins_of_charge[threadIdx.x] = tiles.bins_of_thomson[tile] / (threadIdx.x + 1);
    if (kScore == kHyperscore) {
        for (int n = threadIdx.x; n < kFactorials; n += blockDim.x) {
            block.factorial_log[n] = block.in.factorial_log[n];
            block.rough_factorial_log[n] = static_cast<float>(block.factorial_log[n]);
        }
    }
    for (int b = warp; b < n_bins; b += n_warps) histogram[b * kTile + lane] = 0;
    const int n_coarse = kFineBins >> tiles.coarse_shift;
    for (int b = threadIdx.x; b < n_coarse; b += blockDim.x) matches[b] = tiles.matches[tile * n_coarse + b];
    for (int k = warp; k <= tiles.maximum_peaks; k += n_warps) {
        weights[k * kTile + lane] = k > 0 && k <= n_peaks ? packed(weight[k - 1], tiles.units) : 0;
    }
}

// Result of `begin_family`: true if the peptide can carry the combination, and the mass of the modifications that all its ions from the
// N-terminus have.
struct Begun {
    bool is_possible;
    double always;
};

// The warp prepares a peptide of `length` residues with the combination of window `w`.
template <int kScore>
__device__ __forceinline__ Begun begin_family(const Block<kScore>& block, Family& family, double* prefix, Word peptide, int w, Word position,
                                              int length) {
    const int lane = threadIdx.x & 31, isotopes = static_cast<int>(block.settings.n_isotope_errors);
    const Settings& settings = block.settings;
    const Form& form = family.form;
    // The peptide, one or two residues in each lane.
    const unsigned char* residues = block.in.residues + position;
    const int letter = lane < length ? residues[lane] - 65 : -1, letter_beyond = lane + 32 < length ? residues[lane + 32] - 65 : -1;
    const auto residues_in = [&](Word mask) {
        const Word here = __ballot_sync(kEveryLane, letter >= 0 && (mask >> letter & 1u));
        return here | static_cast<Long>(__ballot_sync(kEveryLane, letter_beyond >= 0 && (mask >> letter_beyond & 1u))) << 32;
    };
    __syncwarp();  // all lanes have finished the previous form
    const unsigned char* slots = block.in.combination_slots + w / isotopes * kMostSlots;
    const int most = static_cast<int>(settings.maximum_with_known);
    if (!first_arrangement(family.form, block.in, peptide, slots, most, residues_in, lane == 0)) return Begun{false, 0.0};
    const double up_to = settings.n_term_mass + sum_up_to_lane(letter >= 0 ? settings.residue_mass[letter] : 0.0, lane);
    double up_to_beyond = __shfl_sync(kEveryLane, up_to, 31);
    if (length > 32) up_to_beyond += sum_up_to_lane(letter_beyond >= 0 ? settings.residue_mass[letter_beyond] : 0.0, lane);
    prefix[lane] = up_to;
    prefix[lane + 32] = up_to_beyond;
    __syncwarp();

    // Number of arrangements, number of states, and the increment of a state's number by a modification of each slot.
    double total = settings.c_term_mass + __shfl_sync(kEveryLane, up_to_beyond, 31);
    double always = 0.0;  // mass of modifications that all ions from the N-terminus have
    Long ways = 1, sites_of_any = 0, strides = 0;
    int n_states = 1, stride = 1;
#pragma unroll 1
    for (int t = 0; t < form.n_slots; ++t) {
        const double mass = block.in.modification_mass[form.modification[t]];
        total += mass;
        if (form.possible[t] == 0) {
            if (site_of(form, t) <= 1) always += mass;
            continue;
        }
        if (t == 0 || form.modification[t - 1] != form.modification[t]) {
            const int n = slots_alike(form, t);
            ways *= choices(__popcll(form.possible[t]), n);
            sites_of_any |= form.possible[t];
            stride = n_states;
            n_states *= n + 1;
        }
        strides |= static_cast<Long>(stride & 255) << (8 * t);
    }
    if (lane == 0) {
        const int n_sites = __popcll(sites_of_any);
        family.peptide = peptide;
        family.window = w;
        family.n_ions = length - 1;
        family.n_states = n_states;
        family.n_sites = n_sites;
        family.one_by_one = ways == 1 || n_states > kMostStates || n_states * n_sites > kMostSums;
        family.ways = ways;
        family.sites_of_any = sites_of_any;
        family.strides = strides;
        family.total = total;
    }
    __syncwarp();
    return Begun{true, always};
}

// Return the state whose index is the number of this lane.
__device__ __forceinline__ State state_of_lane(const Family& family, const double* modification_mass, double always, int lane) {
    const Form& form = family.form;
    State own{always, 0, family.n_ions};
    int state = lane;
#pragma unroll 1
    for (int t = 0; t < form.n_slots && !family.one_by_one; ++t) {
        if (form.possible[t] == 0 || (t > 0 && form.modification[t - 1] == form.modification[t])) continue;
        const int n = slots_alike(form, t), here = state % (n + 1), last = __popcll(form.possible[t]) - n + here;
        state /= n + 1;
        own.mass += here * modification_mass[form.modification[t]];
        Long sites = form.possible[t];
#pragma unroll 1
        for (int k = 1; sites; ++k, sites &= sites - 1) {
            const int residue = __ffsll(static_cast<long long>(sites)) - 1;
            if (k == here) own.begin = max(own.begin, residue);
            if (k == last + 1) own.end = min(own.end, residue);
        }
    }
    return own;
}

// The warp matches the ions of all states, or of the single arrangement `sites`. Sums up to each site are written to `sums`; the sum of the
// last state up to the end is returned.
template <int kScore>
__device__ __forceinline__ Long match_states(const Block<kScore>& block, const Family& family, const Column& column, const double* prefix,
                                             const State& own, Long sites, int charges, Long* sums, bool& is_close) {
    const int lane = threadIdx.x & 31;
    const Form& form = family.form;
    Long to_the_end = 0;
    is_close = false;
#pragma unroll 1
    for (int s = 0; s < (family.one_by_one ? 1 : family.n_states); ++s) {
        int from = 0, to = family.n_ions;
        double mass = 0.0, mass_beyond = 0.0;
        if (family.one_by_one) {
#pragma unroll 1
            for (int t = 0; t < form.n_slots; ++t) {
                const int site = static_cast<int>(sites >> (8 * t) & 255u);
                const double more = block.in.modification_mass[form.modification[t]];
                if (site <= lane + 1) mass += more;
                if (site <= lane + 33) mass_beyond += more;
            }
        } else {
            from = __shfl_sync(kEveryLane, own.begin, s);
            to = __shfl_sync(kEveryLane, own.end, s);
            mass = mass_beyond = __shfl_sync(kEveryLane, own.mass, s);
            if (from > to) continue;
        }
        // Sums from the site where the state begins on; at that site it is 0.
        const int first_site = __popcll(family.sites_of_any & ((1ull << from) - 1));
        Long* next = sums + s * family.n_sites + first_site;
#pragma unroll 1
        for (int k = first_site; k < family.n_sites && !family.one_by_one; ++k) sums[s * family.n_sites + k] = 0;
        next += family.sites_of_any >> from & 1u;
        Long* const end = sums + (s + 1) * family.n_sites;
        to_the_end = match_ions(block.settings, column, prefix[min(from + lane, kLongest - 1)] + mass,
                                prefix[min(from + lane + 32, kLongest - 1)] + mass_beyond, family.total, to - from,
                                family.one_by_one ? 0 : family.sites_of_any >> from >> 1, next, charges, is_close);
#pragma unroll 1
        for (; !family.one_by_one && next + 1 < end; ++next) next[1] += next[0];
    }
    return to_the_end;
}

// Count the candidate with this sum in the histogram of the lane's query, and store it if its score is high enough.
template <int kScore>
__device__ __forceinline__ void count_score(const Block<kScore>& block, const Family& family, Query& query, Long sum, Word form_number,
                                            Long sites, int* bars, int* histogram) {
    const int lane = threadIdx.x & 31;
    const int n_bins = static_cast<int>(block.settings.n_bins), n_best = static_cast<int>(block.settings.n_best);
    const int count_n = static_cast<int>(sum >> kDotBits & 255u);
    const int count_c = static_cast<int>(sum >> (kDotBits + kCountBits));
    const double dot = static_cast<double>(static_cast<long long>(sum & ((1ull << kDotBits) - 1))) * block.inverse_units;
    // Use single precision first: it suffices for most candidates, which are only counted and not near the border of a histogram bin.
    float score = static_cast<float>(dot), place = 0.0f, doubt = 0.0f;
    if (kScore == kHyperscore && dot > 0) {
        score = block.rough_factorial_log[count_n] + block.rough_factorial_log[count_c] + logf(1.0f + 100.0f * score);
        doubt = kDoubt * (1.0f + score);
        place = score * block.inverse_width;
    }
    int bin = static_cast<int>(place);
    const float in_bin = place - static_cast<float>(bin), threshold = fmaxf(query.bar, query.worst);
    const bool is_candidate = score + doubt >= threshold && count_n + count_c >= block.settings.minimum_matched_ions;
    if (kScore != kHyperscore || is_candidate || min(in_bin, 1.0f - in_bin) <= doubt * block.inverse_width) {
        double exact = dot;
        if (kScore == kHyperscore && dot > 0) {
            exact = block.factorial_log[count_n] + block.factorial_log[count_c] + logarithm(1.0 + 100.0 * dot);
        }
        bin = static_cast<int>(min(exact * block.inverse_histogram, n_bins - 1.0));
        score = static_cast<float>(exact);
        if (is_candidate && score >= threshold) {
            const Long key = static_cast<Long>(family.window) << kPeptideBits | family.peptide;
            keep(query.kept, n_best, Candidate{score, form_number, key, sites});
            query.worst = query.kept[n_best - 1].score;
            if (query.worst > query.bar) atomicMax(&bars[query.number], __float_as_int(query.worst));  // scores are not negative
        }
    }
    atomicAdd(&histogram[min(bin, n_bins - 1) * kTile + lane], 1);
}

// The warp scores all arrangements of a family, 32 per step, for the queries whose windows contain the peptide.
template <int kScore>
__device__ __forceinline__ void try_arrangements(const Block<kScore>& block, const Family& family, const Column& column,
                                                 const double* prefix, double always, bool in_window, const Tiles& tiles, Query& query,
                                                 int* histogram) {
    const int lane = threadIdx.x & 31;
    const Form& form = family.form;
    const State own = state_of_lane(family, block.in.modification_mass, always, lane);
    // The sums of 32 arrangements reuse the memory of the ions, which are all matched by then.
    unsigned short (*steps)[kMostSlots] = reinterpret_cast<unsigned short (*)[kMostSlots]>(column.bins);
    Long sums[kMostSums], to_the_end = 0;
    bool is_close = false;
    Word n_tried = 0;
#pragma unroll 1
    for (Long begun = 0; begun < family.ways && n_tried < block.settings.maximum_forms; begun += 32) {
        // One arrangement per lane.
        Long own_sites = 0;
        bool is_there = begun + lane < family.ways, has_steps = false;
        int n_steps = 0;
        if (is_there) {
            own_sites = sites_of_rank(form, static_cast<Word>(begun) + lane);
            is_there = is_free(own_sites, form.n_slots);
        }
#pragma unroll 1
        for (Word tried = __ballot_sync(kEveryLane, is_there); tried && n_tried < block.settings.maximum_forms; tried &= tried - 1) {
            const int arrangement = __ffs(static_cast<int>(tried)) - 1;
            const Long sites = __shfl_sync(kEveryLane, own_sites, arrangement);
            const Word form_number = n_tried++;
            if (family.one_by_one || form_number == 0) {
                to_the_end = match_states(block, family, column, prefix, own, sites, in_window ? query.charges : 0, sums, is_close);
            }
            if (!family.one_by_one && !has_steps) {
                has_steps = true;
                __syncwarp();
                n_steps = write_steps(steps[lane], family, own_sites);
                __syncwarp();
            }
            Long sum = to_the_end;
            if (!in_window) continue;
#pragma unroll 1
            for (int k = 0; k < n_steps; ++k) {
                const Word step = steps[arrangement][k];
                sum += sums[step & 255u] - sums[step >> 8];
            }
            if (is_close) sum = match_exactly(block.settings, block.in, form, sites, query.number, query.charges, tiles.units);
            count_score(block, family, query, sum, form_number, sites, tiles.bars, histogram);
        }
    }
}

// All threads: merge the best candidates of each query. Half of the warps write their best candidates to shared memory, one per query and
// step, and the other half merge them, until one warp has all.
template <int kScore>
__device__ __forceinline__ void give_away(const Block<kScore>& block, Query& query, const int* first_item, const int* histogram) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int n_bins = static_cast<int>(block.settings.n_bins), n_best = static_cast<int>(block.settings.n_best);
    __syncthreads();
    if (query.is_there) {
        for (int b = warp; b < n_bins; b += n_warps) {
            const int n = histogram[b * kTile + lane];
            if (n) atomicAdd(&block.in.histogram[static_cast<long long>(query.number) * n_bins + b], n);
        }
    }
    Candidate* laid_down = reinterpret_cast<Candidate*>(dynamic_shared);
    for (int left = n_warps; left > 1; left = (left + 1) / 2) {
        const int half = (left + 1) / 2;
        for (int j = 0; j < n_best; ++j) {
            __syncthreads();
            if (warp >= half && warp < left) laid_down[(warp - half) * kTile + lane] = query.kept[j];
            __syncthreads();
            if (warp + half < left) keep(query.kept, n_best, laid_down[warp * kTile + lane]);
        }
    }
    if (warp > 0 || !query.is_there) return;
    const long long row = first_item[query.number] + static_cast<long long>(block.in.item_part[blockIdx.x]);
    for (int j = 0; j < n_best; ++j) block.in.best_of_items[row * n_best + j] = query.kept[j];
}

// A warp takes batches of kTaken candidates until none is left. Each of the `n_parts` blocks that share a tile takes every n_parts-th
// batch, since combinations of many modifications cost far more than others. Such combinations come first, so that no warp is still busy
// with one at the end.
template <int kScore>
__device__ __forceinline__ void search_candidates(Block<kScore>& block, const Tiles& tiles, const Column& column, const int* lows,
                                                  const int* highs, int first_query, Query& query, int* histogram) {
    const int lane = threadIdx.x & 31;
    const Inputs& in = block.in;
    const int isotopes = static_cast<int>(block.settings.n_isotope_errors);
    const int n_windows = static_cast<int>(block.settings.n_combinations) * isotopes;
    const int n_parts = tiles.first_item[first_query + 1] - tiles.first_item[first_query];
    const int stop = block.window_start[n_windows], n_handfuls = (stop + kTaken - 1) / kTaken;
    const volatile int* bar_in_memory = tiles.bars + (query.is_there ? query.number : first_query);
    Family& family = memory_of_warp().family;
    double* prefix = memory_of_warp().prefix;
    while (true) {
        int handful = lane == 0 ? atomicAdd(&block.next_handful, n_parts) : 0;
        handful = __shfl_sync(kEveryLane, handful, 0);
        if (handful >= n_handfuls) break;
        query.bar = fmaxf(query.worst, __int_as_float(*bar_in_memory));
        const int candidate = (n_handfuls - 1 - handful) * kTaken + lane;
        Word own_peptide = 0, own_position = 0;
        int own_window = 0, own_length = 0;
        bool is_possible = false;
        if (lane < kTaken && candidate < stop) {
            own_window = window_of(block.window_start, n_windows, candidate);
            own_peptide = block.window_low[own_window] + candidate - block.window_start[own_window];
            is_possible =
                may_carry(in.letters[own_peptide], in.combination_slots + own_window / isotopes * kMostSlots, in.residue_mask);
            own_position = in.position[own_peptide];
            own_length = in.length[own_peptide];
        }
        for (Word possible = __ballot_sync(kEveryLane, is_possible); possible; possible &= possible - 1) {
            const int source = __ffs(static_cast<int>(possible)) - 1;
            const Word peptide = __shfl_sync(kEveryLane, own_peptide, source);
            const int w = __shfl_sync(kEveryLane, own_window, source);
            const int low = lows[w * kTile + lane], high = highs[w * kTile + lane];
            const bool in_window = static_cast<int>(peptide) >= low && static_cast<int>(peptide) < high;
            if (!__any_sync(kEveryLane, in_window)) continue;
            const int length = __shfl_sync(kEveryLane, own_length, source);
            const Word position = __shfl_sync(kEveryLane, own_position, source);
            const Begun begun = begin_family(block, family, prefix, peptide, w, position, length);
            if (!begun.is_possible) continue;
            try_arrangements(block, family, column, prefix, begun.always, in_window, tiles, query, histogram);
        }
    }
}

// A block scores its share of the candidates in the union of the windows of a tile, and writes the best candidates of each query as an item
// of this query. `tiles.bars` (queries,), initially zero, contains the bits of a score per query: the highest of the lowest scores stored
// by the warps. Candidates with lower scores cannot be among the best.
template <int kScore>
__device__ __forceinline__ void search_tile(const Settings* settings_in_memory, const Inputs* inputs_in_memory, const Tiles& tiles) {
    __shared__ Block<kScore> block;
    const Settings& settings = block.settings;
    const Inputs& in = block.in;
    const int lane = threadIdx.x & 31;
    copy_together(block.settings, settings_in_memory);
    copy_together(block.in, inputs_in_memory);
    __syncthreads();
    Long* weights = reinterpret_cast<Long*>(dynamic_shared + (blockDim.x >> 5) * sizeof(WarpMemory));
    int* histogram = reinterpret_cast<int*>(weights + (tiles.maximum_peaks + 1) * kTile);
    const int n_windows = static_cast<int>(settings.n_combinations) * static_cast<int>(settings.n_isotope_errors);
    int* lows = histogram + static_cast<int>(settings.n_bins) * kTile;

    const int first_query = in.item_query[blockIdx.x];
    const long long tile = first_query / kTile;
    Query query;
    query.number = first_query + lane;
    query.is_there = query.number < tiles.n_queries;
    const int first_peak = query.is_there ? in.offsets[query.number] : 0;
    const int n_peaks = query.is_there ? in.offsets[query.number + 1] - first_peak : 0;
    int* highs = lows + n_windows * kTile;
    Word* matches = reinterpret_cast<Word*>(highs + n_windows * kTile);
    lay_out(block, tiles, tile, first_peak, n_peaks, weights, histogram, matches);
    find_windows(block, query.number, n_peaks, lows, highs);

    query.charges = query.is_there ? max(1, min(static_cast<int>(settings.maximum_fragment_charge), in.query_charge[query.number] - 1)) : 0;
    int maximum_charges = query.charges;
    for (int step = 16; step > 0; step >>= 1) maximum_charges = max(maximum_charges, __shfl_xor_sync(kEveryLane, maximum_charges, step));
    const Column column{reinterpret_cast<const char*>(tiles.table + tile * kFineBins * kTile + lane),
                        tiles.edges + tile * 2 * tiles.maximum_peaks * kTile + lane,
                        weights,
                        matches,
                        tiles.coarse_shift,
                        maximum_charges,
                        block.bins_of_charge,
                        close_of(tiles.bins_of_thomson[tile]),
                        memory_of_warp().bins,
                        memory_of_warp().places};
    for (int j = 0; j < static_cast<int>(settings.n_best); ++j) query.kept[j] = nobody();
    query.worst = query.kept[0].score;
    search_candidates(block, tiles, column, lows, highs, first_query, query, histogram);
    give_away(block, query, tiles.first_item, histogram);
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, 1)
search_tile_by_dot_product(const Settings* settings, const Inputs* inputs, Tiles tiles) {
    search_tile<kSpectralDotProduct>(settings, inputs, tiles);
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, 1)
search_tile_by_hyperscore(const Settings* settings, const Inputs* inputs, Tiles tiles) {
    search_tile<kHyperscore>(settings, inputs, tiles);
}
