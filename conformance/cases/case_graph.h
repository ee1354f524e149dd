/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph.h - the random cases of workload "graph": what a seed draws beside
 * the model (world, strategy, options, scenario), and the cases that are
 * smaller than such a case.
 */
#ifndef FSDP_CTS_CASE_GRAPH_H
#define FSDP_CTS_CASE_GRAPH_H

#include "cases/case.h"
#include "models/graph.h"

enum {
    CASE_GRAPH_GENERATOR = 3 /* of today; 1 and 2 draw what seeds drew once */
};

void case_graph_draw(uint64_t seed, struct run_case *out);
/* As generator 1, 2 or 3 draws it. */
void case_graph_draw_by(uint32_t generator, uint64_t seed,
                        struct run_case *out);
/* The random graph of c; false: c has none. */
bool case_graph_of(const struct run_case *c, struct graph *out);
/* Whether c's graph has all of these features (enum graph_feature). */
bool case_graph_has(const struct run_case *c, uint32_t features);

/*
 * The next case that is smaller than c, for a search that goes on from the case
 * that it finds. *at counts through them, from 0; false: there are no more.
 * Those that leave out large pieces come first. All are well formed, and can be
 * run.
 */
bool case_graph_smaller(const struct run_case *c, uint32_t *at,
                        struct run_case *out);

#endif
