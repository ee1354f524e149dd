/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_damage_test.c - what a missing wait does: each wait of the streaming
 * engine is forgotten on streams that are as late as they may be, but for the
 * one that should have waited. Losses, or what pieces show, are then not those
 * of the same streams with all waits; so what the detector calls a race is
 * one. With all waits the results are those of the reference in bits, in
 * whatever order streams get on.
 *
 * The communicator under this test does what a queue gives it, when it does:
 * the order of calls, which holds on the host's, would hide the edge between
 * two collectives.
 */
#include "run/play/drive.h"
#include "run/play/late_testing.h"
#include "testing/unit_testing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_impl_engine(void);
const struct fsdp_engine *fsdp_ref_engine(void);

enum {
    TIMEOUT_MS = 20000,
    MAX_FLOATS = 1 << 18
};

static const struct fsdp_engine *impl;
static struct late_how how;
static _Atomic uint64_t n_forgotten; /* by all ranks */

static int open_late(struct fsdp_env *env)
{
    FSDP_TRY(impl->open(env));
    return late_open(env, &how);
}

static void close_late(struct fsdp_env *env)
{
    n_forgotten += late_forgotten();
    late_close(env);
    impl->close(env);
}

static int bare_pieces(struct fsdp_sharded *s,
                       void (*visit)(void *, const struct fsdp_piece *),
                       void *context)
{
    int status;

    late_forget_syncs(true);
    status = impl->pieces(s, visit, context);
    late_forget_syncs(false);
    return status;
}

/* ---- A run ------------------------------------------------------------- */

/* Losses of all ranks, then the tensors of the recorded steps. */
struct shown {
    uint32_t n;
    float x[MAX_FLOATS];
    uint64_t races; /* that were found on the way */
};

static void add(struct shown *s, const float *x, uint64_t n)
{
    assert_true(s->n + n <= MAX_FLOATS);
    memcpy(s->x + s->n, x, n * sizeof(*x));
    s->n += (uint32_t)n;
}

static void read_back(const struct run_case *c, const char *directory,
                      const struct world_result *ends, struct shown *out)
{
    struct record r;
    struct fsdp_error error = {0};

    assert_int_equal(record_init(&r, c, c->ranks), FSDP_OK);
    for (uint32_t k = 0; k < c->ranks; k++) {
        r.rank[k].end = ends[k].end;
        r.rank[k].exit_status = ends[k].status;
        r.rank[k].n_collectives = ends[k].n_collectives;
    }
    snprintf(r.engine, sizeof(r.engine), "impl");
    snprintf(r.engine_version, sizeof(r.engine_version), "0");
    snprintf(r.world, sizeof(r.world), "threads");
    assert_int_equal(record_write_case(directory, &r, &error), FSDP_OK);
    record_release(&r);
    if (record_read(directory, &r, &error) != FSDP_OK) {
        fail_msg("record: %s", error.message);
    }
    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; k < c->ranks; k++) {
        const struct record_rank *rank = &r.rank[k];
        assert_int_equal(ends[k].status, FSDP_OK);
        add(out, rank->loss, rank->n_losses);
        for (uint32_t t = 0; t < rank->n_tensors; t++) {
            add(out, rank->tensor[t].data, rank->tensor[t].n);
        }
        out->races += rank->races.count;
    }
    record_release(&r);
}

static void run(const struct run_case *c, const struct fsdp_engine *engine,
                struct shown *out)
{
    char directory[] = "/tmp/race_damage_test.XXXXXX";
    uint32_t extent[2] = {c->replicas, case_shard_degree(c)};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[CASE_MAX_RANKS] = {0};
    struct case_model model = {0};
    struct script script;
    struct fsdp_error error = {0};
    struct drive drive = {.c = c,
                          .model = &model,
                          .script = &script,
                          .engine = engine,
                          .device_engine = fsdp_ref_engine(),
                          .directory = directory};

    assert_null(case_check(c));
    assert_non_null(mkdtemp(directory));
    assert_int_equal(case_model_make(c, NULL, 0, &model, &error), FSDP_OK);
    assert_int_equal(script_make(c, false, &script, &error), FSDP_OK);
    assert_int_equal(world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, drive_rank,
                               &drive, ends, &error),
                     FSDP_OK);
    read_back(c, directory, ends, out);
    script_release(&script);
    case_model_release(&model);
    assert_int_equal(record_clear(directory, &error), FSDP_OK);
    assert_int_equal(rmdir(directory), 0);
}

static void run_late(const struct run_case *c, const struct late_how *with,
                     struct shown *out)
{
    struct fsdp_engine engine = *impl;

    engine.open = open_late;
    engine.close = close_late;
    engine.pieces = with->bare_pieces ? bare_pieces : impl->pieces;
    how = *with;
    n_forgotten = 0;
    run(c, &engine, out);
}

static bool same(const struct shown *a, const struct shown *b)
{
    return a->n == b->n && memcmp(a->x, b->x, a->n * sizeof(*a->x)) == 0;
}

/* ---- Cases ------------------------------------------------------------- */

/* Units divide by every world here: no padding that the recorder would wait
 * for. Nothing is recorded but losses. */
static struct run_case seed(uint32_t strategy, uint32_t ranks,
                            uint32_t microbatches, uint32_t ahead)
{
    struct run_case c = {.data = WORKLOAD_NATURAL,
                         .scenario = CASE_TRAIN,
                         .seed = 1,
                         .strategy = strategy,
                         .ranks = ranks,
                         .replicas = strategy == CASE_NO_SHARD       ? ranks
                                     : strategy == CASE_HYBRID_SHARD ? ranks / 2
                                                                     : 1,
                         .wrap = CASE_WRAP_LAYER,
                         .microbatches = microbatches,
                         .sync = {1, 1},
                         .optimizer = FSDP_OPTIMIZER_MOMENTUM,
                         .lr = 0.05f,
                         .prefetch_forward = ahead,
                         .prefetch_backward = ahead,
                         .reduces_in_flight = ahead,
                         .steps = 3};

    c.sync[1] = microbatches > 1;
    snprintf(c.workload, sizeof(c.workload), "mlp");
    snprintf(c.size, sizeof(c.size), "seed");
    return c;
}

static const char *const streams[] = {"compute", "all-gather", "reduce-scatter",
                                      "all-reduce", NULL};

/* ---- With all waits ---------------------------------------------------- */

static void any_order_gives_the_same_bits(void **state)
{
    const struct run_case cases[] = {
        seed(CASE_FULL_SHARD, 2, 1, 0),   seed(CASE_FULL_SHARD, 4, 2, 2),
        seed(CASE_NO_SHARD, 2, 2, 1),     seed(CASE_HYBRID_SHARD, 4, 2, 0),
        seed(CASE_HYBRID_SHARD, 4, 2, 1), seed(CASE_HYBRID_SHARD, 4, 2, 2),
    };
    struct shown *want = calloc(2, sizeof(*want));

    (void)state;
    assert_non_null(want);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run_case c = cases[i];
        c.recorded_steps = 2;
        run(&c, fsdp_ref_engine(), &want[0]);
        for (uint32_t k = 0; k < 5; k++) {
            struct late_how with = {.eager = streams[k]};
            run_late(&c, &with, &want[1]);
            assert_true(same(&want[0], &want[1]));
            assert_int_equal(want[1].races, 0);
        }
    }
    free(want);
}

/* ---- Without one of them ----------------------------------------------- */

struct edge {
    const char *name;
    struct run_case c;
    struct late_how with;
};

static void damages(const struct edge *e)
{
    struct shown *x = calloc(2, sizeof(*x));
    struct late_how all = e->with;

    assert_non_null(x);
    all.forget = NULL;
    all.bare_pieces = false;
    run_late(&e->c, &all, &x[0]);
    run_late(&e->c, &e->with, &x[1]);
    if (n_forgotten == 0) {
        fail_msg("%s: nothing was forgotten", e->name);
    }
    if (same(&x[0], &x[1])) {
        fail_msg("%s: the numbers do not show it", e->name);
    }
    free(x);
}

static void a_forgotten_wait_shows(void **state)
{
    const struct run_case full = seed(CASE_FULL_SHARD, 2, 1, 0);
    const struct run_case ahead = seed(CASE_FULL_SHARD, 2, 1, 1);
    const struct run_case replicas = seed(CASE_NO_SHARD, 2, 1, 0);
    const struct run_case most = seed(CASE_HYBRID_SHARD, 4, 2, 1);
    const struct edge edges[] = {
        {"all-gather->compute",
         full,
         {.forget = "all-gather->compute", .eager = "compute"}},
        {"dead->reuse", full, {.forget = "dead->reuse", .eager = "all-gather"}},
        {"dead->reuse, ahead",
         ahead,
         {.forget = "dead->reuse", .eager = "all-gather"}},
        {"optimizer->all-gather",
         full,
         {.forget = "optimizer->all-gather",
          .forget_next = true,
          .eager = "all-gather"}},
        {"compute->reduce-scatter",
         full,
         {.forget = "compute->reduce-scatter", .eager = "reduce-scatter"}},
        {"compute->all-reduce",
         replicas,
         {.forget = "compute->all-reduce", .eager = "all-reduce"}},
        {"all-reduce->reuse",
         most,
         {.forget = "all-reduce->reuse", .eager = "reduce-scatter"}},
        {"reduce->reuse",
         ahead,
         {.forget = "reduce->reuse", .eager = "compute"}},
        {"reduce->optimizer",
         full,
         {.forget = "reduce->optimizer", .eager = "compute"}},
        {"stream->communicator",
         full,
         {.forget = "stream->communicator", .no_streams = true}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        damages(&edges[i]);
    }
}

/* An all-reduce that comes too early comes in time for the step before, as
 * the gradient of a step lies where the last one lay: only pieces, which the
 * host reads in between, show it. */
static void an_early_all_reduce_shows(void **state)
{
    struct edge e = {
        "reduce-scatter->all-reduce",
        seed(CASE_HYBRID_SHARD, 4, 1, 0),
        {.forget = "reduce-scatter->all-reduce", .eager = "all-reduce"}};

    (void)state;
    e.c.recorded_steps = 1;
    damages(&e);
}

/* Device to host: what pieces shows is older than it should be. */
static void a_forgotten_sync_shows(void **state)
{
    struct edge e = {"pieces", seed(CASE_FULL_SHARD, 2, 1, 0), {.eager = NULL}};

    (void)state;
    e.c.recorded_steps = 1;
    e.with.bare_pieces = true;
    damages(&e);
}

static int find_impl(void **state)
{
    (void)state;
    impl = fsdp_impl_engine();
    return impl ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_same_bits),
        cmocka_unit_test(a_forgotten_wait_shows),
        cmocka_unit_test(an_early_all_reduce_shows),
        cmocka_unit_test(a_forgotten_sync_shows),
    };

    return cmocka_run_group_tests(tests, find_impl, NULL) != 0;
}
