/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_causes_test.c - which of several failures comes first: the earlier one,
 * whatever its level; at the same moment the one of the lower level.
 */
#include "judge/judge_testing.h"
#include "testing/unit_testing.h"

/* A table of three requirements: the last loss, at a low level; the first loss,
 * at a higher one, which needs it; and one that needs the latter. */
enum {
    LATE,
    EARLY,
    LAST,
    N
};

struct table {
    struct testing_run run;
    struct requirement row[N];
    const struct requirement *all[N + 1];
};

static int set_up(void **state)
{
    static struct table t;

    testing_run_make(&t.run);
    t.row[LATE] = *testing_requirements[TESTING_LAST];
    t.row[LATE].id = "test.late";
    t.row[LATE].level = LEVEL_GRADIENT;
    t.row[LATE].needs = NULL;
    t.row[EARLY] = *testing_requirements[TESTING_LOSS];
    t.row[EARLY].id = "test.early";
    t.row[EARLY].level = LEVEL_STEP;
    t.row[EARLY].needs = "test.late";
    t.row[LAST] = *testing_requirements[TESTING_FINITE];
    t.row[LAST].id = "test.last";
    t.row[LAST].needs = "test.early test.late";
    for (uint32_t q = 0; q < N; q++) {
        t.all[q] = &t.row[q];
    }
    t.run.in.requirements = t.all;
    *state = &t;
    return 0;
}

static int tear_down(void **state)
{
    struct table *t = *state;

    testing_run_release(&t->run);
    return 0;
}

/* What the result must say of a requirement in a case, and whether that must be
 * the first cause. */
struct said {
    uint32_t c, q, outcome, blocked_by;
    bool first;
};
#define IS(what)    .outcome = (what), .blocked_by = JUDGE_NONE
#define FAILS       IS(JUDGE_FAIL)
#define PASSES      IS(JUDGE_PASS)
#define BLOCKED(by) .outcome = JUDGE_BLOCKED, .blocked_by = (by)
#define FIRST       FAILS, .first = true

static void check_first(const struct judge_result *r, uint32_t c, uint32_t q)
{
    uint32_t got_c;
    uint32_t got_q;

    assert_true(judge_first_cause(r, &got_c, &got_q));
    assert_int_equal(got_c, c);
    assert_int_equal(got_q, q);
}

static void check_rows(const struct judge_result *r, const struct said *want,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct said *w = &want[i];

        testing_check_item(r, w->c, w->q, w->outcome, w->blocked_by);
        assert_int_equal(judge_item_at(r, w->c, w->q)->detail != NULL,
                         w->outcome == JUDGE_FAIL);
        if (w->first) {
            check_first(r, w->c, w->q);
        }
    }
}

/* Checks a result against rows of struct said; SAYS judges a table first. */
#define CHECK(r, ...)                                       \
    check_rows(r, (const struct said[]){__VA_ARGS__},       \
               sizeof((const struct said[]){__VA_ARGS__}) / \
                   sizeof(struct said))
#define SAYS(t, ...)                                          \
    do {                                                      \
        struct judge_result said = testing_judged(&(t)->run); \
                                                              \
        assert_int_equal(said.verdict, JUDGE_NON_CONFORMANT); \
        CHECK(&said, __VA_ARGS__);                            \
        judge_release(&said);                                 \
    } while (0)

static void lose(struct table *t, uint32_t c, uint32_t step)
{
    t->run.record[c].rank[1].loss[step] = 5;
}

static void the_earlier_one_is_the_cause(void **state)
{
    struct table *t = *state;

    lose(t, 0, 0);
    lose(t, 0, TESTING_STEPS - 1);
    SAYS(t, {0, EARLY, FIRST}, {0, LATE, BLOCKED(EARLY)},
         {0, LAST, BLOCKED(EARLY)}, {1, EARLY, PASSES});
}

static void what_does_not_fail_earlier_stays_blocked(void **state)
{
    struct table *t = *state;

    lose(t, 0, TESTING_STEPS - 1);
    SAYS(t, {0, LATE, FAILS}, {0, EARLY, BLOCKED(LATE)},
         {0, LAST, BLOCKED(LATE)});
}

/* A failure that does not need another is not caused by it: both stand. */
static void what_does_not_wait_blocks_nothing(void **state)
{
    struct table *t = *state;

    t->row[EARLY].needs = NULL;
    lose(t, 0, 0);
    lose(t, 0, TESTING_STEPS - 1);
    SAYS(t, {0, EARLY, FIRST}, {0, LATE, FAILS}, {0, LAST, BLOCKED(EARLY)});
}

/* Otherwise a run in which the only failing MUST is blocked would be
 * INCOMPLETE. */
static void a_should_blocks_no_must(void **state)
{
    struct table *t = *state;

    t->row[EARLY].must = 0;
    t->row[LAST].must = 0;
    lose(t, 0, 0);
    lose(t, 0, TESTING_STEPS - 1);
    SAYS(t, {0, EARLY, FAILS}, {0, LATE, FIRST});
}

/* Of failures in several cases the earlier step comes first, then the lower
 * level. */
static void cases_are_ordered_alike(void **state)
{
    struct table *t = *state;
    struct judge_result r;

    lose(t, 0, TESTING_STEPS - 1);
    lose(t, 1, 0);
    r = testing_judged(&t->run);
    check_first(&r, 1, EARLY);
    assert_true(judge_compare_causes(&r, 1, EARLY, 0, LATE) < 0);
    assert_true(judge_compare_causes(&r, 0, LATE, 1, EARLY) > 0);
    judge_item_at(&r, 0, LATE)->detail->finding.step = 0;
    check_first(&r, 0, LATE);
    judge_release(&r);
}

/* Within a step the order is: which collectives were called, what was seen,
 * what was computed from it. Failures of a run as a whole come last. */
static void moments_of_a_step(void **state)
{
    static const char *const stage[] = {"before",    "collectives",
                                        "unsharded", "local-gradient",
                                        "reduced",   "after"};
    struct table *t = *state;
    struct finding *f;
    struct finding *g;
    struct judge_result r;

    lose(t, 0, 0);
    lose(t, 1, 0);
    r = testing_judged(&t->run);
    f = &judge_item_at(&r, 0, EARLY)->detail->finding;
    g = &judge_item_at(&r, 1, EARLY)->detail->finding;
    f->unit = g->unit = 0;
    for (uint32_t i = 0; i + 1 < sizeof(stage) / sizeof(stage[0]); i++) {
        f->stage = stage[i];
        g->stage = stage[i + 1];
        assert_true(judge_compare_causes(&r, 0, EARLY, 1, EARLY) < 0);
    }
    f->stage = "collectives"; /* how many there are, of no unit */
    f->unit = -1;
    assert_true(judge_compare_causes(&r, 0, EARLY, 1, EARLY) > 0);
    f->stage = "memory";
    f->step = -1;
    assert_true(judge_compare_causes(&r, 0, EARLY, 1, EARLY) > 0);
    judge_release(&r);
}

static void nothing_failed(void **state)
{
    const struct table *t = *state;
    struct judge_result r = testing_judged(&t->run);
    uint32_t c;
    uint32_t q;

    assert_false(judge_first_cause(&r, &c, &q));
    judge_release(&r);
}

/* A case beside training seems wrong, but only training is. Then its plain case
 * is in the run as well, and is wrong. */
static void check_beside(struct table *t, uint32_t outcome, uint32_t blocked_by)
{
    t->row[EARLY].needs = NULL;
    t->run.c[1].scenario = t->run.record[1].c.scenario = CASE_MISUSE;
    lose(t, 1, TESTING_STEPS - 1);
    SAYS(t, {1, LATE, FAILS});
    lose(t, 0, 0);
    SAYS(t, {0, EARLY, FAILS}, {1, LATE, BLOCKED(EARLY)});
    t->run.c[1] = t->run.c[0];
    t->run.c[1].scenario = CASE_MISUSE;
    t->run.record[1].c = t->run.c[1];
    SAYS(t, {1, LATE, .outcome = outcome, .blocked_by = blocked_by});
}

/* It is compared with the plain case, so it can tell what was harmed. */
static void harm_is_told_of_a_right_engine_alone(void **state)
{
    struct table *t = *state;

    t->row[LATE].harmless = true;
    check_beside(t, JUDGE_FAIL, JUDGE_NONE);
}

/* It is compared with the unsharded run, as the plain case is. */
static void what_is_beside_waits_for_training(void **state)
{
    struct table *t = *state;

    t->row[LATE].beside_training = true;
    check_beside(t, JUDGE_BLOCKED, EARLY);
}

/* A failure in what is left when a run is over says nothing of what training
 * computes. */
static void what_is_left_hides_nothing(void **state)
{
    struct table *t = *state;

    t->row[EARLY].needs = NULL;
    t->row[EARLY].of_rest = true;
    t->row[LATE].beside_training = true;
    t->run.c[1].scenario = t->run.record[1].c.scenario = CASE_MISUSE;
    lose(t, 1, TESTING_STEPS - 1);
    lose(t, 0, 0);
    SAYS(t, {0, EARLY, FAILS}, {1, LATE, FAILS});
}

/* A requirement on any script waits for one on the steps of scenarios. */
static void the_general_is_told_where_nothing_else_is(void **state)
{
    struct table *t = *state;

    t->row[EARLY].needs = NULL;
    t->row[LATE].general = true;
    lose(t, 1, TESTING_STEPS - 1);
    SAYS(t, {1, LATE, FAILS});
    lose(t, 0, 0);
    SAYS(t, {0, EARLY, FAILS}, {1, LATE, FAILS});
    /* A failure of a higher level is not its cause; one of the same level
     * is. */
    t->row[LATE].level = t->row[EARLY].level;
    SAYS(t, {0, EARLY, FAILS}, {1, LATE, BLOCKED(EARLY)});
}

/* In the same step of a case the failure that names a place is told, and not
 * the general one. One that names a place only later came of the general
 * one. */
static void the_named_is_told_of_one_step(void **state)
{
    struct table *t = *state;

    t->row[EARLY].needs = NULL;
    t->row[EARLY].general = true;
    t->row[EARLY].level = LEVEL_GRADIENT;
    t->row[LATE].level = LEVEL_STEP;
    lose(t, 0, 0);
    lose(t, 0, TESTING_STEPS - 1);
    SAYS(t, {0, EARLY, FIRST}, {0, LATE, FAILS});
    t->row[LATE].holds = t->row[EARLY].holds;
    SAYS(t, {0, EARLY, BLOCKED(LATE)}, {0, LATE, FIRST});
}

/* Order and needs are copied: the result shares no memory with the other. */
static void the_order_may_be_that_of_another_result(void **state)
{
    struct table *t = *state;
    struct judge_result found;
    struct judge_result like;

    t->row[LAST].needs = NULL;
    t->row[LATE].needs = "test.last";
    t->row[EARLY].needs = "test.late test.last";
    lose(t, 0, TESTING_STEPS - 1);
    found = testing_judged(&t->run);
    t->run.in.like = &found;
    like = testing_judged(&t->run);
    assert_int_equal(like.order[0], LAST);
    assert_int_equal(like.order[2], EARLY);
    assert_memory_equal(like.order, found.order, N * sizeof(*like.order));
    assert_memory_equal(like.place, found.place, N * sizeof(*like.place));
    assert_memory_equal(like.needs.first, found.needs.first,
                        (N + 1) * sizeof(*like.needs.first));
    assert_memory_equal(like.needs.index, found.needs.index,
                        like.needs.first[N] * sizeof(*like.needs.index));
    judge_release(&found);
    CHECK(&like, {0, LAST, PASSES}, {0, LATE, FAILS},
          {0, EARLY, BLOCKED(LATE)});
    judge_release(&like);
    t->run.in.like = NULL;
}

/* The clock is read only if the result is to be timed. */
static void it_is_timed_where_that_is_asked_for(void **state)
{
    struct table *t = *state;

    for (uint32_t timed = 0; timed < 2; timed++) {
        struct judge_result r;

        t->run.in.timed = timed != 0;
        r = testing_judged(&t->run);
        assert_int_equal(r.seconds_in_all > 0, timed);
        for (uint32_t q = 0; q < N; q++) {
            assert_int_equal(r.seconds[q] > 0, timed);
        }
        judge_release(&r);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_earlier_one_is_the_cause),
        TEST(what_does_not_fail_earlier_stays_blocked),
        TEST(what_does_not_wait_blocks_nothing),
        TEST(a_should_blocks_no_must),
        TEST(cases_are_ordered_alike),
        TEST(moments_of_a_step),
        TEST(nothing_failed),
        TEST(harm_is_told_of_a_right_engine_alone),
        TEST(what_is_beside_waits_for_training),
        TEST(what_is_left_hides_nothing),
        TEST(the_general_is_told_where_nothing_else_is),
        TEST(the_named_is_told_of_one_step),
        TEST(the_order_may_be_that_of_another_result),
        TEST(it_is_timed_where_that_is_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
