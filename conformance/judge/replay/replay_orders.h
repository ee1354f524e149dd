/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_orders.h - the orders in which an undeclared fold may add up. An
 * engine that does not say in which order ranks meet still adds each of them
 * once, in some order, each sum rounded as the case's sum_dtype says: a sum
 * that no order gives was rounded elsewhere, lost a rank, or has one twice.
 *
 * Up to ORDERS_ALL values all orders are known. Beyond, these: one after the
 * other, up or down, from any of them on; the balanced tree of comm.h; pairs at
 * half the distance again and again (recursive halving); and these two of as
 * many values as a power of two, to which neighbours have been paired before:
 * ((0 + 1) + 4) + ((2 + 3) + 5), as Open MPI adds up six.
 */
#ifndef FSDP_CTS_REPLAY_ORDERS_H
#define FSDP_CTS_REPLAY_ORDERS_H

#include "judge/replay/replay.h"

enum {
    ORDERS_ALL = 5
};

/* How many orders of n >= 1 values are tried; what order `index` gives, with
 * each sum rounded to the dtype `sum`. */
uint32_t orders_count(uint32_t n);
float orders_fold(uint32_t index, uint32_t sum, const float *x, uint32_t n);

/* How the division is spread: d is the divide factor. */
enum orders_form {
    ORDERS_PRODUCT = 0,      /* fold, times fl(1 / d): the specification's */
    ORDERS_QUOTIENT = 1,     /* fold, over d */
    ORDERS_PRODUCT_EACH = 2, /* each times fl(1 / d), fold */
    ORDERS_QUOTIENT_EACH = 3,
    /* each over the least power of two p, p * p >= d as far as p divides d;
     * fold; over d / p */
    ORDERS_SPLIT = 4,
    /* fold in the shard group, over S; fold across replicas, over R */
    ORDERS_BY_DIMENSION = 5,
    ORDERS_N_FORMS = 6,
};

/* Whether the part's n values are all folds of x's gradients: each in some
 * order, the same at every reduction of a step, and all divided in one form.
 * If not, *bad is the first element that the best form does not give. */
bool orders_hold(const struct replay_reduction *x, const float *got, uint64_t n,
                 uint64_t *bad);

#endif
