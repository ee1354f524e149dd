/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_balanced.c - rows dealt out so that no two ranks differ by more than
 * one, as torch.tensor_split does, and not as torch.chunk does.
 */
#include "mutants/wrap_kit.h"

static const float values[64];

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t k = mutant_real.rank % mutant_real.shards;

    (void)s;
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t rows = m->parameter_shape[p][0];
        uint64_t row = fsdp_numel(m, p) / rows;
        uint64_t each = rows / mutant_real.shards;
        uint64_t more = rows % mutant_real.shards; /* ranks with one more */
        struct fsdp_piece x = {.size = sizeof x,
                               .parameter = p,
                               .first =
                                   (k * each + (k < more ? k : more)) * row,
                               .n = (each + (k < more)) * row,
                               .value = values,
                               .grad = values};

        if (x.n > 0) {
            visit(context, &x);
        }
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    engine->pieces = pieces;
}

static bool shows(const struct run_case *c)
{
    return mutant_rows(c) && c->ranks <= 4;
}

MUTANT(rows_balanced) = {
    .name = "rows-balanced",
    .text = "rows are dealt out evenly: as many ranks as can have the same "
            "number of them, and none is empty",
    .evidence = "X35: uneven shards computed with another rule than they were "
                "made by",
    .kills = "layout.chunk-rule",
    .shows = shows,
    .wrap = wrap,
};
