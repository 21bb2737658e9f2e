// Histogram of the masses of the peptides of a digest: the counting pass of kernels/cpu/peptides.py.
//
// The pre-calculation of Li (BMC Bioinformatics 2014, 15:121): the proteins are digested on the device, and only the numbers of peptides by
// mass are copied to the host. They determine the mass partitions in which the dictionary is built.
//
// A thread starts peptides at one residue and extends them residue by residue, as long as mass, length and missed cleavages allow. The
// protein of a residue is found by a binary search in the offsets. The table of cleavages (26 x 26) and the masses are in shared memory;
// neighbouring threads read neighbouring residues. Counts are added atomically in global memory, in one row for each share of the proteins
// (so that each share can later be written to separate positions). Masses are integers in units of 1e-9 Da, as on the CPU, so the counts
// are identical.

#include "warp.cuh"

using Count = unsigned int;
using Mass = long long;

constexpr int kResidues = 26;
constexpr unsigned char kFirstLetter = 65;
constexpr unsigned char kMethionine = 77;

// The limits of a digest. kernels/cuda/digestion.py fills this struct; every member has 8 bytes, so there is no padding.
struct Limits {
    Mass residue_mass[kResidues];  // negative for symbols without a mass
    Mass terminal_mass, minimum_mass, maximum_mass, bucket_width;
    long long required_ends, maximum_missed, minimum_length, maximum_length, clip_methionine;
    long long n_proteins, n_shares, n_buckets;
};

// Return the last index in the ascending `values` (n + 1, the first 0) whose element is not above `value`.
__device__ long long place_of(const long long* values, long long n, long long value) {
    long long low = 0, high = n;
    while (high - low > 1) {
        const long long middle = (low + high) / 2;
        if (values[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

// Count the peptides that begin at the residues first:last. bounds (n_shares + 1): first protein of each share; counts (n_shares,
// n_buckets).
extern "C" __global__ void __launch_bounds__(256)
count_peptides(const Limits* limits, const unsigned char* residues, const long long* offsets, const long long* bounds,
               const unsigned char* cleaves, long long first, long long last, Count* counts) {
    __shared__ Mass residue_mass[kResidues];
    __shared__ unsigned char cuts[kResidues * kResidues];
    for (int i = threadIdx.x; i < kResidues; i += blockDim.x) residue_mass[i] = limits->residue_mass[i];
    for (int i = threadIdx.x; i < kResidues * kResidues; i += blockDim.x) cuts[i] = cleaves[i];
    __syncthreads();  // the tables are complete

    const long long start = first + static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (start >= last) return;
    const long long protein = place_of(offsets, limits->n_proteins, start);
    const long long begin = offsets[protein], end = offsets[protein + 1];
    const int required_ends = static_cast<int>(limits->required_ends);
    const bool is_clipped = limits->clip_methionine && end - begin > 1 && residues[begin] == kMethionine;
    const bool start_is_end =
        start == begin || (is_clipped && start == begin + 1) ||
        cuts[(residues[start - 1] - kFirstLetter) * kResidues + residues[start] - kFirstLetter];
    if (required_ends == 2 && !start_is_end) return;

    Count* row = counts + place_of(bounds, limits->n_shares, protein) * limits->n_buckets;
    const Mass minimum_mass = limits->minimum_mass, maximum_mass = limits->maximum_mass, width = limits->bucket_width;
    const long long minimum_length = limits->minimum_length, maximum_missed = limits->maximum_missed;
    const long long stop = start + limits->maximum_length < end ? start + limits->maximum_length : end;
    Mass mass = limits->terminal_mass;
    long long missed = 0;
    for (long long at = start; at < stop; ++at) {
        COUNT_OPERATIONS(1);
        const int letter = residues[at] - kFirstLetter;
        if (residue_mass[letter] < 0) return;
        mass += residue_mass[letter];
        if (mass > maximum_mass) return;
        const bool is_cut = at + 1 == end || cuts[letter * kResidues + residues[at + 1] - kFirstLetter];
        if (at - start + 1 >= minimum_length && mass >= minimum_mass && start_is_end + is_cut >= required_ends) {
            atomicAdd(row + mass / width, Count(1));
        }
        if (is_cut && ++missed > maximum_missed && required_ends > 0) return;
    }
}
