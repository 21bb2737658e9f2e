// Look-up of ions for all queries of a tile in parallel.
#pragma once

#include "peaks.cuh"
#include "tiles.cuh"
#include "windows.cuh"

// Values of a lane for looking up ions for its query.
struct Column {
    const char* table;             // as bytes, so that a position in it is one addition
    const Edge* edges;
    const Long* weights;           // weights of the tile: packed, by entry
    const Word* matches;           // coarse bins of the tile, in shared memory
    int coarse_shift;
    int maximum_charges;
    const double* bins_of_charge;  // bins per thomson, divided by each charge
    Long close;
    Word (*bins)[kLongest];        // of N-terminal and C-terminal ions: bins, as byte offsets in the table, and positions within the bin
    Word (*places)[kLongest];
};

constexpr Word kBytesOfBin = kTile * sizeof(unsigned short);

// Store the position of an ion in the table for all lanes. Returns the queries that may have a match for it, bit j for lane j.
__device__ Word lay_down(const Column& column, bool is_c, int number, bool is_there, double target, double bins_of_thomson) {
    const Long position = is_there ? position_of(target, bins_of_thomson) : ~0ull;
    const Word bin = min(static_cast<Word>(position >> 32), kFineBins - 1u);
    column.places[is_c][number] = static_cast<Word>(position);
    column.bins[is_c][number] = bin * kBytesOfBin;
    return is_there ? column.matches[bin >> column.coarse_shift] : 0;
}

// Transpose a matrix of 32 x 32 bits, whose rows are distributed over the lanes.
__device__ Word transposed(Word row, int lane) {
    Word low = 0xffffu;
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        const Word other = __shfl_xor_sync(kEveryLane, row, step);
        row = lane & step ? (row & ~low) | (other >> step & low) : (row & low) | (other & low) << step;
        low ^= low << (step >> 1);
    }
    return row;
}

__device__ int entry_at(const Column& column, Word bin) { return *reinterpret_cast<const unsigned short*>(column.table + bin); }

// Return the entry of the peak that an ion in a bin with edges matches, from the first edge. `is_close` is set if rounding decides.
__device__ int entry_at_edge(const Column& column, int first_edge, bool is_c, int number, bool& is_close) {
    const Long position = static_cast<Long>(column.bins[is_c][number] / kBytesOfBin) << 32 | column.places[is_c][number];
    const Edge* next = column.edges + (first_edge - kFirstEdge) * kTile;
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

// Match the N-terminal and C-terminal ions of a lane's query whose bits are set, the first of which has number `first`; two per step, so
// that their loads overlap. Returns the packed sum; the weights of the ions up to each bit of `stops` are also added to its element of `sums`.
__device__ __forceinline__ Long match_some(const Column& column, Word n_term, Word c_term, int first, Long stops, Long* sums,
                                           bool& is_close) {
    Long sum = 0;
#pragma unroll 1
    while (n_term | c_term) {
        COUNT_OPERATIONS((n_term != 0) + (c_term != 0));
        const int n_number = first + __ffs(static_cast<int>(n_term)) - 1, c_number = first + __ffs(static_cast<int>(c_term)) - 1;
        int n_entry = n_term ? entry_at(column, column.bins[0][n_number]) : 0;
        int c_entry = c_term ? entry_at(column, column.bins[1][c_number]) : 0;
        n_term &= n_term - 1;
        c_term &= c_term - 1;
        if (n_entry >= kFirstEdge) n_entry = entry_at_edge(column, n_entry, false, n_number, is_close);
        if (c_entry >= kFirstEdge) c_entry = entry_at_edge(column, c_entry, true, c_number, is_close);
        const Long n_weight = column.weights[n_entry], c_weight = as_c_terminal(column.weights[c_entry]);
        sum += n_weight + c_weight;
        if (n_entry && stops >> n_number) sums[__popcll(stops & ((1ull << n_number) - 1))] += n_weight;
        if (c_entry && stops >> c_number) sums[__popcll(stops & ((1ull << c_number) - 1))] += c_weight;
    }
    return sum;
}

// Match the ions of all series and charges up to `charges` (0: none) of a section of a peptide. Lane j has the cumulative masses from the
// N-terminus to the j-th of the `n` residues of the section, and to the one 32 further on. Returns the packed sum of all ions. The sum of
// the ions up to each residue whose bit in `stops` is set, without those up to the previous such residue, is added to `sums`.
//
// First, each lane reads for one ion which queries may have a match; after transposition, it knows which ions may match for its query.
__device__ __forceinline__ Long match_ions(const Settings& settings, const Column& column, double prefix, double prefix_beyond,
                                           double total, int n, Long stops, Long* sums, int charges, bool& is_close) {
    const int lane = threadIdx.x & 31;
    const int n_n = static_cast<int>(settings.n_n_term_series), n_c = static_cast<int>(settings.n_c_term_series);
    Long whole = 0;
    for (int z = 1; z <= column.maximum_charges && __any_sync(kEveryLane, z <= charges); ++z) {
        const double scale = column.bins_of_charge[z - 1], protons = (z - 1) * kProtonMass;
        for (int series = 0; series < max(n_n, n_c); ++series) {
            const double from_n = protons + settings.n_term_series[series], from_c = protons + total + settings.c_term_series[series];
            __syncwarp();
            Word n_term = lay_down(column, false, lane, series < n_n && lane < n, from_n + prefix, scale);
            Word c_term = lay_down(column, true, lane, series < n_c && lane < n, from_c - prefix, scale);
            Word n_beyond = 0, c_beyond = 0;
            if (n > 32) {
                n_beyond = lay_down(column, false, lane + 32, series < n_n && lane + 32 < n, from_n + prefix_beyond, scale);
                c_beyond = lay_down(column, true, lane + 32, series < n_c && lane + 32 < n, from_c - prefix_beyond, scale);
            }
            __syncwarp();
            n_term = transposed(n_term, lane);
            c_term = transposed(c_term, lane);
            if (z <= charges) whole += match_some(column, n_term, c_term, 0, stops, sums, is_close);
            if (n <= 32) continue;
            n_beyond = transposed(n_beyond, lane);
            c_beyond = transposed(c_beyond, lane);
            if (z <= charges) whole += match_some(column, n_beyond, c_beyond, 32, stops, sums, is_close);
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
