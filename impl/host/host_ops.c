/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_ops.c - checks an operator and hands it to the level's function.
 */
#include "host_ops.h"

#include "host_check.h"
#include "operators.h"

#include <stdlib.h>

struct host_ops {
    host_operator *const *table;
    struct workspace ws;
};

static host_operator *const *table_of(enum simd_level level)
{
#ifdef HOST_X86
    if (level == SIMD_AVX2) {
        return host_operators_avx2;
    }
    if (level == SIMD_AVX512) {
        return host_operators_avx512;
    }
#endif
    (void)level;
    return host_operators_portable;
}

int host_ops_create(enum simd_level level, struct host_ops **out)
{
    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    if (!simd_has(level)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    *out = calloc(1, sizeof(**out));
    if (!*out) {
        return FSDP_ERR_NOMEM;
    }
    (*out)->table = table_of(level);
    return FSDP_OK;
}

void host_ops_destroy(struct host_ops *ops)
{
    if (ops) {
        workspace_fini(&ops->ws);
        free(ops);
    }
}

int host_ops_run(struct host_ops *ops, const struct fsdp_op *op)
{
    if (!ops) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(host_check(op));
    return ops->table[op->kind](op, &ops->ws);
}
