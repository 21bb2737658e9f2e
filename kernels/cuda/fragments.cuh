// Fragment-ion index: postings of all forms (peptides with an arrangement of variable modifications).
//
// The idea is that of MSFragger (Kong 2017, Nature Methods 14:513). Forms are sorted by mass and divided into chunks of as many forms as
// the shared memory of a block has counters for. A posting is a word for an ion and its form: the low 16 bits of the ion's key, the
// terminus from which the ion is counted, and the index of the form in its chunk.
//
// Nearly all tryptic peptides end in K or R, so that most visited postings would be those of the last residue only. These ions are not
// stored in bins: a byte per form holds the last residue, and its contribution is added when counters are ranked.
#pragma once

#include "peptides.cuh"

constexpr int kMostThreads = 1024;
constexpr Word kCTerminal = 1u << 15;
constexpr Word kFormMask = kCTerminal - 1;
constexpr int kEnds = 32;                // possible last residues, including none
constexpr unsigned char kNoEnd = kEnds - 1;

// Offsets of the postings and the bins of a chunk. The table of bins has two more words than there are bins: while ions are counted and
// placed, word b + 1 is the cursor of bin b; afterwards word b is the start of bin b and word b + 1 its end.
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
    unsigned char* ends;     // last residue of each form, if the ion of this residue alone is in no bin
    Word* forms_of_ends;     // (chunks, kEnds): number of forms of a chunk with each last residue
    const long long* form_code;
    int first_form, n_forms, forms_of_chunk, bin_shift;
};
