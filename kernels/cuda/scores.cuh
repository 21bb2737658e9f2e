// The score of one peptidoform with one spectrum: theoretical ions are computed when needed and never stored.
#pragma once

#include "arrangements.cuh"
#include "correlation.cuh"
#include "elementary.cuh"

constexpr int kGroup = 4;                // residues whose masses are loaded together

struct Matched {
    double score;
    int count;  // number of ions
};

// Match of a form with a spectrum: the components of a score. `kernel_sum` and `correlation` are only set for scores that need them.
struct Match {
    int count_n, count_c;  // matched ions from either end
    double dot, kernel_sum;
    long long correlation;
};

// Sums over windows of consecutive ions of one series, raised to a power, so that consecutive ions count more (Fu 2004, equation 6).
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

// Compute the cumulative masses of a peptidoform from its N-terminus up to each residue, and return its mass.
__device__ __forceinline__ double sum_masses(const Form& form, const Settings& settings, const Inputs& in, const double* residue_mass,
                                             double* prefix) {
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
            total += mass[j];  // adds nothing after the end
            prefix[begin + j] = total;
        }
    }
    return total + c_term;
}

// Score one peptidoform against the peaks. Cumulative masses from the N-terminus are in the local memory of the thread, which lanes read in
// parallel. Ions are first looked up in the bit table without a branch, so that several look-ups are in progress at the same time; the few
// that may match are then compared with the peaks. A `Score` states what it needs (kNeedsRoots, kNeedsCorrelation), and is computed by its
// function `of`.
template <class Score>
__device__ Matched score_form(const Form& form, const Settings& settings, const Inputs& in, const Peaks& peaks, const double* residue_mass,
                              int charges) {
    double prefix[kLongest];
    const double total = sum_masses(form, settings, in, residue_mass, prefix);
    const int n_ions = form.length - 1;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    double root[Score::kNeedsRoots ? kLongest : 1];
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
            if (Score::kNeedsCorrelation) {
                for (int i = 0; i < n_ions; ++i) correlation += correlation_at(peaks, start + sign * prefix[i], settings);
            }
            if (Score::kNeedsRoots) {
                for (int i = 0; i < n_ions; ++i) root[i] = 0.0;
            }
            for (int begin = 0; begin < n_ions; begin += 32) {
                const int end = min(n_ions, begin + 32);
                Word found = 0;
                COUNT_OPERATIONS(end - begin);
#pragma unroll 4
                for (int i = begin; i < end; ++i) found |= may_match(peaks, start + sign * prefix[i]) << (i - begin);
                for (; found; found &= found - 1) {
                    const int i = begin + __ffs(static_cast<int>(found)) - 1;
                    const int peak = find_peak(peaks, start + sign * prefix[i]);
                    if (peak < 0) continue;
                    dot += peaks.weight[peak];
                    ++count;
                    if (Score::kNeedsRoots) {
                        root[is_n ? i : n_ions - 1 - i] = power(static_cast<double>(peaks.weight[peak]), 1.0 / settings.ksdp_power);
                    }
                }
            }
            if (Score::kNeedsRoots) {
                kernel_sum += kernel_dot_product(root, n_ions, static_cast<int>(settings.ksdp_window), settings.ksdp_power);
            }
        }
        if (is_n) {
            count_n += count;
        } else {
            count_c += count;
        }
    }
    return Matched{Score::of(Match{count_n, count_c, dot, kernel_sum, correlation}, in), count_n + count_c};
}
