/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_torn.c - a parameter is cut into equal parts wherever that is.
 */
#include "mutants/wrap_kit.h"

static const float values[64];

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    const struct fsdp_model *m = mutant_real.model;

    (void)s;
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t numel = fsdp_numel(m, p);
        uint64_t n = (numel + mutant_real.shards - 1) / mutant_real.shards;
        uint64_t first = mutant_real.rank % mutant_real.shards * n;
        struct fsdp_piece x = {.size = sizeof x,
                               .parameter = p,
                               .first = first,
                               .n = first + n < numel ? n : numel - first,
                               .value = values,
                               .grad = values};

        if (first < numel) {
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

MUTANT(rows_torn) = {
    .name = "rows-torn",
    .text = "each parameter is cut as a flat one is, within its rows",
    .evidence = "ZeRO-3 beside fully_shard: shards of the same sizes that are "
                "not slices",
    .kills = "layout.whole-rows",
    .shows = shows,
    .wrap = wrap,
};
