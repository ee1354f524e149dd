/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_freeze.c - which parameters a script has frozen and thawed, by their
 * numbers, as far as a script alone can know: a model may have fewer. And for
 * which of them a checkpoint has states.
 */
#include "script/script_state.h"

#include "cases/case_graph.h"

/* NULL: the graph has no such parameter. */
static const struct graph_parameter *parameter_of(const struct graph *g,
                                                  uint32_t p)
{
    for (uint32_t m = 0; m < g->n_modules; m++) {
        const struct graph_module *x = &g->module[m];

        if (p >= x->first && p - x->first < x->n_parameters) {
            return &x->parameter[p - x->first];
        }
    }
    return NULL;
}

/* Looks into graphs only: other models tie parameters to none but the first. */
uint32_t script_original(const struct run_case *c, uint32_t p)
{
    const struct graph_parameter *of;
    struct graph g;

    if (!case_is_tied(c) || !case_graph_of(c, &g)) {
        return p;
    }
    of = parameter_of(&g, p);
    return of && of->tied >= 0 ? (uint32_t)of->tied : p;
}

bool script_ignores(const struct run_case *c, uint32_t p)
{
    const struct graph_parameter *of;
    struct graph g;

    if (!case_graph_of(c, &g)) {
        return false;
    }
    of = parameter_of(&g, p);
    return of && of->unit == FSDP_NO_UNIT;
}

static bool has_elements(const struct graph_parameter *of)
{
    for (uint32_t i = 0; i < of->n_dims; i++) {
        if (of->shape[i] == 0) {
            return false;
        }
    }
    return true;
}

bool script_has_all(const struct run_case *c, uint64_t values)
{
    const struct graph_parameter *of;
    struct graph g;

    if (!case_graph_of(c, &g)) {
        return false;
    }
    for (uint32_t p = 0; (of = parameter_of(&g, p)); p++) {
        const uint32_t q =
            case_is_tied(c) && of->tied >= 0 ? (uint32_t)of->tied : p;

        if (of->unit != FSDP_NO_UNIT && has_elements(of) &&
            (q >= 64 || (values >> q & 1) == 0)) {
            return false;
        }
    }
    return true;
}

/* The parameters that a life is known to train when it begins. */
static uint64_t trained_first(const struct script_state *s)
{
    return s->s->has_case && s->s->c.frozen == WORKLOAD_TRAINS_ALL ? UINT64_MAX
                                                                   : 0;
}

/* Whether what is in a slot has no states, for certain, of a parameter that is
 * trained now. */
bool script_lacks_states(const struct script_state *s, uint32_t slot)
{
    const bool has_states =
        !s->s->has_case || s->s->c.optimizer != FSDP_OPTIMIZER_SGD;

    return has_states && !s->slot[slot].local &&
           (s->slot[slot].frozen & s->thawed) != 0;
}

/* Whether a slot has states, for certain, of all parameters that are trained
 * now. Those that this life neither froze nor thawed are trained, or not, as
 * they were when any other life began. */
bool script_has_states(const struct script_state *s, uint32_t slot)
{
    const uint64_t as_begun = ~(s->frozen | s->thawed);

    return ((s->slot[slot].frozen & (as_begun | s->thawed)) |
            (~s->slot[slot].thawed & s->thawed & ~trained_first(s))) == 0;
}

void script_freeze(struct script_state *s, const struct script_action *a)
{
    const uint32_t p = s->s->has_case && a->parameter != SCRIPT_ALL
                           ? script_original(&s->s->c, a->parameter)
                           : a->parameter;
    const uint64_t of = p == SCRIPT_ALL ? UINT64_MAX : 1ull << p;
    const bool freezes = a->verb == SCRIPT_FREEZE;

    s->frozen = freezes ? s->frozen | of : s->frozen & ~of;
    s->thawed = freezes ? s->thawed & ~of : s->thawed | of;
}
