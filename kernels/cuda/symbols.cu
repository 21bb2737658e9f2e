// Determination of the symbols that occur in sequences, so that tables need only these.

using Word = unsigned int;
using Place = long long;

// Set a bit for each symbol that occurs.
extern "C" __global__ void note_symbols(const signed char* codes, Place n, Word* symbols) {
    Word seen = 0;
    for (Place k = (static_cast<Place>(blockIdx.x) * blockDim.x + threadIdx.x) * 16; k < n; k += static_cast<Place>(gridDim.x) * blockDim.x * 16) {
        if (k + 16 <= n) {
            const uint4 some = *reinterpret_cast<const uint4*>(codes + k);
            const Word words[4] = {some.x, some.y, some.z, some.w};
            for (int byte = 0; byte < 16; ++byte) seen |= 1u << (words[byte / 4] >> byte % 4 * 8 & 31);
        } else {
            for (Place left = k; left < n; ++left) seen |= 1u << (codes[left] & 31);
        }
    }
    if (seen != 0) atomicOr(symbols, seen);
}
