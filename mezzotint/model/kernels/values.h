// Shares of some lanes times the values of the keys that they are shares of; what a lane is, attention says.
#pragma once

#include "products.h"

// Values of one head of keys, from some dimension on: where the value of each of `count` keys, whole pairs, stands.
struct Values {
    const W* from;
    const int64_t* slots;
    int64_t count, stride;

    const W* of(int64_t key) const { return from + slots[key] * stride; }
};

// 16 halves of 4 bytes, and as many whole ones.
typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint32_t Wholes __attribute__((vector_size(64)));

// One row of a panel: the values of a pair of keys side by side.
template <class Vector> inline void pair_values(const W* a, const W* b, Vector* to) {
    if constexpr (PAIR == 1) {
        memcpy(to, a, LANES * sizeof(W));
    } else {
        for (int start = 0; start < LANES; start += 16) {
            Halves low, high;
            memcpy(&low, a + start, sizeof low);
            memcpy(&high, b + start, sizeof high);
            *to++ = (Vector)(__builtin_convertvector(low, Wholes) | __builtin_convertvector(high, Wholes) << 16);
        }
    }
}

// N lanes' shares, [N][pairs of keys, `stride` apart][PAIR], times the values; tile: [N][LANES]. Where there are fewer
// values than a panel is wide, zeros stand behind them.
template <int N, bool FULL>
inline void mix_lanes(const W* shares, int64_t stride, const Values& values, int64_t width, Tile tile) {
    constexpr int parts = Side<LANES>::parts;
    Side<LANES>::Vector sums[N][parts] = {}, paired[parts];
    W filled[2][LANES] = {};
    for (int64_t key = 0; key < values.count; key += PAIR) {
        const W *a = values.of(key), *b = values.of(key + PAIR - 1);
        if constexpr (!FULL) {
            a = std::copy(a, a + width, filled[0]) - width;
            b = std::copy(b, b + width, filled[1]) - width;
        }
        pair_values(a, b, paired);
        const W* own = shares + key / PAIR * stride;
        for (int part = 0; part < parts; part++)
            for (int lane = 0; lane < N; lane++) add_product(sums[lane][part], own + lane * PAIR, paired[part]);
    }
    memcpy(tile, sums, sizeof sums);
}

// The same for 1 to 8 lanes.
template <bool FULL>
[[gnu::noinline]] void mix_values(
    int count, const W* shares, int64_t stride, const Values& values, int64_t width, Tile tile) {
    switch (count) {
        case 8: return mix_lanes<8, FULL>(shares, stride, values, width, tile);
        case 7: return mix_lanes<7, FULL>(shares, stride, values, width, tile);
        case 6: return mix_lanes<6, FULL>(shares, stride, values, width, tile);
        case 5: return mix_lanes<5, FULL>(shares, stride, values, width, tile);
        case 4: return mix_lanes<4, FULL>(shares, stride, values, width, tile);
        case 3: return mix_lanes<3, FULL>(shares, stride, values, width, tile);
        case 2: return mix_lanes<2, FULL>(shares, stride, values, width, tile);
        case 1: return mix_lanes<1, FULL>(shares, stride, values, width, tile);
    }
}
