// The numbers that weights are held in, and what they are computed in; no matrix is known here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

struct bf16 {
    uint16_t bits;
};

// Wide: what a weight type is computed in. pair: inputs of one output that lie side by side.
template <class W> struct Number;
template <> struct Number<double> {
    using Wide = double;
    static constexpr int pair = 1;
};
template <> struct Number<float> {
    using Wide = float;
    static constexpr int pair = 1;
};
template <> struct Number<bf16> {
    using Wide = float;
    static constexpr int pair = 2;
};

inline double widen(double x) { return x; }
inline float widen(float x) { return x; }
inline float widen(bf16 x) {
    const uint32_t bits = uint32_t(x.bits) << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

template <class W> inline W narrow(typename Number<W>::Wide x) { return x; }
template <> inline bf16 narrow<bf16>(float x) {  // to the nearest, ties to even
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline double power(double x) { return std::exp(x); }
// e^x as 2^n e^r with |r| <= ln 2 / 2, for which the Taylor series up to r^7 is exact to 6e-9.
inline float power(float x) {
    x = std::min(std::max(x, -87.0f), 87.0f);
    const float n = std::floor(x * 1.44269504f + 0.5f);
    const float r = x - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts
    float series = 1 / 5040.0f;
    series = series * r + 1 / 720.0f;
    series = series * r + 1 / 120.0f;
    series = series * r + 1 / 24.0f;
    series = series * r + 1 / 6.0f;
    series = series * r + 1 / 2.0f;
    series = series * r + 1;
    series = series * r + 1;
    const int32_t bits = (int32_t(n) + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return series * scale;
}
