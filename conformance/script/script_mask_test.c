/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask_test.c - what is kept of drawn scripts: whatever a mask says, a
 * legal script, whose id reads back; and which ids are refused.
 */
#include "script/script_chance.h"
#include "script/script_mask_testing.h"
#include "testing/unit_testing.h"

#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Keeps some actions, makes some choices plain and some actions say less. */
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

UNIT_TEST(test_all)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask left;
        struct script s;
        struct script kept;

        mask_test_draw(seed, &s);
        script_mask_all(&s, &all);
        assert_int_equal(script_masked(&s, &all, &kept, &left, &error),
                         FSDP_OK);
        assert_true(script_mask_same(&all, &left));
        mask_test_same(&s, &kept);
        script_release(&kept);
        script_release(&s);
    }
}

UNIT_TEST(test_masks)
{
    struct chance chance = {.seed = 1};

    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct script_mask mask;
        struct script s;

        mask_test_draw(seed, &s);
        draw_mask(&s, &chance, &mask);
        mask_test_holds(seed, &s, &mask);
        script_release(&s);
    }
}

/* Every plain choice and every action that says less occurs, alone. */
UNIT_TEST(test_bits)
{
    uint32_t plain[SCRIPT_N_PLAIN] = {0};
    uint32_t less[SCRIPT_N_VERBS][SCRIPT_LESS_BITS] = {{0}};

    for (uint64_t seed = 0; seed < 600; seed++) {
        struct fsdp_error error = {0};
        struct script_mask left;
        struct script s;
        struct script kept;

        mask_test_draw(seed, &s);
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
        assert_true((less[SCRIPT_SAVE][k] > 10) == (k < 3));
        assert_true((less[SCRIPT_ANEW][k] > 10) == (k < 2));
        assert_true((less[SCRIPT_REPEAT][k] > 10) == (k < 2));
        assert_true((less[SCRIPT_LOAD][k] > 10) == (k < 1));
        assert_true((less[SCRIPT_AGAIN][k] > 10) == (k < 1));
        assert_true((less[SCRIPT_SUMMON_SOME][k] > 10) == (k < 1));
        assert_int_equal(less[SCRIPT_LOOK][k], 0);
    }
}

/* ---- Ids ---- */

static const char *const refused[][2] = {
    {"", "a drawn script is script.GENERATOR.SEED"},
    {"scrip.1.7", "a drawn script is"},
    {"script.1", "a drawn script is"},
    {"script.2.", "a drawn script is"},
    {"script.2.x", "a drawn script is"},
    {"script.1.7", "generator 1 drew it, and 2 to 7 draw here"},
    {"script.2.18446744073709551616", "a drawn script is"},
    {"script.2.07", "what it keeps is that of script.2.7"},
    {"script.2.7 ", "behind the seed is .ACTIONS-PLAIN"},
    {"script.2.7.", "behind the seed"},
    {"script.2.7.1", "behind the seed"},
    {"script.2.7.1-", "behind the seed"},
    {"script.2.7.1-0-", "what it keeps is that of script.2.7.1-0"},
    {"script.2.7.1-0-0", "what it keeps is that of"},
    {"script.2.7.1-8000000", "behind the seed"},
    {"script.2.7.1-0-1234", "behind the seed"},
    {"script.2.7.1-0-g", "behind the seed"},
    {"script.2.7.01-0", "what it keeps is that of script.2.7.1-0"},
    {"script.2.7.ffffffffffffffff-0", "what it keeps is that of script.2.7"},
    {"script.2.7.1ffffffffffffffff-0", "behind the seed"},
    {"script.2.7.A-0", "behind the seed"},
};

UNIT_TEST(test_ids)
{
    struct fsdp_error error = {0};
    struct script s;

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
        script_of_id("script.2.18446744073709551615", &s, NULL, NULL, &error),
        FSDP_OK);
    script_release(&s);
}

/* The longest: all actions are kept, and all say less. */
UNIT_TEST(test_longest)
{
    struct script s;
    struct script_mask mask = {.actions = (1ull << SCRIPT_MOST_DRAWN) - 1,
                               .plain = (1u << SCRIPT_N_PLAIN) - 1};
    char id[SCRIPT_ID_BYTES];

    mask_test_draw(0, &s);
    memset(mask.less, 15, sizeof(mask.less));
    script_id(UINT64_MAX, &s, &mask, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES - 1);
    assert_int_equal(id[strlen(id) - 1], 'f');
    assert_int_equal(strlen(id), 7 + 2 + 20 + 1 + 15 + 1 + 7 + 1 + 60);
    script_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),     cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bits),    cmocka_unit_test(test_ids),
        cmocka_unit_test(test_longest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
