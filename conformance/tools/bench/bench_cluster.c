/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cluster.c - measures the numbers of a cluster's file: the rate of a
 * model's compute by steps of it without an engine, all ranks at once; of
 * memory by its optimizer; links by collectives of two sizes. Nothing is fitted
 * to steps of an engine: these are measured in the same world, in turns with
 * all the others, so that they can be compared with what `plan` says of them
 * there.
 */
#include "tools/bench/bench_cluster.h"

#include "run/play/engine_claims.h"
#include "tools/bench/bench_life.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    WARM = 2, /* turns */
    SMALL = 16 << 10,
    LARGE = 1 << 20, /* bytes of the whole */
    PATIENCE_MS = 300000,
};

/* The times that are measured in a turn. */
enum time {
    OPTIMIZER, /* its step alone */
    BARE,      /* a step without an engine */
    GATHER_SMALL,
    SCATTER_SMALL,
    GATHER_LARGE,
    SCATTER_LARGE,
    STRICT, /* steps of the engine: nothing runs ahead */
    AHEAD,
    N_TIMES,
    HOWS = N_TIMES - STRICT,
};

static const char *const how_names[HOWS] = {"strict", "ahead"};

/* The results of rank 0, in shared memory. */
struct findings {
    struct bench_machines on;
    bool runs_ahead;
    double share;     /* of a large collective in which a rank computes */
    double seconds[]; /* [N_TIMES][samples] */
};

struct launch {
    struct bench_plan *plan;
    const struct bench_model *model;
    const struct bench_engine *engine;
    struct findings *found;
};

int bench_cluster_line(const double bytes[2], const double seconds[2],
                       uint32_t ranks, struct bench_machines *out)
{
    const double part = (ranks - 1.0) / ranks; /* that crosses a link */
    const double slope = (seconds[1] - seconds[0]) / (bytes[1] - bytes[0]);
    const double latency = seconds[0] - slope * bytes[0];

    if (!(slope > 0.0)) {
        return FSDP_ERR_INVALID;
    }
    out->bandwidth = part / slope;
    out->latency = latency > 0.0 ? latency : 0.0;
    return FSDP_OK;
}

int bench_cluster_write(const struct bench_machines *m, const char *path,
                        struct fsdp_error *error)
{
    json_t *const o = json_pack(
        "{s:i, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f}",
        "version", 1, "name", "measured", "source", m->source, "host_ranks",
        (int)m->ranks, "memory", 0, "peak_flops", m->flops, "flops", m->flops,
        "contention", 0.0, "memory_bandwidth", m->memory_bandwidth,
        "host_bandwidth", m->bandwidth, "network_bandwidth", m->bandwidth,
        "latency", m->latency, "host_step", 0.0, "network_step", 0.0);
    const bool good = o && json_dump_file(o, path, JSON_INDENT(1)) == 0;

    json_decref(o);
    if (!good) {
        snprintf(error->message, sizeof(error->message),
                 "%.160s: the cluster cannot be written", path);
        return FSDP_ERR_IO;
    }
    return FSDP_OK;
}

/* ---- What follows from medians ------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A step has two gathers for each scatter. */
static int find_links(const double median[N_TIMES], struct bench_machines *on)
{
    static const double bytes[2] = {SMALL, LARGE};
    const double seconds[2] = {
        (2.0 * median[GATHER_SMALL] + median[SCATTER_SMALL]) / 3.0,
        (2.0 * median[GATHER_LARGE] + median[SCATTER_LARGE]) / 3.0};

    return on->ranks > 1 ? bench_cluster_line(bytes, seconds, on->ranks, on)
                         : FSDP_OK;
}

/* A forward's operations are two for each element of a matrix and each token
 * of a rank, a backward's twice that, as `plan` counts them of a workload; the
 * optimizer reads and writes 28 bytes an element. */
static void find_rates(const struct launch *x, const struct fsdp_model *model,
                       const double median[N_TIMES], struct bench_machines *on)
{
    const double tokens = (double)x->model->units_a_step / on->ranks;
    double matrices = 0.0;
    double all = 0.0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const double n = (double)fsdp_numel(model, p);

        all += n;
        matrices += model->parameter_n_dims[p] >= 2 ? n : 0.0;
    }
    on->flops = 6.0 * matrices * tokens / (median[BARE] - median[OPTIMIZER]);
    on->memory_bandwidth = 28.0 * all / median[OPTIMIZER];
}

/* The samples are sorted. */
static int find_all(const struct launch *x, struct world_rank *rank,
                    const struct fsdp_model *model, double *seconds)
{
    const uint32_t n = x->plan->report.samples;
    struct bench_machines *const on = &x->found->on;
    double median[N_TIMES];

    for (uint32_t t = 0; t < N_TIMES; t++) {
        qsort(seconds + (size_t)t * n, n, sizeof(*seconds), by_size);
        median[t] = bench_quantile(seconds + (size_t)t * n, n, 0.5);
    }
    *on = (struct bench_machines){.ranks = rank->world,
                                  .bandwidth = 1e9}; /* one rank has no links */
    snprintf(on->source, sizeof(on->source),
             "fsdp-cts bench cluster: %s on %u ranks", x->model->name,
             rank->world);
    find_rates(x, model, median, on);
    if (!(on->flops >= 1.0) || find_links(median, on) != FSDP_OK) {
        snprintf(rank->error->message, sizeof(rank->error->message),
                 "a large collective took no longer than a small one, or a "
                 "step than its optimizer: this machine is too busy; more "
                 "--samples help");
        return FSDP_ERR_INTERNAL;
    }
    memcpy(x->found->seconds, seconds, N_TIMES * (size_t)n * sizeof(*seconds));
    return FSDP_OK;
}

/* ---- What is measured --------------------------------------------------- */

static int step(struct world_rank *rank, struct bench_life *life, double *out)
{
    *out = 0.0;
    FSDP_TRY(bench_life_slowest(rank, out)); /* all begin */
    FSDP_TRY(bench_life_step(life, out));
    return bench_life_slowest(rank, out);
}

static int optimizer(struct world_rank *rank, const struct bench_life *life,
                     double *out)
{
    const struct fsdp_device *const d = life->env.device;
    const float lr = 1e-3f;
    struct fsdp_step how = {.size = sizeof(how), .n_groups = 1, .lr = &lr};
    double begin;

    *out = 0.0;
    FSDP_TRY(bench_life_slowest(rank, out));
    begin = bench_now();
    FSDP_TRY(life->who->engine->step(life->sharded, &how));
    FSDP_TRY(life->who->engine->zero_grad(life->sharded));
    FSDP_TRY(d->sync(d->self, NULL));
    *out = bench_now() - begin;
    return bench_life_slowest(rank, out);
}

static double cpu_now(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* One collective of so many bytes in all. *share: for which part of it this
 * rank's processor was busy. */
static int collective(struct world_rank *rank, uint32_t kind, uint64_t bytes,
                      float *const memory[2], double *out, double *share)
{
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = kind,
                                      .dim = FSDP_DIM_WORLD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .unit = FSDP_NO_UNIT,
                                      .n = bytes / sizeof(float) / rank->world,
                                      .in = memory[0],
                                      .out = memory[1]};
    double begin;
    double cpu;

    *out = 0.0;
    FSDP_TRY(bench_life_slowest(rank, out));
    begin = bench_now();
    cpu = cpu_now();
    FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
    *out = bench_now() - begin;
    *share = (cpu_now() - cpu) / *out;
    return bench_life_slowest(rank, out);
}

static int turn(struct world_rank *rank, struct bench_life life[1 + HOWS],
                float *const memory[2], double seconds[N_TIMES], double *share)
{
    FSDP_TRY(step(rank, &life[0], &seconds[BARE]));
    FSDP_TRY(optimizer(rank, &life[0], &seconds[OPTIMIZER]));
    for (uint32_t how = 0; how < HOWS; how++) {
        if (life[1 + how].who) {
            FSDP_TRY(step(rank, &life[1 + how], &seconds[STRICT + how]));
        }
    }
    for (int t = GATHER_SMALL; rank->world > 1 && t <= SCATTER_LARGE; t++) {
        FSDP_TRY(collective(
            rank,
            t == GATHER_SMALL || t == GATHER_LARGE ? FSDP_ALL_GATHER
                                                   : FSDP_REDUCE_SCATTER,
            t < GATHER_LARGE ? SMALL : LARGE, memory, &seconds[t], share));
    }
    return FSDP_OK;
}

static int open_all(const struct launch *x, struct world_rank *rank,
                    const struct bench_contestant who[1 + HOWS],
                    struct bench_life life[1 + HOWS])
{
    const uint32_t n =
        engine_claims(x->engine->engine, "prefetch") ? 1 + HOWS : HOWS;

    for (uint32_t i = 0; i < n; i++) {
        FSDP_TRY(bench_life_open(&life[i], &who[i], x->model, x->plan->text,
                                 x->plan->text_bytes, rank));
    }
    return FSDP_OK;
}

static int measure(const struct launch *x, struct world_rank *rank,
                   struct bench_life life[1 + HOWS], double *seconds)
{
    const uint32_t n = x->plan->report.samples;
    float *const memory[2] = {calloc(1, LARGE), calloc(1, LARGE)};
    double share = 0.0;
    int status = memory[0] && memory[1] ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; i < WARM + n && status == FSDP_OK; i++) {
        double one[N_TIMES] = {0.0};

        status = turn(rank, life, memory, one, &share);
        for (uint32_t t = 0; t < N_TIMES && i >= WARM; t++) {
            seconds[t * n + i - WARM] = one[t];
        }
    }
    x->found->share = rank->rank == 0 ? share : x->found->share;
    free(memory[0]);
    free(memory[1]);
    return status;
}

static int body(void *context, struct world_rank *rank)
{
    const struct launch *const x = context;
    const struct fsdp_engine *const engine = x->engine->engine;
    const struct bench_contestant who[1 + HOWS] = {
        {.engine = &bench_bare,
         .lender = engine->open ? engine : x->plan->plain},
        {.engine = engine, .lender = x->plan->plain, .strict = true},
        {.engine = engine, .lender = x->plan->plain}};
    struct bench_life life[1 + HOWS] = {{0}};
    double *const seconds =
        calloc(N_TIMES * (size_t)x->plan->report.samples, sizeof(*seconds));
    int status = seconds ? open_all(x, rank, who, life) : (int)FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        status = measure(x, rank, life, seconds);
    }
    if (status == FSDP_OK && rank->rank == 0) {
        x->found->runs_ahead = life[HOWS].who;
        status = find_all(x, rank, &life[0].model->model, seconds);
    }
    if (status != FSDP_OK) {
        rank->comm.abort(rank->comm.self, status);
    }
    for (uint32_t i = 0; i < 1 + HOWS; i++) {
        bench_life_close(&life[i]);
    }
    free(seconds);
    return status;
}

/* ---- Outside ------------------------------------------------------------ */

static void note_number(struct launch *x, const char *what, const char *unit,
                        bool higher, double value)
{
    char name[BENCH_NAME_BYTES];

    snprintf(name, sizeof(name), "cluster.%s.k%u.%s", x->model->name,
             x->found->on.ranks, what);
    bench_add_so(&x->plan->report, name, unit, higher, &value, 1);
}

static int note(struct launch *x)
{
    const struct bench_machines *const on = &x->found->on;
    const uint32_t n = x->plan->report.samples;

    note_number(x, "compute", "GFLOPS", true, 1e-9 * on->flops);
    note_number(x, "memory", "GB/s", true, 1e-9 * on->memory_bandwidth);
    if (on->ranks > 1) {
        note_number(x, "links", "GB/s", true, 1e-9 * on->bandwidth);
        note_number(x, "latency", "us", false, 1e6 * on->latency);
        note_number(x, "cpu-of-links", "share", false, x->found->share);
    }
    for (uint32_t how = 0; how < (x->found->runs_ahead ? HOWS : 1); how++) {
        double *const sample = x->found->seconds + (size_t)(STRICT + how) * n;
        char name[BENCH_NAME_BYTES];

        for (uint32_t i = 0; i < n; i++) {
            sample[i] *= 1e6;
        }
        snprintf(name, sizeof(name), "cluster.%s.k%u.step.%s.%s",
                 x->model->name, on->ranks, x->engine->label, how_names[how]);
        bench_add(&x->plan->report, name, "us", sample, n, NULL, NULL);
    }
    return x->plan->cluster
               ? bench_cluster_write(on, x->plan->cluster, &x->plan->error)
               : FSDP_OK;
}

/* In a world of MPI this is every rank, and the first one notes. */
static int run_mpi(struct launch *x, bool *is_first)
{
    static const char *const names[] = {"replicate", "shard"};
    uint32_t extent[2] = {1, 1};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct world_result result[WORLD_MAX_RANKS];
    uint32_t rank = 0;

    FSDP_TRY(world_mpi_open(&rank, &extent[1], &x->plan->error));
    FSDP_TRY(world_run(WORLD_MPI, &mesh, PATIENCE_MS, body, x, result,
                       &x->plan->error));
    *is_first = rank == 0;
    if (result[rank].status != FSDP_OK) {
        x->plan->error = result[rank].error;
    }
    return result[rank].status;
}

static int measure_world(struct launch *x, uint32_t ranks)
{
    const size_t bytes =
        sizeof(*x->found) +
        N_TIMES * (size_t)x->plan->report.samples * sizeof(double);
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool is_first = true;
    int status;

    if (memory == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    x->found = memory;
    bench_progress(&x->plan->report, x->model->name);
    status = x->plan->mpi ? run_mpi(x, &is_first)
                          : bench_life_world(ranks, body, x, &x->plan->error);
    if (status == FSDP_OK && is_first) {
        status = note(x);
    }
    munmap(memory, bytes);
    return status;
}

int bench_cluster(struct bench_plan *plan)
{
    const uint32_t worlds = plan->mpi ? 1 : plan->n_ranks;

    for (const struct bench_model *m = bench_models; m->name; m++) {
        struct launch x = {
            .plan = plan, .model = m, .engine = &plan->engine[0]};
        char name[BENCH_NAME_BYTES];

        snprintf(name, sizeof(name), "cluster.%s", m->name);
        for (uint32_t k = 0; k < worlds && bench_wants(&plan->report, name);
             k++) {
            FSDP_TRY(measure_world(&x, plan->ranks[k]));
        }
    }
    if (plan->mpi) {
        world_mpi_close();
    }
    return FSDP_OK;
}
