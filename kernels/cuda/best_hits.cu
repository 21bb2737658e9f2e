// Merging of the best candidates of each query from all blocks that searched for it.

#include "search.cuh"

// Output rows of HitArrays. kernels/cuda/scoring.py fills this struct.
struct Hits {
    float* score;
    long long* peptide;
    signed char* isotope_error;
    unsigned char* site;
    unsigned char* modification;
    long long* n_candidates;
};

// Modifications of candidates: the slots of each combination, the row of known modifications of each peptide, and these rows.
// kernels/cuda/scoring.py fills this struct.
struct Carried {
    const unsigned char* combination_slots;
    const unsigned int* known;
    const unsigned char* known_modification;
};

// One warp per query merges the candidates stored in its items, from `first_item[query]` on, and writes the best.
extern "C" __global__ void merge_hits(const Settings* settings, const int* first_item, const Candidate* best_of_items,
                                      Carried carried, const int* histogram, int n_queries, Hits hits) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (query >= n_queries) return;
    const int n_best = static_cast<int>(settings->n_best), n_slots = static_cast<int>(settings->n_slots);
    const int n_bins = static_cast<int>(settings->n_bins), isotopes = static_cast<int>(settings->n_isotope_errors);
    Candidate kept = nobody();
    for (int item = first_item[query]; item < first_item[query + 1]; ++item) {
        Candidate mine = nobody();
        if (lane < n_best) mine = best_of_items[static_cast<long long>(item) * n_best + lane];
        if (item == first_item[query]) {
            kept = mine;
            continue;
        }
        for (int j = 0; j < n_best; ++j) {
            const Candidate fresh = candidate_of_lane(mine, j);
            if (fresh.key == kNobody) break;
            insert(kept, fresh, lane);
        }
    }
    long long total = 0;
    for (int b = lane; b < n_bins; b += 32) total += histogram[static_cast<long long>(query) * n_bins + b];
    total = sum_of_lanes(total);
    if (lane == 0) hits.n_candidates[query] = total;
    if (lane >= n_best) return;
    const long long row = static_cast<long long>(query) * n_best + lane;
    const bool is_there = kept.key != kNobody;
    const Word window = static_cast<Word>(kept.key >> kPeptideBits);
    hits.score[row] = kept.score;
    hits.peptide[row] = is_there ? settings->first_peptide + static_cast<long long>(kept.key & ((1ull << kPeptideBits) - 1)) : -1;
    hits.isotope_error[row] = is_there ? static_cast<signed char>(settings->isotope_error[window % isotopes]) : 0;
    const unsigned char* slots = carried.combination_slots + (is_there ? window / isotopes * kMostSlots : 0);
    int combined = 0;
    while (combined < kMostSlots && slots[combined] != kNone) ++combined;
    const bool has_known = is_there && settings->maximum_with_known > 0;
    const Long row_of_known = has_known ? carried.known[kept.key & ((1ull << kPeptideBits) - 1)] : 0;
    for (int t = 0; t < n_slots; ++t) {
        unsigned char which = is_there && t < combined ? slots[t] : kNone;
        if (row_of_known > 0 && t >= combined) which = carried.known_modification[row_of_known * kMostSlots + t - combined];
        hits.modification[row * n_slots + t] = which;
        hits.site[row * n_slots + t] = which == kNone ? kNone : static_cast<unsigned char>(kept.sites >> (8 * t) & 255u);
    }
}
