/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_frozen_test.c - a model with frozen parameters does not ask for
 * their gradients, and computes the others to the same bits. The backward does
 * not visit a frozen beginning of the model.
 */
#include <string.h>

#include "testing/unit_testing.h"
#include "workload_testing.h"

#include <math.h>

static bool is_frozen(const struct fsdp_model *model, uint32_t p)
{
    return (model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Whether the backward visits a module. */
static bool goes_back(const struct fsdp_model *model, uint32_t module)
{
    const struct fsdp_sequence *s = model->sequence[FSDP_SEQUENCE_TRAIN];

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->module[i] == module && s->point[i] == FSDP_PRE_BACKWARD) {
            return true;
        }
    }
    return false;
}

/* Modules, and so parameters, stand in the order in which they are called; the
 * parameters of a module are frozen together where it is at the beginning. */
static void check_sequence(const struct fsdp_model *model)
{
    bool trains = false;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        trains = trains || !is_frozen(model, p);
        if (p + 1 == model->n_parameters ||
            model->parameter_module[p + 1] != model->parameter_module[p]) {
            assert_true(goes_back(model, model->parameter_module[p]) == trains);
        }
    }
    assert_true(trains);
    assert_true(goes_back(model, 0));
}

static uint32_t compare(const char *workload, const char *size, uint32_t frozen,
                        uint64_t seed)
{
    struct workload_config config = {
        .size = size, .seed = seed, .world = 2, .microbatches = 1};
    const bool is_graph = strcmp(workload, "graph") == 0;
    struct trial all;
    struct trial some;
    uint32_t n = 0;
    float want;
    float got;

    config.text = trial_text(&config.text_bytes);
    trial_open(&all, workload, &config);
    config.frozen = frozen;
    trial_open(&some, workload, &config);
    want = trial_pass(&all, FSDP_SEQUENCE_TRAIN, 1, 3, 0);
    got = trial_pass(&some, FSDP_SEQUENCE_TRAIN, 1, 3, 0);
    assert_memory_equal(&got, &want, sizeof(got));
    for (uint32_t p = 0; p < all.model->model.n_parameters; p++) {
        const uint64_t numel = fsdp_numel(&all.model->model, p);

        assert_false(is_frozen(&all.model->model, p));
        if (!is_frozen(&some.model->model, p)) {
            assert_memory_equal(some.grad[p], all.grad[p],
                                numel * sizeof(float));
            continue;
        }
        n++;
        for (uint64_t i = 0; i < numel; i++) {
            assert_true(isnan(some.grad[p][i])); /* it was not written */
        }
    }
    assert_true(n < all.model->model.n_parameters);
    if (!is_graph) { /* a graph has its own sequences */
        assert_true(n > 0);
        check_sequence(&some.model->model);
    }
    trial_close(&some);
    trial_close(&all);
    return n;
}

UNIT_TEST(test_same_gradients)
{
    uint32_t n = 0;

    for (uint32_t i = 0; workloads[i]; i++) {
        const struct workload *w = workloads[i];

        for (uint32_t f = 1; f < WORKLOAD_N_FROZEN; f++) {
            for (uint32_t s = 0; w->sizes[s]; s++) {
                if ((w->freezes >> f & 1u) != 0 &&
                    strcmp(w->sizes[s], "small") != 0) {
                    n += compare(w->name, w->sizes[s], f, 7);
                }
            }
        }
    }
    assert_true(n > 0);
}

UNIT_TEST(test_same_gradients_of_graphs)
{
    for (uint32_t f = 1; f < WORKLOAD_N_FROZEN; f++) {
        uint32_t n = 0;

        for (uint64_t seed = 1; seed <= 40; seed++) {
            n += compare("graph", "random", f, seed);
        }
        assert_true(n > 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_gradients),
        cmocka_unit_test(test_same_gradients_of_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
