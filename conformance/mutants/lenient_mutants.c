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
    {0},
};
