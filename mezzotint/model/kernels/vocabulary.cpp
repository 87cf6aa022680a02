// From hidden states to logits, tokens and soft embeddings, for vocabularies whose scores a cache holds; must equal
// mezzotint.model.vocabulary, and draws as mezzotint.model.draw does.

#include <vector>

#include "products.h"

struct Head {
    Matrix scores, mix;  // the embedding table [V, D], and the same turned, [D, V]
    double softcap, scale;
    int64_t bin;  // ids a bin
};

struct Question {  // see read_vocabulary
    const W* hidden;  // [N, D]
    const double *uniforms, *temperature, *proposal_temperature;  // [N]
    int64_t *argmax, *proposal;
    Real *entropy, *log_prob;
    W* soft;  // [N, D], or null
    int64_t rows, threads;
};

namespace {

constexpr int BLOCK = 16;  // rows that a thread reads at once

// A place among intervals and how far into its own it is, again a uniform.
struct Place {
    int64_t interval;
    double rest;
};

Place place(const double* masses, int64_t count, double uniform) {
    double total = 0, before = 0;
    for (int64_t i = 0; i < count; i++) total += masses[i];
    const double target = uniform * total;
    int64_t found = 0, last = 0;
    for (int64_t i = 0; i < count; i++)
        if (masses[i] > 0) last = i;
    for (; found < last && before + masses[found] <= target; found++) before += masses[found];
    return {found, std::min(std::max((target - before) / masses[found], 0.0), 1.0)};
}

class Reader {
  public:
    Reader(const Head& head, const Question& question)
        : head(head), question(question), size(head.scores.out), bins((size + head.bin - 1) / head.bin),
          stride(panels(size) * LANES), scores(BLOCK * stride), powers(BLOCK * head.mix.in),
          masses(std::max(bins, head.bin)) {}

    void read(int64_t first) {
        const int64_t count = std::min<int64_t>(BLOCK, question.rows - first);
        score(first, count);
        double totals[BLOCK];
        for (int64_t i = 0; i < count; i++) totals[i] = read_row(first + i, scores_of(i), powers_of(i));
        if (question.soft) mix(first, count, totals);
    }

  private:
    const Head& head;
    const Question& question;
    const int64_t size, bins, stride;
    std::vector<Real> scores;
    std::vector<W> powers;
    std::vector<double> masses;

    Real* scores_of(int64_t i) { return scores.data() + i * stride; }
    W* powers_of(int64_t i) { return powers.data() + i * head.mix.in; }

    // softcap · tanh(z / softcap), up to a factor and a constant that no softmax sees.
    void score(int64_t first, int64_t count) {
        const Rows rows = {question.hidden + first * head.scores.in, head.scores.in, count};
        const Real slope = -2 / head.softcap;
        for (int64_t panel = 0; panel < panels(size); panel++)
            multiply_panel(rows, head.scores, panel, [&](int64_t i, const Real* lanes) {
                Real* to = scores_of(i) + panel * LANES;
                for (int lane = 0; lane < LANES; lane++)
                    to[lane] = head.softcap ? 1 / (1 + power(lanes[lane] * slope)) : lanes[lane];
            });
    }

    void mix(int64_t first, int64_t count, const double* totals) {
        const int64_t D = head.mix.out;
        for (int64_t panel = 0; panel < panels(D); panel++)
            multiply_panel({powers.data(), head.mix.in, count}, head.mix, panel, [&](int64_t i, const Real* lanes) {
                const int64_t start = panel * LANES, width = std::min<int64_t>(LANES, D - start);
                const Real factor = head.scale / totals[i];
                W* to = question.soft + (first + i) * D + start;
                for (int64_t lane = 0; lane < width; lane++) to[lane] = narrow<W>(lanes[lane] * factor);
            });
    }

    // Everything but the soft embedding, whose powers e^((score − peak) · rate) it leaves. Returns: their sum.
    double read_row(int64_t row, Real* score, W* power_of) {
        Real peak = score[0];
#pragma omp simd reduction(max : peak)
        for (int64_t id = 1; id < size; id++) peak = std::max(peak, score[id]);
        const int64_t best = std::find(score, score + size, peak) - score;
        const double temperature = question.temperature[row], drawn_at = question.proposal_temperature[row];
        const Real rate = (head.softcap ? 2 * head.softcap : 1) / temperature;
        const Real ratio = drawn_at ? temperature / drawn_at : 1;
        double total = 0, energy = 0, all = 0;
        for (int64_t start = 0, bin = 0; start < size; start += head.bin, bin++) {
            const int64_t end = std::min(start + head.bin, size);
            Real sum = 0, weighted = 0, mass = 0;
#pragma omp simd reduction(+ : sum, weighted)
            for (int64_t id = start; id < end; id++) {
                score[id] = (score[id] - peak) * rate;
                const Real p = power(score[id]);
                sum += p;
                weighted += p * score[id];
                power_of[id] = narrow<W>(p);
            }
            if (ratio != 1)
                for (int64_t id = start; id < end; id++) mass += power(score[id] * ratio);
            masses[bin] = ratio == 1 ? sum : mass;
            total += sum;
            energy += weighted;
            all += masses[bin];
        }
        question.argmax[row] = question.proposal[row] = best;
        question.entropy[row] = std::max(std::log(total) - energy / total, 0.0);
        question.log_prob[row] = -std::log(total);
        if (drawn_at) {
            const int64_t id = draw(score, ratio, question.uniforms[row]);
            question.proposal[row] = id;
            question.log_prob[row] = score[id] * ratio - std::log(all);
        }
        return total;
    }

    int64_t draw(const Real* exponent, Real ratio, double uniform) {
        const Place bin = place(masses.data(), bins, uniform);
        const int64_t start = bin.interval * head.bin, count = std::min(head.bin, size - start);
        for (int64_t i = 0; i < count; i++) masses[i] = power(exponent[start + i] * ratio);
        return start + place(masses.data(), count, bin.rest).interval;
    }
};

}  // namespace

extern "C" void read_vocabulary(const Head* head, const Question* question) {
#pragma omp parallel num_threads(question->threads)
    {
        Reader reader(*head, *question);
#pragma omp for schedule(dynamic)
        for (int64_t first = 0; first < question->rows; first += BLOCK) reader.read(first);
    }
}

// to [N, V] = softcap · tanh(hidden Eᵀ / softcap), or without the cap where that is 0. Returns whether all are finite.
extern "C" int64_t full_logits(const Head* head, const W* hidden, int64_t rows, int64_t threads, Real* to) {
    const int64_t size = head->scores.out;
    const Real cap = head->softcap;
    int64_t is_finite = 1;
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(& : is_finite)
    for (int64_t panel = 0; panel < panels(size); panel++)
        multiply_panel({hidden, head->scores.in, rows}, head->scores, panel, [&](int64_t i, const Real* lanes) {
            const int64_t start = panel * LANES, width = std::min<int64_t>(LANES, size - start);
            Real sum = 0;  // which is finite only if all are
            for (int64_t lane = 0; lane < width; lane++) {
                const Real logit = cap ? cap - 2 * cap / (1 + power(lanes[lane] * 2 / cap)) : lanes[lane];
                to[i * size + start + lane] = logit;
                sum += logit;
            }
            is_finite &= std::isfinite(sum);
        });
    return is_finite;
}
