/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer_ties.c - offers in which parameters are tied that must not be.
 */
#include "run/play/offer.h"

#include <string.h>

/* Makes one unit of all modules, if two parameters are not in the same one. */
static void join(struct driver *x, struct offer *o, uint32_t p, uint32_t q)
{
    const uint32_t *module = x->model->parameter_module;

    if (o->of_module[module[p]] == o->of_module[module[q]]) {
        return;
    }
    for (uint32_t m = 0; m < x->model->n_modules; m++) {
        o->of_module[m] = o->of_module[m] == FSDP_NO_UNIT ? FSDP_NO_UNIT : 0;
    }
    o->units.n_units = 1;
}

/* Makes parameter p another name of q, and like it in all else. */
static void tie(struct driver *x, struct offer *o, uint32_t p, uint32_t q)
{
    o->alias[p] = (int32_t)q;
    memcpy(o->shape[p], o->shape[q], sizeof(*o->shape));
    o->n_dims[p] = o->n_dims[q];
    o->flags[p] = o->flags[q];
    o->dtype[p] = o->dtype[q];
    o->tied[0] = x->model->parameter_name[p];
    o->tied[1] = x->model->parameter_name[q];
}

/* The first parameter may be the last one itself. */
void offer_tie_last(struct driver *x, struct offer *o)
{
    join(x, o, x->model->n_parameters - 1, 0);
    tie(x, o, x->model->n_parameters - 1, 0);
}

static void unclaimed_shared(struct driver *x, struct offer *o)
{
    offer_tie_last(x, o);
    o->tied[0] = o->tied[1] = NULL;
}

static void tied_across_units(struct driver *x, struct offer *o)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t first = o->of_module[x->model->parameter_module[0]];
    uint32_t *own = &o->of_module[x->model->parameter_module[p]];

    tie(x, o, p, 0);
    if (*own == first) {
        *own = o->units.n_units > 1 ? (first + 1) % o->units.n_units
                                    : FSDP_NO_UNIT;
    }
}

/* Ties the last parameter to the last but one, which is tied to the first. */
static void tied_to_tied(struct driver *x, struct offer *o)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t between = p > 0 ? p - 1 : 0;

    join(x, o, between, 0);
    join(x, o, p, 0);
    tie(x, o, between, 0);
    tie(x, o, p, between);
}

static void tied_to_later(struct driver *x, struct offer *o)
{
    join(x, o, 0, x->model->n_parameters - 1);
    tie(x, o, 0, x->model->n_parameters - 1);
    o->alias[x->model->n_parameters - 1] = x->model->n_parameters > 1 ? -1 : 0;
}

static void tied_other_shape(struct driver *x, struct offer *o)
{
    offer_tie_last(x, o);
    o->shape[x->model->n_parameters - 1][0]++;
}

static void tied_other_dtype(struct driver *x, struct offer *o)
{
    offer_tie_last(x, o);
    o->dtype[x->model->n_parameters - 1] = FSDP_DTYPE_BF16;
    o->tied[0] = o->tied[1] = NULL; /* the refusal may be about the dtype, and
                                       name neither */
}

static void tied_other_flags(struct driver *x, struct offer *o)
{
    offer_tie_last(x, o);
    o->flags[x->model->n_parameters - 1] ^= FSDP_NO_DECAY;
}

offer_change *const offer_ties[SCRIPT_N_CALLS] = {
    [SCRIPT_CALL_UNCLAIMED_SHARED] = unclaimed_shared,
    [SCRIPT_CALL_TIED_ACROSS_UNITS] = tied_across_units,
    [SCRIPT_CALL_TIED_TO_TIED] = tied_to_tied,
    [SCRIPT_CALL_TIED_TO_LATER] = tied_to_later,
    [SCRIPT_CALL_TIED_OTHER_SHAPE] = tied_other_shape,
    [SCRIPT_CALL_TIED_OTHER_DTYPE] = tied_other_dtype,
    [SCRIPT_CALL_TIED_OTHER_FLAGS] = tied_other_flags,
};
