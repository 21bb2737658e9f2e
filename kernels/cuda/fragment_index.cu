// Fragment-ion index: wide precursor windows are searched by looking up a spectrum's peaks among the ions of all forms. The same
// candidates, counters, scores and histograms as kernels/cpu/postings.py, bit for bit.
//
// The idea is MSFragger's (Kong 2017, Nature Methods 14:513). Forms (peptides with an arrangement of variable modifications) stand in
// order of mass and are cut into chunks, as many forms as a block has counters for in its shared memory. A posting is an ion and its form:
// the low 16 bits of the ion's key, the end of the peptide from which it counts, and the number of the form in its chunk, in one word.
//
// Building: the postings of a chunk are sorted by bins of their keys (counting sort: count the ions of each bin, sum, place). Inside a bin
// they lie in no order. A bin is narrower than the reach of 16 bits, so those in the two bins at the ends of a range of keys are told from
// their neighbours by comparing the low bits; the bins between lie in the range as a whole.
//
// Searching: a block takes a query and a chunk (a pair) at a time, in order of chunks, so that what all blocks read lies in the cache of
// the second level. The ranges of keys of the query are looked up in the bins, each posting in them adds its peak's weight and a match to
// the counter of its form, and then all counters are looked at and cleared. Several blocks on a multiprocessor are in different phases:
// some wait for memory, some add, some rank. The best of each query are kept in global memory, where one warp at a time changes them.
//
// Half of all tryptic peptides end in K and half in R, so that most postings that are visited are those of the last residue alone. Such
// ions are in no bin: the last letter of each form stands in a byte, and what it adds is added when counters are ranked.
//
// Sums of masses are made in the order of the processor's kernel. Compile with --fmad=false: a fused multiply-add rounds differently.

using Word = unsigned int;
using Long = unsigned long long;

constexpr int kMostThreads = 1024;
constexpr int kLongest = 64;             // residues of a peptide, and one
constexpr int kTile = 128;               // ranges of keys that are looked up together: four for each lane of a warp
constexpr int kRows = 8;                 // of 32 postings that a warp takes at once
constexpr int kStrip = 512;              // counters that a warp looks at together: 16 in each lane
constexpr int kFound = 256;              // candidates of a pair that are noted as they come
constexpr int kPlaceBits = 40;           // of such a note: the place of the form; its isotope error stands above
constexpr long long kPlaceMask = (1ll << kPlaceBits) - 1;
constexpr int kMostWindows = 16;         // isotope errors
constexpr int kCounts = 256;             // matched ions from one end that a counter can tell
constexpr int kSummed = 4;               // bins that a thread sums at once
constexpr Word kEveryLane = 0xffffffffu;
constexpr Word kCTerminal = 1u << 15;
constexpr Word kFormMask = kCTerminal - 1;
constexpr Word kOneNTerminal = 1, kOneCTerminal = 256;  // matches in a counter: weights << 16 | C-terminal << 8 | N-terminal
constexpr unsigned char kNone = 255;
constexpr long long kNobody = 0x7fffffffffffffffll;
constexpr double kProtonMass = 1.007276466621;
constexpr double kKeysOfDalton = 524288.0;
constexpr long long kLastKey = 0xffffffffll;
constexpr int kMostSeries = 3;           // from each end
constexpr int kLetters = 26;
constexpr int kEnds = 32;                // kinds of ends: a letter, or none
constexpr unsigned char kNoEnd = kEnds - 1;

// ---------------------------------------------------------------------------------------------------------------- building

// Where the postings and the bins of a chunk lie. The table of bins has two words more than bins: while ions are counted and placed, word
// b + 1 is the cursor of bin b; afterwards word b is where bin b starts and word b + 1 where it ends.
struct Chunk {
    Long first_posting, first_bin;
};

// What masses are made of. kernels/cuda/fragment_index.py writes it; every member has 8 bytes, so that there is no padding.
struct Masses {
    double residue_mass[kLetters];
    double n_term_mass, c_term_mass;
    double n_term_series[kMostSeries], c_term_series[kMostSeries];
    long long n_n_term_series, n_c_term_series;
    long long arrangement_bits, peptide_mask;
    long long n_slots;
    long long end_key[kLetters];
};

__device__ Word key_of(double mass) {
    const long long key = static_cast<long long>(mass * kKeysOfDalton);
    return static_cast<Word>(key < 0 ? 0 : key > kLastKey ? kLastKey : key);
}

// One thread for each form counts its ions in the bins of its chunk (kPlace false), or puts them there. `ends` (n_forms,): for each form
// the letter of its last residue, where the ion of that residue alone has the key of the letter; it is in no bin. `forms_of_ends` (chunks,
// kEnds): how many forms of a chunk have each letter.
template <bool kPlace>
__device__ void sort_ions(const Masses* masses_in_memory, const double* modification_mass, const unsigned int* position,
                          const unsigned char* length_of, const unsigned char* residues, const long long* form_code,
                          const unsigned char* site, const unsigned char* modification, int n_forms, int forms_of_chunk, int bin_shift,
                          const Chunk* chunks, Word* bins, Word* postings, unsigned char* ends, Word* forms_of_ends) {
    __shared__ Masses masses;
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(Masses) / sizeof(Long)); i += blockDim.x) {
        reinterpret_cast<Long*>(&masses)[i] = reinterpret_cast<const Long*>(masses_in_memory)[i];
    }
    __syncthreads();  // the masses are whole
    const int form = blockIdx.x * blockDim.x + threadIdx.x;
    if (form >= n_forms) return;
    const Long peptide = static_cast<Long>(form_code[form] >> masses.arrangement_bits & masses.peptide_mask);
    const unsigned char* letters = residues + position[peptide];
    const int length = length_of[peptide], n_slots = static_cast<int>(masses.n_slots);
    double sum[kLongest];
    for (int i = 0; i < length; ++i) sum[i] = masses.residue_mass[letters[i] - 65];
    double n_term = masses.n_term_mass, c_term = masses.c_term_mass;
    for (int t = 0; t < n_slots; ++t) {
        const long long slot = static_cast<long long>(form) * n_slots + t;
        if (modification[slot] == kNone) break;
        const double more = modification_mass[modification[slot]];
        if (site[slot] == 0) {
            n_term += more;
        } else if (site[slot] == length + 1) {
            c_term += more;
        } else {
            sum[site[slot] - 1] += more;
        }
    }
    double total = n_term;
    for (int i = 0; i < length; ++i) {
        total += sum[i];
        sum[i] = total;
    }
    total += c_term;
    const int chunk = form / forms_of_chunk;
    const Word number = form - chunk * forms_of_chunk;
    const Chunk here = chunks[chunk];
    const Word last = static_cast<Word>(chunks[chunk + 1].first_bin - here.first_bin) - 3;
    Word* own_bins = bins + here.first_bin;
    Word* own_postings = postings + here.first_posting;
    const int n_n = static_cast<int>(masses.n_n_term_series), n_c = static_cast<int>(masses.n_c_term_series);
    if (!kPlace) ends[form] = kNoEnd;
    for (int series = 0; series < n_n + n_c; ++series) {
        const bool is_n = series < n_n;
        const double start = (is_n ? masses.n_term_series[series] : masses.c_term_series[series - n_n]) - kProtonMass;
        for (int i = 0; i < length - 1; ++i) {
            const Word key = key_of(is_n ? start + sum[i] : start + total - sum[i]);
            if (series == n_n && i == length - 2) {
                const int letter = letters[length - 1] - 65;
                const bool is_end = static_cast<long long>(key) == masses.end_key[letter];
                if (is_end) {
                    if (!kPlace) {
                        ends[form] = static_cast<unsigned char>(letter);
                        atomicAdd(&forms_of_ends[chunk * kEnds + letter], 1u);
                    }
                    continue;
                }
            }
            const Word bin = min(last, key >> bin_shift);
            if (kPlace) {
                own_postings[atomicAdd(&own_bins[bin + 1], 1u)] = key << 16 | (is_n ? 0u : kCTerminal) | number;
            } else {
                atomicAdd(&own_bins[bin + 2], 1u);
            }
        }
    }
}

extern "C" __global__ void count_ions(const Masses* masses, const double* modification_mass, const unsigned int* position,
                                      const unsigned char* length_of, const unsigned char* residues, const long long* form_code,
                                      const unsigned char* site, const unsigned char* modification, int n_forms, int forms_of_chunk,
                                      int bin_shift, const Chunk* chunks, Word* bins, Word* postings, unsigned char* ends,
                                      Word* forms_of_ends) {
    sort_ions<false>(masses, modification_mass, position, length_of, residues, form_code, site, modification, n_forms, forms_of_chunk,
                     bin_shift, chunks, bins, postings, ends, forms_of_ends);
}

extern "C" __global__ void place_ions(const Masses* masses, const double* modification_mass, const unsigned int* position,
                                      const unsigned char* length_of, const unsigned char* residues, const long long* form_code,
                                      const unsigned char* site, const unsigned char* modification, int n_forms, int forms_of_chunk,
                                      int bin_shift, const Chunk* chunks, Word* bins, Word* postings, unsigned char* ends,
                                      Word* forms_of_ends) {
    sort_ions<true>(masses, modification_mass, position, length_of, residues, form_code, site, modification, n_forms, forms_of_chunk,
                    bin_shift, chunks, bins, postings, ends, forms_of_ends);
}

__device__ Word sum_of_lanes_before(Word value, int lane) {
    Word sum = value;
    for (int step = 1; step < 32; step <<= 1) {
        const Word below = __shfl_up_sync(kEveryLane, sum, step);
        if (lane >= step) sum += below;
    }
    return sum - value;
}

// A block for each chunk replaces the numbers of ions in its bins by their running sums.
extern "C" __global__ void sum_bins(const Chunk* chunks, Word* bins) {
    __shared__ Word total_of_warps[kMostThreads / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const Long first = chunks[blockIdx.x].first_bin;
    const Word n = static_cast<Word>(chunks[blockIdx.x + 1].first_bin - first);
    Word* table = bins + first;
    Word before = 0;
    for (Word start = 0; start < n; start += blockDim.x * kSummed) {
        const Word own = start + threadIdx.x * kSummed;
        Word value[kSummed], total = 0;
        for (int j = 0; j < kSummed; ++j) {
            total += own + j < n ? table[own + j] : 0;
            value[j] = total;
        }
        const Word of_warp = sum_of_lanes_before(total, lane);
        if (lane == 31) total_of_warps[warp] = of_warp + total;
        __syncthreads();  // the totals of all warps are there
        Word of_block = before;
        for (int w = 0; w < n_warps; ++w) {
            of_block += w < warp ? total_of_warps[w] : 0;
            before += total_of_warps[w];
        }
        for (int j = 0; j < kSummed; ++j) {
            if (own + j < n) table[own + j] = of_block + of_warp + value[j];
        }
        __syncthreads();  // all have read the totals, which change in the next round
    }
}

// --------------------------------------------------------------------------------------------------------------- searching

// What a block does at a time: where the ranges of keys of a query lie, and in which chunk they are looked up.
struct __align__(16) Pair {
    int query, chunk, first_segment, n_segments;
};

struct __align__(16) FourWords {
    Word of[4];
};

// One warp for each query: what ions of one residue add to a counter, for each letter. (queries, kEnds)
extern "C" __global__ void weigh_ends(const Masses* masses, const int* segment_offsets, const Word* segment_low, const Word* segment_high,
                                      const unsigned short* segment_weight, int n_queries, Word* ends) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (query >= n_queries) return;
    const long long key = lane < kLetters ? masses->end_key[lane] : -1;
    Word added = 0;
    for (int s = segment_offsets[query]; s < segment_offsets[query + 1]; ++s) {
        const bool is_inside = key >= static_cast<long long>(segment_low[s]) && key < static_cast<long long>(segment_high[s]);
        added += is_inside ? static_cast<Word>(segment_weight[s]) << 16 | kOneCTerminal : 0;
    }
    ends[query * kEnds + lane] = added;
}

// A candidate that may be kept: of equal scores, that of the lower number comes first.
struct __align__(16) Candidate {
    long long number;
    float score;
};

__device__ bool comes_before(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.number < b.number;
}

__device__ Candidate nobody() { return Candidate{kNobody, __int_as_float(static_cast<int>(0xff800000u))}; }

__device__ Candidate candidate_of_lane(const Candidate& mine, int lane) {
    return Candidate{__shfl_sync(kEveryLane, mine.number, lane), __shfl_sync(kEveryLane, mine.score, lane)};
}

// The list of the best is spread over a warp: lane j holds the j-th best. All lanes insert the same candidate.
__device__ void insert(Candidate& kept, const Candidate& fresh, int lane) {
    const int place = __popc(__ballot_sync(kEveryLane, comes_before(kept, fresh)));
    const Candidate above{__shfl_up_sync(kEveryLane, kept.number, 1), __shfl_up_sync(kEveryLane, kept.score, 1)};
    if (lane == place) kept = fresh;
    if (lane > place) kept = above;
}

// A range of keys in a chunk: postings `begin:end`. Those before `inner_begin` must not be below `lowest`, those from `inner_end` on not
// above `highest`, both compared as words; the others lie between. Each adds `added`, and a match, to a counter.
struct __align__(16) Range {
    Word begin, end, inner_begin, inner_end, lowest, highest, added;
};

// What a block knows of its pair besides its counters.
struct Lookup {
    Range range[kTile];
    Pair pair;
    int low[kMostWindows], high[kMostWindows];                  // forms of the chunk in the window of each isotope error
    int joined_low[kMostWindows], joined_length[kMostWindows];  // the same, windows that touch joined
    int n_joined, next_rows, n_found, n_late;
    float bar;
    Word of_end[kEnds];        // what the ion of the last residue adds
    int bin_of_end[kEnds];     // of the histogram, for forms without another match; -1 without that one
    int has_ends, has_good_ends;
    float of_count[kCounts];
};

// Add the postings of up to kTile ranges to the counters. Ranges are cut into rows of 32 postings, one for each lane; a warp takes kRows
// rows, of one range or of many, at a time, so that as many loads are under way. Which range a row belongs to, a warp finds by the running
// sums of the ranges' rows, of which each lane holds four.
__device__ void add_postings(Lookup& lookup, Word* counters, const Word* postings, int n_ranges, int lane) {
    Word rows[4], total = 0;
    for (int j = 0; j < 4; ++j) {
        const int s = 4 * lane + j;
        if (s < n_ranges) total += (lookup.range[s].end - lookup.range[s].begin + 31) >> 5;
        rows[j] = total;
    }
    const Word before = sum_of_lanes_before(total, lane);
    const Word n_rows = __shfl_sync(kEveryLane, before + total, 31);
    Word taken = lane == 0 ? static_cast<Word>(atomicAdd(&lookup.next_rows, kRows)) : 0;
    taken = __shfl_sync(kEveryLane, taken, 0);
    while (taken < n_rows) {
        Word next = lane == 0 ? static_cast<Word>(atomicAdd(&lookup.next_rows, kRows)) : 0;
        const Word row = taken + (lane & (kRows - 1));
        int owner = 0;
        for (int step = 16; step > 0; step >>= 1) {
            const Word there = __shfl_sync(kEveryLane, before, owner + step);
            if (there <= row) owner += step;
        }
        const Word inside = row - __shfl_sync(kEveryLane, before, owner);
        const Word after_first = __shfl_sync(kEveryLane, rows[0], owner), after_second = __shfl_sync(kEveryLane, rows[1], owner);
        const Word after_third = __shfl_sync(kEveryLane, rows[2], owner);
        const int j = (inside >= after_first) + (inside >= after_second) + (inside >= after_third);
        const int own_range = 4 * owner + j;
        const Word of_range = inside - (j == 0 ? 0 : j == 1 ? after_first : j == 2 ? after_second : after_third);
        Word own_start = 0, own_end = 0;
        if (row < n_rows) {
            own_start = lookup.range[own_range].begin + 32 * of_range;
            own_end = lookup.range[own_range].end;
        }
        Word posting[kRows], at[kRows], is_there = 0;
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            at[k] = __shfl_sync(kEveryLane, own_start, k) + lane;
            const bool is_inside = at[k] < __shfl_sync(kEveryLane, own_end, k);
            is_there |= is_inside ? 1u << k : 0u;
            posting[k] = is_inside ? __ldcg(postings + at[k]) : 0;  // past the first cache, which has the table of scores
        }
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            const Range range = lookup.range[__shfl_sync(kEveryLane, own_range, k)];
            if ((is_there >> k & 1u) && (at[k] >= range.inner_begin || posting[k] >= range.lowest) &&
                (at[k] < range.inner_end || posting[k] <= range.highest)) {
                atomicAdd(&counters[posting[k] & kFormMask], range.added + (posting[k] & kCTerminal ? kOneCTerminal : kOneNTerminal));
            }
        }
        taken = __shfl_sync(kEveryLane, next, 0);
    }
}

// Find where ranges of keys lie among the postings of a chunk; threads take one each.
__device__ void look_up(Lookup& lookup, const Word* segment_low, const Word* segment_high, const unsigned short* segment_weight,
                        int first, int n, const Word* bins, Word n_bins, int bin_shift) {
    for (int s = blockDim.x - 1 - threadIdx.x; s < n; s += blockDim.x) {  // from the last on: the first have the histogram
        const Word low = segment_low[first + s], last = segment_high[first + s] - 1;
        const Word first_bin = low >> bin_shift, last_bin = min(last >> bin_shift, n_bins - 1);
        Range range{0, 0, 0, 0, low << 16, last << 16 | 0xffffu, static_cast<Word>(segment_weight[first + s]) << 16};
        if (first_bin < n_bins) {
            range.begin = bins[first_bin];
            range.inner_begin = bins[first_bin + 1];
            range.end = bins[last_bin + 1];
            range.inner_end = last_bin == last >> bin_shift ? bins[last_bin] : range.end;
        }
        lookup.range[s] = range;
    }
}

// One thread: the windows of a query in a chunk, and the same with those that touch joined.
__device__ void find_windows(Lookup& lookup, const int* windows, int n_windows, int first_form, int n_forms) {
    int n = 0;
    for (int e = 0; e < n_windows; ++e) {
        const int low = max(0, windows[2 * e] - first_form), high = min(n_forms, windows[2 * e + 1] - first_form);
        lookup.low[e] = low;
        lookup.high[e] = high;
        if (low >= high) continue;
        if (n > 0 && lookup.joined_low[n - 1] + lookup.joined_length[n - 1] == low) {
            lookup.joined_length[n - 1] += high - low;
        } else {
            lookup.joined_low[n] = low;
            lookup.joined_length[n++] = high - low;
        }
    }
    lookup.n_joined = n;
}

// One warp puts what its block has found among the best of the query in global memory. Blocks that have the same query wait for one
// another at its lock.
__device__ void merge(Lookup& lookup, Candidate* found, const long long* form_code, int isotope_shift, int query, int n_kept,
                      float* best_score, long long* best_number, int* locks, int lane) {
    const int n_found = min(kFound, lookup.n_found), n = n_found + lookup.n_late;
    if (n == 0) return;
    if (lane == 0) {
        while (atomicCAS(&locks[query], 0, 1) != 0) {
        }
    }
    __syncwarp();
    __threadfence();
    volatile float* score = best_score + static_cast<long long>(query) * n_kept;
    volatile long long* number = best_number + static_cast<long long>(query) * n_kept;
    Candidate kept = nobody();
    if (lane < n_kept && number[lane] >= 0) kept = Candidate{number[lane], score[lane]};
    for (int first = 0; first < n; first += 32) {
        const int i = first + lane;
        Candidate mine = nobody();
        if (i < n_found) {
            const long long place = found[i].number;
            mine = Candidate{form_code[place & kPlaceMask] + (place >> kPlaceBits << isotope_shift), found[i].score};
        } else if (i < n) {
            mine = found[kFound + i - n_found];
        }
        while (true) {
            const Candidate last = candidate_of_lane(kept, n_kept - 1);
            const Word better = __ballot_sync(kEveryLane, comes_before(mine, last));
            if (better == 0) break;
            const int source = __ffs(static_cast<int>(better)) - 1;
            insert(kept, candidate_of_lane(mine, source), lane);
            if (lane == source) mine = nobody();
        }
    }
    if (lane < n_kept && kept.number != kNobody) {
        score[lane] = kept.score;
        number[lane] = kept.number;
    }
    __threadfence();
    __syncwarp();
    if (lane == 0) {
        atomicCAS(&locks[query], 1, 0);
        lookup.n_found = 0;
        lookup.n_late = 0;
    }
}

// Blocks take pairs one after the other until none is left. Between barriers a block
//   looks the ranges of a query up in a chunk, while other threads give the last pair's histogram away;
//   adds postings, while one warp merges what the last pair found, and a thread takes the next pair;
//   ranks the counters.
// Forms with no other match than that of their last residue have one score for each letter: where none of these is good enough, and all
// of a chunk lies in the window, they are counted by letter and not looked at.
//
// Dynamic shared memory: counters of the forms of a chunk; candidates that were found, as they come, with the place of the form instead of
// its number; where there are too many of those, n_kept for each warp; and the histogram in several copies side by side, of which lanes
// use different ones. Candidates without a match are not counted.
//
// windows: (queries, n_windows, 2) forms of the whole index; those on the device begin with `first_form`. best_*: (queries, n_kept).
extern "C" __global__ void __launch_bounds__(kMostThreads)
search_chunks(const Word* postings, const Word* bins, const Chunk* chunks, const unsigned char* ends, const Word* forms_of_ends,
              const long long* form_code, int first_form, int n_forms, int forms_of_chunk, int bin_shift, const Pair* pairs, int n_pairs,
              int* next_pair, const int* windows, int n_windows, int isotope_shift, const Word* segment_low, const Word* segment_high,
              const unsigned short* segment_weight, const Word* ends_of_queries, const float* of_count, const float* of_dot,
              int min_matched_ions, float inverse_width, int n_bins, int n_copies, int n_kept, int* histogram, float* best_score,
              long long* best_number, int* locks) {
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    __shared__ Lookup lookup;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    Word* counters = reinterpret_cast<Word*>(dynamic_shared);
    Candidate* found = reinterpret_cast<Candidate*>(counters + forms_of_chunk);
    int* own_histogram = reinterpret_cast<int*>(found + kFound + n_warps * n_kept);
    int* of_lane = own_histogram + (lane & (n_copies - 1));
    for (int i = threadIdx.x; i < forms_of_chunk; i += blockDim.x) counters[i] = 0;
    for (int i = threadIdx.x; i < n_bins * n_copies; i += blockDim.x) own_histogram[i] = 0;
    for (int i = threadIdx.x; i < kCounts; i += blockDim.x) lookup.of_count[i] = of_count[i];
    if (threadIdx.x == 0) {
        const int p = atomicAdd(next_pair, 1);
        lookup.pair = p < n_pairs ? pairs[p] : Pair{-1, 0, 0, 0};
        lookup.n_found = 0;
        lookup.n_late = 0;
    }
    __syncthreads();

    int previous = -1;  // query whose candidates are yet to be merged
    while (true) {
        const Pair pair = lookup.pair;
        if (pair.query < 0) break;
        const Chunk chunk = chunks[pair.chunk];
        const Word n_chunk_bins = static_cast<Word>(chunks[pair.chunk + 1].first_bin - chunk.first_bin) - 2;
        const int chunk_form = pair.chunk * forms_of_chunk;  // among those on the device
        const int n_chunk_forms = min(forms_of_chunk, n_forms - chunk_form);
        Pair following{-1, 0, 0, 0};
        for (int tile = 0; tile < pair.n_segments; tile += kTile) {
            const int n_ranges = min(kTile, pair.n_segments - tile);
            look_up(lookup, segment_low, segment_high, segment_weight, pair.first_segment + tile, n_ranges, bins + chunk.first_bin,
                    n_chunk_bins, bin_shift);
            if (threadIdx.x == blockDim.x - 1) lookup.next_rows = 0;
            if (tile == 0 && warp == n_warps - 2) {
                // What scores less than the last one kept is in nobody's way. A value that is out of date is lower, and does no harm.
                const float last = *static_cast<volatile float*>(best_score + static_cast<long long>(pair.query) * n_kept + n_kept - 1);
                const Word added = ends_of_queries[pair.query * kEnds + lane];
                const int c = added >> 8 & 255;
                const float score = (lookup.of_count[0] + lookup.of_count[c]) + of_dot[added >> 16];
                const bool is_good = added != 0 && score >= last && c >= min_matched_ions;
                lookup.of_end[lane] = added;
                lookup.bin_of_end[lane] = added != 0 ? min(n_bins - 1, static_cast<int>(score * inverse_width)) : -1;
                const bool has_ends = __any_sync(kEveryLane, added != 0), has_good_ends = __any_sync(kEveryLane, is_good);
                if (lane == 0) {
                    lookup.bar = last;
                    lookup.has_ends = has_ends;
                    lookup.has_good_ends = has_good_ends;
                    find_windows(lookup, windows + static_cast<long long>(pair.query) * n_windows * 2, n_windows, first_form + chunk_form,
                                 n_chunk_forms);
                }
            }
            __syncthreads();
            // One warp merges what was found for the last pair, while the others add postings.
            if (tile == 0 && warp == 0 && previous >= 0) {
                merge(lookup, found, form_code, isotope_shift, previous, n_kept, best_score, best_number, locks, lane);
            }
            int p = n_pairs;
            if (tile == 0 && threadIdx.x == 0) p = atomicAdd(next_pair, 1);  // comes while postings are added
            add_postings(lookup, counters, postings + chunk.first_posting, n_ranges, lane);
            if (tile == 0 && threadIdx.x == 0 && p < n_pairs) following = pairs[p];  // comes while counters are ranked
            __syncthreads();
        }

        Candidate kept = nobody();
        float bar = lookup.bar;
        const unsigned char* chunk_ends = ends + chunk_form;
        const int low = lookup.joined_low[0], length = lookup.joined_length[0], n_joined = lookup.n_joined;
        const bool has_ends = lookup.has_ends;
        const bool ranks_ends = has_ends && (lookup.has_good_ends || low > 0 || length < n_chunk_forms);
        if (has_ends && !ranks_ends && warp == 0 && lookup.of_end[lane] != 0) {
            atomicAdd(&of_lane[lookup.bin_of_end[lane] * n_copies], static_cast<int>(forms_of_ends[pair.chunk * kEnds + lane]));
        }
        for (int strip = warp * kStrip; strip < forms_of_chunk; strip += n_warps * kStrip) {
            Word left = 0;  // counters that this lane has to look at
            Word four_ends[kStrip / 128];
#pragma unroll
            for (int k = 0; k < kStrip / 128; ++k) {
                const int at = strip + 128 * k + 4 * lane;
                // Behind the last form of the index stands anything; it is in no window.
                four_ends[k] = has_ends && at < forms_of_chunk ? *reinterpret_cast<const Word*>(chunk_ends + at) : 0;
            }
#pragma unroll
            for (int k = 0; k < kStrip / 128; ++k) {
                const int at = strip + 128 * k + 4 * lane;
                if (at >= forms_of_chunk) continue;
                const FourWords counter = *reinterpret_cast<const FourWords*>(counters + at);
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    bool is_left = counter.of[j] != 0;
                    if (ranks_ends) is_left |= lookup.of_end[four_ends[k] >> (8 * j) & (kEnds - 1)] != 0;
                    left |= is_left ? 1u << (4 * k + j) : 0u;
                }
            }
            while (__any_sync(kEveryLane, left != 0)) {
                const bool has_one = left != 0;
                const int bit = has_one ? __ffs(static_cast<int>(left)) - 1 : 0;
                left &= left - 1;
                const int form = strip + 128 * (bit >> 2) + 4 * lane + (bit & 3);
                Word ends_here = four_ends[0];
#pragma unroll
                for (int k = 1; k < kStrip / 128; ++k) ends_here = bit >> 2 == k ? four_ends[k] : ends_here;
                const int letter = ends_here >> (8 * (bit & 3)) & (kEnds - 1);
                Word value = 0;
                if (has_one) {
                    value = counters[form];
                    counters[form] = 0;
                }
                if (has_ends) value += lookup.of_end[letter];
                const int n = value & 255, c = value >> 8 & 255;
                const float score = (lookup.of_count[n] + lookup.of_count[c]) + of_dot[value >> 16];
                bool is_inside = static_cast<Word>(form - low) < static_cast<Word>(length);
                for (int w = 1; w < n_joined; ++w) {
                    is_inside |= static_cast<Word>(form - lookup.joined_low[w]) < static_cast<Word>(lookup.joined_length[w]);
                }
                is_inside = is_inside && has_one;
                if (is_inside) {
                    atomicAdd(&of_lane[min(n_bins - 1, static_cast<int>(score * inverse_width)) * n_copies], 1);
                    const int bin_of_end = has_ends && !ranks_ends ? lookup.bin_of_end[letter] : -1;
                    if (bin_of_end >= 0) atomicAdd(&of_lane[bin_of_end * n_copies], -1);  // it was counted with those of its letter
                }
                bool is_good = is_inside && score >= bar && n + c >= min_matched_ions;
                const Word good = __ballot_sync(kEveryLane, is_good);
                if (good == 0) continue;
                int place = lane == 0 ? atomicAdd(&lookup.n_found, __popc(good)) : 0;
                place = __shfl_sync(kEveryLane, place, 0) + __popc(good & ((1u << lane) - 1));
                long long isotope = 0;
                while (is_good && (form < lookup.low[isotope] || form >= lookup.high[isotope])) ++isotope;
                if (is_good && place < kFound) {
                    found[place] = Candidate{isotope << kPlaceBits | (chunk_form + form), score};
                    is_good = false;
                }
                // No room: each warp sorts its own. The bar rises, and soon few are left.
                for (Word late = __ballot_sync(kEveryLane, is_good); late; late &= late - 1) {
                    const int source = __ffs(static_cast<int>(late)) - 1;
                    const long long number = form_code[chunk_form + __shfl_sync(kEveryLane, form, source)];
                    const long long own_isotope = __shfl_sync(kEveryLane, isotope, source);
                    insert(kept, Candidate{number + (own_isotope << isotope_shift), __shfl_sync(kEveryLane, score, source)}, lane);
                    bar = fmaxf(bar, __shfl_sync(kEveryLane, kept.score, n_kept - 1));
                }
            }
        }
        const Word own = __ballot_sync(kEveryLane, lane < n_kept && kept.number != kNobody);
        if (own) {
            int place = lane == 0 ? atomicAdd(&lookup.n_late, __popc(own)) : 0;
            place = __shfl_sync(kEveryLane, place, 0);
            if (own >> lane & 1u) found[kFound + place + lane] = kept;
        }
        if (threadIdx.x == 0) lookup.pair = following;
        __syncthreads();

        previous = pair.query;
        for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
            int n = 0;
            for (int j = 0; j < n_copies; ++j) {
                int* copy = own_histogram + b * n_copies + ((lane + j) & (n_copies - 1));  // lanes in different banks
                n += *copy;
                *copy = 0;
            }
            if (n) atomicAdd(&histogram[static_cast<long long>(pair.query) * n_bins + b], n);
        }
    }
    if (warp == 0 && previous >= 0) {
        merge(lookup, found, form_code, isotope_shift, previous, n_kept, best_score, best_number, locks, lane);
    }
}
