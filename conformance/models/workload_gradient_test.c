/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_gradient_test.c - gradients against finite differences of the
 * loss, in every parameter of every workload.
 *
 * A parameter is moved along its own gradient g, or along g in a random half
 * of its elements and 0 elsewhere: the loss then changes by the sum of g^2
 * over those, so that a gradient in a wrong place shows like one of a wrong
 * size. The step is such that the expected change is far above float32's
 * rounding of the loss.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

#include <fsdp/arith/philox.h>

#include "graph.h"
#include "workload_testing.h"

enum {
    MASKS = 4
};

static double worst;  /* relative error so far */
static bool is_graph; /* whose ReLUs may be dead */

static float moved_loss(struct trial *t, uint32_t p, const float *direction,
                        const float *at, float h)
{
    const uint64_t n = fsdp_numel(&t->model->model, p);
    float loss;

    for (uint64_t e = 0; e < n; e++) {
        t->weight[p][e] = at[e] + h * direction[e];
    }
    loss = trial_pass(t, FSDP_SEQUENCE_EVAL, 1, 2, 0);
    memcpy(t->weight[p], at, n * sizeof(*at));
    return loss;
}

static double difference(struct trial *t, uint32_t p, const float *direction,
                         const float *at, float h)
{
    return ((double)moved_loss(t, p, direction, at, h) -
            (double)moved_loss(t, p, direction, at, -h)) /
           (2.0 * (double)h);
}

/* Checks one direction: the gradient, masked by random bits of stream `mask`,
 * or unmasked if that is 0. */
static void check_direction(struct trial *t, uint32_t p, uint32_t mask,
                            const float *grad, const float *at,
                            float *direction)
{
    const uint64_t n = fsdp_numel(&t->model->model, p);
    double slope = 0.0;
    double found;
    float h;

    for (uint64_t e = 0; e < n; e++) {
        const bool moves = mask == 0 || fsdp_random_uniform(p, mask, e) < 0.0f;

        direction[e] = moves ? grad[e] : 0.0f;
        slope += (double)direction[e] * (double)direction[e];
    }
    if (slope == 0.0) {
        assert_true(mask != 0 || n < 4 || is_graph);
        return;
    }
    /* The step changes the loss by 1e-3, unless the parameter would move too
     * far. */
    h = (float)fmin(1e-3 / slope, (is_graph ? 0.002 : 0.05) / sqrt(slope));
    /* Two step sizes, so that the error of second order cancels. */
    found = (4.0 * difference(t, p, direction, at, 0.5f * h) -
             difference(t, p, direction, at, h)) /
            3.0;
    worst = fmax(worst, fabs(found - slope) / slope);
    if (!(fabs(found - slope) <= 0.02 * slope + 3e-7 / (double)h)) {
        fail_msg("%s, mask %u: slope %g, by differences %g",
                 t->model->model.parameter_name[p], (unsigned)mask, slope,
                 found);
    }
}

static void check_parameter(struct trial *t, uint32_t p)
{
    const uint64_t n = fsdp_numel(&t->model->model, p);
    float *copy = calloc(3 * n, sizeof(*copy));

    assert_non_null(copy);
    memcpy(copy, t->weight[p], n * sizeof(*copy));
    (void)trial_pass(t, FSDP_SEQUENCE_TRAIN, 1, 2, 0);
    memcpy(copy + n, t->grad[p], n * sizeof(*copy));
    for (uint64_t e = 0; e < n; e++) {
        assert_true(isfinite(copy[n + e])); /* every element was written */
    }
    for (uint32_t mask = 0; mask <= MASKS; mask++) {
        check_direction(t, p, mask, copy + n, copy, copy + 2 * n);
    }
    free(copy);
}

/* Whether the loss of an evaluation has the training gradient: both call the
 * same modules, each once, and no call counts as constant. */
static bool is_differentiable(const struct graph *g)
{
    bool good = (graph_features(g) & (GRAPH_OTHER_EVAL | GRAPH_REUSED)) == 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        good = good && !g->module[m].detached;
    }
    return good;
}

static uint32_t check_graph(uint64_t seed)
{
    const struct workload_config config = {
        .seed = seed, .world = 2, .microbatches = 1};
    const struct graph_model *m;
    struct trial t;
    uint32_t n = 0;

    trial_open(&t, "graph", &config);
    m = t.model->self;
    for (uint32_t p = 0;
         p < t.model->model.n_parameters && is_differentiable(&m->graph); p++) {
        (void)trial_pass(&t, FSDP_SEQUENCE_TRAIN, 1, 2, 0);
        /* NaN: no gradient of this parameter was written. */
        if (fsdp_numel(&t.model->model, p) > 0 && !isnan(t.grad[p][0])) {
            assert_int_equal(t.model->idle[p] & 1, 0);
            check_parameter(&t, p);
            n++;
        }
    }
    trial_close(&t);
    return n;
}

UNIT_TEST(test_graph)
{
    uint32_t n = 0;

    worst = 0.0;
    is_graph = true;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        n += check_graph(seed);
    }
    is_graph = false;
    print_message("graph: %u parameters, relative error at most %.2g\n", n,
                  worst);
    assert_true(n > 50);
}

/* Of a hundred parameters whose modules training calls, nearly all make a
 * difference to the loss (a ReLU may be dead, and a row of one number has no
 * norm); parameters of other modules make none. */
UNIT_TEST(test_graph_is_sensitive)
{
    uint32_t called = 0;
    uint32_t felt = 0;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        const struct workload_config config = {
            .seed = seed, .world = 2, .microbatches = 1};
        struct trial t;

        trial_open(&t, "graph", &config);
        for (uint32_t p = 0; p < t.model->model.n_parameters; p++) {
            const float at =
                fsdp_numel(&t.model->model, p) > 0 ? t.weight[p][0] : 0.0f;
            const float before = trial_pass(&t, 0, 1, 0, 0);
            float after;

            if (fsdp_numel(&t.model->model, p) == 0 || isnan(t.grad[p][0])) {
                continue;
            }
            t.weight[p][0] = at + 0.5f;
            after = trial_pass(&t, 0, 1, 0, 0);
            t.weight[p][0] = at;
            called++;
            felt += before != after;
        }
        trial_close(&t);
    }
    print_message("graph: %u of %u parameters make a difference\n", felt,
                  called);
    assert_true(called > 300);
    assert_true(felt > called / 100 * 85);
}

static void check(const char *workload, const char *size, uint32_t data)
{
    struct workload_config config = {.size = size,
                                     .data = data,
                                     .seed = 5,
                                     .world = 2,
                                     .microbatches = 1,
                                     .grains = 4};
    struct trial t;

    worst = 0.0;
    config.text = trial_text(&config.text_bytes);
    trial_open(&t, workload, &config);
    for (uint32_t p = 0; p < t.model->model.n_parameters; p++) {
        check_parameter(&t, p);
    }
    trial_close(&t);
    print_message("%s %s: relative error at most %.2g\n", workload, size,
                  worst);
}

UNIT_TEST(test_mlp)
{
    check("mlp", "seed", WORKLOAD_NATURAL);
    check("mlp", "odd", WORKLOAD_NATURAL);
    check("mlp", "empty", WORKLOAD_NATURAL);
    check("mlp", "wide", WORKLOAD_NATURAL);
}

UNIT_TEST(test_linear)
{
    check("linear", "small", WORKLOAD_NATURAL);
    check("linear", "tiny", WORKLOAD_NATURAL);
    check("linear", "small", WORKLOAD_EXACT);
}

UNIT_TEST(test_gpt)
{
    check("gpt", "odd", WORKLOAD_NATURAL);
    check("gpt", "tiny", WORKLOAD_NATURAL);
    check("gpt", "tied", WORKLOAD_NATURAL);
    check("lora", "odd", WORKLOAD_NATURAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_graph_is_sensitive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
