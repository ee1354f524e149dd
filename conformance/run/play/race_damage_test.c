/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_damage_test.c - the damage of a missing wait: each wait of the streaming
 * engine is forgotten on streams that are as late as they may be, but for the
 * one that should have waited. Losses, or what pieces show, then differ from
 * those of the same streams with all waits; so what the detector calls a race
 * is one. With all waits the results are those of the reference in bits, in
 * whatever order streams get on.
 *
 * The communicator under this test does what a queue gives it, when the queue
 * does: the order of calls, which holds on the host's, would hide the edge
 * between two collectives.
 */
#include "run/play/late_testing.h"
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
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
    uint64_t races; /* races that were found in the run */
};

static void add(struct shown *s, const float *x, uint64_t n)
{
    assert_true(s->n + n <= MAX_FLOATS);
    memcpy(s->x + s->n, x, n * sizeof(*x));
    s->n += (uint32_t)n;
}

static void read_back(const struct playing *p, struct shown *out)
{
    struct record r;

    playing_read(p, &r);
    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; k < p->c.ranks; k++) {
        const struct record_rank *rank = &r.rank[k];
        assert_int_equal(p->ends[k].status, FSDP_OK);
        add(out, rank->loss, rank->n_losses);
        for (uint32_t t = 0; t < rank->n_tensors; t++) {
            add(out, rank->tensor[t].data, rank->tensor[t].n);
        }
        out->races += rank->races.count;
    }
    record_release(&r);
}

static void run(const char *id, const struct fsdp_engine *engine,
                struct shown *out)
{
    struct playing p;

    playing_open(&p, id, NULL, engine);
    playing_play(&p);
    read_back(&p, out);
    playing_close(&p);
}

static void run_late(const char *id, const struct late_how *with,
                     struct shown *out)
{
    struct fsdp_engine engine = *impl;

    engine.open = open_late;
    engine.close = close_late;
    engine.pieces = with->bare_pieces ? bare_pieces : impl->pieces;
    how = *with;
    n_forgotten = 0;
    run(id, &engine, out);
}

static bool same(const struct shown *a, const struct shown *b)
{
    return a->n == b->n && memcmp(a->x, b->x, a->n * sizeof(*a->x)) == 0;
}

/* ---- Cases ------------------------------------------------------------- */

/* Units divide by every world here, so there is no padding that the recorder
 * would wait for. REC says how many steps are recorded in full, if not two. */
#define SEED(WORLD, SYNC, AHEAD, REC)                                    \
    "mlp.seed.natural." WORLD ".flat.layer.rank." SYNC ".momentum" AHEAD \
    ".steps3" REC

static const char *const streams[] = {"compute", "all-gather", "reduce-scatter",
                                      "all-reduce", NULL};

/* ---- With all waits ---------------------------------------------------- */

UNIT_TEST(any_order_gives_the_same_bits)
{
    static const char *const id[] = {
        SEED("full-shard.k2", "s", "", ""),
        SEED("full-shard.k4", "ss", ".pf2.pb2.rif2", ""),
        SEED("no-shard.k2", "ss", ".pf1.pb1.rif1", ""),
        SEED("hybrid-shard.k4r2", "ss", "", ""),
        SEED("hybrid-shard.k4r2", "ss", ".pf1.pb1.rif1", ""),
        SEED("hybrid-shard.k4r2", "ss", ".pf2.pb2.rif2", ""),
    };
    struct shown *want = calloc(2, sizeof(*want));

    assert_non_null(want);
    for (size_t i = 0; i < sizeof(id) / sizeof(id[0]); i++) {
        run(id[i], fsdp_ref_engine(), &want[0]);
        for (uint32_t k = 0; k < 5; k++) {
            struct late_how with = {.eager = streams[k]};
            run_late(id[i], &with, &want[1]);
            assert_true(same(&want[0], &want[1]));
            assert_int_equal(want[1].races, 0);
        }
    }
    free(want);
}

/* ---- Without one of them ----------------------------------------------- */

struct edge {
    const char *name, *id;
    struct late_how with;
};

static void damages(const struct edge *e)
{
    struct shown *x = calloc(2, sizeof(*x));
    struct late_how all = e->with;

    assert_non_null(x);
    all.forget = NULL;
    all.bare_pieces = false;
    run_late(e->id, &all, &x[0]);
    run_late(e->id, &e->with, &x[1]);
    if (n_forgotten == 0) {
        fail_msg("%s: nothing was forgotten", e->name);
    }
    if (same(&x[0], &x[1])) {
        fail_msg("%s: the numbers do not show it", e->name);
    }
    free(x);
}

UNIT_TEST(a_forgotten_wait_shows)
{
    static const char full[] = SEED("full-shard.k2", "s", "", ".rec0");
    static const char ahead[] =
        SEED("full-shard.k2", "s", ".pf1.pb1.rif1", ".rec0");
    static const char replicas[] = SEED("no-shard.k2", "s", "", ".rec0");
    static const char most[] =
        SEED("hybrid-shard.k4r2", "ss", ".pf1.pb1.rif1", ".rec0");
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

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        damages(&edges[i]);
    }
}

/* An all-reduce that comes too early still sees the gradient of the step
 * before, at the same place: only pieces, which the host reads in between, show
 * it. */
UNIT_TEST(an_early_all_reduce_shows)
{
    static const struct edge e = {
        "reduce-scatter->all-reduce",
        SEED("hybrid-shard.k4r2", "s", "", ".rec1"),
        {.forget = "reduce-scatter->all-reduce", .eager = "all-reduce"}};

    damages(&e);
}

/* Without the sync from device to host, pieces shows values that are too
 * old. */
UNIT_TEST(a_forgotten_sync_shows)
{
    static const struct edge e = {"pieces",
                                  SEED("full-shard.k2", "s", "", ".rec1"),
                                  {.bare_pieces = true}};

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
