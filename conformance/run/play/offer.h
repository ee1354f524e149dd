/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.h - a model that is offered to be sharded in a way that must be refused
 * (play_offer.c). What is wrong is one number (offer_numbers.c), ties of
 * parameters (offer_ties.c), something else that every rank is told
 * (offer_model.c), or that rank 0 is told something else than the others
 * (offer_disagree.c).
 */
#ifndef FSDP_CTS_OFFER_H
#define FSDP_CTS_OFFER_H

#include "run/play/play.h"

enum {
    OFFER_MOST_SEQUENCES = 8 /* of a model that is offered */
};

/* A number of four bytes of the options, or of a unit. */
union offer_number {
    uint32_t u;
    float f;
};

/* What is offered; an offer changes something in its copies. */
struct offer {
    struct fsdp_env env;
    struct fsdp_mesh mesh;
    uint32_t extent[2];
    struct fsdp_model model;
    struct fsdp_units units;
    uint32_t *flags; /* [n_parameters], of the model, as is all that follows up
                        to `dtype` */
    int32_t *alias;
    uint64_t (*shape)[FSDP_MAX_DIMS];
    uint32_t *n_dims, *dtype;
    uint32_t *of_module;         /* [n_modules], of units */
    uint32_t *of_parameter;      /* [n_parameters]: groups */
    uint32_t *unit_of;           /* [n_parameters], of units */
    union offer_number *of_unit; /* [n_units], 0: dtypes, factors */
    const char **buffer;         /* [n_buffers]: names */
    struct fsdp_options options;
    const char *option;  /* NULL, or the option that the refusal must name */
    const char *tied[2]; /* the same for two parameters */
    /* The training sequence, with room for four points more; and the sequences
     * of the model, with one more behind them. */
    struct fsdp_sequence trains;
    uint32_t *point, *module;
    const struct fsdp_sequence *sequence[OFFER_MOST_SEQUENCES];
};

/* The change of each call that a file makes; NULL: another file makes it. */
typedef void offer_change(struct driver *x, struct offer *o);
extern offer_change *const offer_ties[SCRIPT_N_CALLS];
extern offer_change *const offer_model[SCRIPT_N_CALLS];
extern offer_change *const offer_disagree[SCRIPT_N_CALLS];
/* False: what is wrong in this call is not one number. */
bool offer_number(const struct driver *x, uint32_t call, struct offer *o);

/* offer_ties.c: ties the last parameter to the first, and puts it into its
 * unit. */
void offer_tie_last(struct driver *x, struct offer *o);
/* offer_model.c: moves the last parameter to another unit; if there is only
 * one, it stays. */
void offer_move_to_another(struct driver *x, struct offer *o);

#endif /* FSDP_CTS_OFFER_H */
