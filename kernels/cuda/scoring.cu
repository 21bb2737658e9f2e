// Search of spectra against the mass-sorted peptide dictionary: the same candidates, modified forms and scores as kernels/cpu/scoring.py.
//
// The spectral dot product, the pre-calculation of its cost and the search in mass windows are those of Li (BMC Bioinformatics 2014,
// 15:121); KSDP is that of Fu (Bioinformatics 2004, 20:1948), the hyperscore that of X!Tandem, XCorr that of SEQUEST in its fast form
// (Eng 2008).
//
// The kernel for sparse mass windows (that for dense ones is further down): a block takes one query, or a part of its candidates. It puts
// the peaks into a bit table in shared memory, in which a theoretical ion is found or missed in one look. The windows of all combinations
// of modifications and isotope errors are joined into one run of candidates. Each warp takes 32 of them at a time, queues those that can
// carry the modifications, and gives each lane a few arrangements of the modifications of one peptide; a lane that is done gets the next,
// so that one peptide with many arrangements keeps all lanes busy. Theoretical ions are computed on the fly and never stored. The best
// candidates are held in the registers of the warp, one in each lane; they are merged at the end of the block and over the blocks of a
// query. Scores of other candidates leave the device only as a histogram.
//
// Double precision: prefix sums and fragment m/z are doubles, and are added in the order of the processor's kernel, so that an ion at the
// very edge of its tolerance matches on both or on neither. Compile with --fmad=false: a fused multiply-add rounds differently. Looking
// ions up in single precision was no faster on an H200 (2.31 against 2.36 thousand million scorings a second).

using Word = unsigned int;
using Long = unsigned long long;

constexpr int kMostSlots = 8;            // variable modifications of one peptide
constexpr int kMostWarps = 8;            // of a block that searches
constexpr int kBlocks = 4;               // of them on a multiprocessor: leaves 64 registers for a thread
constexpr int kMostThreads = 32 * kMostWarps;
constexpr int kQueue = 64;               // candidates that wait for a lane, for each warp
constexpr int kShare = 1;                // arrangements that a lane takes at once
constexpr int kRefill = 16;              // idle lanes that are worth a look into the queue
constexpr int kLongest = 64;             // residues of a peptide, and one
constexpr int kGroup = 4;                // residues whose masses are loaded together
constexpr int kCorrelationHalfWindow = 75;
constexpr int kMostSeries = 3;           // from each end
constexpr int kMostIsotopeErrors = 16;
constexpr int kLetters = 26;
constexpr Word kEveryLane = 0xffffffffu;
constexpr Word kAnyResidue = 0xffffffffu;
constexpr Word kTogether = 0xffffffffu;  // instead of a number of arrangements: one lane takes all
constexpr unsigned char kNone = 255;
constexpr Long kNobody = ~0ull;
constexpr int kPeptideBits = 40;         // of a key; the window's number stands above
constexpr double kProtonMass = 1.007276466621;
constexpr unsigned char kProteinNTerm = 1, kProteinCTerm = 2;  // flags of a peptide, see kernels/cpu/digestion.py

enum Score { kSpectralDotProduct, kKernelDotProduct, kHyperscore, kCrossCorrelation };

// The scalars of a search. kernels/cuda/scoring.py writes it; every member has 8 bytes, so that there is no padding.
struct Settings {
    double precursor_absolute, precursor_relative, isotope_spacing;
    double fragment_absolute, fragment_relative, bin_width;
    double correlation_bin_width, correlation_bin_offset;
    double ksdp_power, histogram_width, n_term_mass, c_term_mass;
    double residue_mass[kLetters];
    double n_term_series[kMostSeries], c_term_series[kMostSeries];
    double isotope_minimum_mass[kMostIsotopeErrors];
    long long isotope_error[kMostIsotopeErrors];
    long long n_isotope_errors, n_n_term_series, n_c_term_series, max_fragment_charge;
    long long n_words, n_correlation_bins, ksdp_window, min_matched_ions;
    long long first_peptide, n_peptides;  // the part of the dictionary that is on the device
    long long n_combinations, max_forms, n_kept, n_slots, n_bins, candidates_of_item;
};

// A candidate that may be kept. Equal scores go to the lower key, then to the lower form: the order in which the processor meets them.
struct Candidate {
    float score;
    Word form;     // number of the arrangement of modifications among those tried
    Long key;      // (combination * isotope errors + isotope error) << kPeptideBits | peptide
    Long sites;    // one byte for each slot of the combination: 0 N-terminus, 1..length, length + 1 C-terminus
};

__device__ bool comes_before(const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.key != b.key) return a.key < b.key;
    return a.form < b.form;
}

__device__ Candidate nobody() { return Candidate{__int_as_float(0xff800000), 0, kNobody, 0}; }

__device__ Candidate candidate_of_lane(const Candidate& mine, int lane) {
    return Candidate{__shfl_sync(kEveryLane, mine.score, lane), __shfl_sync(kEveryLane, mine.form, lane),
                     __shfl_sync(kEveryLane, mine.key, lane), __shfl_sync(kEveryLane, mine.sites, lane)};
}

// The list of the best is spread over a warp: lane j holds the j-th best. All lanes insert the same candidate.
__device__ void insert(Candidate& kept, const Candidate& fresh, int lane) {
    const int place = __popc(__ballot_sync(kEveryLane, comes_before(kept, fresh)));
    const Candidate above{__shfl_up_sync(kEveryLane, kept.score, 1), __shfl_up_sync(kEveryLane, kept.form, 1),
                          __shfl_up_sync(kEveryLane, kept.key, 1), __shfl_up_sync(kEveryLane, kept.sites, 1)};
    if (lane == place) kept = fresh;
    if (lane > place) kept = above;
}

// First peptide whose mass is not below `target` (or, with `beyond`, is above it).
__device__ int mass_bound(const double* mass, int n, double target, bool beyond) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) >> 1;
        const double here = mass[middle];
        if (here < target || (beyond && here == target)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct Window {
    int low, high;
};

// Range of the dictionary that has the query's mass with a combination of modifications and an isotope error; empty where that error
// needs a heavier query.
__device__ Window mass_window(const Settings& settings, const double* mass, double query_mass, int isotope, double combination_mass) {
    if (query_mass < settings.isotope_minimum_mass[isotope]) return Window{0, 0};
    const double observed = query_mass - settings.isotope_error[isotope] * settings.isotope_spacing;
    const double tolerance = settings.precursor_absolute + settings.precursor_relative * observed;
    const int n = static_cast<int>(settings.n_peptides);
    const int low = mass_bound(mass, n, observed - tolerance - combination_mass, false);
    const int high = mass_bound(mass, n, observed + tolerance - combination_mass, true);
    return Window{low, high < low ? low : high};
}

// One warp for each query counts the peptides in its windows: the cost of the query.
extern "C" __global__ void count_candidates(const Settings* settings, const double* mass, const double* combination_mass,
                                            const double* query_mass, int n_queries, long long* out) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (query >= n_queries) return;
    const int isotopes = static_cast<int>(settings->n_isotope_errors);
    const int n_windows = static_cast<int>(settings->n_combinations) * isotopes;
    long long total = 0;
    for (int w = lane; w < n_windows; w += 32) {
        const Window window = mass_window(*settings, mass, query_mass[query], w % isotopes, combination_mass[w / isotopes]);
        total += window.high - window.low;
    }
    for (int step = 16; step > 0; step >>= 1) total += __shfl_down_sync(kEveryLane, total, step);
    if (lane == 0) out[query] = total;
}

// Where the arrays of a search lie. kernels/cuda/scoring.py writes it.
struct Inputs {
    // The dictionary, in order of mass.
    const double* mass;
    const unsigned int* position;
    const unsigned char* length;
    const unsigned char* flags;
    const unsigned int* letters;
    const unsigned char* residues;
    // Variable modifications. Place: 0 anywhere, 1 peptide N-terminus, 2 peptide C-terminus, 3 protein N-terminus, 4 protein C-terminus.
    const double* modification_mass;
    const unsigned int* residue_mask;
    const int* place;
    const double* combination_mass;
    const unsigned char* combination_slots;  // (combinations, kMostSlots): which modification each slot holds, ascending, then kNone
    const double* factorial_log;
    // Peaks of each query; `height` is XCorr's and only read for it.
    const int* offsets;
    const double* mz;
    const float* weight;
    const float* height;
    const double* query_mass;
    const int* query_charge;
    // Items of work: a query and which part of its candidates.
    const int* item_query;
    const int* item_part;
    Candidate* kept_of_items;  // (items, n_kept)
    int* histogram;            // (queries, n_bins), zero at the start
};

// The peaks of one spectrum, as a block sees them.
struct Peaks {
    const double* mz;               // ascending
    const float* weight;
    int n;
    Word* words;                    // bit table
    unsigned short* first;          // for each word the first peak that may match in it
    int n_words;
    double inverse_bin, absolute, relative;
    int* correlation_bin;           // XCorr: bins that hold a peak, ascending, and sums of their heights up to each
    double* correlation_sum;
    int n_correlation;
};

// The bit table reaches to the last peak of this spectrum; its bins are widened where they would not fit, which only costs looks at peaks.
__device__ void fit_table(Peaks& peaks, double bin_width, int most_words) {
    double last = 0.0;
    if (peaks.n > 0) last = peaks.mz[peaks.n - 1] + peaks.absolute + peaks.relative * peaks.mz[peaks.n - 1] * 1.0001;
    if (last > bin_width * (most_words * 32 - 1)) bin_width = last / (most_words * 32 - 1);
    peaks.inverse_bin = 1.0 / bin_width;
    peaks.n_words = min(most_words, (static_cast<int>(last * peaks.inverse_bin) >> 5) + 1);
}

// All threads of the block set a bit for each bin that a peak's tolerance touches. Tolerances end in the order of the peaks, so the first
// peak of a word is the one whose predecessor ends before it, and each word is written by one thread.
__device__ void index_peaks(Peaks& peaks) {
    for (int w = threadIdx.x; w < peaks.n_words; w += blockDim.x) peaks.words[w] = 0;
    __syncthreads();
    const int last_bin = peaks.n_words * 32 - 1;
    for (int i = threadIdx.x; i < peaks.n; i += blockDim.x) {
        const double mz = peaks.mz[i], half = peaks.absolute + peaks.relative * mz * 1.0001;
        const int begin = max(0, static_cast<int>((mz - half) * peaks.inverse_bin));
        const int end = min(last_bin, static_cast<int>((mz + half) * peaks.inverse_bin));
        for (int b = begin; b <= end; ++b) atomicOr(&peaks.words[b >> 5], 1u << (b & 31));
        int word = begin >> 5;
        if (i > 0) {
            const double before = peaks.mz[i - 1];
            const double before_half = peaks.absolute + peaks.relative * before * 1.0001;
            word = max(word, (static_cast<int>((before + before_half) * peaks.inverse_bin) >> 5) + 1);
        }
        for (; word <= end >> 5; ++word) peaks.first[word] = static_cast<unsigned short>(i);
    }
    __syncthreads();
}

// One thread joins peaks that share a bin of XCorr (the bin has the height of its highest peak) and sums the heights.
__device__ void index_correlation(Peaks& peaks, const float* height, const Settings& settings, int* n_bins) {
    if (threadIdx.x == 0) {
        int n = 0;
        double sum = 0.0, previous = 0.0;
        for (int i = 0; i < peaks.n; ++i) {
            const int bin =
                static_cast<int>(peaks.mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset);
            if (bin >= settings.n_correlation_bins) break;
            if (n > 0 && peaks.correlation_bin[n - 1] == bin) {
                if (height[i] > previous) {
                    sum += height[i] - previous;
                    previous = height[i];
                }
            } else {
                peaks.correlation_bin[n++] = bin;
                sum += height[i];
                previous = height[i];
            }
            peaks.correlation_sum[n] = sum;
        }
        peaks.correlation_sum[0] = 0.0;
        *n_bins = n;
    }
    __syncthreads();
    peaks.n_correlation = *n_bins;
}

// How many of the bins that hold a peak come before `bin`.
__device__ int bins_before(const Peaks& peaks, int bin) {
    int low = 0, high = peaks.n_correlation;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (peaks.correlation_bin[middle] < bin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// SEQUEST's spectrum at a bin, less the mean of the 150 bins around it (Eng 2008, equation 6), from sums instead of a vector of bins.
__device__ double correlation_at(const Peaks& peaks, double target, const Settings& settings) {
    const int bin =
        static_cast<int>(target * (1.0 / settings.correlation_bin_width) + (1.0 - settings.correlation_bin_offset));
    if (bin >= settings.n_correlation_bins) return 0.0;
    const int low = bins_before(peaks, bin - kCorrelationHalfWindow), high = bins_before(peaks, bin + kCorrelationHalfWindow + 1);
    const int at = bins_before(peaks, bin);
    const bool has_peak = at < peaks.n_correlation && peaks.correlation_bin[at] == bin;
    const double own = has_peak ? peaks.correlation_sum[at + 1] - peaks.correlation_sum[at] : 0.0;
    return own - (peaks.correlation_sum[high] - peaks.correlation_sum[low] - own) / (2 * kCorrelationHalfWindow);
}

// 1 where the bit table has a peak near `target`, else 0.
__device__ Word may_match(const Peaks& peaks, double target) {
    const int bin = static_cast<int>(target * peaks.inverse_bin), word = bin >> 5;
    const bool inside = static_cast<Word>(word) < static_cast<Word>(peaks.n_words);  // a negative one is far beyond
    return inside ? peaks.words[word] >> (bin & 31) & 1u : 0u;
}

// The heaviest peak within the tolerance of a `target` that may match, or -1.
__device__ int find_peak(const Peaks& peaks, double target) {
    const int word = static_cast<int>(target * peaks.inverse_bin) >> 5;
    const double half = peaks.absolute + peaks.relative * target;
    int best = -1;
    float heaviest = 0.0f;
    for (int k = peaks.first[word]; k < peaks.n; ++k) {
        const double difference = peaks.mz[k] - target;
        if (difference > half) break;
        if (difference >= -half && (best < 0 || peaks.weight[k] > heaviest)) {
            best = k;
            heaviest = peaks.weight[k];
        }
    }
    return best;
}

// A peptide with one combination of modifications, and the arrangement of them that is tried now.
struct Form {
    Long possible[kMostSlots];              // residues on which each slot may sit: bit i for residue i
    unsigned char modification[kMostSlots];
    Long sites;                             // as in Candidate
    Word position;
    int length, n_slots;
};

__device__ int site_of(const Form& form, int slot) { return static_cast<int>(form.sites >> (8 * slot) & 255u); }

__device__ void set_site(Form& form, int slot, int site) {
    form.sites = (form.sites & ~(255ull << (8 * slot))) | static_cast<Long>(site) << (8 * slot);
}

__device__ Long residues_after(Long possible, int residue) { return residue >= 63 ? 0ull : possible >> (residue + 1) << (residue + 1); }

// Put each slot on its first site. False when the peptide has too few sites for the combination.
__device__ bool first_arrangement(Form& form, const Inputs& in, Word peptide, const unsigned char* slots) {
    form.position = in.position[peptide];
    form.length = in.length[peptide];
    form.n_slots = 0;
    form.sites = 0;
    const unsigned char* residues = in.residues + form.position;
    for (int t = 0; t < kMostSlots && slots[t] != kNone; ++t) {
        const int m = slots[t];
        form.modification[t] = slots[t];
        form.n_slots = t + 1;
        if (t > 0 && slots[t - 1] == m) {
            // Within one modification the chosen sites ascend.
            form.possible[t] = form.possible[t - 1];
            const Long after = residues_after(form.possible[t], site_of(form, t - 1) - 1);
            if (form.possible[t] == 0 || after == 0) return false;
            set_site(form, t, __ffsll(static_cast<long long>(after)));
            continue;
        }
        const Word mask = in.residue_mask[m];
        const int place = in.place[m];
        form.possible[t] = 0;
        if (place == 0) {
            for (int i = 0; i < form.length; ++i) {
                if (mask >> (residues[i] - 65) & 1u) form.possible[t] |= 1ull << i;
            }
            if (form.possible[t] == 0) return false;
            set_site(form, t, __ffsll(static_cast<long long>(form.possible[t])));
            continue;
        }
        const unsigned char flags = in.flags[peptide];
        const bool at_n_term = place == 1 || (place == 3 && (flags & kProteinNTerm));
        const bool at_c_term = place == 2 || (place == 4 && (flags & kProteinCTerm));
        if (!at_n_term && !at_c_term) return false;
        const int end = at_n_term ? 0 : form.length - 1;
        if (!(mask >> (residues[end] - 65) & 1u)) return false;
        // `possible` stays empty: the one site never changes.
        set_site(form, t, mask != kAnyResidue ? end + 1 : at_n_term ? 0 : form.length + 1);
    }
    return true;
}

// Advance to the next arrangement. False after the last.
__device__ bool next_arrangement(Form& form) {
    int following = 0;  // slots of the same modification behind slot t: each needs a site
    for (int t = form.n_slots - 1; t >= 0; --t) {
        following = t + 1 < form.n_slots && form.modification[t + 1] == form.modification[t] ? following + 1 : 0;
        Long after = form.possible[t] == 0 ? 0 : residues_after(form.possible[t], site_of(form, t) - 1);
        if (__popcll(after) <= following) continue;
        set_site(form, t, __ffsll(static_cast<long long>(after)));
        for (int u = t + 1; u < form.n_slots; ++u) {
            if (form.possible[u] == 0) continue;
            const bool same = form.modification[u] == form.modification[u - 1];
            after = same ? residues_after(form.possible[u], site_of(form, u - 1) - 1) : form.possible[u];
            set_site(form, u, __ffsll(static_cast<long long>(after)));
        }
        return true;
    }
    return false;
}

__device__ Long choices(int n, int k) {
    if (k > n) return 0;
    Long product = 1;
    for (int i = 1; i <= k; ++i) product = product * (n - k + i) / i;
    return product;
}

// Slots t and following that hold the modification of slot t.
__device__ int slots_alike(const Form& form, int t) {
    int n = 1;
    while (t + n < form.n_slots && form.modification[t + n] == form.modification[t]) ++n;
    return n;
}

// Whether two different modifications can come to sit on one site.
__device__ bool may_collide(const Form& form) {
    for (int t = 1; t < form.n_slots; ++t) {
        for (int u = 0; u < t; ++u) {
            if (form.modification[u] == form.modification[t]) continue;
            const Long a = form.possible[t], b = form.possible[u];
            const int site_a = site_of(form, t), site_b = site_of(form, u);
            if (a && b ? (a & b) != 0
                       : a ? site_b > 0 && site_b <= form.length && (a >> (site_b - 1) & 1u)
                           : b ? site_a > 0 && site_a <= form.length && (b >> (site_a - 1) & 1u) : site_a == site_b) {
                return true;
            }
        }
    }
    return false;
}

// How many arrangements are tried. Where modifications may collide, which ones are free is only known by going through them.
__device__ Word count_arrangements(const Form& form, Long most) {
    Long n = 1;
    for (int t = 0; t < form.n_slots; t += slots_alike(form, t)) {
        if (form.possible[t]) n *= choices(__popcll(form.possible[t]), slots_alike(form, t));
        if (n > most) return static_cast<Word>(most);
    }
    return static_cast<Word>(n);
}

// Go from the first arrangement to that of number `rank`, in the order of next_arrangement: the last modification changes fastest, and the
// sites of one modification go through their combinations in lexicographic order.
__device__ void skip_arrangements(Form& form, Long rank) {
    for (int end = form.n_slots; end > 0 && rank > 0;) {
        int t = end - 1;
        while (t > 0 && form.modification[t - 1] == form.modification[t]) --t;
        if (form.possible[t]) {
            const int n_sites = __popcll(form.possible[t]), n = end - t;
            const Long all = choices(n_sites, n);
            Long left = rank % all;
            rank /= all;
            Long sites = form.possible[t];
            for (int slot = t, index = 0; slot < end; ++index) {
                const int residue = __ffsll(static_cast<long long>(sites)) - 1;
                sites &= sites - 1;
                const Long with = choices(n_sites - 1 - index, end - 1 - slot);
                if (left < with) {
                    set_site(form, slot++, residue + 1);
                } else {
                    left -= with;
                }
            }
        }
        end = t;
    }
}

// Whether no two modifications sit on one site.
__device__ bool is_free(const Form& form) {
    for (int t = 1; t < form.n_slots; ++t) {
        for (int u = 0; u < t; ++u) {
            if (site_of(form, t) == site_of(form, u)) return false;
        }
    }
    return true;
}

struct Matched {
    double score;
    int count;  // of ions
};

// Windows of consecutive ions of one series, raised to a power, so that runs count more than single ions (Fu 2004, equation 6).
__device__ double kernel_dot_product(const double* root, int n, int window, double power) {
    const int before = (window - 1) / 2, after = window - 1 - before;
    double total = 0.0;
    for (int j = 0; j < n; ++j) {
        double inside = 0.0;
        for (int k = max(0, j - before); k < min(n, j + after + 1); ++k) inside += root[k];
        if (inside > 0) total += pow(inside, power);
    }
    return total;
}

// Score one peptidoform against the peaks. Sums from the N-terminus stay in the thread's local memory, which lanes read side by side.
// Ions are first looked up in the bit table, without a branch, so that the look-ups of several are under way together; the few that may
// match are then compared with the peaks.
template <int kScore>
__device__ Matched score_form(const Form& form, const Settings& settings, const Inputs& in, const Peaks& peaks, const double* residue_mass,
                              int charges) {
    double prefix[kLongest];
    double total = settings.n_term_mass, c_term = settings.c_term_mass;
    Long modified = 0;
    for (int t = 0; t < form.n_slots; ++t) {
        const int site = site_of(form, t);
        if (site == 0) {
            total += in.modification_mass[form.modification[t]];
        } else if (site == form.length + 1) {
            c_term += in.modification_mass[form.modification[t]];
        } else {
            modified |= 1ull << (site - 1);
        }
    }
    const unsigned char* residues = in.residues + form.position;
    for (int begin = 0; begin < form.length; begin += kGroup) {
        double mass[kGroup];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) mass[j] = begin + j < form.length ? residue_mass[residues[begin + j] - 65] : 0.0;
        if (modified >> begin & ((1u << kGroup) - 1)) {
            for (int t = 0; t < form.n_slots; ++t) {
                const int site = site_of(form, t);
                if (site > form.length) continue;
#pragma unroll
                for (int j = 0; j < kGroup; ++j) mass[j] += site == begin + j + 1 ? in.modification_mass[form.modification[t]] : 0.0;
            }
        }
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
            total += mass[j];  // past the end, nothing
            prefix[begin + j] = total;
        }
    }
    total += c_term;
    const int n_ions = form.length - 1;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    double root[kScore == kKernelDotProduct ? kLongest : 1];
    double dot = 0.0, correlation = 0.0, kernel_sum = 0.0;
    int count_n = 0, count_c = 0;
    for (int series = 0; series < n_n + n_c; ++series) {
        const bool is_n = series < n_n;
        const double single = is_n ? settings.n_term_series[series] : total + settings.c_term_series[series - n_n];
        int count = 0;
        for (int z = 1; z <= charges; ++z) {
            const double start = single / z + (z - 1) * kProtonMass / z;
            const double sign = (is_n ? 1.0 : -1.0) / z;
            if (kScore == kCrossCorrelation) {
                for (int i = 0; i < n_ions; ++i) correlation += correlation_at(peaks, start + sign * prefix[i], settings);
            }
            if (kScore == kKernelDotProduct) {
                for (int i = 0; i < n_ions; ++i) root[i] = 0.0;
            }
            for (int begin = 0; begin < n_ions; begin += 32) {
                const int end = min(n_ions, begin + 32);
                Word found = 0;
#pragma unroll 4
                for (int i = begin; i < end; ++i) found |= may_match(peaks, start + sign * prefix[i]) << (i - begin);
                for (; found; found &= found - 1) {
                    const int i = begin + __ffs(static_cast<int>(found)) - 1;
                    const int peak = find_peak(peaks, start + sign * prefix[i]);
                    if (peak < 0) continue;
                    dot += peaks.weight[peak];
                    ++count;
                    if (kScore == kKernelDotProduct) {
                        root[is_n ? i : n_ions - 1 - i] = pow(static_cast<double>(peaks.weight[peak]), 1.0 / settings.ksdp_power);
                    }
                }
            }
            if (kScore == kKernelDotProduct) {
                kernel_sum += kernel_dot_product(root, n_ions, static_cast<int>(settings.ksdp_window), settings.ksdp_power);
            }
        }
        if (is_n) {
            count_n += count;
        } else {
            count_c += count;
        }
    }
    double score = dot;
    if (kScore == kHyperscore) {
        score = dot > 0 ? in.factorial_log[count_n] + in.factorial_log[count_c] + log(1.0 + 100.0 * dot) : 0.0;
    } else if (kScore == kKernelDotProduct) {
        score = kernel_sum;
    } else if (kScore == kCrossCorrelation) {
        score = correlation * 0.005;
    }
    return Matched{score, count_n + count_c};
}

// Whether a peptide has every letter that the slots of a combination need: most that cannot carry it are known by this alone.
__device__ bool may_carry(Word letters, const unsigned char* slots, const unsigned int* residue_mask) {
    for (int t = 0; t < kMostSlots && slots[t] != kNone; ++t) {
        if (!(letters & residue_mask[slots[t]])) return false;
    }
    return true;
}

// In this order: correlation_sum, correlation_bin (both for XCorr alone), histogram, words, first.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// A block scores candidates part * candidates_of_item and following of one query. At most `most_peaks` peaks are in a spectrum.
template <int kScore>
__device__ void search(const Settings* settings_in_memory, const Inputs* inputs_in_memory, int most_peaks) {
    __shared__ Settings settings;
    __shared__ Inputs in;
    __shared__ double residue_mass[kLetters];
    __shared__ int window_low[kMostThreads], window_high[kMostThreads], window_start[kMostThreads + 1];
    __shared__ int next_candidate, n_correlation_bins;
    // Of a queued candidate: peptide, window, how many arrangements are to be tried and how many of them have been given out.
    __shared__ Word queue_peptide[kMostWarps][kQueue], queue_window[kMostWarps][kQueue];
    __shared__ Word queue_total[kMostWarps][kQueue], queue_begun[kMostWarps][kQueue];
    __shared__ Candidate kept_of_warps[kMostWarps][32];

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const Word lanes_before = (1u << lane) - 1;
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Settings) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&settings)[i] = reinterpret_cast<const Long*>(settings_in_memory)[i];
    }
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Inputs) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&in)[i] = reinterpret_cast<const Long*>(inputs_in_memory)[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kLetters; i += blockDim.x) residue_mass[i] = settings.residue_mass[i];
    const bool is_correlation = kScore == kCrossCorrelation;
    const int n_bins = static_cast<int>(settings.n_bins), n_kept = static_cast<int>(settings.n_kept);
    double* correlation_sum = reinterpret_cast<double*>(dynamic_shared);
    int* correlation_bin = reinterpret_cast<int*>(correlation_sum + (is_correlation ? most_peaks + 1 : 0));
    int* histogram = correlation_bin + (is_correlation ? most_peaks : 0);
    Word* words = reinterpret_cast<Word*>(histogram + n_bins);
    unsigned short* first = reinterpret_cast<unsigned short*>(words + settings.n_words);
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) histogram[b] = 0;

    const int item = blockIdx.x, query = in.item_query[item], first_peak = in.offsets[query];
    Peaks peaks{in.mz + first_peak, in.weight + first_peak, in.offsets[query + 1] - first_peak, words, first, 0, 0.0,
                settings.fragment_absolute, settings.fragment_relative, correlation_bin, correlation_sum, 0};
    fit_table(peaks, settings.bin_width, static_cast<int>(settings.n_words));
    index_peaks(peaks);
    if (is_correlation) index_correlation(peaks, in.height + first_peak, settings, &n_correlation_bins);
    const int charges = max(1, min(static_cast<int>(settings.max_fragment_charge), in.query_charge[query] - 1));
    const double inverse_histogram = 1.0 / settings.histogram_width;
    const int isotopes = static_cast<int>(settings.n_isotope_errors);
    const int n_windows = peaks.n > 0 ? static_cast<int>(settings.n_combinations) * isotopes : 0;
    const int windows_of_tile = static_cast<int>(blockDim.x) / isotopes * isotopes;
    const long long begin = in.item_part[item] * settings.candidates_of_item, end = begin + settings.candidates_of_item;
    long long before_tile = 0;  // candidates of the tiles of windows before this one

    Candidate kept = nobody(), worst = nobody();
    for (int tile = 0; tile < n_windows && before_tile < end; tile += windows_of_tile) {
        const int n_tile = min(windows_of_tile, n_windows - tile);
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < n_tile) {
            const int w = tile + threadIdx.x;
            const Window window = mass_window(settings, in.mass, in.query_mass[query], w % isotopes, in.combination_mass[w / isotopes]);
            window_low[threadIdx.x] = window.low;
            window_high[threadIdx.x] = window.high;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            // Isotope errors come largest first, so windows ascend; where they overlap, a peptide is scored once.
            int done = 0, start = 0;
            for (int w = 0; w < n_tile; ++w) {
                if (w % isotopes == 0) done = 0;
                const int low = max(window_low[w], done);
                done = max(done, window_high[w]);
                window_low[w] = low;
                window_start[w] = start;
                start += max(0, window_high[w] - low);
            }
            window_start[n_tile] = start;
            next_candidate = static_cast<int>(max(0ll, min(begin - before_tile, static_cast<long long>(start))));
        }
        __syncthreads();
        const int stop = static_cast<int>(min(end - before_tile, static_cast<long long>(window_start[n_tile])));

        int n_queued = 0;  // the same in all lanes, as is `exhausted`
        bool exhausted = false, active = false;
        Form form;
        Word form_number = 0, last_number = 0;
        Long key = 0;
        while (true) {
            const Word idle = __ballot_sync(kEveryLane, !active);
            if (idle == kEveryLane || __popc(idle) >= kRefill) {
                while (n_queued < 32 && !exhausted) {
                    int batch = lane == 0 ? atomicAdd(&next_candidate, 32) : 0;
                    batch = __shfl_sync(kEveryLane, batch, 0);
                    if (batch >= stop) {
                        exhausted = true;
                        break;
                    }
                    const int candidate = batch + lane;
                    Word peptide = 0, arrangements = 0;
                    int w = 0;
                    if (candidate < stop) {
                        // The last window that starts at or before the candidate; empty windows share their start with the next.
                        int last = n_tile;
                        while (last - w > 1) {
                            const int middle = (w + last) >> 1;
                            if (window_start[middle] <= candidate) {
                                w = middle;
                            } else {
                                last = middle;
                            }
                        }
                        peptide = window_low[w] + candidate - window_start[w];
                        w += tile;
                        const unsigned char* slots = in.combination_slots + w / isotopes * kMostSlots;
                        if (slots[0] == kNone) {
                            arrangements = 1;
                        } else if (may_carry(in.letters[peptide], slots, in.residue_mask)) {
                            Form tried;
                            if (first_arrangement(tried, in, peptide, slots)) {
                                arrangements = may_collide(tried) ? kTogether : count_arrangements(tried, settings.max_forms);
                            }
                        }
                    }
                    const Word all = __ballot_sync(kEveryLane, arrangements > 0);
                    if (arrangements > 0) {
                        const int at = n_queued + __popc(all & lanes_before);
                        queue_peptide[warp][at] = peptide;
                        queue_window[warp][at] = w;
                        queue_total[warp][at] = arrangements;
                        queue_begun[warp][at] = 0;
                    }
                    n_queued += __popc(all);
                    __syncwarp();
                }
                // Lane j looks at the j-th candidate from the end of the queue; `shares` sums up what those up to it have to give.
                const int own = n_queued - 1 - lane;
                Word shares = 0;
                if (own >= 0) {
                    const Word total = queue_total[warp][own];
                    shares = total == kTogether ? 1 : (total - queue_begun[warp][own] + kShare - 1) / kShare;
                }
                for (int step = 1; step < 32; step <<= 1) {
                    const Word nearer = __shfl_up_sync(kEveryLane, shares, step);
                    if (lane >= step) shares += nearer;
                }
                const Word nearer = __shfl_up_sync(kEveryLane, shares, 1), shares_before = lane > 0 ? nearer : 0;
                // The idle lane of number `rank` takes the share of that number, from the first candidate that reaches beyond it.
                const Word rank = __popc(idle & lanes_before), n_idle = __popc(idle);
                int giver = 0;
                for (int step = 16; step > 0; step >>= 1) {
                    if (__shfl_sync(kEveryLane, shares, giver + step - 1) <= rank) giver += step;
                }
                const Word first_share = __shfl_sync(kEveryLane, shares_before, giver);
                const bool has_share = rank < __shfl_sync(kEveryLane, shares, 31);
                if (!active && has_share) {
                    const int at = n_queued - 1 - giver;
                    const Word peptide = queue_peptide[warp][at], w = queue_window[warp][at], total = queue_total[warp][at];
                    key = static_cast<Long>(w) << kPeptideBits | peptide;
                    first_arrangement(form, in, peptide, in.combination_slots + w / isotopes * kMostSlots);
                    active = true;
                    form_number = 0;
                    last_number = static_cast<Word>(settings.max_forms);
                    if (total != kTogether) {
                        form_number = queue_begun[warp][at] + kShare * (rank - first_share);
                        last_number = min(total, form_number + kShare);
                        skip_arrangements(form, form_number);
                    }
                }
                __syncwarp();
                // Candidates that have given everything leave the queue; the next may have given a part.
                if (own >= 0 && shares_before < n_idle && n_idle < shares) queue_begun[warp][own] += kShare * (n_idle - shares_before);
                n_queued -= __popc(__ballot_sync(kEveryLane, own >= 0 && shares <= n_idle));
                __syncwarp();
                if (!__any_sync(kEveryLane, active)) {
                    if (n_queued == 0 && exhausted) break;
                    continue;
                }
            }
            Candidate fresh = nobody();
            if (active) {
                bool more = true;
                while (more && !is_free(form)) more = next_arrangement(form);
                if (more) {
                    const Matched matched = score_form<kScore>(form, settings, in, peaks, residue_mass, charges);
                    const long long bin = static_cast<long long>(matched.score * inverse_histogram);
                    atomicAdd(&histogram[max(0ll, min(bin, static_cast<long long>(n_bins - 1)))], 1);
                    if (matched.count >= settings.min_matched_ions) {
                        fresh = Candidate{static_cast<float>(matched.score), form_number, key, form.sites};
                    }
                    ++form_number;
                    more = form_number < last_number && next_arrangement(form);
                }
                active = more;
            }
            Word good = __ballot_sync(kEveryLane, fresh.key != kNobody && comes_before(fresh, worst));
            while (good) {
                const int source = __ffs(static_cast<int>(good)) - 1;
                insert(kept, candidate_of_lane(fresh, source), lane);
                good &= good - 1;
                if (!good) worst = candidate_of_lane(kept, n_kept - 1);
            }
        }
        before_tile += window_start[n_tile];
    }

    kept_of_warps[warp][lane] = kept;
    __syncthreads();
    for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
        if (histogram[b]) atomicAdd(&in.histogram[static_cast<long long>(query) * n_bins + b], histogram[b]);
    }
    if (warp == 0) {
        for (int other = 1; other < n_warps; ++other) {
            for (int j = 0; j < n_kept && kept_of_warps[other][j].key != kNobody; ++j) insert(kept, kept_of_warps[other][j], lane);
        }
        if (lane < n_kept) in.kept_of_items[static_cast<long long>(item) * n_kept + lane] = kept;
    }
}

// A kernel for each score, so that none pays for the registers of another.
extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_dot_product(const Settings* settings, const Inputs* inputs, int most_peaks) {
    search<kSpectralDotProduct>(settings, inputs, most_peaks);
}

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_kernel_dot_product(const Settings* settings, const Inputs* inputs, int most_peaks) {
    search<kKernelDotProduct>(settings, inputs, most_peaks);
}

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_hyperscore(const Settings* settings, const Inputs* inputs, int most_peaks) {
    search<kHyperscore>(settings, inputs, most_peaks);
}

extern "C" __global__ void __launch_bounds__(kMostThreads, kBlocks)
search_by_cross_correlation(const Settings* settings, const Inputs* inputs, int most_peaks) {
    search<kCrossCorrelation>(settings, inputs, most_peaks);
}

// The kernel for dense mass windows: queries that are neighbours in mass share most of their candidates. A tile is kTile such queries, one
// for each lane; a block streams the peptides of the union of their windows past it. A warp takes one peptidoform: its ions are computed
// once, by the lanes side by side, and each is looked up for all queries of the tile in one load.
//
// That load is exact. As a function of the ion's m/z, the heaviest peak within the tolerance is constant between the points where a peak
// comes within reach or leaves it. A table over fine bins names that peak, bin after bin, one byte for each query of the tile; the few bins
// that hold such a point say kEdge, and there the peaks themselves are compared, from the first that reaches the bin on, which a second
// table names. With 32 queries side by side one of them is soon at an edge, so that this must be rare: bins far finer than the tolerance.
constexpr int kTile = 32;
constexpr int kDenseWarps = 16;          // of a block
constexpr int kDenseBlocks = 2;          // of them on a multiprocessor
constexpr int kMostDenseKept = 8;
constexpr int kMostDenseWindows = 96;
constexpr int kTaken = 8;                // candidates that a warp takes at once
constexpr int kIonsTogether = 8;         // looked up side by side
constexpr unsigned char kEdge = 255;     // else 0 for no peak, or the number of the peak and one
constexpr double kEdgeMargin = 1e-6;     // thomson: far above rounding

// The fine bins that a peak reaches into, and those between which nothing but it need be asked.
struct Reach {
    int begin, inner_begin, inner_end, end;
};

__device__ int fine_bin(double target, double inverse, int n_fine) {
    return max(0, min(static_cast<int>(target * inverse), n_fine - 1));
}

__device__ Reach reach_of(double mz, const Settings& settings, double inverse, int n_fine) {
    const double low = (mz - settings.fragment_absolute) / (1.0 + settings.fragment_relative);
    const double high = (mz + settings.fragment_absolute) / (1.0 - settings.fragment_relative);
    return Reach{fine_bin(low - kEdgeMargin, inverse, n_fine), fine_bin(low + kEdgeMargin, inverse, n_fine),
                 fine_bin(high - kEdgeMargin, inverse, n_fine), fine_bin(high + kEdgeMargin, inverse, n_fine)};
}

// A block for each tile writes its table (n_fine, kTile), zero at the start; the last bin stays empty. `reaching` (of the same shape)
// gets the number of the first peak that reaches a bin and one, where it says kEdge. Each bin is written by the thread of that first
// peak.
extern "C" __global__ void tabulate_peaks(const Settings* settings, const Inputs* inputs, int n_queries, int n_fine, double inverse,
                                          unsigned char* table, unsigned char* reaching) {
    const int lane = threadIdx.x & 31, query = blockIdx.x * kTile + lane;
    if (query >= n_queries) return;
    const int first = inputs->offsets[query], n = inputs->offsets[query + 1] - first;
    const double* mz = inputs->mz + first;
    const float* weight = inputs->weight + first;
    const long long offset = static_cast<long long>(blockIdx.x) * n_fine * kTile + lane;
    for (int i = threadIdx.x >> 5; i < n; i += blockDim.x >> 5) {
        const Reach mine = reach_of(mz[i], *settings, inverse, n_fine);
        int bin = mine.begin;
        if (i > 0) bin = max(bin, reach_of(mz[i - 1], *settings, inverse, n_fine).end + 1);
        for (; bin <= mine.end; ++bin) {
            bool edge = false;
            int best = i;
            for (int j = i; j < n; ++j) {
                const Reach other = reach_of(mz[j], *settings, inverse, n_fine);
                if (other.begin > bin) break;
                edge = edge || bin <= other.inner_begin || bin >= other.inner_end;
                if (weight[j] > weight[best]) best = j;
            }
            table[offset + bin * kTile] = edge ? kEdge : static_cast<unsigned char>(best + 1);
            if (edge) reaching[offset + bin * kTile] = static_cast<unsigned char>(i + 1);
        }
    }
}

// Number of the heaviest peak within the tolerance of `target` and one, or 0: as find_peak, for an ion in a bin that says kEdge.
// `first` is the first peak that reaches the bin.
__device__ int peak_at_edge(const double* mz, const float* weight, int first, int n, double target, double absolute, double relative) {
    const double half = absolute + relative * target;
    int best = 0;
    for (int k = first; k < n; ++k) {
        const double difference = mz[k] - target;
        if (difference > half) break;
        if (difference >= -half && (best == 0 || weight[k] > weight[best - 1])) best = k + 1;
    }
    return best;
}

// A block scores its part of the candidates in the union of the windows of one tile: of `n_parts` blocks that share a tile, each takes
// every n_parts-th handful, because combinations of many modifications cost far more than others; those come first, so that no warp is
// left with one at the end. Each warp writes the best that it found for each query, as an item of that query; `bars` (queries,), zero at
// the start, holds the bits of the highest score of a last one kept by any warp: what scores less is in no warp's way to the best of all.
template <int kScore>
__device__ void search_tile(const Settings* settings_in_memory, const Inputs* inputs_in_memory, const int* first_item,
                            const unsigned char* table, const unsigned char* reaching, int n_fine, double inverse, int n_queries,
                            int most_peaks, int* bars) {
    __shared__ Settings settings;
    __shared__ Inputs in;
    __shared__ int window_low[kMostDenseWindows], window_start[kMostDenseWindows + 1];
    __shared__ int next_handful;
    __shared__ double prefix_of_warps[kDenseWarps][kLongest];
    __shared__ __align__(16) int ions_of_warps[kDenseWarps][kLongest];  // offsets into the table

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Settings) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&settings)[i] = reinterpret_cast<const Long*>(settings_in_memory)[i];
    }
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Inputs) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&in)[i] = reinterpret_cast<const Long*>(inputs_in_memory)[i];
    }
    __syncthreads();
    const int n_bins = static_cast<int>(settings.n_bins), n_kept = static_cast<int>(settings.n_kept);
    const int isotopes = static_cast<int>(settings.n_isotope_errors), n_combinations = static_cast<int>(settings.n_combinations);
    // Each with a column for each query: weights of peaks (that of number 0 is zero), histogram, ends of the windows.
    double* weights = reinterpret_cast<double*>(dynamic_shared);
    int* histogram = reinterpret_cast<int*>(weights + (most_peaks + 1) * kTile);
    int* lows = histogram + n_bins * kTile;
    int* highs = lows + n_combinations * isotopes * kTile;

    const int item = blockIdx.x, first_query = in.item_query[item], query = first_query + lane;
    const bool is_query = query < n_queries;
    const int first_peak = is_query ? in.offsets[query] : 0, n_peaks = is_query ? in.offsets[query + 1] - first_peak : 0;
    const double* mz = in.mz + first_peak;
    const float* weight = in.weight + first_peak;
    for (int b = warp; b < n_bins; b += n_warps) histogram[b * kTile + lane] = 0;
    for (int k = warp; k <= most_peaks; k += n_warps) weights[k * kTile + lane] = k > 0 && k <= n_peaks ? weight[k - 1] : 0.0;
    for (int c = warp; c < n_combinations; c += n_warps) {
        // Isotope errors come largest first, so windows ascend; where they overlap, a peptide is scored once.
        int done = 0;
        for (int isotope = 0; isotope < isotopes; ++isotope) {
            Window window{0, 0};
            if (n_peaks > 0) window = mass_window(settings, in.mass, in.query_mass[query], isotope, in.combination_mass[c]);
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
                window_low[w] = low;
                window_start[w] = max(0, high - min(low, high));  // its size for now
            }
        }
    }
    __syncthreads();
    const int n_windows = n_combinations * isotopes;
    if (threadIdx.x == 0) {
        int start = 0;
        for (int w = 0; w < n_windows; ++w) {
            const int size = window_start[w];
            window_start[w] = start;
            start += size;
        }
        window_start[n_windows] = start;
        next_handful = in.item_part[item];
    }
    __syncthreads();
    const int n_parts = (first_item[first_query + 1] - first_item[first_query]) / n_warps;
    const int stop = window_start[n_windows], n_handfuls = (stop + kTaken - 1) / kTaken;

    const int charges = is_query ? max(1, min(static_cast<int>(settings.max_fragment_charge), in.query_charge[query] - 1)) : 0;
    int most_charges = charges;
    for (int step = 16; step > 0; step >>= 1) most_charges = max(most_charges, __shfl_xor_sync(kEveryLane, most_charges, step));
    const double inverse_histogram = 1.0 / settings.histogram_width;
    const double absolute = settings.fragment_absolute, relative = settings.fragment_relative;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    const Word max_forms = static_cast<Word>(settings.max_forms);
    const long long offset = static_cast<long long>(first_query / kTile) * n_fine * kTile + lane;
    const unsigned char* column = table + offset;
    const unsigned char* reaching_column = reaching + offset;
    const double* own_weights = weights + lane;
    double* prefix = prefix_of_warps[warp];
    int* ions = ions_of_warps[warp];

    Candidate kept[kMostDenseKept];
    for (int j = 0; j < n_kept; ++j) kept[j] = nobody();
    float worst = kept[0].score;
    const volatile int* bar_in_memory = bars + (is_query ? query : first_query);

    while (true) {
        int handful = lane == 0 ? atomicAdd(&next_handful, n_parts) : 0;
        handful = __shfl_sync(kEveryLane, handful, 0);
        if (handful >= n_handfuls) break;
        const float bar = fmaxf(worst, __int_as_float(*bar_in_memory));
        const int candidate = (n_handfuls - 1 - handful) * kTaken + lane;
        Word own_peptide = 0;
        int own_window = 0;
        bool is_possible = false;
        if (lane < kTaken && candidate < stop) {
            int last = n_windows;
            while (last - own_window > 1) {
                const int middle = (own_window + last) >> 1;
                if (window_start[middle] <= candidate) {
                    own_window = middle;
                } else {
                    last = middle;
                }
            }
            own_peptide = window_low[own_window] + candidate - window_start[own_window];
            is_possible =
                may_carry(in.letters[own_peptide], in.combination_slots + own_window / isotopes * kMostSlots, in.residue_mask);
        }
        for (Word possible = __ballot_sync(kEveryLane, is_possible); possible; possible &= possible - 1) {
            const int source = __ffs(static_cast<int>(possible)) - 1;
            const Word peptide = __shfl_sync(kEveryLane, own_peptide, source);
            const int w = __shfl_sync(kEveryLane, own_window, source);
            const int low = lows[w * kTile + lane], high = highs[w * kTile + lane];
            const bool is_mine = static_cast<int>(peptide) >= low && static_cast<int>(peptide) < high;
            if (!__any_sync(kEveryLane, is_mine)) continue;
            Form form;
            if (!first_arrangement(form, in, peptide, in.combination_slots + w / isotopes * kMostSlots)) continue;
            const int n_ions = form.length - 1;
            const unsigned char* residues = in.residues + form.position;
            const double left = lane < form.length ? settings.residue_mass[residues[lane] - 65] : 0.0;
            const double right = lane + 32 < form.length ? settings.residue_mass[residues[lane + 32] - 65] : 0.0;
            Word form_number = 0;
            do {
                if (!is_free(form)) continue;
                double total = settings.n_term_mass, c_term = settings.c_term_mass, mass = left, mass_beyond = right;
                for (int t = 0; t < form.n_slots; ++t) {
                    const int site = site_of(form, t);
                    const double more = in.modification_mass[form.modification[t]];
                    if (site == 0) {
                        total += more;
                    } else if (site == form.length + 1) {
                        c_term += more;
                    } else if (site == lane + 1) {
                        mass += more;
                    } else if (site == lane + 33) {
                        mass_beyond += more;
                    }
                }
                // Sums from the N-terminus, in the order of the processor's; each lane keeps its own.
                double sum = 0.0, sum_beyond = 0.0;
                for (int i = 0; i < min(form.length, 32); ++i) {
                    total += __shfl_sync(kEveryLane, mass, i);
                    if (lane == i) sum = total;
                }
                for (int i = 32; i < form.length; ++i) {
                    total += __shfl_sync(kEveryLane, mass_beyond, i - 32);
                    if (lane == i - 32) sum_beyond = total;
                }
                total += c_term;
                prefix[lane] = sum;
                prefix[lane + 32] = sum_beyond;
                double dot = 0.0;
                int count_n = 0, count_c = 0;
                for (int series = 0; series < n_n + n_c; ++series) {
                    const bool is_n = series < n_n;
                    const double single = is_n ? settings.n_term_series[series] : total + settings.c_term_series[series - n_n];
                    int count = 0;
                    for (int z = 1; z <= most_charges; ++z) {
                        const double start = single / z + (z - 1) * kProtonMass / z;
                        const double sign = (is_n ? 1.0 : -1.0) / z;
                        const Word empty = n_fine - 1;
                        __syncwarp();
                        Word bin = static_cast<Word>(static_cast<int>((start + sign * sum) * inverse));
                        ions[lane] = (lane < n_ions ? min(bin, empty) : empty) * kTile;
                        bin = static_cast<Word>(static_cast<int>((start + sign * sum_beyond) * inverse));
                        ions[lane + 32] = (lane + 32 < n_ions ? min(bin, empty) : empty) * kTile;
                        __syncwarp();
                        if (!is_mine || z > charges) continue;
                        for (int begun = 0; begun < n_ions; begun += kIonsTogether) {
                            int peak[kIonsTogether];
#pragma unroll
                            for (int j = 0; j < kIonsTogether; ++j) peak[j] = column[ions[begun + j]];
#pragma unroll
                            for (int j = 0; j < kIonsTogether; ++j) {
                                if (peak[j] == kEdge) {
                                    peak[j] = peak_at_edge(mz, weight, reaching_column[ions[begun + j]] - 1, n_peaks,
                                                           start + sign * prefix[begun + j], absolute, relative);
                                }
                                dot += own_weights[peak[j] * kTile];
                                count += peak[j] != 0;
                            }
                        }
                    }
                    if (is_n) {
                        count_n += count;
                    } else {
                        count_c += count;
                    }
                }
                if (is_mine) {
                    double score = dot;
                    if (kScore == kHyperscore) {
                        score = dot > 0 ? in.factorial_log[count_n] + in.factorial_log[count_c] + log(1.0 + 100.0 * dot) : 0.0;
                    }
                    const long long bin = static_cast<long long>(score * inverse_histogram);
                    atomicAdd(&histogram[max(0ll, min(bin, static_cast<long long>(n_bins - 1))) * kTile + lane], 1);
                    if (static_cast<float>(score) >= fmaxf(bar, worst) && count_n + count_c >= settings.min_matched_ions) {
                        const Candidate fresh{static_cast<float>(score), form_number, static_cast<Long>(w) << kPeptideBits | peptide,
                                              form.sites};
                        int place = n_kept;
                        for (; place > 0 && comes_before(fresh, kept[place - 1]); --place) {
                            if (place < n_kept) kept[place] = kept[place - 1];
                        }
                        if (place < n_kept) kept[place] = fresh;
                        worst = kept[n_kept - 1].score;
                        if (worst > bar) atomicMax(&bars[query], __float_as_int(worst));  // scores are not negative
                    }
                }
                __syncwarp();
                ++form_number;
            } while (form_number < max_forms && next_arrangement(form));
        }
    }

    __syncthreads();
    if (!is_query) return;
    for (int b = warp; b < n_bins; b += n_warps) {
        const int n = histogram[b * kTile + lane];
        if (n) atomicAdd(&in.histogram[static_cast<long long>(query) * n_bins + b], n);
    }
    const long long row = first_item[query] + static_cast<long long>(in.item_part[item]) * n_warps + warp;
    for (int j = 0; j < n_kept; ++j) in.kept_of_items[row * n_kept + j] = kept[j];
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, kDenseBlocks)
search_tile_by_dot_product(const Settings* settings, const Inputs* inputs, const int* first_item, const unsigned char* table,
                           const unsigned char* reaching, int n_fine, double inverse,
                           int n_queries, int most_peaks, int* bars) {
    search_tile<kSpectralDotProduct>(settings, inputs, first_item, table, reaching, n_fine, inverse,
                n_queries, most_peaks, bars);
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, kDenseBlocks)
search_tile_by_hyperscore(const Settings* settings, const Inputs* inputs, const int* first_item, const unsigned char* table,
                          const unsigned char* reaching, int n_fine, double inverse,
                          int n_queries, int most_peaks, int* bars) {
    search_tile<kHyperscore>(settings, inputs, first_item, table, reaching, n_fine, inverse,
                n_queries, most_peaks, bars);
}

// One warp for each query joins the kept candidates of its items `first_item[query]` and following and writes them as HitArrays.
extern "C" __global__ void merge_hits(const Settings* settings, const int* first_item, const Candidate* kept_of_items,
                                      const unsigned char* combination_slots, const int* histogram, int n_queries, float* score,
                                      long long* peptide, signed char* isotope_error, unsigned char* site, unsigned char* modification,
                                      long long* n_candidates) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (query >= n_queries) return;
    const int n_kept = static_cast<int>(settings->n_kept), n_slots = static_cast<int>(settings->n_slots);
    const int n_bins = static_cast<int>(settings->n_bins), isotopes = static_cast<int>(settings->n_isotope_errors);
    Candidate kept = nobody();
    for (int item = first_item[query]; item < first_item[query + 1]; ++item) {
        Candidate mine = nobody();
        if (lane < n_kept) mine = kept_of_items[static_cast<long long>(item) * n_kept + lane];
        if (item == first_item[query]) {
            kept = mine;
            continue;
        }
        for (int j = 0; j < n_kept; ++j) {
            const Candidate fresh = candidate_of_lane(mine, j);
            if (fresh.key == kNobody) break;
            insert(kept, fresh, lane);
        }
    }
    long long total = 0;
    for (int b = lane; b < n_bins; b += 32) total += histogram[static_cast<long long>(query) * n_bins + b];
    for (int step = 16; step > 0; step >>= 1) total += __shfl_down_sync(kEveryLane, total, step);
    if (lane == 0) n_candidates[query] = total;
    if (lane >= n_kept) return;
    const long long row = static_cast<long long>(query) * n_kept + lane;
    const bool is_there = kept.key != kNobody;
    const Word window = static_cast<Word>(kept.key >> kPeptideBits);
    score[row] = kept.score;
    peptide[row] = is_there ? settings->first_peptide + static_cast<long long>(kept.key & ((1ull << kPeptideBits) - 1)) : -1;
    isotope_error[row] = is_there ? static_cast<signed char>(settings->isotope_error[window % isotopes]) : 0;
    for (int t = 0; t < n_slots; ++t) {
        const unsigned char which = is_there ? combination_slots[window / isotopes * kMostSlots + t] : kNone;
        modification[row * n_slots + t] = which;
        site[row * n_slots + t] = which == kNone ? kNone : static_cast<unsigned char>(kept.sites >> (8 * t) & 255u);
    }
}
