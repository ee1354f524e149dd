/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_own_units.c - which parameters of a graph are in another unit than
 * their module: in the unit of another module, in a unit that has no module, or
 * in none, and so ignored. The random numbers of each parameter do not depend
 * on what the size keeps. A tied parameter has the unit of its original. The
 * head's parameter, and its original, are always in a unit: else a graph might
 * train nothing.
 */
#include "graph_internal.h"

#include <fsdp/arith/philox.h>

enum {
    OF_8_IGNORED = 1,
    OF_8_ELSEWHERE = 3, /* up to here: in another module's unit */
    OF_8_ALONE = 4,     /* up to here: in a unit without a module */
};

bool graph_is_of(const struct graph *g, uint32_t module, uint32_t u)
{
    const struct graph_module *m = &g->module[module];
    bool is = g->unit_of_module[module] == u;

    for (uint32_t i = 0; i < m->n_parameters; i++) {
        is = is || m->parameter[i].unit == u;
    }
    return is;
}

/* Whether p is a parameter of the head, which has one and perhaps a spare, or
 * the original of such a one. */
static bool is_heads(const struct graph *g, uint32_t p)
{
    const struct graph_module *head = &g->module[g->n_modules - 1];
    bool is = p >= head->first;

    for (uint32_t i = 0; i < head->n_parameters; i++) {
        is = is || head->parameter[i].tied == (int32_t)p;
    }
    return is;
}

/* Units without a module are numbered behind all others, in the order in which
 * they are first drawn. */
struct own_units {
    uint32_t of_modules;
    uint32_t number[GRAPH_OWN_UNITS];
};

static uint32_t unit_alone(struct graph *g, struct own_units *own,
                           const struct fsdp_philox_out *coins)
{
    uint32_t *number = &own->number[coins->word[1] % GRAPH_OWN_UNITS];

    if (*number == FSDP_NO_UNIT) {
        g->reshard[g->n_units] = coins->word[2] % 3;
        *number = g->n_units++;
    }
    return *number;
}

static uint32_t draw_unit(struct graph *g, struct own_units *own, uint64_t seed,
                          uint32_t m, uint32_t i)
{
    const struct graph_module *x = &g->module[m];
    const struct fsdp_philox_out coins = fsdp_random_block(
        seed, GRAPH_UNIT_STREAM, (uint64_t)x->drawn * GRAPH_OF_MODULE + i);
    const uint32_t die = coins.word[0] % 8;

    if (die < OF_8_IGNORED && !is_heads(g, x->first + i)) {
        return FSDP_NO_UNIT;
    }
    return die < OF_8_IGNORED     ? g->unit_of_module[m]
           : die < OF_8_ELSEWHERE ? coins.word[1] % own->of_modules
           : die < OF_8_ALONE     ? unit_alone(g, own, &coins)
                                  : g->unit_of_module[m];
}

void graph_give_units(struct graph *g, uint64_t seed, bool own)
{
    struct own_units units = {.of_modules = g->n_units};
    uint32_t unit_of[GRAPH_PARAMETERS];

    for (uint32_t k = 0; k < GRAPH_OWN_UNITS; k++) {
        units.number[k] = FSDP_NO_UNIT;
    }
    g->own_units = false;
    for (uint32_t m = 0; m < g->n_modules; m++) {
        struct graph_module *x = &g->module[m];

        for (uint32_t i = 0; i < x->n_parameters; i++) {
            struct graph_parameter *p = &x->parameter[i];

            p->unit = !own           ? g->unit_of_module[m]
                      : p->tied >= 0 ? unit_of[p->tied]
                                     : draw_unit(g, &units, seed, m, i);
            unit_of[x->first + i] = p->unit;
            g->own_units = g->own_units || p->unit != g->unit_of_module[m];
        }
    }
}
