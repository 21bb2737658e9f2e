// The fragment-ion index: the postings of all forms (peptides with an arrangement of variable modifications).
//
// The idea is MSFragger's (Kong 2017, Nature Methods 14:513). Forms are sorted by mass and cut into chunks of as many forms as
// a block has counters for in its shared memory. A posting is an ion and its form: the low 16 bits of the ion's key, the end of the peptide
// from which it counts, and the number of the form in its chunk, in one word.
//
// Half of all tryptic peptides end in K and half in R, so that most visits would be to postings of the last residue only. These ions are
// not in bins: a byte holds the last residue of each form, and its contribution is added when counters are ranked.
#pragma once

#include "peptides.cuh"

constexpr int kMostThreads = 1024;
constexpr Word kCTerminal = 1u << 15;
constexpr Word kFormMask = kCTerminal - 1;
constexpr int kEnds = 32;                // possible last residues, including none
constexpr unsigned char kNoEnd = kEnds - 1;

// Offsets of the postings and the bins of a chunk. The table of bins has two words more than bins: while ions are counted and placed, word
// b + 1 is the cursor of bin b; afterwards word b is where bin b starts and word b + 1 where it ends.
struct Chunk {
    Long first_posting, first_bin;
};

// Components of masses. kernels/cuda/fragment_index.py fills this struct; every member has 8 bytes, so there is no padding.
struct Masses {
    double residue_mass[kResidues];
    double n_term_mass, c_term_mass;
    double n_term_series[kMostSeries], c_term_series[kMostSeries];
    long long n_n_term_series, n_c_term_series;
    long long arrangement_bits, peptide_mask;
    long long n_slots;
    long long end_key[kResidues];
};

// The part of the index that is on the device. kernels/cuda/fragment_index.py fills this struct.
struct Index {
    Word* postings;
    Word* bins;
    const Chunk* chunks;
    unsigned char* ends;     // for each form its last residue, where the ion of only that residue is in no bin
    Word* forms_of_ends;     // (chunks, kEnds): number of forms of a chunk with each last residue
    const long long* form_code;
    int first_form, n_forms, forms_of_chunk, bin_shift;
};
