// Construction of the fragment-ion index of fragments.cuh: the postings of kernels/cpu/postings.py, in another order within a bin.
//
// The postings of a chunk are sorted by the bins of their keys (counting sort: count the ions of each bin, sum, place). Within a bin they
// are not sorted. A bin is narrower than the range of 16 bits. In the first and last bin of a range of keys, the low bits therefore show
// whether a posting is in the range; all postings of the bins between are in the range.
//
// Masses are summed in the order of the CPU's kernel. Compile with --fmad=false: a fused multiply-add rounds differently.

#include "fragments.cuh"

constexpr double kKeysOfDalton = 524288.0;
constexpr long long kLastKey = 0xffffffffll;
constexpr int kSummed = 4;               // bins that a thread sums at once

// Components of forms. kernels/cuda/fragment_index.py fills this struct.
struct Dictionary {
    const Masses* masses;
    const double* modification_mass;
    const unsigned int* position;
    const unsigned char* length;
    const unsigned char* residues;
    const unsigned char* site;          // (forms, n_slots): sites of modifications: 0 N-terminus, 1..length, length + 1 C-terminus
    const unsigned char* modification;  // their indices, kNone after the last
};

__device__ Word key_of(double mass) {
    const long long key = static_cast<long long>(mass * kKeysOfDalton);
    return static_cast<Word>(key < 0 ? 0 : key > kLastKey ? kLastKey : key);
}

// Cumulative masses of a form from its N-terminus up to each residue, and the mass of the form.
__device__ __forceinline__ double sum_masses(const Dictionary& of, const Masses& masses, const unsigned char* letters, int length, int form,
                                             double* sum) {
    const int n_slots = static_cast<int>(masses.n_slots);
    for (int i = 0; i < length; ++i) sum[i] = masses.residue_mass[letters[i] - 65];
    double n_term = masses.n_term_mass, c_term = masses.c_term_mass;
    for (int t = 0; t < n_slots; ++t) {
        const long long slot = static_cast<long long>(form) * n_slots + t;
        if (of.modification[slot] == kNone) break;
        const double more = of.modification_mass[of.modification[slot]];
        if (of.site[slot] == 0) {
            n_term += more;
        } else if (of.site[slot] == length + 1) {
            c_term += more;
        } else {
            sum[of.site[slot] - 1] += more;
        }
    }
    double total = n_term;
    for (int i = 0; i < length; ++i) {
        total += sum[i];
        sum[i] = total;
    }
    return total + c_term;
}

// One thread per form counts its ions in the bins of its chunk (kPlace false), or places them there.
template <bool kPlace>
__device__ __forceinline__ void sort_ions(const Dictionary& of, const Index& index) {
    __shared__ Masses masses;
    copy_together(masses, of.masses);
    __syncthreads();  // the masses are complete
    const int form = blockIdx.x * blockDim.x + threadIdx.x;
    if (form >= index.n_forms) return;
    const Long peptide = static_cast<Long>(index.form_code[form] >> masses.arrangement_bits & masses.peptide_mask);
    const unsigned char* letters = of.residues + of.position[peptide];
    const int length = of.length[peptide];
    double sum[kLongest];
    const double total = sum_masses(of, masses, letters, length, form, sum);
    const int chunk = form / index.forms_of_chunk;
    const Word number = form - chunk * index.forms_of_chunk;
    const Chunk here = index.chunks[chunk];
    const Word last = static_cast<Word>(index.chunks[chunk + 1].first_bin - here.first_bin) - 3;
    Word* own_bins = index.bins + here.first_bin;
    Word* own_postings = index.postings + here.first_posting;
    const int n_n = static_cast<int>(masses.n_n_term_series), n_c = static_cast<int>(masses.n_c_term_series);
    if (!kPlace) index.ends[form] = kNoEnd;
    for (int series = 0; series < n_n + n_c; ++series) {
        const bool is_n = series < n_n;
        const double start = (is_n ? masses.n_term_series[series] : masses.c_term_series[series - n_n]) - kProtonMass;
        for (int i = 0; i < length - 1; ++i) {
            COUNT_OPERATIONS(1);
            const Word key = key_of(is_n ? start + sum[i] : start + total - sum[i]);
            if (series == n_n && i == length - 2) {
                const int letter = letters[length - 1] - 65;
                const bool is_end = static_cast<long long>(key) == masses.end_key[letter];
                if (is_end) {
                    if (!kPlace) {
                        index.ends[form] = static_cast<unsigned char>(letter);
                        atomicAdd(&index.forms_of_ends[chunk * kEnds + letter], 1u);
                    }
                    continue;
                }
            }
            const Word bin = min(last, key >> index.bin_shift);
            if (kPlace) {
                own_postings[atomicAdd(&own_bins[bin + 1], 1u)] = key << 16 | (is_n ? 0u : kCTerminal) | number;
            } else {
                atomicAdd(&own_bins[bin + 2], 1u);
            }
        }
    }
}

extern "C" __global__ void count_ions(Dictionary dictionary, Index index) { sort_ions<false>(dictionary, index); }

extern "C" __global__ void place_ions(Dictionary dictionary, Index index) { sort_ions<true>(dictionary, index); }

// One block per chunk replaces the numbers of ions in its bins by their cumulative sums.
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
        const Word of_warp = sum_up_to_lane(total, lane) - total;
        if (lane == 31) total_of_warps[warp] = of_warp + total;
        __syncthreads();  // the totals of all warps are written
        Word of_block = before;
        for (int w = 0; w < n_warps; ++w) {
            of_block += w < warp ? total_of_warps[w] : 0;
            before += total_of_warps[w];
        }
        for (int j = 0; j < kSummed; ++j) {
            if (own + j < n) table[own + j] = of_block + of_warp + value[j];
        }
        __syncthreads();  // all threads have read the totals, which change in the next round
    }
}
