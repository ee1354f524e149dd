/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement_set_test.c - what a table of requirements may not be, the order
 * in which it is judged, and the claims that a case needs.
 */
#include "cases/case_claims.h"
#include "judge/judge_testing.h"
#include "record/record.h"
#include "testing/unit_testing.h"
#include <stdio.h>
#include <string.h>

/* Checks the table with test.loss, the first behind `survives`, replaced. */
static int check(struct requirement q, char why[200])
{
    const struct requirement *table[TESTING_N + 1];

    memcpy(table, testing_requirements, sizeof(table));
    table[TESTING_LOSS] = &q;
    why[0] = '\0';
    return requirement_set_check(table, why, 200);
}

UNIT_TEST(a_good_table)
{
    char why[200] = "";

    assert_int_equal(requirement_set_check(testing_requirements, why, 200),
                     FSDP_OK);
    assert_string_equal(why, "");
    assert_int_equal(requirement_count(testing_requirements), TESTING_N);
    assert_int_equal(requirement_index(testing_requirements, "test.peak"),
                     TESTING_PEAK);
    assert_int_equal(requirement_index(testing_requirements, "test.pea"),
                     TESTING_N);
}

UNIT_TEST(ids)
{
    static const char *const bad[] = {
        "test",       "test.Loss",  "test.loss-1", "test.1",
        "test..loss", "test.",      ".loss",       "test.loss-",
        "",           "test.lo_ss", "test.peak", /* there is one */
    };
    struct requirement q = *testing_requirements[TESTING_LOSS];
    char why[200];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        q.id = bad[i];
        assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
        assert_string_not_equal(why, "");
    }
    q.id = NULL;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
}

UNIT_TEST(needs)
{
    struct requirement q = *testing_requirements[TESTING_LOSS];
    char why[200];

    q.needs = "run.survives test.nowhere";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    assert_non_null(strstr(why, "does not exist"));
    q.needs = "test.peak";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    assert_non_null(strstr(why, "SHOULD"));
    q.needs = "test.last"; /* which needs test.loss, three steps down */
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    assert_non_null(strstr(why, "circle"));
    q.needs = "test.loss";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q.needs = "a.name-that-is-longer-than-any-id-may-be-and-would-be-cut-off-"
              "without-a-word";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q.needs = "  run.survives  ";
    assert_int_equal(check(q, why), FSDP_OK);
}

UNIT_TEST(fields)
{
    const struct requirement good = *testing_requirements[TESTING_LOSS];
    struct requirement q = good;
    char why[200];

    q.text = "No full stop";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q.text = "Trails off...";
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q.text = NULL;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q = good;
    q.level = N_LEVELS;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q = good;
    q.must = 2;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q = good;
    q.since = NULL;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q = good;
    q.spoil = NULL;
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
    q.check = &(const struct requirement_check){.holds = NULL};
    assert_int_equal(check(q, why), FSDP_ERR_FORMAT);
}

/* Rows of all families: well formed, and sorted, as reports are. */
UNIT_TEST(the_suite_s_own_table)
{
    const struct requirement *const *table = requirement_table();
    char why[200] = "";

    assert_int_equal(requirement_set_check(table, why, sizeof(why)), FSDP_OK);
    for (uint32_t i = 1; table[i]; i++) {
        assert_true(strcmp(table[i - 1]->id, table[i]->id) < 0);
    }
    assert_ptr_equal(requirement_table(), table);
}

/* What a row leaves out is as in the first row of its family. */
UNIT_TEST(what_a_family_shares)
{
    const struct requirement *const *table = requirement_table();
    const struct requirement *step =
        table[requirement_index(table, "error.step-in-pass")];
    const struct requirement *first =
        table[requirement_index(table, "error.first-stays")];
    const struct requirement *ahead =
        table[requirement_index(table, "prefetch.forward-ahead")];
    const struct requirement *weighed =
        table[requirement_index(table, "memory.bounded")];

    assert_string_equal(step->since, "1.0");
    assert_int_equal(step->must, 1);
    assert_int_equal(step->level, LEVEL_ERRORS);
    assert_string_equal(step->needs, "run.survives run.ranks-present");
    assert_string_equal(first->since, "1.1");
    assert_string_equal(first->needs,
                        "run.survives run.ranks-present error.says-why");
    assert_int_equal(ahead->must, 0);
    assert_int_equal(weighed->must, 0);
    assert_non_null(weighed->looked_at);
    assert_non_null(weighed->applies);
    assert_non_null(weighed->check);
    assert_string_equal(weighed->claim, "strict-storage");
}

UNIT_TEST(the_order_of_judging)
{
    const struct requirement *backwards[TESTING_N + 1] = {NULL};
    struct requirement_needs needs;
    uint32_t order[TESTING_N];
    uint32_t place[TESTING_N];

    for (uint32_t i = 0; i < TESTING_N; i++) {
        backwards[i] = testing_requirements[TESTING_N - 1 - i];
    }
    assert_int_equal(requirement_find_needs(backwards, &needs), FSDP_OK);
    assert_int_equal(requirement_order(&needs, TESTING_N, order), FSDP_OK);
    requirement_release_needs(&needs);
    for (uint32_t i = 0; i < TESTING_N; i++) {
        place[TESTING_N - 1 - order[i]] = i;
    }
    assert_true(place[TESTING_SURVIVES] < place[TESTING_LOSS]);
    assert_true(place[TESTING_LOSS] < place[TESTING_FINITE]);
    assert_true(place[TESTING_FINITE] < place[TESTING_RING]);
    assert_true(place[TESTING_RING] < place[TESTING_LAST]);
    assert_true(place[TESTING_SURVIVES] < place[TESTING_PEAK]);
}

static void check_claims(const struct run_case *c, const char *want)
{
    const char *list[CASE_MAX_CLAIMS];
    char text[256] = "";
    size_t end = 0;
    uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        end += (size_t)snprintf(text + end, sizeof(text) - end, "%s%s",
                                i > 0 ? " " : "", list[i]);
        assert_true(end < sizeof(text));
    }
    assert_string_equal(text, want);
}

UNIT_TEST(claims_of_cases)
{
    struct run_case c = testing_case(CASE_HYBRID_SHARD_ZERO2, 4, 2);

    check_claims(&c, "flat hybrid-shard-zero2 fold-rank sgd");
    c = testing_case(CASE_FULL_SHARD, 4, 1);
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    c.fold = FSDP_FOLD_TREE;
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    c.keep_root = 1;
    c.microbatches = 3;
    c.sync[0] = 1;
    c.sync[2] = 1;
    c.scenario = CASE_SUMMON;
    c.reduces_in_flight = 1;
    check_claims(&c, "per-parameter full-shard fold-tree adamw keep-root "
                     "no-sync unshard-all prefetch");
    c = testing_case(CASE_NO_SHARD, 4, 4);
    c.scenario = CASE_EVAL;
    c.fold = FSDP_FOLD_RING;
    c.optimizer = FSDP_OPTIMIZER_MOMENTUM;
    check_claims(&c, "flat no-shard fold-ring momentum eval");
    c.scenario = CASE_CANCEL;
    c.strategy = CASE_N_STRATEGIES;
    check_claims(&c, "flat fold-ring momentum cancel unknown");
}

/* Claims that cases of the manifest need, and that requirements belong to, are
 * all in the table of claims. */
UNIT_TEST(claims_are_in_the_table)
{
    const char *list[CASE_MAX_CLAIMS];
    struct fsdp_error error = {0};
    struct case_list cases;

    assert_int_equal(manifest_make(&cases, &error), FSDP_OK);
    for (uint32_t i = 0; i < cases.n; i++) {
        const uint32_t n = case_claims(&cases.c[i], list);

        assert_in_range(n, 4, CASE_MAX_CLAIMS);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(claim_is_known(list[k]));
        }
    }
    manifest_release(&cases);
    for (const struct requirement *const *q = requirement_table(); *q; q++) {
        assert_true(!(*q)->claim || claim_is_known((*q)->claim));
    }
    assert_true(claim_is_known("workload-mlp"));
    assert_false(claim_is_known("workloads"));
    assert_false(claim_is_known("fla"));
    assert_false(claim_is_known("flat "));
    assert_false(claim_is_known(""));
}

UNIT_TEST(a_copy_is_deep)
{
    struct testing_run run;
    struct record_rank *rank = NULL;
    struct record copy;

    testing_run_make(&run);
    rank = &run.record[0].rank[1];
    rank->n_tensors = 1;
    rank->tensor = test_calloc(1, sizeof(*rank->tensor));
    rank->tensor[0].n = 2;
    rank->tensor[0].data = test_calloc(2, sizeof(float));
    rank->tensor[0].data[1] = 7;
    rank->n_sequences = 1;
    rank->sequence = test_calloc(1, sizeof(*rank->sequence));
    rank->sequence[0].n = 1;
    rank->sequence[0].c = test_calloc(1, sizeof(*rank->sequence[0].c));
    rank->sequence[0].c[0].unit = 5;
    assert_int_equal(record_copy(&run.record[0], &copy), FSDP_OK);
    copy.rank[1].tensor[0].data[1] = 8;
    copy.rank[1].sequence[0].c[0].unit = 6;
    copy.rank[1].loss[0] = 9;
    copy.claim[0][0] = 'x';
    assert_true(rank->tensor[0].data[1] == 7);
    assert_int_equal(rank->sequence[0].c[0].unit, 5);
    assert_true(rank->loss[0] == 1);
    assert_true(record_claims(&run.record[0], "flat"));
    assert_int_equal(copy.rank[1].n_tensors, 1);
    assert_int_equal(copy.n_ranks, 2);
    record_release(&copy);
    test_free(rank->tensor[0].data);
    test_free(rank->tensor);
    test_free(rank->sequence[0].c);
    test_free(rank->sequence);
    rank->n_tensors = rank->n_sequences = 0;
    rank->tensor = NULL;
    rank->sequence = NULL;
    testing_run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_table),
        cmocka_unit_test(ids),
        cmocka_unit_test(needs),
        cmocka_unit_test(fields),
        cmocka_unit_test(the_suite_s_own_table),
        cmocka_unit_test(what_a_family_shares),
        cmocka_unit_test(the_order_of_judging),
        cmocka_unit_test(claims_of_cases),
        cmocka_unit_test(claims_are_in_the_table),
        cmocka_unit_test(a_copy_is_deep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
