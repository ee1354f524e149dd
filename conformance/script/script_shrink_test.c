/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_shrink_test.c - what is left when a drawn script is made smaller
 * under faults that are made up: it fails, nothing of it can go, it took few
 * trials, and it is the same again.
 */
#include "script/script_shrink.h"
#include "testing/unit_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    MOST_TRIALS = 200,
    N_SEEDS = 8000,
    ENOUGH = 15, /* scripts that fail, of a fault */
};

/* ---- Faults ---- */

static bool is_cancelled(const struct script_action *a)
{
    return a->verb == SCRIPT_PASS && a->ending == SCRIPT_CANCELLED;
}

/* An evaluation somewhere behind a pass that was cancelled. */
static bool cancel_then_eval(const struct script *s)
{
    bool cancelled = false;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        cancelled = cancelled || is_cancelled(&s->action[i]);
        if (cancelled && s->action[i].verb == SCRIPT_EVAL) {
            return true;
        }
    }
    return false;
}

static bool three_steps(const struct script *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        n += s->action[i].verb == SCRIPT_STEP;
    }
    return n >= 3;
}

/* A checkpoint is loaded in another life, over gradients. */
static bool load_over_gradients(const struct script *s)
{
    bool gradients = false;
    bool again = false;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        const struct script_action *a = &s->action[i];

        if (a->verb == SCRIPT_LOAD && gradients) {
            return true;
        }
        again = again || a->verb == SCRIPT_AGAIN || a->verb == SCRIPT_ANEW;
        gradients = (gradients || (a->verb == SCRIPT_PASS && again)) &&
                    a->verb != SCRIPT_ZERO && !is_cancelled(a) &&
                    a->verb != SCRIPT_AGAIN && a->verb != SCRIPT_ANEW;
    }
    return false;
}

static bool four_groups_decay(const struct script *s)
{
    for (uint32_t i = 0; i < s->n_actions && s->groups >= 4; i++) {
        if (s->action[i].n_decay > 1) {
            return true;
        }
    }
    return false;
}

static bool tiny_gradients_in_two_ranks(const struct script *s)
{
    for (uint32_t i = 0; i < s->n_edits && s->c.ranks >= 2; i++) {
        const struct script_edit *e = &s->edit[i];

        for (uint32_t k = 0; k < s->n_actions; k++) {
            const struct script_action *a = &s->action[k];

            if (e->exponent < -100 && a->n_edits > 0 && i >= a->first_edit &&
                i < a->first_edit + a->n_edits) {
                return true;
            }
        }
    }
    return false;
}

static bool twenty_steps(const struct script *s)
{
    struct script_walk w = script_begin(s);
    const struct script_action *a;
    uint32_t n = 0;

    while ((a = script_next(&w))) {
        n += a->verb == SCRIPT_STEP;
    }
    return n >= 20;
}

static bool sync_inside(const struct script *s)
{
    for (uint32_t i = 0; i < s->n_actions; i++) {
        const struct script_action *a = &s->action[i];

        for (uint32_t k = 0; k < a->n_inside; k++) {
            if (s->inside[a->first_inside + k].sync != SCRIPT_SYNC_UNSAID) {
                return true;
            }
        }
    }
    return false;
}

static bool always(const struct script *s)
{
    return s->n_actions > 0;
}

/* most: actions that are left of any script that fails. */
static const struct fault {
    const char *name;
    bool (*fails)(const struct script *s);
    uint32_t most;
} faults[] = {
    {"cancel, then eval", cancel_then_eval, 2},
    {"three steps", three_steps, 3},
    {"load over gradients", load_over_gradients, 6},
    {"decay of four groups", four_groups_decay, 1},
    {"tiny gradients", tiny_gradients_in_two_ranks, 1},
    {"twenty steps", twenty_steps, 2},
    {"sync inside", sync_inside, 1},
    {"always", always, 1},
};

struct asked {
    const struct fault *fault;
    uint32_t n;
};

static bool fails(void *context, const struct script *s)
{
    struct asked *asked = context;
    struct fsdp_error error = {0};

    asked->n++;
    if (script_legal(s, NULL, &error) != FSDP_OK) {
        fail_msg("%s: a trial is not legal: %s", asked->fault->name,
                 error.message);
    }
    return asked->fault->fails(s);
}

/* ---- */

static bool mask_fails(const struct script *s, const struct script_mask *mask,
                       const struct fault *fault)
{
    struct fsdp_error error = {0};
    struct script left;
    bool result;

    assert_int_equal(script_masked(s, mask, &left, NULL, &error), FSDP_OK);
    result = fault->fails(&left);
    script_release(&left);
    return result;
}

/* Neither an action, nor what one says, nor a choice can go. */
static void assert_minimal(const struct script *s,
                           const struct script_mask *mask,
                           const struct fault *fault)
{
    struct script_mask smaller;
    uint32_t at = 0;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        smaller = *mask;
        smaller.actions &= ~(1ull << i);
        if (smaller.actions != mask->actions && smaller.actions != 0) {
            assert_false(mask_fails(s, &smaller, fault));
        }
        for (uint32_t bit = 1; bit < 1u << SCRIPT_LESS_BITS; bit *= 2) {
            struct fsdp_error error;
            struct script left;
            struct script_mask then = *mask;

            then.less[i] = (uint8_t)(then.less[i] | bit);
            assert_int_equal(script_masked(s, &then, &left, &then, &error),
                             FSDP_OK);
            script_release(&left);
            assert_true(script_mask_same(&then, mask) ||
                        !mask_fails(s, &then, fault));
        }
    }
    while (script_smaller(s, mask, &at, &smaller)) {
        assert_false(mask_fails(s, &smaller, fault));
    }
}

static void shrink(const struct script *s, const struct fault *fault,
                   struct script_mask *mask, uint32_t most, uint32_t *tried)
{
    struct fsdp_error error = {0};
    struct asked asked = {fault, 0};
    struct script_shrink how = {
        .fails = fails, .context = &asked, .most = most};

    script_mask_all(s, mask);
    assert_int_equal(script_shrink(s, &how, mask, &error), FSDP_OK);
    assert_int_equal(how.tried, asked.n);
    assert_true(how.tried <= most);
    assert_true(mask_fails(s, mask, fault));
    *tried = how.tried;
}

static void assert_shrinks(const struct script *s, uint64_t seed,
                           const struct fault *fault, uint32_t *most)
{
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script_mask again;
    struct script left;
    uint32_t tried;
    char id[SCRIPT_ID_BYTES];

    shrink(s, fault, &mask, MOST_TRIALS, &tried);
    *most = tried > *most ? tried : *most;
    assert_true(tried < MOST_TRIALS);
    assert_minimal(s, &mask, fault);
    assert_int_equal(script_masked(s, &mask, &left, NULL, &error), FSDP_OK);
    if (left.n_actions > fault->most) {
        char *text = script_text(&left);

        fail_msg("%s, seed %llu: %s", fault->name, (unsigned long long)seed,
                 text);
    }
    script_release(&left);

    shrink(s, fault, &again, MOST_TRIALS, &tried);
    assert_true(script_mask_same(&mask, &again));
    script_id(seed, s, &mask, id);
    assert_int_equal(script_of_id(id, &left, NULL, NULL, &error), FSDP_OK);
    assert_true(fault->fails(&left));
    script_release(&left);
}

UNIT_TEST(test_shrinks)
{
    for (size_t i = 0; i < N_OF(faults); i++) {
        uint32_t found = 0;
        uint32_t most = 0;

        for (uint64_t seed = 0; seed < N_SEEDS && found < ENOUGH; seed++) {
            struct fsdp_error error = {0};
            struct script s;

            assert_int_equal(script_draw(seed, &s, &error), FSDP_OK);
            if (faults[i].fails(&s)) {
                assert_shrinks(&s, seed, &faults[i], &most);
                found++;
            }
            script_release(&s);
        }
        print_message("%s: at most %u trials\n", faults[i].name, most);
        assert_int_equal(found, ENOUGH);
    }
}

/* Cut off, the search still has something that fails. */
UNIT_TEST(test_cut_off)
{
    for (uint32_t most = 0; most < 31; most += 5) {
        struct fsdp_error error = {0};
        struct script_mask mask;
        struct script s;
        uint32_t tried;
        uint64_t seed = 0;

        assert_int_equal(script_draw(seed, &s, &error), FSDP_OK);
        while (!three_steps(&s)) {
            script_release(&s);
            assert_int_equal(script_draw(++seed, &s, &error), FSDP_OK);
        }
        shrink(&s, &faults[1], &mask, most, &tried);
        assert_int_equal(tried, most);
        script_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shrinks),
        cmocka_unit_test(test_cut_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
