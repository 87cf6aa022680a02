// What a forward is given: weights of all layers, and one call's rows. mezzotint.model.abi has the same fields.
#pragma once

#include "products.h"

struct Layer {
    // Norms that stand before a product are multiplied into it. Experts stand one behind another.
    Matrix qkv, out, gate_up, down, expert_gate_up, expert_down;
    // [heads + KV heads, head_dim], [D] four times, [experts, D], [experts]
    const W *head_scale, *after_attention, *after_mlp, *after_experts, *after_feedforward, *router, *per_expert;
    double encode_scalar, denoise_scalar;
    int64_t kv_heads, head_dim, shares_kv, kind;
};

struct Stack {
    const Layer* layers;
    const W* norm;  // [D]
    double eps;
    int64_t size, width, heads, experts, top_k;
};

struct Slots {  // of one layer's keys and values; strides in elements
    W *k, *v;
    int64_t row_stride, head_stride, token_stride;

    int64_t at(int64_t row, int64_t head, int64_t slot) const {
        return row * row_stride + head * head_stride + slot * token_stride;
    }
};

constexpr int KINDS = 2;  // of layers; what differs between them is held once a kind

struct Place {  // where the positions of a span's row stand for one kind of layers
    int64_t pages;  // where the numbers of its pages begin in call.pages
    int64_t first;  // how many pages of the row come before these
    int64_t size;   // slots a page
};

struct Span {  // new tokens of one row, and the context that they stand behind
    int64_t start, count;  // tokens of the context, and new ones
    int64_t row;           // of the slots, where these have rows
    int64_t gap;           // slots between those of the context and those of the new tokens
    Place places[KINDS];

    int64_t end() const { return start + count; }
};

struct Angles {  // of one kind: [positions, head_dim] twice, from position 0 on; null where no layer is of the kind
    const W *cos, *sin;
};

struct Call {
    const W* input;        // [T, D], the tokens of all spans
    W* hidden;             // [T, D], behind the final norm
    const Slots* slots;    // one a layer
    const Span* spans;     // [size], one behind another
    const int64_t* pages;  // of all places
    Angles angles[KINDS];
    int64_t reach[KINDS];  // how far back a token sees: an encoded one from itself, a canvas from its first
    int64_t tokens, size, denoising, threads;  // T, how many spans

    // The oldest position that a span's token sees, and the one behind the newest.
    int64_t oldest(const Span& span, int64_t token, int64_t kind) const {
        return std::max<int64_t>(0, span.start + (denoising ? 0 : token) - reach[kind]);
    }
    int64_t newest(const Span& span, int64_t token) const { return denoising ? span.end() : span.start + token + 1; }
};
