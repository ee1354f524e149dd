/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_agree.c - all ranks shard the same model in the same way: between ranks
 * that disagree collectives of equal size would mix up parameters silently, and
 * ranks with different schedules would wait for each other forever.
 */
#include "impl_calls.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(uint64_t h, const void *bytes, uint64_t n)
{
    const unsigned char *b = bytes;

    for (uint64_t i = 0; b && i < n; i++) {
        /* Every array that is hashed is filled. */
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        h = (h ^ b[i]) * 0x100000001b3u; /* FNV-1a */
    }
    return h;
}

static uint64_t hash_groups(uint64_t h, const struct fsdp_options *o)
{
    const float *const of_group[] = {o->beta1_of_group, o->beta2_of_group,
                                     o->eps_of_group, o->momentum_of_group};

    for (size_t i = 0; i < sizeof(of_group) / sizeof(of_group[0]); i++) {
        uint32_t is_there = of_group[i] != NULL;

        h = hash(h, &is_there, sizeof(is_there));
        h = hash(h, of_group[i], o->n_groups * sizeof(*of_group[i]));
    }
    return h;
}

/* Field by field, since the bytes between fields are undefined. */
static uint64_t hash_options(uint64_t h, const struct fsdp_options *o)
{
    const uint32_t numbers[] = {
        o->layout,
        o->fold,
        o->reshard_after_forward,
        o->keep_root,
        o->optimizer,
        o->n_groups,
        o->output_dtype,
        o->buffer_dtype,
        o->offload,
        o->prefetch_forward,
        o->prefetch_backward,
        o->reduces_in_flight,
    };
    const float values[] = {o->momentum, o->beta1, o->beta2, o->eps,
                            o->divide_factor};

    h = hash(h, numbers, sizeof(numbers));
    h = hash(h, values, sizeof(values));
    return hash_groups(h, o);
}

static uint64_t hash_parameters(uint64_t h, const struct fsdp_sharded *s)
{
    const struct fsdp_model *model = s->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];
        uint64_t facts[] = {x->unit,
                            x->numbers.group,
                            x->offset,
                            x->numel,
                            x->original,
                            model->parameter_module[p],
                            model->parameter_flags[p]};
        h = hash(h, model->parameter_name[p], strlen(model->parameter_name[p]));
        h = hash(h, facts, sizeof(facts));
        h = hash(h, x->tensor.shape, sizeof(x->tensor.shape));
    }
    return h;
}

static uint64_t hash_units(uint64_t h, const struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        uint64_t facts[] = {u, s->unit[u].chunk, s->extent[u].kept,
                            s->unit[u].shard_on_host, s->unit[u].step_on_host};
        h = hash(h, facts, sizeof(facts));
        h = hash(h, &s->unit[u].prescale, sizeof(s->unit[u].prescale));
        h = hash(h, &s->unit[u].scale, sizeof(s->unit[u].scale));
        h = hash(h, &s->unit[u].dtype, sizeof(s->unit[u].dtype));
    }
    return hash(h, s->units.unit_of_module,
                s->model->n_modules * sizeof(*s->units.unit_of_module));
}

static uint64_t hash_buffers(uint64_t h, const struct fsdp_sharded *s)
{
    const struct fsdp_model *const model = s->model;

    for (uint32_t b = 0; b < model->n_buffers; b++) {
        uint64_t facts[] = {model->buffer_module[b], model->buffer_dtype[b],
                            model->buffer_flags[b], model->buffer_numel[b],
                            impl_buffer_dtype(s, b)};
        h = hash(h, model->buffer_name[b], strlen(model->buffer_name[b]));
        h = hash(h, facts, sizeof(facts));
    }
    return h;
}

static uint64_t hash_sequences(uint64_t h, const struct fsdp_model *model)
{
    for (uint32_t i = 0; i < model->n_sequences; i++) {
        const struct fsdp_sequence *q = model->sequence[i];
        h = hash(h, &q->n, sizeof(q->n));
        h = hash(h, q->point, q->n * sizeof(*q->point));
        h = hash(h, q->module, q->n * sizeof(*q->module));
    }
    return h;
}

/* What each rank tells all others. */
struct told {
    uint64_t hash;
    uint64_t has_values; /* `initial` is not NULL */
};

static int agree_on_values(struct fsdp_sharded *s, const struct told *all)
{
    uint32_t same = 1; /* ranks from 1 on that are as rank 1 is */

    while (same < s->env->world && all[same].has_values == all[1].has_values) {
        same++;
    }
    if (same < s->env->world) {
        return impl_fail(s->env, FSDP_ERR_MISMATCH, "impl.shard",
                         "initial is there on one of ranks 1 and %u alone",
                         same);
    }
    if (s->env->world == 1 || all[0].has_values == all[1].has_values) {
        return FSDP_OK;
    }
    s->rank0 = all[0].has_values;
    return s->rank0
               ? FSDP_OK
               : impl_fail(s->env, FSDP_ERR_MISMATCH, "impl.shard",
                           "initial is there on rank 1, and not on rank 0");
}

int impl_agree(struct fsdp_sharded *s)
{
    const struct fsdp_env *env = s->env;
    struct told *all = calloc(env->world, sizeof(*all));
    struct told told = {.has_values = s->model->initial != NULL};
    uint64_t mine;
    int status;

    mine = hash_options(0xcbf29ce484222325u, &s->options);
    mine = hash(mine, env->mesh->extent, 2 * sizeof(*env->mesh->extent));
    mine = hash_parameters(mine, s);
    mine = hash_units(mine, s);
    mine = hash_buffers(mine, s);
    mine = hash_sequences(mine, s->model);
    if (!all) {
        return impl_out_of_memory(env);
    }
    told.hash = mine;
    status = env->exchange(env->exchange_self, &told, sizeof(told), all);
    for (uint32_t r = 0; r < env->world && status == FSDP_OK; r++) {
        if (all[r].hash != all[0].hash) {
            status = impl_fail(env, FSDP_ERR_MISMATCH, "impl.shard",
                               "rank %u shards another model, or with other "
                               "options or units, than rank 0",
                               r);
        }
    }
    if (status == FSDP_OK) {
        status = agree_on_values(s, all);
    }
    free(all);
    return status;
}
