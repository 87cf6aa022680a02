// Attention of a call's queries over the slots that their spans see; what is asked and kept there is in layers.
//
// Queries that share a head of keys stand side by side, up to LANES of them, so a softmax over the keys goes down:
//
//            lanes: (token, head of the group)
//     key 0  s s s s s s ..          scores = keys × queries, the queries packed as a matrix
//     key 1  s s s s s s ..          mixed  = shares × values, the values of two keys paired as they are met
//     ..     s s s s s s ..
//
// Few queries, such as those of one token, stand FEW wide. Each lane's sums are the same in either width.
#pragma once

#include <omp.h>

#include "seats.h"
#include "values.h"

constexpr int FEW = 8;

class Attention {
  public:
    W *queries, *mixed;  // [T, heads, head_dim]

    Attention(const Stack& stack, const Call& call, const Seats& seats) : stack(stack), call(call), seats(seats) {}

    void lay_out(Scratch& scratch) {
        int64_t room = 0, size = 0;
        for (int64_t index = 0; index < stack.size; index++) {
            const Layer& layer = stack.layers[index];
            size = std::max(size, layer.head_dim);
            for (int64_t span = 0; span < call.size; span++) room = std::max(room, seats.count(span, layer.kind));
        }
        own_room = std::max(room, size) * LANES;  // packed queries and shares take turns in one array
        scratch.take(queries, call.tokens * stack.heads * size);
        scratch.take(mixed, call.tokens * stack.heads * size);
        scratch.take(all_scores, call.threads * own_room);
        scratch.take(all_shares, call.threads * own_room);
        scratch.take(tasks, (call.size + 1) * stack.size);
    }

    // Count the tasks of each layer: some lanes of a head of keys of a span.
    void fill() {
        for (int64_t index = 0; index < stack.size; index++) {
            const Layer& layer = stack.layers[index];
            int64_t* before = tasks_of(index);
            before[0] = 0;
            for (int64_t span = 0; span < call.size; span++)
                before[span + 1] = before[span] + layer.kv_heads * panels(call.spans[span].count * group(layer));
        }
    }

    // All threads share the queries of one layer out.
    void attend(int64_t index) {
        const Layer& layer = stack.layers[index];
        const int64_t *before = tasks_of(index), *behind = before + call.size + 1;
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < behind[-1]; task++) {
            const int64_t span = std::upper_bound(before, behind, task) - before - 1;
            const Lanes lanes = lanes_of(layer, span, task - before[span]);
            if (lanes.width <= FEW)
                attend_lanes<FEW>(layer, call.slots[index], lanes);
            else
                attend_lanes<LANES>(layer, call.slots[index], lanes);
        }
    }

  private:
    // Some queries of one head of keys; a lane is a query, and tokens count from the span's first.
    struct Lanes {
        int64_t span, head, group, first, width;

        int64_t token(int64_t lane) const { return (first + lane) / group; }
        int64_t query_head(int64_t lane) const { return head * group + (first + lane) % group; }
    };

    // Positions that some lanes see; the first is even where inputs come in pairs.
    struct Keys {
        int64_t first, count;
        const int64_t* slots;
    };

    const Stack& stack;
    const Call& call;
    const Seats& seats;
    W* all_shares;
    Real* all_scores;
    int64_t own_room, *tasks;

    int64_t* tasks_of(int64_t index) const { return tasks + index * (call.size + 1); }
    int64_t group(const Layer& layer) const { return stack.heads / layer.kv_heads; }

    Lanes lanes_of(const Layer& layer, int64_t span, int64_t task) const {
        const int64_t all = call.spans[span].count * group(layer), first = task % panels(all) * LANES;
        return {span, task / panels(all), group(layer), first, std::min<int64_t>(LANES, all - first)};
    }

    int64_t query_at(const Lanes& lanes, int64_t lane, int64_t size) const {
        const int64_t token = seats.first_token(lanes.span) + lanes.token(lane);
        return (token * stack.heads + lanes.query_head(lane)) * size;
    }

    template <int WIDTH> void attend_lanes(const Layer& layer, const Slots& slots, const Lanes& lanes) {
        const int64_t size = layer.head_dim, row = call.spans[lanes.span].row;
        const Keys keys = visible(layer, lanes);
        const auto scores = reinterpret_cast<Real(*)[WIDTH]>(all_scores + omp_get_thread_num() * own_room);
        W* shares = all_shares + omp_get_thread_num() * own_room;

        pack_queries<WIDTH>(lanes, size, shares);
        const W *from = slots.k + slots.at(row, lanes.head, 0), *rows[TILE];
        for (int64_t start = 0; start < keys.count; start += TILE) {
            const int64_t some = std::min<int64_t>(TILE, keys.count - start);
            for (int64_t i = 0; i < some; i++) rows[i] = from + keys.slots[start + i] * slots.token_stride;
            multiply(rows, some, PAIR, shares, size / PAIR, scores + start);
        }
        hide(layer, lanes, keys, scores);

        Real total[WIDTH];
        share_out(scores, keys.count, shares, total);
        const Values values = {slots.v + slots.at(row, lanes.head, 0), keys.slots, keys.count, slots.token_stride};
        for (int64_t lane = 0; lane < lanes.width; lane += FEW)
            mix(lanes, lane, shares + lane * PAIR, WIDTH * PAIR, values, total + lane, size);
    }

    // A matrix whose outputs are the lanes and whose inputs are head_dim.
    template <int WIDTH> void pack_queries(const Lanes& lanes, int64_t size, W* to) const {
        std::fill(to, to + size * WIDTH, W{});
        for (int64_t lane = 0; lane < lanes.width; lane++) {
            const W* from = queries + query_at(lanes, lane, size);
            for (int64_t d = 0; d < size; d += PAIR) memcpy(to + d * WIDTH + lane * PAIR, from + d, PAIR * sizeof(W));
        }
    }

    // From the first key that a lane sees to the last, in whole pairs.
    Keys visible(const Layer& layer, const Lanes& lanes) const {
        const Span& span = call.spans[lanes.span];
        const int64_t oldest = call.oldest(span, lanes.token(0), layer.kind), first = oldest - oldest % PAIR;
        const int64_t count = pairs(call.newest(span, lanes.token(lanes.width - 1)) - first) * PAIR;
        return {first, count, seats.of(lanes.span, layer.kind) + first - seats.first(lanes.span, layer.kind)};
    }

    template <int WIDTH>
    void hide(const Layer& layer, const Lanes& lanes, const Keys& keys, Real (*scores)[WIDTH]) const {
        const Span& span = call.spans[lanes.span];
        for (int64_t lane = 0; lane < lanes.width; lane++) {
            const int64_t oldest = call.oldest(span, lanes.token(lane), layer.kind) - keys.first;
            const int64_t newest = call.newest(span, lanes.token(lane)) - keys.first;
            for (int64_t key = 0; key < oldest; key++) scores[key][lane] = HIDDEN;
            for (int64_t key = newest; key < keys.count; key++) scores[key][lane] = HIDDEN;
        }
    }

    static constexpr Real HIDDEN = -1e30;

    // Softmax over the keys, as shares [pairs of keys][WIDTH][PAIR] that are still to be divided by total [WIDTH].
    template <int WIDTH> static void share_out(const Real (*scores)[WIDTH], int64_t count, W* shares, Real* total) {
        Real peak[PAIR * WIDTH], own[PAIR * WIDTH];
        std::copy(scores[0], scores[0] + WIDTH, peak);
        for (int64_t key = 1; key < count; key++)
            for (int lane = 0; lane < WIDTH; lane++) peak[lane] = std::max(peak[lane], scores[key][lane]);
        std::copy(peak, peak + WIDTH, peak + (PAIR - 1) * WIDTH);
        std::fill(total, total + WIDTH, Real(0));
        for (int64_t key = 0; key < count; key += PAIR) {
            const Real* score = scores[key];
            for (int i = 0; i < PAIR * WIDTH; i++) {
                const Real share = power(score[i] - peak[i]);
                own[i] = score[i] > HIDDEN ? share : 0;
            }
            for (int i = 0; i < PAIR; i++)
                for (int lane = 0; lane < WIDTH; lane++) total[lane] += own[i * WIDTH + lane];
            for (int lane = 0; lane < WIDTH; lane++)
                for (int i = 0; i < PAIR; i++) *shares++ = narrow<W>(own[i * WIDTH + lane]);
        }
    }

    // What up to FEW lanes from `lane` on make of the values, a panel of head_dim at a time.
    void mix(
        const Lanes& lanes, int64_t lane, const W* shares, int64_t stride, Values values, const Real* total,
        int64_t size) const {
        const int64_t count = std::min<int64_t>(FEW, lanes.width - lane);
        Real tile[FEW][LANES];
        for (int64_t start = 0; start < size; start += LANES, values.from += LANES) {
            const int64_t width = std::min<int64_t>(LANES, size - start);
            const auto mix_some = width == LANES ? mix_values<true> : mix_values<false>;
            mix_some(count, shares, stride, values, width, tile);
            for (int64_t i = 0; i < count; i++) {
                W* to = mixed + query_at(lanes, lane + i, size) + start;
                for (int64_t d = 0; d < width; d++) to[d] = narrow<W>(tile[i][d] / total[i]);
            }
        }
    }
};
