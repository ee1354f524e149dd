/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_prove_test.c - checks that are wrong themselves: one notices nothing,
 * one does not say why it fails, one cannot tell, and for one no record can be
 * spoiled.
 */
#include "judge/judge_testing.h"
#include "testing/unit_testing.h"

#include <string.h>

static bool believes(const struct expect *e, const struct record *r,
                     struct finding *f)
{
    (void)e;
    (void)r;
    (void)f;
    return true;
}

static bool fails_in_silence(const struct expect *e, const struct record *r,
                             struct finding *f)
{
    (void)e;
    (void)f;
    return r->rank[1].loss[0] == 1;
}

static bool cannot_tell(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    (void)r;
    f->form = FINDING_MISSING;
    return e->lookup(e->lookup_context, "no.such.case") != NULL;
}

static bool spoils_nothing(const struct expect *e, struct record *r)
{
    (void)e;
    (void)r;
    return false;
}

/* Judges by the table with another test.loss. */
static struct judge_result with(struct testing_run *run,
                                const struct requirement *loss)
{
    const struct requirement *table[TESTING_N + 1];
    struct judge_result r;

    memcpy(table, testing_requirements, sizeof(table));
    table[TESTING_LOSS] = loss;
    run->in.requirements = table;
    r = testing_judged(run);
    run->in.requirements = testing_requirements;
    r.requirement = testing_requirements; /* the same ids */
    return r;
}

static void a_check_that_cannot_fail_is_no_check(void **state)
{
    struct testing_run *run = *state;
    struct requirement loss = *testing_requirements[TESTING_LOSS];
    struct judge_result r;

    loss.holds = believes;
    r = with(run, &loss);
    assert_true(r.abandoned);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_non_null(strstr(r.reason, "test.loss does not notice"));
    testing_check_item(&r, 0, TESTING_LOSS, JUDGE_INCOMPLETE, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_FINITE, JUDGE_PASS, JUDGE_NONE);
    assert_non_null(strstr(
        judge_item_at(&r, 0, TESTING_LOSS)->detail->finding.note, "spoiled"));
    judge_release(&r);
    /* A failure that another check finds is found all the same. */
    run->record[0].rank[1].loss[TESTING_STEPS - 1] = 5;
    r = with(run, &loss);
    testing_check_item(&r, 0, TESTING_LAST, JUDGE_FAIL, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    judge_release(&r);
    run->record[0].rank[1].loss[TESTING_STEPS - 1] = 1;
    loss.holds = fails_in_silence;
    r = with(run, &loss);
    assert_true(r.abandoned);
    assert_non_null(strstr(r.reason, "without saying why"));
    judge_release(&r);
}

static void a_check_that_was_never_spoiled_is_shown(void **state)
{
    struct requirement loss = *testing_requirements[TESTING_LOSS];
    struct judge_result r;

    loss.spoil = spoils_nothing;
    r = with(*state, &loss);
    assert_false(r.abandoned);
    assert_true(judge_is_unproved(&r, TESTING_LOSS));
    assert_false(judge_is_unproved(&r, TESTING_FINITE));
    judge_release(&r);
}

static void what_cannot_be_told_is_incomplete(void **state)
{
    struct requirement loss = *testing_requirements[TESTING_LOSS];
    struct judge_result r;

    loss.holds = cannot_tell;
    r = with(*state, &loss);
    testing_check_item(&r, 0, TESTING_LOSS, JUDGE_INCOMPLETE, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_FINITE, JUDGE_PASS, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_RUN(a_check_that_cannot_fail_is_no_check),
        TESTING_RUN(a_check_that_was_never_spoiled_is_shown),
        TESTING_RUN(what_cannot_be_told_is_incomplete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
