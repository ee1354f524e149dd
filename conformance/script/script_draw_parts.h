/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_parts.h - the parts of script_draw.c: a script while it is being
 * drawn.
 */
#ifndef FSDP_CTS_SCRIPT_DRAW_PARTS_H
#define FSDP_CTS_SCRIPT_DRAW_PARTS_H

#include "script/script_chance.h"
#include "script/script_draw.h"
#include "script/script_state.h"

enum {
    DRAW_MOST_INSIDE = 2 * SCRIPT_MOST_DRAWN,
    DRAW_MOST_EDITS = 2 * SCRIPT_MOST_DRAWN,
    DRAW_MOST_NEXT = 4,
    /* Actions, before one that is always legal is taken. */
    DRAW_MOST_TRIED = 200,
};

/* What there is more of in a script. */
enum draw_theme {
    DRAW_OF_ALL = 0,
    DRAW_OF_CHECKPOINTS,
    DRAW_OF_WRONG_CALLS,
    DRAW_OF_MICROBATCHES, /* up to 10 passes a step */
    DRAW_OF_MANY_STEPS,   /* 42 more */
    DRAW_N_THEMES,
};

struct drawer {
    struct chance chance;
    struct script *s;
    struct script_state state;             /* behind the last action */
    uint32_t theme, wanted;                /* actions */
    uint32_t units;                        /* how far an engine may run ahead */
    uint32_t step, microbatch;             /* of the batch that comes next */
    uint32_t next[DRAW_MOST_NEXT], n_next; /* verbs that come next, if legal */
    bool loud;                             /* an edit was not finite, or huge */
    bool many;                             /* many steps have been drawn */
    bool controls;                         /* knobs of units are set */
    bool by_hand;                          /* units are unsharded, resharded */
    bool thaws;                            /* parameters are frozen, thawed */
    bool steps_early;                      /* passes are given their steps */
};

/* Generators from 3 on know of single units and parameters, and of ties. */
static inline bool draw_has_units(const struct drawer *d)
{
    return d->s->generator >= 3;
}

/* From 4 on of steps in backward, units of parameters, buffers and assigned
 * values. */
static inline bool draw_has_steps(const struct drawer *d)
{
    return d->s->generator >= 4;
}

/* From 5 on of what rests on the host, and of lives without values. */
static inline bool draw_has_places(const struct drawer *d)
{
    return d->s->generator >= 5;
}

/* From 6 on of units that are summoned, lenient loads, and what a save leaves
 * out or rounds. */
static inline bool draw_has_forms(const struct drawer *d)
{
    return d->s->generator >= 6;
}

/* From 7 on of values that rank 0 sends. */
static inline bool draw_has_sends(const struct drawer *d)
{
    return d->s->generator >= 7;
}

/* The life that is there, or comes next, has no values yet. */
static inline bool draw_lacks_values(const struct drawer *d)
{
    return d->state.living ? d->state.empty : d->s->deferred;
}

/* script_draw.c: the verb is tried next, behind those that are to come. Of more
 * than DRAW_MOST_NEXT nothing becomes. */
void draw_comes_next(struct drawer *d, uint32_t verb);

/* script_draw_case.c: the case, and what stands before the actions. */
void draw_case(struct drawer *d);
/* Another world for a life of c, that its script may go on in; false: none
 * was found. */
bool draw_world(struct drawer *d, const struct run_case *c,
                struct script_world *out);
uint32_t draw_parameters(const struct run_case *c);
/* One that the model has, of those that the last is not tied to: so there is
 * always one that is trained, unless all are frozen. */
uint32_t draw_parameter(struct drawer *d);
/* How far an engine may run ahead: at most as many units as there are. */
uint32_t draw_units(const struct run_case *c);

/* script_draw_action.c: all that stands behind the verb. */
void draw_what_it_says(struct drawer *d, struct script_action *a);
/* Rates and decays: one number for all groups, or one for each. */
void draw_step(struct drawer *d, struct script_action *a);
/* A load of the first checkpoint must be refused. */
bool draw_lacks_states(const struct drawer *d);
/* A call that must be refused somewhere. */
uint32_t draw_any_call(struct drawer *d);

/* script_draw_pass.c: a pass that is whole or not, of either sequence. */
void draw_pass(struct drawer *d, struct script_action *a);

#endif
