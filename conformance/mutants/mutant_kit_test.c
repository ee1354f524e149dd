/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_kit_test.c - what the kit says of a fault holds of it: zeros come
 * where `when` says so, of collectives of that kind, and nowhere else; copies
 * are stale until the pass that finds them has ended.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

#include "testing/unit_testing.h"

enum {
    N = 3 /* elements of a collective */
};

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    (void)s;
    (void)point;
    return index == 7 ? FSDP_ERR_INVALID : FSDP_OK; /* what it refuses */
}

static int bring_ones(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    for (uint64_t i = 0; i < c->n; i++) {
        ((float *)c->out)[i] = 1.0f;
    }
    return FSDP_OK;
}

static int copy(void *self, struct fsdp_stream *stream, void *to,
                const void *from, uint64_t bytes)
{
    (void)self;
    (void)stream;
    memcpy(to, from, bytes);
    return FSDP_OK;
}

static int sync(void *self, struct fsdp_stream *stream)
{
    (void)self;
    (void)stream;
    return FSDP_OK;
}

static int wait(void *self, struct fsdp_stream *waits,
                struct fsdp_stream *other, uint64_t ticket, const char *edge)
{
    (void)self;
    (void)waits;
    (void)other;
    (void)ticket;
    (void)edge;
    return FSDP_OK;
}

static const struct fsdp_comm comm = {.size = sizeof(comm), .run = bring_ones};
static const struct fsdp_device device = {
    .size = sizeof(device), .copy = copy, .wait = wait, .sync = sync};
static const uint32_t extent[] = {1, 1};
static const struct fsdp_mesh mesh = {
    .size = sizeof(mesh), .n_dims = 2, .extent = (uint32_t *)extent};

/* An engine that does nothing, made wrong. */
struct wrong {
    struct fsdp_env env;
    struct fsdp_engine engine;
};

static void make(struct wrong *x, const struct mutant *m)
{
    x->env = (struct fsdp_env){.size = sizeof(x->env),
                               .world = 1,
                               .mesh = &mesh,
                               .comm = &comm,
                               .device = &device};
    x->engine = (struct fsdp_engine){.size = sizeof(x->engine), .at = at};
    mutant_apply(m, &x->env, &x->engine);
}

/* What a collective of this kind brings, all of it the same. */
static float brought(const struct wrong *x, uint32_t kind)
{
    float out[N] = {5.0f, 5.0f, 5.0f};
    const struct fsdp_collective c = {
        .size = sizeof(c), .kind = kind, .n = N, .in = out, .out = out};

    assert_int_equal(x->env.comm->run(x->env.comm->self, NULL, &c), FSDP_OK);
    for (int i = 1; i < N; i++) {
        assert_true(out[i] == out[0]);
    }
    return out[0];
}

static void point(const struct wrong *x, uint32_t point, int status)
{
    assert_int_equal(x->engine.at(NULL, point, status == FSDP_OK ? 0 : 7),
                     status);
}

UNIT_TEST(zeros_come_when_it_is_time)
{
    const struct mutant m = {.fault = {MUTANT_BRINGS_ZEROS, FSDP_BROADCAST},
                             .when = mutant_is_in_pass};
    const struct mutant always = {
        .fault = {MUTANT_BRINGS_ZEROS, FSDP_ALL_GATHER}};
    struct wrong x;

    make(&x, &m);
    assert_true(brought(&x, FSDP_BROADCAST) == 1.0f);
    point(&x, FSDP_BEGIN, FSDP_OK);
    assert_true(brought(&x, FSDP_BROADCAST) == 0.0f);
    assert_true(brought(&x, FSDP_ALL_GATHER) == 1.0f);
    point(&x, FSDP_END, FSDP_OK);
    assert_true(brought(&x, FSDP_BROADCAST) == 1.0f);
    make(&x, &always);
    assert_true(brought(&x, FSDP_ALL_GATHER) == 0.0f);
    assert_true(brought(&x, FSDP_BROADCAST) == 1.0f);
}

/* From a call at rest to the next END or CANCEL that is taken. */
UNIT_TEST(copies_are_stale_until_a_pass_ends)
{
    static const uint32_t end[] = {FSDP_END, FSDP_CANCEL};
    const struct mutant m = {.fault = {MUTANT_BRINGS_ZEROS, FSDP_ALL_GATHER},
                             .when = mutant_finds_copies};
    struct wrong x;

    for (int i = 0; i < 2; i++) {
        make(&x, &m);
        mutant_now.stale = true;
        assert_false(mutant_finds_copies());
        point(&x, FSDP_BEGIN, FSDP_OK);
        point(&x, FSDP_PRE_FORWARD, FSDP_OK);
        assert_true(brought(&x, FSDP_ALL_GATHER) == 0.0f);
        point(&x, end[i], FSDP_ERR_INVALID);
        point(&x, FSDP_PRE_FORWARD, FSDP_OK);
        assert_true(mutant_finds_copies());
        point(&x, FSDP_PRE_BACKWARD, FSDP_OK);
        assert_false(mutant_finds_copies());
        point(&x, end[i], FSDP_OK);
        point(&x, FSDP_BEGIN, FSDP_OK);
        point(&x, FSDP_PRE_FORWARD, FSDP_OK);
        assert_false(mutant_finds_copies());
        assert_true(brought(&x, FSDP_ALL_GATHER) == 1.0f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_come_when_it_is_time),
        cmocka_unit_test(copies_are_stale_until_a_pass_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
