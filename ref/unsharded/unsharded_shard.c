/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_shard.c - what the unsharded run has: everything in full. Values,
 * gradients and states lie in storage of [total] elements, each parameter in
 * one piece; where it would lie in the shards of its unit is known beside that,
 * for the order in which a ring adds up.
 */
#include "unsharded.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(const struct fsdp_sharded *s)
{
    return ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
}

/* The caller's flags say what is trained in the beginning. */
static int know_model(struct fsdp_sharded *s, const struct fsdp_model *model)
{
    const size_t bytes = model->n_parameters * sizeof(*s->flags);

    s->flags = malloc(bytes + 1);
    if (!s->flags) {
        (void)out_of_memory(s);
        return FSDP_ERR_NOMEM;
    }
    memcpy(s->flags, model->parameter_flags, bytes);
    ref_read(&s->known, sizeof(s->known), model, model->size);
    s->known.parameter_flags = s->flags;
    s->model = &s->known;
    return FSDP_OK;
}

static int make_arrays(struct fsdp_sharded *s)
{
    uint32_t n = s->model->n_parameters + 1u;

    s->start = calloc(n, sizeof(*s->start));
    s->offset = calloc(n, sizeof(*s->offset));
    s->block = calloc(n, sizeof(*s->block));
    s->chunk = calloc(s->units->n_units + 1u, sizeof(*s->chunk));
    s->dtype = calloc(s->units->n_units + 1u, sizeof(*s->dtype));
    s->divisors = calloc(s->units->n_units + 1u, sizeof(*s->divisors));
    s->factor = calloc(s->units->n_units + 1u, sizeof(*s->factor));
    s->touched = calloc(s->units->n_units + 1u, sizeof(*s->touched));
    s->asked = calloc(n, sizeof(*s->asked));
    s->numbers = calloc(n, sizeof(*s->numbers));
    s->in_backward = calloc(s->model->n_modules + 1u, sizeof(*s->in_backward));
    if (!s->start || !s->offset || !s->block || !s->chunk || !s->dtype ||
        !s->divisors || !s->factor || !s->touched || !s->asked || !s->numbers ||
        !s->in_backward || unsharded_make_gradients(s) != FSDP_OK) {
        return out_of_memory(s);
    }
    return FSDP_OK;
}

uint32_t unsharded_unit(const struct fsdp_sharded *s, uint32_t p)
{
    return fsdp_unit_of(s->model, s->units, p);
}

bool unsharded_is_of(const struct fsdp_sharded *s, uint32_t module, uint32_t u)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->model->parameter_module[p] == module &&
            unsharded_unit(s, p) == u) {
            return true;
        }
    }
    return s->units->unit_of_module[module] == u;
}

/* Storage of [total] elements for a value of `kind`. */
int unsharded_take(struct fsdp_sharded *s, uint32_t kind, float **out)
{
    const struct fsdp_device *d = s->env->device;
    void *p = NULL;

    if (d->alloc(d->self, s->total * sizeof(**out), &p) != FSDP_OK) {
        (void)out_of_memory(s);
        return FSDP_ERR_NOMEM;
    }
    d->live(d->self, NULL, kind, FSDP_NO_UNIT, p, s->total * sizeof(**out));
    *out = p;
    return FSDP_OK;
}

void unsharded_drop(struct fsdp_sharded *s, float **p)
{
    const struct fsdp_device *d = s->env->device;

    if (*p) {
        d->dead(d->self, NULL, *p);
        d->free(d->self, *p);
        *p = NULL;
    }
}

/* What a shard holds of parameter p, by rows of its first dimension: as many
 * as it takes for S shards to hold them all. */
static uint64_t block_of(const struct fsdp_sharded *s, uint32_t p)
{
    bool scalar = s->model->parameter_n_dims[p] == 0;
    uint64_t d0 = scalar ? 1 : s->model->parameter_shape[p][0];
    uint64_t n = (d0 + s->shards - 1) / s->shards;

    for (uint32_t d = 1; d < s->model->parameter_n_dims[p]; d++) {
        n *= s->model->parameter_shape[p][d];
    }
    return n;
}

bool unsharded_is_frozen(const struct fsdp_sharded *s, uint32_t p)
{
    return (s->model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Where gradients would be reduced: by rows, those of trainable parameters;
 * flat, with a place for what is frozen. */
void unsharded_lay_out(struct fsdp_sharded *s)
{
    bool by_rows = s->options.layout == FSDP_LAYOUT_PER_PARAMETER;

    s->total = 0;
    memset(s->chunk, 0, s->units->n_units * sizeof(*s->chunk));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint32_t u = unsharded_unit(s, p);
        s->start[p] = s->total;
        s->total += fsdp_numel(s->model, p);
        if (unsharded_is_ignored(s, p)) {
            continue;
        }
        s->offset[p] = s->chunk[u];
        s->block[p] = by_rows ? block_of(s, p) : 0;
        if (fsdp_original(s->model, p) == p &&
            (!by_rows || !unsharded_is_frozen(s, p))) {
            s->chunk[u] += by_rows ? s->block[p] : fsdp_numel(s->model, p);
        }
    }
    for (uint32_t u = 0; !by_rows && u < s->units->n_units; u++) {
        s->chunk[u] = (s->chunk[u] + s->shards - 1) / s->shards;
    }
}

static int fill(struct fsdp_sharded *s)
{
    uint64_t bytes;

    FSDP_TRY(unsharded_take(s, FSDP_PARAM_SHARD, &s->value));
    FSDP_TRY(unsharded_take(s, FSDP_GRAD_SHARD, &s->reduced));
    FSDP_TRY(unsharded_take(s, FSDP_GRAD_FULL, &s->fresh));
    bytes = s->total * sizeof(*s->value);
    memset(s->value, 0, bytes);
    for (uint32_t i = 0; i < ref_optimizer_states(s->options.optimizer); i++) {
        FSDP_TRY(unsharded_take(s, FSDP_OPTIM, &s->state[i]));
        memset(s->state[i], 0, bytes);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (fsdp_original(s->model, p) == p && !unsharded_is_ignored(s, p)) {
            FSDP_TRY(s->model->initial(s->model->context, p, 0,
                                       fsdp_numel(s->model, p),
                                       s->value + s->start[p]));
        }
    }
    return FSDP_OK;
}

int unsharded_shard(const struct fsdp_env *env, const struct fsdp_model *model,
                    const struct fsdp_units *units,
                    const struct fsdp_options *options,
                    struct fsdp_sharded **out)
{
    struct fsdp_options known_options;
    struct fsdp_units known_units;
    struct fsdp_sharded *s;

    *out = NULL;
    ref_read_options(&known_options, options);
    ref_read(&known_units, sizeof(known_units), units, units->size);
    FSDP_TRY(ref_check(env, model, &known_units, &known_options));
    s = calloc(1, sizeof(*s));
    if (!s) {
        return ref_fail(env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
    }
    *out = s;
    s->env = env;
    s->units = units;
    s->options = known_options;
    s->replicas = env->mesh->extent[FSDP_DIM_REPLICATE];
    s->shards = env->mesh->extent[FSDP_DIM_SHARD];
    s->ranks = s->replicas * s->shards;
    FSDP_TRY(know_model(s, model));
    FSDP_TRY(make_arrays(s));
    for (uint32_t u = 0; u < units->n_units; u++) {
        s->dtype[u] = ref_dtypes(&known_options, &known_units, u);
        s->divisors[u] =
            ref_divisors(&known_options, &known_units, u, s->ranks);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->numbers[p] = ref_numbers(&s->options, p);
    }
    unsharded_lay_out(s);
    FSDP_TRY(fill(s));
    return model->n_buffers ? unsharded_make_buffers(s, &known_units) : FSDP_OK;
}

void unsharded_destroy(struct fsdp_sharded *s)
{
    if (!s) {
        return;
    }
    unsharded_free_gradients(s);
    unsharded_give_up(s);
    unsharded_drop(s, &s->value);
    unsharded_drop(s, &s->reduced);
    unsharded_drop(s, &s->fresh);
    unsharded_drop(s, &s->lent);
    unsharded_drop(s, &s->state[0]);
    unsharded_drop(s, &s->state[1]);
    if (s->buffer_dtype) {
        unsharded_free_buffers(s);
    }
    free(s->start);
    free(s->offset);
    free(s->block);
    free(s->chunk);
    free(s->dtype);
    free(s->divisors);
    free(s->factor);
    free(s->touched);
    free(s->asked);
    free(s->numbers);
    free(s->in_backward);
    free(s->flags);
    free(s->early.numbers);
    free(s);
}
