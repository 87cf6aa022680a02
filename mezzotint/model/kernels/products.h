// Rows times packed matrices, by whole panels of outputs; what is multiplied, and why, is in layers and vocabulary.
#pragma once

#include "numbers.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

using W = WEIGHT;  // one library for each type of weights: the compiler is told which
using Real = Number<W>::Wide;

constexpr int PAIR = Number<W>::pair;
constexpr int LANES = 32;  // outputs that stand side by side in a panel
constexpr int TILE = 64;   // rows that meet a panel while the nearest cache holds it

// WIDTH numbers side by side, as so many vectors of at most 64 bytes, and weights that stand so.
template <int WIDTH> struct Side {
    static constexpr int bytes = std::min<int>(64, WIDTH * sizeof(Real)), parts = WIDTH * sizeof(Real) / bytes;
    typedef Real Vector __attribute__((vector_size(bytes)));

    static const W* at(const W* weights, int part) { return weights + part * bytes / sizeof(W); }
    static Vector load(const W* weights) {
        Vector loaded;
        memcpy(&loaded, weights, sizeof loaded);
        return loaded;
    }
};

constexpr int64_t panels(int64_t size) { return (size + LANES - 1) / LANES; }
constexpr int64_t pairs(int64_t size) { return (size + PAIR - 1) / PAIR; }

// [out, in] as [panels(out)][in / PAIR][LANES][PAIR]; several of one shape may stand one behind another.
struct Matrix {
    const W* packed;
    int64_t out, in;

    const W* panel(int64_t index) const { return packed + index * in * LANES; }
};

using Tile = Real (*)[LANES];

// sum += the products of a pair of inputs with some outputs' pairs of weights.
template <class Lanes> inline void add_product(Lanes& sum, const W* x, Lanes weights) {
    if constexpr (PAIR == 1) {
        sum += weights * widen(*x);
        return;
    }
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
    int32_t both;
    memcpy(&both, x, sizeof both);
    if constexpr (sizeof(Lanes) == 64)
        sum = (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(both), (__m512bh)weights);
    else
        sum = (Lanes)_mm256_dpbf16_ps((__m256)sum, (__m256bh)_mm256_set1_epi32(both), (__m256bh)weights);
#else
    typedef uint32_t Bits __attribute__((vector_size(sizeof(Lanes))));
    sum += (Lanes)((Bits)weights << 16) * widen(x[0]);
    sum += (Lanes)((Bits)weights & 0xffff0000u) * widen(x[PAIR - 1]);
#endif
}

// N rows times a panel of `steps` pairs, WIDTH outputs wide. Row i starts at rows[i]; each of its pairs stands `stride`
// behind the last.
template <int N, int WIDTH>
inline void multiply_rows(
    const W* const* rows, int64_t stride, const W* panel, int64_t steps, Real (*tile)[WIDTH]) {
    constexpr int parts = Side<WIDTH>::parts;
    typename Side<WIDTH>::Vector sums[N][parts] = {};
    const W* x[N];
    std::copy(rows, rows + N, x);
    for (int64_t step = 0; step < steps; step++)
        for (int part = 0; part < parts; part++) {
            const W* weights = Side<WIDTH>::at(panel + step * WIDTH * PAIR, part);
            // The next panel is on its way from a farther cache while this one is multiplied.
            __builtin_prefetch(weights + steps * WIDTH * PAIR, 0, 2);
            for (int i = 0; i < N; i++) add_product(sums[i][part], x[i] + step * stride, Side<WIDTH>::load(weights));
        }
    memcpy(tile, sums, sizeof sums);
}

// Any number of rows times a panel; tile: [count][WIDTH].
template <int WIDTH>
[[gnu::noinline]] void multiply(
    const W* const* rows, int count, int64_t stride, const W* panel, int64_t steps, Real (*tile)[WIDTH]) {
    for (; count >= 8; count -= 8, rows += 8, tile += 8) multiply_rows<8>(rows, stride, panel, steps, tile);
    switch (count) {
        case 7: return multiply_rows<7>(rows, stride, panel, steps, tile);
        case 6: return multiply_rows<6>(rows, stride, panel, steps, tile);
        case 5: return multiply_rows<5>(rows, stride, panel, steps, tile);
        case 4: return multiply_rows<4>(rows, stride, panel, steps, tile);
        case 3: return multiply_rows<3>(rows, stride, panel, steps, tile);
        case 2: return multiply_rows<2>(rows, stride, panel, steps, tile);
        case 1: return multiply_rows<1>(rows, stride, panel, steps, tile);
    }
}

// Rows of x [.., in]: the first `count` of them, or those that a list names.
struct Rows {
    const W* x;
    int64_t in, count;
    const int32_t* list = nullptr;

    Rows part(int64_t start) const {
        const int64_t size = std::min<int64_t>(TILE, count - start);
        return list ? Rows{x, in, size, list + start} : Rows{x + start * in, in, size};
    }
};

// At most TILE rows times one panel of a matrix.
inline void multiply_tile(const Rows& rows, const Matrix& matrix, int64_t panel, Tile tile) {
    const W* x[TILE];
    for (int64_t i = 0; i < rows.count; i++) x[i] = rows.x + (rows.list ? rows.list[i] : i) * rows.in;
    multiply(x, rows.count, PAIR, matrix.panel(panel), matrix.in / PAIR, tile);
}

// Rows times one panel of a matrix; take(i, lanes) is handed the products of the i-th.
template <class Take> inline void multiply_panel(const Rows& rows, const Matrix& matrix, int64_t panel, Take take) {
    Real tile[TILE][LANES];
    for (int64_t start = 0; start < rows.count; start += TILE) {
        const Rows part = rows.part(start);
        multiply_tile(part, matrix, panel, tile);
        for (int64_t i = 0; i < part.count; i++) take(start + i, tile[i]);
    }
}

// to [rows, out] = x Wᵀ, its panels shared out among the threads.
inline void multiply_all(const Rows& rows, const Matrix& matrix, Real* to) {
#pragma omp for schedule(dynamic)
    for (int64_t panel = 0; panel < panels(matrix.out); panel++) {
        const int64_t column = panel * LANES, width = std::min<int64_t>(LANES, matrix.out - column);
        multiply_panel(rows, matrix, panel, [&](int64_t i, const Real* lanes) {
            std::copy(lanes, lanes + width, to + i * matrix.out + column);
        });
    }
}

// gelu(gate x) · (up x), times a row's own weight where there are any, for one panel of either: they stand in turn.
// to: [rows][stride], where the result's panel starts; each panel is whole.
inline void multiply_gated(
    const Rows& rows, const Matrix& gate_up, int64_t panel, const Real* weights, W* to, int64_t stride) {
    Real gates[TILE][LANES], ups[TILE][LANES];
    for (int64_t start = 0; start < rows.count; start += TILE) {
        const Rows part = rows.part(start);
        multiply_tile(part, gate_up, 2 * panel, gates);
        multiply_tile(part, gate_up, 2 * panel + 1, ups);
        for (int64_t i = 0; i < part.count; i++) {
            const Real weight = weights ? weights[start + i] : 1;
            W* out = to + (start + i) * stride;
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                // tanh's approximation, as g sigmoid(2 √(2/π) (g + 0.044715 g³))
                const Real g = gates[i][lane];
                const Real against = power(Real(-1.5957691216057308) * (g + Real(0.044715) * g * g * g));
                out[lane] = narrow<W>(g / (1 + against) * ups[i][lane] * weight);
            }
        }
    }
}

inline Real inverse_rms(const Real* x, int64_t size, double eps) {
    Real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t d = 0; d < size; d++) sum += x[d] * x[d];
    return 1 / std::sqrt(sum / size + Real(eps));
}

// to = x / rms(x)
inline void normalise(const Real* x, int64_t size, double eps, W* to) {
    const Real scale = inverse_rms(x, size, eps);
#pragma omp simd
    for (int64_t d = 0; d < size; d++) to[d] = narrow<W>(x[d] * scale);
}
