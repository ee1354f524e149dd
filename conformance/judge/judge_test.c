/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_test.c - outcomes and verdicts on a run that is made up: what is well
 * passes, and each way of being broken comes to its own outcome.
 */
#include "judge/judge_testing.h"
#include "testing/unit_testing.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void all_is_well(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r = testing_judged(run);

    assert_int_equal(r.verdict, JUDGE_CONFORMANT);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.count[JUDGE_PASS], 10);
    assert_int_equal(r.count[JUDGE_NOT_APPLICABLE], 2);
    assert_int_equal(r.expected, 2);
    assert_int_equal(r.executed, 2);
    assert_int_equal(r.highest_level, LEVEL_STEP); /* above: a SHOULD */
    assert_string_equal(r.engine, "made-up");
    assert_true(r.cases[0].has_losses);
    assert_int_equal(r.cases[0].n_losses, TESTING_STEPS);
    assert_int_equal(r.cases[0].losses_off, 0);
    assert_true(r.cases[0].final_loss == 1);
    assert_int_equal(r.cases[0].peak, r.cases[0].peak_expected);
    assert_int_equal(run->n_next, 3); /* after the identity, after each case */
    for (uint32_t q = 0; q < TESTING_N; q++) {
        assert_int_equal(r.n_proofs[q], q == TESTING_RING ? 0 : 2);
        assert_false(judge_is_unproved(&r, q));
    }
    judge_release(&r);
}

static void a_failure_blocks_what_needs_it(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;
    const struct finding *f = NULL;

    run->record[0].rank[1].loss[0] = NAN;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    testing_check_item(&r, 0, TESTING_SURVIVES, JUDGE_PASS, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_LOSS, JUDGE_FAIL, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_FINITE, JUDGE_BLOCKED, TESTING_LOSS);
    testing_check_item(&r, 0, TESTING_RING, JUDGE_NOT_APPLICABLE, JUDGE_NONE);
    /* Through one that does not apply, to the first cause. */
    testing_check_item(&r, 0, TESTING_LAST, JUDGE_BLOCKED, TESTING_LOSS);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_PASS, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_LAST, JUDGE_PASS, JUDGE_NONE);
    assert_int_equal(r.highest_level, LEVEL_RUN);
    assert_int_equal(r.cases[0].losses_off, 1);
    /* Element 700 of parameter 1, a unit of 1024 in two halves. */
    f = &judge_item_at(&r, 0, TESTING_LOSS)->detail->finding;
    assert_int_equal(f->rank, 1);
    assert_int_equal(f->unit, 1);
    assert_int_equal(f->flat, 700);
    assert_int_equal(f->shard, 1);
    assert_int_equal(f->local, 188);
    assert_string_equal(judge_item_at(&r, 0, TESTING_LOSS)->detail->unit, "m2");
    assert_string_equal(judge_item_at(&r, 0, TESTING_LOSS)->detail->parameter,
                        "p1");
    judge_release(&r);
}

static void what_lies_nowhere_has_no_place(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;
    const struct finding *f = NULL;

    run->record[0].rank[1].loss[0] = TESTING_BEYOND;
    r = testing_judged(run);
    f = &judge_item_at(&r, 0, TESTING_LOSS)->detail->finding;
    assert_int_equal(f->element, 1024);
    assert_int_equal(f->unit, 1);
    assert_int_equal(f->flat, -1);
    assert_int_equal(f->shard, -1);
    assert_int_equal(f->local, -1);
    judge_release(&r);
}

static void a_nan_at_the_end_fails(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->record[1].rank[0].loss[TESTING_STEPS - 1] = NAN;
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_FINITE, JUDGE_FAIL, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_LAST, JUDGE_BLOCKED, TESTING_FINITE);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    judge_release(&r);
}

static void a_crash_is_an_error(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;
    struct record_rank *rank = run->record[0].rank;

    rank[0].end = WORLD_TIMED_OUT;
    rank[0].n_collectives = 12;
    rank[0].in_collective = 1;
    rank[0].last_kind = FSDP_REDUCE_SCATTER;
    rank[0].last_unit = 3;
    rank[1].end = WORLD_SIGNALLED;
    rank[1].signal = 11;
    rank[1].present = false;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_SURVIVES, JUDGE_ERROR, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_LOSS, JUDGE_BLOCKED, TESTING_SURVIVES);
    testing_check_item(&r, 0, TESTING_LAST, JUDGE_BLOCKED, TESTING_SURVIVES);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_BLOCKED, TESTING_SURVIVES);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    assert_int_equal(r.highest_level, -1);
    assert_string_equal(r.cases[0].reason,
                        "rank 1 was killed by signal 11 (SIGSEGV) "
                        "before any collective; rank 0 made no progress in "
                        "reduce-scatter 12 of unit 3");
    judge_release(&r);
}

static void a_hang_is_a_timeout(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->record[0].rank[1].end = WORLD_TIMED_OUT;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_SURVIVES, JUDGE_TIMEOUT, JUDGE_NONE);
    testing_check_item(&r, 0, TESTING_FINITE, JUDGE_BLOCKED, TESTING_SURVIVES);
    assert_int_equal(r.verdict, JUDGE_NON_CONFORMANT);
    judge_release(&r);
}

static bool is_isolated(const struct record *r)
{
    return r->isolation[0] != '\0';
}

/* In one case the record has what the requirement is about, in the other it
 * does not; where the rank died that is not known. */
static void what_was_not_looked_at_does_not_apply(void **state)
{
    struct testing_run *run = *state;
    const struct requirement *table[TESTING_N + 1];
    struct requirement peak = *testing_requirements[TESTING_PEAK];
    struct judge_result r;

    memcpy(table, testing_requirements, sizeof(table));
    peak.looked_at = is_isolated;
    table[TESTING_PEAK] = &peak;
    run->in.requirements = table;
    snprintf(run->record[0].isolation, sizeof(run->record[0].isolation),
             "limits");
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_PASS, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_PEAK, JUDGE_NOT_APPLICABLE, JUDGE_NONE);
    assert_int_equal(r.n_proofs[TESTING_PEAK], 1);
    assert_int_equal(r.verdict, JUDGE_CONFORMANT);
    judge_release(&r);
    run->record[1].rank[0].end = WORLD_SIGNALLED;
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_PEAK, JUDGE_BLOCKED, TESTING_SURVIVES);
    judge_release(&r);
}

/* One of two ranks shows whole parameters. A requirement that puts together
 * those of both is not asked of that record, and there is no verdict. */
static void a_sampled_record_is_a_selection(void **state)
{
    struct testing_run *run = *state;
    const struct requirement *table[TESTING_N + 1];
    struct requirement peak = *testing_requirements[TESTING_PEAK];
    struct judge_result r;

    memcpy(table, testing_requirements, sizeof(table));
    peak.across = true;
    table[TESTING_PEAK] = &peak;
    run->in.requirements = table;
    run->record[1].rank[1].unsampled = 1;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_PASS, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_PEAK, JUDGE_NOT_APPLICABLE, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_LOSS, JUDGE_PASS, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_int_equal(r.sampled.ranks, 1);
    assert_int_equal(r.sampled.of, 2);
    assert_string_equal(r.sampled.unasked, peak.id);
    assert_non_null(strstr(r.reason, ", whole parameters of 1 of 2 ranks; all "
                                     "of it passed"));
    assert_true(judge_is_selection(&r));
    judge_release(&r);
}

/* Ranks called more collectives than records follow: the result says how many,
 * and in how many cases. */
static void what_is_counted_alone_is_said(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r = testing_judged(run);

    assert_int_equal(r.followed.cases, 0);
    judge_release(&r);
    for (uint32_t k = 0; k < 2; k++) {
        struct record_account *const a = &run->record[k].rank[1].account;

        a->n_payloads = 3;
        a->payload = calloc(a->n_payloads, sizeof(*a->payload));
        a->carried.n_rows = 2;
        a->carried.row[0].calls = 2;
        a->carried.row[1].calls = k == 0 ? 1 : 7;
    }
    r = testing_judged(run);
    assert_int_equal(r.followed.cases, 1);
    assert_int_equal(r.followed.known, 3);
    assert_int_equal(r.followed.of, 9);
    judge_release(&r);
    run->record[1].rank[1].account.carried.row[1].calls = UINT64_MAX;
    r = testing_judged(run);
    assert_int_equal(r.followed.of, UINT32_MAX);
    judge_release(&r);
}

static void a_missing_record_is_incomplete(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->missing[1] = true;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_int_equal(r.executed, 1);
    assert_int_equal(r.expected, 2);
    testing_check_item(&r, 1, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_RING, JUDGE_NOT_APPLICABLE, JUDGE_NONE);
    assert_string_equal(r.cases[1].reason, "there is no record");
    assert_string_equal(r.reason, "1 of 2 cases have a record");
    judge_release(&r);
    run->missing[1] = false;
    run->malformed[1] = true;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_string_equal(r.cases[1].reason, "the record cannot be read: "
                                           "rank-1.json: no losses");
    judge_release(&r);
}

static void nothing_run_is_incomplete(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->missing[0] = run->missing[1] = true;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_string_equal(r.reason, "nothing was run that passed");
    judge_release(&r);
    run->in.n_cases = run->in.n_manifest = 0;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_int_equal(r.highest_level, -1);
    judge_release(&r);
}

static void records_of_others_do_not_count(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->record[1].c.ranks = 3;
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    judge_release(&r);
    run->record[1].c.ranks = 2;
    snprintf(run->record[1].engine, sizeof(run->record[1].engine), "other");
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    judge_release(&r);
    snprintf(run->record[1].engine, sizeof(run->record[1].engine), "made-up");
    snprintf(run->record[1].claim[5], sizeof(run->record[1].claim[5]), "clip");
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
}

static void a_curve_needs_its_baseline(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->no_baseline = true;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
    run->no_baseline = false;
    run->baseline.rank[1].status = FSDP_ERR_INTERNAL;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    judge_release(&r);
}

static void what_the_suite_lacks_is_skipped(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->no_model = true;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_LOSS, JUDGE_SKIP, JUDGE_NONE);
    assert_string_equal(r.cases[0].reason,
                        "the suite has no such model: no such size");
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
}

static void what_is_not_claimed_is_not_asked(void **state)
{
    static const char *const claims[] = {"flat", "full-shard", "sgd",
                                         "fold-rank", NULL};
    struct testing_run *run = *state;
    struct judge_result r;

    /* Case 1 needs shard-grad-op, TESTING_PEAK strict-memory. */
    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        run->record[i].n_claims = 4;
    }
    run->missing[1] = true;
    run->in.claims = claims;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_CONFORMANT);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_NOT_CLAIMED, JUDGE_NONE);
    testing_check_item(&r, 1, TESTING_LOSS, JUDGE_NOT_CLAIMED, JUDGE_NONE);
    assert_int_equal(r.not_claimed, 1);
    assert_int_equal(r.expected, 1);
    assert_int_equal(r.count[JUDGE_NOT_CLAIMED], 6);
    judge_release(&r);
}

static void a_record_of_another_kind_of_world_is_none(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    /* An adapter's records are judged otherwise, so all or none are. */
    snprintf(run->record[1].world, sizeof(run->record[1].world), "adapter");
    r = testing_judged(run);
    testing_check_item(&r, 1, TESTING_SURVIVES, JUDGE_INCOMPLETE, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
}

/* The result says it if all records do, and else not at all. */
static void ranks_of_every_record_are_isolated(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    for (int said = 0; said < 4; said++) {
        for (int k = 0; k < 2; k++) {
            snprintf(run->record[k].isolation, sizeof(run->record[k].isolation),
                     "%s", said >> k & 1 ? "limits" : "");
        }
        r = testing_judged(run);
        assert_string_equal(r.isolation, said == 3 ? "limits" : "");
        judge_release(&r);
    }
}

static void the_core_must_be_claimed(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        run->c[i].strategy = CASE_SHARD_GRAD_OP;
        run->record[i].c.strategy = CASE_SHARD_GRAD_OP;
        snprintf(run->record[i].claim[1], sizeof(run->record[i].claim[1]),
                 "clip"); /* not full-shard */
    }
    run->c[1].scenario = run->record[1].c.scenario = CASE_MISUSE;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_string_equal(r.reason, "the engine does not claim full-shard");
    judge_release(&r);
}

static void a_should_does_not_decide(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->record[0].rank[0].memory.peak_parameters += 4;
    r = testing_judged(run);
    testing_check_item(&r, 0, TESTING_PEAK, JUDGE_FAIL, JUDGE_NONE);
    assert_int_equal(r.verdict, JUDGE_CONFORMANT);
    assert_int_equal(r.count[JUDGE_FAIL], 1);
    judge_release(&r);
}

static void a_selection_is_incomplete(void **state)
{
    static const char *const only[] = {"test.finite", NULL};
    struct testing_run *run = *state;
    struct judge_result r;

    run->in.n_manifest = 3;
    r = testing_judged(run);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_int_equal(r.count[JUDGE_PASS], 10);
    assert_string_equal(r.reason,
                        "a selection of 2 of 3 cases; all of it passed");
    judge_release(&r);
    run->record[0].rank[0].memory.peak_parameters += 4; /* a SHOULD */
    r = testing_judged(run);
    assert_string_equal(r.reason, "a selection of 2 of 3 cases");
    judge_release(&r);
    run->in.n_manifest = 2;
    run->in.only = only;
    r = testing_judged(run);
    assert_string_equal(r.reason, "a selection of 1 of 6 requirements; all of "
                                  "it passed");
    judge_release(&r);
    run->record[0].rank[0].loss[0] = 3; /* judged, and not reported */
    r = testing_judged(run);
    assert_int_equal(r.count[JUDGE_PASS], 1);
    assert_int_equal(r.count[JUDGE_BLOCKED], 1);
    assert_int_equal(r.count[JUDGE_FAIL], 0);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    judge_release(&r);
}

static void an_input_without_functions(void **state)
{
    struct testing_run *run = *state;
    struct judge_result r;

    run->in.describe = NULL;
    assert_int_equal(judge(&run->in, &r), FSDP_ERR_INVALID);
    judge_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_RUN(all_is_well),
        TESTING_RUN(a_failure_blocks_what_needs_it),
        TESTING_RUN(what_lies_nowhere_has_no_place),
        TESTING_RUN(a_nan_at_the_end_fails),
        TESTING_RUN(a_crash_is_an_error),
        TESTING_RUN(a_hang_is_a_timeout),
        TESTING_RUN(what_was_not_looked_at_does_not_apply),
        TESTING_RUN(a_sampled_record_is_a_selection),
        TESTING_RUN(what_is_counted_alone_is_said),
        TESTING_RUN(a_missing_record_is_incomplete),
        TESTING_RUN(nothing_run_is_incomplete),
        TESTING_RUN(records_of_others_do_not_count),
        TESTING_RUN(a_curve_needs_its_baseline),
        TESTING_RUN(what_the_suite_lacks_is_skipped),
        TESTING_RUN(what_is_not_claimed_is_not_asked),
        TESTING_RUN(a_record_of_another_kind_of_world_is_none),
        TESTING_RUN(ranks_of_every_record_are_isolated),
        TESTING_RUN(the_core_must_be_claimed),
        TESTING_RUN(a_should_does_not_decide),
        TESTING_RUN(a_selection_is_incomplete),
        TESTING_RUN(an_input_without_functions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
