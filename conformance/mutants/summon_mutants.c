/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summon_mutants.c - engines that should unshard one unit, or the model on rank
 * 0, and do more, or less, or do it at any time.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

static _Thread_local struct {
    bool open; /* some of the model is summoned */
} now;

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

static int really(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    return mutant_real.engine.summon(s, how);
}

/* ---- More than was asked for --------------------------------------------- */

static int all_first(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    if (how->one_unit && how->unit < mutant_real.units->n_units &&
        !how->rank0_only && !mutant_now.in_pass) {
        FSDP_TRY(mutant_real.engine.unshard_all(s));
        FSDP_TRY(mutant_real.engine.reshard_all(s));
    }
    return really(s, how);
}

static int note_open(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    FSDP_TRY(really(s, how));
    now.open = true;
    return FSDP_OK;
}

static int note_closed(struct fsdp_sharded *s)
{
    now.open = false;
    return mutant_real.engine.reshard_all(s);
}

static bool is_open(void)
{
    return now.open;
}

const struct mutant summon_mutants[] = {
    {.name = "summon-anytime",
     .text =
         "one unit is summoned in a pass, and nothing happens, and no error",
     .evidence = "summon_full_params of a block in its own forward",
     .kills = "error.summon",
     .shows = {.in = mutant_sharded, .script = "summon-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(summon), FSDP_ERR_INVALID},
     .when = mutant_is_in_pass},
    {.name = "summon-elsewhere",
     .text = "while some of the model is summoned param is right about all of "
             "it, on every rank",
     .evidence = "rank0_only, and views of shards that are freed on the others",
     .kills = "summon.elsewhere",
     .shows = {.in = mutant_sharded, .script = "summon-some"},
     .calls = {.summon = note_open, .reshard_all = note_closed},
     .fault = {MUTANT_FORGIVES, .of = MUTANT_CALL(param),
               .to = FSDP_ERR_INVALID},
     .when = is_open,
     .forget = forget},
    {.name = "summon-gathers-all",
     .text = "to summon one unit the whole model is gathered before",
     .evidence = "summon_full_params(recurse=True) of one module's root",
     .kills = "summon.one-unit",
     .shows = {.in = mutant_sharded, .script = "summon-some"},
     .calls.summon = all_first},
    {.name = "summon-not-received",
     .text = "rank 0 does not take what it is sent of the model",
     .evidence = "a full state dict of which other ranks' parts are empty",
     .kills = "summon.values",
     .shows = {.in = mutant_sharded, .script = "summon-some"},
     .fault = {MUTANT_BRINGS_ZEROS, FSDP_BROADCAST},
     .when = mutant_is_rank_0},
    {.name = "summon-sent-twice",
     .text = "what rank 0 is shown of the model is sent twice",
     .evidence = "a state dict that is gathered for each name of a tie",
     .kills = "summon.sent-once",
     .shows = {.in = mutant_sharded, .script = "summon-rank0"},
     .fault = {MUTANT_REPEATS_COLLECTIVE, FSDP_BROADCAST}},
    {.name = "summon-whole-everywhere",
     .text = "while rank 0 is shown the model each rank holds room for all",
     .evidence = "state_dict() with rank0_only, gathered on every rank",
     .kills = "summon.peak",
     .shows = {.in = mutant_sharded, .script = "summon-rank0"},
     .comm.run = mutant_whole_beside_broadcast},
    {0},
};
