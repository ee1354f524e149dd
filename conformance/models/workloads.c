/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workloads.c - the table of workloads.
 */
#include "workload_list.h"

#include <string.h>

const struct workload *const workloads[] = {&workload_mlp,   &workload_linear,
                                            &workload_gpt,   &workload_lora,
                                            &workload_graph, NULL};

const struct workload *workload_find(const char *name)
{
    for (const struct workload *const *w = workloads; *w; w++) {
        if (strcmp((*w)->name, name) == 0) {
            return *w;
        }
    }
    return NULL;
}
