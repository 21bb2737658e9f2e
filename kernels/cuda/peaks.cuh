// Peaks of a spectrum, and a bit table in which one read shows whether a peak may match an ion.
#pragma once

#include "search.cuh"

constexpr double kRounding = 1e-12;      // maximum relative rounding error of a mass

// The peaks of a spectrum in a block.
struct Peaks {
    const double* mz;               // ascending
    const float* weight;
    int n;
    Word* words;                    // bit table
    unsigned short* first;          // for each word, the first peak that may match in its bins
    int n_words;
    double inverse_bin, absolute, relative;
    int* correlation_bin;           // XCorr: bins with a peak, ascending, and cumulative sums of their heights
    long long* correlation_sum;
    int n_correlation;
};

// Reach of a peak. An ion at t matches a peak at m if |m - t| <= absolute + relative t, up to t = (m + absolute) / (1 - relative) = m +
// (absolute + relative m) / (1 - relative), and less for t below m. An exact comparison follows; rounding must not miss any match.
__device__ double reach(const Peaks& peaks, double mz) {
    const double widened = 1.0 / (1.0 - peaks.relative);
    return peaks.absolute * widened + (peaks.relative * widened + kRounding) * mz;
}

// The bit table extends to the last peak of this spectrum. If its bins do not fit, they are wider; this only causes more comparisons.
__device__ void fit_table(Peaks& peaks, double bin_width, int maximum_words) {
    double last = 0.0;
    if (peaks.n > 0) last = peaks.mz[peaks.n - 1] + reach(peaks, peaks.mz[peaks.n - 1]);
    if (last > bin_width * (maximum_words * 32 - 1)) bin_width = last / (maximum_words * 32 - 1);
    peaks.inverse_bin = 1.0 / bin_width;
    peaks.n_words = min(maximum_words, (static_cast<int>(last * peaks.inverse_bin) >> 5) + 1);
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

// Return 1 if the bit table has a peak near `target`, otherwise 0.
__device__ Word may_match(const Peaks& peaks, double target) {
    const int bin = static_cast<int>(target * peaks.inverse_bin), word = bin >> 5;
    const bool inside = static_cast<Word>(word) < static_cast<Word>(peaks.n_words);  // negative words are out of range too
    return inside ? peaks.words[word] >> (bin & 31) & 1u : 0u;
}

// Return the heaviest peak within the tolerance of `target`, or -1. The tolerance ranges of peaks before `first` do not contain `target`.
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

// Same for a `target` for which the bit table has a peak.
__device__ int find_peak(const Peaks& peaks, double target) {
    const int first = peaks.first[static_cast<int>(target * peaks.inverse_bin) >> 5];
    return heaviest_peak(peaks.mz, peaks.weight, first, peaks.n, target, peaks.absolute, peaks.relative);
}
