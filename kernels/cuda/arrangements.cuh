// Arrangements of variable modifications on the sites of a peptide, enumerated or found by their number.
#pragma once

#include "search.cuh"

constexpr Word kAnyResidue = 0xffffffffu;
constexpr unsigned char kProteinNTerm = 1, kProteinCTerm = 2;  // flags of a peptide, see kernels/cpu/peptides.py

// A peptide with a combination of modifications, and the current arrangement.
struct Form {
    Long possible[kMostSlots];              // residues on which the modification of each slot may be: bit i for residue i
    unsigned char modification[kMostSlots];
    Long sites;                             // as in Candidate
    Word position;
    int length, n_slots;
};

__device__ int site_of(const Form& form, int slot) { return static_cast<int>(form.sites >> (8 * slot) & 255u); }

__device__ Long with_site(Long sites, int slot, int site) {
    return (sites & ~(255ull << (8 * slot))) | static_cast<Long>(site) << (8 * slot);
}

__device__ void set_site(Form& form, int slot, int site) { form.sites = with_site(form.sites, slot, site); }

__device__ Long residues_after(Long possible, int residue) { return residue >= 63 ? 0ull : possible >> (residue + 1) << (residue + 1); }

// Put the modification of each slot on its first site, then add the modifications that the peptide carries at known residues. Return false
// if the peptide has too few sites for the combination, or would carry more than `most` modifications, which is 0 unless some are known.
// `residues_in` returns the residues of a mask as bits. If a warp calls this for one form, only the lane with `writes` stores the result.
template <class ResiduesIn>
__device__ bool first_arrangement(Form& form, const Inputs& in, Word peptide, const unsigned char* slots, int most, ResiduesIn residues_in,
                                  bool writes) {
    const Word position = in.position[peptide];
    const int length = in.length[peptide];
    Long sites = 0, possible = 0, free = 0;  // `free`: possible sites of the modification that no slot has taken
    int t = 0;
#pragma unroll 1
    for (; t < kMostSlots && slots[t] != kNone; ++t) {
        const int m = slots[t];
        const bool is_same = t > 0 && slots[t - 1] == m;
        int site = 0;
        if (is_same) {
            if (free == 0) return false;
        } else {
            const Word mask = in.residue_mask[m];
            const int place = in.place[m];
            possible = free = place <= 0 ? residues_in(mask) : 0;
            if (place < 0 && !(in.flags[peptide] & kProteinCTerm)) possible = free = free & ~(1ull << (length - 1));
            if (place <= 0) {
                if (free == 0) return false;
            } else {
                // `possible` stays empty, since the only site never changes.
                const unsigned char flags = in.flags[peptide];
                const bool at_n_term = place == 1 || (place == 3 && (flags & kProteinNTerm));
                const bool at_c_term = place == 2 || (place == 4 && (flags & kProteinCTerm));
                if (!at_n_term && !at_c_term) return false;
                const int end = at_n_term ? 0 : length - 1;
                if (!(mask >> (in.residues[position + end] - 65) & 1u)) return false;
                site = mask != kAnyResidue ? end + 1 : at_n_term ? 0 : length + 1;
            }
        }
        if (possible) {
            // The chosen sites of the same modification ascend.
            site = __ffsll(static_cast<long long>(free));
            free &= free - 1;
        }
        sites = with_site(sites, t, site);
        if (writes) {
            form.possible[t] = possible;
            form.modification[t] = static_cast<unsigned char>(m);
        }
    }
    const Word row = most > 0 ? in.known[peptide] : 0;
    if (row > 0) {
        const unsigned char* known = in.known_modification + static_cast<Long>(row) * kMostSlots;
        const unsigned char* known_site = in.known_site + static_cast<Long>(row) * kMostSlots;
        const int combined = t;
#pragma unroll 1
        for (int k = 0; k < kMostSlots && known[k] != kNone; ++k, ++t) {
            if (t == most) return false;
            const int place = in.place[known[k]];
            for (int u = 0; place > 0 && u < combined; ++u) {
                const int other = in.place[slots[u]];
                if (other > 0 && ((other ^ place) & 1) == 0) return false;  // a terminus carries one modification
            }
            // There are as many sites as modifications, so that there is only one arrangement; for a terminus `possible` stays empty, as
            // above.
            possible = 0;
            for (int other = 0; place == 0 && other < kMostSlots; ++other) {
                if (known[other] == known[k]) possible |= 1ull << (known_site[other] - 1);
            }
            sites = with_site(sites, t, known_site[k]);
            if (writes) {
                form.possible[t] = possible;
                form.modification[t] = known[k];
            }
        }
    }
    if (writes) {
        form.sites = sites;
        form.position = position;
        form.length = length;
        form.n_slots = t;
    }
    return true;
}

__device__ bool first_arrangement(Form& form, const Inputs& in, Word peptide, const unsigned char* slots, int most) {
    const auto residues_in = [&](Word mask) {
        const unsigned char* residues = in.residues + in.position[peptide];
        const int length = in.length[peptide];
        Long found = 0;
        for (int i = 0; i < length; ++i) {
            if (mask >> (residues[i] - 65) & 1u) found |= 1ull << i;
        }
        return found;
    };
    return first_arrangement(form, in, peptide, slots, most, residues_in, true);
}

// Advance to the next arrangement; return false after the last one.
__device__ bool next_arrangement(Form& form) {
    int following = 0;  // slots of the same modification after slot t, each of which needs a site
    for (int t = form.n_slots - 1; t >= 0; --t) {
        following = t + 1 < form.n_slots && form.modification[t + 1] == form.modification[t] ? following + 1 : 0;
        Long after = form.possible[t] == 0 ? 0 : residues_after(form.possible[t], site_of(form, t) - 1);
        if (__popcll(after) <= following) continue;
        set_site(form, t, __ffsll(static_cast<long long>(after)));
        for (int u = t + 1; u < form.n_slots; ++u) {
            if (form.possible[u] == 0) continue;
            const bool same = form.modification[u] == form.modification[u - 1];
            after = same ? residues_after(form.possible[u], site_of(form, u - 1) - 1) : form.possible[u];
            set_site(form, u, __ffsll(static_cast<long long>(after)));
        }
        return true;
    }
    return false;
}

// Return the number of ways to choose k of n sites. The maximum, for 8 of 63, is below 2^32.
struct Choices {
    Word of[kLongest][kMostSlots + 1];
};

__device__ constexpr Choices count_choices() {
    Choices choices{};
    for (int n = 0; n < kLongest; ++n) {
        choices.of[n][0] = 1;
        for (int k = 1; k <= kMostSlots && k <= n; ++k) choices.of[n][k] = choices.of[n - 1][k - 1] + choices.of[n - 1][k];
    }
    return choices;
}

__device__ const Choices table_of_choices = count_choices();

__device__ Word choices(int n, int k) { return table_of_choices.of[n][k]; }

// Slots from t on that hold the same modification as slot t.
__device__ int slots_alike(const Form& form, int t) {
    int n = 1;
    while (t + n < form.n_slots && form.modification[t + n] == form.modification[t]) ++n;
    return n;
}

// Return true if two different modifications can be on the same site.
__device__ bool may_collide(const Form& form) {
    for (int t = 1; t < form.n_slots; ++t) {
        for (int u = 0; u < t; ++u) {
            if (form.modification[u] == form.modification[t]) continue;
            const Long a = form.possible[t], b = form.possible[u];
            const int site_a = site_of(form, t), site_b = site_of(form, u);
            if (a && b ? (a & b) != 0
                       : a ? site_b > 0 && site_b <= form.length && (a >> (site_b - 1) & 1u)
                           : b ? site_a > 0 && site_a <= form.length && (b >> (site_a - 1) & 1u) : site_a == site_b) {
                return true;
            }
        }
    }
    return false;
}

// Return the number of arrangements to try. If modifications may collide, only enumeration shows which arrangements are possible.
__device__ Word count_arrangements(const Form& form, Long most) {
    Long n = 1;
    for (int t = 0; t < form.n_slots; t += slots_alike(form, t)) {
        if (form.possible[t]) n *= choices(__popcll(form.possible[t]), slots_alike(form, t));
        if (n > most) return static_cast<Word>(most);
    }
    return static_cast<Word>(n);
}

// Set the sites of the arrangement with number `rank`, given a form with the first arrangement. The order is that of next_arrangement: the
// last modification changes fastest, and the sites of a modification pass through their combinations in lexicographic order.
__device__ Long sites_of_rank(const Form& form, Word rank) {
    Long chosen = form.sites;
#pragma unroll 1
    for (int end = form.n_slots; end > 0 && rank > 0;) {
        int t = end - 1;
        while (t > 0 && form.modification[t - 1] == form.modification[t]) --t;
        if (form.possible[t]) {
            const int n_sites = __popcll(form.possible[t]), n = end - t;
            const Word all = choices(n_sites, n);
            Word left = rank % all;
            rank /= all;
            Long sites = form.possible[t];
            for (int slot = t, index = 0; slot < end; ++index) {
                const int residue = __ffsll(static_cast<long long>(sites)) - 1;
                sites &= sites - 1;
                const Word with = choices(n_sites - 1 - index, end - 1 - slot);
                if (left < with) {
                    chosen = with_site(chosen, slot++, residue + 1);
                } else {
                    left -= with;
                }
            }
        }
        end = t;
    }
    return chosen;
}

// Return true if all modifications are on different sites.
__device__ bool is_free(Long sites, int n_slots) {
#pragma unroll 1
    for (int t = 1; t < n_slots; ++t) {
#pragma unroll 1
        for (int u = 0; u < t; ++u) {
            if (((sites >> (8 * t) ^ sites >> (8 * u)) & 255u) == 0) return false;
        }
    }
    return true;
}

// Return true if a peptide has every residue that the slots of a combination need. This excludes most peptides that cannot carry the
// combination.
__device__ bool may_carry(Word letters, const unsigned char* slots, const unsigned int* residue_mask) {
    for (int t = 0; t < kMostSlots && slots[t] != kNone; ++t) {
        if (!(letters & residue_mask[slots[t]])) return false;
    }
    return true;
}
