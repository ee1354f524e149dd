/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_list.h - declares each workload by its own name.
 */
#ifndef FSDP_CTS_WORKLOAD_LIST_H
#define FSDP_CTS_WORKLOAD_LIST_H

#include "workload.h"

extern const struct workload workload_mlp;
extern const struct workload workload_linear;
extern const struct workload workload_gpt;
extern const struct workload workload_lora;
extern const struct workload workload_graph;

#endif
