// The layers of one forward in few passes over memory; must equal mezzotint.model.diffusion_gemma.Layer.
//
// Activations are held in float (double beside double weights) and rounded to the weights' type where they enter a
// product. Every step below is run by all threads: they share its tasks out and wait for each other at its end.

#include "attention.h"

namespace {

class Forward {
  public:
    Forward(const Stack& stack, const Call& call)
        : stack(stack), call(call), seats(call), attention(stack, call, seats) {
        scratch.furnish(*this);
        seats.fill();
        attention.fill();
    }

    void lay_out(Scratch& scratch) {
        int64_t heads = 0, inner = 0, expert_inner = 0;
        for (int64_t index = 0; index < stack.size; index++) {
            const Layer& layer = stack.layers[index];
            heads = std::max(heads, layer.qkv.out);
            inner = std::max(inner, layer.down.in);
            expert_inner = std::max(expert_inner, layer.expert_down.in);
        }
        const int64_t visits = call.tokens * stack.top_k;
        scratch.take(x, call.tokens * stack.width);
        scratch.take(normed, call.tokens * stack.width);
        scratch.take(raw, call.tokens * heads);
        scratch.take(dense, call.tokens * stack.width);
        scratch.take(sparse, call.tokens * stack.width);
        scratch.take(gated, call.tokens * inner);
        scratch.take(expert_gated, visits * expert_inner);
        scratch.take(chances, visits);
        scratch.take(shares, visits);
        scratch.take(chosen, visits);
        scratch.take(visitors, visits);
        scratch.take(starts, stack.experts + 1);
        scratch.take(all_scores, call.threads * stack.experts);
        seats.lay_out(scratch);
        attention.lay_out(scratch);
    }

    void enter() {
#pragma omp for
        for (int64_t t = 0; t < call.tokens; t++) {
            for (int64_t d = 0; d < stack.width; d++) stream(t)[d] = widen(call.input[t * stack.width + d]);
            normalise(stream(t), stack.width, stack.eps, normed + t * stack.width);
        }
    }

    // Queries of the tokens, and their keys and values into the layer's slots; a drafter's layers have none of their own.
    void project(int64_t index) {
        const Layer& layer = stack.layers[index];
        const Slots& slots = call.slots[index];
        const int64_t size = layer.head_dim, first_key = stack.heads, first_value = first_key + layer.kv_heads;
        multiply_all(tokens(), layer.qkv, raw);
#pragma omp for
        for (int64_t t = 0; t < call.tokens; t++) {
            const Real* heads = raw + t * layer.qkv.out;
            W* queries = attention.queries + t * stack.heads * size;
            const int64_t index = seats.owner(t), row = call.spans[index].row;
            const int64_t position = call.spans[index].start + t - seats.first_token(index);
            const int64_t at = seats.of(index, layer.kind)[position - seats.first(index, layer.kind)];
            for (int64_t head = 0; head < stack.heads; head++) turn(layer, heads, head, position, queries + head * size);
            if (layer.qkv.out == stack.heads * size) continue;
            for (int64_t head = 0; head < layer.kv_heads; head++) {
                const int64_t slot = slots.at(row, head, at);
                turn(layer, heads, first_key + head, position, slots.k + slot);
                const Real* value = heads + ((layer.shares_kv ? first_key : first_value) + head) * size;
                normalise(value, size, stack.eps, slots.v + slot);
            }
        }
    }

    void attend(int64_t index) { attention.attend(index); }

    // What attention has mixed joins the stream, and the feed-forward half of the layer follows.
    void feed_forward(int64_t index) {
        const Layer& layer = stack.layers[index];
        multiply_all({attention.mixed, layer.out.in, call.tokens}, layer.out, dense);
#pragma omp for
        for (int64_t t = 0; t < call.tokens; t++) {
            join(t, layer.after_attention, 1);
            if (stack.experts) route(layer, t);
        }
        if (stack.experts) sort_by_expert();
        widen_all(layer);
        narrow_all(layer);
#pragma omp for
        for (int64_t t = 0; t < call.tokens; t++) {
            if (stack.experts) join_experts(layer, t);
            join(t, layer.after_feedforward, call.denoising ? layer.denoise_scalar : layer.encode_scalar);
        }
    }

    void finish() {
#pragma omp for
        for (int64_t t = 0; t < call.tokens; t++) {
            const Real norm = inverse_rms(stream(t), stack.width, stack.eps);
            W* hidden = call.hidden + t * stack.width;
            Real sum = 0;  // which is finite only if all are
#pragma omp simd reduction(+ : sum)
            for (int64_t d = 0; d < stack.width; d++) {
                const Real state = stream(t)[d] * norm * widen(stack.norm[d]);
                hidden[d] = narrow<W>(state);
                sum += state;
            }
            if (!std::isfinite(sum)) {
#pragma omp atomic write
                is_finite = 0;
            }
        }
    }

    int64_t is_finite = 1;  // whether all that came out is a number

  private:
    const Stack& stack;
    const Call& call;
    Seats seats;
    Attention attention;
    Scratch scratch;
    Real *x, *raw, *dense, *sparse;       // the stream; products: [.., heads · head_dim], and what joins it, [.., D]
    W *normed, *gated, *expert_gated;     // [.., D], [.., inner], [visits, expert inner]
    Real *chances, *shares, *all_scores;  // of each token's experts; the same by expert; a thread's own [experts]
    int32_t *chosen, *visitors, *starts;  // each token's experts; by expert, tokens, and where an expert's begin

    Real* stream(int64_t t) const { return x + t * stack.width; }
    Rows tokens() const { return {normed, stack.width, call.tokens}; }

    // A head of a token, normed, scaled and rotated by its position; dimension d turns with d + head_dim / 2.
    void turn(const Layer& layer, const Real* heads, int64_t head, int64_t position, W* to) const {
        const Angles& angles = call.angles[layer.kind];
        const int64_t size = layer.head_dim, half = size / 2;
        const W *cos = angles.cos + position * size, *sin = angles.sin + position * size;
        const W* scale = layer.head_scale + head * size;
        const Real *x = heads + head * size, norm = inverse_rms(x, size, stack.eps);
#pragma omp simd
        for (int64_t d = 0; d < half; d++) {
            const Real a = x[d] * norm * widen(scale[d]), b = x[d + half] * norm * widen(scale[d + half]);
            to[d] = narrow<W>(a * widen(cos[d]) + b * widen(sin[d]));
            to[d + half] = narrow<W>(b * widen(cos[d + half]) + a * widen(sin[d + half]));
        }
    }

    // x = (x + y / rms(y) · scale) · scalar, and its norm for the next product.
    void join(int64_t t, const W* scale, Real scalar) const {
        Real *x = stream(t), *y = dense + t * stack.width;
        const Real norm = inverse_rms(y, stack.width, stack.eps);
#pragma omp simd
        for (int64_t d = 0; d < stack.width; d++) x[d] = (x[d] + y[d] * norm * widen(scale[d])) * scalar;
        normalise(x, stack.width, stack.eps, normed + t * stack.width);
    }

    void join_experts(const Layer& layer, int64_t t) const {
        Real *y = dense + t * stack.width, *z = sparse + t * stack.width;
        const Real a = inverse_rms(y, stack.width, stack.eps), b = inverse_rms(z, stack.width, stack.eps);
#pragma omp simd
        for (int64_t d = 0; d < stack.width; d++)
            y[d] = y[d] * a * widen(layer.after_mlp[d]) + z[d] * b * widen(layer.after_experts[d]);
    }

    // A token's top_k experts, the likeliest first and among equals the lowest, with the shares that each is given.
    void route(const Layer& layer, int64_t t) const {
        Real* scores = all_scores + omp_get_thread_num() * stack.experts;
        const W* x = normed + t * stack.width;
        for (int64_t expert = 0; expert < stack.experts; expert++) {
            const W* router = layer.router + expert * stack.width;
            Real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t d = 0; d < stack.width; d++) sum += widen(x[d]) * widen(router[d]);
            scores[expert] = sum;
        }
        const Real peak = *std::max_element(scores, scores + stack.experts);
        const int64_t first = t * stack.top_k, last = first + stack.top_k;
        Real total = 0;
        for (int64_t visit = first; visit < last; visit++) {
            chosen[visit] = std::max_element(scores, scores + stack.experts) - scores;
            chances[visit] = power(scores[chosen[visit]] - peak);
            total += chances[visit];
            scores[chosen[visit]] = Real(-1e30);
        }
        for (int64_t visit = first; visit < last; visit++)
            chances[visit] *= widen(layer.per_expert[chosen[visit]]) / total;
    }

    void sort_by_expert() {
#pragma omp single
        {
            int64_t place = 0;
            for (int64_t expert = 0; expert < stack.experts; expert++) {
                starts[expert] = place;
                for (int64_t visit = 0; visit < call.tokens * stack.top_k; visit++)
                    if (chosen[visit] == expert) {
                        visitors[place] = visit / stack.top_k;
                        shares[place++] = chances[visit];
                    }
            }
            starts[stack.experts] = place;
        }
    }

    int64_t visits(int64_t expert) const { return starts[expert + 1] - starts[expert]; }

    // gelu(gate x) · (up x) of the dense MLP and of every expert.
    void widen_all(const Layer& layer) {
        const int64_t dense_panels = panels(layer.down.in), expert_panels = panels(layer.expert_down.in);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < dense_panels + stack.experts * expert_panels; task++) {
            if (task < dense_panels) {
                multiply_gated(tokens(), layer.gate_up, task, nullptr, gated + task * LANES, layer.down.in);
                continue;
            }
            const int64_t panel = task - dense_panels, expert = panel / expert_panels, first = starts[expert];
            const Rows rows = {normed, stack.width, visits(expert), visitors + first};
            W* to = expert_gated + first * layer.expert_down.in + panel % expert_panels * LANES;
            multiply_gated(rows, layer.expert_gate_up, panel, shares + first, to, layer.expert_down.in);
        }
    }

    // Back to D: the dense MLP's result, and the sum of each token's experts in their order.
    void narrow_all(const Layer& layer) {
        const int64_t dense_panels = panels(stack.width);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < (stack.experts ? 2 : 1) * dense_panels; task++) {
            const int64_t panel = task % dense_panels, column = panel * LANES;
            const int64_t width = std::min<int64_t>(LANES, stack.width - column);
            if (task < dense_panels) {
                const Rows rows = {gated, layer.down.in, call.tokens};
                multiply_panel(rows, layer.down, panel, [&](int64_t t, const Real* lanes) {
                    std::copy(lanes, lanes + width, dense + t * stack.width + column);
                });
                continue;
            }
            for (int64_t t = 0; t < call.tokens; t++) std::fill_n(sparse + t * stack.width + column, width, Real(0));
            for (int64_t expert = 0; expert < stack.experts; expert++) {
                const int64_t first = starts[expert];
                const Rows rows = {expert_gated + first * layer.expert_down.in, layer.expert_down.in, visits(expert)};
                const int64_t own = expert * dense_panels + panel;
                multiply_panel(rows, layer.expert_down, own, [&](int64_t i, const Real* lanes) {
                    Real* to = sparse + visitors[first + i] * stack.width + column;
                    for (int64_t d = 0; d < width; d++) to[d] += lanes[d];
                });
            }
        }
    }
};

}  // namespace

// All layers and the final norm, with attention over the slots. Returns whether every result is finite.
extern "C" int64_t run_layers(const Stack* stack, const Call* call) {
    Forward forward(*stack, *call);
#pragma omp parallel num_threads(call->threads)
    {
        forward.enter();
        for (int64_t index = 0; index < stack->size; index++) {
            forward.project(index);
            forward.attend(index);
            forward.feed_forward(index);
        }
        forward.finish();
    }
    return forward.is_finite;
}
