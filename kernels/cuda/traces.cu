// Ion traces: the most intense peak of each survey spectrum within windows of m/z and time, as kernels/cpu/traces.py cuts them.
//
// A warp takes a window. Its first peak is found by a binary search in the m/z of the block, which all lanes do alike; then the lanes take
// neighbouring peaks, so that reads are coalesced, and raise the cells of those within the time. Intensities are positive, and positive
// numbers of 32 bits are in the order of their bits: the maximum is taken of these, which is the same whatever order the lanes come in.

#include "warp.cuh"

constexpr int kLanes = 32;

// The first of ascending values (n) that is not below a value.
__device__ long long lower_bound(const double* values, long long n, double value) {
    long long low = 0, high = n;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// mz, intensity, survey (n_peaks), ascending m/z; low, high, first, last, cell (n_windows); cells: bits of positive numbers.
extern "C" __global__ void __launch_bounds__(256)
cut_windows(const double* mz, const int* intensity, const int* survey, long long n_peaks, const double* low, const double* high,
            const int* first, const int* last, const long long* cell, long long n_windows, int* cells) {
    const long long window = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
    if (window >= n_windows) return;
    const double most = high[window];
    const int begin = first[window], end = last[window];
    int* row = cells + cell[window];
    for (long long i = lower_bound(mz, n_peaks, low[window]) + threadIdx.x % kLanes; i < n_peaks && mz[i] <= most; i += kLanes) {
        COUNT_OPERATIONS(1);
        if (survey[i] >= begin && survey[i] < end) atomicMax(row + (survey[i] - begin), intensity[i]);
    }
}
