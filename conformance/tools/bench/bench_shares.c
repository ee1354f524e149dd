/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shares.c - where the time of a step went: what each stream did when,
 * as the stream itself says (device.h, stamp), cut into shares (shares.h).
 *
 * Taking times costs time: two more entries of a stream for each operator,
 * which on a GPU is an event. So these steps are steps of their own, in a
 * world of their own, and none of those that `steps` and `gpu` time.
 */
#include "tools/bench/bench_count.h"
#include "tools/bench/bench_gpu.h"
#include "tools/bench/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WARM = 2, /* steps; then one that is traced, and not looked at */
    /* The results: the shares, all collectives, the step itself. */
    COMMUNICATION = N_SHARES,
    STEP,
    N_ROWS,
};

struct launch {
    struct bench_plan *plan;
    const struct bench_engine *engine;
    const struct bench_model *model;
    uint32_t ranks;
    struct bench_count count;
    struct share_span *span; /* as many as there may be */
    double *found;           /* [N_ROWS][samples], shared; rank 0 writes */
};

/* ---- In the rank ------------------------------------------------------- */

static void opened(void *self, struct fsdp_env *env)
{
    bench_count_open(&((struct launch *)self)->count, env);
}

/* A contestant whose device takes no times is left out, by all ranks
 * together. */
static int takes_times(const struct launch *x, struct world_rank *rank)
{
    const struct fsdp_device *d = x->count.real;
    char token = 0;
    char all[WORLD_MAX_RANKS];

    FSDP_TRY(rank->exchange(rank->exchange_self, &token, 1, all));
    if (bench_count_times(d)) {
        return FSDP_OK;
    }
    *rank->error = (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED};
    snprintf(rank->error->message, sizeof(rank->error->message),
             "the device takes no times (device.h, stamp)");
    return FSDP_ERR_UNSUPPORTED;
}

/* Room for what a step gives out, which is what the last one did. */
static int make_room(struct launch *x, uint64_t calls)
{
    struct bench_count *count = &x->count;

    count->room = 2 * calls;
    x->span = calloc(count->room + 1, sizeof(*x->span));
    count->span = calloc(count->room + 1, sizeof(*count->span));
    return x->span && count->span ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* One traced step, as this rank saw it. */
static int look(struct launch *x, struct bench_life *life, double row[N_ROWS])
{
    struct bench_count *count = &x->count;
    struct shares shares;

    count->n_spans = 0;
    FSDP_TRY(bench_life_step(life, &row[STEP]));
    for (uint64_t i = 0; i < count->n_spans; i++) {
        const struct bench_span *s = &count->span[i];
        x->span[i] = (struct share_span){1e-9 * (double)s->begin,
                                         1e-9 * (double)s->end, s->share};
    }
    FSDP_TRY(shares_find(x->span, count->n_spans, life->began,
                         life->began + row[STEP], &shares));
    memcpy(row, shares.of, sizeof(shares.of));
    row[COMMUNICATION] = shares.communication;
    return FSDP_OK;
}

/* The ranks' mean; of the step's time, the slowest. */
static int together(struct world_rank *rank, double row[N_ROWS])
{
    double all[WORLD_MAX_RANKS][N_ROWS];
    double slowest = 0;

    FSDP_TRY(
        rank->exchange(rank->exchange_self, row, N_ROWS * sizeof(double), all));
    memset(row, 0, N_ROWS * sizeof(double));
    for (uint32_t r = 0; r < rank->world; r++) {
        for (int i = 0; i < N_ROWS; i++) {
            row[i] += all[r][i] / rank->world;
        }
        slowest = all[r][STEP] > slowest ? all[r][STEP] : slowest;
    }
    row[STEP] = slowest;
    return FSDP_OK;
}

static int take_samples(void *self, struct world_rank *rank,
                        struct bench_life *life)
{
    struct launch *x = self;
    uint32_t n = x->plan->report.samples;
    double row[N_ROWS];
    uint64_t before = 0;

    FSDP_TRY(takes_times(x, rank));
    for (int i = 0; i < WARM; i++) {
        before = x->count.calls;
        FSDP_TRY(bench_life_step(life, &row[STEP]));
    }
    FSDP_TRY(make_room(x, x->count.calls - before));
    FSDP_TRY(look(x, life, row));
    for (uint32_t k = 0; k < n; k++) {
        char token = 0;
        char all[WORLD_MAX_RANKS];
        FSDP_TRY(rank->exchange(rank->exchange_self, &token, 1, all));
        FSDP_TRY(look(x, life, row));
        FSDP_TRY(together(rank, row));
        for (int i = 0; i < N_ROWS && rank->rank == 0; i++) {
            x->found[(size_t)i * n + k] = row[i];
        }
    }
    return FSDP_OK;
}

static int in_rank(void *context, struct world_rank *rank)
{
    struct launch x = *(struct launch *)context;
    struct bench_contestant who = {.engine = x.engine->engine,
                                   .lender = x.plan->plain,
                                   .opened = opened,
                                   .self = &x};
    int status = bench_life_in(&who, x.model, x.plan->text, x.plan->text_bytes,
                               rank, take_samples);
    free(x.count.span);
    free(x.span);
    return status;
}

/* ---- Outside ----------------------------------------------------------- */

static void note(const struct launch *x, const char *name)
{
    struct bench_report *report = &x->plan->report;
    uint32_t n = report->samples;
    char more[BENCH_NAME_BYTES];

    for (uint32_t i = 0; i < STEP; i++) {
        bool work = i == SHARE_ATTENTION || i == SHARE_GEMM;
        snprintf(more, sizeof(more), "%.70s.%s", name,
                 i == COMMUNICATION ? share_name_communication : share_name[i]);
        bench_add_so(report, more, "share", work, x->found + (size_t)i * n, n);
    }
    for (uint32_t k = 0; k < n; k++) {
        x->found[(size_t)STEP * n + k] *= 1e6;
    }
    snprintf(more, sizeof(more), "%.70s.step", name);
    bench_add(report, more, "us", x->found + (size_t)STEP * n, n, NULL, NULL);
}

/* A model that does not fit, or a device that takes no times, is left out, with
 * a message. */
static int measure(struct launch *x, const char *name)
{
    struct bench_plan *plan = x->plan;
    size_t bytes = (size_t)N_ROWS * plan->report.samples * sizeof(double);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    if (memory == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    x->found = memory;
    status = bench_life_world(x->ranks, in_rank, x, &plan->error);
    if (status == FSDP_OK) {
        note(x, name);
    } else if (plan->error.status == FSDP_ERR_NOMEM ||
               plan->error.status == FSDP_ERR_UNSUPPORTED) {
        fprintf(stderr, "%s: left out: %s\n", name, plan->error.message);
        plan->error = (struct fsdp_error){0};
        status = FSDP_OK;
    }
    munmap(memory, bytes);
    return status;
}

static void name_of(const struct launch *x, char name[BENCH_NAME_BYTES])
{
    if (x->engine->place == FSDP_PLACE_CUDA) {
        snprintf(name, BENCH_NAME_BYTES, "gpu%s.%s.k%u.%.40s.share",
                 x->plan->small ? "-small" : "", x->model->name, x->ranks,
                 x->engine->label);
    } else {
        snprintf(name, BENCH_NAME_BYTES, "step.%s.full-shard.k%u.%.40s.share",
                 x->model->name, x->ranks, x->engine->label);
    }
}

static int measure_engine(struct bench_plan *plan,
                          const struct bench_engine *engine)
{
    struct bench_failure failure = {0};
    bool slow = engine->engine == plan->plain;
    const struct bench_model *m = engine->place == FSDP_PLACE_CUDA
                                      ? bench_gpu_models(plan->small)
                                      : bench_models;

    for (; m->name; m++) {
        for (uint32_t k = 0; k < plan->n_ranks && !(m->large && slow); k++) {
            struct launch x = {.plan = plan,
                               .engine = engine,
                               .model = m,
                               .ranks = plan->ranks[k]};
            struct bench_sized sized;
            char name[BENCH_NAME_BYTES];

            name_of(&x, name);
            if (bench_wants(&plan->report, name)) {
                bench_progress(&plan->report, name);
                int status = bench_gpu_size(plan, engine, m, k, &sized);
                x.model = &sized.model;
                if (status == FSDP_OK && sized.model.name) {
                    status = measure(&x, name);
                }
                bench_failed(plan, &failure, status);
            }
        }
    }
    return bench_first_failure(plan, &failure);
}

int bench_shares(struct bench_plan *plan)
{
    struct bench_failure failure = {0};

    for (uint32_t e = 0; e < plan->n_engines; e++) {
        bench_failed(plan, &failure, measure_engine(plan, &plan->engine[e]));
    }
    return bench_first_failure(plan, &failure);
}
