// Least-squares superpositions in batches of sixteen, and the distances of pairs under them, bit-identical to kernels/cpu/least_squares.py.
//
// Kabsch's rotation (Acta Crystallographica A32, 1976, 922-923) is computed as a quaternion (Horn, Journal of the Optical Society of
// America A 4, 1987, 629-642), its eigenvalue by Newton's method (Theobald, Acta Crystallographica A61, 2005, 478-480). Coordinates are on
// a grid on which every sum of products is exact, and shares are multiples of 2^-32. Sums are therefore the same in any order, so that
// lanes may add in any order. Everything else is rounded as on the CPU: the same operations in the same order, none of them fused.
#pragma once

#include "warp.cuh"

constexpr int kBatch = 16;    // superpositions computed together
constexpr int kMoments = 17;  // sums of x (3), of y (3), of products of their axes (9), of squares of both, and pairs
constexpr int kMove = 12;     // a superposition: the rotation row by row, then the translation
constexpr int kNewtonSteps = 9;
constexpr double kFarthest = 1e6;               // Å
constexpr double kShareUnits = 1048576.0;       // adding and subtracting this rounds to multiples of 2^-32
constexpr int kLanesOfRun = 32 / kBatch;        // lanes that add up a run of pairs if there are sixteen runs

// A batch of runs of pairs in shared memory, which a warp superposes. Run k has lengths[k] pairs, and is unused if this is 0. Moves and
// moments are ordered by element.
struct Runs {
    double sums[kMoments][kBatch];
    double moves[kMove][kBatch];
    double totals[kBatch];
    double limits[kBatch];
    int first_x[kBatch], first_y[kBatch], lengths[kBatch];
};

// Coordinates of a chain, or of pairs of two chains: axis by axis, with `stride` from one axis to the next; only every n-th residue is
// used.
struct Columns {
    const double* at;
    int stride, every;
    __device__ double operator()(int axis, int i) const { return at[axis * stride + i * every]; }
};

__device__ __forceinline__ double determinant(
    double a, double b, double c, double d, double e, double f, double g, double h, double i) {
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
}

__device__ __forceinline__ double share_of(double apart, double inverse) { return 1.0 / (1.0 + apart * inverse) + kShareUnits - kShareUnits; }

// Return the squared distance of a pair after moving x.
__device__ __forceinline__ double apart_squared(
    const double (&r)[kMove], double s, double t, double u, double d, double e, double f) {
    const double a = r[0] * s + r[1] * t + r[2] * u + r[9] - d;
    const double b = r[3] * s + r[4] * t + r[5] * u + r[10] - e;
    const double c = r[6] * s + r[7] * t + r[8] * u + r[11] - f;
    return a * a + b * b + c * c;
}

// Compute the eigenvector of the largest eigenvalue of a symmetric matrix, which is overwritten (Jacobi).
__device__ __noinline__ void eigenvector(double (&k)[4][4], double (&q)[4]) {
    double v[4][4] = {{1.0, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0}, {0.0, 0.0, 1.0, 0.0}, {0.0, 0.0, 0.0, 1.0}};
#pragma unroll 1
    for (int sweep = 0; sweep < 50; ++sweep) {
        double off = 0.0;
        for (int p = 0; p < 3; ++p)
            for (int o = p + 1; o < 4; ++o) off += k[p][o] * k[p][o];
        if (off <= 1e-30 * (k[0][0] * k[0][0] + k[1][1] * k[1][1] + k[2][2] * k[2][2] + k[3][3] * k[3][3]) || off == 0.0) break;
        for (int p = 0; p < 3; ++p) {
            for (int o = p + 1; o < 4; ++o) {
                if (k[p][o] == 0.0) continue;
                const double theta = (k[o][o] - k[p][p]) / (2.0 * k[p][o]);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
                const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
                for (int r = 0; r < 4; ++r) {
                    const double a = k[r][p], b = k[r][o];
                    k[r][p] = c * a - s * b, k[r][o] = s * a + c * b;
                }
                for (int r = 0; r < 4; ++r) {
                    const double a = k[p][r], b = k[o][r];
                    k[p][r] = c * a - s * b, k[o][r] = s * a + c * b;
                }
                for (int r = 0; r < 4; ++r) {
                    const double a = v[r][p], b = v[r][o];
                    v[r][p] = c * a - s * b, v[r][o] = s * a + c * b;
                }
            }
        }
    }
    int best = 0;
    for (int p = 1; p < 4; ++p) {
        if (k[p][p] > k[best][best]) best = p;
    }
    for (int r = 0; r < 4; ++r) q[r] = v[r][best];
}

// Compute the superposition of any pairs, including collinear pairs, from their moments.
__device__ __noinline__ void any_superposition(Runs& runs, int k) {
    double sums[kMoments];
    for (int c = 0; c < kMoments; ++c) sums[c] = runs.sums[c][k];
    const double inverse = 1.0 / sums[16];
    const double mx = sums[0], my = sums[1], mz = sums[2], ux = sums[3], uy = sums[4], uz = sums[5];
    const double xx = sums[6] - mx * ux * inverse, xy = sums[7] - mx * uy * inverse, xz = sums[8] - mx * uz * inverse;
    const double yx = sums[9] - my * ux * inverse, yy = sums[10] - my * uy * inverse, yz = sums[11] - my * uz * inverse;
    const double zx = sums[12] - mz * ux * inverse, zy = sums[13] - mz * uy * inverse, zz = sums[14] - mz * uz * inverse;
    const double inner = 0.5 * (sums[15] - (mx * mx + my * my + mz * mz + ux * ux + uy * uy + uz * uz) * inverse);
    const double k00 = xx + yy + zz, k01 = yz - zy, k02 = zx - xz, k03 = xy - yx;
    const double k11 = xx - yy - zz, k12 = xy + yx, k13 = zx + xz;
    const double k22 = -xx + yy - zz, k23 = yz + zy, k33 = -xx - yy + zz;
    const double c2 = -2.0 * (xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz);
    const double c1 = -8.0 * determinant(xx, xy, xz, yx, yy, yz, zx, zy, zz);
    const double c0 = k00 * determinant(k11, k12, k13, k12, k22, k23, k13, k23, k33)
        - k01 * determinant(k01, k12, k13, k02, k22, k23, k03, k23, k33)
        + k02 * determinant(k01, k11, k13, k02, k12, k23, k03, k13, k33)
        - k03 * determinant(k01, k11, k12, k02, k12, k22, k03, k13, k23);
    double value = inner;
    bool converged = false;
    for (int round = 0; round < 30; ++round) {
        const double square = value * value;
        const double slope = 4.0 * square * value + 2.0 * c2 * value + c1;
        if (slope <= 0.0) break;
        const double step = (square * square + c2 * square + c1 * value + c0) / slope;
        value -= step;
        if (fabs(step) <= 1e-13 * fabs(value)) {
            converged = true;
            break;
        }
    }
    const double a00 = k00 - value, a11 = k11 - value, a22 = k22 - value, a33 = k33 - value;
    const double d0 = determinant(a11, k12, k13, k12, a22, k23, k13, k23, a33);
    const double d1 = determinant(a00, k02, k03, k02, a22, k23, k03, k23, a33);
    const double d2 = determinant(a00, k01, k03, k01, a11, k13, k03, k13, a33);
    const double d3 = determinant(a00, k01, k02, k01, a11, k12, k02, k12, a22);
    const double most = fmax(fmax(fabs(d0), fabs(d1)), fmax(fabs(d2), fabs(d3)));
    double q[4];
    if (converged && most > 1e-7 * value * value * value) {
        if (most == fabs(d0)) {
            q[0] = d0, q[1] = -determinant(k01, k12, k13, k02, a22, k23, k03, k23, a33);
            q[2] = determinant(k01, a11, k13, k02, k12, k23, k03, k13, a33);
            q[3] = -determinant(k01, a11, k12, k02, k12, a22, k03, k13, k23);
        } else if (most == fabs(d1)) {
            q[0] = -determinant(k01, k02, k03, k12, a22, k23, k13, k23, a33), q[1] = d1;
            q[2] = -determinant(a00, k01, k03, k02, k12, k23, k03, k13, a33);
            q[3] = determinant(a00, k01, k02, k02, k12, a22, k03, k13, k23);
        } else if (most == fabs(d2)) {
            q[0] = determinant(k01, k02, k03, a11, k12, k13, k13, k23, a33);
            q[1] = -determinant(a00, k02, k03, k01, k12, k13, k03, k23, a33);
            q[2] = d2, q[3] = -determinant(a00, k01, k02, k01, a11, k12, k03, k13, k23);
        } else {
            q[0] = -determinant(k01, k02, k03, a11, k12, k13, k12, a22, k23);
            q[1] = determinant(a00, k02, k03, k01, k12, k13, k02, a22, k23);
            q[2] = -determinant(a00, k01, k03, k01, a11, k13, k02, k12, k23), q[3] = d3;
        }
    } else {
        double matrix[4][4] = {{k00, k01, k02, k03}, {k01, k11, k12, k13}, {k02, k12, k22, k23}, {k03, k13, k23, k33}};
        eigenvector(matrix, q);
    }
    const double scale = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const double q0 = q[0] * scale, q1 = q[1] * scale, q2 = q[2] * scale, q3 = q[3] * scale;
    const double r[9] = {
        q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3, 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q3 + q0 * q2),
        2.0 * (q1 * q2 + q0 * q3), q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3, 2.0 * (q2 * q3 - q0 * q1),
        2.0 * (q1 * q3 - q0 * q2), 2.0 * (q2 * q3 + q0 * q1), q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3};
    for (int c = 0; c < 9; ++c) runs.moves[c][k] = r[c];
    for (int axis = 0; axis < 3; ++axis) {
        const double moved = r[3 * axis] * mx + r[3 * axis + 1] * my + r[3 * axis + 2] * mz;
        runs.moves[9 + axis][k] = (sums[3 + axis] - moved) * inverse;
    }
}

// Compute the superposition of run k from its moments. Returns false if it is invalid, as for collinear pairs.
__device__ bool superposition(Runs& runs, int k) {
    const double inverse = 1.0 / runs.sums[16][k];
    const double mx = runs.sums[0][k], my = runs.sums[1][k], mz = runs.sums[2][k];
    const double ux = runs.sums[3][k], uy = runs.sums[4][k], uz = runs.sums[5][k];
    const double ix = mx * inverse, iy = my * inverse, iz = mz * inverse;
    const double xx = runs.sums[6][k] - ix * ux, xy = runs.sums[7][k] - ix * uy, xz = runs.sums[8][k] - ix * uz;
    const double yx = runs.sums[9][k] - iy * ux, yy = runs.sums[10][k] - iy * uy, yz = runs.sums[11][k] - iy * uz;
    const double zx = runs.sums[12][k] - iz * ux, zy = runs.sums[13][k] - iz * uy, zz = runs.sums[14][k] - iz * uz;
    const double k00 = xx + yy + zz, k01 = yz - zy, k02 = zx - xz, k03 = xy - yx;
    const double k11 = xx - yy - zz, k12 = xy + yx, k13 = zx + xz;
    const double k22 = -xx + yy - zz, k23 = yz + zy, k33 = -xx - yy + zz;
    // Bound: if four eigenvalues sum to 0, none exceeds sqrt(3/4 of the sum of their squares).
    const double squares = xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz;
    const double inner = 0.5 * (runs.sums[15][k] - (mx * mx + my * my + mz * mz + ux * ux + uy * uy + uz * uz) * inverse);
    const double bound = sqrt(3.0 * squares);
    const double c2 = -2.0 * squares;
    const double c1 = -8.0 * determinant(xx, xy, xz, yx, yy, yz, zx, zy, zz);
    const double c0 = k00 * determinant(k11, k12, k13, k12, k22, k23, k13, k23, k33)
        - k01 * determinant(k01, k12, k13, k02, k22, k23, k03, k23, k33)
        + k02 * determinant(k01, k11, k13, k02, k12, k23, k03, k13, k33)
        - k03 * determinant(k01, k11, k12, k02, k12, k22, k03, k13, k23);
    double value = inner < bound ? inner : bound, step = 0.0;
#pragma unroll 1
    for (int round = 0; round < kNewtonSteps; ++round) {
        const double square = value * value;
        step = (square * square + c2 * square + c1 * value + c0) / (4.0 * square * value + 2.0 * c2 * value + c1);
        value = value - step;
    }
    const double a00 = k00 - value, a11 = k11 - value, a22 = k22 - value, a33 = k33 - value;
    // The adjugate of K - value: use the column with the largest diagonal element.
    const double d0 = determinant(a11, k12, k13, k12, a22, k23, k13, k23, a33);
    const double d1 = determinant(a00, k02, k03, k02, a22, k23, k03, k23, a33);
    const double d2 = determinant(a00, k01, k03, k01, a11, k13, k03, k13, a33);
    const double d3 = determinant(a00, k01, k02, k01, a11, k12, k02, k12, a22);
    const double d01 = -determinant(k01, k12, k13, k02, a22, k23, k03, k23, a33);
    const double d02 = determinant(k01, a11, k13, k02, k12, k23, k03, k13, a33);
    const double d03 = -determinant(k01, a11, k12, k02, k12, a22, k03, k13, k23);
    const double d12 = -determinant(a00, k01, k03, k02, k12, k23, k03, k13, a33);
    const double d13 = determinant(a00, k01, k02, k02, k12, a22, k03, k13, k23);
    const double d23 = -determinant(a00, k01, k02, k01, a11, k12, k03, k13, k23);
    const bool is_0 = fabs(d0) >= fabs(d1), is_2 = fabs(d2) >= fabs(d3);
    const double first = is_0 ? fabs(d0) : fabs(d1), second = is_2 ? fabs(d2) : fabs(d3);
    const bool is_first = first >= second;
    const double most = is_first ? first : second;
    const double q0 = is_first ? (is_0 ? d0 : d01) : (is_2 ? d02 : d03), q1 = is_first ? (is_0 ? d01 : d1) : (is_2 ? d12 : d13);
    const double q2 = is_first ? (is_0 ? d02 : d12) : (is_2 ? d2 : d23), q3 = is_first ? (is_0 ? d03 : d13) : (is_2 ? d23 : d3);
    const double norm = 1.0 / (q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3), twice = norm + norm;
    const double r0 = (q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3) * norm, r1 = (q1 * q2 - q0 * q3) * twice, r2 = (q1 * q3 + q0 * q2) * twice;
    const double r3 = (q1 * q2 + q0 * q3) * twice, r4 = (q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3) * norm, r5 = (q2 * q3 - q0 * q1) * twice;
    const double r6 = (q1 * q3 - q0 * q2) * twice, r7 = (q2 * q3 + q0 * q1) * twice, r8 = (q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3) * norm;
    runs.moves[0][k] = r0, runs.moves[1][k] = r1, runs.moves[2][k] = r2;
    runs.moves[3][k] = r3, runs.moves[4][k] = r4, runs.moves[5][k] = r5;
    runs.moves[6][k] = r6, runs.moves[7][k] = r7, runs.moves[8][k] = r8;
    const double nx = mx * inverse, ny = my * inverse, nz = mz * inverse;
    runs.moves[9][k] = ux * inverse - (r0 * nx + r1 * ny + r2 * nz);
    runs.moves[10][k] = uy * inverse - (r3 * nx + r4 * ny + r5 * nz);
    runs.moves[11][k] = uz * inverse - (r6 * nx + r7 * ny + r8 * nz);
    return fabs(step) <= 1e-7 * value && most - 1e-7 * value * value * value > 0.0;
}

// Compute the superpositions of all runs from their moments. The warp synchronises at the end.
__device__ __noinline__ void superpositions(Runs& runs) {
    const int k = threadIdx.x & 31;
    if (k < kBatch && runs.lengths[k] > 0 && !superposition(runs, k)) any_superposition(runs, k);
    __syncwarp();
}

// The run that a lane adds up together with its neighbours (negative: none), the index of the lane among them, and the number of these
// lanes. The fewer runs have pairs, the more lanes each run has. counts: number of pairs of each run.
struct Share {
    int run, lane, lanes;
};

__device__ Share share_of_work(const int* counts) {
    const int at = threadIdx.x & 31;
    Word wanted = __ballot_sync(kEveryLane, at < kBatch && counts[at % kBatch] > 0);
    const int n = __popc(wanted);
    int lanes = kLanesOfRun;
    while (lanes < 32 && 2 * lanes * n <= 32) lanes *= 2;
    int place = at / lanes;
    const bool has_run = place < n;
    for (; has_run && place > 0; --place) wanted &= wanted - 1;
    return Share{has_run ? __ffs(static_cast<int>(wanted)) - 1 : -1, at % lanes, lanes};
}

// Partial moments of pairs, in each lane of a run.
struct Moments {
    double of[kMoments] = {};

    __device__ void add(double a, double b, double c, double d, double e, double f) {
        of[0] += a, of[1] += b, of[2] += c, of[3] += d, of[4] += e, of[5] += f;
        of[6] += a * d, of[7] += a * e, of[8] += a * f;
        of[9] += b * d, of[10] += b * e, of[11] += b * f;
        of[12] += c * d, of[13] += c * e, of[14] += c * f;
        of[15] += a * a + b * b + c * c + d * d + e * e + f * f, of[16] += 1.0;
    }

    // Replace the sums in each lane of a run by the sums over all lanes of the run.
    __device__ void join(int lanes) {
#pragma unroll 1
        for (int step = lanes / 2; step > 0; step >>= 1) {
#pragma unroll
            for (int c = 0; c < kMoments; ++c) of[c] += __shfl_xor_sync(kEveryLane, of[c], step);
        }
    }

    __device__ void write(Runs& runs, int k) const {
#pragma unroll
        for (int c = 0; c < kMoments; ++c) runs.sums[c][k] = of[c];
    }
};

// Compute the moments of runs: run k has counts[k] pairs, from first_x[k] of x and first_y[k] of y on. Other moments are unchanged. The
// warp synchronises at the end.
__device__ __noinline__ void moments(
    Runs& runs, const Columns& x, const Columns& y, const int* first_x, const int* first_y, const int* counts) {
    const Share share = share_of_work(counts);
    if (__any_sync(kEveryLane, share.run >= 0)) {
        Moments sums;
        if (share.run >= 0) {
            const int p = first_x[share.run], q = first_y[share.run], n = counts[share.run];
#pragma unroll 1
            for (int i = share.lane; i < n; i += share.lanes) sums.add(x(0, p + i), x(1, p + i), x(2, p + i), y(0, q + i), y(1, q + i), y(2, q + i));
        }
        sums.join(share.lanes);
        if (share.run >= 0 && share.lane == 0) sums.write(runs, share.run);
    }
    __syncwarp();
}

// Evaluate each superposition on its run: write the sums of 1 / (1 + (d / scale)^2) to `totals`, and the moments of the pairs nearer than
// limits[k] to `sums`. This limit grows by half an Å until it includes three pairs. The warp synchronises at the end.
__device__ __noinline__ void near_moments(Runs& runs, const Columns& x, const Columns& y, double scale) {
    const double inverse = 1.0 / (scale * scale);
    const Share share = share_of_work(runs.lengths);
    bool goes_on = share.run >= 0;
    const int k = goes_on ? share.run : 0, n = goes_on ? runs.lengths[k] : 0;
    const int first_x = runs.first_x[k], first_y = runs.first_y[k];
    double r[kMove], limit = runs.limits[k];
#pragma unroll
    for (int c = 0; c < kMove; ++c) r[c] = runs.moves[c][k];
    while (__any_sync(kEveryLane, goes_on)) {
        const double bound = limit * limit;
        Moments sums;
        double total = 0.0;
#pragma unroll 1
        for (int i = goes_on ? share.lane : n; i < n; i += share.lanes) {
            const double s = x(0, first_x + i), t = x(1, first_x + i), u = x(2, first_x + i);
            const double d = y(0, first_y + i), e = y(1, first_y + i), f = y(2, first_y + i);
            const double apart = apart_squared(r, s, t, u, d, e, f);
            total += share_of(apart, inverse);
            if (apart < bound) sums.add(s, t, u, d, e, f);
        }
        sums.join(share.lanes);
        for (int step = share.lanes / 2; step > 0; step >>= 1) total += __shfl_xor_sync(kEveryLane, total, step);
        if (goes_on && (sums.of[16] >= 3.0 || n <= 3 || !(limit < kFarthest))) {
            if (share.lane == 0) {
                runs.totals[k] = total;
                sums.write(runs, k);
            }
            goes_on = false;
        }
        limit += 0.5;
    }
    __syncwarp();
}
