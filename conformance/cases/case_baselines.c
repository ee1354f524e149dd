/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_baselines.c - the unsharded runs that a list of cases is compared with.
 */
#include "cases/case.h"

#include <stdlib.h>
#include <string.h>

/* Keys of what is in the list so far; with thousands of cases they are not
 * made anew for each. */
static bool add_key(char (*keys)[CASE_ID_BYTES], uint32_t n,
                    const struct run_case *c)
{
    case_baseline_key(c, keys[n]);
    for (uint32_t k = 0; k < n; k++) {
        if (strcmp(keys[n], keys[k]) == 0) {
            return false;
        }
    }
    return true;
}

int case_baselines(const struct case_list *cases, struct case_list *out)
{
    char(*keys)[CASE_ID_BYTES] = malloc((cases->n + 1u) * sizeof(*keys));

    *out = (struct case_list){calloc(cases->n + 1u, sizeof(*out->c)), 0};
    for (uint32_t i = 0; i < cases->n && keys && out->c; i++) {
        struct run_case plain = cases->c[i];

        if (!case_trains(&plain) || !add_key(keys, out->n, &plain)) {
            continue;
        }
        if (plain.scenario != CASE_EVAL && plain.scenario != CASE_CLIP &&
            plain.scenario != CASE_GROUPS && !case_is_script(&plain)) {
            plain.scenario = CASE_TRAIN; /* what the key stands for */
        }
        if (!case_recomputes_alone(&plain)) {
            plain.recompute = WORKLOAD_KEEPS; /* nor does it stand for this, */
        }
        plain.offload = CASE_NOT_OFFLOADED; /* or for this */
        out->c[out->n++] = plain;
    }
    if (!keys) {
        manifest_release(out);
    }
    free(keys);
    return out->c ? FSDP_OK : FSDP_ERR_NOMEM;
}
