/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph.h - the random cases of workload "graph": what a seed draws
 * beyond the model (world, strategy, options, scenario), and what is smaller
 * than a case of it.
 */
#ifndef FSDP_CTS_CASE_GRAPH_H
#define FSDP_CTS_CASE_GRAPH_H

#include "cases/case.h"
#include "models/graph.h"

enum {
    CASE_GRAPH_GENERATOR = 3 /* what a seed draws; 1 and 2: as long ago */
};

void case_graph_draw(uint64_t seed, struct run_case *out);
/* As generator 1, 2 or 3 draws it. */
void case_graph_draw_by(uint32_t generator, uint64_t seed,
                        struct run_case *out);
/* The random graph of c; false: it is none. */
bool case_graph_of(const struct run_case *c, struct graph *out);
/* Whether it has all of these (enum graph_feature). */
bool case_graph_has(const struct run_case *c, uint32_t features);

/*
 * The next case that is smaller than c, for a search that goes on from what
 * it finds: *at counts through them, from 0; false: there is none any more.
 * Large pieces come first. All are well formed, and can be run.
 */
bool case_graph_smaller(const struct run_case *c, uint32_t *at,
                        struct run_case *out);

#endif
