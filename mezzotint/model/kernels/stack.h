// What a forward is given: weights of all layers, and one call's tokens. mezzotint.model.abi has the same fields.
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

struct View {  // of one kind of layers, see mezzotint.model.attention; strides in elements
    const W *cos, *sin;
    const uint8_t* mask;
    int64_t angle_row_stride, first, mask_row_stride, mask_query_stride, causal;
};

struct Slots {  // of one layer's keys and values; strides in elements
    W *k, *v;
    int64_t row_stride, head_stride, token_stride;

    int64_t at(int64_t row, int64_t head, int64_t token) const {
        return row * row_stride + head * head_stride + token * token_stride;
    }
};

struct Call {
    const W* input;               // [B, T, D]
    W* hidden;                    // [B, T, D], behind the final norm
    Real* x;                      // [B, T, D], the residual stream
    W *normed, *queries, *mixed;  // [B, T, D], and twice [B, T, heads, head_dim]
    const Slots* slots;           // one a layer
    View views[2];                // one a kind
    int64_t rows, tokens, length, denoising, threads;  // B, T, and how many tokens the context has

    int64_t count() const { return rows * tokens; }
    int64_t seen(const Layer& layer) const { return length + tokens - views[layer.kind].first; }
};
