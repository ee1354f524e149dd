/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_orders.h - the orders in which an undeclared fold may add up. An
 * engine that does not say in which order it adds up its ranks' values must
 * still add each of them once, in some order, and round each sum as the case's
 * sum_dtype says. A sum that no order gives was rounded elsewhere, lost a rank,
 * or has one twice.
 *
 * For up to ORDERS_ALL values all orders are tried; for more, these: one after
 * the other, up or down, from any of them on; the balanced tree of comm.h;
 * pairs at half the distance again and again (recursive halving); and the
 * latter two after neighbours have been paired, so that a power of two values
 * is left: ((0 + 1) + 4) + ((2 + 3) + 5), as Open MPI adds up six.
 */
#ifndef FSDP_CTS_REPLAY_ORDERS_H
#define FSDP_CTS_REPLAY_ORDERS_H

#include "judge/replay/replay.h"

enum {
    ORDERS_ALL = 5
};

/* How many orders of n >= 1 values are tried; and the sum that order `index`
 * gives, with each partial sum rounded to the dtype `sum`. */
uint32_t orders_count(uint32_t n);
float orders_fold(uint32_t index, uint32_t sum, const float *x, uint32_t n);

/* How the division is spread over a reduction; d is the divide factor. */
enum orders_form {
    ORDERS_PRODUCT = 0,      /* the fold times fl(1 / d): as specified */
    ORDERS_QUOTIENT = 1,     /* the fold divided by d */
    ORDERS_PRODUCT_EACH = 2, /* each value times fl(1 / d), then the fold */
    ORDERS_QUOTIENT_EACH = 3,
    /* each value over p, the least power of two with p * p >= d as far as p
     * divides d; then the fold, over d / p */
    ORDERS_SPLIT = 4,
    /* the fold in the shard group, over S; then the fold across replicas, over
     * R */
    ORDERS_BY_DIMENSION = 5,
    ORDERS_N_FORMS = 6,
};

/* Whether each of the part's n values is a fold of x's gradients in some order,
 * which is the same in all reductions of a step, and all were divided in the
 * same form. If not, *bad is the first element that even the best form does not
 * give. */
bool orders_hold(const struct replay_reduction *x, const float *got, uint64_t n,
                 uint64_t *bad);

#endif
