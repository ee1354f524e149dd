/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_train_test.c - every workload learns under plain SGD, and under
 * the balanced fold the curve is the same for every world.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"
#include "workload_testing.h"

/* A step as operator SGD makes it, without weight decay. */
static void sgd(struct trial *t, float lr)
{
    const struct fsdp_model *model = &t->model->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        for (uint64_t e = 0; e < fsdp_numel(model, p); e++) {
            t->weight[p][e] = fmaf(-lr, t->grad[p][e], t->weight[p][e]);
        }
    }
}

static void train(const char *workload, const char *size, uint32_t steps,
                  float lr, float *first, float *last)
{
    struct workload_config config = {
        .size = size, .seed = 7, .world = 1, .microbatches = 1};
    struct trial t;

    config.text = trial_text(&config.text_bytes);
    trial_open(&t, workload, &config);
    for (uint32_t step = 0; step <= steps; step++) {
        const float loss = trial_pass(&t, FSDP_SEQUENCE_TRAIN, 0, step, 0);

        *first = step == 0 ? loss : *first;
        *last = loss;
        sgd(&t, lr);
    }
    trial_close(&t);
    print_message("%s %s: loss %.6g, after %u steps %.6g\n", workload, size,
                  (double)*first, (unsigned)steps, (double)*last);
}

UNIT_TEST(test_mlp_learns)
{
    float first;
    float last;

    train("mlp", "seed", 40, 0.05f, &first, &last);
    assert_true(last < 0.25f * first);
    train("mlp", "odd", 40, 0.05f, &first, &last);
    assert_true(last < 0.9f * first);
    train("mlp", "empty", 40, 0.05f, &first, &last);
    assert_true(last < 0.98f * first);
    train("mlp", "wide", 40, 0.05f, &first, &last);
    assert_true(last < 0.9f * first);
}

UNIT_TEST(test_gpt_learns)
{
    float first;
    float last;

    train("gpt", "odd", 60, 0.5f, &first, &last);
    assert_true(last < 0.9f * first);
    train("gpt", "tiny", 60, 0.5f, &first, &last);
    assert_true(last < 0.7f * first);
    train("lora", "odd", 60, 0.5f, &first, &last);
    assert_true(last < 0.9f * first);
}

UNIT_TEST(test_linear_falls)
{
    float first;
    float last;

    /* Samples are new at every step, so the loss for the first step's samples
     * is computed again afterwards. */
    struct workload_config config = {.seed = 7, .world = 1, .microbatches = 1};
    struct trial t;

    trial_open(&t, "linear", &config);
    first = trial_pass(&t, FSDP_SEQUENCE_TRAIN, 0, 0, 0);
    sgd(&t, 0.125f);
    last = trial_pass(&t, FSDP_SEQUENCE_EVAL, 0, 0, 0);
    trial_close(&t);
    assert_true(last < first);
}

/* x[a..b) by the balanced tree of op.h and comm.h, which is defined by
 * recursion. NOLINTNEXTLINE(misc-no-recursion) */
static float tree(const float *x, uint32_t n)
{
    const uint32_t left = n - n / 2;

    return n == 1 ? x[0] : tree(x, left) + tree(x + left, n - left);
}

/* Losses and all gradients of a step, folded over the ranks of `world`. */
static float *step_under_tree(const char *workload, const char *size,
                              uint32_t world, uint32_t microbatch, size_t *n)
{
    struct workload_config config = {.size = size,
                                     .seed = 11,
                                     .world = world,
                                     .microbatches = 2,
                                     .grains = 8};
    const struct fsdp_model *model;
    struct trial t;
    float *all;
    float *out;

    config.text = trial_text(&config.text_bytes);
    trial_open(&t, workload, &config);
    model = &t.model->model;
    *n = 1;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        *n += fsdp_numel(model, p);
    }
    all = calloc(*n * world, sizeof(*all)); /* [element][rank] */
    out = calloc(*n, sizeof(*out));
    assert_non_null(all);
    assert_non_null(out);
    for (uint32_t rank = 0; rank < world; rank++) {
        float *to = all + rank;

        *to = trial_pass(&t, FSDP_SEQUENCE_TRAIN, rank, 3, microbatch);
        to += world;
        for (uint32_t p = 0; p < model->n_parameters; p++) {
            for (uint64_t e = 0; e < fsdp_numel(model, p); e++) {
                *to = t.grad[p][e];
                to += world;
            }
        }
    }
    for (size_t e = 0; e < *n; e++) {
        out[e] = tree(all + e * world, world) * (1.0f / (float)world);
    }
    free(all);
    trial_close(&t);
    return out;
}

static void same_for_every_world(const char *workload, const char *size)
{
    for (uint32_t microbatch = 0; microbatch < 2; microbatch++) {
        size_t n;
        float *want = step_under_tree(workload, size, 1, microbatch, &n);

        for (size_t e = 0; e < n; e++) {
            assert_true(isfinite(want[e]));
        }
        for (uint32_t world = 2; world <= 8; world *= 2) {
            size_t m;
            float *got = step_under_tree(workload, size, world, microbatch, &m);

            assert_int_equal(m, n);
            assert_memory_equal(got, want, n * sizeof(*got));
            free(got);
        }
        free(want);
    }
}

UNIT_TEST(test_tree_is_the_same_for_every_world)
{
    same_for_every_world("mlp", "seed");
    same_for_every_world("mlp", "odd");
    same_for_every_world("linear", "small");
    same_for_every_world("gpt", "odd");
    same_for_every_world("gpt", "tiny");
    same_for_every_world("lora", "odd");
}

/* An evaluation is the forward half of training: the same loss, and no
 * gradient. */
UNIT_TEST(test_eval)
{
    struct workload_config config = {
        .size = "tiny", .seed = 3, .world = 2, .microbatches = 1};
    struct trial t;
    float loss;

    config.text = trial_text(&config.text_bytes);
    trial_open(&t, "gpt", &config);
    loss = trial_pass(&t, FSDP_SEQUENCE_TRAIN, 1, 5, 0);
    assert_true(isfinite(t.grad[0][0]));
    assert_true(trial_pass(&t, FSDP_SEQUENCE_EVAL, 1, 5, 0) == loss);
    assert_true(isnan(t.grad[0][0]));
    assert_true(isfinite(loss) && loss > 4.0f && loss < 8.0f);
    trial_close(&t);
}

/* A pass that is given up leaves nothing behind; one that does not begin or
 * begins twice is refused. */
UNIT_TEST(test_misuse)
{
    struct workload_config config = {.seed = 3, .world = 1, .microbatches = 1};
    struct trial t;
    float loss = 0.0f;

    trial_open(&t, "mlp", &config);
    assert_int_equal(t.model->workload->end(t.run, &loss), FSDP_ERR_INVALID);
    assert_int_equal(t.model->workload->begin(t.run, 0, 0, 0), FSDP_OK);
    assert_int_equal(t.model->workload->begin(t.run, 0, 0, 0),
                     FSDP_ERR_INVALID);
    assert_int_equal(t.model->workload->compute(t.run, FSDP_PRE_FORWARD, 1),
                     FSDP_OK);
    assert_int_equal(t.model->workload->end(t.run, &loss), FSDP_OK);
    assert_true(isnan(loss));
    assert_int_equal(t.live_bytes, 0);
    assert_int_equal(t.model->workload->begin(t.run, 0, 0, 0), FSDP_OK);
    trial_close(&t); /* in the middle of a pass */
    assert_int_equal(t.live_bytes, 0);
}

/* Whichever allocation fails, opening says so, and closing leaves nothing. */
UNIT_TEST(test_no_memory)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        struct workload_config config = {.world = 1, .microbatches = 1};
        uint32_t failed = 0;
        int status;

        config.text = trial_text(&config.text_bytes);
        do {
            struct trial t;

            status = trial_try(&t, (*w)->name, &config, ++failed);
            if (status != FSDP_OK) {
                assert_int_equal(status, FSDP_ERR_NOMEM);
                assert_int_equal(t.error.status, FSDP_ERR_NOMEM);
            }
            trial_close(&t); /* asserts that all was freed */
        } while (status != FSDP_OK);
        assert_true(failed > 2);
    }
}

/* Workloads check what `access` answers. */
static int lend_wrong(void *self, uint32_t p, struct fsdp_tensor *out)
{
    const struct trial *t = self;
    const struct fsdp_tensor wrong[] = {
        {.data = NULL, .dtype = FSDP_DTYPE_F32},
        {.data = t->weight[p],
         .dtype = FSDP_DTYPE_I32,
         .n_dims = 2,
         .shape = {16, 32},
         .stride = {32, 1}},
        {.data = t->weight[p],
         .dtype = FSDP_DTYPE_F32,
         .n_dims = 2,
         .shape = {16, 31},
         .stride = {31, 1}},
        {.data = t->weight[p],
         .dtype = FSDP_DTYPE_F32,
         .n_dims = 2,
         .shape = {16, 32},
         .stride = {1, 16}},
    };

    *out = wrong[t->tried % 4];
    return FSDP_OK;
}

UNIT_TEST(test_wrong_tensors_are_refused)
{
    const int want[] = {FSDP_ERR_MISMATCH, FSDP_ERR_UNSUPPORTED,
                        FSDP_ERR_MISMATCH, FSDP_ERR_MISMATCH};

    for (uint32_t i = 0; i < 4; i++) {
        const struct workload_config config = {.world = 1, .microbatches = 1};
        struct workload_access access = {.param = lend_wrong,
                                         .grad = lend_wrong};
        struct workload_run *run;
        const struct workload *w;
        struct trial t;

        trial_open(&t, "mlp", &config);
        w = t.model->workload;
        access.self = &t;
        assert_int_equal(
            w->open(t.model, &t.device, NULL, &access, &t.error, &run),
            FSDP_OK);
        assert_int_equal(w->begin(run, 0, 0, 0), FSDP_OK);
        t.tried = i;
        assert_int_equal(w->compute(run, FSDP_PRE_FORWARD, 1), want[i]);
        assert_non_null(strstr(t.error.message, "layers.0.weight param"));
        w->close(run);
        trial_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp_learns),
        cmocka_unit_test(test_gpt_learns),
        cmocka_unit_test(test_linear_falls),
        cmocka_unit_test(test_tree_is_the_same_for_every_world),
        cmocka_unit_test(test_eval),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_wrong_tensors_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
