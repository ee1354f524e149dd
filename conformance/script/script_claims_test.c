/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_claims_test.c - what an engine with fewer claims is asked: the part of
 * each drawn script that it can play, and no refused call that is legal for it.
 */
#include "cases/case_claims.h"
#include "script/script_mask_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const core[] = {"flat", "full-shard", "fold-rank", "sgd",
                                   NULL};

static void project(uint64_t seed, const char *const *claims, uint32_t least)
{
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;
    struct script left;

    mask_test_draw(seed, &s);
    if (script_project(&s, claims, &mask, &error) != FSDP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
    }
    assert_int_equal(script_masked(&s, &mask, &left, NULL, &error), FSDP_OK);
    mask_test_legal(&left, seed);
    assert_null(script_unclaimed(&left, claims));
    assert_in_range(left.n_actions, least, s.n_actions);
    mask_test_holds(seed, &s, &mask);
    script_release(&left);
    script_release(&s);
}

/* All claims that scripts know, without one. */
static uint32_t all_but(const char *one, const char *list[64])
{
    uint32_t n = 0;

    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group != CLAIM_ADAPTER && strcmp(q->name, one) != 0) {
            list[n++] = q->name;
        }
    }
    list[n] = NULL;
    return n;
}

UNIT_TEST(test_core)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        project(seed, core, SCRIPT_LEAST_CORE);
    }
}

UNIT_TEST(test_all_but_one)
{
    const char *list[64];

    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group == CLAIM_ENGINE) {
            (void)all_but(q->name, list);
            for (uint64_t seed = 0; seed < 60; seed++) {
                project(seed, list, 1);
            }
        }
    }
}

/* Whether it has a call that some claim makes legal. */
static bool offers_unclaimed(const struct script *s)
{
    bool offers = false;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        offers = offers || (s->action[i].verb == SCRIPT_WRONG &&
                            script_calls[s->action[i].call].allowed_by);
    }
    return offers;
}

/* An engine that claims everything is asked for all of a script, without calls
 * that its claims make legal. */
UNIT_TEST(test_everything)
{
    const char *list[64];
    uint32_t whole = 0;

    (void)all_but("", list);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask mask;
        struct script s;

        mask_test_draw(seed, &s);
        script_mask_all(&s, &all);
        assert_int_equal(script_project(&s, list, &mask, &error), FSDP_OK);
        if (!offers_unclaimed(&s)) {
            assert_null(script_unclaimed(&s, list));
            assert_true(script_mask_same(&all, &mask));
            whole++;
        }
        script_release(&s);
    }
    assert_in_range(whole, 900, 1000);
}

/* Each of these settings needs this one claim beyond the core. */
UNIT_TEST(test_settings)
{
    static const char id[] =
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd";
    static const struct {
        const char *axis, *settings, *claim;
        uint32_t plain;
    } row[] = {
        {"", "", NULL, 0},
        {".bf16", "", "bf16", SCRIPT_PLAIN_PRECISION},
        {".fp16", "", "fp16", SCRIPT_PLAIN_PRECISION},
        {".recompute-pair", "", "recompute", SCRIPT_PLAIN_RECOMPUTE},
        {".frozen-prefix", "", "frozen", SCRIPT_PLAIN_FROZEN},
        {".pre3", "", "unit-factors", SCRIPT_PLAIN_FACTORS},
        {".unit-factors", "", "unit-factors", SCRIPT_PLAIN_FACTORS},
        {"", "scale 2^3\n", "loss-scale", SCRIPT_PLAIN_SCALE},
        {"", "groups 2\n", "groups", SCRIPT_PLAIN_GROUPS},
        {".offload-less", "", "offload", SCRIPT_PLAIN_OFFLOAD},
        {"", "rank0\n", "rank0-initial", SCRIPT_PLAIN_VALUES},
    };

    for (size_t i = 0; i < N_OF(row); i++) {
        const char *with[] = {"flat", "full-shard", "fold-rank",
                              "sgd",  row[i].claim, NULL};
        struct fsdp_error error = {0};
        struct script_mask mask;
        struct script s;
        char text[160];

        snprintf(text, sizeof(text), "script 1\ncase %s%s\n%s--\nlook", id,
                 row[i].axis, row[i].settings);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        assert_true(!row[i].claim ||
                    strcmp(script_unclaimed(&s, core), row[i].claim) == 0);
        assert_null(script_unclaimed(&s, with));
        assert_int_equal(script_project(&s, core, &mask, &error), FSDP_OK);
        assert_int_equal(mask.plain, row[i].plain);
        script_release(&s);
    }
}

UNIT_TEST(test_own_numbers)
{
    static const char *const with[] = {"flat", "full-shard", "fold-rank",
                                       "sgd",  "groups",     NULL};
    static const char text[] =
        "script 1\ncase mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd\n"
        "momentum 0.5,0.75\ngroups 2\n--\nlook";
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;

    assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
    assert_string_equal(script_unclaimed(&s, with), "groups-betas");
    assert_int_equal(script_project(&s, with, &mask, &error), FSDP_OK);
    assert_int_equal(mask.plain, SCRIPT_PLAIN_SAME);
    script_release(&s);
}

/* An engine that takes no values cannot begin without them. */
UNIT_TEST(test_without_values)
{
    static const char *const with[] = {"flat", "full-shard", "fold-rank",
                                       "sgd",  "deferred",   NULL};
    static const char text[] =
        "script 1\ncase mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd\n"
        "deferred\n--\n! deferred-begin\nassign all initial\npass 0.0 s";
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;

    assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
    assert_string_equal(script_unclaimed(&s, with), "assign");
    assert_int_equal(script_project(&s, with, &mask, &error), FSDP_OK);
    assert_int_equal(mask.plain, SCRIPT_PLAIN_VALUES);
    assert_int_equal(mask.actions, 4);
    script_release(&s);
}

UNIT_TEST(test_not_even_core)
{
    static const char *const claims[] = {"full-shard", "fold-rank", "sgd",
                                         NULL};
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;

    mask_test_draw(1, &s);
    assert_int_equal(script_project(&s, claims, &mask, &error),
                     FSDP_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "needs the claim flat"));
    script_release(&s);
}

/* Each of these actions needs this one claim beyond the core. */
static const struct {
    const char *actions, *claim;
} needs[] = {
    {"pass 0.0 s; step lr 1; zero; look; again; anew", NULL},
    {"pass 0.0 n", "no-sync"},
    {"sync off", "no-sync"},
    {"pass 0.0 at 0 sync off", "no-sync"},
    {"pass 0.0 at 0 sync on", NULL},
    {"eval 0.0", "eval"},
    {"pass 0.0 until 0", "cancel"},
    {"pass 0.0 left-open 0", NULL},
    {"clip 1 p 2", "clip"},
    {"! clip-to-zero", "clip"},
    {"pass 0.0 at 0 ! clip-in-pass", "clip"},
    {"unshard; reshard", "unshard-all"},
    {"summon", "unshard-all"},
    {"save a full", "save-full"},
    {"save a local", "save-local"},
    {"save a sharded", "save-sharded"},
    {"! wait-before-save", "save-sharded"},
    {"load a", "load"},
    {"! prefetch-forward-beyond", "prefetch"},
    {"pass 0.0 at 0 ! end-early", NULL},
};

UNIT_TEST(test_needs)
{
    for (size_t i = 0; i < N_OF(needs); i++) {
        struct fsdp_error error = {0};
        struct script s;
        const char *claim;
        char text[128];

        snprintf(text, sizeof(text), "script 1\n--\n%s", needs[i].actions);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        claim = script_unclaimed(&s, core);
        if (strcmp(claim ? claim : "", needs[i].claim ? needs[i].claim : "") !=
            0) {
            fail_msg("%s: %s", needs[i].actions, claim ? claim : "nothing");
        }
        script_release(&s);
    }
}

/* Whether a case that plays the script is found to need the claim. */
static bool case_needs(const char *text, const char *claim)
{
    const struct case_script *given;
    const char *list[CASE_MAX_CLAIMS];
    struct fsdp_error error = {0};
    struct run_case c;
    uint32_t n;
    bool needs_it = false;

    assert_true(
        case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd", &c));
    assert_int_equal(script_give(text, &given, &error), FSDP_OK);
    case_play_script(&c, given);
    n = case_claims(&c, list);
    assert_in_range(n, 4, CASE_MAX_CLAIMS);
    for (uint32_t i = 0; i < n; i++) {
        needs_it = needs_it || strcmp(list[i], claim) == 0;
    }
    return needs_it;
}

/* A case needs the claims of the refused calls that its script makes. */
UNIT_TEST(test_cases_need_the_same)
{
    for (uint32_t call = 0; call < SCRIPT_N_CALLS; call++) {
        struct fsdp_error error = {0};
        struct script s;
        const char *claim;
        char text[64];

        snprintf(text, sizeof(text), "script 1\n--\n! %s",
                 script_calls[call].name);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        claim = script_unclaimed(&s, core);
        if (claim && !case_needs(text, claim)) {
            fail_msg("%s: %s", text, claim);
        }
        script_release(&s);
    }
    assert_true(case_needs("script 1\neps 0.5,0.25\ngroups 2\n--\nlook\n",
                           "groups-betas"));
    assert_true(case_needs("script 1\nbetas 0.5 0.25,0\ngroups 2\n--\nlook\n",
                           "groups-betas"));
    assert_false(case_needs("script 1\neps 0.5\ngroups 2\n--\n"
                            "step lr 1,2\n",
                            "groups-betas"));
    assert_true(case_needs("script 1\ngroups 2\n--\npass 0.0 n\neval 0.0\n"
                           "pass 0.1 s until 1\nsummon\nclip 1 p 2\n"
                           "save a full\nsave a local\nsave a sharded\n"
                           "load a\n! reduces-beyond\n",
                           "prefetch"));
}

/* Calls that a claim makes legal are left out for engines that have it, and
 * asked of those that do not. */
UNIT_TEST(test_allowed)
{
    static const struct {
        const char *call, *claim;
    } row[] = {
        {"unclaimed-dtype", "bf16"},
        {"unclaimed-reduce-bf16", "bf16"},
        {"unclaimed-param-of-unit", "bf16"},
        {"unclaimed-reduce-of-unit", "bf16"},
        {"unclaimed-param-f16", "fp16"},
        {"unclaimed-reduce-f16", "fp16"},
        {"unclaimed-frozen", "frozen"},
    };
    static const char *const all[] = {"bf16", "fp16", "frozen"};

    for (size_t i = 0; i < N_OF(row); i++) {
        struct fsdp_error error = {0};
        struct script s;
        char text[64];

        snprintf(text, sizeof(text), "script 1\n--\n! %s", row[i].call);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        assert_null(script_unclaimed(&s, core));
        for (size_t k = 0; k < N_OF(all); k++) {
            const char *claims[] = {all[k], NULL};

            assert_int_equal(script_unclaimed(&s, claims) != NULL,
                             strcmp(row[i].claim, all[k]) == 0);
        }
        script_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core),
        cmocka_unit_test(test_all_but_one),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_own_numbers),
        cmocka_unit_test(test_without_values),
        cmocka_unit_test(test_not_even_core),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_cases_need_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
