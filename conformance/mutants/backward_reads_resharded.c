/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward_reads_resharded.c - the backward computes with what its forward
 * was lent, though it was given back in between.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

enum {
    PARAMETERS = 16
};
static _Thread_local struct fsdp_tensor lent[PARAMETERS];
static _Thread_local bool forward;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD) {
        forward = point == FSDP_PRE_FORWARD;
    }
    return mutant_real.engine.at(s, point, index);
}

static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.param(s, p, out));
    if (p < PARAMETERS && forward) {
        lent[p] = *out;
    } else if (p < PARAMETERS && lent[p].data) {
        *out = lent[p];
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    memset(lent, 0, sizeof lent);
    forward = false;
    engine->at = at;
    engine->param = param;
}

MUTANT(backward_reads_resharded) = {
    .name = "backward-reads-resharded",
    .text = "param lends in backward what it lent in forward",
    .evidence = "X22: pytorch/pytorch#117510",
    .kills = "grad.finite",
    .shows = mutant_plain,
    .wrap = wrap,
};
