/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_fold.h - the order in which the ranks' numbers meet (comm.h), for
 * every kind of world.
 */
#ifndef FSDP_CTS_WORLD_FOLD_H
#define FSDP_CTS_WORLD_FOLD_H

#include <fsdp/comm.h>

/* How inputs meet (comm.h). */
struct world_sum {
    uint32_t fold;      /* enum fsdp_fold */
    uint32_t owner;     /* matters under RING only; < n_in */
    uint32_t dtype;     /* of in and out: F32, BF16 or F16 */
    uint32_t sum_dtype; /* of each addition: dtype, or F32 */
};

/*
 * out[i] = fold of in[0][i] .. in[n_in - 1][i], for i < n. out may be one of
 * the inputs, but overlap none partly. n_in >= 1.
 */
void world_fold(const struct world_sum *how, const void *const *in,
                uint32_t n_in, uint64_t n, void *out);

#endif
