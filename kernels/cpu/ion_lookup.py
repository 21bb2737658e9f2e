"""Look-up of theoretical ions in batches: `IONS_AT_ONCE` masses are converted to bins of a table, which is then read.

The functions are written with LLVM's vector instructions, like `proteoscope.kernels.cpu.vectors`. Each lane evaluates the same expression
as scalar code, so that rounding is the same everywhere.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from proteoscope.kernels.cpu.vectors import FEATURES, gathered, llvm_function

__all__ = [
    "IONS_AT_ONCE",
    "OUT_OF_REACH",
    "RESIDUES_AT_ONCE",
    "count_bits",
    "fetch_early",
    "fill_block",
    "lowest_bit",
    "matching_ions",
    "matching_residues",
    "sum_of_bins",
]

IONS_AT_ONCE = 16 if "avx512f" in FEATURES else 8
"""Number of ions per look-up, at most 16; arrays of masses have as many additional elements, since they are read in blocks of this size."""
OUT_OF_REACH = float(1 << 20)
"""Mass (Da) that fills blocks of masses: far above every ion, with a bin number below 32 bits."""

RESIDUES_AT_ONCE = 16
"""Number of residues of a peptide that are compared together."""

_MASS, _WHOLE, _LONG = ir.DoubleType(), ir.IntType(32), ir.IntType(64)


def _vector(kind: ir.Type) -> ir.VectorType:
    return ir.VectorType(kind, IONS_AT_ONCE)


def _spread(builder: Any, value: Any) -> Any:
    vector = builder.insert_element(ir.Constant(_vector(value.type), ir.Undefined), value, _WHOLE(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(_vector(_WHOLE), [0] * IONS_AT_ONCE))


def _constant(value: int) -> Any:
    return ir.Constant(_vector(_WHOLE), [value] * IONS_AT_ONCE)


def _data(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    return context.make_array(signature.args[which])(context, builder, arguments[which]).data


def _targets(builder: Any, masses: Any, position: Any, start: Any, sign: Any) -> Any:
    """Return ``start + sign * mass`` of the block of masses at `position`."""
    block = _vector(_MASS)
    pointer = builder.bitcast(builder.gep(masses, [position]), block.as_pointer())
    return builder.fadd(_spread(builder, start), builder.fmul(_spread(builder, sign), builder.load(pointer, align=8)))


def _bins(builder: Any, scaled: Any, edge: Any) -> Any:
    """Return the bins of masses, rounded towards zero; bins below zero or above `edge` become `edge`."""
    bins, edges = builder.fptosi(scaled, _vector(_WHOLE)), _spread(builder, builder.trunc(edge, _WHOLE))
    return builder.select(builder.icmp_unsigned("<", bins, edges), bins, edges)


@intrinsic
def matching_ions(typing: Any, masses: Any, position: Any, start: Any, sign: Any, inverse: Any, words: Any, edge: Any) -> Any:
    """Return a bit mask of the ions ``start + sign * mass`` whose bin is set in `words`; bit i is the ion of the mass at ``position + i``.

    `words` is uint32; `inverse` is the inverse bin width; `edge` is an unset bin, used for bins below zero or above it.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _targets(builder, _data(context, builder, signature, arguments, 0), *arguments[1:4])
        bins = _bins(builder, builder.fmul(target, _spread(builder, arguments[4])), arguments[6])
        result = gathered(builder, _data(context, builder, signature, arguments, 5), builder.lshr(bins, _constant(5)))
        bit = builder.shl(_constant(1), builder.and_(bins, _constant(31)))
        is_set = builder.icmp_unsigned("!=", builder.and_(result, bit), _constant(0))
        return builder.zext(builder.bitcast(is_set, ir.IntType(IONS_AT_ONCE)), _LONG)

    return types.uint64(masses, types.intp, types.float64, types.float64, types.float64, words, types.int64), code


@intrinsic
def sum_of_bins(typing: Any, masses: Any, position: Any, start: Any, sign: Any, inverse: Any, shift: Any, heights: Any, edge: Any) -> Any:
    """Return the int64 sum of `heights` (int32) at the bins ``(start + sign * mass) * inverse + shift`` of a block of masses.

    `edge` is a bin of height 0, used for bins below zero or above it.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = _targets(builder, _data(context, builder, signature, arguments, 0), *arguments[1:4])
        scaled = builder.fadd(builder.fmul(target, _spread(builder, arguments[4])), _spread(builder, arguments[5]))
        result = gathered(builder, _data(context, builder, signature, arguments, 6), _bins(builder, scaled, arguments[7]))
        longs = builder.sext(result, _vector(_LONG))
        reduce = llvm_function(builder, f"llvm.vector.reduce.add.v{IONS_AT_ONCE}i64", _LONG, [_vector(_LONG)])
        return builder.call(reduce, [longs])

    float64 = types.float64
    return types.int64(masses, types.intp, float64, float64, float64, float64, heights, types.int64), code


@intrinsic
def fill_block(typing: Any, masses: Any, position: Any, mass: Any) -> Any:
    """Fill the block of masses at `position` with one mass."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data(context, builder, signature, arguments, 0)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), _vector(_MASS).as_pointer())
        builder.store(_spread(builder, arguments[2]), pointer, align=8)
        return context.get_dummy_value()

    return types.void(masses, types.intp, types.float64), code


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Return the index of the lowest set bit of a non-zero value."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), code


@intrinsic
def count_bits(typing: Any, bits: Any) -> Any:
    """Return the number of set bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), code


@intrinsic
def matching_residues(typing: Any, residues: Any, position: Any, mask: Any) -> Any:
    """Return a bit mask of `RESIDUES_AT_ONCE` residues from `position` on; bit i is set if residue ``position + i`` is in a set.

    `mask` (uint32) is the set: bit k is the k-th capital, from 0.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, wide = ir.VectorType(ir.IntType(8), RESIDUES_AT_ONCE), ir.VectorType(_WHOLE, RESIDUES_AT_ONCE)
        pointer = builder.gep(_data(context, builder, signature, arguments, 0), [arguments[1]])
        symbols = builder.zext(builder.load(builder.bitcast(pointer, codes.as_pointer()), align=1), wide)
        masks = builder.insert_element(ir.Constant(wide, ir.Undefined), arguments[2], _WHOLE(0))
        masks = builder.shuffle_vector(masks, masks, ir.Constant(wide, [0] * RESIDUES_AT_ONCE))
        positions = builder.and_(
            builder.sub(symbols, ir.Constant(wide, [65] * RESIDUES_AT_ONCE)), ir.Constant(wide, [31] * RESIDUES_AT_ONCE)
        )
        is_in = builder.trunc(builder.lshr(masks, positions), ir.VectorType(ir.IntType(1), RESIDUES_AT_ONCE))
        return builder.zext(builder.bitcast(is_in, ir.IntType(RESIDUES_AT_ONCE)), _LONG)

    return types.uint64(residues, types.intp, types.uint32), code


@intrinsic
def fetch_early(typing: Any, array: Any, position: Any) -> Any:
    """Prefetch an element that will be read soon."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.gep(_data(context, builder, signature, arguments, 0), [arguments[1]])
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        prefetch = llvm_function(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer.type, _WHOLE, _WHOLE, _WHOLE])
        builder.call(prefetch, [pointer, _WHOLE(0), _WHOLE(3), _WHOLE(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), code
