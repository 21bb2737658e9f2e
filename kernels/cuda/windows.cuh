// Mass windows: the range of the peptide dictionary that matches the precursor mass of a query.
#pragma once

#include "search.cuh"

// Return the first peptide whose mass is not below `target` (with `beyond`: is above `target`).
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

// Return the range of the dictionary that matches the query mass with a combination of modifications and an isotope error; empty if that
// error needs a heavier query.
__device__ Window mass_window(const Settings& settings, const double* mass, double query_mass, int isotope, double combination_mass) {
    if (query_mass < settings.isotope_minimum_mass[isotope]) return Window{0, 0};
    const double observed = query_mass - settings.isotope_error[isotope] * settings.isotope_spacing;
    const double tolerance = settings.precursor_absolute + settings.precursor_relative * observed;
    const int n = static_cast<int>(settings.n_peptides);
    const int low = mass_bound(mass, n, observed - tolerance - combination_mass, false);
    const int high = mass_bound(mass, n, observed + tolerance - combination_mass, true);
    return Window{low, high < low ? low : high};
}

// Return the last index in `n` ascending starts (the first 0) whose start is not above `candidate`. Empty windows have the same start as
// the next window.
__device__ __forceinline__ int window_of(const int* window_start, int n, int candidate) {
    int first = 0, last = n;
    while (last - first > 1) {
        const int middle = (first + last) >> 1;
        if (window_start[middle] <= candidate) {
            first = middle;
        } else {
            last = middle;
        }
    }
    return first;
}
