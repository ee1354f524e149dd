/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_other_layout.c - what was saved in the other layout is taken for
 * this one's: shards that are not the first have the elements in front of
 * theirs. Loads in the layout of the save are right.
 */
#include "mutants/wrap_kit.h"

#include "checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local uint32_t layout; /* of this engine */

static void change(void *context, const struct fsdp_piece *piece)
{
    float *x = malloc((piece->n + 1) * sizeof *x);

    (void)context;
    if (x && piece->n > 1 &&
        mutant_get(NULL, piece->value, piece->n, x + 1) == FSDP_OK) {
        x[0] = x[piece->n];
        (void)mutant_put(NULL, x, piece->n, (void *)piece->value);
    }
    free(x);
}

static bool is_of_other_layout(const char *directory)
{
    char why[CHECKPOINT_WHY_BYTES];
    struct checkpoint *c;
    bool other;

    if (checkpoint_open(directory, &c, why) != FSDP_OK) {
        return false;
    }
    other = (strcmp(checkpoint_manifest_of(c)->layout, "flat") == 0) !=
            (layout == FSDP_LAYOUT_FLAT);
    checkpoint_close(c);
    return other;
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    if (status == FSDP_OK && is_of_other_layout(directory)) {
        (void)mutant_real.engine.pieces(s, change, NULL);
    }
    return status;
}

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    layout = options->layout;
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    engine->load = load;
}

static bool shows(const struct run_case *c)
{
    struct run_case saver;

    return case_saver(c, &saver) && saver.layout != c->layout;
}

MUTANT(checkpoint_other_layout) = {
    .name = "checkpoint-other-layout",
    .text = "what was saved in the other layout is loaded as if in this one",
    .evidence = "no report: where a load takes offsets for those of its own "
                "layout",
    .kills = "checkpoint.parameters",
    .shows = shows,
    .wrap = wrap,
};
