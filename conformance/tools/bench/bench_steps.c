/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_steps.c - whole steps of engines, and of the same model without one.
 *
 * All that is compared lives in the same processes and steps in turns, so that
 * what else the machine does falls on all alike. Worlds of different sizes
 * cannot: they are started in turns, several times.
 */
#include "run/play/engine_claims.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    MAX_CONTESTANTS = 3,
    LAUNCHES = 3, /* of each size of world */
    WARM = 2,     /* steps */
};

/* The results, in memory that ranks share; rank 0 writes them. */
struct findings {
    double growth[WORLD_MAX_RANKS]; /* of resident memory, bytes */
    double seconds[];               /* [contestant][sample] */
};

/* One launch: the contestants, and where their samples go. */
struct launch {
    const struct bench_plan *plan;
    const struct bench_model *model;
    struct bench_contestant who[MAX_CONTESTANTS];
    uint32_t n;
    uint32_t first, samples; /* of findings->seconds[...][] */
    uint32_t repeat;         /* steps of a sample */
    struct findings *findings;
    size_t bytes;
};

static double peak_memory(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024
                                               : 0.0;
}

static int sample(struct launch *x, struct world_rank *rank,
                  struct bench_life *life, double *out)
{
    double sum = 0;

    for (uint32_t i = 0; i < x->repeat; i++) {
        double seconds = 0;
        char token = 0;
        char all[WORLD_MAX_RANKS];
        FSDP_TRY(rank->exchange(rank->exchange_self, &token, 1, all));
        FSDP_TRY(bench_life_step(life, &seconds));
        FSDP_TRY(bench_life_slowest(rank, &seconds));
        sum += seconds;
    }
    *out = sum / x->repeat;
    return FSDP_OK;
}

static int take_samples(struct launch *x, struct world_rank *rank,
                        struct bench_life *life)
{
    uint32_t total = x->plan->report.samples;
    double seconds;

    for (uint32_t c = 0; c < x->n; c++) {
        for (int i = 0; i < WARM; i++) {
            FSDP_TRY(bench_life_step(&life[c], &seconds));
        }
    }
    for (uint32_t i = 0; i < x->samples; i++) {
        for (uint32_t k = 0; k < x->n; k++) {
            uint32_t c = i % 2 == 0 ? k : x->n - 1 - k;
            FSDP_TRY(sample(x, rank, &life[c], &seconds));
            if (rank->rank == 0) {
                x->findings->seconds[c * total + x->first + i] = seconds;
            }
        }
    }
    return FSDP_OK;
}

/* Alone, an engine and the bare model are in the same place, to the bit:
 * what is compared does the same work. */
static int same_losses(const struct launch *x, const struct world_rank *rank,
                       const struct bench_life *life)
{
    uint32_t own;
    uint32_t other;

    memcpy(&own, &life[0].loss, sizeof(own));
    for (uint32_t c = 1; c < x->n && rank->world == 1; c++) {
        memcpy(&other, &life[c].loss, sizeof(other));
        if (own != other) {
            snprintf(rank->error->message, sizeof(rank->error->message),
                     "%s: after %u steps the loss is %.9g, without an engine "
                     "it is %.9g",
                     x->model->name, life[0].step, (double)life[0].loss,
                     (double)life[c].loss);
            return FSDP_ERR_MISMATCH;
        }
    }
    return FSDP_OK;
}

static int body(void *context, struct world_rank *rank)
{
    struct launch *x = context;
    struct bench_life life[MAX_CONTESTANTS] = {{0}};
    double before = peak_memory();
    int status = FSDP_OK;

    for (uint32_t c = 0; c < x->n && status == FSDP_OK; c++) {
        status = bench_life_open(&life[c], &x->who[c], x->model, x->plan->text,
                                 x->plan->text_bytes, rank);
    }
    if (status == FSDP_OK) {
        status = take_samples(x, rank, life);
    }
    if (status == FSDP_OK) {
        status = same_losses(x, rank, life);
    }
    x->findings->growth[rank->rank] = peak_memory() - before;
    if (status != FSDP_OK) {
        rank->comm.abort(rank->comm.self, status);
    }
    for (uint32_t c = 0; c < x->n; c++) {
        bench_life_close(&life[c]);
    }
    return status;
}

static int start(struct launch *x, uint32_t ranks, struct fsdp_error *error)
{
    return bench_life_world(ranks, body, x, error);
}

static int make_findings(struct launch *x, uint32_t n)
{
    void *memory;

    x->bytes = sizeof(*x->findings) + n * sizeof(double);
    memory = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    x->findings = memory;
    return FSDP_OK;
}

/* ---- Steps ------------------------------------------------------------- */

/* seconds[i] becomes units a second. */
static void to_rates(double *seconds, uint32_t n, double units)
{
    for (uint32_t i = 0; i < n; i++) {
        seconds[i] = units / seconds[i];
    }
}

struct subject {
    struct bench_plan *plan;
    const struct bench_model *model;
    const struct bench_engine *engine;
};

static void name_of(const struct subject *s, const char *what, uint32_t ranks,
                    const char *more, char name[BENCH_NAME_BYTES])
{
    snprintf(name, BENCH_NAME_BYTES, "step.%s.%s.k%u.%s%s%s", s->model->name,
             what, ranks, s->engine->label, s->plan->sgd ? ".sgd" : "", more);
}

static struct launch launch_of(const struct subject *s, bool beside)
{
    struct launch x = {.plan = s->plan, .model = s->model, .n = 1};

    x.who[0] = (struct bench_contestant){.engine = s->engine->engine,
                                         .lender = s->plan->plain,
                                         .sgd = s->plan->sgd};
    if (beside) {
        x.who[1] = x.who[0];
        x.who[1].engine = &bench_bare;
        x.who[1].lender =
            s->engine->engine->open ? s->engine->engine : s->plan->plain;
        x.n = 2;
    }
    x.repeat = s->model->large ? 1 : 8;
    return x;
}

/* Peak of what a rank needs, the engine alone. */
static int measure_memory(const struct subject *s, uint32_t ranks)
{
    struct launch x = launch_of(s, false);
    char name[BENCH_NAME_BYTES];
    double most = 0;
    int status;

    name_of(s, "full-shard", ranks, ".memory", name);
    FSDP_TRY(make_findings(&x, s->plan->report.samples));
    x.samples = 1;
    status = start(&x, ranks, &s->plan->error);
    for (uint32_t r = 0; r < ranks; r++) {
        most = x.findings->growth[r] > most ? x.findings->growth[r] : most;
    }
    if (status == FSDP_OK) {
        most /= 1024 * 1024;
        bench_add(&s->plan->report, name, "MiB", &most, 1, NULL, NULL);
    }
    munmap(x.findings, x.bytes);
    return status;
}

/* Beside the same engine in float32, where something travels. */
static int measure_half(const struct subject *s, uint32_t ranks)
{
    struct launch x = launch_of(s, false);
    struct bench_report *report = &s->plan->report;
    uint32_t n = report->samples;
    char name[BENCH_NAME_BYTES];
    int status;

    name_of(s, "full-shard", ranks, ".bf16", name);
    if (ranks == 1 || !engine_claims(s->engine->engine, "bf16") ||
        !bench_wants(report, name)) {
        return FSDP_OK;
    }
    bench_progress(report, name);
    x.who[1] = x.who[0];
    x.who[0].half = true;
    x.n = 2;
    x.samples = n;
    FSDP_TRY(make_findings(&x, 2 * n));
    status = start(&x, ranks, &s->plan->error);
    if (status == FSDP_OK) {
        double *seconds = x.findings->seconds;

        to_rates(seconds, 2 * n, s->model->units_a_step);
        bench_add(report, name, s->model->unit, seconds, n, seconds + n,
                  "float32");
    }
    munmap(x.findings, x.bytes);
    return status;
}

static void note(const struct subject *s, struct launch *x, uint32_t ranks)
{
    struct bench_report *report = &s->plan->report;
    uint32_t n = report->samples;
    double *engine = x->findings->seconds;
    double *bare = engine + n;
    char name[BENCH_NAME_BYTES];

    to_rates(engine, x->n * n, s->model->units_a_step);
    name_of(s, "full-shard", ranks, "", name);
    bench_add(report, name, s->model->unit, engine, n, x->n > 1 ? bare : NULL,
              "no engine");
    if (x->n > 1) {
        name_of(s, "no-engine", ranks, "", name);
        bench_add(report, name, s->model->unit, bare, n, NULL, NULL);
    }
}

static void note_scaling(const struct subject *s, const struct launch *one,
                         const struct launch *many, uint32_t ranks)
{
    struct bench_report *report = &s->plan->report;
    uint32_t n = report->samples;
    double *ratio = calloc(n, sizeof(*ratio));
    char name[BENCH_NAME_BYTES];

    for (uint32_t i = 0; ratio && i < n; i++) {
        ratio[i] = many->findings->seconds[i] / one->findings->seconds[i];
    }
    name_of(s, "full-shard", ranks, ".scaling", name);
    if (ratio) {
        bench_add(report, name, "ratio", ratio, n, NULL, NULL);
    }
    free(ratio);
}

/* All sizes of worlds in turns. */
static int launch_all(const struct subject *s, struct launch *x)
{
    const struct bench_plan *plan = s->plan;
    uint32_t total = plan->report.samples;
    uint32_t launches = total < LAUNCHES ? total : LAUNCHES;

    for (uint32_t i = 0; i < launches; i++) {
        for (uint32_t k = 0; k < plan->n_ranks; k++) {
            char what[BENCH_NAME_BYTES];
            name_of(s, "full-shard", plan->ranks[k], "", what);
            bench_progress(&plan->report, what);
            x[k].first = total * i / launches;
            x[k].samples = total * (i + 1) / launches - x[k].first;
            FSDP_TRY(start(&x[k], plan->ranks[k], &s->plan->error));
        }
    }
    return FSDP_OK;
}

static int measure_model(const struct subject *s)
{
    struct bench_plan *plan = s->plan;
    struct launch x[BENCH_MAX_RANKS_GIVEN] = {{0}};
    int status = FSDP_OK;

    for (uint32_t k = 0; k < plan->n_ranks && status == FSDP_OK; k++) {
        x[k] = launch_of(s, !plan->alone);
        status = make_findings(&x[k], 2 * plan->report.samples);
    }
    if (status == FSDP_OK) {
        status = launch_all(s, x);
    }
    for (uint32_t k = 0; k < plan->n_ranks && status == FSDP_OK; k++) {
        note(s, &x[k], plan->ranks[k]);
        if (plan->ranks[0] == 1 && k > 0) {
            note_scaling(s, &x[0], &x[k], plan->ranks[k]);
        }
        status = measure_memory(s, plan->ranks[k]);
        if (status == FSDP_OK) {
            status = measure_half(s, plan->ranks[k]);
        }
    }
    for (uint32_t k = 0; k < plan->n_ranks; k++) {
        if (x[k].findings) {
            munmap(x[k].findings, x[k].bytes);
        }
    }
    return status;
}

/* ---- What a unit costs ------------------------------------------------- */

static int silent_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    (void)c;
    return FSDP_OK;
}

static void silent_abort(void *self, int32_t status)
{
    (void)self;
    (void)status;
}

/* All ranks say what this one says. */
static int silent_exchange(void *self, const void *mine, uint64_t bytes,
                           void *all)
{
    uint32_t world = *(const uint32_t *)self;

    for (uint32_t r = 0; r < world; r++) {
        memcpy((unsigned char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

static int measure_units(const struct subject *s, uint32_t ranks, bool strict)
{
    struct bench_plan *plan = s->plan;
    uint32_t n = plan->report.samples;
    uint32_t repeat = 20;
    struct bench_contestant who = {.engine = s->engine->engine,
                                   .lender = plan->plain,
                                   .strict = strict,
                                   .sgd = plan->sgd};
    struct world_rank rank = {.world = ranks,
                              .comm = {.size = sizeof(rank.comm),
                                       .run = silent_run,
                                       .abort = silent_abort},
                              .exchange = silent_exchange,
                              .exchange_self = &ranks,
                              .error = &plan->error};
    struct bench_life life;
    double *us = calloc(n, sizeof(*us));
    char name[BENCH_NAME_BYTES];
    int status = us ? bench_life_open(&life, &who, s->model, NULL, 0, &rank)
                    : FSDP_ERR_NOMEM;

    snprintf(name, sizeof(name), "overhead.unit.k%u%s.%s%s", ranks,
             strict ? ".strict" : "", s->engine->label,
             plan->sgd ? ".sgd" : "");
    bench_progress(&plan->report, name);
    for (uint32_t i = 0; i < n * repeat + repeat && status == FSDP_OK; i++) {
        double seconds = 0;
        status = bench_life_step(&life, &seconds);
        if (i >= repeat && status == FSDP_OK) { /* the first ones warm up */
            us[i / repeat - 1] += seconds * 1e6 / repeat / BENCH_EMPTY_UNITS;
        }
    }
    if (us) {
        bench_life_close(&life);
    }
    if (status == FSDP_OK) {
        bench_add(&plan->report, name, "us", us, n, NULL, NULL);
    }
    free(us);
    return status;
}

static int measure_overhead(struct bench_plan *plan,
                            const struct bench_engine *engine)
{
    static const struct bench_model empty = {
        "empty", &bench_empty, "empty", "steps/s", 1, false};
    struct subject s = {plan, &empty, engine};
    bool runs_ahead = engine_claims(engine->engine, "prefetch");

    if (!bench_wants(&plan->report, "overhead.unit")) {
        return FSDP_OK;
    }
    for (uint32_t k = 0; k < plan->n_ranks; k++) {
        FSDP_TRY(measure_units(&s, plan->ranks[k], true));
        if (runs_ahead) {
            FSDP_TRY(measure_units(&s, plan->ranks[k], false));
        }
    }
    return FSDP_OK;
}

/* An engine's own words for an optimizer that it does not know say nothing of
 * what would be measured with another one. */
static int check_optimizer(struct bench_plan *plan,
                           const struct fsdp_engine *engine)
{
    const char *const claim = plan->sgd ? "sgd" : "adamw";

    if (engine_claims(engine, claim)) {
        return FSDP_OK;
    }
    snprintf(plan->error.message, sizeof(plan->error.message),
             "engine %.60s does not claim %s, with which steps are measured%s",
             engine->name, claim,
             plan->sgd ? "" : "; with --sgd they are with SGD");
    return FSDP_ERR_UNSUPPORTED;
}

int bench_steps(struct bench_plan *plan)
{
    for (uint32_t e = 0; e < plan->n_engines; e++) {
        const struct bench_engine *engine = &plan->engine[e];
        bool slow = engine->engine == plan->plain;
        FSDP_TRY(check_optimizer(plan, engine->engine));
        for (const struct bench_model *m = bench_models; m->name; m++) {
            struct subject s = {plan, m, engine};
            char name[BENCH_NAME_BYTES];
            snprintf(name, sizeof(name), "step.%s.%s", m->name, engine->label);
            if (bench_wants(&plan->report, name) && !(m->large && slow)) {
                FSDP_TRY(measure_model(&s));
            }
        }
        if (engine->place == FSDP_PLACE_HOST) { /* see bench_gpu.c */
            FSDP_TRY(measure_overhead(plan, engine));
        }
    }
    return FSDP_OK;
}
