/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_tie.c - which parameters of a graph are tied. The coin of each
 * parameter does not depend on what the size keeps. Among parameters of one
 * shape within a unit whose coins fall alike, the second is tied to the first,
 * and the fourth to the third. So their modules may be anywhere: one within the
 * other's call, called several times, or without a backward.
 */
#include "graph_internal.h"

#include <fsdp/arith/philox.h>
#include <string.h>

/* Whether a parameter may be tied: two of three may. */
static bool may_be_tied(uint64_t seed, const struct graph_module *m, uint32_t i)
{
    const uint64_t at = (uint64_t)m->drawn * GRAPH_OF_MODULE + i;

    return fsdp_random_block(seed, GRAPH_TIE_STREAM, at).word[0] % 3 != 0;
}

static bool is_alike(const struct graph_parameter *a,
                     const struct graph_parameter *b)
{
    return a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, a->n_dims * sizeof(*a->shape)) == 0;
}

/* A parameter that may become an original: it waits for a second name. */
struct single {
    const struct graph_parameter *parameter;
    uint32_t unit, number;
};

void graph_tie(struct graph *g, uint64_t seed, bool ties)
{
    struct single single[GRAPH_PARAMETERS];
    uint32_t n = 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        struct graph_module *x = &g->module[m];

        for (uint32_t i = 0; i < x->n_parameters; i++) {
            struct graph_parameter *p = &x->parameter[i];
            uint32_t k = 0;

            p->tied = -1;
            if (!ties || !may_be_tied(seed, x, i)) {
                continue;
            }
            while (k < n && (single[k].unit != g->unit_of_module[m] ||
                             !is_alike(single[k].parameter, p))) {
                k++;
            }
            if (k < n) {
                p->tied = (int32_t)single[k].number;
                single[k] = single[--n];
            } else {
                single[n++] =
                    (struct single){p, g->unit_of_module[m], x->first + i};
            }
        }
    }
}
