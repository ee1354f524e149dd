/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - 7. Load: this rank's parts by name, whoever saved them. All that
 * can be wrong is looked for before anything changes.
 */
#include "checkpoints.h"

#include <stdlib.h>

enum {
    SLICE = 1 << 14
}; /* elements at a time */

static int read_one(struct fsdp_sharded *s, struct checkpoint *c,
                    const char *name, const struct checkpoint_slice *x,
                    float *to, float *buffer, char *why)
{
    const struct fsdp_device *d = s->env->device;

    for (uint64_t done = 0; name && done < x->n;) {
        uint64_t n = x->n - done < SLICE ? x->n - done : SLICE;
        FSDP_TRY(checkpoint_read(c, name, x->first + done, n, buffer, why));
        FSDP_TRY(d->copy(d->self, NULL, to + done, buffer, n * sizeof *to));
        done += n;
    }
    return FSDP_OK;
}

static int read_slices(struct fsdp_sharded *s, struct checkpoint *c,
                       float *buffer, char *why)
{
    const struct ref_checkpoints *x = s->checkpoints;
    bool local = checkpoint_is_local(c);
    const struct checkpoint_table *table = local ? &x->local : &x->table;
    const struct checkpoint_slice *slice = local ? x->local_slice : x->slice;

    for (uint32_t i = 0; i < (local ? x->n_local : x->n); i++) {
        FSDP_TRY(read_one(s, c, table->entry[slice[i].entry].name, &slice[i],
                          local ? x->local_at[i] : x->at[i], buffer, why));
    }
    return FSDP_OK;
}

/* All ranks have found all files whole: what fails now is the system. */
static int replace(struct fsdp_sharded *s, struct checkpoint *c)
{
    char why[CHECKPOINT_WHY_BYTES] = "out of memory";
    float *buffer = malloc(SLICE * sizeof *buffer);
    struct checkpoint_kept kept = {0};
    int status =
        buffer ? checkpoint_keep(c, s->env->rank, s->env->world, &kept, why)
               : FSDP_ERR_NOMEM;

    status = checkpoint_agree(s->env, "ref.load", status, why);
    if (status == FSDP_OK) {
        s->torn = true;
        status = checkpoint_agree(s->env, "ref.load",
                                  read_slices(s, c, buffer, why), why);
        s->torn = status != FSDP_OK;
    }
    if (status == FSDP_OK) {
        struct checkpoint_state state = checkpoint_state_of(c);
        s->steps = state.step;
        s->power[0] = state.power[0];
        s->power[1] = state.power[1];
        ref_drop_gradients(s);
        checkpoint_kept_release(&s->checkpoints->kept);
        s->checkpoints->kept = kept;
        kept = (struct checkpoint_kept){0};
    }
    checkpoint_kept_release(&kept);
    free(buffer);
    return status;
}

int ref_load(struct fsdp_sharded *s, const char *directory)
{
    struct checkpoint *c;
    int status;

    if (s->sequence || s->summoned ||
        (s->checkpoints && s->checkpoints->saving)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.load",
                        "only at rest, and not while a save is under way");
    }
    FSDP_TRY(ref_checkpoints(s));
    FSDP_TRY(checkpoint_load_open(s->env, directory, &s->checkpoints->table,
                                  &s->checkpoints->local, &c));
    status = replace(s, c);
    checkpoint_close(c);
    return status;
}

int ref_loaded_extra(struct fsdp_sharded *s, const char *name,
                     const void **data, uint64_t *bytes)
{
    if (!s->checkpoints ||
        !checkpoint_kept_find(&s->checkpoints->kept, name, data, bytes)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.loaded_extra",
                        "nothing was loaded that has the name %.80s", name);
    }
    return FSDP_OK;
}
