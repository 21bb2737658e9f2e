// Input of a search of spectra against the dictionary, and the candidates that it stores.
//
// Scores are bit-identical to those of the CPU: sums are in the same order or of integers, and logarithm and power are those of
// kernels/cpu/elementary.py. Compile with --fmad=false: a fused multiply-add rounds differently.
#pragma once

#include "peptides.cuh"

constexpr int kMostSlots = 8;            // variable modifications of one peptide
constexpr int kMostFragmentCharge = 5;
constexpr int kMostIsotopeErrors = 16;
constexpr Long kNobody = ~0ull;
constexpr int kPeptideBits = 40;         // low bits of a key: peptide; above: index of the window

// The scalars of a search. kernels/cuda/scoring.py fills this struct; every member has 8 bytes, so that there is no padding.
struct Settings {
    double precursor_absolute, precursor_relative, isotope_spacing;
    double fragment_absolute, fragment_relative, bin_width;
    double correlation_bin_width, correlation_bin_offset;
    double ksdp_power, histogram_width, n_term_mass, c_term_mass;
    double residue_mass[kResidues];
    double n_term_series[kMostSeries], c_term_series[kMostSeries];
    double isotope_minimum_mass[kMostIsotopeErrors];
    long long isotope_error[kMostIsotopeErrors];
    long long n_isotope_errors, n_n_term_series, n_c_term_series, maximum_fragment_charge;
    long long n_words, n_correlation_bins, ksdp_window, minimum_matched_ions;
    long long first_peptide, n_peptides;  // range of the dictionary on the device
    long long n_combinations, maximum_forms, n_best, n_slots, n_bins, candidates_of_item;
    long long maximum_with_known;  // maximum number of modifications of a peptide if some are at known residues, otherwise 0
};

// A candidate of a query. Equal scores are ranked by key, then by form, both ascending: the order in which the CPU finds candidates.
struct Candidate {
    float score;
    Word form;     // index of the arrangement of modifications
    Long key;      // (combination * isotope errors + isotope error) << kPeptideBits | peptide
    Long sites;    // one byte for each slot of the combination: 0 N-terminus, 1..length, length + 1 C-terminus
};

__device__ bool comes_before(const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.key != b.key) return a.key < b.key;
    return a.form < b.form;
}

__device__ Candidate nobody() { return Candidate{__int_as_float(0xff800000), 0, kNobody, 0}; }

__device__ Candidate candidate_of_lane(const Candidate& mine, int lane) {
    return Candidate{__shfl_sync(kEveryLane, mine.score, lane), __shfl_sync(kEveryLane, mine.form, lane),
                     __shfl_sync(kEveryLane, mine.key, lane), __shfl_sync(kEveryLane, mine.sites, lane)};
}

__device__ Candidate candidate_above(const Candidate& mine) {
    return Candidate{__shfl_up_sync(kEveryLane, mine.score, 1), __shfl_up_sync(kEveryLane, mine.form, 1),
                     __shfl_up_sync(kEveryLane, mine.key, 1), __shfl_up_sync(kEveryLane, mine.sites, 1)};
}

// Addresses of the arrays of a search. kernels/cuda/scoring.py fills this struct.
struct Inputs {
    // The dictionary, in order of mass.
    const double* mass;
    const unsigned int* position;
    const unsigned char* length;
    const unsigned char* flags;
    const unsigned int* letters;
    const unsigned char* residues;
    // Rows of modifications that peptides carry at known residues, 0 for none; and the sites and modifications of each row (rows,
    // kMostSlots).
    const unsigned int* known;
    const unsigned char* known_site;
    const unsigned char* known_modification;
    // Variable modifications, then those at known residues (mass and place only). Place: -1 not the last residue of a peptide, 0 anywhere,
    // 1 peptide N-terminus, 2 peptide C-terminus, 3 protein N-terminus, 4 protein C-terminus.
    const double* modification_mass;
    const unsigned int* residue_mask;
    const int* place;
    const double* combination_mass;
    const unsigned char* combination_slots;  // (combinations, kMostSlots): modification of each slot, ascending, then kNone
    const double* factorial_log;
    // Peaks of each query; `height` is needed for XCorr only.
    const int* offsets;
    const double* mz;
    const float* weight;
    const float* height;
    const double* query_mass;
    const int* query_charge;
    // Items of work: a query, and the index of a part of its candidates.
    const int* item_query;
    const int* item_part;
    Candidate* best_of_items;  // (items, n_best)
    int* histogram;            // (queries, n_bins), initially zero
};
