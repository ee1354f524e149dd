/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_ended_test.c - a run that ended with an error: what its ranks could no
 * longer be asked is blocked by that error, and does not fail by itself.
 */
#include "judge/judge_testing.h"

#include "testing/unit_testing.h"

#include <signal.h>
#include <string.h>

static bool ended_before(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    (void)e;
    (void)r;
    f->form = FINDING_ENDED;
    return false;
}

/* Judges the run with a test.loss of this id, which finds that the rank ended
 * before. */
static struct judge_result judged(struct testing_run *run, const char *id)
{
    const struct requirement *table[TESTING_N + 1];
    struct requirement loss = *testing_requirements[TESTING_LOSS];
    struct judge_result r;

    memcpy(table, testing_requirements, sizeof(table));
    loss.id = id;
    loss.holds = ended_before;
    table[TESTING_LOSS] = &loss;
    run->in.requirements = table;
    assert_int_equal(judge(&run->in, &r), FSDP_OK);
    return r;
}

UNIT_TEST(it_waits_for_what_ended_the_run)
{
    struct testing_run run;
    struct judge_result r;

    testing_run_make(&run);
    r = judged(&run, REQUIREMENT_COMPLETES);
    assert_int_equal(judge_item_at(&r, 0, TESTING_LOSS)->outcome,
                     JUDGE_BLOCKED);
    assert_int_equal(judge_item_at(&r, 0, TESTING_LOSS)->blocked_by,
                     TESTING_LOSS);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
    testing_run_release(&run);
}

/* In a table without run.completes: nothing else would fail. */
UNIT_TEST(without_it_there_is_a_failure)
{
    struct testing_run run;
    struct judge_result r;

    testing_run_make(&run);
    r = judged(&run, "test.loss");
    assert_int_equal(judge_item_at(&r, 0, TESTING_LOSS)->outcome, JUDGE_FAIL);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    judge_release(&r);
    testing_run_release(&run);
}

/* A rank that was killed from outside was not killed by the engine, so nothing
 * is known of the case. A rank that dies of a signal of its own is an error. */
UNIT_TEST(killed_from_outside_is_incomplete)
{
    static const struct {
        uint32_t signal, outcome, verdict;
    } row[] = {{SIGKILL, JUDGE_INCOMPLETE, JUDGE_UNDECIDED},
               {SIGSEGV, JUDGE_ERROR, JUDGE_NON_CONFORMANT}};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct testing_run run;
        struct judge_result r;

        testing_run_make(&run);
        run.record[0].rank[1].end = WORLD_SIGNALLED;
        run.record[0].rank[1].signal = row[i].signal;
        assert_int_equal(judge(&run.in, &r), FSDP_OK);
        assert_int_equal(r.cases[0].outcome, row[i].outcome);
        assert_int_equal(r.verdict, row[i].verdict);
        assert_non_null(strstr(r.cases[0].reason, "rank 1 was killed"));
        judge_release(&r);
        testing_run_release(&run);
    }
}

/* How drawn scripts change a verdict that would be CONFORMANT. */
UNIT_TEST(drawn_scripts_count)
{
    static const struct {
        struct judge_drawn drawn;
        uint32_t verdict;
        const char *reason;
    } row[] = {
        {{.wanted = false}, JUDGE_CONFORMANT, ""},
        {{.wanted = true, .played = 9}, JUDGE_CONFORMANT, ""},
        {{.wanted = true}, JUDGE_CONFORMANT, "named scripts only"},
        {{.wanted = true, .played = 9, .incomplete = true},
         JUDGE_UNDECIDED,
         "drawn scripts without a verdict"},
        {{.wanted = true,
          .played = 9,
          .failed = 2,
          .incomplete = true,
          .first = "script.2.7"},
         JUDGE_NON_CONFORMANT,
         "2 of 9 drawn scripts fail: script.2.7"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct testing_run run;
        struct judge_result r;

        testing_run_make(&run);
        run.in.drawn = &row[i].drawn;
        assert_int_equal(judge(&run.in, &r), FSDP_OK);
        assert_int_equal(r.verdict, row[i].verdict);
        assert_string_equal(r.reason, row[i].reason);
        judge_release(&r);
        testing_run_release(&run);
    }
}

static const char *interrupted(void *context)
{
    (void)context;
    return "interrupted";
}

/* The reason of a run that was stopped names both. */
UNIT_TEST(what_drawn_scripts_found_is_not_lost)
{
    static const struct judge_drawn drawn = {.wanted = true,
                                             .played = 9,
                                             .failed = 2,
                                             .incomplete = true,
                                             .first = "script.1.7"};
    struct testing_run run;
    struct judge_result r;

    testing_run_make(&run);
    run.in.drawn = &drawn;
    run.in.stopped = interrupted;
    assert_int_equal(judge(&run.in, &r), FSDP_OK);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    assert_non_null(strstr(r.reason, "interrupted: 0 of "));
    assert_non_null(
        strstr(r.reason, " not run; 2 of 9 drawn scripts fail: script.1.7"));
    judge_release(&r);
    testing_run_release(&run);
}

static int refuse_model(void *context, const struct run_case *c,
                        struct judge_model *out, struct fsdp_error *error)
{
    (void)context;
    (void)c;
    (void)out;
    (void)error;
    return FSDP_ERR_ABORTED;
}

/* If somebody waits for a run that was stopped, no models are made of cases
 * that were not run; these count as not run, not as not judged. */
static void what_was_not_run_is_not_described(void **state)
{
    struct testing_run run;
    struct judge_result r;

    (void)state;
    testing_run_make(&run);
    run.missing[1] = true;
    run.in.stopped = interrupted;
    run.in.describe = refuse_model;
    for (uint32_t hurried = 0; hurried < 2; hurried++) {
        run.in.hurried = hurried != 0;
        assert_int_equal(judge(&run.in, &r), FSDP_OK);
        assert_int_equal(r.not_run, hurried);
        assert_int_equal(r.not_judged, 2 - hurried);
        assert_string_equal(r.cases[1].reason, hurried
                                                   ? "not run: interrupted"
                                                   : "not judged: interrupted");
        testing_check_item(&r, 1, TESTING_RING, JUDGE_INCOMPLETE, JUDGE_NONE);
        judge_release(&r);
    }
    testing_run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_scripts_count),
        cmocka_unit_test(what_drawn_scripts_found_is_not_lost),
        cmocka_unit_test(what_was_not_run_is_not_described),
        cmocka_unit_test(killed_from_outside_is_incomplete),
        cmocka_unit_test(it_waits_for_what_ended_the_run),
        cmocka_unit_test(without_it_there_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
