/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_life.c - the life of an engine, as a training program would have it.
 */
#include "tools/bench/bench_life.h"
#include "tools/bench/bench_initial.h"

#include "models/workload_list.h"
#include "run/play/engine_claims.h"
#include "tools/bench/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PATIENCE_MS = 300000, /* a large model is a minute of initial values */
};

const struct bench_model bench_models[] = {
    {"gpt-256", &workload_gpt, "bench", "tokens/s", 8 * 128, true},
    {"gpt-small", &workload_gpt, "small", "tokens/s", 8 * 64, false},
    {"mlp-wide", &workload_mlp, "wide", "samples/s", 256, false},
    {NULL, NULL, NULL, NULL, 0, false},
};

/* ---- Open and close ---------------------------------------------------- */

static int describe(struct bench_life *life, const struct bench_model *model,
                    const char *text, uint64_t text_bytes,
                    struct fsdp_error *error)
{
    struct workload_config config = {.size = model->size,
                                     .data = WORKLOAD_NATURAL,
                                     .seed = 1,
                                     .world = life->env.world,
                                     .microbatches = 1,
                                     .text = text,
                                     .text_bytes = text_bytes};
    const char *block = "Block";
    int status;

    FSDP_TRY(model->workload->describe(&config, &life->model, error));
    FSDP_TRY(bench_initial_open(&life->model->model, &life->initial));
    status = wrap_by_class(&life->model->model, &block, 1, &life->units);
    return status == FSDP_ERR_INVALID
               ? wrap_every(&life->model->model, 1, &life->units)
               : status;
}

static int open_engine(struct bench_life *life)
{
    const struct fsdp_engine *engine = life->who->engine;

    if (engine->open) {
        FSDP_TRY(engine->open(&life->env));
    }
    if (!life->env.device) {
        life->lent = life->env;
        FSDP_TRY(life->who->lender->open(&life->lent));
        life->env.device = life->lent.device;
    }
    if (!life->env.compute) {
        FSDP_TRY(life->env.device->stream_open(life->env.device->self,
                                               "compute", &life->compute));
        life->env.compute = life->compute;
    }
    if (life->who->opened) {
        life->who->opened(life->who->self, &life->env);
    }
    return FSDP_OK;
}

static int access_param(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct bench_life *life = self;

    return life->who->engine->param(life->sharded, p, out);
}

static int access_grad(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct bench_life *life = self;

    return life->who->engine->grad(life->sharded, p, out);
}

static int shard(struct bench_life *life)
{
    const struct fsdp_engine *engine = life->who->engine;
    bool ahead = !life->who->strict && engine_claims(engine, "prefetch");
    struct fsdp_options options = {.size = sizeof(options),
                                   .layout = FSDP_LAYOUT_FLAT,
                                   .fold = FSDP_FOLD_RANK,
                                   .reshard_after_forward = 1,
                                   .optimizer = FSDP_OPTIMIZER_ADAMW,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.999f,
                                   .eps = 1e-8f,
                                   .prefetch_forward = ahead,
                                   .prefetch_backward = ahead,
                                   .reduces_in_flight = ahead};

    if (life->who->sgd) {
        options.optimizer = FSDP_OPTIMIZER_SGD;
    }
    if (life->who->half) {
        options.param_dtype = FSDP_DTYPE_BF16;
        options.reduce_dtype = FSDP_DTYPE_BF16;
    }
    return engine->shard(&life->env, &life->model->model, &life->units.units,
                         &options, &life->sharded);
}

int bench_life_open(struct bench_life *life, const struct bench_contestant *who,
                    const struct bench_model *model, const char *text,
                    uint64_t text_bytes, struct world_rank *rank)
{
    static const char *const names[] = {"replicate", "shard"};
    struct workload_access access = {
        .param = access_param, .grad = access_grad, .self = life};

    memset(life, 0, sizeof(*life));
    life->who = who;
    life->extent[0] = 1;
    life->extent[1] = rank->world;
    life->mesh = (struct fsdp_mesh){sizeof(life->mesh), 2, names, life->extent};
    life->comm = rank->comm;
    life->env = (struct fsdp_env){.size = sizeof(life->env),
                                  .rank = rank->rank,
                                  .world = rank->world,
                                  .mesh = &life->mesh,
                                  .comm = &life->comm,
                                  .error = rank->error,
                                  .exchange = rank->exchange,
                                  .exchange_self = rank->exchange_self};
    FSDP_TRY(describe(life, model, text, text_bytes, rank->error));
    FSDP_TRY(open_engine(life));
    FSDP_TRY(shard(life));
    return model->workload->open(life->model, life->env.device,
                                 life->env.compute, &access, rank->error,
                                 &life->run);
}

int bench_life_slowest(struct world_rank *rank, double *seconds)
{
    double all[WORLD_MAX_RANKS];

    FSDP_TRY(
        rank->exchange(rank->exchange_self, seconds, sizeof(*seconds), all));
    for (uint32_t r = 0; r < rank->world; r++) {
        *seconds = all[r] > *seconds ? all[r] : *seconds;
    }
    return FSDP_OK;
}

void bench_life_close(struct bench_life *life)
{
    const struct fsdp_engine *engine = life->who ? life->who->engine : NULL;

    if (!engine) {
        return;
    }
    if (life->model) {
        life->model->workload->close(life->run);
    }
    engine->destroy(life->sharded);
    if (life->compute) {
        life->env.device->stream_close(life->env.device->self, life->compute);
    }
    if (life->lent.engine) {
        life->who->lender->close(&life->lent);
        life->env.device = NULL;
    }
    if (engine->close) {
        engine->close(&life->env);
    }
    wrap_release(&life->units);
    if (life->model) {
        life->model->workload->release(life->model);
    }
    bench_initial_close(life->initial);
    memset(life, 0, sizeof(*life));
}

/* The first that did not only end because another did; else the first; or
 * `ranks`. */
static uint32_t who_failed(const struct world_result *result, uint32_t ranks)
{
    uint32_t first = ranks;

    for (uint32_t r = 0; r < ranks; r++) {
        bool good =
            result[r].end == WORLD_RETURNED && result[r].status == FSDP_OK;
        if (!good && result[r].status != FSDP_ERR_ABORTED) {
            return r;
        }
        first = !good && first == ranks ? r : first;
    }
    return first;
}

int bench_life_world(uint32_t ranks,
                     int (*body)(void *context, struct world_rank *rank),
                     void *context, struct fsdp_error *error)
{
    static const char *const names[] = {"replicate", "shard"};
    uint32_t extent[2] = {1, ranks};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct world_result result[WORLD_MAX_RANKS];
    uint32_t r;

    FSDP_TRY(world_run(WORLD_LOCAL, &mesh, PATIENCE_MS, body, context, result,
                       error));
    r = who_failed(result, ranks);
    if (r == ranks) {
        return FSDP_OK;
    }
    *error = result[r].error;
    if (!error->message[0]) {
        snprintf(error->message, sizeof(error->message),
                 "rank %u of %u ended with: %s", r, ranks,
                 fsdp_status_text(result[r].status));
    }
    return FSDP_ERR_INTERNAL;
}

/* ---- A step ------------------------------------------------------------ */

static int pass(struct bench_life *life)
{
    const struct fsdp_engine *engine = life->who->engine;
    const struct fsdp_sequence *q =
        life->model->model.sequence[FSDP_SEQUENCE_TRAIN];

    FSDP_TRY(engine->at(life->sharded, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN));
    for (uint32_t i = 0; i < q->n; i++) {
        FSDP_TRY(engine->at(life->sharded, q->point[i], q->module[i]));
        if (q->point[i] == FSDP_PRE_FORWARD ||
            q->point[i] == FSDP_PRE_BACKWARD) {
            FSDP_TRY(life->model->workload->compute(life->run, q->point[i],
                                                    q->module[i]));
        }
    }
    return engine->at(life->sharded, FSDP_END, FSDP_SEQUENCE_TRAIN);
}

static int optimize(struct bench_life *life)
{
    const struct fsdp_engine *engine = life->who->engine;
    const struct fsdp_device *d = life->env.device;
    float lr = 1e-3f;
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = &lr};

    FSDP_TRY(engine->step(life->sharded, &step));
    FSDP_TRY(engine->zero_grad(life->sharded));
    life->host = bench_now() - life->began;
    return d->sync(d->self, NULL);
}

int bench_life_step(struct bench_life *life, double *seconds)
{
    const struct workload *w = life->model->workload;
    const struct fsdp_device *d = life->env.device;

    FSDP_TRY(life->who->engine->set_gradient_sync(life->sharded, 1));
    FSDP_TRY(w->begin(life->run, life->env.rank, life->step++, 0));
    FSDP_TRY(d->sync(d->self, NULL));
    life->began = bench_now();
    FSDP_TRY(pass(life));
    FSDP_TRY(w->end(life->run, &life->loss));
    FSDP_TRY(optimize(life));
    *seconds = bench_now() - life->began;
    if (!isfinite(life->loss)) {
        if (life->env.error && life->env.error->status == FSDP_OK) {
            snprintf(life->env.error->message, sizeof(life->env.error->message),
                     "step %u: the loss is not finite", life->step);
        }
        return FSDP_ERR_INTERNAL;
    }
    return FSDP_OK;
}

int bench_life_in(const struct bench_contestant *who,
                  const struct bench_model *model, const char *text,
                  uint64_t text_bytes, struct world_rank *rank,
                  int (*take)(void *self, struct world_rank *rank,
                              struct bench_life *life))
{
    struct bench_life life = {0};
    int status = bench_life_open(&life, who, model, text, text_bytes, rank);

    if (status == FSDP_OK) {
        status = take(who->self, rank, &life);
    }
    if (status != FSDP_OK && status != FSDP_ERR_UNSUPPORTED) {
        rank->comm.abort(rank->comm.self, status);
    }
    bench_life_close(&life);
    return status;
}
