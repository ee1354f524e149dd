/* SPDX-License-Identifier: Apache-2.0 */
/* graph_internal.h - private to graph*.c. */
#ifndef FSDP_CTS_GRAPH_INTERNAL_H
#define FSDP_CTS_GRAPH_INTERNAL_H

#include "graph.h"

enum {
    GRAPH_STREAM = 0x10000000,     /* of random numbers; parameters are below */
    GRAPH_TIE_STREAM = 0x12000000, /* which parameters may be tied */
    GRAPH_UNIT_STREAM = 0x13000000, /* which are not in their module's unit */
    GRAPH_NEVER = 0x0f,             /* no gradient in any microbatch */
};

extern const struct workload workload_graph;

/* The whole graph of a seed, before anything is dropped or numbered. */
void graph_draw_all(uint64_t seed, struct graph *out);
/* Ties parameters of a graph whose units and numbers are known, or none if not
 * `ties`. */
void graph_tie(struct graph *g, uint64_t seed, bool ties);
/* Called after graph_tie: gives each parameter its unit, which is its module's
 * unless `own`. */
void graph_give_units(struct graph *g, uint64_t seed, bool own);

#endif
