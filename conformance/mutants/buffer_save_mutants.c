/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_save_mutants.c - saves that have other buffers than there were, and
 * loads that do not give them back.
 */
#include "mutants/buffer_copies.h"

#include <string.h>

/* ---- Which cases show it ------------------------------------------------ */

static bool resumes(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_RESUME &&
           c->precision == CASE_F32;
}

/* ---- Saves and loads ---------------------------------------------------- */

static int buffer_lost_on_load(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(buffers_take(s, &buffers_before));
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return buffers_give(s, &buffers_before, true);
}

/* Only rank 0 loads buffers; the others go on with theirs. */
static int buffer_loaded_on_rank_0(struct fsdp_sharded *s,
                                   const char *directory)
{
    FSDP_TRY(buffers_take(s, &buffers_before));
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return mutant_real.rank == 0 ? FSDP_OK
                                 : buffers_give(s, &buffers_before, true);
}

/* A load also changes the buffers that it should leave alone. */
static int buffer_reset_on_load(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    memset(buffers_before.data, 0, sizeof(buffers_before.data));
    buffers_before.made = true;
    return buffers_give(s, &buffers_before, false);
}

/* Saves the last rank's buffers, as de-duplication may choose. */
static int buffer_of_last_rank(struct fsdp_sharded *s,
                               const struct fsdp_save *save)
{
    static _Thread_local struct buffer_copies own;
    int status;

    FSDP_TRY(buffers_take(s, &own));
    FSDP_TRY(buffers_meet(s, mutant_real.world - 1));
    status = mutant_real.engine.save_begin(s, save);
    FSDP_TRY(buffers_give_all(s, &own));
    return status;
}

/* Saves buffers as they were when the last pass began. */
static int buffer_saved_stale(struct fsdp_sharded *s,
                              const struct fsdp_save *save)
{
    static _Thread_local struct buffer_copies own;
    int status;

    FSDP_TRY(buffers_take(s, &own));
    if (buffers_before.made) {
        FSDP_TRY(buffers_give_all(s, &buffers_before));
    }
    status = mutant_real.engine.save_begin(s, save);
    FSDP_TRY(buffers_give_all(s, &own));
    return status;
}

static int note_at_begin(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        FSDP_TRY(buffers_take(s, &buffers_before));
    }
    return mutant_real.engine.at(s, point, index);
}

const struct mutant buffer_save_mutants[] = {
    {.name = "buffer-loaded-on-rank-0",
     .text = "a load gives buffers to rank 0 alone",
     .evidence = "a state dict that one rank has",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.load = buffer_loaded_on_rank_0},
    {.name = "buffer-lost-on-load",
     .text = "a load leaves buffers as they are",
     .evidence = "a checkpoint of parameters alone",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.load = buffer_lost_on_load},
    {.name = "buffer-of-last-rank",
     .text = "a save has the buffers of the last rank",
     .evidence = "torch.distributed.checkpoint: the rank that de-duplication "
                 "picks",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.save_begin = buffer_of_last_rank},
    {.name = "buffer-reset-on-load",
     .text = "a load sets buffers that are not persisted to zero",
     .evidence = "a model that is made empty before it is loaded",
     .kills = "buffer.not-loaded",
     .shows = {.in = resumes},
     .calls.load = buffer_reset_on_load},
    {.name = "buffer-saved-stale",
     .text = "a save has buffers as the last pass found them",
     .evidence = "a copy that is made before the forward",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls = {.save_begin = buffer_saved_stale, .at = note_at_begin},
     .forget = buffers_forget},
    {0},
};
