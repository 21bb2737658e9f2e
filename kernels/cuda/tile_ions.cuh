// Look-up of ions for all queries of a tile in parallel.
#pragma once

#include "peaks.cuh"
#include "tiles.cuh"
#include "windows.cuh"

constexpr int kIonsTogether = 4;         // ions per terminus that are looked up together

// Values of a lane for looking up ions for its query.
struct Column {
    const char* table;             // as bytes, so that a position in it is one addition
    const Edge* edges;
    const Long* weights;           // weights of the tile: packed, by entry
    int maximum_charges;
    const double* bins_of_charge;  // bins per thomson, divided by each charge
    Long close;
    Word (*bins)[kLongest];        // of N-terminal and C-terminal ions: bins, as byte offsets in the table, and positions within the bin
    Word (*places)[kLongest];
};

constexpr Word kBytesOfBin = kTile * sizeof(unsigned short);

__device__ void lay_down(const Column& column, bool is_c, int number, bool is_there, double target, double bins_of_thomson) {
    const Long position = is_there ? position_of(target, bins_of_thomson) : ~0ull;
    column.places[is_c][number] = static_cast<Word>(position);
    column.bins[is_c][number] = min(static_cast<Word>(position >> 32), kFineBins - 1u) * kBytesOfBin;
}

__device__ int entry_at(const Column& column, Word bin) { return *reinterpret_cast<const unsigned short*>(column.table + bin); }

// Return the entry of the peak that an ion in a bin with edges matches. `is_close` is set if rounding decides.
__device__ int entry_at_edge(const Column& column, bool is_c, int number, bool& is_close) {
    const Word bin = column.bins[is_c][number];
    const Long position = static_cast<Long>(bin / kBytesOfBin) << 32 | column.places[is_c][number];
    const Edge* next = column.edges + (entry_at(column, bin) - kFirstEdge) * kTile;
    Edge edge = *next;
    int entry = edge.before;
    while (position + column.close >= edge.position) {
        const int after = edge.after & (kMore - 1);
        is_close = is_close || (position <= edge.position + column.close && edge.before != after);
        entry = after;
        if (!(edge.after & kMore)) break;
        next += kTile;
        edge = *next;
    }
    return entry;
}

// Match the ions of all series and charges up to `charges` (0: none) of a section of a peptide. Lane j has the cumulative masses from the
// N-terminus to the j-th of the `n` residues of the section, and to the one 32 further on. Returns the packed sum of all ions; if bit j of
// `stops` is set, the sum up to residue j is also added to the next element of `sums`.
__device__ __forceinline__ Long match_ions(const Settings& settings, const Column& column, double prefix, double prefix_beyond,
                                           double total, int n, Long stops, Long* sums, int charges, bool& is_close) {
    const int lane = threadIdx.x & 31;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    Long whole = 0;
    for (int z = 1; z <= column.maximum_charges; ++z) {
        const double scale = column.bins_of_charge[z - 1], protons = (z - 1) * kProtonMass;
        for (int series = 0; series < max(n_n, n_c); ++series) {
            const double from_n = protons + settings.n_term_series[series], from_c = protons + total + settings.c_term_series[series];
            __syncwarp();
            lay_down(column, false, lane, series < n_n && lane < n, from_n + prefix, scale);
            lay_down(column, true, lane, series < n_c && lane < n, from_c - prefix, scale);
            if (n > 32) {
                lay_down(column, false, lane + 32, series < n_n && lane + 32 < n, from_n + prefix_beyond, scale);
                lay_down(column, true, lane + 32, series < n_c && lane + 32 < n, from_c - prefix_beyond, scale);
            }
            __syncwarp();
            if (z > charges) continue;
            Long sum = 0;
            Long* next = sums;
#pragma unroll 1
            for (int begun = 0; begun < n; begun += kIonsTogether) {
                int entry[2][kIonsTogether], all = 0;
                COUNT_OPERATIONS(2 * kIonsTogether);
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) {
                    entry[0][j] = entry_at(column, column.bins[0][begun + j]);
                    entry[1][j] = entry_at(column, column.bins[1][begun + j]);
                    all |= entry[0][j] | entry[1][j];
                }
                Long sums_here[kIonsTogether];  // sums of the current ion only
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) sums_here[j] = 0;
                if (all >= kFirstEdge) {
                    Word at_edge = 0;
#pragma unroll
                    for (int j = 0; j < 2 * kIonsTogether; ++j) {
                        int& one = entry[j & 1][j >> 1];
                        at_edge |= one >= kFirstEdge ? 1u << j : 0u;
                        one = one >= kFirstEdge ? 0 : one;
                    }
#pragma unroll 1
                    for (; at_edge; at_edge &= at_edge - 1) {
                        const int which = __ffs(static_cast<int>(at_edge)) - 1;
                        Long more = column.weights[entry_at_edge(column, which & 1, begun + (which >> 1), is_close)];
                        if (which & 1) more = as_c_terminal(more);
#pragma unroll
                        for (int j = 0; j < kIonsTogether; ++j) sums_here[j] += which >> 1 == j ? more : 0;
                    }
                }
#pragma unroll
                for (int j = 0; j < kIonsTogether; ++j) {
                    sum += sums_here[j] + column.weights[entry[0][j]] + as_c_terminal(column.weights[entry[1][j]]);
                    sums_here[j] = sum;
                }
                const Word stops_here = static_cast<Word>(stops >> begun) & ((1u << kIonsTogether) - 1);
                if (stops_here) {
#pragma unroll
                    for (int j = 0; j < kIonsTogether; ++j) {
                        if (stops_here >> j & 1u) {
                            *next++ += sums_here[j];
                        }
                    }
                }
            }
            whole += sum;
        }
    }
    return whole;
}

// The same for one arrangement of a peptide and one query, in the CPU's arithmetic. It is rarely needed, and not inlined, since other code
// needs its registers.
__device__ __noinline__ Long match_exactly(const Settings& settings, const Inputs& in, const Form& form, Long sites, int query, int charges,
                                           double units) {
    const int first_peak = in.offsets[query], n_peaks = in.offsets[query + 1] - first_peak;
    const double* mz = in.mz + first_peak;
    const float* weight = in.weight + first_peak;
    double n_term = settings.n_term_mass, c_term = settings.c_term_mass;
#pragma unroll 1
    for (int t = 0; t < form.n_slots; ++t) {
        const int site = static_cast<int>(sites >> (8 * t) & 255u);
        if (site == 0) n_term += in.modification_mass[form.modification[t]];
        if (site == form.length + 1) c_term += in.modification_mass[form.modification[t]];
    }
    const auto mass_of = [&](int i) {
        double mass = settings.residue_mass[in.residues[form.position + i] - 65];
#pragma unroll 1
        for (int t = 0; t < form.n_slots; ++t) {
            if (static_cast<int>(sites >> (8 * t) & 255u) == i + 1) mass += in.modification_mass[form.modification[t]];
        }
        return mass;
    };
    double total = n_term;
#pragma unroll 1
    for (int i = 0; i < form.length; ++i) total += mass_of(i);
    total += c_term;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    const double absolute = settings.fragment_absolute, relative = settings.fragment_relative;
    Long sum_n = 0, sum_c = 0;
    double prefix = n_term;
    for (int i = 0; i < form.length - 1; ++i) {
        prefix += mass_of(i);
        for (int series = 0; series < n_n + n_c; ++series) {
            const bool is_n = series < n_n;
            const double single = is_n ? settings.n_term_series[series] : total + settings.c_term_series[series - n_n];
#pragma unroll 1
            for (int z = 1; z <= charges; ++z) {
                const double target = single / z + (z - 1) * kProtonMass / z + (is_n ? 1.0 : -1.0) / z * prefix;
                const int first = mass_bound(mz, n_peaks, target - (absolute + relative * target) - 1e-6, false);
                const int peak = heaviest_peak(mz, weight, first, n_peaks, target, absolute, relative);
                if (peak < 0) continue;
                if (is_n) {
                    sum_n += packed(weight[peak], units);
                } else {
                    sum_c += packed(weight[peak], units);
                }
            }
        }
    }
    return sum_n + as_c_terminal(sum_c);
}
