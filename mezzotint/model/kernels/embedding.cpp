// Scaled embeddings of ids; must equal mezzotint.model.diffusion_gemma.DiffusionGemma.embed.

#include "products.h"

struct Embedding {
    const W* table;  // [V, D], as the checkpoint has it
    double scale;
    int64_t size, width;  // V, D
};

// to [N, D]; returns how many ids were embedded, which are all before the first one that is none.
extern "C" int64_t embed(const Embedding* embedding, const int64_t* ids, int64_t count, W* to) {
    const Real scale = embedding->scale;
    const int64_t D = embedding->width;
    for (int64_t i = 0; i < count; i++, to += D) {
        if (ids[i] < 0 || ids[i] >= embedding->size) return i;
        const W* from = embedding->table + ids[i] * D;
        for (int64_t d = 0; d < D; d++) to[d] = narrow<W>(widen(from[d]) * scale);
    }
    return count;
}
