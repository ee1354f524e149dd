/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - 7. Load: this rank's parts by name, whoever saved them. All that
 * can be wrong is looked for before anything changes.
 */
#include "checkpoints.h"

#include <stdlib.h>

static int write_slice(void *context, uint32_t i, uint64_t at, uint64_t n,
                       const float *from)
{
    struct fsdp_sharded *s = context;
    const struct fsdp_device *d = s->env->device;

    return d->copy(d->self, NULL, s->checkpoints->at[i] + at, from,
                   n * sizeof(*from));
}

static int write_local(void *context, uint32_t i, uint64_t at, uint64_t n,
                       const float *from)
{
    struct fsdp_sharded *s = context;
    const struct fsdp_device *d = s->env->device;

    return d->copy(d->self, NULL, s->checkpoints->local_at[i] + at, from,
                   n * sizeof(*from));
}

static int remake(void *context)
{
    return ref_fill_initial(context);
}

/* Those of what has a count of its own, too. */
static void take_steps(struct fsdp_sharded *s, const struct checkpoint *c)
{
    const struct checkpoint_state state = checkpoint_state_of(c);

    ref_set_steps(s, state.step, state.power);
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint64_t steps;

        if (checkpoint_steps_of(c, s->model->parameter_name[p], &steps)) {
            ref_set_own_steps(s, p, steps);
        }
    }
}

/* What the checkpoint has of each buffer, in host memory; of what is not
 * persisted nothing. */
static int read_buffers(struct fsdp_sharded *s, struct checkpoint *c,
                        void **value, char *why)
{
    const struct fsdp_model *model = s->model;

    for (uint32_t b = 0; b < model->n_buffers; b++) {
        uint64_t n = model->buffer_numel[b];
        if (model->buffer_flags[b] & FSDP_NOT_PERSISTED) {
            continue;
        }
        value[b] = malloc(n * fsdp_dtype_bytes(model->buffer_dtype[b]) + 1);
        if (!value[b]) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        }
        FSDP_TRY(
            checkpoint_read(c, model->buffer_name[b], 0, n, value[b], why));
    }
    return FSDP_OK;
}

static int take_buffers(struct fsdp_sharded *s, void *const *value)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        if (value[b]) {
            FSDP_TRY(ref_write_buffer(s, b, value[b]));
        }
    }
    return FSDP_OK;
}

/* All ranks have found all files whole: what fails now is the system. */
static int replace(struct fsdp_sharded *s, struct checkpoint *c, void **value)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    bool local = checkpoint_is_local(c);
    const struct checkpoint_target target = {
        local ? &s->checkpoints->local : &s->checkpoints->table,
        ref_checkpoint_source(s, local), local ? write_local : write_slice,
        s->steps == 0 && !s->loaded && s->model->initial ? remake : NULL};
    struct checkpoint_kept kept = {0};
    int status = read_buffers(s, c, value, why);

    if (status == FSDP_OK) {
        status = checkpoint_keep(c, s->env->rank, s->env->world, &kept, why);
    }
    status = checkpoint_agree(s->env, "ref.load", status, why);
    if (status == FSDP_OK) {
        status = checkpoint_replace(s->env, c, &target, &s->torn);
    }
    if (status == FSDP_OK) {
        status = take_buffers(s, value);
    }
    if (status == FSDP_OK) {
        take_steps(s, c);
        s->loaded = true;
        for (uint32_t u = 0; u < s->units->n_units; u++) {
            ref_has_values(s, u, 0, s->unit[u].chunk);
        }
        ref_reshard_each(s);
        ref_drop_gradients(s);
        checkpoint_kept_release(&s->checkpoints->kept);
        s->checkpoints->kept = kept;
        kept = (struct checkpoint_kept){0};
    }
    checkpoint_kept_release(&kept);
    return status;
}

int ref_load(struct fsdp_sharded *s, const char *directory)
{
    struct checkpoint *c;
    void **value = NULL;
    int status;

    if (s->sequence || s->all_unsharded ||
        (s->checkpoints && s->checkpoints->saving)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.load",
                        "only at rest, and not while a save is under way");
    }
    FSDP_TRY(ref_checkpoints(s));
    FSDP_TRY(checkpoint_load_open(s->env, directory, &s->checkpoints->table,
                                  &s->checkpoints->local, &c));
    /* Work may still read or write what is replaced. */
    status = s->env->device->sync(s->env->device->self, NULL);
    if (status == FSDP_OK) {
        value = calloc(s->model->n_buffers + (size_t)1, sizeof(*value));
        status = value ? replace(s, c, value)
                       : ref_fail(s->env, FSDP_ERR_NOMEM, "ref.load",
                                  "out of memory");
    }
    for (uint32_t b = 0; value && b < s->model->n_buffers; b++) {
        free(value[b]);
    }
    free(value);
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
