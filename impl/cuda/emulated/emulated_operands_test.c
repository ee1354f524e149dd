/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_operands_test.c - an operator on memory of the host, or beyond an
 * allocation, is found, wherever the range stands.
 */
#include "cuda/cuda_testing.h"

enum {
    N = 64 /* floats: as many as are allocated */
};

/* y = a + b; what running it says, and then waiting. */
static int add(const float *a, const float *b, float *y, uint64_t n)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_ADD,
                         .dim = {n},
                         .n_in = 2,
                         .n_out = 1,
                         .in = {{a, n * 4}, {b, n * 4}},
                         .out = {{y, n * 4}}};

    FSDP_TRY(d->run(d->self, NULL, &op));
    return d->sync(d->self, NULL);
}

UNIT_TEST(test_operands)
{
    static float host[N];

    for (int wrong = 0; wrong < 6; wrong++) {
        const struct fsdp_device *d;
        void *p = NULL;
        float *x[3];

        assert_int_equal(open_alone(), FSDP_OK);
        d = cuda_env.device;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(d->alloc(d->self, N * sizeof(*host), &p), 0);
            x[i] = i == wrong ? host : p;
        }
        x[2] += wrong == 3 ? 1 : 0;
        assert_int_equal(add(x[0], x[1], x[2], wrong < 5 ? N : 0),
                         wrong < 4 ? FSDP_ERR_DEVICE : FSDP_OK);
        if (wrong < 4) {
            assert_int_equal(cuda_error.native, cudaErrorIllegalAddress);
        }
        cuda_close(&cuda_env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operands)};

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
