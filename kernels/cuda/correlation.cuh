// XCorr: SEQUEST's spectrum (Eng 2008), computed from cumulative heights of the bins with a peak.
#pragma once

#include "peaks.cuh"

constexpr int kCorrelationHalfWindow = 75, kAround = 2 * kCorrelationHalfWindow;
constexpr double kCorrelationUnits = 65536.0;  // per height of one
constexpr double kXCorrOfSum = 0.005 / (kAround * kCorrelationUnits);

// One thread joins peaks in the same bin of XCorr (the bin has the height of its highest peak) and sums the heights, which are integers.
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

// Return the number of bins with a peak before `bin`.
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

// Return SEQUEST's spectrum at a bin minus the mean of the 150 bins around it (Eng 2008, equation 6), computed from cumulative sums and
// multiplied by 150, which gives an integer.
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
