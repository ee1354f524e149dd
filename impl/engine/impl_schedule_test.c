/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_schedule_test.c - what is issued at which point, and what is refused:
 * on a chain of three units, one module each, forward and backward.
 */
#include "impl_schedule.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

/* NOLINTBEGIN(readability-identifier-naming): as sequences are written. */
enum {
    F = FSDP_PRE_FORWARD,
    f = FSDP_POST_FORWARD,
    B = FSDP_PRE_BACKWARD,
    b = FSDP_POST_BACKWARD
};
/* NOLINTEND(readability-identifier-naming) */

static const uint32_t unit_of_module[] = {0, 1, 2};
static const struct fsdp_model model = {.size = sizeof(model), .n_modules = 3};
static const struct fsdp_units units = {
    .size = sizeof(units), .n_units = 3, .unit_of_module = unit_of_module};

/* "G1" gather, "O" open, "+" gradient, "-" reshard, "R" reduce, "x" retire,
 * "U" unpack, "P" pack, with the unit; "|" between points. */
static void show(const struct impl_plan *plan, char *out)
{
    static const char letter[] = "GO+-RxUP";

    for (uint32_t i = 0; i < plan->sequence->n; i++) {
        out += sprintf(out, i > 0 ? "|" : "");
        for (uint32_t k = plan->first[i]; k < plan->first[i + 1]; k++) {
            out += sprintf(out, "%c%u", letter[plan->action[k].what],
                           plan->action[k].unit);
        }
    }
}

struct expected {
    uint32_t forward, backward, in_flight;
    bool kept, packs, frozen; /* unit 1 is frozen */
    const char *actions;
};

static void assert_plan(const struct fsdp_sequence *q, const struct expected *e)
{
    const struct fsdp_options options = {.size = sizeof(options),
                                         .prefetch_forward = e->forward,
                                         .prefetch_backward = e->backward,
                                         .reduces_in_flight = e->in_flight};
    const bool kept = e->kept;
    const bool packs = e->packs;
    const struct impl_extent extent[] = {
        {30, 32, 30, 32, 16, kept, true, packs, false},
        {64, 64, 64, 64, 32, kept, true, packs, e->frozen},
        {95, 96, 95, 96, 48, kept, true, packs, false}};
    const struct impl_schedule x = {&model, &units, &options,
                                    extent, true,   e->packs};
    struct impl_plan plan;
    const char *what = "";
    char text[1024] = "";

    assert_int_equal(impl_plan_make(&x, q, &plan, &what), FSDP_OK);
    show(&plan, text);
    assert_string_equal(text, e->actions);
    for (uint32_t i = 0; i < plan.n_full; i++) {
        assert_true(plan.full[i].begin < plan.full[i].end);
    }
    for (uint32_t i = 0; i < plan.n_grad; i++) {
        assert_true(plan.grad[i].begin < plan.grad[i].end);
    }
    assert_int_equal(plan.n_wire, e->packs ? plan.n_full + plan.n_sum : 0);
    assert_int_equal(plan.n_grad, plan.n_sum);
    for (uint32_t i = 0; i < plan.n_wire; i++) {
        assert_true(plan.wire[i].begin < plan.wire[i].end);
    }
    impl_plan_release(&plan);
}

UNIT_TEST(units_follow_one_another)
{
    static const uint32_t point[] = {F, f, F, f, F, f, B, b, B, b, B, b};
    static const uint32_t module[] = {0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
    const struct fsdp_sequence q = {sizeof(q), 12, "train", point, module};
    static const struct expected expected[] = {
        {0, 0, 0, false, false, false,
         "G0O0|-0|G1O1|-1|G2O2|-2|"
         "G2O2+2|-2R2x2|G1O1+1|-1R1x1|G0O0+0|-0R0x0"},
        {1, 1, 0, false, false, false,
         "G0G1O0|-0|G2O1|-1|O2|-2|"
         "G2G1O2+2|-2R2x2|G0O1+1|-1R1x1|O0+0|-0R0x0"},
        {2, 0, 1, false, false, false,
         "G0G1G2O0|-0|O1|-1|O2|-2|"
         "G2O2+2|-2R2|G1O1+1|-1x2R1|G0O0+0|-0x1R0"},
        {3, 3, 3, true, false, false,
         "G0G1G2O0||O1||O2||O2+2|-2R2|O1+1|-1R1|O0+0|-0R0"},
    };

    for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_plan(&q, &expected[i]);
    }
}

/* A unit that has arrived is unpacked where its window opens, not where it was
 * gathered; a gradient is packed before it is sent, and dead then. */
UNIT_TEST(units_are_packed)
{
    static const uint32_t point[] = {F, f, F, f, F, f, B, b, B, b, B, b};
    static const uint32_t module[] = {0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
    const struct fsdp_sequence q = {sizeof(q), 12, "train", point, module};
    static const struct expected expected[] = {
        {0, 0, 0, false, true, false,
         "G0O0U0|-0|G1O1U1|-1|G2O2U2|-2|"
         "G2O2U2+2|-2P2R2x2|G1O1U1+1|-1P1R1x1|G0O0U0+0|-0P0R0x0"},
        {1, 2, 1, false, true, false,
         "G0G1O0U0|-0|G2O1U1|-1|O2U2|-2|"
         "G2G1G0O2U2+2|-2P2R2|O1U1+1|-1x2P1R1|O0U0+0|-0x1P0R0"},
        {0, 0, 1, true, true, false,
         "G0O0U0||G1O1U1||G2O2U2||O2+2|-2P2R2|O1+1|-1x2P1R1|O0+0|-0x1P0R0"},
    };

    for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_plan(&q, &expected[i]);
    }
}

/* A frozen unit is gathered and resharded as any other, and in no reduction's
 * way: what is in flight goes on. */
UNIT_TEST(frozen_units_are_not_reduced)
{
    static const uint32_t point[] = {F, f, F, f, F, f, B, b, B, b, B, b};
    static const uint32_t module[] = {0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 0, 0};
    const struct fsdp_sequence q = {sizeof(q), 12, "train", point, module};
    static const struct expected expected[] = {
        {0, 0, 0, false, false, true,
         "G0O0|-0|G1O1|-1|G2O2|-2|"
         "G2O2+2|-2R2x2|G1O1|-1|G0O0+0|-0R0x0"},
        {1, 1, 1, false, true, true,
         "G0G1O0U0|-0|G2O1U1|-1|O2U2|-2|"
         "G2G1O2U2+2|-2P2R2|G0O1U1|-1|O0U0+0|-0x2P0R0"},
    };

    for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_plan(&q, &expected[i]);
    }
}

/* Unit 0 is around the others: it is no unit ahead. */
UNIT_TEST(windows_nest)
{
    static const uint32_t point[] = {F, F, f, F, f, f, B, B, b, B, b, b};
    static const uint32_t module[] = {0, 1, 1, 2, 2, 0, 0, 2, 2, 1, 1, 0};
    const struct fsdp_sequence q = {sizeof(q), 12, "train", point, module};
    static const struct expected expected = {
        1,
        1,
        0,
        false,
        false,
        false,
        "G0G1O0|G2O1|-1|O2|-2|-0|"
        "G0G2O0+0|G1O2+2|-2R2x2|O1+1|-1R1x1|-0R0x0"};

    assert_plan(&q, &expected);
}

UNIT_TEST(wrong_sequences_are_refused)
{
    static const struct {
        uint32_t n, point[4], module[4];
    } wrong[] = {
        {2, {F, F}, {0, 0}},             /* never ends */
        {2, {f, F}, {0, 0}},             /* begins with its end */
        {2, {F, f}, {0, 3}},             /* no such module */
        {2, {FSDP_BEGIN, f}, {0, 0}},    /* no point of a sequence */
        {4, {B, B, b, b}, {0, 0, 0, 0}}, /* a backward in itself */
        {3, {F, f, B}, {0, 0, 0}},       /* a backward without an end */
    };
    const struct fsdp_options options = {.size = sizeof(options)};
    const struct impl_extent extent[3] = {{0}};
    const struct impl_schedule x = {.model = &model,
                                    .units = &units,
                                    .options = &options,
                                    .extent = extent,
                                    .gathers = true};

    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct fsdp_sequence q = {sizeof(q), wrong[i].n, "train",
                                        wrong[i].point, wrong[i].module};
        struct impl_plan plan;
        const char *what = "";
        assert_int_equal(impl_plan_make(&x, &q, &plan, &what),
                         FSDP_ERR_INVALID);
        assert_true(strlen(what) > 0);
        impl_plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_follow_one_another),
        cmocka_unit_test(units_are_packed),
        cmocka_unit_test(frozen_units_are_not_reduced),
        cmocka_unit_test(windows_nest),
        cmocka_unit_test(wrong_sequences_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
