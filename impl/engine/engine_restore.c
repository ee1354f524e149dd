/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_restore.c - what this rank holds, read by name from a checkpoint that
 * any other world may have saved. Every file has been verified before the
 * first element changes.
 */
#include "engine_checkpoint.h"

#include <stdlib.h>

enum {
    SLICE = 1 << 16
}; /* elements at a time */

static int read_holding(struct fsdp_sharded *s, struct checkpoint *c,
                        const struct impl_holding *h, float *buffer, char *why)
{
    const struct fsdp_device *d = s->env->device;

    for (uint32_t i = 0; i < h->n; i++) {
        const struct checkpoint_slice *x = &h->slice[i];
        const char *name = h->table.entry[x->entry].name;
        uint64_t n;

        for (uint64_t done = 0; name && done < x->n; done += n) {
            n = x->n - done < SLICE ? x->n - done : SLICE;
            FSDP_TRY(checkpoint_read(c, name, x->first + done, n, buffer, why));
            FSDP_TRY(d->copy(d->self, NULL, h->at[i] + done, buffer,
                             n * sizeof *buffer));
        }
    }
    return FSDP_OK;
}

static void take_state(struct fsdp_sharded *s, const struct checkpoint *c,
                       struct checkpoint_kept *kept)
{
    struct checkpoint_state state = checkpoint_state_of(c);

    s->steps = state.step;
    s->power[0] = state.power[0];
    s->power[1] = state.power[1];
    s->stepped = true; /* the next all-gather waits for what compute reads */
    checkpoint_kept_release(&s->checkpoints->kept);
    s->checkpoints->kept = *kept;
    *kept = (struct checkpoint_kept){0};
}

/* Nothing is in flight, and no stream reads what is about to change. */
static int rest(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_drop_gradients(s));
    return s->env->device->sync(s->env->device->self, NULL);
}

static int replace(struct fsdp_sharded *s, struct checkpoint *c)
{
    const struct impl_checkpoints *own = s->checkpoints;
    char why[CHECKPOINT_WHY_BYTES] = "out of host memory";
    float *buffer = malloc(SLICE * sizeof *buffer);
    struct checkpoint_kept kept = {0};
    int status =
        buffer ? checkpoint_keep(c, s->env->rank, s->env->world, &kept, why)
               : FSDP_ERR_NOMEM;

    status = checkpoint_agree(s->env, "impl.load", status, why);
    if (status == FSDP_OK) {
        s->torn = true;
        status = rest(s);
        if (status == FSDP_OK) {
            status = read_holding(
                s, c, checkpoint_is_local(c) ? &own->flat : &own->named, buffer,
                why);
        }
        status = checkpoint_agree(s->env, "impl.load", status, why);
        s->torn = status != FSDP_OK;
    }
    if (status == FSDP_OK) {
        take_state(s, c, &kept);
    }
    checkpoint_kept_release(&kept);
    free(buffer);
    return status;
}

int impl_restore(struct fsdp_sharded *s, const char *directory)
{
    struct checkpoint *c;
    int status;

    if (s->sequence || s->summoned ||
        (s->checkpoints && s->checkpoints->saving)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.load",
                         "only at rest, and not while a save is under way");
    }
    FSDP_TRY(impl_checkpoints(s));
    FSDP_TRY(checkpoint_load_open(s->env, directory,
                                  &s->checkpoints->named.table,
                                  &s->checkpoints->flat.table, &c));
    status = replace(s, c);
    checkpoint_close(c);
    return status;
}

int impl_loaded_extra(struct fsdp_sharded *s, const char *name,
                      const void **data, uint64_t *bytes)
{
    if (!s->checkpoints ||
        !checkpoint_kept_find(&s->checkpoints->kept, name, data, bytes)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.loaded_extra",
                         "nothing was loaded that has the name %.80s", name);
    }
    return FSDP_OK;
}
