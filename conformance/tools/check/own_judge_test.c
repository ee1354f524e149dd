/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_judge_test.c - kept records of a small model (fixtures/check) judged
 * without PyTorch: as they are, damaged, and with the traces of faults.
 */
#include "record/record_internal.h"
#include "testing/unit_testing.h"
#include "tools/check/own_judge.h"
#include "tools/check/own_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    struct own_set s;
    struct own_result r;
};

static void read_kept(struct scene *x, const char *name)
{
    char path[RECORD_PATH_BYTES];
    struct fsdp_error error = {0};

    snprintf(path, sizeof(path), FIXTURES_DIR "/check/%s", name);
    if (own_read(path, &x->s, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
}

static void finish(struct scene *x)
{
    own_result_release(&x->r);
    own_release(&x->s);
}

static const struct own_item *item_of(const struct scene *x, const char *id)
{
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        if (strcmp(own_requirements[i].id, id) == 0) {
            return &x->r.item[i];
        }
    }
    fail_msg("no requirement %s", id);
    abort(); /* it does not come here */
}

/* This one is looked at first, and says so. */
static void expect_first(struct scene *x, const char *id, const char *part)
{
    const struct own_item *item;

    assert_int_equal(own_judge(&x->s, &x->r), FSDP_OK);
    assert_int_equal(x->r.verdict, OWN_NON_CONFORMANT);
    assert_string_equal(own_requirements[x->r.first].id, id);
    item = item_of(x, id);
    assert_non_null(item);
    if (!strstr(item->finding.text, part)) {
        fail_msg("%s: %s", id, item->finding.text);
    }
    finish(x);
}

static struct own_tensor *tensor_of(struct own_record *r, const char *stage,
                                    uint32_t step, uint32_t parameter)
{
    for (uint32_t i = 0; i < r->n_tensors; i++) {
        struct own_tensor *t = &r->tensor[i];

        if (own_stage_is(t, stage) && t->step == step &&
            t->parameter == parameter) {
            return t;
        }
    }
    fail_msg("no %s", stage);
    abort(); /* it does not come here */
}

UNIT_TEST(kept_records_are_right)
{
    static const char *const kept[] = {"mlp", "fsdp1", "deepspeed-zero3",
                                       "deepspeed-zero1"};

    for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++) {
        struct scene x;

        read_kept(&x, kept[k]);
        assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
        for (uint32_t i = 0; i < own_n_requirements; i++) {
            if (x.r.item[i].outcome == OWN_FAIL) {
                fail_msg("%s: %s: %s", kept[k], own_requirements[i].id,
                         x.r.item[i].finding.text);
            }
        }
        assert_int_equal(x.r.verdict, OWN_CONFORMANT);
        assert_int_equal(x.r.first, UINT32_MAX);
        finish(&x);
    }
}

/* All that say anything of the kept models notice a damage. */
UNIT_TEST(each_check_can_fail)
{
    static const char *const kept[] = {"mlp", "frozen", "fsdp1", "evaluated"};
    bool proved[64] = {false};

    for (size_t k = 0; k < 4; k++) {
        struct scene x;

        read_kept(&x, kept[k]);
        assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
        for (uint32_t i = 0; i < own_n_requirements; i++) {
            proved[i] |= x.r.item[i].proved;
        }
        finish(&x);
    }
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        if (!proved[i]) {
            fail_msg("%s was not proved", own_requirements[i].id);
        }
    }
}

UNIT_TEST(a_damage_is_repaired)
{
    struct scene x;

    read_kept(&x, "mlp");
    assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
    own_result_release(&x.r);
    assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
    assert_int_equal(x.r.verdict, OWN_CONFORMANT);
    finish(&x);
}

/* The record of a unit that divides by 1 in place of 2; what is not reduced. */
UNIT_TEST(wrong_divisor)
{
    struct own_tensor *got;
    struct scene x;

    read_kept(&x, "divisor");
    expect_first(&x, "own.reduced", "it is that times 2");
    read_kept(&x, "mlp");
    got = tensor_of(&x.s.rank[0], "reduced", 0, 0);
    memcpy(got->value, tensor_of(&x.s.rank[0], "local-gradient", 0, 0)->value,
           got->n_values * sizeof(got->value[0]));
    expect_first(&x, "own.reduced", "which is this rank's own gradient");
}

UNIT_TEST(a_local_gradient_is_named)
{
    struct scene x;
    struct own_tensor *t;

    read_kept(&x, "mlp");
    t = tensor_of(&x.s.rank[1], "local-gradient", 2, 0);
    t->value[3] ^= 1;
    t->digest[0] = t->digest[0] == '0' ? '1' : '0';
    assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
    assert_string_equal(own_requirements[x.r.first].id, "own.local-grad");
    assert_int_equal(item_of(&x, "own.local-grad")->finding.step, 2);
    assert_int_equal(item_of(&x, "own.local-grad")->finding.rank, 1);
    assert_int_equal(item_of(&x, "own.local-grad")->finding.parameter, 0);
    assert_int_equal(item_of(&x, "own.local-grad")->finding.element,
                     (int64_t)own_place(170, 3));
    finish(&x);
}

/* Only the digest differs: at an element whose bits are not recorded. */
UNIT_TEST(a_digest_is_enough)
{
    struct scene x;
    struct own_tensor *t;

    read_kept(&x, "mlp");
    t = tensor_of(&x.s.rank[0], "reduced", 1, 0);
    t->digest[5] = t->digest[5] == '0' ? '1' : '0';
    expect_first(&x, "own.reduced", "digest");
}

UNIT_TEST(nan_is_no_loss)
{
    const uint32_t bits = 0x7fc00000;
    struct scene x;

    read_kept(&x, "mlp");
    memcpy(&x.s.rank[0].pass[0].loss, &bits, sizeof(bits));
    memcpy(&x.s.unsharded.pass[0].loss, &bits, sizeof(bits));
    expect_first(&x, "own.loss", "nan");
}

UNIT_TEST(a_missing_reduction)
{
    struct scene x;

    read_kept(&x, "mlp");
    for (uint32_t r = 0; r < 2; r++) {
        struct own_record *rank = &x.s.rank[r];

        for (uint32_t i = 0; i < rank->n_events; i++) {
            if (rank->event[i].kind == OWN_REDUCE_SCATTER) {
                memmove(&rank->event[i], &rank->event[i + 1],
                        (rank->n_events - i - 1) * sizeof(rank->event[0]));
                rank->n_events--;
                break;
            }
        }
    }
    tensor_of(&x.s.rank[1], "local-gradient", 0, 0)->digest[0] ^= 1;
    expect_first(&x, "own.reductions", "their synchronization is off");
}

UNIT_TEST(a_gather_too_many)
{
    struct scene x;

    read_kept(&x, "mlp");
    for (uint32_t i = 0; i < x.s.unsharded.n_events; i++) {
        struct own_event *e = &x.s.unsharded.event[i];

        if (e->unit == 1 && e->kind == OWN_BACKWARD) {
            e->unit = -1; /* the unsharded run did not need it there */
        }
        if (e->unit == 1 && e->kind == OWN_FORWARD_END) {
            e->unit = -1; /* nor was it let go */
        }
    }
    x.s.rank[0].unit[1].reshard = x.s.rank[1].unit[1].reshard = false;
    assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
    /* Once in a backward where it is not needed is fully_shard's way of
     * running ahead. */
    assert_int_equal(item_of(&x, "own.gathers")->outcome, OWN_PASS);
    own_result_release(&x.r);
    for (uint32_t i = 0; i < x.s.unsharded.n_events; i++) {
        struct own_event *e = &x.s.unsharded.event[i];

        if (e->unit == 2 && e->kind == OWN_FORWARD) {
            e->kind = OWN_FORWARD_END;
        }
    }
    expect_first(&x, "own.gathers", "0 expected");
}

static struct own_event *find_event(struct own_record *r, uint32_t step,
                                    uint32_t microbatch, uint32_t kind,
                                    int32_t unit)
{
    for (uint32_t i = 0; i < r->n_events; i++) {
        struct own_event *e = &r->event[i];

        if (e->step == step && e->microbatch == microbatch && e->kind == kind &&
            e->unit == unit) {
            return e;
        }
    }
    return NULL;
}

/* An evaluation in the optimizer's step leaves the root whole, and the next
 * pass does not gather it, or does; nothing else is gathered twice or never. */
UNIT_TEST(an_evaluation_may_keep_the_root)
{
    static const struct {
        uint32_t step, microbatch;
        int32_t unit;
        const char *text; /* what is wrong if this one is not gathered */
    } row[] = {
        {0, 0, 0, "gathered 0 times in the forward, 1 expected"},
        {0, 1, 0, "in the evaluations of the optimizer's step, 1 expected"},
        {0, 1, 1, "in the evaluations of the optimizer's step, 1 expected"},
        {1, 0, 1, "gathered 0 times in the forward, 1 expected"},
    };
    struct scene x;

    read_kept(&x, "evaluated");
    assert_null(find_event(&x.s.rank[0], 1, 0, OWN_ALL_GATHER, 0));
    for (uint32_t r = 0; r < 2; r++) { /* a forward's end that is not counted */
        struct own_event *e = find_event(&x.s.rank[r], 1, 0, OWN_FORWARD, 0);

        assert_non_null(e);
        e->kind = OWN_ALL_GATHER;
    }
    assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
    assert_int_equal(item_of(&x, "own.gathers")->outcome, OWN_PASS);
    finish(&x);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct own_event *e;

        read_kept(&x, "evaluated");
        e = find_event(&x.s.rank[1], row[i].step, row[i].microbatch,
                       OWN_ALL_GATHER, row[i].unit);
        assert_non_null(e);
        e->unit = -1;
        assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
        if (!strstr(item_of(&x, "own.gathers")->finding.text, row[i].text)) {
            fail_msg("%zu: %s", i, item_of(&x, "own.gathers")->finding.text);
        }
        finish(&x);
    }
}

/* Elements that rank 1 reduces of a unit in the first pass. */
static uint64_t reduced_by_rank_1(const struct scene *x, uint32_t unit)
{
    const struct own_event pass = {.rank = 1};

    return own_unit_elements(&x->s, &pass, unit, true);
}

/* Rank 1 has no gradient of the unit's first parameter: it reduces that much
 * less, but for a unit that fills up with zeros what is trained. */
UNIT_TEST(what_has_no_gradient_may_be_filled)
{
    const uint32_t unit = 1;
    struct own_tensor *from;
    struct own_tensor *to;
    struct scene x;
    uint64_t all;
    uint32_t p;

    read_kept(&x, "mlp");
    p = x.s.rank[0].unit[unit].parameter[0];
    all = reduced_by_rank_1(&x, unit);
    assert_true(all > 0);
    from = to = x.s.unsharded.tensor;
    for (uint32_t i = 0; i < x.s.unsharded.n_tensors; i++, from++) {
        if (strcmp(from->stage, "local-gradient") != 0 || from->rank != 1 ||
            from->parameter != p) {
            *to++ = *from;
        }
    }
    x.s.unsharded.n_tensors = (uint32_t)(to - x.s.unsharded.tensor);
    assert_true(reduced_by_rank_1(&x, unit) < all);
    x.s.rank[0].unit[unit].fills = true;
    assert_true(reduced_by_rank_1(&x, unit) == all);
    x.s.unsharded.parameter[p].trainable = false;
    assert_true(reduced_by_rank_1(&x, unit) < all);
    finish(&x);
}

/* Of FSDP1: what pads parameters that a rank keeps as tensors of their own. */
UNIT_TEST(a_flat_unit_is_padded)
{
    struct scene x;

    read_kept(&x, "fsdp1");
    for (uint32_t r = 0; r < 2; r++) {
        snprintf(x.s.rank[r].wrapper, sizeof(x.s.rank[r].wrapper),
                 "fsdp1-flat");
    }
    expect_first(&x, "own.wire", "elements");
}

UNIT_TEST(a_parameter_outside_of_flat_units)
{
    struct scene x;

    read_kept(&x, "fsdp1");
    x.s.rank[0].unit[0].n_parameters = x.s.rank[1].unit[0].n_parameters = 0;
    expect_first(&x, "own.layout", "no FullyShardedDataParallel is around it");
}

/* DeepSpeed has parts, and no units. */
UNIT_TEST(zero_has_parts)
{
    static const char *const kept[] = {"deepspeed-zero3", "deepspeed-zero2"};

    for (size_t k = 0; k < 2; k++) {
        struct scene x;

        read_kept(&x, kept[k]);
        assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
        assert_int_equal(item_of(&x, "own.gathers")->outcome,
                         OWN_NOT_APPLICABLE);
        assert_true(item_of(&x, "own.order")->proved);
        own_result_release(&x.r);
        x.s.rank[1].n_pieces--;
        expect_first(&x, "own.layout", "it is on no rank");
        read_kept(&x, kept[k]);
        x.s.rank[1].piece[0] = x.s.rank[0].piece[0];
        expect_first(&x, "own.layout", "it is on two ranks");
    }
}

/* Takes away a rank's tensors of a stage, from a parameter on. */
static void take_away(struct own_record *r, const char *stage,
                      uint32_t parameter)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_tensors; i++) {
        if (!own_stage_is(&r->tensor[i], stage) ||
            r->tensor[i].parameter < parameter) {
            r->tensor[n++] = r->tensor[i];
        }
    }
    r->n_tensors = n;
}

/* Where nothing is reduced no state is saved, and states of zeros are loaded,
 * of which nothing is asked: what is damaged is one that was saved. */
UNIT_TEST(states_that_were_not_saved)
{
    struct scene x;

    for (uint32_t all = 0; all < 2; all++) {
        read_kept(&x, "mlp");
        for (uint32_t r = 0; r < x.s.world; r++) {
            take_away(&x.s.rank[r], "state.",
                      all ? 0 : x.s.unsharded.n_parameters - 1);
        }
        assert_int_equal(own_judge(&x.s, &x.r), FSDP_OK);
        assert_int_equal(item_of(&x, "own.states")->outcome, OWN_FAIL);
        assert_int_equal(item_of(&x, "own.saved-states")->outcome,
                         all ? OWN_NOT_APPLICABLE : OWN_PASS);
        assert_int_equal(item_of(&x, "own.saved-states")->proved, !all);
        assert_int_equal(x.r.proved, x.r.damaged);
        finish(&x);
    }
}

UNIT_TEST(places_are_those_of_python)
{
    assert_int_equal(own_places(5), 5);
    assert_int_equal(own_places(33), 32);
    assert_int_equal(own_place(33, 31), 32);
    assert_int_equal(own_place(170, 1), 5);
    assert_int_equal(own_places_before(170, 5), 1);
    assert_int_equal(own_places_before(170, 6), 2);
    assert_int_equal(own_place(UINT64_C(1) << 40, 31), (1LL << 40) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_records_are_right),
        cmocka_unit_test(each_check_can_fail),
        cmocka_unit_test(a_damage_is_repaired),
        cmocka_unit_test(wrong_divisor),
        cmocka_unit_test(a_local_gradient_is_named),
        cmocka_unit_test(a_digest_is_enough),
        cmocka_unit_test(nan_is_no_loss),
        cmocka_unit_test(a_missing_reduction),
        cmocka_unit_test(a_gather_too_many),
        cmocka_unit_test(an_evaluation_may_keep_the_root),
        cmocka_unit_test(what_has_no_gradient_may_be_filled),
        cmocka_unit_test(a_flat_unit_is_padded),
        cmocka_unit_test(a_parameter_outside_of_flat_units),
        cmocka_unit_test(zero_has_parts),
        cmocka_unit_test(states_that_were_not_saved),
        cmocka_unit_test(places_are_those_of_python),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
