/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask_test.c - what is kept of drawn scripts: whatever a mask says, a
 * legal script, whose id reads back; and what an engine is asked for that
 * claims less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases/case_claims.h"
#include "script/script_chance.h"
#include "script/script_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static void draw(uint64_t seed, struct script *s)
{
    struct fsdp_error error = {0};

    assert_int_equal(script_draw(seed, s, &error), FSDP_OK);
}

static void assert_legal(const struct script *s, uint64_t seed)
{
    static const uint32_t lengths[][2] = {{8, 4}, {4, 2}, {11, 3}};
    struct fsdp_error error = {0};
    char *text = script_text(s);

    assert_non_null(text);
    for (size_t i = 0; i < N_OF(lengths); i++) {
        if (script_legal(s, lengths[i], &error) != FSDP_OK) {
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed,
                     error.message, text);
        }
    }
    assert_null(case_check(&s->c));
    free(text);
}

static void assert_same(const struct script *a, const struct script *b)
{
    char *one = script_text(a);
    char *other = script_text(b);

    assert_non_null(one);
    assert_non_null(other);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

/* Some of its actions, some choices plain, some actions that say less. */
static void draw_mask(const struct script *s, struct chance *c,
                      struct script_mask *m)
{
    uint32_t keep = 1 + chance_below(c, 4);

    script_mask_all(s, m);
    for (uint32_t i = 0; i < s->n_actions; i++) {
        m->actions &= ~((uint64_t)chance_one_in(c, keep + 1) << i);
        m->less[i] = (uint8_t)chance_below(c, 16);
    }
    for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
        m->plain |= (uint32_t)chance_one_in(c, 4) << i;
    }
}

/* ---- Masks ---- */

static void test_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask left;
        struct script s;
        struct script kept;

        draw(seed, &s);
        script_mask_all(&s, &all);
        assert_int_equal(script_masked(&s, &all, &kept, &left, &error),
                         FSDP_OK);
        assert_true(script_mask_same(&all, &left));
        assert_same(&s, &kept);
        script_release(&kept);
        script_release(&s);
    }
}

/* What a mask leaves is legal, leaves itself, and is what its id says. */
static void assert_mask(uint64_t seed, const struct script *s,
                        const struct script_mask *mask)
{
    struct fsdp_error error = {0};
    struct script_mask left;
    struct script_mask again;
    struct script kept;
    struct script other;
    uint64_t from;
    char id[SCRIPT_ID_BYTES];

    assert_int_equal(script_masked(s, mask, &kept, &left, &error), FSDP_OK);
    assert_legal(&kept, seed);
    assert_int_equal(left.actions & ~mask->actions, 0);
    assert_int_equal(left.plain & ~mask->plain, 0);
    assert_int_equal(script_masked(s, &left, &other, &again, &error), FSDP_OK);
    assert_true(script_mask_same(&left, &again));
    assert_same(&kept, &other);
    script_release(&other);

    script_id(seed, s, &left, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES);
    if (script_of_id(id, &other, &from, &again, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    assert_true(from == seed);
    assert_true(script_mask_same(&left, &again));
    assert_same(&kept, &other);
    script_release(&other);
    script_release(&kept);
}

static void test_masks(void **state)
{
    struct chance chance = {.seed = 1};

    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct script_mask mask;
        struct script s;

        draw(seed, &s);
        draw_mask(&s, &chance, &mask);
        assert_mask(seed, &s, &mask);
        script_release(&s);
    }
}

/* Every plain choice and every action that says less occurs, alone. */
static void test_bits(void **state)
{
    uint32_t plain[SCRIPT_N_PLAIN] = {0};
    uint32_t less[SCRIPT_N_VERBS][SCRIPT_LESS_BITS] = {{0}};

    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct fsdp_error error = {0};
        struct script_mask left;
        struct script s;
        struct script kept;

        draw(seed, &s);
        for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
            struct script_mask mask;

            script_mask_all(&s, &mask);
            mask.plain = 1u << i;
            assert_int_equal(script_masked(&s, &mask, &kept, &left, &error),
                             FSDP_OK);
            plain[i] += left.plain == 1u << i;
            script_release(&kept);
        }
        for (uint32_t k = 0; k < SCRIPT_LESS_BITS; k++) {
            struct script_mask mask;

            script_mask_all(&s, &mask);
            memset(mask.less, 1 << k, sizeof(mask.less));
            assert_int_equal(script_masked(&s, &mask, &kept, &left, &error),
                             FSDP_OK);
            for (uint32_t i = 0; i < s.n_actions; i++) {
                less[s.action[i].verb][k] += left.less[i] != 0;
            }
            script_release(&kept);
        }
        script_release(&s);
    }
    for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
        assert_true(plain[i] > 20);
    }
    for (uint32_t k = 0; k < SCRIPT_LESS_BITS; k++) {
        assert_true(less[SCRIPT_PASS][k] > 10);
        assert_true((less[SCRIPT_EVAL][k] > 10) == (k != 0));
        assert_true((less[SCRIPT_STEP][k] > 10) == (k < 3));
        assert_true((less[SCRIPT_CLIP][k] > 10) == (k < 3));
        assert_true((less[SCRIPT_SAVE][k] > 10) == (k < 1));
        assert_true((less[SCRIPT_ANEW][k] > 10) == (k < 2));
        assert_true((less[SCRIPT_REPEAT][k] > 10) == (k < 2));
        assert_int_equal(less[SCRIPT_LOOK][k], 0);
    }
}

/* ---- Ids ---- */

static const char *const refused[][2] = {
    {"", "a drawn script is script.GENERATOR.SEED"},
    {"scrip.1.7", "a drawn script is"},
    {"script.1", "a drawn script is"},
    {"script.1.", "a drawn script is"},
    {"script.1.x", "a drawn script is"},
    {"script.2.7", "another generator"},
    {"script.1.18446744073709551616", "a drawn script is"},
    {"script.1.07", "what it keeps is that of script.1.7"},
    {"script.1.7 ", "behind the seed is .ACTIONS-PLAIN"},
    {"script.1.7.", "behind the seed"},
    {"script.1.7.1", "behind the seed"},
    {"script.1.7.1-", "behind the seed"},
    {"script.1.7.1-0-", "what it keeps is that of script.1.7.1-0"},
    {"script.1.7.1-0-0", "what it keeps is that of"},
    {"script.1.7.1-20000", "behind the seed"},
    {"script.1.7.1-0-1234", "behind the seed"},
    {"script.1.7.1-0-g", "behind the seed"},
    {"script.1.7.01-0", "what it keeps is that of script.1.7.1-0"},
    {"script.1.7.ffffffffffffffff-0", "what it keeps is that of script.1.7"},
    {"script.1.7.1ffffffffffffffff-0", "behind the seed"},
    {"script.1.7.A-0", "behind the seed"},
};

static void test_ids(void **state)
{
    struct fsdp_error error = {0};
    struct script s;

    (void)state;
    for (size_t i = 0; i < N_OF(refused); i++) {
        error = (struct fsdp_error){0};
        if (script_of_id(refused[i][0], &s, NULL, NULL, &error) !=
                FSDP_ERR_FORMAT ||
            !strstr(error.message, refused[i][1])) {
            fail_msg("%s: %s", refused[i][0], error.message);
        }
        script_release(&s);
    }
    assert_int_equal(
        script_of_id("script.1.18446744073709551615", &s, NULL, NULL, &error),
        FSDP_OK);
    script_release(&s);
}

/* The longest: all actions are kept, and all say less. */
static void test_longest(void **state)
{
    struct script s;
    struct script_mask mask = {.actions = (1ull << SCRIPT_MOST_DRAWN) - 1,
                               .plain = (1u << SCRIPT_N_PLAIN) - 1};
    char id[SCRIPT_ID_BYTES];

    (void)state;
    draw(0, &s);
    memset(mask.less, 15, sizeof(mask.less));
    script_id(UINT64_MAX, &s, &mask, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES - 1);
    assert_int_equal(id[strlen(id) - 1], 'f');
    assert_int_equal(strlen(id), 7 + 2 + 20 + 1 + 15 + 1 + 5 + 1 + 60);
    script_release(&s);
}

/* ---- Claims ---- */

static const char *const core[] = {"flat", "full-shard", "fold-rank", "sgd",
                                   NULL};

static void project(uint64_t seed, const char *const *claims, uint32_t least)
{
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;
    struct script left;

    draw(seed, &s);
    if (script_project(&s, claims, &mask, &error) != FSDP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
    }
    assert_int_equal(script_masked(&s, &mask, &left, NULL, &error), FSDP_OK);
    assert_legal(&left, seed);
    assert_null(script_unclaimed(&left, claims));
    assert_in_range(left.n_actions, least, s.n_actions);
    assert_mask(seed, &s, &mask);
    script_release(&left);
    script_release(&s);
}

/* All claims that scripts know, but for one. */
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

static void test_core(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        project(seed, core, SCRIPT_LEAST_CORE);
    }
}

static void test_all_but_one(void **state)
{
    const char *list[64];

    (void)state;
    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group == CLAIM_ENGINE) {
            (void)all_but(q->name, list);
            for (uint64_t seed = 0; seed < 60; seed++) {
                project(seed, list, 1);
            }
        }
    }
}

/* An engine that claims everything is asked for everything. */
static void test_everything(void **state)
{
    const char *list[64];

    (void)state;
    (void)all_but("bf16", list);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask mask;
        struct script s;

        draw(seed, &s);
        script_mask_all(&s, &all);
        assert_null(script_unclaimed(&s, list));
        assert_int_equal(script_project(&s, list, &mask, &error), FSDP_OK);
        assert_true(script_mask_same(&all, &mask));
        script_release(&s);
    }
}

static void test_not_even_core(void **state)
{
    static const char *const claims[] = {"full-shard", "fold-rank", "sgd",
                                         NULL};
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;

    (void)state;
    draw(1, &s);
    assert_int_equal(script_project(&s, claims, &mask, &error),
                     FSDP_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "needs the claim flat"));
    script_release(&s);
}

/* Each of these needs just this one beyond the core. */
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

static void test_needs(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),           cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bits),          cmocka_unit_test(test_ids),
        cmocka_unit_test(test_longest),       cmocka_unit_test(test_core),
        cmocka_unit_test(test_all_but_one),   cmocka_unit_test(test_everything),
        cmocka_unit_test(test_not_even_core), cmocka_unit_test(test_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
