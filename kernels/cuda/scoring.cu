// Search of spectra against the mass-sorted peptide dictionary: the same candidates, modified forms and scores as
// kernels/cpu/candidates.py.
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
//
// Scores are those of the processor to the last bit: sums are made in the same order, or of whole numbers, and the logarithm and the power
// are those of kernels/cpu/elementary.py.

using Word = unsigned int;
using Long = unsigned long long;

constexpr int kMostSlots = 8;            // variable modifications of one peptide
constexpr int kMostWarps = 8;            // of a block that searches
constexpr int kBlocks = 4;               // of them on a multiprocessor: leaves 64 registers for a thread
constexpr int kMostThreads = 32 * kMostWarps;
constexpr int kQueue = 64;               // candidates that wait for a lane, for each warp
constexpr int kRefill = 16;              // idle lanes that are worth a look into the queue
constexpr int kLongest = 64;             // residues of a peptide, and one
constexpr int kGroup = 4;                // residues whose masses are loaded together
constexpr int kCorrelationHalfWindow = 75, kAround = 2 * kCorrelationHalfWindow;
constexpr double kCorrelationUnits = 65536.0;  // to a height of one
constexpr double kXCorrOfSum = 0.005 / (kAround * kCorrelationUnits);
constexpr int kMostSeries = 3;           // from each end
constexpr int kMostFragmentCharge = 5;
constexpr int kMostIsotopeErrors = 16;
constexpr int kLetters = 26;
constexpr Word kEveryLane = 0xffffffffu;
constexpr Word kAnyResidue = 0xffffffffu;
constexpr Word kTogether = 0xffffffffu;  // instead of a number of arrangements: one lane takes all
constexpr unsigned char kNone = 255;
constexpr Long kNobody = ~0ull;
constexpr int kPeptideBits = 40;         // of a key; the window's number stands above
constexpr double kProtonMass = 1.007276466621;
constexpr double kRounding = 1e-12;      // of a mass, at most
constexpr unsigned char kProteinNTerm = 1, kProteinCTerm = 2;  // flags of a peptide, see kernels/cpu/peptides.py

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

// As `kernels.cpu.elementary` has them, operation by operation.
constexpr double kLn2 = 0.6931471805599453, kPerLn2 = 1.4426950408889634;
constexpr double kLn2High = 2977044471.0 / 4294967296.0, kLn2Low = 1.9082149292705878e-10;
constexpr long long kBitsOfRootOfHalf = 0x3FE6A09E667F3BCD;
constexpr int kMantissaBits = 52, kExponentOfOne = 1023;

// Natural logarithm of a positive, finite and normal number.
__device__ __forceinline__ double logarithm(double x) {
    const long long bits = __double_as_longlong(x);
    const long long exponent = (bits - kBitsOfRootOfHalf) >> kMantissaBits;
    const double mantissa = __longlong_as_double(bits - exponent * (1ll << kMantissaBits));
    const double f = (mantissa - 1.0) / (mantissa + 1.0);
    const double s = f * f;
    const double s2 = s * s;
    const double s4 = s2 * s2;
    const double low = (1.0 / 3.0 + s * (1.0 / 5.0)) + s2 * (1.0 / 7.0 + s * (1.0 / 9.0));
    const double high = (1.0 / 11.0 + s * (1.0 / 13.0)) + s2 * (1.0 / 15.0 + s * (1.0 / 17.0));
    const double series = (low + s4 * high) + (s4 * s4) * (1.0 / 19.0);
    return static_cast<double>(exponent) * kLn2 + (2.0 * f + (2.0 * f) * (s * series));
}

// Zero where the base is not positive. Not inlined: its registers would be missed elsewhere.
__device__ __noinline__ double power(double base, double exponent) {
    if (!(base > 0.0)) return 0.0;
    const double y = exponent * logarithm(base);
    const double n = floor(y * kPerLn2 + 0.5);
    const double r = (y - n * kLn2High) - n * kLn2Low;
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double r8 = r4 * r4;
    const double first = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0));
    const double second = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    const double third = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
    const double fourth = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    const double exponential = (first + r4 * second) + r8 * (third + r4 * fourth);
    return exponential * __longlong_as_double((static_cast<long long>(n) + kExponentOfOne) << kMantissaBits);
}

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
    long long* correlation_sum;
    int n_correlation;
};

// How far a peak reaches. An ion at t matches a peak at m where |m - t| <= absolute + relative t, which is up to
// t = (m + absolute) / (1 - relative) = m + (absolute + relative m) / (1 - relative), and less far down. The exact comparison follows; none
// must be missed by rounding.
__device__ double reach(const Peaks& peaks, double mz) {
    const double widened = 1.0 / (1.0 - peaks.relative);
    return peaks.absolute * widened + (peaks.relative * widened + kRounding) * mz;
}

// The bit table reaches to the last peak of this spectrum; its bins are widened where they would not fit, which only costs looks at peaks.
__device__ void fit_table(Peaks& peaks, double bin_width, int most_words) {
    double last = 0.0;
    if (peaks.n > 0) last = peaks.mz[peaks.n - 1] + reach(peaks, peaks.mz[peaks.n - 1]);
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
        const double mz = peaks.mz[i], half = reach(peaks, mz);
        const int begin = max(0, static_cast<int>((mz - half) * peaks.inverse_bin));
        const int end = min(last_bin, static_cast<int>((mz + half) * peaks.inverse_bin));
        for (int b = begin; b <= end; ++b) atomicOr(&peaks.words[b >> 5], 1u << (b & 31));
        int word = begin >> 5;
        if (i > 0) {
            const double before = peaks.mz[i - 1];
            word = max(word, (static_cast<int>((before + reach(peaks, before)) * peaks.inverse_bin) >> 5) + 1);
        }
        for (; word <= end >> 5; ++word) peaks.first[word] = static_cast<unsigned short>(i);
    }
    __syncthreads();
}

// One thread joins peaks that share a bin of XCorr (the bin has the height of its highest peak) and sums the heights, whole numbers.
__device__ void index_correlation(Peaks& peaks, const float* height, const Settings& settings, int* n_bins) {
    if (threadIdx.x == 0) {
        int n = 0;
        long long sum = 0, previous = 0;
        for (int i = 0; i < peaks.n; ++i) {
            const int bin =
                static_cast<int>(peaks.mz[i] / settings.correlation_bin_width + 1.0 - settings.correlation_bin_offset);
            if (bin >= settings.n_correlation_bins) break;
            const long long here = static_cast<long long>(static_cast<double>(height[i]) * kCorrelationUnits + 0.5);
            if (n > 0 && peaks.correlation_bin[n - 1] == bin) {
                if (here > previous) {
                    sum += here - previous;
                    previous = here;
                }
            } else {
                peaks.correlation_bin[n++] = bin;
                sum += here;
                previous = here;
            }
            peaks.correlation_sum[n] = sum;
        }
        peaks.correlation_sum[0] = 0;
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

// SEQUEST's spectrum at a bin, less the mean of the 150 bins around it (Eng 2008, equation 6), from sums instead of a vector of bins; 150
// times as high, a whole number.
__device__ long long correlation_at(const Peaks& peaks, double target, const Settings& settings) {
    const int bin =
        static_cast<int>(target * (1.0 / settings.correlation_bin_width) + (1.0 - settings.correlation_bin_offset));
    if (bin < 0 || bin >= settings.n_correlation_bins) return 0;
    const int low = bins_before(peaks, bin - kCorrelationHalfWindow), high = bins_before(peaks, bin + kCorrelationHalfWindow + 1);
    const int at = bins_before(peaks, bin);
    const bool has_peak = at < peaks.n_correlation && peaks.correlation_bin[at] == bin;
    const long long own = has_peak ? peaks.correlation_sum[at + 1] - peaks.correlation_sum[at] : 0;
    return kAround * own - (peaks.correlation_sum[high] - peaks.correlation_sum[low] - own);
}

// 1 where the bit table has a peak near `target`, else 0.
__device__ Word may_match(const Peaks& peaks, double target) {
    const int bin = static_cast<int>(target * peaks.inverse_bin), word = bin >> 5;
    const bool inside = static_cast<Word>(word) < static_cast<Word>(peaks.n_words);  // a negative one is far beyond
    return inside ? peaks.words[word] >> (bin & 31) & 1u : 0u;
}

// The heaviest peak within the tolerance of `target`, or -1. Peaks before `first` do not reach it.
__device__ int heaviest_peak(const double* mz, const float* weight, int first, int n, double target, double absolute, double relative) {
    const double half = absolute + relative * target;
    int best = -1;
    float heaviest = 0.0f;
    for (int k = first; k < n; ++k) {
        const double difference = mz[k] - target;
        if (difference > half) break;
        if (difference >= -half && (best < 0 || weight[k] > heaviest)) {
            best = k;
            heaviest = weight[k];
        }
    }
    return best;
}

// The same for a `target` that may match.
__device__ int find_peak(const Peaks& peaks, double target) {
    const int first = peaks.first[static_cast<int>(target * peaks.inverse_bin) >> 5];
    return heaviest_peak(peaks.mz, peaks.weight, first, peaks.n, target, peaks.absolute, peaks.relative);
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

__device__ Long with_site(Long sites, int slot, int site) {
    return (sites & ~(255ull << (8 * slot))) | static_cast<Long>(site) << (8 * slot);
}

__device__ void set_site(Form& form, int slot, int site) { form.sites = with_site(form.sites, slot, site); }

__device__ Long residues_after(Long possible, int residue) { return residue >= 63 ? 0ull : possible >> (residue + 1) << (residue + 1); }

// Put each slot on its first site. False when the peptide has too few sites for the combination. `residues_in` gives the residues of a
// mask of letters, as bits. Where a warp does this together for one form, only the lane that `writes` does so.
template <class ResiduesIn>
__device__ bool first_arrangement(Form& form, const Inputs& in, Word peptide, const unsigned char* slots, ResiduesIn residues_in,
                                  bool writes) {
    const Word position = in.position[peptide];
    const int length = in.length[peptide];
    Long sites = 0, possible = 0, free = 0;  // `free`: those of the modification that no slot has taken
    int t = 0;
#pragma unroll 1
    for (; t < kMostSlots && slots[t] != kNone; ++t) {
        const int m = slots[t];
        const bool is_same = t > 0 && slots[t - 1] == m;
        int site = 0;
        if (is_same) {
            if (free == 0) return false;
        } else {
            const Word mask = in.residue_mask[m];
            const int place = in.place[m];
            possible = free = place == 0 ? residues_in(mask) : 0;
            if (place == 0) {
                if (free == 0) return false;
            } else {
                // `possible` stays empty: the one site never changes.
                const unsigned char flags = in.flags[peptide];
                const bool at_n_term = place == 1 || (place == 3 && (flags & kProteinNTerm));
                const bool at_c_term = place == 2 || (place == 4 && (flags & kProteinCTerm));
                if (!at_n_term && !at_c_term) return false;
                const int end = at_n_term ? 0 : length - 1;
                if (!(mask >> (in.residues[position + end] - 65) & 1u)) return false;
                site = mask != kAnyResidue ? end + 1 : at_n_term ? 0 : length + 1;
            }
        }
        if (possible) {
            // Within one modification the chosen sites ascend.
            site = __ffsll(static_cast<long long>(free));
            free &= free - 1;
        }
        sites = with_site(sites, t, site);
        if (writes) {
            form.possible[t] = possible;
            form.modification[t] = static_cast<unsigned char>(m);
        }
    }
    if (writes) {
        form.sites = sites;
        form.position = position;
        form.length = length;
        form.n_slots = t;
    }
    return true;
}

__device__ bool first_arrangement(Form& form, const Inputs& in, Word peptide, const unsigned char* slots) {
    const auto residues_in = [&](Word mask) {
        const unsigned char* residues = in.residues + in.position[peptide];
        const int length = in.length[peptide];
        Long found = 0;
        for (int i = 0; i < length; ++i) {
            if (mask >> (residues[i] - 65) & 1u) found |= 1ull << i;
        }
        return found;
    };
    return first_arrangement(form, in, peptide, slots, residues_in, true);
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

// In how many ways k of n sites can be chosen: the largest, of 63 and 8, is below 2^32.
struct Choices {
    Word of[kLongest][kMostSlots + 1];
};

__device__ constexpr Choices count_choices() {
    Choices choices{};
    for (int n = 0; n < kLongest; ++n) {
        choices.of[n][0] = 1;
        for (int k = 1; k <= kMostSlots && k <= n; ++k) choices.of[n][k] = choices.of[n - 1][k - 1] + choices.of[n - 1][k];
    }
    return choices;
}

__device__ const Choices table_of_choices = count_choices();

__device__ Word choices(int n, int k) { return table_of_choices.of[n][k]; }

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

// The sites of the arrangement of number `rank`, from a form that holds the first one. The order is that of next_arrangement: the last
// modification changes fastest, and the sites of one modification go through their combinations in lexicographic order.
__device__ Long sites_of_rank(const Form& form, Word rank) {
    Long chosen = form.sites;
#pragma unroll 1
    for (int end = form.n_slots; end > 0 && rank > 0;) {
        int t = end - 1;
        while (t > 0 && form.modification[t - 1] == form.modification[t]) --t;
        if (form.possible[t]) {
            const int n_sites = __popcll(form.possible[t]), n = end - t;
            const Word all = choices(n_sites, n);
            Word left = rank % all;
            rank /= all;
            Long sites = form.possible[t];
            for (int slot = t, index = 0; slot < end; ++index) {
                const int residue = __ffsll(static_cast<long long>(sites)) - 1;
                sites &= sites - 1;
                const Word with = choices(n_sites - 1 - index, end - 1 - slot);
                if (left < with) {
                    chosen = with_site(chosen, slot++, residue + 1);
                } else {
                    left -= with;
                }
            }
        }
        end = t;
    }
    return chosen;
}

// Whether no two modifications sit on one site.
__device__ bool is_free(Long sites, int n_slots) {
#pragma unroll 1
    for (int t = 1; t < n_slots; ++t) {
#pragma unroll 1
        for (int u = 0; u < t; ++u) {
            if (((sites >> (8 * t) ^ sites >> (8 * u)) & 255u) == 0) return false;
        }
    }
    return true;
}

struct Matched {
    double score;
    int count;  // of ions
};

// Windows of consecutive ions of one series, raised to a power, so that runs count more than single ions (Fu 2004, equation 6).
__device__ double kernel_dot_product(const double* root, int n, int window, double exponent) {
    const int before = (window - 1) / 2, after = window - 1 - before;
    double total = 0.0;
    for (int j = 0; j < n; ++j) {
        double inside = 0.0;
        for (int k = max(0, j - before); k < min(n, j + after + 1); ++k) inside += root[k];
        if (inside > 0.0) total += power(inside, exponent);
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
    double dot = 0.0, kernel_sum = 0.0;
    long long correlation = 0;
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
                        root[is_n ? i : n_ions - 1 - i] = power(static_cast<double>(peaks.weight[peak]), 1.0 / settings.ksdp_power);
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
        score = dot > 0 ? in.factorial_log[count_n] + in.factorial_log[count_c] + logarithm(1.0 + 100.0 * dot) : 0.0;
    } else if (kScore == kKernelDotProduct) {
        score = kernel_sum;
    } else if (kScore == kCrossCorrelation) {
        score = static_cast<double>(correlation) * kXCorrOfSum;
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
    long long* correlation_sum = reinterpret_cast<long long*>(dynamic_shared);
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
                    shares = total == kTogether ? 1 : total - queue_begun[warp][own];  // an arrangement each
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
                        form_number = queue_begun[warp][at] + rank - first_share;
                        last_number = form_number + 1;
                        form.sites = sites_of_rank(form, form_number);
                    }
                }
                __syncwarp();
                // Candidates that have given everything leave the queue; the next may have given a part.
                if (own >= 0 && shares_before < n_idle && n_idle < shares) queue_begun[warp][own] += n_idle - shares_before;
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
                while (more && !is_free(form.sites, form.n_slots)) more = next_arrangement(form);
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
// for each lane; a block streams the peptides of the union of their windows past it, and a warp takes one peptide with one combination of
// modifications at a time. Its theoretical ions are computed once, by the lanes side by side, and each is looked up for all queries of the
// tile in one load.
//
// Arrangements of the same modifications share most of their ions: an ion's mass depends only on how many modifications of each kind lie
// on it, the *state*, not on where. So each state is matched once, over those ions that can be in it, and sums up to every site are kept.
// An arrangement goes from state to state at its sites; its sum is that of the last state to the end, and for each site the difference of
// two kept sums. Sums are integers, and therefore exact in any order: see `packed`.
//
// The look-up is exact. As a function of the ion's m/z, the heaviest peak within the tolerance is constant between the *edges*: where a
// peak comes within reach, or leaves it. A table over fine bins names that peak, or the first edge in the bin. Whether an ion within kClose
// of an edge matches is a matter of rounding: then the arrangements are matched again for that query with the sums of doubles that the
// processor makes.
constexpr int kTile = 32;
constexpr int kDenseWarps = 12;          // of a block
constexpr int kDenseBlocks = 2;          // of them on a multiprocessor
constexpr int kMostDenseKept = 8;
constexpr int kMostDenseWindows = 96;
constexpr int kTaken = 8;                // candidates that a warp takes at once
constexpr int kIonsTogether = 4;         // of each end, looked up side by side
constexpr int kFineBins = 1 << 15;       // of the table of a tile
constexpr double kClose = 1e-9;          // thomson: far above rounding
constexpr int kFirstEdge = 1 << 15;      // entries of the table from there on: an edge, else a peak
constexpr float kDoubt = 1e-5f;          // of a score in single precision, several times its rounding
constexpr unsigned short kMore = 1 << 15;
constexpr int kMostStates = 32;
constexpr int kMostSums = 96;            // states x sites; where there are more, arrangements are matched one by one

// Sums of an arrangement in one word: in the low bits the dot product in units of 1 / `units`, of which every weight is a whole number;
// then 8 bits for the number of matched N-terminal ions, and 8 for that of C-terminal ones. The launcher sees to it that nothing
// overflows. The processor's sums of doubles are exact for such weights, too.
constexpr int kDotBits = 48, kCountBits = 8;

__device__ Long packed(float weight, double units) { return static_cast<Long>(weight * units) + (1ull << kDotBits); }

// A sum over C-terminal ions, which were counted as if they were N-terminal.
__device__ Long as_c_terminal(Long sum) {
    const Word high = static_cast<Word>(sum >> 32);
    return static_cast<Long>(__byte_perm(high, 0, 0x2410)) << 32 | static_cast<Word>(sum);
}

// A peak as tables name it: where its packed weight lies in the columns of a tile, or 0 for none. The first row of weights is zero.
__device__ unsigned short entry_of(int peak, int lane) { return static_cast<unsigned short>(peak < 0 ? 0 : (peak + 1) * kTile + lane); }

// Where the heaviest peak in reach changes: from `before` to `after`. Each query has two for each peak. A position is the number of a bin
// in the upper half of the word, and the place in the bin in the lower.
struct __align__(8) Edge {
    Long position;
    unsigned short before, after;  // entries; `after` has kMore where the next edge touches a bin of this one
};

__device__ Long position_of(double target, double bins_of_thomson) {
    return static_cast<Long>(static_cast<long long>(target * (bins_of_thomson * 4294967296.0)));
}

__device__ Long close_of(double bins_of_thomson) { return position_of(kClose, bins_of_thomson) + 2; }

// A block for each tile of queries writes its edges (2 most_peaks, kTile), its table (kFineBins, kTile), zero at the start, and how many
// bins there are in a thomson: the table reaches to the last peak of the tile, and its last bin stays empty.
extern "C" __global__ void tabulate_peaks(const Settings* settings, const Inputs* inputs, int n_queries, int most_peaks, Edge* edges,
                                          unsigned short* table, double* bins_of_thomson) {
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
    if (threadIdx.x == 0) bins_of_thomson[blockIdx.x] = scale;
    const auto low_end = [&](int i) { return position_of(max(0.0, (mz[i] - absolute) / (1.0 + relative)), scale); };
    const auto high_end = [&](int i) { return position_of((mz[i] + absolute) / (1.0 - relative), scale); };
    const auto first_bin = [&](const Edge& edge) { return static_cast<int>((max(edge.position, close) - close) >> 32); };
    const auto last_bin = [&](const Edge& edge) { return static_cast<int>((edge.position + close) >> 32); };

    // Both ends of the peaks' reaches ascend; where two are equal, a low end comes first.
    edges += static_cast<long long>(blockIdx.x) * 2 * most_peaks * kTile + lane;
    for (int i = warp; i < n; i += n_warps) {
        const Long low = low_end(i), high = high_end(i);
        int other = -1, first = i;  // heaviest of the peaks before this one that reach its low end
        for (; first > 0 && high_end(first - 1) >= low; --first) {
            if (other < 0 || weight[first - 1] >= weight[other]) other = first - 1;
        }
        int with = other >= 0 && weight[other] >= weight[i] ? other : i;
        edges[(i + first) * kTile] = Edge{low, entry_of(other, lane), entry_of(with, lane)};
        other = -1;
        int following = i + 1;  // the same of those after it and its high end
        for (; following < n && low_end(following) <= high; ++following) {
            if (other < 0 || weight[following] > weight[other]) other = following;
        }
        with = other >= 0 && weight[other] > weight[i] ? other : i;
        edges[(i + following) * kTile] = Edge{high, entry_of(with, lane), entry_of(other, lane)};
    }
    __syncthreads();
    // Each edge fills the bins that it is the first to touch, and those up to the next edge.
    table += static_cast<long long>(blockIdx.x) * kFineBins * kTile + lane;
    for (int e = warp; e < 2 * n; e += n_warps) {
        const Edge edge = edges[e * kTile];
        int bin = first_bin(edge);
        if (e > 0) bin = max(bin, last_bin(edges[(e - 1) * kTile]) + 1);
        for (; bin <= last_bin(edge); ++bin) {
            bool changes = false;
            for (int other = e; other < 2 * n && first_bin(edges[other * kTile]) <= bin; ++other) {
                changes = changes || edges[other * kTile].before != edges[other * kTile].after;
            }
            table[bin * kTile] = static_cast<unsigned short>(changes ? kFirstEdge + e : edge.before);
        }
        const int stop = e + 1 < 2 * n ? first_bin(edges[(e + 1) * kTile]) : 0;
        for (; bin < stop && edge.after; ++bin) table[bin * kTile] = edge.after;
    }
    __syncthreads();
    for (int e = warp; e + 1 < 2 * n; e += n_warps) {
        if (first_bin(edges[(e + 1) * kTile]) <= last_bin(edges[e * kTile])) edges[e * kTile].after |= kMore;
    }
}

// What a lane needs for looking ions up for its query.
struct Column {
    const char* table;             // as bytes, so that a place in it is one addition
    const Edge* edges;
    const Long* weights;           // of the tile: packed, by entries
    int most_charges;
    const double* bins_of_charge;  // bins in a thomson, divided by each charge
    Long close;
    Word (*bins)[kLongest];        // of N-terminal and of C-terminal ions, as bytes of the table, and where in the bin they lie
    Word (*places)[kLongest];
};

constexpr Word kBytesOfBin = kTile * sizeof(unsigned short);

__device__ void lay_down(const Column& column, bool is_c, int number, bool is_there, double target, double bins_of_thomson) {
    const Long position = is_there ? position_of(target, bins_of_thomson) : ~0ull;
    column.places[is_c][number] = static_cast<Word>(position);
    column.bins[is_c][number] = min(static_cast<Word>(position >> 32), kFineBins - 1u) * kBytesOfBin;
}

__device__ int entry_at(const Column& column, Word bin) { return *reinterpret_cast<const unsigned short*>(column.table + bin); }

// Entry of the peak that an ion matches which lies in a bin with edges. `is_close` is set where rounding decides.
__device__ int entry_at_edge(const Column& column, bool is_c, int number, bool& is_close) {
    const Word bin = column.bins[is_c][number];
    const Long position = static_cast<Long>(bin / kBytesOfBin) << 32 | column.places[is_c][number];
    const Edge* next = column.edges + (entry_at(column, bin) - kFirstEdge) * kTile;
    Edge edge = *next;
    int entry = edge.before;
    while (position + column.close >= edge.position) {
        const int after = edge.after & (kMore - 1);
        is_close = is_close || (position <= edge.position + column.close && edge.before != after);
        entry = after;
        if (!(edge.after & kMore)) break;
        next += kTile;
        edge = *next;
    }
    return entry;
}

// Matches the ions of all series and charges up to `charges` (none for 0) of a stretch of a peptide. Lane j knows the sums of masses from
// the N-terminus to the j-th of the `n` places of the stretch, and to the one 32 further on. Returns the packed sum of all ions; where bit
// j of `stops` is set, the sum up to place j is also added to one of `sums`, one after another.
__device__ __forceinline__ Long match_ions(const Settings& settings, const Column& column, double prefix, double prefix_beyond,
                                           double total, int n, Long stops, Long* sums, int charges, bool& is_close) {
    const int lane = threadIdx.x & 31;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    Long whole = 0;
    for (int z = 1; z <= column.most_charges; ++z) {
        const double scale = column.bins_of_charge[z - 1], protons = (z - 1) * kProtonMass;
        for (int series = 0; series < max(n_n, n_c); ++series) {
            const double from_n = protons + settings.n_term_series[series], from_c = protons + total + settings.c_term_series[series];
            __syncwarp();
            lay_down(column, false, lane, series < n_n && lane < n, from_n + prefix, scale);
            lay_down(column, true, lane, series < n_c && lane < n, from_c - prefix, scale);
            if (n > 32) {
                lay_down(column, false, lane + 32, series < n_n && lane + 32 < n, from_n + prefix_beyond, scale);
                lay_down(column, true, lane + 32, series < n_c && lane + 32 < n, from_c - prefix_beyond, scale);
            }
            __syncwarp();
            if (z > charges) continue;
            Long sum = 0;
            Long* next = sums;
#pragma unroll 1
            for (int begun = 0; begun < n; begun += kIonsTogether) {
                int entry[2][kIonsTogether], all = 0;
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) {
                    entry[0][j] = entry_at(column, column.bins[0][begun + j]);
                    entry[1][j] = entry_at(column, column.bins[1][begun + j]);
                    all |= entry[0][j] | entry[1][j];
                }
                Long sums_here[kIonsTogether];  // of the ion alone for now
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) sums_here[j] = 0;
                if (all >= kFirstEdge) {
                    Word at_edge = 0;
#pragma unroll
                    for (int j = 0; j < 2 * kIonsTogether; ++j) {
                        int& one = entry[j & 1][j >> 1];
                        at_edge |= one >= kFirstEdge ? 1u << j : 0u;
                        one = one >= kFirstEdge ? 0 : one;
                    }
#pragma unroll 1
                    for (; at_edge; at_edge &= at_edge - 1) {
                        const int which = __ffs(static_cast<int>(at_edge)) - 1;
                        Long more = column.weights[entry_at_edge(column, which & 1, begun + (which >> 1), is_close)];
                        if (which & 1) more = as_c_terminal(more);
#pragma unroll
                        for (int j = 0; j < kIonsTogether; ++j) sums_here[j] += which >> 1 == j ? more : 0;
                    }
                }
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) {
                    sum += sums_here[j] + column.weights[entry[0][j]] + as_c_terminal(column.weights[entry[1][j]]);
                    sums_here[j] = sum;
                }
                const Word stops_here = static_cast<Word>(stops >> begun) & ((1u << kIonsTogether) - 1);
                if (stops_here) {
#pragma unroll
                    for (int j = 0; j < kIonsTogether; ++j) {
                        if (stops_here >> j & 1u) {
                            *next++ += sums_here[j];
                        }
                    }
                }
            }
            whole += sum;
        }
    }
    return whole;
}

// The same for one arrangement of a peptide and one query, in the processor's arithmetic. It is rare, and not inlined because its registers
// would be missed elsewhere.
__device__ __noinline__ Long match_exactly(const Settings& settings, const Inputs& in, const Form& form, Long sites, int query, int charges,
                                           double units) {
    const int first_peak = in.offsets[query], n_peaks = in.offsets[query + 1] - first_peak;
    const double* mz = in.mz + first_peak;
    const float* weight = in.weight + first_peak;
    double n_term = settings.n_term_mass, c_term = settings.c_term_mass;
#pragma unroll 1
    for (int t = 0; t < form.n_slots; ++t) {
        const int site = static_cast<int>(sites >> (8 * t) & 255u);
        if (site == 0) n_term += in.modification_mass[form.modification[t]];
        if (site == form.length + 1) c_term += in.modification_mass[form.modification[t]];
    }
    const auto mass_of = [&](int i) {
        double mass = settings.residue_mass[in.residues[form.position + i] - 65];
#pragma unroll 1
        for (int t = 0; t < form.n_slots; ++t) {
            if (static_cast<int>(sites >> (8 * t) & 255u) == i + 1) mass += in.modification_mass[form.modification[t]];
        }
        return mass;
    };
    double total = n_term;
#pragma unroll 1
    for (int i = 0; i < form.length; ++i) total += mass_of(i);
    total += c_term;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    const double absolute = settings.fragment_absolute, relative = settings.fragment_relative;
    Long sum_n = 0, sum_c = 0;
    double prefix = n_term;
    for (int i = 0; i < form.length - 1; ++i) {
        prefix += mass_of(i);
        for (int series = 0; series < n_n + n_c; ++series) {
            const bool is_n = series < n_n;
            const double single = is_n ? settings.n_term_series[series] : total + settings.c_term_series[series - n_n];
#pragma unroll 1
            for (int z = 1; z <= charges; ++z) {
                const double target = single / z + (z - 1) * kProtonMass / z + (is_n ? 1.0 : -1.0) / z * prefix;
                const int first = mass_bound(mz, n_peaks, target - (absolute + relative * target) - 1e-6, false);
                const int peak = heaviest_peak(mz, weight, first, n_peaks, target, absolute, relative);
                if (peak < 0) continue;
                if (is_n) {
                    sum_n += packed(weight[peak], units);
                } else {
                    sum_c += packed(weight[peak], units);
                }
            }
        }
    }
    return sum_n + as_c_terminal(sum_c);
}

// What a warp has in hand: a peptide with a combination of modifications, and what its arrangements have in common. It lies in shared
// memory because all lanes know the same of it.
struct Family {
    Form form;
    Word peptide, window;
    int n_ions, n_states, n_sites;
    bool one_by_one;
    Long ways;          // how many arrangements
    Long sites_of_any;  // residues on which any modification may sit
    Long strides;       // one byte for each slot: what a modification there adds to the number of a state
    double total;       // mass of the peptide
};

// For each modification of an arrangement, which of the kept sums is to be added (that of the state that it ends, up to its site) and,
// times 256, which to be taken away (that of the state that it begins). How many there are is the same for all arrangements.
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

// Sum over this lane and those before it.
__device__ double sum_up_to_lane(double value, int lane) {
    for (int step = 1; step < 32; step <<= 1) {
        const double before = __shfl_up_sync(kEveryLane, value, step);
        if (lane >= step) value += before;
    }
    return value;
}

// Put a candidate among the best of a query, which one lane holds.
__device__ void keep(Candidate* kept, int n_kept, const Candidate& fresh) {
    int place = n_kept;
#pragma unroll 1
    for (; place > 0 && comes_before(fresh, kept[place - 1]); --place) {
        if (place < n_kept) kept[place] = kept[place - 1];
    }
    if (place < n_kept) kept[place] = fresh;
}

// A block scores its part of the candidates in the union of the windows of one tile: of `n_parts` blocks that share a tile, each takes
// every n_parts-th handful, because combinations of many modifications cost far more than others; those come first, so that no warp is
// left with one at the end. The block writes the best that it found for each query, as an item of that query; `bars` (queries,), zero at
// the start, holds the bits of the highest score of a last one kept by any warp: what scores less is in no warp's way to the best of all.
template <int kScore>
__device__ void search_tile(const Settings* settings_in_memory, const Inputs* inputs_in_memory, const int* first_item, const Edge* edges,
                            const unsigned short* table, const double* bins_of_thomson, double units, int n_queries,
                            int most_peaks, int* bars) {
    __shared__ Settings settings;
    __shared__ Inputs in;
    __shared__ int window_low[kMostDenseWindows], window_start[kMostDenseWindows + 1];
    __shared__ int next_handful;
    __shared__ double inverse_histogram, inverse_units;
    __shared__ float inverse_width;
    __shared__ float rough_factorial_log[1 << kCountBits];
    __shared__ double factorial_log[1 << kCountBits], bins_of_charge[kMostFragmentCharge];
    // Of each warp: the peptide with its modifications, sums of masses up to each residue, and where ions lie.
    __shared__ Family families[kDenseWarps];
    __shared__ double prefixes[kDenseWarps][kLongest];
    __shared__ __align__(16) Word bins[kDenseWarps][2][kLongest], places[kDenseWarps][2][kLongest];

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
    Long* weights = reinterpret_cast<Long*>(dynamic_shared);
    int* histogram = reinterpret_cast<int*>(weights + (most_peaks + 1) * kTile);
    int* lows = histogram + n_bins * kTile;
    int* highs = lows + n_combinations * isotopes * kTile;

    const int item = blockIdx.x, first_query = in.item_query[item], query = first_query + lane;
    const long long tile = first_query / kTile;
    const bool is_query = query < n_queries;
    const int first_peak = is_query ? in.offsets[query] : 0, n_peaks = is_query ? in.offsets[query + 1] - first_peak : 0;
    const float* weight = in.weight + first_peak;
    if (threadIdx.x == 0) {
        inverse_histogram = 1.0 / settings.histogram_width;
        inverse_width = static_cast<float>(inverse_histogram);
        inverse_units = 1.0 / units;
    }
    if (threadIdx.x < kMostFragmentCharge) bins_of_charge[threadIdx.x] = bins_of_thomson[tile] / (threadIdx.x + 1);
    for (int n = threadIdx.x; n < 1 << kCountBits; n += blockDim.x) {
        factorial_log[n] = in.factorial_log[n];
        rough_factorial_log[n] = static_cast<float>(factorial_log[n]);
    }
    for (int b = warp; b < n_bins; b += n_warps) histogram[b * kTile + lane] = 0;
    for (int k = warp; k <= most_peaks; k += n_warps) {
        weights[k * kTile + lane] = k > 0 && k <= n_peaks ? packed(weight[k - 1], units) : 0;
    }
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
    const int n_parts = first_item[first_query + 1] - first_item[first_query];
    const int stop = window_start[n_windows], n_handfuls = (stop + kTaken - 1) / kTaken;

    const int charges = is_query ? max(1, min(static_cast<int>(settings.max_fragment_charge), in.query_charge[query] - 1)) : 0;
    int most_charges = charges;
    for (int step = 16; step > 0; step >>= 1) most_charges = max(most_charges, __shfl_xor_sync(kEveryLane, most_charges, step));
    const Column column{reinterpret_cast<const char*>(table + tile * kFineBins * kTile + lane),
                        edges + tile * 2 * most_peaks * kTile + lane,
                        weights,
                        most_charges,
                        bins_of_charge,
                        close_of(bins_of_thomson[tile]),
                        bins[warp],
                        places[warp]};
    double* prefix = prefixes[warp];
    // Those of 32 arrangements lie where the ions lay, which are all matched by then.
    unsigned short (*steps)[kMostSlots] = reinterpret_cast<unsigned short (*)[kMostSlots]>(bins[warp]);
    Family& family = families[warp];
    const Form& form = family.form;

    Long sums[kMostSums];
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
        Word own_peptide = 0, own_position = 0;
        int own_window = 0, own_length = 0;
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

            // The peptide, one or two residues in each lane.
            const int length = __shfl_sync(kEveryLane, own_length, source);
            const unsigned char* residues = in.residues + __shfl_sync(kEveryLane, own_position, source);
            const int letter = lane < length ? residues[lane] - 65 : -1, letter_beyond = lane + 32 < length ? residues[lane + 32] - 65 : -1;
            const auto residues_in = [&](Word mask) {
                const Word here = __ballot_sync(kEveryLane, letter >= 0 && (mask >> letter & 1u));
                return here | static_cast<Long>(__ballot_sync(kEveryLane, letter_beyond >= 0 && (mask >> letter_beyond & 1u))) << 32;
            };
            __syncwarp();  // all lanes are done with the form before
            const unsigned char* slots = in.combination_slots + w / isotopes * kMostSlots;
            if (!first_arrangement(family.form, in, peptide, slots, residues_in, lane == 0)) continue;
            const double up_to = settings.n_term_mass + sum_up_to_lane(letter >= 0 ? settings.residue_mass[letter] : 0.0, lane);
            double up_to_beyond = __shfl_sync(kEveryLane, up_to, 31);
            if (length > 32) up_to_beyond += sum_up_to_lane(letter_beyond >= 0 ? settings.residue_mass[letter_beyond] : 0.0, lane);
            prefix[lane] = up_to;
            prefix[lane + 32] = up_to_beyond;
            __syncwarp();

            // How many arrangements there are, between how many states, and what a modification of each slot adds to a state's number.
            double total = settings.c_term_mass + __shfl_sync(kEveryLane, up_to_beyond, 31);
            double always = 0.0;  // mass of modifications that all ions from the N-terminus have
            Long ways = 1, sites_of_any = 0, strides = 0;
            int n_states = 1, stride = 1;
#pragma unroll 1
            for (int t = 0; t < form.n_slots; ++t) {
                const double mass = in.modification_mass[form.modification[t]];
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
            bool is_close = false;
            Long to_the_end = 0;  // sum of the last state
            // Lane s: the mass of state s, and the ions that can be in it, from the site at which it is reached at the earliest to that at
            // which it must be left.
            double state_mass = always;
            int begin = 0, end = family.n_ions, state = lane;
#pragma unroll 1
            for (int t = 0; t < form.n_slots && !family.one_by_one; ++t) {
                if (form.possible[t] == 0 || (t > 0 && form.modification[t - 1] == form.modification[t])) continue;
                const int n = slots_alike(form, t), here = state % (n + 1), last = __popcll(form.possible[t]) - n + here;
                state /= n + 1;
                state_mass += here * in.modification_mass[form.modification[t]];
                Long sites = form.possible[t];
#pragma unroll 1
                for (int k = 1; sites; ++k, sites &= sites - 1) {
                    const int residue = __ffsll(static_cast<long long>(sites)) - 1;
                    if (k == here) begin = max(begin, residue);
                    if (k == last + 1) end = min(end, residue);
                }
            }

            Word n_tried = 0;
#pragma unroll 1
            for (Long begun = 0; begun < family.ways && n_tried < settings.max_forms; begun += 32) {
                // Each lane one arrangement.
                Long own_sites = 0;
                bool is_there = begun + lane < family.ways, has_steps = false;
                int n_steps = 0;
                if (is_there) {
                    own_sites = sites_of_rank(form, static_cast<Word>(begun) + lane);
                    is_there = is_free(own_sites, form.n_slots);
                }
#pragma unroll 1
                for (Word tried = __ballot_sync(kEveryLane, is_there); tried && n_tried < settings.max_forms; tried &= tried - 1) {
                    const int arrangement = __ffs(static_cast<int>(tried)) - 1;
                    const Long sites = __shfl_sync(kEveryLane, own_sites, arrangement);
                    const Word form_number = n_tried++;
                    if (family.one_by_one || form_number == 0) {
                        is_close = false;
#pragma unroll 1
                        for (int s = 0; s < (family.one_by_one ? 1 : family.n_states); ++s) {
                            int from = 0, to = family.n_ions;
                            double mass = 0.0, mass_beyond = 0.0;
                            if (family.one_by_one) {
#pragma unroll 1
                                for (int t = 0; t < form.n_slots; ++t) {
                                    const int site = static_cast<int>(sites >> (8 * t) & 255u);
                                    const double more = in.modification_mass[form.modification[t]];
                                    if (site <= lane + 1) mass += more;
                                    if (site <= lane + 33) mass_beyond += more;
                                }
                            } else {
                                from = __shfl_sync(kEveryLane, begin, s);
                                to = __shfl_sync(kEveryLane, end, s);
                                mass = mass_beyond = __shfl_sync(kEveryLane, state_mass, s);
                                if (from > to) continue;
                            }
                            // Sums from the site where the state begins on; at that site it is 0.
                            const int first_site = __popcll(family.sites_of_any & ((1ull << from) - 1));
                            Long* next = sums + s * family.n_sites + first_site;
#pragma unroll 1
                            for (int k = first_site; k < family.n_sites && !family.one_by_one; ++k) sums[s * family.n_sites + k] = 0;
                            next += family.sites_of_any >> from & 1u;
                            to_the_end = match_ions(settings, column, prefix[min(from + lane, kLongest - 1)] + mass,
                                                    prefix[min(from + lane + 32, kLongest - 1)] + mass_beyond, family.total, to - from,
                                                    family.one_by_one ? 0 : family.sites_of_any >> from >> 1, next, in_window ? charges : 0,
                                                    is_close);
                        }
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
                    if (is_close) sum = match_exactly(settings, in, form, sites, query, charges, units);
                    const int count_n = static_cast<int>(sum >> kDotBits & 255u);
                    const int count_c = static_cast<int>(sum >> (kDotBits + kCountBits));
                    const double dot = static_cast<double>(static_cast<long long>(sum & ((1ull << kDotBits) - 1))) * inverse_units;
                    // In single precision first: most candidates are only counted, and far from the borders of a bin of the histogram.
                    float score = static_cast<float>(dot), place = 0.0f, doubt = 0.0f;
                    if (kScore == kHyperscore && dot > 0) {
                        score = rough_factorial_log[count_n] + rough_factorial_log[count_c] + logf(1.0f + 100.0f * score);
                        doubt = kDoubt * (1.0f + score);
                        place = score * inverse_width;
                    }
                    int bin = static_cast<int>(place);
                    const float in_bin = place - static_cast<float>(bin), threshold = fmaxf(bar, worst);
                    const bool is_candidate = score + doubt >= threshold && count_n + count_c >= settings.min_matched_ions;
                    if (kScore != kHyperscore || is_candidate || min(in_bin, 1.0f - in_bin) <= doubt * inverse_width) {
                        double exact = dot;
                        if (kScore == kHyperscore && dot > 0) {
                            exact = factorial_log[count_n] + factorial_log[count_c] + logarithm(1.0 + 100.0 * dot);
                        }
                        bin = static_cast<int>(min(exact * inverse_histogram, n_bins - 1.0));
                        score = static_cast<float>(exact);
                        if (is_candidate && score >= threshold) {
                            const Long key = static_cast<Long>(family.window) << kPeptideBits | family.peptide;
                            keep(kept, n_kept, Candidate{score, form_number, key, sites});
                            worst = kept[n_kept - 1].score;
                            if (worst > bar) atomicMax(&bars[query], __float_as_int(worst));  // scores are not negative
                        }
                    }
                    atomicAdd(&histogram[min(bin, n_bins - 1) * kTile + lane], 1);
                }
            }
        }
    }

    __syncthreads();
    if (is_query) {
        for (int b = warp; b < n_bins; b += n_warps) {
            const int n = histogram[b * kTile + lane];
            if (n) atomicAdd(&in.histogram[static_cast<long long>(query) * n_bins + b], n);
        }
    }
    // Half of the warps lay down their best, one of each query at a time, and the other half takes them up, until one warp has all.
    Candidate* laid_down = reinterpret_cast<Candidate*>(dynamic_shared);
    for (int left = n_warps; left > 1; left = (left + 1) / 2) {
        const int half = (left + 1) / 2;
        for (int j = 0; j < n_kept; ++j) {
            __syncthreads();
            if (warp >= half && warp < left) laid_down[(warp - half) * kTile + lane] = kept[j];
            __syncthreads();
            if (warp + half < left) keep(kept, n_kept, laid_down[warp * kTile + lane]);
        }
    }
    if (warp > 0 || !is_query) return;
    const long long row = first_item[query] + static_cast<long long>(in.item_part[item]);
    for (int j = 0; j < n_kept; ++j) in.kept_of_items[row * n_kept + j] = kept[j];
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, kDenseBlocks)
search_tile_by_dot_product(const Settings* settings, const Inputs* inputs, const int* first_item, const Edge* edges,
                           const unsigned short* table, const double* bins_of_thomson, double units, int n_queries,
                           int most_peaks, int* bars) {
    search_tile<kSpectralDotProduct>(settings, inputs, first_item, edges, table, bins_of_thomson, units, n_queries,
                                     most_peaks, bars);
}

extern "C" __global__ void __launch_bounds__(32 * kDenseWarps, kDenseBlocks)
search_tile_by_hyperscore(const Settings* settings, const Inputs* inputs, const int* first_item, const Edge* edges,
                          const unsigned short* table, const double* bins_of_thomson, double units, int n_queries,
                          int most_peaks, int* bars) {
    search_tile<kHyperscore>(settings, inputs, first_item, edges, table, bins_of_thomson, units, n_queries, most_peaks,
                             bars);
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
