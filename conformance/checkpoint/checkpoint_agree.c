/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_agree.c - all ranks succeed, or all of them fail and say why: a
 * rank that went on alone would wait for the others for ever.
 */
#include "checkpoint_internal.h"

#include <stdio.h>
#include <string.h>

struct verdict {
    int32_t status;
    char why[CHECKPOINT_WHY_BYTES];
};

int checkpoint_agree(const struct fsdp_env *env, const char *where, int status,
                     const char *why)
{
    struct verdict mine = {.status = status};
    struct verdict all[CHECKPOINT_MAX_WORLD];
    struct fsdp_error *e = env->error;

    if (status != FSDP_OK) {
        snprintf(mine.why, sizeof(mine.why), "%s", why);
    }
    FSDP_TRY(env->exchange(env->exchange_self, &mine, sizeof(mine), all));
    for (uint32_t r = 0; r < env->world; r++) {
        if (all[r].status == FSDP_OK) {
            continue;
        }
        if (e && e->status == FSDP_OK) {
            e->status = all[r].status;
            e->rank = (int32_t)env->rank;
            snprintf(e->where, sizeof(e->where), "%s", where);
            snprintf(e->message, sizeof(e->message), "rank %u: %s", r,
                     all[r].why);
        }
        return all[r].status;
    }
    return FSDP_OK;
}
