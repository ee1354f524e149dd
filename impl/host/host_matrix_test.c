/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_matrix_test.c - GEMM and attention at every level give the bits of the
 * plain device, for sizes around those of tiles, vectors and blocks.
 */
#include "host_ops_testing.h"

UNIT_TEST(test_gemm)
{
    for (int i = 0; i < N_SIZES; i++) {
        for (int j = 0; j < N_SIZES; j++) {
            uint64_t k = sizes[(i * 5 + j * 3) % N_SIZES];

            try_dims(FSDP_OP_GEMM, "ac cb | ab", sizes[i], sizes[j], k, 0, 0,
                     no_f);
        }
    }
    /* Deeper, higher and wider than the blocks. */
    try_dims(FSDP_OP_GEMM, "ac cb | ab", 29, 45, 1201, 0, 0, no_f);
    try_dims(FSDP_OP_GEMM, "ac cb | ab", 345, 33, 390, 0, 0, no_f);
    try_dims(FSDP_OP_GEMM, "ac cb | ab", 15, 2100, 17, 0, 0, no_f);
    try_dims(FSDP_OP_GEMM_GRAD, "ca cb | ab", 29, 45, 1202, 2, 0, no_f);
}

UNIT_TEST(test_attention)
{
    static const uint64_t dims[] = {1, 2, 4, 5, 8, 15, 16, 17, 32, 64, 65};
    static const float scale[8] = {0.25f};

    for (unsigned int i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        for (int t = 0; t < N_SIZES; t++) {
            uint64_t heads = 1 + (uint64_t)t % 3;

            try_dims(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", 2, sizes[t], heads,
                     dims[i], 0, scale);
            try_dims(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3",
                     2, sizes[t], heads, dims[i], 0, scale);
        }
    }
    try_dims(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", 2, 5, 3, 0, 0, scale);
    try_dims(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", 0, 5, 3, 4, 0, scale);
    try_dims(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3", 2, 5,
             0, 4, 0, scale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_attention),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
