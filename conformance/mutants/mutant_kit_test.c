/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_kit_test.c - the kit does faults as it says: zeros come while `when`
 * is true, from collectives of that kind, and nowhere else; copies are stale
 * until the pass that finds them has ended; before_step is called before the
 * step, and `carried` is put below the recorder.
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

/* The calls so far, one letter each. */
static char called[8];

static void call(char letter)
{
    called[strlen(called)] = letter;
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    (void)s;
    (void)how;
    call('s');
    return FSDP_OK;
}

static int zero_grad(struct fsdp_sharded *s)
{
    (void)s;
    call('z');
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
    x->engine = (struct fsdp_engine){.size = sizeof(x->engine),
                                     .at = at,
                                     .step = step,
                                     .zero_grad = zero_grad};
    mutant_apply(m, &x->env, &x->engine);
}

/* The value that a collective of this kind brings in every element. */
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

/* Copies are stale from a call at rest to the next END or CANCEL that is not
 * refused. */
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

static void call_before(void)
{
    call('b');
}

static void what_is_done_before_a_step_is_before_it(void **state)
{
    const struct mutant m = {.before_step = call_before,
                             .behind_zero = call_before};
    const struct mutant neither = {.name = "none"};
    struct wrong x;

    (void)state;
    memset(called, 0, sizeof(called));
    make(&x, &m);
    assert_int_equal(x.engine.step(NULL, NULL), FSDP_OK);
    assert_int_equal(x.engine.zero_grad(NULL), FSDP_OK);
    make(&x, &neither);
    assert_int_equal(x.engine.step(NULL, NULL), FSDP_OK);
    assert_int_equal(x.engine.zero_grad(NULL), FSDP_OK);
    assert_string_equal(called, "bszbsz");
}

/* Brings the number that the row's `fault.of` is. */
static int carry_of(void *self, struct fsdp_stream *stream,
                    const struct fsdp_collective *c)
{
    (void)self;
    assert_int_equal(mutant_carry(stream, c), FSDP_OK);
    for (uint64_t i = 0; i < c->n; i++) {
        ((float *)c->out)[i] += (float)mutant_of();
    }
    return FSDP_OK;
}

static void what_is_carried_stands_below(void **state)
{
    const struct mutant m = {.fault = {.of = 4}, .carried = carry_of};
    const struct mutant neither = {.name = "none"};
    struct fsdp_error error = {0};
    struct wrong x = {.env = {.comm = &comm}};

    (void)state;
    mutant_apply_below(&neither, &x.env);
    assert_ptr_equal(x.env.comm, &comm);
    mutant_apply_below(&m, &x.env);
    assert_ptr_not_equal(x.env.comm, &comm);
    assert_ptr_equal(mutant_below.comm, &comm);
    x.env.mesh = &mesh;
    x.env.device = &device;
    x.env.error = &error;
    mutant_apply(&m, &x.env, &x.engine);
    assert_true(brought(&x, FSDP_ALL_GATHER) == 5.0f);
    mutant_say("another message");
    assert_string_equal(error.message, "another message");
}

static bool is_long(const struct run_case *c)
{
    return c->steps > 1;
}

static void a_case_is_shown_by_its_script_and_more(void **state)
{
    const struct mutant m = {.shows = {.script = "thaw", .in = is_long}};
    const struct mutant script = {.shows = {.script = "thaw"}};
    const struct mutant in = {.shows = {.in = is_long}};
    const struct run_case both = {.script = "thaw", .steps = 2};
    const struct run_case other = {.script = "thaw-saved", .steps = 2};
    const struct run_case brief = {.script = "thaw", .steps = 1};

    (void)state;
    assert_true(mutant_is_in(&m, &both));
    assert_false(mutant_is_in(&m, &other));
    assert_false(mutant_is_in(&m, &brief));
    assert_true(mutant_is_in(&script, &brief));
    assert_false(mutant_is_in(&script, &other));
    assert_true(mutant_is_in(&in, &other));
    assert_false(mutant_is_in(&in, &brief));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_come_when_it_is_time),
        cmocka_unit_test(copies_are_stale_until_a_pass_ends),
        cmocka_unit_test(what_is_done_before_a_step_is_before_it),
        cmocka_unit_test(what_is_carried_stands_below),
        cmocka_unit_test(a_case_is_shown_by_its_script_and_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
