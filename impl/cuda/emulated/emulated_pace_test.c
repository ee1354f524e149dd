/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_pace_test.c - no stream of the CUDA device is given so much that a
 * launch waits within the runtime: behind a kernel that never ends it would
 * wait for ever. The launches of chunks of collectives are tested by
 * conformance.cuda-emulated.large.
 */
#include "cuda/cuda_state.h"
#include "cuda/cuda_testing.h"
#include "cuda/emulated/emulated_queue.h"

enum {
    MANY = 3 * EMULATED_PLACES
};

static int open_gpu(void **state)
{
    /* Read when the device is opened, but for the fault. */
    return setenv("FSDP_CUDA_TIMEOUT", "1", 1) != 0 ? -1 : open_device(state);
}

static int run_fill(struct fsdp_stream *s, void *x, float value)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_FILL,
                         .unit = FSDP_NO_UNIT,
                         .dim = {1},
                         .f = {value},
                         .n_out = 1,
                         .out = {{x, 4}}};

    return cuda_env.device->run(cuda_env.device->self, s, &op);
}

/* Nothing waits but the device itself. */
UNIT_TEST(test_many_launches)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s = NULL;
    unsigned int most = 0;
    float last = -1.0f;
    void *x = NULL;

    assert_int_equal(d->alloc(d->self, 4, &x), FSDP_OK);
    assert_int_equal(d->stream_open(d->self, "test", &s), FSDP_OK);
    for (unsigned int i = 0; i < MANY; i++) {
        assert_int_equal(run_fill(s, x, (float)i), FSDP_OK);
        most = s->cuda->n > most ? s->cuda->n : most;
    }
    /* The host is ahead, and not too far. */
    assert_true(most > EMULATED_PLACES / 8);
    assert_true(most < EMULATED_PLACES / 2);
    assert_int_equal(d->copy(d->self, s, &last, x, 4), FSDP_OK);
    assert_true(last == (float)(MANY - 1));
    d->stream_close(d->self, s);
    d->free(d->self, x);
}

UNIT_TEST(test_behind_what_never_ends)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s = NULL;
    unsigned int given = 0;
    void *x = NULL;

    assert_int_equal(d->alloc(d->self, 4, &x), FSDP_OK);
    assert_int_equal(d->stream_open(d->self, "test", &s), FSDP_OK);
    assert_int_equal(setenv("FSDP_EMULATED_FAULT", "launch-hang:1", 1), 0);
    while (given < MANY && run_fill(s, x, 1.0f) == FSDP_OK) {
        given++;
    }
    assert_true(given < EMULATED_PLACES / 2);
    assert_non_null(strstr(cuda_error.message, "nothing has happened for"));
    assert_int_equal(unsetenv("FSDP_EMULATED_FAULT"), 0);
    d->stream_close(d->self, s);
    d->free(d->self, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_launches, open_gpu,
                                        close_device),
        cmocka_unit_test_setup_teardown(test_behind_what_never_ends, open_gpu,
                                        close_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
