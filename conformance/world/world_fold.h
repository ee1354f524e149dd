/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_fold.h - the order in which the ranks' numbers meet (comm.h), for
 * every kind of world.
 */
#ifndef FSDP_CTS_WORLD_FOLD_H
#define FSDP_CTS_WORLD_FOLD_H

#include <fsdp/comm.h>

/*
 * out[i] = fold of in[0][i] .. in[n_in - 1][i], for i < n. `owner` matters
 * under RING only. out may be one of the inputs, but overlap none partly.
 * n_in >= 1, owner < n_in, fold is one of enum fsdp_fold.
 */
void world_fold(uint32_t fold, uint32_t owner, const float *const *in,
                uint32_t n_in, uint64_t n, float *out);

#endif
