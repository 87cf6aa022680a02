// Attention of a call's queries over the slots of its layers; what is asked and kept there is in layers.
//
// Queries that share a head of keys stand side by side, up to LANES of them, so a softmax over the keys goes down:
//
//            lanes: (token, head of the group)
//     key 0  s s s s s s ..          scores = keys × queries, the queries packed as a matrix
//     key 1  s s s s s s ..          mixed  = shares × values, the values packed as a matrix
//     ..     s s s s s s ..
#pragma once

#include <iterator>
#include <omp.h>

#include "scratch.h"
#include "stack.h"

class Attention {
  public:
    Attention(const Stack& stack, const Call& call) : stack(stack), call(call) {}

    void lay_out(Scratch& scratch) {
        int64_t keys = 0, parts = 0, size = 0;
        for (int64_t index = 0; index < stack.size; index++) {
            const Layer& layer = stack.layers[index];
            keys = std::max(keys, pairs(call.seen(layer)) * PAIR);
            parts = std::max(parts, layer.kv_heads * panels(layer.head_dim));
            size = std::max(size, layer.head_dim);
        }
        own_room = std::max(keys, size) * LANES;  // queries and shares take turns in one array
        scratch.take(values, call.rows * parts * keys * LANES);
        scratch.take(all_scores, call.threads * own_room);
        scratch.take(all_shares, call.threads * own_room);
    }

    // All threads share the queries of one layer out.
    void attend(int64_t index) {
        const Layer& layer = stack.layers[index];
        const int64_t tasks = panels(call.tokens * stack.heads / layer.kv_heads);
#pragma omp for collapse(2)
        for (int64_t shared = 0; shared < call.rows * layer.kv_heads; shared++)
            for (int64_t pair = 0; pair < pairs(call.seen(layer)); pair++)
                pack_values(layer, call.slots[index], shared, pair);
#pragma omp for collapse(2) schedule(dynamic)
        for (int64_t shared = 0; shared < call.rows * layer.kv_heads; shared++)
            for (int64_t task = 0; task < tasks; task++)
                attend_lanes(layer, call.slots[index], lanes_of(layer, shared, task * LANES));
    }

  private:
    // Some queries of one head of keys; a lane is a query.
    struct Lanes {
        int64_t shared, row, head, group, first, width;

        int64_t token(int64_t lane) const { return (first + lane) / group; }
        int64_t query_head(int64_t lane) const { return head * group + (first + lane) % group; }
    };

    struct Keys {
        int64_t first, count;
    };

    const Stack& stack;
    const Call& call;
    W *values, *all_shares;
    Real* all_scores;
    int64_t own_room;

    Lanes lanes_of(const Layer& layer, int64_t shared, int64_t first) const {
        const int64_t group = stack.heads / layer.kv_heads;
        const int64_t width = std::min<int64_t>(LANES, call.tokens * group - first);
        return {shared, shared / layer.kv_heads, shared % layer.kv_heads, group, first, width};
    }

    int64_t query_at(const Lanes& lanes, int64_t lane, int64_t size) const {
        const int64_t token = lanes.row * call.tokens + lanes.token(lane);
        return (token * stack.heads + lanes.query_head(lane)) * size;
    }

    // A matrix whose outputs are head_dim and whose inputs are the keys that are seen.
    W* values_of(const Layer& layer, int64_t shared, int64_t part) const {
        const int64_t keys = pairs(call.seen(layer)) * PAIR;
        return values + (shared * panels(layer.head_dim) + part) * keys * LANES;
    }

    void pack_values(const Layer& layer, const Slots& slots, int64_t shared, int64_t pair) {
        const int64_t key = pair * PAIR, slot = call.views[layer.kind].first + key;
        const W* from[PAIR];
        for (int i = 0; i < PAIR; i++) {  // an odd last key is its own partner, with a share of 0
            const int64_t other = key + i < call.seen(layer) ? i : 0;
            from[i] = slots.v + slots.at(shared / layer.kv_heads, shared % layer.kv_heads, slot + other);
        }
        for (int64_t part = 0; part < panels(layer.head_dim); part++) {
            W* to = values_of(layer, shared, part) + key * LANES;
            const int64_t start = part * LANES, width = std::min<int64_t>(LANES, layer.head_dim - start);
            if (width < LANES) std::fill(to, to + LANES * PAIR, W{});
            for (int64_t lane = 0; lane < width; lane++)
                for (int i = 0; i < PAIR; i++) to[lane * PAIR + i] = from[i][start + lane];
        }
    }

    // A matrix whose outputs are the lanes and whose inputs are head_dim.
    void pack_queries(const Lanes& lanes, int64_t size, W* to) const {
        std::fill(to, to + size * LANES, W{});
        for (int64_t lane = 0; lane < lanes.width; lane++) {
            const W* from = call.queries + query_at(lanes, lane, size);
            for (int64_t d = 0; d < size; d += PAIR) memcpy(to + d * LANES + lane * PAIR, from + d, PAIR * sizeof(W));
        }
    }

    void attend_lanes(const Layer& layer, const Slots& slots, const Lanes& lanes) {
        const View& view = call.views[layer.kind];
        const Keys keys = visible(view, lanes, call.seen(layer));
        const int64_t size = layer.head_dim;
        Tile scores = reinterpret_cast<Tile>(all_scores + omp_get_thread_num() * own_room);
        W* shares = all_shares + omp_get_thread_num() * own_room;
        const W* rows[TILE];

        pack_queries(lanes, size, shares);
        for (int64_t start = 0; start < keys.count; start += TILE) {
            const int64_t some = std::min<int64_t>(TILE, keys.count - start);
            const W* from = slots.k + slots.at(lanes.row, lanes.head, view.first + keys.first + start);
            for (int64_t i = 0; i < some; i++) rows[i] = from + i * slots.token_stride;
            multiply(rows, some, PAIR, shares, size / PAIR, scores + start);
        }
        if (view.mask || view.causal) hide(view, lanes, keys, scores);

        Real total[LANES], tile[LANES][LANES];
        share_out(scores, keys.count, shares, total);
        for (int64_t lane = 0; lane < lanes.width; lane++) rows[lane] = shares + lane * PAIR;
        for (int64_t part = 0; part < panels(size); part++) {
            const W* panel = values_of(layer, lanes.shared, part) + keys.first * LANES;
            multiply(rows, lanes.width, LANES * PAIR, panel, pairs(keys.count), tile);
            const int64_t start = part * LANES, width = std::min<int64_t>(LANES, size - start);
            for (int64_t lane = 0; lane < lanes.width; lane++) {
                W* to = call.mixed + query_at(lanes, lane, size) + start;
                for (int64_t d = 0; d < width; d++) to[d] = narrow<W>(tile[lane][d] / total[lane]);
            }
        }
    }

    static const uint8_t* mask_of(const View& view, const Lanes& lanes, int64_t lane) {
        return view.mask + lanes.row * view.mask_row_stride + lanes.token(lane) * view.mask_query_stride;
    }

    // From the first key that a lane sees, whole pairs, to the last.
    static Keys visible(const View& view, const Lanes& lanes, int64_t all) {
        if (view.causal) return {0, std::min(all, lanes.token(lanes.width - 1) + 1)};
        if (!view.mask) return {0, all};
        int64_t first = all, end = 0;
        for (int64_t lane = 0; lane < lanes.width; lane++) {
            const uint8_t* mask = mask_of(view, lanes, lane);
            first = std::find(mask, mask + first, 1) - mask;
            const auto behind = std::make_reverse_iterator(mask + all), before = std::make_reverse_iterator(mask + end);
            end = std::find(behind, before, 1).base() - mask;
        }
        first -= first % PAIR;
        return {first, end - first};
    }

    static void hide(const View& view, const Lanes& lanes, const Keys& keys, Tile scores) {
        for (int64_t lane = 0; lane < lanes.width; lane++)
            for (int64_t i = 0; i < keys.count; i++) {
                const int64_t key = keys.first + i;
                const bool sees = view.mask ? mask_of(view, lanes, lane)[key] : key <= lanes.token(lane);
                if (!sees) scores[i][lane] = Real(-1e30);
            }
    }

    // Softmax over the keys, as shares [pairs of keys][LANES][PAIR] that are still to be divided by total [LANES].
    static void share_out(const Tile scores, int64_t seen, W* shares, Real* total) {
        Real peak[LANES];
        std::copy(scores[0], scores[0] + LANES, peak);
        for (int64_t key = 1; key < seen; key++)
            for (int lane = 0; lane < LANES; lane++) peak[lane] = std::max(peak[lane], scores[key][lane]);
        std::fill(total, total + LANES, Real(0));
        for (int64_t key = 0; key < seen; key += PAIR) {
            Real own[PAIR][LANES] = {};
            for (int i = 0; i < PAIR && key + i < seen; i++)
                for (int lane = 0; lane < LANES; lane++) {
                    own[i][lane] = power(scores[key + i][lane] - peak[lane]);
                    total[lane] += own[i][lane];
                }
            for (int lane = 0; lane < LANES; lane++)
                for (int i = 0; i < PAIR; i++) shares[key * LANES + lane * PAIR + i] = narrow<W>(own[i][lane]);
        }
    }
};
