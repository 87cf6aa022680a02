// Which slots the positions that a call sees stand in: looked up once a kind of layers, not once a layer.
#pragma once

#include "scratch.h"
#include "stack.h"

class Seats {
  public:
    explicit Seats(const Call& call) : call(call) {}

    void lay_out(Scratch& scratch) {
        scratch.take(owners, call.tokens);
        scratch.take(first_tokens, call.size);
        for (int kind = 0; kind < KINDS; kind++) {
            int64_t all = 0;
            for (int64_t index = 0; index < call.size && call.angles[kind].cos; index++) all += count(index, kind);
            scratch.take(begins[kind], call.size);
            scratch.take(slots[kind], all);
        }
    }

    void fill() {
        int64_t token = 0;
        for (int64_t index = 0; index < call.size; index++) {
            first_tokens[index] = token;
            for (int64_t i = 0; i < call.spans[index].count; i++) owners[token++] = index;
        }
        for (int kind = 0; kind < KINDS; kind++)
            if (call.angles[kind].cos) fill(kind);
    }

    // The span of a token of the call, and a span's first token.
    int64_t owner(int64_t token) const { return owners[token]; }
    int64_t first_token(int64_t index) const { return first_tokens[index]; }

    // The first position of a span that is looked up, and how many are: whole pairs, wherever a span begins, so that a
    // token's sums are the same however its row was cut into spans. What completes a pair is seen by nobody.
    int64_t first(int64_t index, int64_t kind) const {
        const int64_t oldest = call.oldest(call.spans[index], 0, kind);
        return oldest - oldest % PAIR;
    }
    int64_t count(int64_t index, int64_t kind) const {
        return pairs(call.spans[index].end() - first(index, kind)) * PAIR;
    }

    // The slot of each of them.
    const int64_t* of(int64_t index, int64_t kind) const { return slots[kind] + begins[kind][index]; }

  private:
    const Call& call;
    int32_t* owners;
    int64_t *first_tokens, *begins[KINDS], *slots[KINDS];

    void fill(int kind) {
        int64_t begin = 0;
        for (int64_t index = 0; index < call.size; index++) {
            const Span& span = call.spans[index];
            const int64_t oldest = call.oldest(span, 0, kind), padded = oldest - first(index, kind);
            int64_t* to = slots[kind] + begin;
            list(span, span.places[kind], oldest, to + padded);
            if (padded) to[0] = to[padded];
            begins[kind][index] = begin;
            begin += count(index, kind);
            to[count(index, kind) - 1] = to[padded + span.end() - oldest - 1];
        }
    }

    // The slots of a span's positions from `position` on.
    void list(const Span& span, const Place& place, int64_t position, int64_t* to) const {
        while (position < span.end()) {
            const int64_t number = position / place.size, place_in = position % place.size;
            const int64_t end = position < span.start ? span.start : span.end();
            const int64_t some = std::min(place.size - place_in, end - position);
            const int64_t page = call.pages[place.pages + number - place.first];
            const int64_t slot = page * place.size + place_in + (position < span.start ? 0 : span.gap);
            for (int64_t i = 0; i < some; i++) *to++ = slot + i;
            position += some;
        }
    }
};
