/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_model_test.c - the models that the program brings along have as many
 * parameters as is published of them; descriptions are read strictly, and
 * refused with a sentence where they make no model.
 */
#include "testing/unit_testing.h"
#include "tools/plan/plan_bytes.h"
#include "tools/plan/plan_model.h"
#include "tools/plan/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t elements_of(const struct plan_model *m, uint32_t unit)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < m->model.n_parameters; p++) {
        const uint32_t module = m->model.parameter_module[p];

        n += m->units.unit_of_module[module] == unit ? fsdp_numel(&m->model, p)
                                                     : 0;
    }
    return n;
}

UNIT_TEST(published_counts)
{
    static const struct {
        const char *name;
        uint64_t elements;
        uint32_t units;
        uint64_t block; /* of unit 1 */
    } all[] = {
        {"llama2-7b", 6738415616, 34, 202383360},
        {"llama2-13b", 13015864320, 42, 317204480},
        {"llama2-70b", 68976648192, 82, 855654400},
        {"llama3-8b", 8030261248, 34, 218112000},
        {"llama3-70b", 70553706496, 82, 855654400},
        {"llama3-405b", 405853388800, 128, 3187703808},
        {"gpt2", 124439808, 14, 7087872},
        {"gpt2-xl", 1557611200, 50, 30740800},
        {"gpt-175b", 175215501312, 98, 1812099072},
        {"t5-large", 737668096, 50, 12584960},
        {"t5-3b", 2851598336, 50, 50333696},
        {"t5-11b", 11307321344, 50, 201328640},
    };
    size_t n = 0;

    while (preset_models[n].name) {
        n++;
    }
    assert_int_equal(n, sizeof(all) / sizeof(all[0]));
    for (size_t i = 0; i < n; i++) {
        struct plan_model m;
        struct fsdp_error error = {0};
        struct run_case c;
        bool is_record;

        if (plan_model_open(all[i].name, &c, &is_record, &m, &error) !=
            FSDP_OK) {
            fail_msg("%s", error.message);
        }
        assert_int_equal(m.elements, all[i].elements);
        assert_int_equal(m.units.units.n_units, all[i].units);
        assert_int_equal(elements_of(&m, 1), all[i].block);
        plan_model_release(&m);
    }
}

/* The work that is counted is that which is published: for Llama 3 8B six
 * operations a parameter in forward and backward, none for the embedding. */
UNIT_TEST(published_work)
{
    struct plan_model m;
    struct run_case c;
    bool is_record;
    double flops = 0.0;
    double wide = 0.0;

    assert_int_equal(plan_model_open("llama3-8b", &c, &is_record, &m, NULL),
                     FSDP_OK);
    for (uint32_t i = 0; i < m.model.n_modules; i++) {
        flops += m.work[i].flops;
        wide += 4.0 * m.work[i].attention;
    }
    /* Norms, 65 of 4096, are no matrices. */
    assert_true(flops == 2.0 * (8030261248.0 - 128256.0 * 4096 - 65 * 4096));
    assert_true(3 * wide == 12.0 * 32 * 4096);
    plan_model_release(&m);
}

UNIT_TEST(other_units)
{
    struct plan_model m;
    struct run_case c;
    struct wrap_units units;
    bool is_record;

    assert_int_equal(plan_model_open("gpt2", &c, &is_record, &m, NULL),
                     FSDP_OK);
    assert_int_equal(plan_units(&m, 4, &units), FSDP_OK);
    assert_int_equal(units.units.n_units, 4); /* 14, by fours */
    assert_int_equal(units.unit_of_module[0], FSDP_NO_UNIT);
    wrap_release(&units);
    assert_int_equal(plan_units(&m, 0, &units), FSDP_OK);
    assert_int_equal(units.units.n_units, 1);
    wrap_release(&units);
    assert_int_equal(plan_units(&m, UINT32_MAX, &units), FSDP_OK);
    assert_int_equal(units.units.n_units, 1 + 12 * 4 + 1);
    wrap_release(&units);
    plan_model_release(&m);
    /* Where the root has parameters its unit stays by itself. */
    assert_int_equal(plan_model_open("gpt.tiny", &c, &is_record, &m, NULL),
                     FSDP_OK);
    assert_int_equal(m.units.unit_of_module[0], 0);
    assert_int_equal(plan_units(&m, 100, &units), FSDP_OK);
    assert_int_equal(units.units.n_units, 2);
    assert_int_equal(units.unit_of_module[0], 0);
    wrap_release(&units);
    plan_model_release(&m);
}

#define ONE(name, unit, shape)                                            \
    "{\"name\":\"" name "\",\"class\":\"L\",\"unit\":" unit ","           \
    "\"checkpoint\":false,\"flops\":null,\"attention\":0,"                \
    "\"parameters\":[{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[" shape \
    "]}]}"
#define MODULE(name, shape) ONE(name, "true", shape)
#define INNER(name, shape)  ONE(name, "false", shape)
#define MODEL(times, modules, calls)                             \
    "{\"version\":1,\"name\":\"m\",\"source\":\"\",\"parts\":[{" \
    "\"times\":" times ",\"modules\":[" modules "]}],\"calls\":[" calls "]}"

static int parse(const char *text, struct plan_model *m,
                 struct fsdp_error *error)
{
    memset(error, 0, sizeof(*error));
    return plan_model_of_text(text, strlen(text), "file", m, error);
}

UNIT_TEST(what_a_description_says)
{
    struct plan_model m;
    struct fsdp_error error;

    assert_int_equal(parse(MODEL("2", MODULE("a{i}.b", "3,5"), ""), &m, &error),
                     FSDP_OK);
    assert_int_equal(m.model.n_modules, 3);
    assert_string_equal(m.model.module_name[2], "a1.b");
    assert_string_equal(m.model.parameter_name[1], "a1.b.w");
    assert_int_equal(m.elements, 30);
    assert_true(m.work[1].flops == 30.0);
    plan_model_release(&m);
    /* A module with the root's name is the root; calls are taken as given. */
    assert_int_equal(
        parse(MODEL("1", MODULE("", "2") "," MODULE("a", "3"),
                    "[\"pre-forward\",\"a\"],[\"post-forward\",\"a\"],"
                    "[\"pre-backward\",\"a\"],[\"post-backward\",\"a\"]"),
              &m, &error),
        FSDP_OK);
    assert_int_equal(m.model.n_modules, 2);
    assert_int_equal(m.model.sequence[FSDP_SEQUENCE_TRAIN]->n, 4);
    assert_string_equal(m.model.parameter_name[0], "w");
    plan_model_release(&m);
}

/* Units that nest: the root's other modules follow a unit of a later number,
 * and the last module is of an earlier one. */
UNIT_TEST(units_that_nest)
{
    struct plan_model m;
    struct wrap_units units;
    struct fsdp_error error;

    assert_int_equal(
        parse(MODEL("1",
                    MODULE("a", "3") "," MODULE("a.b", "3") "," MODULE(
                        "a.c", "3") "," INNER("a.d", "3"),
                    ""),
              &m, &error),
        FSDP_OK);
    assert_int_equal(m.units.units.n_units, 3);
    assert_int_equal(m.units.unit_of_module[4], 0);
    assert_int_equal(plan_units(&m, 2, &units), FSDP_OK);
    assert_int_equal(units.units.n_units, 2);
    assert_int_equal(units.unit_of_module[3], 1);
    assert_int_equal(units.unit_of_module[4], 0);
    wrap_release(&units);
    plan_model_release(&m);
}

/* 2^55 bytes in 65536 replicas: what a ring sends is no product that does not
 * fit 64 bits; and what is no whole number of bytes is rounded up. */
UNIT_TEST(a_large_all_reduce)
{
    static const struct {
        const char *shape;
        uint64_t bytes; /* of the model */
        uint64_t less;  /* than twice of them are sent */
    } all[] = {{"9007199254740992", (uint64_t)1 << 55, (uint64_t)1 << 40},
               {"3", 12, 0}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct plan_ask ask = {.c = {.strategy = CASE_NO_SHARD,
                                     .ranks = 65536,
                                     .replicas = 65536,
                                     .microbatches = 1,
                                     .sync = {1}}};
        struct plan_model m;
        struct plan_bytes b;
        struct fsdp_error error;
        char text[512];

        snprintf(text, sizeof(text), MODEL("1", MODULE("a", "%s"), ""),
                 all[i].shape);
        assert_int_equal(parse(text, &m, &error), FSDP_OK);
        ask.model = &m.model;
        ask.units = &m.units.units;
        if (plan_bytes_make(&ask, &b, &error) != FSDP_OK) {
            fail_msg("%s", error.message);
        }
        assert_int_equal(b.sent[FSDP_ALL_REDUCE],
                         2 * all[i].bytes - all[i].less);
        plan_bytes_release(&b);
        plan_model_release(&m);
    }
}

UNIT_TEST(what_is_refused)
{
    static const struct {
        const char *text, *says;
        int status;
    } all[] = {
        {"", "", FSDP_ERR_FORMAT},
        {"[]", "an object", FSDP_ERR_FORMAT},
        {MODEL("0", MODULE("a", "3"), ""), "from 1", FSDP_ERR_FORMAT},
        {MODEL("1", MODULE("a", "-3"), ""), "2^53", FSDP_ERR_FORMAT},
        {MODEL("1", MODULE("a", "1,1,1,1,1"), ""), "shape", FSDP_ERR_FORMAT},
        {MODEL("1", MODULE("a", "9223372036854775808"), ""), "file",
         FSDP_ERR_FORMAT},
        {MODEL("1", MODULE("a", "9007199254740992,9007199254740992"), ""),
         "a.w: too large", FSDP_ERR_INVALID},
        {MODEL("4", MODULE("a{i}", "9007199254740992"), ""), "2^63",
         FSDP_ERR_INVALID},
        {MODEL("1", MODULE("a", "0"), ""), "no parameter", FSDP_ERR_INVALID},
        {MODEL("2", MODULE("a", "3"), ""), "a second one", FSDP_ERR_INVALID},
        {MODEL("4096", MODULE("a{i}", "3"), ""), "4096 modules",
         FSDP_ERR_INVALID},
        {MODEL("1", MODULE("a", "3"), "[\"pre-forward\",\"b\"]"),
         "no module \"b\"", FSDP_ERR_INVALID},
        {MODEL("1", MODULE("a", "3"), "[\"pre-forward\",\"a\"]"),
         "sequence train", FSDP_ERR_INVALID},
        {MODEL("1", MODULE("a", "3"), "[\"now\",\"a\"]"), "in its list",
         FSDP_ERR_FORMAT},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct plan_model m;
        struct fsdp_error error;

        assert_int_equal(parse(all[i].text, &m, &error), all[i].status);
        if (!strstr(error.message, all[i].says)) {
            fail_msg("%s: \"%s\" does not say \"%s\"", all[i].text,
                     error.message, all[i].says);
        }
        plan_model_release(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_counts),
        cmocka_unit_test(published_work),
        cmocka_unit_test(other_units),
        cmocka_unit_test(what_a_description_says),
        cmocka_unit_test(units_that_nest),
        cmocka_unit_test(a_large_all_reduce),
        cmocka_unit_test(what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
