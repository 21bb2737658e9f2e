// Ion traces: the most intense peak of each MS1 spectrum within windows of m/z and time, as in kernels/cpu/traces.py.
//
// A warp processes a window. The first peak is found by a binary search in the m/z of the peaks, which all lanes perform identically. The
// lanes then take neighbouring peaks, so that reads are coalesced, and update the cells of peaks within the time range. Intensities are
// positive, and positive 32-bit floats have the order of their bits: maxima are computed from the bits, and do not depend on the order of
// the lanes.

#include "warp.cuh"

constexpr int kLanes = 32;

// Return the index of the first of n ascending values that is not below `value`.
__device__ long long lower_bound(const double* values, long long n, double value) {
    long long low = 0, high = n;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Peaks in ascending order of m/z.
struct Peaks {
    const double* mz;
    const int* intensity;  // bits of positive numbers
    const int* survey;
    long long n;
};

struct Windows {
    const double *low, *high;
    const int *first, *last;
    const long long* cell;
    long long n;
};

// `cells`: bits of positive numbers.
extern "C" __global__ void __launch_bounds__(256) cut_windows(const Peaks peaks, const Windows windows, int* cells) {
    const long long window = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
    if (window >= windows.n) return;
    const double most = windows.high[window];
    const int begin = windows.first[window], end = windows.last[window];
    int* row = cells + windows.cell[window];
    for (long long i = lower_bound(peaks.mz, peaks.n, windows.low[window]) + threadIdx.x % kLanes; i < peaks.n && peaks.mz[i] <= most; i += kLanes) {
        COUNT_OPERATIONS(1);
        const int survey = peaks.survey[i];
        if (survey >= begin && survey < end) atomicMax(row + (survey - begin), peaks.intensity[i]);
    }
}
