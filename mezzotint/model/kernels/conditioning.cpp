// Self-conditioning; must equal mezzotint.model.diffusion_gemma.SelfConditioning.

#include "scratch.h"
#include "stack.h"

struct Conditioning {
    Matrix gate_up, down;  // the first norm's weight is multiplied in
    double eps;
};

struct Belief {
    const W *x, *soft;  // [rows, D]; no soft embedding is one of zero
    W* to;              // [rows, D]
    int64_t rows, threads;
};

namespace {

class Condition {
  public:
    Condition(const Conditioning& weights, const Belief& call) : weights(weights), call(call) {
        scratch.furnish(*this);
    }

    void lay_out(Scratch& scratch) {
        scratch.take(sum, call.rows * weights.down.out);
        scratch.take(normed, call.rows * weights.down.out);
        scratch.take(gated, call.rows * weights.down.in);
    }

    void run() {
        const int64_t D = weights.down.out, inner = weights.down.in;
#pragma omp for
        for (int64_t row = 0; row < call.rows; row++) {
            for (int64_t d = 0; d < D; d++) sum[row * D + d] = call.soft ? widen(call.soft[row * D + d]) : 0;
            normalise(sum + row * D, D, weights.eps, normed + row * D);
        }
        if (call.soft) {
#pragma omp for schedule(dynamic)
            for (int64_t panel = 0; panel < panels(inner); panel++)
                multiply_gated({normed, D, call.rows}, weights.gate_up, panel, nullptr, gated + panel * LANES, inner);
            multiply_all({gated, inner, call.rows}, weights.down, sum);
        }
#pragma omp for
        for (int64_t row = 0; row < call.rows; row++) {
            for (int64_t d = 0; d < D; d++) sum[row * D + d] += widen(call.x[row * D + d]);
            normalise(sum + row * D, D, weights.eps, call.to + row * D);
        }
    }

  private:
    const Conditioning& weights;
    const Belief& call;
    Scratch scratch;
    Real* sum;
    W *normed, *gated;
};

}  // namespace

extern "C" void condition(const Conditioning* weights, const Belief* call) {
    Condition condition(*weights, *call);
#pragma omp parallel num_threads(call->threads)
    condition.run();
}
