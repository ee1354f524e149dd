/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_shard.c - makes and unmakes a sharded model: checks, tables, plans,
 * the agreement of all ranks, streams, initial values.
 */
#include "impl_calls.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 16384
}; /* elements of initial values at a time: each is a wait for the device */

void impl_release_plans(const struct fsdp_sharded *s, struct impl_plan *plan)
{
    for (uint32_t i = 0; plan && i < s->model->n_sequences; i++) {
        impl_plan_release(&plan[i]);
    }
    free(plan);
}

static int make_plans(struct fsdp_sharded *s, struct impl_plan *plan)
{
    const struct impl_schedule x = {.model = s->model,
                                    .units = &s->units,
                                    .options = &s->options,
                                    .extent = s->extent,
                                    .gathers = s->shards > 1,
                                    .packs = s->packs};

    for (uint32_t i = 0; i < s->model->n_sequences; i++) {
        const char *what = "";
        int status = impl_plan_make(&x, s->model->sequence[i], &plan[i], &what);

        if (status == FSDP_ERR_NOMEM) {
            return impl_out_of_memory(s->env);
        }
        if (status != FSDP_OK) {
            return impl_fail(s->env, status, "impl.shard", "sequence %u: %s", i,
                             what);
        }
    }
    return FSDP_OK;
}

int impl_make_plans(struct fsdp_sharded *s, struct impl_plan **out)
{
    struct impl_plan *plan =
        calloc(s->model->n_sequences + (size_t)1, sizeof(*plan));
    int status = plan ? make_plans(s, plan) : impl_out_of_memory(s->env);

    *out = NULL;
    if (status == FSDP_OK) {
        status = impl_place_plans(s, plan);
    }
    if (status != FSDP_OK) {
        impl_release_plans(s, plan);
        return status;
    }
    *out = plan;
    return FSDP_OK;
}

void impl_take_plans(struct fsdp_sharded *s, struct impl_plan *plan)
{
    impl_release_plans(s, s->plan);
    s->plan = plan;
    s->planned = true;
    s->stages = 0; /* of the plans before */
}

static int open_stream(const struct fsdp_sharded *s, const char *name,
                       struct fsdp_stream **out)
{
    const struct fsdp_device *d = s->env->device;
    const int status = d->stream_open(d->self, name, out);

    return status == FSDP_OK ? FSDP_OK
                             : impl_fail(s->env, status, "impl.shard",
                                         "the device has no stream %s", name);
}

/* On a device without streams every call has finished on return, in order. */
static int open_streams(struct fsdp_sharded *s)
{
    if (!s->env->compute) {
        return FSDP_OK;
    }
    if (s->shards > 1) {
        FSDP_TRY(open_stream(s, "all-gather", &s->gathering));
    }
    if (s->replicas > 1) {
        FSDP_TRY(open_stream(s, "all-reduce", &s->replicating));
    }
    s->last = s->replicating;
    s->reducing = s->replicating;
    if (s->shards > 1) {
        FSDP_TRY(open_stream(s, "reduce-scatter", &s->reducing));
    }
    if (!s->reducing) { /* alone: another stream would only cost waits */
        s->reducing = s->env->compute;
    }
    if (!s->last) {
        s->last = s->reducing;
    }
    if (s->brings || s->lands) {
        FSDP_TRY(open_stream(s, "host->device", &s->bringing));
        FSDP_TRY(open_stream(s, "device->host", &s->landing));
    }
    return FSDP_OK;
}

static void close_streams(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    if (s->reducing != s->replicating && s->reducing != s->env->compute) {
        d->stream_close(d->self, s->reducing);
    }
    d->stream_close(d->self, s->replicating);
    d->stream_close(d->self, s->gathering);
    d->stream_close(d->self, s->bringing);
    d->stream_close(d->self, s->landing);
}

/* Slice by slice: no rank ever holds a whole model. */
int impl_read_initial(const struct fsdp_sharded *s, uint32_t p, uint64_t first,
                      uint64_t n, float *to)
{
    const struct fsdp_device *d = s->env->device;
    float slice[SLICE];

    for (uint64_t done = 0; done < n; done += SLICE) {
        const uint64_t some = n - done < SLICE ? n - done : SLICE;

        FSDP_TRY(
            s->model->initial(s->model->context, p, first + done, some, slice));
        FSDP_TRY(
            d->copy(d->self, NULL, to + done, slice, some * sizeof(*slice)));
    }
    return FSDP_OK;
}

int impl_initialise(const struct fsdp_sharded *s)
{
    for (uint32_t p = 0; s->model->initial && p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];

        if (x->n > 0) {
            FSDP_TRY(impl_read_initial(s, p, x->first, x->n,
                                       s->unit[x->unit].shard + x->local));
        }
    }
    return FSDP_OK;
}

/* Copies the fields that the writer's version of a struct has; the others are
 * 0, which means the default. */
static void read_known(void *to, uint32_t size, const void *from,
                       uint32_t from_size)
{
    memset(to, 0, size);
    memcpy(to, from, from_size < size ? from_size : size);
}

/* The caller's flags say what is trained in the beginning. */
static int know_model(struct fsdp_sharded *s, const struct fsdp_model *model)
{
    const size_t bytes = model->n_parameters * sizeof(*s->flags);

    read_known(&s->known, sizeof(s->known), model, model->size);
    s->model = &s->known;
    s->flags = malloc(bytes + 1);
    if (!s->flags) {
        return impl_out_of_memory(s->env);
    }
    memcpy(s->flags, model->parameter_flags, bytes);
    s->known.parameter_flags = s->flags;
    return FSDP_OK;
}

static int make(struct fsdp_sharded *s)
{
    struct impl_plan *plan;

    s->replicas = s->env->mesh->extent[FSDP_DIM_REPLICATE];
    s->shards = s->env->mesh->extent[FSDP_DIM_SHARD];
    s->coordinate = s->env->rank % s->shards;
    s->n_states = impl_n_states(s->options.optimizer);
    s->arena.env = s->env;
    s->strict = s->options.prefetch_forward == 0 &&
                s->options.prefetch_backward == 0 &&
                s->options.reduces_in_flight == 0;
    FSDP_TRY(impl_lay_out(s));
    impl_set_knobs(s);
    impl_set_steps(s, 0, (const float[2]){1.0f, 1.0f});
    s->in_backward =
        calloc(s->model->n_modules + (size_t)1, sizeof(*s->in_backward));
    if (!s->in_backward) {
        return impl_out_of_memory(s->env);
    }
    FSDP_TRY(impl_make_plans(s, &plan));
    impl_take_plans(s, plan);
    FSDP_TRY(impl_agree(s));
    FSDP_TRY(impl_defer(s));
    FSDP_TRY(open_streams(s));
    FSDP_TRY(impl_slots_make(s));
    FSDP_TRY(s->rank0 ? impl_send_initial(s) : impl_initialise(s));
    return impl_make_buffers(s);
}

int impl_shard(const struct fsdp_env *env, const struct fsdp_model *model,
               const struct fsdp_units *units,
               const struct fsdp_options *options, struct fsdp_sharded **out)
{
    struct fsdp_options o;
    struct fsdp_units known;
    struct fsdp_sharded *s;

    *out = NULL;
    read_known(&o, sizeof(o), options, options->size);
    if (options->size <= offsetof(struct fsdp_options, accumulate_dtype)) {
        o.grad_dtype = FSDP_DTYPE_NONE; /* padding of an earlier struct */
    }
    read_known(&known, sizeof(known), units, units->size);
    FSDP_TRY(impl_check(env, model, &known, &o));
    s = *out = calloc(1, sizeof(*s)); /* the caller destroys it in any case */
    if (!s) {
        return impl_out_of_memory(env);
    }
    s->env = env;
    s->units = known;
    s->options = o;
    FSDP_TRY(know_model(s, model));
    return make(s);
}

/* All that is live dies before its storage goes, whatever state this is. */
static void bury(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; s->unit && u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        impl_over_at(s, x->shard_on_host, NULL, x->shard, x->chunk);
        impl_over_at(s, x->step_on_host, NULL, x->state[0], x->n_state);
        impl_over_at(s, x->step_on_host, NULL, x->state[1], x->n_state);
        impl_over_at(s, x->step_on_host, NULL, x->grad_shard, x->grad_chunk);
        impl_over_at(s, true, NULL, x->landed, x->grad_chunk);
        impl_over_at(s, x->step_on_host, NULL, x->borrowed, x->chunk);
        impl_dead(s, NULL, &x->brought, x->chunk);
        impl_dead(s, NULL, &x->partial, x->grad_chunk);
        impl_dead(s, NULL, &x->full, x->whole);
        impl_dead(s, NULL, &x->grad, x->grad_whole);
        impl_dead(s, NULL, &x->arrived, x->padded);
        impl_dead(s, NULL, &x->packed, x->grad_padded);
    }
    for (uint32_t p = 0; s->parameter && p < s->model->n_parameters; p++) {
        impl_dead(s, NULL, &s->parameter[p].staging, s->parameter[p].numel);
    }
}

void impl_destroy(struct fsdp_sharded *s)
{
    if (!s) {
        return;
    }
    impl_checkpoints_release(s);
    (void)s->env->device->sync(s->env->device->self, NULL);
    bury(s);
    close_streams(s);
    for (uint32_t u = 0; s->unit && u < s->units.n_units; u++) {
        const struct fsdp_device *d = impl_place_of(s, s->unit[u].step_on_host);

        d->free(d->self, s->unit[u].own_states);
    }
    for (uint32_t u = 0; s->unit && u < s->units.n_units; u++) {
        free(s->unit[u].lacks);
    }
    free(s->lacking);
    impl_slots_release(s);
    impl_release_buffers(s);
    impl_release_plans(s, s->plan);
    free(s->in_backward);
    free(s->flags);
    free(s->early.numbers);
    impl_layout_release(s);
    free(s);
}
