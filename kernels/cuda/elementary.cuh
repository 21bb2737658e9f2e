// Logarithm and power, with the same operations in the same order as `proteoscope.kernels.cpu.elementary`.
#pragma once

constexpr double kLn2 = 0.6931471805599453, kPerLn2 = 1.4426950408889634;
constexpr double kLn2High = 2977044471.0 / 4294967296.0, kLn2Low = 1.9082149292705878e-10;
constexpr long long kBitsOfRootOfHalf = 0x3FE6A09E667F3BCD;
constexpr int kMantissaBits = 52, kExponentOfOne = 1023;

// Return the natural logarithm of a positive, finite and normal number.
__device__ __forceinline__ double logarithm(double x) {
    const long long bits = __double_as_longlong(x);
    const long long exponent = (bits - kBitsOfRootOfHalf) >> kMantissaBits;
    const double mantissa = __longlong_as_double(bits - exponent * (1ll << kMantissaBits));
    const double f = (mantissa - 1.0) / (mantissa + 1.0);
    const double s = f * f;
    const double s2 = s * s;
    const double s4 = s2 * s2;
    const double low = (1.0 / 3.0 + s * (1.0 / 5.0)) + s2 * (1.0 / 7.0 + s * (1.0 / 9.0));
    const double high = (1.0 / 11.0 + s * (1.0 / 13.0)) + s2 * (1.0 / 15.0 + s * (1.0 / 17.0));
    const double series = (low + s4 * high) + (s4 * s4) * (1.0 / 19.0);
    return static_cast<double>(exponent) * kLn2 + (2.0 * f + (2.0 * f) * (s * series));
}

// Return the power, or zero if the base is not positive. Not inlined, to save registers in the callers.
__device__ __noinline__ double power(double base, double exponent) {
    if (!(base > 0.0)) return 0.0;
    const double y = exponent * logarithm(base);
    const double n = floor(y * kPerLn2 + 0.5);
    const double r = (y - n * kLn2High) - n * kLn2Low;
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double r8 = r4 * r4;
    const double first = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0));
    const double second = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    const double third = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
    const double fourth = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    const double exponential = (first + r4 * second) + r8 * (third + r4 * fourth);
    return exponential * __longlong_as_double((static_cast<long long>(n) + kExponentOfOne) << kMantissaBits);
}
