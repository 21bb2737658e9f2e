"""Names of paired reads (mates): tags at the end of names, such as /1, and comparison of names."""

from __future__ import annotations

from numba import njit

__all__ = ["are_same", "find_tags"]

_LONGEST_TAG = 8


@njit(nogil=True, cache=True)
def find_tags(characters, offsets, tags, is_separator, lengths, numbers):
    """Find the tags of names: a separator and the text after it, at the end of a name.

    Parameters
    ----------
    characters : (bytes,) uint8
        Characters of all names.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each name in `characters`, followed by their number.
    tags : (m,) int64
        Characters of each tag, at most eight, encoded as one integer.
    is_separator : ndarray of bool, shape (256,)
        True for characters that may precede a tag.
    lengths, numbers : (n,) int64
        Output; number of characters of the tag, or 0; index in `tags`, or -1.
    """
    for i in range(len(offsets) - 1):
        lengths[i], numbers[i] = 0, -1
        value, shift = 0, 0
        for position in range(offsets[i + 1] - 1, max(offsets[i], offsets[i + 1] - 1 - _LONGEST_TAG), -1):
            symbol = characters[position]
            value |= int(symbol) << shift
            shift += 8
            if is_separator[symbol]:
                for k in range(len(tags)):
                    if tags[k] == value:
                        lengths[i], numbers[i] = shift >> 3, k
                break


@njit(nogil=True, cache=True)
def are_same(characters, starts, lengths, other_characters, other_starts, other_lengths, same):
    """Compare two lists of texts elementwise.

    Parameters
    ----------
    characters, other_characters : uint8
        Characters of the texts in both lists.
    starts, lengths, other_starts, other_lengths : (n,) int64
        Start and length of each text.
    same : (n,) bool
        Output; True for equal texts.
    """
    for i in range(len(starts)):
        is_same = lengths[i] == other_lengths[i]
        if is_same:
            for k in range(lengths[i] - 1, -1, -1):  # compare from the end, since names of one run differ there
                if characters[starts[i] + k] != other_characters[other_starts[i] + k]:
                    is_same = False
                    break
        same[i] = is_same
