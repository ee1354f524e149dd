/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_load.c - what this rank holds, read by name from a checkpoint that
 * any other world may have saved. Every file has been verified before the
 * first element changes; all of them change, or none (checkpoint_replace).
 */
#include "impl_checkpoint.h"

#include <stdlib.h>

/* The tensors that a load replaces, in either form. */
struct replaced {
    struct fsdp_sharded *s;
    const struct impl_holding *h;
};

static int read_held(void *context, uint32_t i, uint64_t at, uint64_t n,
                     float *to)
{
    const struct replaced *x = context;
    const struct fsdp_device *d = x->s->env->device;

    return d->copy(d->self, NULL, to, x->h->at[i] + at, n * sizeof(*to));
}

static int write_held(void *context, uint32_t i, uint64_t at, uint64_t n,
                      const float *from)
{
    const struct replaced *x = context;
    const struct fsdp_device *d = x->s->env->device;

    return d->copy(d->self, NULL, x->h->at[i] + at, from, n * sizeof(*from));
}

/* Untrained: zeros, padding and all, and initial values. */
static int remake(void *context)
{
    const struct replaced *x = context;
    const struct fsdp_sharded *s = x->s;

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *unit = &s->unit[u];
        const struct impl_value shard = {FSDP_PARAM_SHARD, u, FSDP_DTYPE_F32,
                                         unit->chunk, unit->shard_on_host};
        const struct impl_value state = {FSDP_OPTIM, u, FSDP_DTYPE_F32,
                                         unit->n_state, unit->step_on_host};

        FSDP_TRY(impl_fill_zero_at(s, NULL, &shard, unit->shard));
        for (uint32_t k = 0; k < s->n_states; k++) {
            FSDP_TRY(impl_fill_zero_at(s, NULL, &state, unit->state[k]));
        }
    }
    return impl_initialise(s);
}

/* Not all states of a parameter are there: it goes on with what it has. */
static bool lacks_states(const struct fsdp_sharded *s,
                         const struct checkpoint *c, uint32_t p)
{
    const struct checkpoint_table *names = &s->checkpoints->named.table;
    bool lacks = false;

    for (uint32_t k = 1; k <= s->n_states; k++) {
        const char *name = names->entry[p * (1 + s->n_states) + k].name;

        lacks = lacks || (name && !checkpoint_has(c, name));
    }
    return lacks && !checkpoint_is_local(c);
}

/* How many steps each parameter has made; NULL: no memory. */
static uint64_t *copy_steps(const struct fsdp_sharded *s)
{
    uint64_t *own = calloc(s->model->n_parameters + (size_t)1, sizeof(*own));

    for (uint32_t p = 0; own && p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];

        own[p] = s->unit[x->unit].steps - x->begun;
    }
    return own;
}

/* Sets the steps of all parameters, then those of parameters with a count of
 * their own. */
static int take_steps(struct fsdp_sharded *s, const struct checkpoint *c,
                      const uint64_t *own)
{
    const struct checkpoint_state state = checkpoint_state_of(c);

    impl_set_steps(s, state.step, state.power);
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint64_t steps;

        if (lacks_states(s, c, p)) { /* of more, or fewer: modulo 2^64 */
            s->parameter[p].begun = state.step - own[p];
        } else if (checkpoint_steps_of(c, s->model->parameter_name[p],
                                       &steps)) {
            s->parameter[p].begun = state.step - steps;
        }
    }
    return impl_find_spans(s);
}

static void take_values(struct fsdp_sharded *s, const struct checkpoint *c)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];

        if (x->n > 0 && (checkpoint_is_local(c) ||
                         checkpoint_has(c, s->model->parameter_name[p]))) {
            impl_has_values(s, x->unit, x->local, x->n);
        }
    }
}

static void take_state(struct fsdp_sharded *s, const struct checkpoint *c,
                       struct checkpoint_kept *kept)
{
    s->loaded = true;
    take_values(s, c);
    s->stepped = true; /* the next all-gather waits for what compute reads */
    checkpoint_kept_release(&s->checkpoints->kept);
    s->checkpoints->kept = *kept;
    *kept = (struct checkpoint_kept){0};
}

/* Nothing is in flight, and no stream uses what is about to change. */
static int rest(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_retire_all(s));
    return s->env->device->sync(s->env->device->self, NULL);
}

/* Reads buffers into host memory, in the form in which they will rest. There
 * they wait until all else has been loaded. */
static int fetch_buffers(struct fsdp_sharded *s, struct checkpoint *c,
                         void **stored, char *why)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        if (!impl_persists(s, b) ||
            !checkpoint_has(c, s->model->buffer_name[b])) {
            continue;
        }
        stored[b] = impl_stored_buffer(s, b);
        if (!stored[b]) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        }
        FSDP_TRY(checkpoint_read(c, s->model->buffer_name[b], 0,
                                 s->model->buffer_numel[b], stored[b], why));
        stored[b] = impl_rest_buffer(s, b, stored[b]);
        if (!stored[b]) {
            return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
        }
    }
    return FSDP_OK;
}

static int take_buffers(struct fsdp_sharded *s, void **stored)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        if (stored[b]) {
            FSDP_TRY(impl_write_buffer(s, b, stored[b]));
        }
    }
    return FSDP_OK;
}

static int replace(struct fsdp_sharded *s, struct checkpoint *c, void **stored,
                   const uint64_t *own)
{
    const struct impl_checkpoints *forms = s->checkpoints;
    char why[CHECKPOINT_WHY_BYTES] = "the device does not come to rest";
    struct replaced x = {s,
                         checkpoint_is_local(c) ? &forms->flat : &forms->named};
    const struct checkpoint_target target = {
        &x.h->table,
        {.slice = x.h->slice, .n = x.h->n, .read = read_held, .context = &x},
        write_held,
        s->steps == 0 && !s->loaded && s->model->initial ? remake : NULL};
    struct checkpoint_kept kept = {0};
    int status = rest(s);

    if (status == FSDP_OK) {
        status = fetch_buffers(s, c, stored, why);
    }
    if (status == FSDP_OK) {
        status = checkpoint_keep(c, s->env->rank, s->env->world, &kept, why);
    }
    status = checkpoint_agree(s->env, "impl.load", status, why);
    if (status == FSDP_OK) {
        status = checkpoint_replace(s->env, c, &target, &s->torn);
    }
    if (status == FSDP_OK) {
        status = take_buffers(s, stored);
    }
    if (status == FSDP_OK) {
        take_state(s, c, &kept);
        status = take_steps(s, c, own);
        status = status == FSDP_OK ? impl_reshard_kept(s) : status;
        status = status == FSDP_OK ? impl_drop_gradients(s) : status;
    }
    checkpoint_kept_release(&kept);
    return status;
}

int impl_load(struct fsdp_sharded *s, const char *directory)
{
    const struct fsdp_load how = {.size = sizeof(how), .directory = directory};

    return impl_load_from(s, &how);
}

int impl_load_from(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    struct checkpoint *c = NULL;
    void **stored;
    uint64_t *own;
    int status;

    if (s->sequence || s->all_unsharded ||
        (s->checkpoints && s->checkpoints->saving)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.load",
                         "only at rest, and not while a save is under way");
    }
    stored = calloc(s->model->n_buffers + (size_t)1, sizeof(*stored));
    own = copy_steps(s);
    status = stored && own ? impl_checkpoints(s) : FSDP_ERR_NOMEM;
    /* Either all ranks load, or none. */
    status = checkpoint_agree(s->env, "impl.load", status, "out of memory");
    if (status == FSDP_OK && stored && s->checkpoints) {
        status = checkpoint_load_open(
            s->env, how->directory, &s->checkpoints->named.table,
            &s->checkpoints->flat.table, how->lenient != 0, &c);
        if (status == FSDP_OK) {
            status = replace(s, c, stored, own);
        }
    }
    for (uint32_t b = 0; stored && b < s->model->n_buffers; b++) {
        free(stored[b]);
    }
    free(stored);
    free(own);
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
