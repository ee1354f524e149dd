/* SPDX-License-Identifier: Apache-2.0 */
/* script_mask_testing.c - see script_mask_testing.h. */
#include "script/script_mask_testing.h"
#include "script/script_draw_parts.h"
#include "testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

void mask_test_draw(uint64_t seed, struct script *s)
{
    struct fsdp_error error = {0};

    assert_int_equal(script_draw(seed, s, &error), FSDP_OK);
}

void mask_test_legal(const struct script *s, uint64_t seed)
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

void mask_test_same(const struct script *a, const struct script *b)
{
    char *one = script_text(a);
    char *other = script_text(b);

    assert_non_null(one);
    assert_non_null(other);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

/* Whatever model is left has what the actions name. */
static void names_what_there_is(const struct script *s, uint64_t seed)
{
    const uint32_t n = draw_parameters(&s->c);

    for (uint32_t i = 0; i < s->n_actions; i++) {
        const struct script_action *a = &s->action[i];

        if (a->renamed > n ||
            (a->parameter != SCRIPT_ALL && a->parameter >= n)) {
            fail_msg("seed %llu: action %u names a parameter beyond %u",
                     (unsigned long long)seed, i + 1, n);
        }
    }
}

void mask_test_holds(uint64_t seed, const struct script *s,
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
    mask_test_legal(&kept, seed);
    names_what_there_is(&kept, seed);
    assert_int_equal(left.actions & ~mask->actions, 0);
    assert_int_equal(left.plain & ~mask->plain, 0);
    assert_int_equal(script_masked(s, &left, &other, &again, &error), FSDP_OK);
    assert_true(script_mask_same(&left, &again));
    mask_test_same(&kept, &other);
    script_release(&other);

    script_id(seed, s, &left, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES);
    if (script_of_id(id, &other, &from, &again, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    assert_true(from == seed);
    assert_true(script_mask_same(&left, &again));
    mask_test_same(&kept, &other);
    script_release(&other);
    script_release(&kept);
}
