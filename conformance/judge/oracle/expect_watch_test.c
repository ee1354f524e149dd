/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_watch_test.c - a watcher of the oracle's walk sees what the walk
 * counts, in its order; and worlds that are too large for any run.
 */
#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the observer saw: as a text, and added up. */
struct seen {
    char text[TESTING_TEXT];
    size_t length;
    uint64_t live[RECORD_N_KINDS], peak[RECORD_N_KINDS], peak_engine;
};

__attribute__((format(printf, 2, 3))) static void add(struct seen *s,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    s->length += (size_t)vsnprintf(
        s->text + s->length, sizeof(s->text) - s->length, format, arguments);
    va_end(arguments);
    assert_true(s->length < sizeof(s->text));
}

static void see_live(void *context, uint32_t kind, uint64_t bytes, bool lives)
{
    struct seen *s = context;
    uint64_t sum = 0;

    assert_true(kind < RECORD_N_KINDS && bytes > 0);
    assert_true(lives || s->live[kind] >= bytes);
    s->live[kind] = lives ? s->live[kind] + bytes : s->live[kind] - bytes;
    s->peak[kind] =
        s->live[kind] > s->peak[kind] ? s->live[kind] : s->peak[kind];
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        sum += s->live[k];
    }
    s->peak_engine = sum > s->peak_engine ? sum : s->peak_engine;
}

static void see_collective(void *context, const struct record_collective *c)
{
    add(context, "%c%u ",
        "ARL"[c->kind == FSDP_ALL_GATHER       ? 0
              : c->kind == FSDP_REDUCE_SCATTER ? 1
                                               : 2],
        c -> unit);
}

static void see_window(void *context, uint32_t unit, bool opens, bool backward)
{
    (void)backward;
    add(context, "%c%u ", opens ? '<' : '>', unit);
}

static void see_point(void *context, uint32_t point, uint32_t module)
{
    add(context, "%c%u ", ".FfBbRr"[point], module);
}

static void watch(const struct testing_model *t, const struct run_case *c,
                  struct seen *s, struct expect *e)
{
    const struct expect_watch w = {see_live, see_collective, see_window,
                                   see_point, s};

    memset(s, 0, sizeof(*s));
    assert_int_equal(expect_make_watched(c, &t->model, &t->units, NULL, &w, e),
                     FSDP_OK);
}

UNIT_TEST(what_is_seen)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 2);
    struct expect e;
    struct seen s;

    testing_model(&t, "-01", "1:4 2:6", "F0 F1 f1 F2 f2 f0 B2 b2 B1 b1",
                  "F1 f1");
    c.strategy = CASE_HYBRID_SHARD;
    watch(&t, &c, &s, &e);
    assert_string_equal(s.text, "F0 <0 A0 F1 f1 >0 <1 A1 F2 f2 >1 f0 "
                                "<1 A1 B2 b2 >1 R1 L1 <0 A0 B1 b1 >0 R0 L0 ");
    assert_int_equal(s.peak_engine, e.peak_engine);
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        assert_int_equal(s.live[k], e.rest.live[k]);
    }
    expect_release(&e);
    /* A unit that stays unsharded behind its forward closes only once. */
    c.strategy = CASE_HYBRID_SHARD_ZERO2;
    watch(&t, &c, &s, &e);
    assert_string_equal(s.text, "F0 <0 A0 F1 f1 <1 A1 F2 f2 f0 <1 B2 b2 >1 R1 "
                                "L1 <0 B1 b1 >0 R0 L0 ");
    assert_int_equal(s.peak_engine, e.peak_engine);
    expect_release(&e);
}

/* What the observer sees of shards that rest on the host. */
UNIT_TEST(what_is_seen_of_the_host)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 2);
    struct expect e;
    struct seen s;

    testing_model(&t, "-01", "1:4 2:6", "F0 F1 f1 F2 f2 f0 B2 b2 B1 b1",
                  "F1 f1");
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    for (c.offload = 0; c.offload <= CASE_OFFLOAD_PARAMS; c.offload++) {
        watch(&t, &c, &s, &e);
        assert_int_equal(s.peak_engine, e.peak_engine);
        for (uint32_t k = 0; k < RECORD_N_KINDS; k++) {
            assert_int_equal(s.live[k], e.rest.live[k]);
            assert_int_equal(s.peak[k], e.peak[k]);
        }
        assert_int_equal(s.peak[RECORD_HOST + FSDP_OPTIM] > 0,
                         c.offload == CASE_OFFLOAD_ALL ||
                             c.offload == CASE_OFFLOAD_OPTIMIZER);
        expect_release(&e);
    }
}

/* No run has so many ranks, but their bytes are known; folds are not. */
UNIT_TEST(a_world_of_65536)
{
    const float x[4] = {1, 2, 3, 4};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, EXPECT_MAX_RANKS, 1);
    struct expect e;

    testing_model(&t, "-0", "1:655360", "F1 f1 B1 b1", "F1 f1");
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.resting, 10);
    assert_int_equal(e.peak_parameters, 4 * (655360 + 10));
    assert_int_equal(e.step.c[0].n, 10);
    assert_true(isnan(expect_fold(&e, 0, 0, x)));
    assert_true(isnan(expect_fold_loss(&e, x)));
    expect_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_seen),
        cmocka_unit_test(what_is_seen_of_the_host),
        cmocka_unit_test(a_world_of_65536),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
