/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_ended_test.c - a run that ended with an error: what its ranks were not
 * asked any more is blocked by that error, and is not a failure of its own.
 */
#include "judge/judge_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* Judges with a test.loss of this id that says so. */
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

static void it_waits_for_what_ended_the_run(void **state)
{
    struct testing_run run;
    struct judge_result r;

    (void)state;
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

/* A table without that requirement: nothing else would fail. */
static void without_it_there_is_a_failure(void **state)
{
    struct testing_run run;
    struct judge_result r;

    (void)state;
    testing_run_make(&run);
    r = judged(&run, "test.loss");
    assert_int_equal(judge_item_at(&r, 0, TESTING_LOSS)->outcome, JUDGE_FAIL);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    judge_release(&r);
    testing_run_release(&run);
}

/* Who kills a rank is not the engine: nothing is known of the case. But a rank
 * that dies of a signal of its own making is an error. */
static void killed_from_outside_is_incomplete(void **state)
{
    static const struct {
        uint32_t signal, outcome, verdict;
    } row[] = {{SIGKILL, JUDGE_INCOMPLETE, JUDGE_UNDECIDED},
               {SIGSEGV, JUDGE_ERROR, JUDGE_NON_CONFORMANT}};

    (void)state;
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

/* What drawn scripts take from a verdict that would be CONFORMANT. */
static void drawn_scripts_count(void **state)
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

    (void)state;
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

/* Of a run that was stopped it says both. */
static void what_drawn_scripts_found_is_not_lost(void **state)
{
    static const struct judge_drawn drawn = {.wanted = true,
                                             .played = 9,
                                             .failed = 2,
                                             .incomplete = true,
                                             .first = "script.1.7"};
    struct testing_run run;
    struct judge_result r;

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_scripts_count),
        cmocka_unit_test(what_drawn_scripts_found_is_not_lost),
        cmocka_unit_test(killed_from_outside_is_incomplete),
        cmocka_unit_test(it_waits_for_what_ended_the_run),
        cmocka_unit_test(without_it_there_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
