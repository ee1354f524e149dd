/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_recompute_test.c - activations that are dropped and computed again
 * change no bit of a loss or of a gradient, and fewer are live at once. Dropped
 * activations become NaN here, so that a model that reads them without
 * recomputing is found out.
 */
#include <stdio.h>
#include <string.h>

#include "testing/unit_testing.h"
#include "workload_testing.h"

/* How often a backward stops to recompute. (If it does so once, the activations
 * of that checkpoint are live all at once, in the forward or the backward.) */
static uint32_t checkpoints(const struct fsdp_model *model)
{
    const struct fsdp_sequence *s = model->sequence[FSDP_SEQUENCE_TRAIN];
    uint32_t n = 0;

    for (uint32_t i = 1; i < s->n; i++) {
        n += s->point[i] == FSDP_PRE_RECOMPUTE &&
             s->point[i - 1] != FSDP_PRE_RECOMPUTE &&
             s->point[i - 1] != FSDP_POST_RECOMPUTE;
    }
    return n;
}

static uint32_t compare(const char *workload, const char *size,
                        uint32_t recompute, uint64_t seed)
{
    struct workload_config config = {
        .size = size, .seed = seed, .world = 2, .microbatches = 2};
    uint32_t n;
    struct trial kept;
    struct trial again;
    float want;
    float got;

    config.text = trial_text(&config.text_bytes);
    trial_open(&kept, workload, &config);
    config.recompute = recompute;
    trial_open(&again, workload, &config);
    for (uint32_t microbatch = 0; microbatch < 2; microbatch++) {
        want = trial_pass(&kept, FSDP_SEQUENCE_TRAIN, 1, 3, microbatch);
        got = trial_pass(&again, FSDP_SEQUENCE_TRAIN, 1, 3, microbatch);
        assert_memory_equal(&got, &want, sizeof(got));
        for (uint32_t p = 0; p < kept.model->model.n_parameters; p++) {
            assert_memory_equal(again.grad[p], kept.grad[p],
                                fsdp_numel(&kept.model->model, p) *
                                    sizeof(float));
        }
        want = trial_pass(&kept, FSDP_SEQUENCE_EVAL, 1, 3, microbatch);
        got = trial_pass(&again, FSDP_SEQUENCE_EVAL, 1, 3, microbatch);
        assert_memory_equal(&got, &want, sizeof(got));
    }
    n = checkpoints(&again.model->model);
    print_message("%s %s, recompute %u: activations %llu, kept %llu bytes\n",
                  workload, size, (unsigned)recompute,
                  (unsigned long long)again.peak_bytes,
                  (unsigned long long)kept.peak_bytes);
    assert_true(n > 1 ? again.peak_bytes < kept.peak_bytes
                      : again.peak_bytes <= kept.peak_bytes);
    trial_close(&again);
    trial_close(&kept);
    return n;
}

UNIT_TEST(test_same_gradients)
{
    for (uint32_t i = 0; workloads[i]; i++) {
        const struct workload *w = workloads[i];

        for (uint32_t r = 1; r < WORKLOAD_N_RECOMPUTES; r++) {
            for (uint32_t s = 0; w->sizes[s]; s++) {
                if (((w->recomputes | w->recomputes_too) >> r & 1u) != 0 &&
                    strcmp(w->sizes[s], "small") != 0) {
                    (void)compare(w->name, w->sizes[s], r, 7);
                }
            }
        }
    }
}

UNIT_TEST(test_same_gradients_of_graphs)
{
    uint32_t n = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        n += compare("graph", "random", WORKLOAD_RECOMPUTE_AROUND, seed);
        n += compare("graph", "random", WORKLOAD_RECOMPUTE_HALF, seed);
        n += compare("graph", "random", WORKLOAD_RECOMPUTE_PAIR, seed);
    }
    assert_true(n > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_gradients),
        cmocka_unit_test(test_same_gradients_of_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
