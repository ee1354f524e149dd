/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gpu_steps.c - what an engine costs on GPUs: a large gpt's step, the
 * host's time for a unit, and memory: what the engine asked for beside what
 * the driver gave.
 */
#include "models/workload_list.h"
#include "tools/bench/bench_count.h"
#include "tools/bench/bench_cuda.h"
#include "tools/bench/bench_gpu.h"
#include "tools/bench/bench_life.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WARM = 3,    /* steps, in which libraries take their memory */
    SEVERAL = 20 /* steps of a sample that does not compute */
};

/* gpt is byte-level: so many blocks that the weights are as many as those of
 * the model of that name with its large vocabulary. */
static const struct bench_model models[] = {
    {"gpt-124m", &workload_gpt, "124m", "tokens/s", 8 * 1024, true},
    {"gpt-1b", &workload_gpt, "1b", "tokens/s", 8 * 1024, true},
    {"gpt-largest", &workload_gpt, "1b-", "tokens/s", 8 * 1024, true},
    {NULL, NULL, NULL, NULL, 0, false},
};
static const struct bench_model small_models[] = {
    {"gpt-124m", &workload_gpt, "tiny", "tokens/s", 8 * 16, true},
    {"gpt-largest", &workload_gpt, "tiny-", "tokens/s", 8 * 16, true},
    {NULL, NULL, NULL, NULL, 0, false},
};
static const struct bench_model empty = {
    "empty", &bench_empty, "empty", "steps/s", 1, false};

const struct bench_model *bench_gpu_models(bool small)
{
    return small ? small_models : models;
}

/* The results of rank 0, about its own GPU. */
struct found {
    double open, peak;    /* bytes that the driver has given by then */
    double plan;          /* bytes that were asked for */
    double rounded;       /* each allocation up to what the driver gives */
    double parameters;    /* of the whole model */
    double calls;         /* of a step */
    bool driver, own_gpu; /* there is one; the rank shares it with no other */
    double seconds[];
};

struct launch {
    struct bench_plan *plan;
    const struct bench_engine *engine;
    const struct bench_model *model;
    uint32_t blocks; /* that were looked for; 0: none were */
    uint32_t ranks;
    struct bench_driver driver;
    struct bench_count count;
    struct found *found;
};

/* Whenever more was asked for than ever: what is freed before the end counts
 * for the driver as it does for the plan. */
static void look(void *self)
{
    struct launch *x = self;
    double taken = bench_driver_taken(&x->driver);

    x->found->peak = taken > x->found->peak ? taken : x->found->peak;
}

static void opened(void *self, struct fsdp_env *env)
{
    struct launch *x = self;
    int gpus = 0;

    if (env->rank == 0 && bench_driver_open(&x->driver)) {
        x->found->driver = true;
        x->found->open = bench_driver_taken(&x->driver);
        x->found->own_gpu =
            x->driver.devices(&gpus) == 0 && (uint32_t)gpus >= env->world;
    }
    bench_count_open(&x->count, env);
    if (x->found->driver) {
        x->count.more = look;
        x->count.more_self = x;
    }
}

/* The slowest rank's; an empty model: what the host took. */
static int sample(struct launch *x, struct world_rank *rank,
                  struct bench_life *life, double *out)
{
    bool host = x->model == &empty;
    uint32_t repeat = host ? SEVERAL : 1;
    double all[WORLD_MAX_RANKS];
    double sum = 0;

    for (uint32_t i = 0; i < repeat; i++) {
        double seconds = 0;
        FSDP_TRY(bench_life_step(life, &seconds));
        sum += host ? life->host : seconds;
    }
    FSDP_TRY(rank->exchange(rank->exchange_self, &sum, sizeof(sum), all));
    for (uint32_t r = 0; r < rank->world; r++) {
        sum = all[r] > sum ? all[r] : sum;
    }
    *out = sum / repeat;
    return FSDP_OK;
}

static double parameters(const struct fsdp_model *model)
{
    double n = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        n += (double)fsdp_numel(model, p);
    }
    return n;
}

static int take_samples(void *self, struct world_rank *rank,
                        struct bench_life *life)
{
    struct launch *x = self;
    double seconds = 0;
    uint64_t before;

    for (int i = 0; i < WARM; i++) {
        FSDP_TRY(sample(x, rank, life, &seconds));
    }
    before = x->count.calls;
    FSDP_TRY(bench_life_step(life, &seconds));
    if (rank->rank == 0) {
        x->found->calls = (double)(x->count.calls - before);
    }
    for (uint32_t i = 0; i < x->plan->report.samples; i++) {
        FSDP_TRY(sample(x, rank, life, &seconds));
        if (rank->rank == 0) {
            x->found->seconds[i] = seconds;
        }
    }
    if (rank->rank == 0) {
        look(x);
        x->found->plan = (double)x->count.peak;
        x->found->rounded = (double)x->count.rounded_peak;
        x->found->parameters = parameters(&life->model->model);
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

    return bench_life_in(&who, x.model, x.plan->text, x.plan->text_bytes, rank,
                         take_samples);
}

/* ---- Outside ----------------------------------------------------------- */

static void add(const struct launch *x, const char *what, const char *more,
                const char *unit, const double *value, uint32_t n)
{
    char name[BENCH_NAME_BYTES];

    snprintf(name, sizeof(name), "gpu%s.%s.k%u.%.40s%s",
             x->plan->small ? "-small" : "", what, x->ranks, x->engine->label,
             more);
    bench_add(&x->plan->report, name, unit, value, n, NULL, NULL);
}

/* The driver speaks of a whole GPU: of one that several ranks share it says
 * nothing about one of them. */
static void note_memory(const struct launch *x)
{
    const double mib = 1024 * 1024;
    double open = x->found->open / mib;
    double plan = x->found->plan / mib;
    double rounded = x->found->rounded / mib;
    double grown = (x->found->peak - x->found->open) / mib;
    double off = fabs(grown - plan);

    add(x, x->model->name, ".memory-plan", "MiB", &plan, 1);
    add(x, x->model->name, ".memory-rounded", "MiB", &rounded, 1);
    if (x->found->driver && x->found->own_gpu) {
        add(x, x->model->name, ".memory-before", "MiB", &open, 1);
        add(x, x->model->name, ".memory", "MiB", &grown, 1);
        add(x, x->model->name, ".memory-off", "MiB", &off, 1);
    }
}

/* Notes the size of a model whose name does not say it. */
static void note_size(const struct launch *x)
{
    double blocks = x->blocks;
    double millions = x->found->parameters * 1e-6;

    if (x->blocks > 0) {
        add(x, x->model->name, ".blocks", "blocks", &blocks, 1);
        add(x, x->model->name, ".parameters", "millions", &millions, 1);
    }
}

static void note(struct launch *x)
{
    uint32_t n = x->plan->report.samples;
    double *s = x->found->seconds;
    double calls = x->found->calls / BENCH_EMPTY_UNITS;

    for (uint32_t i = 0; i < n; i++) {
        s[i] = x->model == &empty ? s[i] * 1e6 / BENCH_EMPTY_UNITS
                                  : x->model->units_a_step / s[i];
    }
    if (x->model == &empty) {
        add(x, "unit", "", "us", s, n);
        add(x, "unit", ".calls", "calls", &calls, 1);
    } else {
        add(x, x->model->name, "", x->model->unit, s, n);
        add(x, x->model->name, ".calls", "calls", &x->found->calls, 1);
        note_memory(x);
        note_size(x);
    }
}

static int measure(struct bench_plan *plan, const struct bench_engine *engine,
                   const struct bench_model *model, uint32_t blocks,
                   uint32_t ranks)
{
    size_t bytes = sizeof(struct found) + plan->report.samples * sizeof(double);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct launch x = {.plan = plan,
                       .engine = engine,
                       .model = model,
                       .blocks = blocks,
                       .ranks = ranks,
                       .found = memory};
    int status;

    if (memory == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    status = bench_life_world(ranks, in_rank, &x, &plan->error);
    if (status == FSDP_OK) {
        note(&x);
    } else if (plan->error.status == FSDP_ERR_NOMEM) {
        fprintf(stderr, "%s with %u ranks does not fit: %s\n", model->name,
                ranks, plan->error.message);
        plan->error = (struct fsdp_error){0};
        status = FSDP_OK;
    }
    munmap(memory, bytes);
    return status;
}

int bench_gpu_steps(struct bench_plan *plan, const struct bench_engine *engine)
{
    struct bench_failure failure = {0};
    char name[BENCH_NAME_BYTES];
    char prefix[16];

    snprintf(prefix, sizeof(prefix), "gpu%s", plan->small ? "-small" : "");
    for (uint32_t k = 0; k < plan->n_ranks; k++) {
        snprintf(name, sizeof(name), "%s.unit.k%u.%.40s", prefix,
                 plan->ranks[k], engine->label);
        if (bench_wants(&plan->report, name)) {
            bench_progress(&plan->report, name);
            bench_failed(plan, &failure,
                         measure(plan, engine, &empty, 0, plan->ranks[k]));
        }
    }
    for (const struct bench_model *m = bench_gpu_models(plan->small); m->name;
         m++) {
        for (uint32_t k = 0; k < plan->n_ranks; k++) {
            struct bench_sized sized;
            snprintf(name, sizeof(name), "%s.%s.k%u.%.40s", prefix, m->name,
                     plan->ranks[k], engine->label);
            if (bench_wants(&plan->report, name)) {
                bench_progress(&plan->report, name);
                int status = bench_gpu_size(plan, engine, m, k, &sized);
                if (status == FSDP_OK && sized.model.name) {
                    status = measure(plan, engine, &sized.model, sized.blocks,
                                     plan->ranks[k]);
                }
                bench_failed(plan, &failure, status);
            }
        }
    }
    return bench_first_failure(plan, &failure);
}
