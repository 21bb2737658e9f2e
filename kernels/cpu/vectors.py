"""Vectors of small integers for Numba on all CPUs, for loops in which the compiler uses no vector instructions.

A vector is a value of the type `Lanes`: as many integers of 8, 16 or 32 bits as fit in one register of the CPU. The operations are LLVM's
vector instructions, which exist on every CPU; only the table look-up of bytes has one implementation per family (AVX-512 VBMI, AVX2, NEON)
and a slow one for other CPUs.

A vector exists only within a compiled function: it cannot be an argument, a result or an array element. `load` and `store` transfer
vectors.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

__all__ = [
    "FEATURES",
    "REGISTER_BYTES",
    "add",
    "add_saturated",
    "aligned",
    "bits_of_greater",
    "gather",
    "gathered",
    "lanes_of",
    "largest",
    "last_lane",
    "llvm_function",
    "load",
    "load_anywhere",
    "load_codes",
    "look_up",
    "maximum",
    "maximum_by_comparison",
    "minimum",
    "multiply",
    "shifted_1",
    "shifted_2",
    "shifted_4",
    "shifted_8",
    "shifted_16",
    "shifted_down",
    "spread",
    "store",
    "store_anywhere",
    "store_first",
    "subtract",
    "subtract_saturated",
    "subtract_to_zero",
    "where_equal",
    "where_greater",
]

_INDEX = ir.IntType(32)


def _features() -> set[str]:
    """Return the CPU features for which Numba compiles: the features of this machine, or of NUMBA_CPU_FEATURES if it is set.

    NEON is not checked, since every 64-bit ARM CPU has it.
    """
    if config.CPU_FEATURES is not None:
        return {name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+")}
    return {name for name, present in llvm.get_host_cpu_features().items() if present}


FEATURES = _features()
"""CPU features, under LLVM's names."""
_COMPARES_ON_ANOTHER_PORT = "avx512bw" in FEATURES and not (config.CPU_NAME or llvm.get_host_cpu_name()).startswith("znver")
_IS_ARM = llvm.get_process_triple().startswith(("aarch64", "arm64"))
REGISTER_BYTES = 64 if "avx512bw" in FEATURES else 32 if "avx2" in FEATURES else 16
"""Number of bytes of a vector register of this CPU."""


def aligned(length: int, dtype: Any) -> NDArray:
    """Return zeros aligned for register loads, an array (length,) of `dtype`."""
    size = length * np.dtype(dtype).itemsize
    workspace = np.zeros(size + REGISTER_BYTES, np.uint8)
    start = -workspace.ctypes.data % REGISTER_BYTES
    return workspace[start : start + size].view(dtype)


class Lanes(types.Type):
    """Type of a vector of `count` signed integers of `bits` bits."""

    def __init__(self, bits: int, count: int) -> None:
        self.bits, self.count = bits, count
        super().__init__(name=f"Lanes({bits} bits x {count})")

    @property
    def llvm_type(self) -> ir.VectorType:
        """Return the LLVM type of the vector."""
        return ir.VectorType(ir.IntType(self.bits), self.count)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, lanes.llvm_type)


def _lanes(array: types.Array) -> Lanes:
    """Return the full vector type of an array's elements."""
    return Lanes(array.dtype.bitwidth, REGISTER_BYTES * 8 // array.dtype.bitwidth)


def _pointer(context: Any, builder: Any, array_type: types.Array, array: Any, position: Any, lanes: Lanes) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), lanes.llvm_type.as_pointer())


def llvm_function(builder: Any, name: str, result: ir.Type, arguments: list[ir.Type]) -> Any:
    """Return the LLVM function `name`, declared in the current module."""
    declared = builder.module.globals.get(name)
    return declared if declared is not None else ir.Function(builder.module, ir.FunctionType(result, arguments), name)


@intrinsic
def lanes_of(typing: Any, array: Any) -> Any:
    """Return the number of lanes of vectors of an array's type: a compile-time constant, unlike the length of an array."""
    lanes = _lanes(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, lanes.count)

    return types.intp(array), code


@intrinsic
def load(typing: Any, array: Any, position: Any) -> Any:
    """Load the vector at `position` (a multiple of the vector's length, in an `aligned` array)."""
    lanes = _lanes(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], lanes), align=REGISTER_BYTES)

    return lanes(array, types.intp), code


@intrinsic
def load_anywhere(typing: Any, array: Any, position: Any) -> Any:
    """Load the vector at any position."""
    lanes = _lanes(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], lanes)
        return builder.load(pointer, align=lanes.bits // 8)

    return lanes(array, types.intp), code


@intrinsic
def load_codes(typing: Any, codes: Any, position: Any, like: Any) -> Any:
    """Load bytes of an int8 array for a look-up: as many bytes as a vector of the array `like` has lanes."""
    lanes = Lanes(8, _lanes(like).count)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], lanes), align=lanes.count)

    return lanes(codes, types.intp, like), code


@intrinsic
def store(typing: Any, array: Any, position: Any, vector: Any) -> Any:
    """Store a vector at `position` (a multiple of the vector's length, in an `aligned` array)."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, signature.args[0], arguments[0], arguments[1], vector), align=REGISTER_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def store_anywhere(typing: Any, array: Any, position: Any, vector: Any) -> Any:
    """Store a vector at any position; only the lowest byte of each lane is stored in an array of bytes."""
    retained = Lanes(array.dtype.bitwidth, vector.count)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[2] if retained.bits == vector.bits else builder.trunc(arguments[2], retained.llvm_type)
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], retained)
        builder.store(value, pointer, align=retained.bits // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def bits_of_greater(typing: Any, left: Any, right: Any) -> Any:
    """Return an integer whose k-th bit is set if lane k of `left` is greater than lane k of `right`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_greater = builder.icmp_signed(">", *arguments)
        bits = builder.bitcast(is_greater, ir.IntType(left.count))
        return builder.zext(bits, ir.IntType(64)) if left.count < 64 else bits

    return types.int64(left, right), code


@intrinsic
def store_first(typing: Any, array: Any, position: Any, vector: Any) -> Any:
    """Store the first lane of a vector at any position."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store(builder.extract_element(arguments[2], _INDEX(0)), builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def spread(typing: Any, array: Any, value: Any) -> Any:
    """Return a vector of the array's type with `value` in every lane."""
    lanes = _lanes(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.trunc(arguments[1], ir.IntType(lanes.bits))
        vector = builder.insert_element(ir.Constant(lanes.llvm_type, ir.Undefined), value, _INDEX(0))
        return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INDEX, lanes.count), [0] * lanes.count))

    return lanes(array, types.int64), code


def _call_lane_by_lane(builder: Any, operation: str, lanes: Lanes, arguments: Any) -> Any:
    """Return the call of an LLVM operation on corresponding lanes of two vectors."""
    vector = lanes.llvm_type
    return builder.call(llvm_function(builder, f"llvm.{operation}.v{lanes.count}i{lanes.bits}", vector, [vector, vector]), arguments)


def _lane_by_lane(operation: str, text: str) -> Any:
    """Return an intrinsic for an LLVM operation on corresponding lanes of two vectors."""

    def typed(typing: Any, left: Any, right: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _call_lane_by_lane(builder, operation, left, arguments)

        return left(left, right), code

    typed.__doc__ = text
    return intrinsic(typed)


add_saturated = _lane_by_lane("sadd.sat", "Return the sums of two vectors, limited to the range of the integers.")
subtract_saturated = _lane_by_lane("ssub.sat", "Return the differences of two vectors, limited to the range of the integers.")
subtract_to_zero = _lane_by_lane("usub.sat", "Return the differences of non-negative numbers, or zero where they would be negative.")
maximum = _lane_by_lane("smax", "Return the larger number of each lane.")
minimum = _lane_by_lane("smin", "Return the smaller number of each lane.")
llvm.initialize_native_asmparser()  # Numba initialises only what it needs itself


@intrinsic
def maximum_by_comparison(typing: Any, left: Any, right: Any) -> Any:
    """Return the larger number of each lane, with less use of the port that computes maxima on Intel CPUs with AVX-512.

    These CPUs compute maxima of 64 bytes on one port (0), comparisons on the other (5), and selections on both. A loop that is limited by
    maxima becomes faster if some of them are a comparison and a selection. On other CPUs, this is `maximum`.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _COMPARES_ON_ANOTHER_PORT or left.bits * left.count != 512:
            return _call_lane_by_lane(builder, "smax", left, arguments)
        mask = ir.IntType(left.count)
        # LLVM would replace its own comparison and selection by a maximum.
        instruction = {8: "vpcmpgtb", 16: "vpcmpgtw", 32: "vpcmpgtd"}[left.bits] + " $2, $1, $0"
        is_greater = builder.asm(ir.FunctionType(mask, [left.llvm_type] * 2), instruction, "=^Yk,v,v", arguments, side_effect=False)
        return builder.select(builder.bitcast(is_greater, ir.VectorType(ir.IntType(1), left.count)), *arguments)

    return left(left, right), code


def _wrapping(operation: str, text: str) -> Any:
    """Return an intrinsic for a wrapping operation on two vectors; at 32 bits, saturation would need two more instructions."""

    def typed(typing: Any, left: Any, right: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, operation)(*arguments)

        return left(left, right), code

    typed.__doc__ = text
    return intrinsic(typed)


add = _wrapping("add", "Return the sums of two vectors, which must not overflow.")
subtract = _wrapping("sub", "Return the differences of two vectors, which must not overflow.")
multiply = _wrapping("mul", "Return the products of two vectors, which must not overflow.")


@intrinsic
def largest(typing: Any, vector: Any) -> Any:
    """Return the largest lane as int64."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name = f"llvm.vector.reduce.smax.v{vector.count}i{vector.bits}"
        result = builder.call(llvm_function(builder, name, ir.IntType(vector.bits), [vector.llvm_type]), arguments)
        return builder.sext(result, ir.IntType(64))

    return types.int64(vector), code


def _chosen(comparison: str, text: str) -> Any:
    """Return an intrinsic that selects lanes by comparing two vectors."""

    def typed(typing: Any, left: Any, right: Any, yes: Any, no: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.select(builder.icmp_signed(comparison, arguments[0], arguments[1]), arguments[2], arguments[3])

        return left(left, right, yes, no), code

    typed.__doc__ = text
    return intrinsic(typed)


where_equal = _chosen("==", "Return `yes` in lanes where `left` and `right` are equal, else `no`.")
where_greater = _chosen(">", "Return `yes` in lanes where `left` is greater than `right`, else `no`.")


def _moved(text: str, mask: Any) -> Any:
    """Return an intrinsic that permutes the lanes of two vectors; `mask` is computed from the number of lanes."""

    def typed(typing: Any, filling: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            order = ir.Constant(ir.VectorType(_INDEX, vector.count), mask(vector.count))
            return builder.shuffle_vector(arguments[0], arguments[1], order)

        return vector(filling, vector), code

    typed.__doc__ = text
    return intrinsic(typed)


def _shifted(positions: int) -> Any:
    # Lane 0 of `filling` is shifted in; if the vector has fewer lanes than `places`, the result is all filling.
    text = f"Return `vector` moved up by {positions} lanes; the freed lanes get the first lane of `filling`."
    return _moved(text, lambda count: [0 if lane < positions else count + lane - positions for lane in range(count)])


shifted_1, shifted_2, shifted_4, shifted_8, shifted_16 = (_shifted(places) for places in (1, 2, 4, 8, 16))
shifted_down = _moved(
    "Return `filling` moved down by one lane; its last lane gets the first lane of `vector`.",
    lambda count: [lane + 1 for lane in range(count)],
)
last_lane = _moved("Return the last lane of `vector` in every lane; `filling` is ignored.", lambda count: [2 * count - 1] * count)


@intrinsic
def look_up(typing: Any, table: Any, position: Any, codes: Any) -> Any:
    """Return the elements ``table[position + code]`` for each code from 0 to 31.

    `position` must be a multiple of 64 in an `aligned` table; the elements 32 to 63 after it must repeat the first 32, since AVX-512
    looks up a whole register.
    """
    lanes = _lanes(table)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if lanes.bits == 8:
            if lanes.count == 64 and "avx512vbmi" in FEATURES:
                row = builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], lanes), align=REGISTER_BYTES)
                shuffle = llvm_function(builder, "llvm.x86.avx512.permvar.qi.512", row.type, [row.type, row.type])
                return builder.call(shuffle, [row, arguments[2]])
            halves = [_half_row(context, builder, signature, arguments, lanes, half) for half in (0, 16)]
            if lanes.count == 64:
                return _shuffle_halves(builder, "llvm.x86.avx512.pshuf.b.512", halves, arguments[2])
            if lanes.count == 32:
                return _shuffle_halves(builder, "llvm.x86.avx2.pshuf.b", halves, arguments[2])
            if lanes.count == 16 and _IS_ARM:
                vector = lanes.llvm_type
                shuffle = llvm_function(builder, "llvm.aarch64.neon.tbl2.v16i8", vector, [vector] * 3)
                return builder.call(shuffle, [*halves, arguments[2]])
            if lanes.count == 16 and "ssse3" in FEATURES:
                return _shuffle_halves(builder, "llvm.x86.ssse3.pshuf.b.128", halves, arguments[2])
        if lanes.bits == 16 and lanes.count == 32 and "avx512bw" in FEATURES:
            row = builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], lanes), align=REGISTER_BYTES)
            shuffle = llvm_function(builder, "llvm.x86.avx512.permvar.hi.512", row.type, [row.type, row.type])
            return builder.call(shuffle, [row, builder.zext(arguments[2], row.type)])
        if lanes.bits == 32 and lanes.count == 16 and "avx512f" in FEATURES:
            return _permute_two_registers(context, builder, signature, arguments, lanes)
        return _one_by_one(context, builder, signature, arguments, lanes)

    return lanes(table, types.intp, Lanes(8, lanes.count)), code


def _half_row(context: Any, builder: Any, signature: Any, arguments: Any, lanes: Lanes, start: int) -> Any:
    """Return sixteen bytes of a row of the table, repeated to fill a register."""
    sixteen = Lanes(8, 16)
    position = builder.add(arguments[1], ir.Constant(arguments[1].type, start))
    half = builder.load(_pointer(context, builder, signature.args[0], arguments[0], position, sixteen), align=16)
    order = ir.Constant(ir.VectorType(_INDEX, lanes.count), [i % 16 for i in range(lanes.count)])
    return builder.shuffle_vector(half, half, order)


def _shuffle_halves(builder: Any, name: str, halves: list[Any], codes: Any) -> Any:
    """Look up bytes with the shuffle of sixteen bytes of x86, once for each half of the row, and select between both."""
    vector = codes.type
    shuffle = llvm_function(builder, name, vector, [vector, vector])
    low, high = (builder.call(shuffle, [half, codes]) for half in halves)
    is_low = builder.icmp_signed("<", codes, ir.Constant(vector, [16] * vector.count))
    return builder.select(is_low, low, high)


def _permute_two_registers(context: Any, builder: Any, signature: Any, arguments: Any, lanes: Lanes) -> Any:
    """Look up with AVX-512's permutation of thirty-two 32-bit numbers in two registers."""
    vector = lanes.llvm_type
    positions = [arguments[1], builder.add(arguments[1], ir.Constant(arguments[1].type, lanes.count))]
    low, high = (
        builder.load(_pointer(context, builder, signature.args[0], arguments[0], position, lanes), align=REGISTER_BYTES)
        for position in positions
    )
    permute = llvm_function(builder, "llvm.x86.avx512.vpermi2var.d.512", vector, [vector] * 3)
    return builder.call(permute, [low, builder.zext(arguments[2], vector), high])


def gathered(builder: Any, data: Any, positions: Any) -> Any:
    """Emit code that gathers 32-bit elements at positions in a vector."""
    vector, byte, count = positions.type, ir.IntType(8), positions.type.count
    nothing, pointer = ir.Constant(vector, [0] * count), builder.bitcast(data, byte.as_pointer())
    if count == 16 and "avx512f" in FEATURES:
        bit = ir.VectorType(ir.IntType(1), 16)
        name, every, scale = "llvm.x86.avx512.mask.gather.dpi.512", ir.Constant(bit, [1] * 16), ir.Constant(_INDEX, 4)
        collect = llvm_function(builder, name, vector, [vector, pointer.type, vector, bit, _INDEX])
        return builder.call(collect, [nothing, pointer, positions, every, scale])
    if count == 8 and "avx2" in FEATURES:
        every, scale = ir.Constant(vector, [-1] * 8), ir.Constant(byte, 4)
        collect = llvm_function(builder, "llvm.x86.avx2.gather.d.d.256", vector, [vector, pointer.type, vector, vector, byte])
        return builder.call(collect, [nothing, pointer, positions, every, scale])
    result = ir.Constant(vector, ir.Undefined)
    for lane in range(count):
        index = builder.sext(builder.extract_element(positions, _INDEX(lane)), ir.IntType(64))
        result = builder.insert_element(result, builder.load(builder.gep(data, [index])), _INDEX(lane))
    return result


@intrinsic
def gather(typing: Any, array: Any, positions: Any) -> Any:
    """Return the elements of a 32-bit array at positions in a vector of 32-bit lanes."""
    lanes = _lanes(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return gathered(builder, data, arguments[1])

    return lanes(array, positions), code


def _one_by_one(context: Any, builder: Any, signature: Any, arguments: Any, lanes: Lanes) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    result = ir.Constant(lanes.llvm_type, ir.Undefined)
    for lane in range(lanes.count):
        index = builder.zext(builder.extract_element(arguments[2], _INDEX(lane)), arguments[1].type)
        value = builder.load(builder.gep(data, [builder.add(arguments[1], index)]))
        result = builder.insert_element(result, value, _INDEX(lane))
    return result
