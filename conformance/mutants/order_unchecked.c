/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_unchecked.c - points that are not the next of the sequence are
 * ignored without a word.
 */
#include "mutants/wrap_kit.h"

static bool is_between(uint32_t point)
{
    return point != FSDP_BEGIN && point != FSDP_END;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forgive(engine, is_between);
}

MUTANT(order_unchecked) = {
    .name = "order-unchecked",
    .text = "a point out of order is not refused",
    .evidence = "X32: pytorch/pytorch#64629",
    .kills = "error.out-of-order "
             "error.pass-edges "
             "error.unknown-index",
    .shows = mutant_misuse,
    .wrap = wrap,
};
