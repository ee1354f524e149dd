/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - 7. Load: each rank reads its parts by name, whichever ranks saved
 * them. Everything that can be wrong is checked before anything changes.
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

/* Whether the checkpoint lacks a state of parameter p, which then keeps the
 * states and the count of steps that it has. */
static bool keeps_states(const struct fsdp_sharded *s,
                         const struct checkpoint *c, uint32_t p)
{
    const struct checkpoint_entry *e =
        s->checkpoints->table.entry + (size_t)p * (1 + s->n_states);

    for (uint32_t k = 1; !checkpoint_is_local(c) && k <= s->n_states; k++) {
        if (e[k].name && !checkpoint_has(c, e[k].name)) {
            return true;
        }
    }
    return false;
}

/* How many steps each parameter has made; NULL: no memory. */
static uint64_t *copy_steps(const struct fsdp_sharded *s)
{
    uint64_t *own = calloc(s->model->n_parameters + (size_t)1, sizeof(*own));

    for (uint32_t p = 0; own && p < s->model->n_parameters; p++) {
        own[p] = s->parameter[p].steps;
    }
    return own;
}

/* Sets the counts of steps, those of single parameters, too. */
static void take_steps(struct fsdp_sharded *s, const struct checkpoint *c,
                       const uint64_t *own)
{
    const struct checkpoint_state state = checkpoint_state_of(c);

    ref_set_steps(s, state.step, state.power);
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint64_t steps;

        if (keeps_states(s, c, p)) {
            ref_set_own_steps(s, p, own[p]);
        } else if (checkpoint_steps_of(c, s->model->parameter_name[p],
                                       &steps)) {
            ref_set_own_steps(s, p, steps);
        }
    }
}

/* Notes which elements have values now: those that the checkpoint holds. */
static void note_values(struct fsdp_sharded *s, const struct checkpoint *c)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];

        if (checkpoint_is_local(c) ||
            checkpoint_has(c, s->model->parameter_name[part->parameter])) {
            ref_has_values(s, s->parameter[part->parameter].unit, part->local,
                           part->n);
        }
    }
}

/* Reads each persisted buffer that the checkpoint has into host memory, in the
 * dtype in which it will rest. */
static int read_buffers(struct fsdp_sharded *s, struct checkpoint *c,
                        void **value, char *why)
{
    const struct fsdp_model *model = s->model;

    for (uint32_t b = 0; b < model->n_buffers; b++) {
        uint64_t n = model->buffer_numel[b];
        if ((model->buffer_flags[b] & FSDP_NOT_PERSISTED) ||
            !checkpoint_has(c, model->buffer_name[b])) {
            continue;
        }
        value[b] = malloc(n * fsdp_dtype_bytes(model->buffer_dtype[b]) + 1);
        if (!value[b]) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        }
        FSDP_TRY(
            checkpoint_read(c, model->buffer_name[b], 0, n, value[b], why));
        value[b] = ref_rest_buffer(s, b, value[b]);
        if (!value[b]) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        }
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
static int replace(struct fsdp_sharded *s, struct checkpoint *c, void **value,
                   const uint64_t *own)
{
    char why[CHECKPOINT_WHY_BYTES] = "the device does not come to rest";
    bool local = checkpoint_is_local(c);
    const struct checkpoint_target target = {
        local ? &s->checkpoints->local : &s->checkpoints->table,
        ref_checkpoint_source(s, local), local ? write_local : write_slice,
        s->steps == 0 && !s->loaded && s->model->initial ? remake : NULL};
    struct checkpoint_kept kept = {0};
    /* Work in flight may still read or write the values that are replaced. */
    int status = s->env->device->sync(s->env->device->self, NULL);

    if (status == FSDP_OK) {
        status = read_buffers(s, c, value, why);
    }
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
        take_steps(s, c, own);
        s->loaded = true;
        note_values(s, c);
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
    return ref_load_from(s,
                         &(struct fsdp_load){.size = sizeof(struct fsdp_load),
                                             .directory = directory});
}

int ref_load_from(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    struct checkpoint *c = NULL;
    void **value;
    uint64_t *own;
    int status;

    if (s->sequence || s->all_unsharded ||
        (s->checkpoints && s->checkpoints->saving)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.load",
                        "only at rest, and not while a save is under way");
    }
    value = calloc(s->model->n_buffers + (size_t)1, sizeof(*value));
    own = copy_steps(s);
    status = value && own ? ref_checkpoints(s) : FSDP_ERR_NOMEM;
    /* If one rank has no memory for the load, no rank begins it. */
    status = checkpoint_agree(s->env, "ref.load", status, "out of memory");
    if (status == FSDP_OK && value && s->checkpoints) {
        status =
            checkpoint_load_open(s->env, how->directory, &s->checkpoints->table,
                                 &s->checkpoints->local, how->lenient != 0, &c);
        if (status == FSDP_OK) {
            status = replace(s, c, value, own);
        }
    }
    for (uint32_t b = 0; value && b < s->model->n_buffers; b++) {
        free(value[b]);
    }
    free(value);
    free(own);
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
