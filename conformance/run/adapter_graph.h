/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_graph.h - describes the random graph of a case to other programs: how
 * it is computed, as far as modules, units and parameters do not say.
 */
#ifndef FSDP_CTS_ADAPTER_GRAPH_H
#define FSDP_CTS_ADAPTER_GRAPH_H

#include "cases/case.h"
#include "models/workload.h"

struct record_text;

/* Adds the field "graph" of case.json, with a comma before it; nothing, if the
 * case has no graph. */
void adapter_graph_add(struct record_text *t, const struct run_case *c,
                       const struct workload_model *model);

#endif
