/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lenient_mutants.c - engines that pass over what has other names, lose what a
 * checkpoint lacks, or do not tell of it.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    RENAMED = 1 /* the parameter that the scripts rename */
};

static int really(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    return mutant_real.engine.load_from(s, how);
}

/* ---- What is missing ----------------------------------------------------- */

static float nothing(float x)
{
    return x * 0.0f;
}

static void clear(const struct fsdp_piece *piece)
{
    if (piece->parameter == RENAMED) {
        (void)mutant_each(NULL, (void *)piece->value, piece->n, nothing);
    }
}

static int clears_missing(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    FSDP_TRY(really(s, how));
    return mutant_each_piece(s, clear);
}

static void clear_states(const struct fsdp_piece *piece)
{
    for (uint32_t k = 0; k < 2 && piece->parameter == RENAMED; k++) {
        if (piece->state[k]) {
            (void)mutant_each(NULL, (void *)piece->state[k], piece->n, nothing);
        }
    }
}

static int clears_states(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    FSDP_TRY(really(s, how));
    return mutant_each_piece(s, clear_states);
}

/* ---- What is told -------------------------------------------------------- */

static int without(struct fsdp_sharded *s, const char *name, const void **data,
                   uint64_t *bytes, const char *list)
{
    FSDP_TRY(mutant_real.engine.loaded_extra(s, name, data, bytes));
    *bytes = strcmp(name, list) == 0 ? 0 : *bytes;
    return FSDP_OK;
}

static int tells_no_missing(struct fsdp_sharded *s, const char *name,
                            const void **data, uint64_t *bytes)
{
    return without(s, name, data, bytes, "checkpoint.missing");
}

/* On one rank. */
static int tells_no_others(struct fsdp_sharded *s, const char *name,
                           const void **data, uint64_t *bytes)
{
    return without(s, name, data, bytes,
                   mutant_real.rank == 1 ? "checkpoint.unexpected" : "");
}

/* ---- Parts --------------------------------------------------------------- */

static int saves_all(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save all = *save;

    if (all.what < 2 * FSDP_SAVE_EXTRA) {
        all.what = all.what ? all.what | FSDP_SAVE_PARAMETERS |
                                  FSDP_SAVE_STATES | FSDP_SAVE_BUFFERS
                            : 0;
    }
    return mutant_real.engine.save_begin(s, &all);
}

static int saves_extra(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save more = *save;

    more.what = more.what ? more.what | FSDP_SAVE_EXTRA : 0;
    return mutant_real.engine.save_begin(s, &more);
}

static int any_part(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save known = *save;

    known.what = known.what < 2 * FSDP_SAVE_EXTRA ? known.what : 0;
    return mutant_real.engine.save_begin(s, &known);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_lenient(const struct run_case *c)
{
    return strcmp(c->script, "load-lenient") == 0 &&
           strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") != 0 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool is_strict(const struct run_case *c)
{
    return strcmp(c->script, "load-renamed") == 0;
}

static bool has_parts(const struct run_case *c)
{
    return strcmp(c->script, "save-parts") == 0 &&
           strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") != 0 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

const struct mutant lenient_mutants[] = {
    {.name = "lenient-always",
     .text = "a load of a checkpoint that lacks a name changes nothing, and is "
             "no error",
     .evidence = "load_state_dict(strict=False) in a trainer",
     .kills = "error.load-renamed",
     .shows = {.in = is_strict},
     .fault = {MUTANT_FORGIVES, .of = MUTANT_LOAD, .to = FSDP_ERR_FORMAT}},
    {.name = "lenient-clears-missing",
     .text = "what a checkpoint lacks of the model is 0 behind a lenient load",
     .evidence = "a model that is made empty before it is loaded",
     .kills = "checkpoint.lenient",
     .shows = {.in = is_lenient},
     .calls.load_from = clears_missing},
    {.name = "lenient-clears-states",
     .text = "a parameter of which a checkpoint lacks the states has none "
             "behind a lenient load",
     .evidence = "an optimizer that is made again before it is loaded",
     .kills = "checkpoint.lenient",
     .shows = {.in = is_lenient},
     .calls.load_from = clears_states},
    {.name = "lenient-missing-unreported",
     .text = "a lenient load does not tell what was missing",
     .evidence = "a planner that allows partial loads",
     .kills = "checkpoint.reports-names",
     .shows = {.in = is_lenient},
     .calls.loaded_extra = tells_no_missing},
    {.name = "lenient-unexpected-unreported",
     .text = "one rank of a lenient load does not tell what was left",
     .evidence = "unexpected keys that rank 0 alone collects",
     .kills = "checkpoint.reports-names",
     .shows = {.in = is_lenient},
     .calls.loaded_extra = tells_no_others},
    {.name = "parts-any",
     .text = "a save of a part that is none saves all",
     .evidence = "an option that is compared with those that are known",
     .kills = "error.save-unknown-part",
     .shows = {.in = has_parts},
     .calls.save_begin = any_part},
    {.name = "parts-extra-saved",
     .text = "the caller's own is saved with any parts",
     .evidence = "a state dict of the model with the trainer's in it",
     .kills = "checkpoint.parts-extra",
     .shows = {.in = has_parts},
     .calls.save_begin = saves_extra},
    {.name = "parts-ignored",
     .text = "a save of some parts has the tensors of all",
     .evidence = "model-only checkpoints with optimizer states in them",
     .kills = "checkpoint.parts",
     .shows = {.in = has_parts},
     .calls.save_begin = saves_all},
    {0},
};
