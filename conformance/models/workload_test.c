/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_test.c - descriptions and samples, which need no device: sizes are
 * those that their comments claim, slices of initial weights agree with the
 * whole, samples differ where they should, and a config that does not fit is
 * refused with a sentence.
 */
#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"
#include "workload_testing.h"

static struct workload_model *describe(const char *name, const char *size,
                                       uint32_t data, uint32_t world,
                                       uint32_t microbatches, uint32_t grains)
{
    struct workload_config config = {.size = size,
                                     .data = data,
                                     .seed = 9,
                                     .world = world,
                                     .microbatches = microbatches,
                                     .grains = grains};
    struct workload_model *m = NULL;
    struct fsdp_error error = {0};

    config.text = trial_text(&config.text_bytes);
    if (workload_find(name)->describe(&config, &m, &error) != FSDP_OK) {
        fail_msg("%s %s: %s", name, size, error.message);
    }
    return m;
}

static uint64_t total(const struct fsdp_model *model)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        n += fsdp_numel(model, p);
    }
    return n;
}

static void check_slices(const struct fsdp_model *model)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(model, p);
        float *whole = calloc(n, sizeof(*whole));
        float *parts = calloc(n, sizeof(*parts));
        bool different = n < 4;
        uint64_t step = n / 3 + 1;

        assert_true(whole && parts);
        assert_int_equal(model->initial(model->context, p, 0, n, whole), 0);
        for (uint64_t at = 0; at < n; at += step) {
            const uint64_t some = at + step <= n ? step : n - at;

            assert_int_equal(
                model->initial(model->context, p, at, some, parts + at), 0);
        }
        assert_memory_equal(whole, parts, n * sizeof(*whole));
        for (uint64_t e = 1; e < n; e++) {
            assert_true(isfinite(whole[e]));
            different |= fsdp_f32_bits(whole[e]) != fsdp_f32_bits(whole[0]);
        }
        assert_true(different);
        assert_int_equal(model->initial(model->context, p, n, 1, parts),
                         FSDP_ERR_INVALID);
        free(whole);
        free(parts);
    }
    assert_int_equal(
        model->initial(model->context, model->n_parameters, 0, 0, NULL),
        FSDP_ERR_INVALID);
}

/* Every module is entered once in each direction, and left before the module
 * around it. */
static void check_sequences(const struct fsdp_model *model, bool any_calls)
{
    const struct fsdp_sequence *train = model->sequence[FSDP_SEQUENCE_TRAIN];
    const struct fsdp_sequence *eval = model->sequence[FSDP_SEQUENCE_EVAL];

    if (any_calls) { /* graphs: case_graph_test.c */
        return;
    }
    assert_int_equal(train->n, 4 * model->n_modules);
    assert_int_equal(eval->n, 2 * model->n_modules);
    assert_memory_equal(eval->point, train->point,
                        eval->n * sizeof(*eval->point));
    for (uint32_t m = 0; m < model->n_modules; m++) {
        uint32_t next = FSDP_PRE_FORWARD;

        for (uint32_t i = 0; i < train->n; i++) {
            if (train->module[i] == m) {
                assert_int_equal(train->point[i], next);
                next++;
            }
        }
        assert_int_equal(next, FSDP_POST_BACKWARD + 1);
    }
}

UNIT_TEST(test_descriptions)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        assert_ptr_equal(workload_find((*w)->name), *w);
        assert_non_null((*w)->summary);
        for (const char *const *size = (*w)->sizes; *size; size++) {
            for (uint32_t data = 0; data < 3; data++) {
                if (((*w)->data_kinds >> data & 1u) != 0 &&
                    strcmp(*size, "large") != 0) {
                    struct workload_model *m =
                        describe((*w)->name, *size, data, 1, 1, 0);

                    check_slices(&m->model);
                    check_sequences(&m->model, (*w)->any_size);
                    (*w)->release(m);
                }
            }
        }
        (*w)->release(NULL);
        (*w)->close(NULL);
    }
    assert_null(workload_find("grap"));
}

static void check_total(const char *name, const char *size, uint64_t want)
{
    struct workload_model *m = describe(name, size, 0, 1, 1, 0);

    assert_int_equal(total(&m->model), want);
    assert_string_equal(m->config.size, size);
    m->workload->release(m);
}

UNIT_TEST(test_sizes)
{
    struct workload_model *m = describe("mlp", NULL, 0, 1, 1, 0);

    assert_int_equal(fsdp_numel(&m->model, 0), 512);
    assert_int_equal(fsdp_numel(&m->model, 1), 1024);
    assert_int_equal(fsdp_numel(&m->model, 2), 512);
    assert_int_equal(fsdp_numel(&m->model, 3), 128);
    assert_string_equal(m->model.module_name[2], "layers.1");
    assert_string_equal(m->model.module_class[2], "Linear");
    m->workload->release(m);
    check_total("mlp", "seed", 2176);
    check_total("mlp", "odd", 62);
    check_total("mlp", "empty", 5);
    check_total("mlp", "wide", 5000);
    check_total("mlp", "track", 62);
    check_total("linear", "small", 198);
    check_total("linear", "tiny", 12);
    check_total("linear", "large", 4194304);
    check_total("gpt", "odd", 3455);
    check_total("gpt", "tiny", 20720);
    check_total("gpt", "small", 236928);
    check_total("lora", "odd", 3455 + 2 * 160);
    check_total("lora", "small", 236928 + 4 * 4096);
}

/* Size "even" also suits an engine that begins each parameter at a multiple of
 * 16 bytes. */
UNIT_TEST(test_even_in_every_parameter)
{
    struct workload_model *m = describe("lora", "even", 0, 1, 1, 0);
    uint32_t odd = 0;

    for (uint32_t p = 0; p < m->model.n_parameters; p++) {
        odd += fsdp_numel(&m->model, p) % 4 != 0;
    }
    assert_int_equal(odd, 0);
    assert_int_equal(m->model.n_parameters, 45);
    m->workload->release(m);
}

/* "tall" is "tiny" with three blocks. */
UNIT_TEST(test_gpt_of_any_number_of_blocks)
{
    struct workload_model *tall = describe("gpt", "tall", 0, 1, 1, 0);
    struct workload_model *three = describe("gpt", "tiny-3", 0, 1, 1, 0);
    struct workload_model *many = describe("gpt", "tiny-100", 0, 1, 1, 0);
    const uint64_t block = total(&tall->model) - 20720;

    assert_int_equal(total(&three->model), total(&tall->model));
    assert_int_equal(three->model.n_modules, tall->model.n_modules);
    assert_int_equal(total(&many->model), 20720 + 98 * block);
    tall->workload->release(tall);
    three->workload->release(three);
    many->workload->release(many);
}

/* Elements of the parameters of modules [first, last). */
static uint64_t part(const struct fsdp_model *model, uint32_t first,
                     uint32_t last)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint32_t m = model->parameter_module[p];

        n += m >= first && m < last ? fsdp_numel(model, p) : 0;
    }
    return n;
}

static void check_indivisible(uint64_t n)
{
    assert_true(n % 2 != 0 && n % 3 != 0 && n % 7 != 0);
}

UNIT_TEST(test_odd_gpt_divides_evenly_by_no_world)
{
    struct workload_model *m = describe("gpt", "odd", 0, 1, 1, 0);
    const uint64_t block = part(&m->model, 2, 7);

    assert_string_equal(m->model.module_class[2], "Block");
    assert_int_equal(block, part(&m->model, 7, 12));
    check_indivisible(block);
    check_indivisible(total(&m->model));
    check_indivisible(total(&m->model) - 2 * block);
    m->workload->release(m);
}

enum {
    MAX_DIGESTS = 512
};

struct digests {
    uint64_t of[MAX_DIGESTS];
    uint32_t n;
};

static void add_all(struct digests *d, const struct workload_model *m,
                    uint32_t step)
{
    const struct workload_config *c = &m->config;
    const uint32_t grains = c->grains == 0 ? 1 : c->grains / c->world;

    for (uint32_t rank = 0; rank < c->world; rank++) {
        for (uint32_t microbatch = 0; microbatch < c->microbatches;
             microbatch++) {
            for (uint32_t grain = 0; grain < grains; grain++) {
                assert_true(d->n < MAX_DIGESTS);
                d->of[d->n++] =
                    m->workload->digest(m, rank, step, microbatch, grain);
            }
        }
    }
}

static void assert_all_differ(const struct digests *d)
{
    assert_true(d->n > 1);
    for (uint32_t i = 0; i < d->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            assert_true(d->of[i] != d->of[j]);
        }
    }
}

static void check_samples_differ(const char *name, const char *size,
                                 uint32_t data, uint32_t world,
                                 uint32_t microbatches, uint32_t grains)
{
    struct workload_model *m =
        describe(name, size, data, world, microbatches, grains);
    struct digests d = {.n = 0};
    const bool fresh = strcmp(name, "mlp") != 0;

    add_all(&d, m, 0);
    for (uint32_t step = 1; fresh && step < 4; step++) {
        add_all(&d, m, step);
    }
    assert_all_differ(&d);
    assert_int_equal(m->workload->digest(m, 0, 1, 0, 0) == d.of[0], !fresh);
    m->workload->release(m);
}

UNIT_TEST(test_samples_differ)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        for (const char *const *size = (*w)->sizes; *size; size++) {
            for (uint32_t data = 0; data < 2; data++) {
                if (((*w)->data_kinds >> data & 1u) == 0) {
                    continue;
                }
                check_samples_differ((*w)->name, *size, data, 3, 2, 0);
                check_samples_differ((*w)->name, *size, data, 7, 1, 0);
                check_samples_differ((*w)->name, *size, data, 8, 4, 0);
                check_samples_differ((*w)->name, *size, data, 1, 1, 8);
                check_samples_differ((*w)->name, *size, data, 4, 2, 8);
            }
        }
    }
}

/* A grain has the same samples whatever the world is. */
UNIT_TEST(test_grains_do_not_move)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        struct digests whole = {.n = 0};
        struct workload_model *m = describe((*w)->name, NULL, 0, 1, 1, 8);

        add_all(&whole, m, 3);
        assert_int_equal(whole.n, 8);
        (*w)->release(m);
        for (uint32_t world = 2; world <= 8; world *= 2) {
            struct digests d = {.n = 0};

            m = describe((*w)->name, NULL, 0, world, 1, 8);
            add_all(&d, m, 3);
            assert_int_equal(d.n, 8);
            assert_memory_equal(d.of, whole.of, 8 * sizeof(d.of[0]));
            (*w)->release(m);
        }
    }
}

UNIT_TEST(test_replicated_samples_are_the_same)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        struct workload_model *m;
        struct workload_model *alone;
        uint64_t first;

        if (((*w)->data_kinds >> WORKLOAD_REPLICATED & 1u) == 0) {
            continue;
        }
        m = describe((*w)->name, NULL, WORKLOAD_REPLICATED, 4, 2, 0);
        alone = describe((*w)->name, NULL, WORKLOAD_NATURAL, 1, 2, 0);
        first = (*w)->digest(m, 0, 0, 0, 0);
        for (uint32_t rank = 1; rank < 4; rank++) {
            assert_true((*w)->digest(m, rank, 0, 0, 0) == first);
        }
        assert_true((*w)->digest(m, 0, 0, 1, 0) != first);
        assert_true((*w)->digest(alone, 0, 0, 0, 0) == first);
        (*w)->release(m);
        (*w)->release(alone);
    }
}

static void refused(const char *name, const struct workload_config *config,
                    const char *says)
{
    struct workload_model *m = NULL;
    struct fsdp_error error = {0};

    assert_int_equal(workload_find(name)->describe(config, &m, &error),
                     FSDP_ERR_INVALID);
    assert_null(m);
    assert_int_equal(error.status, FSDP_ERR_INVALID);
    if (!strstr(error.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
    }
    assert_int_equal(workload_find(name)->describe(config, &m, NULL),
                     FSDP_ERR_INVALID);
}

UNIT_TEST(test_what_does_not_fit_is_refused)
{
    const struct workload_config fine = {.world = 2, .microbatches = 1};
    struct workload_config c = fine;

    c.size = "gigantic";
    refused("mlp", &c, "gigantic");
    refused("linear", &c, "gigantic");
    refused("gpt", &c, "gigantic");
    for (const char *const *s =
             (const char *const[]){"tiny-", "tiny-0", "tiny-4097", "tiny-3x",
                                   "tiny--3", "tiny3", "-3", "",
                                   "tiny-18446744073709551617", NULL};
         *s; s++) {
        c.size = *s;
        refused("gpt", &c, "no size");
    }
    c = fine;
    c.data = 3;
    refused("mlp", &c, "data");
    c.data = 32;
    refused("linear", &c, "data");
    c.data = WORKLOAD_EXACT;
    refused("gpt", &c, "data");
    c = fine;
    refused("gpt", &c, "text");
    c.text = "too short";
    c.text_bytes = 9;
    refused("gpt", &c, "text");
    c = fine;
    c.world = 0;
    refused("mlp", &c, "world 0");
    c = fine;
    c.microbatches = 0;
    refused("mlp", &c, "microbatches 0");
    c = fine;
    c.grains = 3;
    refused("mlp", &c, "grains 3");
    c.grains = 256;
    refused("mlp", &c, "at most 64");
    c.grains = 6;
    c.data = WORKLOAD_EXACT;
    refused("linear", &c, "power of two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_even_in_every_parameter),
        cmocka_unit_test(test_gpt_of_any_number_of_blocks),
        cmocka_unit_test(test_odd_gpt_divides_evenly_by_no_world),
        cmocka_unit_test(test_samples_differ),
        cmocka_unit_test(test_grains_do_not_move),
        cmocka_unit_test(test_replicated_samples_are_the_same),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
