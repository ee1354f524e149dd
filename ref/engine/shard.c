/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.c - makes and unmakes a sharded model: checks, arrays, layout, the
 * agreement of all ranks, initial values.
 */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(uint64_t h, const void *bytes, uint64_t n)
{
    const unsigned char *b = bytes;

    for (uint64_t i = 0; i < n; i++) {
        h = (h ^ b[i]) * 0x100000001b3u; /* FNV-1a */
    }
    return h;
}

/* What a rank tells the others when it shards. */
struct told {
    uint64_t hash; /* of everything that ranks must agree on */
    uint64_t has_values;
};

/* Initial values are on all ranks, on none, or on rank 0 alone. */
static int find_values(struct fsdp_sharded *s, const struct told *all)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < s->env->world; r++) {
        n += all[r].has_values != 0;
    }
    s->rank0 = n == 1 && all[0].has_values != 0 && s->env->world > 1;
    for (uint32_t r = 1; !s->rank0 && r < s->env->world; r++) {
        if (all[r].has_values != all[0].has_values) {
            return ref_fail(s->env, FSDP_ERR_MISMATCH, "ref.shard",
                            "initial: rank %u has %s, and rank 0 has %s; all "
                            "ranks have values, or none, or rank 0 alone",
                            r, all[r].has_values ? "values" : "none",
                            all[0].has_values ? "some" : "none");
        }
    }
    return FSDP_OK;
}

/* All ranks must shard the same model in the same way: collectives of equal
 * size between ranks that disagree would mix parameters silently. */
static int check_agreement(struct fsdp_sharded *s)
{
    const struct fsdp_env *env = s->env;
    const struct fsdp_model *model = s->model;
    struct told all[REF_MAX_RANKS];
    struct told told = {.has_values = model->initial != NULL};
    uint64_t mine = 0xcbf29ce484222325u;

    mine = hash(mine, &s->options, sizeof(s->options));
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        mine = hash(mine, &s->unit[u].dtype, sizeof(s->unit[u].dtype));
        mine = hash(mine, &s->unit[u].next_knob.divisors,
                    sizeof(s->unit[u].next_knob.divisors));
        mine = hash(mine, &s->unit[u].shard_at, sizeof(uint32_t));
        mine = hash(mine, &s->unit[u].step_at, sizeof(uint32_t));
        mine = hash(mine, &s->unit[u].next_knob.reshard_forward, sizeof(bool));
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        mine = hash(mine, model->parameter_name[p],
                    strlen(model->parameter_name[p]));
        mine = hash(mine, &s->parameter[p].numel, sizeof(uint64_t));
        mine = hash(mine, &s->parameter[p].original, sizeof(uint32_t));
        mine = hash(mine, &s->parameter[p].unit, sizeof(uint32_t));
        mine = hash(mine, &s->parameter[p].frozen, sizeof(bool));
        mine = hash(mine, &s->parameter[p].numbers, sizeof(struct ref_numbers));
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        const uint32_t lent = ref_buffer_dtype(&s->options, s->units, model, b);

        mine = hash(mine, &lent, sizeof(lent));
        mine = hash(mine, model->buffer_name[b], strlen(model->buffer_name[b]));
        mine = hash(mine, &model->buffer_numel[b], sizeof(uint64_t));
        mine = hash(mine, &model->buffer_dtype[b], sizeof(uint32_t));
        mine = hash(mine, &model->buffer_flags[b], sizeof(uint32_t));
    }
    told.hash = mine;
    FSDP_TRY(env->exchange(env->exchange_self, &told, sizeof(told), all));
    for (uint32_t r = 0; r < env->world; r++) {
        if (all[r].hash != all[0].hash) {
            return ref_fail(env, FSDP_ERR_MISMATCH, "ref.shard",
                            "rank %u shards another model, or with other "
                            "options or units, than rank 0",
                            r);
        }
    }
    return find_values(s, all);
}

/* The caller's flags say which parameters are trained in the beginning. */
static int know_model(struct fsdp_sharded *s, const struct fsdp_model *model)
{
    const size_t bytes = model->n_parameters * sizeof(*s->flags);

    ref_read(&s->known, sizeof(s->known), model, model->size);
    s->model = &s->known;
    s->flags = malloc(bytes + 1);
    if (!s->flags) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.shard", "out of memory");
    }
    memcpy(s->flags, model->parameter_flags, bytes);
    s->known.parameter_flags = s->flags;
    return FSDP_OK;
}

static int make_arrays(struct fsdp_sharded *s)
{
    const struct fsdp_model *model = s->model;
    uint32_t n_p = model->n_parameters;

    s->unit = calloc(s->units->n_units + 1u, sizeof(*s->unit));
    s->parameter = calloc(n_p + 1u, sizeof(*s->parameter));
    s->part = calloc(n_p + 1u, sizeof(*s->part));
    s->action = calloc(model->n_sequences + 1u, sizeof(*s->action));
    s->uses = calloc((size_t)model->n_modules * s->units->n_units + 1u,
                     sizeof(*s->uses));
    s->in_backward = calloc(model->n_modules + 1u, sizeof(*s->in_backward));
    if (!s->unit || !s->parameter || !s->part || !s->action || !s->uses ||
        !s->in_backward) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.shard", "out of memory");
    }
    ref_find_uses(model, s->units, s->uses);
    for (uint32_t q = 0; q < model->n_sequences; q++) {
        s->action[q] =
            malloc((size_t)model->sequence[q]->n * s->units->n_units + 1u);
        if (!s->action[q]) {
            return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.shard",
                            "out of memory");
        }
        ref_plan(s, model->sequence[q], s->action[q]);
    }
    return FSDP_OK;
}

/* Reads the values that units and parameters have of their own, since the
 * caller's arrays may be gone later. */
static void read_own(struct fsdp_sharded *s, const struct fsdp_units *units)
{
    struct fsdp_options *o = &s->options;

    for (uint32_t u = 0; u < units->n_units; u++) {
        const uint32_t offload = ref_offload(o, units, u);
        s->unit[u].dtype = ref_dtypes(o, units, u);
        s->unit[u].shard_at =
            offload & FSDP_OFFLOAD_PARAMS ? REF_HOST : REF_DEVICE;
        s->unit[u].step_at =
            offload & FSDP_OFFLOAD_OPTIMIZER ? REF_HOST : REF_DEVICE;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->parameter[p].numbers = ref_numbers(o, p);
    }
    o->group_of_parameter = NULL;
    o->beta1_of_group = o->beta2_of_group = NULL;
    o->eps_of_group = o->momentum_of_group = NULL;
}

int ref_shard(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units,
              const struct fsdp_options *options, struct fsdp_sharded **out)
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
        return ref_fail(env, FSDP_ERR_NOMEM, "ref.shard", "out of memory");
    }
    *out = s; /* the caller destroys it, even if a later call fails */
    s->env = env;
    s->units = units;
    s->options = known_options;
    s->replicas = env->mesh->extent[FSDP_DIM_REPLICATE];
    s->host = fsdp_host_of(env);
    s->shards = env->mesh->extent[FSDP_DIM_SHARD];
    s->coordinate = env->rank % s->shards;
    s->n_states = ref_optimizer_states(options->optimizer);
    FSDP_TRY(know_model(s, model));
    FSDP_TRY(make_arrays(s));
    ref_set_knobs(s, &known_units);
    read_own(s, &known_units);
    ref_set_steps(s, 0, (const float[2]){1.0f, 1.0f});
    ref_layout(s);
    FSDP_TRY(check_agreement(s));
    if (!s->model->initial && !s->rank0) {
        FSDP_TRY(ref_defer(s));
    }
    FSDP_TRY(ref_initialise(s));
    return model->n_buffers ? ref_make_buffers(s, &known_units) : FSDP_OK;
}

void ref_destroy(struct fsdp_sharded *s)
{
    if (!s) {
        return;
    }
    if (s->checkpoints) {
        ref_checkpoints_release(s);
    }
    if (s->unit && s->parameter) {
        ref_drop_gradients(s);
    }
    for (uint32_t u = 0; s->unit && u < s->units->n_units; u++) {
        ref_drop(s, REF_DEVICE, &s->unit[u].full);
        ref_drop(s, REF_DEVICE, &s->unit[u].wire);
        ref_drop(s, REF_DEVICE, &s->unit[u].reduced);
        ref_drop(s, REF_HOST, &s->unit[u].landed);
        ref_drop(s, !s->unit[u].shard_at, &s->unit[u].brought);
        ref_drop(s, s->unit[u].shard_at, &s->unit[u].shard);
        ref_drop(s, s->unit[u].step_at, &s->unit[u].state[0]);
        ref_drop(s, s->unit[u].step_at, &s->unit[u].state[1]);
    }
    for (uint32_t u = 0; s->unit && u < s->units->n_units; u++) {
        free(s->unit[u].lacks);
    }
    if (s->buffer) {
        ref_drop_buffers(s);
    }
    for (uint32_t q = 0; s->action && q < s->model->n_sequences; q++) {
        free(s->action[q]);
    }
    free(s->unit);
    free(s->parameter);
    free(s->part);
    free(s->action);
    free(s->uses);
    free(s->in_backward);
    free(s->flags);
    free(s->early.numbers);
    free(s);
}
