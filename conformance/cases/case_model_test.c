/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_model_test.c - every case of the manifest has a model and units, and the
 * properties of its data, units and shards for which the manifest has it.
 */
#include "cases/case_model.h"
#include "testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES = 1 << 16
};

/* A text for gpt to learn: letters whose frequencies differ. */
static char text[TEXT_BYTES + 1];
static struct case_list list;

static int make_list(void **state)
{
    struct fsdp_error error = {0};
    uint32_t random = 1;

    (void)state;
    for (uint32_t i = 0; i < TEXT_BYTES; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = "eeeeettttaaooinshr dlu. \n"[(random >> 16) % 25];
    }
    return manifest_make(&list, &error);
}

static int drop_list(void **state)
{
    (void)state;
    manifest_release(&list);
    return 0;
}

static void make_model(const struct run_case *c, struct case_model *m)
{
    struct fsdp_error error = {0};
    char id[CASE_ID_BYTES];

    case_id(c, id);
    if (case_model_make(c, text, TEXT_BYTES, m, &error) != FSDP_OK) {
        fail_msg("%s: %s", id, error.message);
    }
}

static uint64_t unit_numel(const struct case_model *m, uint32_t unit)
{
    const struct fsdp_model *const model = &m->model->model;
    uint64_t n = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const bool own =
            !model->parameter_alias || model->parameter_alias[p] < 0;

        if (own &&
            m->units.unit_of_module[model->parameter_module[p]] == unit) {
            n += fsdp_numel(model, p);
        }
    }
    return n;
}

/* Whether a rank's shard of some unit is padding alone. */
static bool has_empty_shard(const struct run_case *c,
                            const struct case_model *m)
{
    const uint64_t shards = case_shard_degree(c);

    for (uint32_t u = 0; u < m->units.units.n_units; u++) {
        const uint64_t numel = unit_numel(m, u);
        const uint64_t chunk = (numel + shards - 1) / shards;

        if (chunk * (shards - 1) >= numel) {
            return true;
        }
    }
    return false;
}

UNIT_TEST(every_case_has_a_model_and_units)
{
    uint32_t n_empty = 0;
    uint32_t n_kept = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *const c = &list.c[i];
        struct case_model m;

        make_model(c, &m);
        assert_true(m.units.units.n_units >= 1);
        assert_true(m.model->model.n_sequences >= 2);
        if (c->wrap == CASE_WRAP_WHOLE) {
            assert_int_equal(m.units.units.n_units, 1);
        }
        /* A kept root has a unit. It need not have one where units are drawn,
         * and has none where parameters are scattered: there is no unit to keep
         * then. */
        if (c->keep_root != 0 && c->wrap != CASE_WRAP_DRAWN &&
            c->wrap != CASE_WRAP_SCATTER) {
            assert_true(m.units.unit_of_module[0] != FSDP_NO_UNIT);
            assert_true(unit_numel(&m, m.units.unit_of_module[0]) > 0);
            n_kept++;
        }
        n_empty += has_empty_shard(c, &m);
        case_model_release(&m);
    }
    assert_true(n_kept > 5);
    assert_true(n_empty > 5);
}

UNIT_TEST(natural_batches_of_three_ranks_differ)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *const c = &list.c[i];
        const struct workload *w;
        struct case_model m;
        uint64_t digest[3];

        if (c->ranks != 3 || c->data == WORKLOAD_EXACT || !case_trains(c)) {
            continue;
        }
        make_model(c, &m);
        w = m.model->workload;
        for (uint32_t r = 0; r < 3; r++) {
            digest[r] = w->digest(m.model, r, 0, 0, 0);
        }
        if (c->data == WORKLOAD_REPLICATED) {
            assert_true(digest[0] == digest[1] && digest[1] == digest[2]);
        } else {
            assert_true(digest[0] != digest[1] && digest[1] != digest[2] &&
                        digest[0] != digest[2]);
        }
        n++;
        case_model_release(&m);
    }
    assert_true(n > 10);
}

/* The wraps of the textbook's model: whole, by layer, two layers a unit. */
UNIT_TEST(wraps_of_the_miniature_have_their_units)
{
    static const struct {
        uint32_t wrap, n_units;
    } wraps[] = {
        {CASE_WRAP_WHOLE, 1}, {CASE_WRAP_LAYER, 4}, {CASE_WRAP_PAIR, 2},
        {CASE_WRAP_BLOCK, 4}, {CASE_WRAP_HEAD, 2},
    };
    struct run_case c = list.c[0];
    struct case_model m;

    assert_string_equal(c.workload, "mlp");
    assert_string_equal(c.size, "seed");
    for (size_t i = 0; i < sizeof(wraps) / sizeof(wraps[0]); i++) {
        c.wrap = wraps[i].wrap;
        make_model(&c, &m);
        assert_int_equal(m.units.units.n_units, wraps[i].n_units);
        case_model_release(&m);
    }
    c.wrap = CASE_WRAP_LAYER;
    make_model(&c, &m);
    assert_int_equal(unit_numel(&m, 1), 1024);
    case_model_release(&m);
}

static void assert_refused(const struct run_case *c, const char *complaint)
{
    struct fsdp_error error = {0};
    struct case_model m;

    assert_int_equal(case_model_make(c, text, TEXT_BYTES, &m, &error),
                     FSDP_ERR_INVALID);
    assert_int_equal(error.status, FSDP_ERR_INVALID);
    if (!strstr(error.message, complaint)) {
        fail_msg("\"%s\" does not say \"%s\"", error.message, complaint);
    }
    assert_null(m.model);
    assert_null(m.units.unit_of_module);
    case_model_release(&m);
    assert_int_equal(case_model_make(c, text, TEXT_BYTES, &m, NULL),
                     FSDP_ERR_INVALID);
}

/* An option that reaches beyond the last unit would be refused. */
UNIT_TEST(no_case_reaches_beyond_its_units)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *const c = &list.c[i];
        struct case_model m;

        if (c->prefetch_forward + c->prefetch_backward + c->reduces_in_flight ==
            0) {
            continue;
        }
        make_model(c, &m);
        assert_true(c->prefetch_forward <= m.units.units.n_units);
        assert_true(c->prefetch_backward <= m.units.units.n_units);
        assert_true(c->reduces_in_flight <= m.units.units.n_units);
        case_model_release(&m);
        n++;
    }
    assert_true(n > 40);
}

UNIT_TEST(what_does_not_exist_is_refused_by_name)
{
    struct run_case c = list.c[0];

    memcpy(c.workload, "cnn", 4);
    assert_refused(&c, "there are: mlp, linear, gpt");
    memcpy(c.workload, "mlp", 4);
    memcpy(c.size, "huge", 5);
    assert_refused(&c, "its first is \"seed\"");
    memcpy(c.workload, "gpt", 4);
    memcpy(c.size, "tiny", 5);
    c.data = WORKLOAD_EXACT;
    assert_refused(&c, "no exact data");
    c.microbatches = 0;
    assert_refused(&c, "microbatches");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_has_a_model_and_units),
        cmocka_unit_test(natural_batches_of_three_ranks_differ),
        cmocka_unit_test(wraps_of_the_miniature_have_their_units),
        cmocka_unit_test(no_case_reaches_beyond_its_units),
        cmocka_unit_test(what_does_not_exist_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, make_list, drop_list) != 0;
}
