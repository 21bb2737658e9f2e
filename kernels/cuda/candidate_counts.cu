// Number of peptides in the mass windows of each query: the pre-calculation of Li (BMC Bioinformatics 2014, 15:121).

#include "windows.cuh"

// One warp per query counts the peptides in its windows, which is the cost of the query.
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
    total = sum_of_lanes(total);
    if (lane == 0) out[query] = total;
}
