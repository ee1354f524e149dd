/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_adapter_test.c - claims that only an adapter must make, and what is
 * asked of an adapter that makes them.
 */
#include "judge/judge_adapter.h"

#include "judge/compare/compare.h"
#include "judge/judge_testing.h"
#include "judge/oracle/expect_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

static int setup(void **state)
{
    struct fixture *x = fixture_open(state);

    testing_model(&x->t, "-01", "1:5 2:4", "F1 f1 F2 f2 B2 b2 B1 b1", "F1 f1");
    x->c = testing_case(CASE_FULL_SHARD, 2, 1);
    fixture_make(x);
    return 0;
}

static bool wants(const struct run_case *c, const char *claim)
{
    char list[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES];
    const uint32_t n = judge_adapter_claims(c, list);

    assert_true(n <= JUDGE_ADAPTER_CLAIMS);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i], claim) == 0) {
            return true;
        }
    }
    return false;
}

static void what_only_an_adapter_must_claim(void **state)
{
    struct fixture *x = *state;
    struct run_case c = x->c;

    c.wrap = CASE_WRAP_LAYER;
    assert_false(wants(&c, "answers"));
    assert_false(wants(&c, "reshard-root"));
    c.scenario = CASE_MISUSE;
    assert_true(wants(&c, "answers"));
    c.scenario = CASE_OPTIONS;
    assert_true(wants(&c, "answers"));
    c.scenario = CASE_AGAIN;
    assert_true(wants(&c, "again"));
    c.scenario = CASE_SUMMON;
    assert_false(wants(&c, "unshard-f32"));
    c.precision = CASE_BF16;
    assert_true(wants(&c, "unshard-f32"));
    c.scenario = CASE_AGAIN;
    assert_false(wants(&c, "unshard-f32"));
    c.precision = CASE_F32;
    c.divide_factor = 4.0f;
    assert_true(wants(&c, "divide-factor"));
    for (uint32_t wrap = 0; wrap <= CASE_WRAP_IGNORE; wrap++) {
        c.wrap = wrap;
        assert_int_equal(
            wants(&c, "reshard-root"),
            wrap == CASE_WRAP_WHOLE || wrap == CASE_WRAP_HEAD ||
                wrap == CASE_WRAP_SIZE || wrap == CASE_WRAP_BLOCK ||
                wrap == CASE_WRAP_APART || wrap == CASE_WRAP_IGNORE);
        c.keep_root = 1;
        assert_false(wants(&c, "reshard-root"));
        c.keep_root = 0;
        c.strategy = CASE_SHARD_GRAD_OP;
        assert_false(wants(&c, "reshard-root"));
        c.strategy = CASE_FULL_SHARD;
    }
}

static void bits_are_claimed_or_bounded(void **state)
{
    struct fixture *x = *state;
    struct requirement bits = {.profile = PROFILE_BITS};
    struct requirement bound = {.profile = PROFILE_BOUND};

    x->r.claim = calloc(2, sizeof(*x->r.claim));
    assert_non_null(x->r.claim);
    x->r.n_claims = 1;
    snprintf(x->r.claim[0], sizeof(x->r.claim[0]), "fold-any");
    judge_adapter_expect(&x->r, &x->e);
    assert_int_equal(x->e.profile, EXPECT_OWN);
    assert_true(x->e.any_fold);
    assert_false(requirement_speaks_of(&bits, &x->e));
    assert_true(requirement_speaks_of(&bound, &x->e));
    x->c.data = WORKLOAD_EXACT;
    assert_true(requirement_speaks_of(&bits, &x->e));
    assert_false(requirement_speaks_of(&bound, &x->e));
    /* An adapter that declares an order must keep to it. */
    x->r.n_claims = 2;
    snprintf(x->r.claim[1], sizeof(x->r.claim[1]), "fold-rank");
    judge_adapter_expect(&x->r, &x->e);
    assert_false(x->e.any_fold);
    snprintf(x->r.claim[1], sizeof(x->r.claim[1]), "f32-fma");
    judge_adapter_expect(&x->r, &x->e);
    assert_int_equal(x->e.profile, EXPECT_F32_FMA);
}

/* All other fields of a collective are compared. */
static void no_order_is_asked_for_where_none_is_declared(void **state)
{
    struct fixture *x = *state;
    const struct record_collective want = {
        .kind = FSDP_ALL_GATHER, .fold = FSDP_FOLD_RING, .n = 19};
    struct record_collective got = want;

    got.fold = FSDP_FOLD_RANK;
    assert_false(compare_as_asked(&x->e, &got, &want));
    x->e.any_fold = true;
    assert_true(compare_as_asked(&x->e, &got, &want));
    got.n = 18;
    assert_false(compare_as_asked(&x->e, &got, &want));
    got = want;
    got.dtype = FSDP_DTYPE_BF16;
    assert_false(compare_as_asked(&x->e, &got, &want));
}

/* What an adapter may claim of memory: how it keeps states, and how far it runs
 * ahead. */
static void memory_is_as_it_is_claimed(void **state)
{
    static const char *const none[] = {"ahead-",  "ahead-0",  "ahead-10",
                                       "ahead-x", "aheads-3", "prefetch"};
    struct fixture *x = *state;

    x->r.claim = calloc(1, sizeof(*x->r.claim));
    assert_non_null(x->r.claim);
    x->r.n_claims = 1;
    snprintf(x->r.claim[0], sizeof(x->r.claim[0]), "late-states");
    judge_adapter_expect(&x->r, &x->e);
    assert_true(x->e.late_states);

    x->c.prefetch_backward = 3;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        judge_adapter_runs_ahead(none[i], &x->c);
        assert_int_equal(x->c.prefetch_forward, 0);
        assert_int_equal(x->c.reduces_in_flight, 0);
    }
    judge_adapter_runs_ahead("ahead-2", &x->c);
    assert_int_equal(x->c.prefetch_forward, 2);
    assert_int_equal(x->c.prefetch_backward, 3);
    assert_int_equal(x->c.reduces_in_flight, 2);
}

/* Activations that are rounded between units are not those that the unsharded
 * run computes with. */
static void activations_are_rounded_as_claimed(void **state)
{
    static const char *const claim[] = {"casts-inputs", "casts-outputs"};
    const struct requirement curve = {.id = "num.curve"};
    const struct requirement fold = {.id = "reduce.fold"};
    struct fixture *x = *state;

    x->r.claim = calloc(1, sizeof(*x->r.claim));
    assert_non_null(x->r.claim);
    x->r.n_claims = 1;
    x->r.c.precision = CASE_BF16;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(x->r.claim[0], sizeof(x->r.claim[0]), "%s", claim[i]);
        assert_true(judge_rounds_otherwise(&curve, &x->r));
        assert_false(judge_rounds_otherwise(&fold, &x->r));
    }
    x->r.c.precision = CASE_F32;
    assert_false(judge_rounds_otherwise(&curve, &x->r));
    x->r.c.precision = CASE_BF16;
    snprintf(x->r.claim[0], sizeof(x->r.claim[0]), "dtypes");
    assert_false(judge_rounds_otherwise(&curve, &x->r));
}

UNIT_TEST(gradients_are_used_behind_a_step)
{
    static const struct {
        const char *id;
        bool again;
    } row[] = {
        {"mlp.odd.natural.full-shard.k3.flat.layer.rank.s.adamw.two-steps",
         true},
        {"mlp.odd.natural.full-shard.k2.flat.layer.rank.s.adamw.worn-out",
         false},
        {"mlp.odd.natural.full-shard.k2.flat.layer.rank.ns.sgd", false},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct run_case c;

        assert_true(case_of_id(row[i].id, &c));
        assert_int_equal(judge_uses_again(&c), row[i].again);
    }
}

static bool has_the_suites_arithmetic(const struct expect *e)
{
    return e->profile == EXPECT_F32_FMA && !e->any_fold && !e->late_states;
}

/* Claims of an adapter on its arithmetic have no effect on an engine that used
 * the suite's operators. */
static void an_engine_cannot_claim_an_adapters_arithmetic(void **state)
{
    static const char *const claim[] = {"late-states", "fold-any"};
    struct testing_run *run = *state;
    const struct requirement *table[TESTING_N + 1];
    struct requirement peak = *testing_requirements[TESTING_PEAK];
    struct judge_result r;

    memcpy(table, testing_requirements, sizeof(table));
    peak.claim = NULL;
    peak.applies = has_the_suites_arithmetic;
    table[TESTING_PEAK] = &peak;
    run->in.requirements = table;
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t c = 0; c < TESTING_CASES; c++) {
            snprintf(run->record[c].claim[5], sizeof(*run->record[c].claim),
                     "%s", claim[i]);
        }
        r = testing_judged(run);
        testing_check_item(&r, 0, TESTING_PEAK, JUDGE_PASS, JUDGE_NONE);
        judge_release(&r);
    }
    run->in.requirements = testing_requirements;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) FIXTURE_TEST(name, setup)
        TEST(what_only_an_adapter_must_claim),
        TEST(bits_are_claimed_or_bounded),
        TEST(no_order_is_asked_for_where_none_is_declared),
        TEST(memory_is_as_it_is_claimed),
        TEST(activations_are_rounded_as_claimed),
        TEST(gradients_are_used_behind_a_step),
#undef TEST
        TESTING_RUN(an_engine_cannot_claim_an_adapters_arithmetic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
