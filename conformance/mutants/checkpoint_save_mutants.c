/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_save_mutants.c - engines that save another state than they should,
 * or save when they must not.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <string.h>

enum {
    EXTRAS = 3,
    EXTRA_BYTES = 256
};

static _Thread_local uint32_t n_saves;
static _Thread_local bool saving, refused; /* refused by the real one */

static void save_forget(void)
{
    n_saves = 0;
    saving = refused = false;
}

/* Every save contains how many saves there were before it. */
static int checkpoint_dated(struct fsdp_sharded *s,
                            const struct fsdp_save *save)
{
    const char *name[4] = {"date"};
    const void *data[4] = {&n_saves};
    uint64_t bytes[4] = {sizeof(n_saves)};
    struct fsdp_save dated = *save;

    for (uint32_t i = 0; i < save->n_extra && i < 3; i++) {
        name[i + 1] = save->extra_name[i];
        data[i + 1] = save->extra_data[i];
        bytes[i + 1] = save->extra_bytes[i];
    }
    n_saves++;
    dated.n_extra = save->n_extra + 1;
    dated.extra_name = name;
    dated.extra_data = data;
    dated.extra_bytes = bytes;
    return mutant_real.engine.save_begin(s, &dated);
}

static int checkpoint_in_pass(struct fsdp_sharded *s,
                              const struct fsdp_save *save)
{
    int status = mutant_real.engine.save_begin(s, save);

    if (saving) {
        return status; /* one at a time: that is another fault */
    }
    saving = true;
    refused = status != FSDP_OK;
    return FSDP_OK;
}

static int checkpoint_in_pass_wait(struct fsdp_sharded *s)
{
    int status = saving && refused ? FSDP_OK : mutant_real.engine.save_wait(s);

    saving = false;
    refused = false;
    return status;
}

static int checkpoint_key_of_some(struct fsdp_sharded *s,
                                  const struct fsdp_save *save)
{
    struct fsdp_save fewer = *save;

    fewer.n_extra = save->n_extra < 2 ? save->n_extra : 2;
    return mutant_real.engine.save_begin(s, &fewer);
}

static _Thread_local struct fsdp_save kept;
static _Thread_local char directory[4200];
static _Thread_local const char *extra_name[EXTRAS];
static _Thread_local const void *extra_data[EXTRAS];
static _Thread_local uint64_t extra_bytes[EXTRAS];
static _Thread_local unsigned char extra_copy[EXTRAS][EXTRA_BYTES];

/* The caller's own state is right; only the engine's is not. */
static void keep_save(const struct fsdp_save *save)
{
    kept = *save;
    snprintf(directory, sizeof(directory), "%s", save->directory);
    for (uint32_t i = 0; i < save->n_extra && i < EXTRAS; i++) {
        extra_name[i] = save->extra_name[i];
        extra_bytes[i] = save->extra_bytes[i] < EXTRA_BYTES
                             ? save->extra_bytes[i]
                             : EXTRA_BYTES;
        memcpy(extra_copy[i], save->extra_data[i], extra_bytes[i]);
        extra_data[i] = extra_copy[i];
    }
    kept.directory = directory;
    kept.extra_name = extra_name;
    kept.extra_data = extra_data;
    kept.extra_bytes = extra_bytes;
}

/* The real engine saves to another place, so that all refusals are its own. */
static int checkpoint_snapshot_late(struct fsdp_sharded *s,
                                    const struct fsdp_save *save)
{
    char wrong[4300];
    struct fsdp_save elsewhere = *save;
    int status;

    snprintf(wrong, sizeof(wrong), "%s/elsewhere", save->directory);
    elsewhere.directory = wrong;
    status = mutant_real.engine.save_begin(s, &elsewhere);
    if (status == FSDP_OK) {
        keep_save(save);
    }
    return status;
}

static int checkpoint_snapshot_late_wait(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.save_wait(s));
    FSDP_TRY(mutant_real.engine.save_begin(s, &kept));
    return mutant_real.engine.save_wait(s);
}

static float negated(float x)
{
    return -x;
}

static void negate_piece(const struct fsdp_piece *piece)
{
    (void)mutant_each(NULL, (void *)piece->value, piece->n, negated);
}

/* Writes values with the other sign, which its own load turns back. */
static int checkpoint_own_reader(struct fsdp_sharded *s,
                                 const struct fsdp_save *save)
{
    int status;

    FSDP_TRY(mutant_each_piece(s, negate_piece));
    status = mutant_real.engine.save_begin(s, save);
    FSDP_TRY(mutant_each_piece(s, negate_piece));
    return status;
}

static int checkpoint_disturbs_step(struct fsdp_sharded *s,
                                    const struct fsdp_save *save)
{
    int status = mutant_real.engine.save_begin(s, save);

    saving = saving || status == FSDP_OK;
    return status;
}

static int checkpoint_disturbs_step_wait(struct fsdp_sharded *s)
{
    saving = false;
    return mutant_real.engine.save_wait(s);
}

static float other_while_saving(float x)
{
    return saving ? x * 1.5f : x;
}

const struct mutant checkpoint_save_mutants[] = {
    {.name = "checkpoint-dated",
     .text = "equal states are saved as different files",
     .evidence = "archives that have a date in them",
     .kills = "checkpoint.canonical",
     .shows = {.in = mutant_resume},
     .calls.save_begin = checkpoint_dated,
     .forget = save_forget},
    /* The writer of the shards and the training share a buffer. */
    {.name = "checkpoint-disturbs-step",
     .text = "what is gathered while a checkpoint is written is not what it "
             "should be",
     .evidence = "pytorch/pytorch#144657, the other way round",
     .kills = "checkpoint.same-curve",
     .shows = {.in = mutant_resume},
     .calls.save_begin = checkpoint_disturbs_step,
     .calls.save_wait = checkpoint_disturbs_step_wait,
     .gathered = other_while_saving,
     .forget = save_forget},
    /* A save is taken whenever it is asked for, also in the middle of an
     * all-gather. */
    {.name = "checkpoint-in-pass",
     .text = "a save in a pass, or with gradients, is not refused",
     .evidence = "pytorch/pytorch#198020",
     .kills = "error.save-out-of-place",
     .shows = {.in = mutant_resume},
     .calls.save_begin = checkpoint_in_pass,
     .calls.save_wait = checkpoint_in_pass_wait,
     .forget = save_forget},
    /* State that only some ranks have is not saved. */
    {.name = "checkpoint-key-of-some",
     .text = "state that rank 0 has not is left out of a checkpoint",
     .evidence = "NVIDIA/Megatron-LM#6573",
     .kills = "checkpoint.extra",
     .shows = {.in = mutant_resume},
     .calls.save_begin = checkpoint_key_of_some},
    /* Its own load does not notice. */
    {.name = "checkpoint-own-reader",
     .text = "what is saved can be read by its own load alone",
     .evidence = "no report: a load that undoes what its save did",
     .kills = "checkpoint.peer-values",
     .shows = {.in = mutant_resume},
     .loaded = negate_piece,
     .calls.save_begin = checkpoint_own_reader},
    /* A save is only a promise here: it writes the values that are there when
     * it is waited for. */
    {.name = "checkpoint-snapshot-late",
     .text = "a checkpoint has the weights of the step that was trained while "
             "it was written",
     .evidence = "pytorch/pytorch#198020",
     .kills = "checkpoint.canonical checkpoint.moments checkpoint.parameters",
     .shows = {.in = mutant_resume},
     .calls.save_begin = checkpoint_snapshot_late,
     .calls.save_wait = checkpoint_snapshot_late_wait},
    {0},
};
