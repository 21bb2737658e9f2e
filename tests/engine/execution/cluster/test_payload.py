"""Only plain data is sent to other processes, as bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from proteoscope.engine.execution.cluster.payload import pack, unpack

KINDS = st.sampled_from(["<i4", "<i8", "<f4", "<f8", "|u1", "|b1"])
ARRAYS = KINDS.flatmap(lambda kind: of_numpy.arrays(np.dtype(kind), of_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=9,
)


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_plain_data_is_equal_after_pack_and_unpack(value: object) -> None:
    assert unpack(pack(value)) == value


@given(ARRAYS)
@settings(max_examples=60, deadline=None)
def test_arrays_are_bitwise_equal_after_pack_and_unpack(array: np.ndarray) -> None:
    unpacked = unpack(pack({"column": [array]}))["column"][0]
    assert (unpacked.dtype, unpacked.shape, unpacked.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert unpacked.flags.writeable


def test_read_only_arrays_are_read_only_after_unpack() -> None:
    # Kernels are compiled for read-only or writable arrays: a worker would have to compile a compiled kernel again.
    read_only = np.arange(3)
    read_only.flags.writeable = False
    unpacked = unpack(pack((read_only, np.arange(3), np.float64(1))))
    assert [array.flags.writeable for array in unpacked[:2]] == [False, True]


@pytest.mark.parametrize("value", [object(), np.array([object()]), {"a": {1, 2}}, np.array([[], None], object)])
def test_pack_rejects_objects_that_are_not_plain_data(value: object) -> None:
    with pytest.raises(TypeError):
        pack(value)


def test_unpack_rejects_pickle_in_an_array() -> None:
    import io

    import msgpack

    file = io.BytesIO()
    np.save(file, np.array([print], object), allow_pickle=True)
    with pytest.raises(ValueError, match="pickle"):
        unpack(msgpack.packb(msgpack.ExtType(1, file.getvalue())))


def test_unpack_rejects_unknown_extension_type() -> None:
    import msgpack

    with pytest.raises(ValueError, match="code 77"):
        unpack(msgpack.packb(msgpack.ExtType(77, b"")))
