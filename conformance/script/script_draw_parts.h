/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_parts.h - what the files script_draw*.c share: a script while it
 * is being drawn.
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
    /* How many actions are tried before one is taken that is always legal. */
    DRAW_MOST_TRIED = 200,
};

/* What a script has more of than others. */
enum draw_theme {
    DRAW_OF_ALL = 0,
    DRAW_OF_CHECKPOINTS,
    DRAW_OF_WRONG_CALLS,
    DRAW_OF_MICROBATCHES, /* up to 10 passes a step */
    DRAW_OF_MANY_STEPS,   /* 42 more steps */
    DRAW_N_THEMES,
};

struct drawer {
    struct chance chance;
    struct script *s;
    struct script_state state; /* the engine's, behind the last action */
    uint32_t theme, wanted;    /* how many actions the script is to have */
    uint32_t units;            /* how far an engine may run ahead */
    uint32_t step, microbatch; /* of the batch that comes next */
    /* the verbs to be tried next, if they are legal */
    uint32_t next[DRAW_MOST_NEXT], n_next;
    bool loud;        /* an edit made gradients infinite, NaN or huge */
    bool many;        /* many steps have been drawn */
    bool controls;    /* some actions set knobs of units */
    bool by_hand;     /* some unshard and reshard single units */
    bool thaws;       /* some freeze and thaw parameters */
    bool steps_early; /* some passes are given their steps */
};

/* Generators from 3 on draw actions on single units and parameters, and
 * ties. */
static inline bool draw_has_units(const struct drawer *d)
{
    return d->s->generator >= 3;
}

/* Those from 4 on also draw steps in backward, units of parameters, buffers and
 * assigned values. */
static inline bool draw_has_steps(const struct drawer *d)
{
    return d->s->generator >= 4;
}

/* Those from 5 on also draw what rests on the host, and lives without
 * values. */
static inline bool draw_has_places(const struct drawer *d)
{
    return d->s->generator >= 5;
}

/* Those from 6 on also draw units that are summoned, lenient loads, and saves
 * that leave something out or round it. */
static inline bool draw_has_forms(const struct drawer *d)
{
    return d->s->generator >= 6;
}

/* Those from 7 on also draw values that rank 0 sends. */
static inline bool draw_has_sends(const struct drawer *d)
{
    return d->s->generator >= 7;
}

/* Whether the life that goes on, or else the one that begins next, may still
 * lack values. */
static inline bool draw_lacks_values(const struct drawer *d)
{
    return d->state.living ? d->state.empty : d->s->deferred;
}

/* script_draw.c: the verb is tried behind those that are waiting to be tried.
 * It is dropped if DRAW_MOST_NEXT are waiting already. */
void draw_comes_next(struct drawer *d, uint32_t verb);

/* script_draw_case.c: the case, and all else that stands before the actions. */
void draw_case(struct drawer *d);
/* Another world in which the script of case c may go on; false: none was
 * found. */
bool draw_world(struct drawer *d, const struct run_case *c,
                struct script_world *out);
uint32_t draw_parameters(const struct run_case *c);
/* A parameter of the model, but never the last one or a name that shares its
 * values: so one is always trained, unless all are frozen. SCRIPT_ALL: none was
 * found. */
uint32_t draw_parameter(struct drawer *d);
/* How far an engine may run ahead: at most as many units as there are. */
uint32_t draw_units(const struct run_case *c);

/* script_draw_action.c: draws all that stands behind an action's verb. */
void draw_what_it_says(struct drawer *d, struct script_action *a);
/* Rates and decays: one number for all groups, or one for each. */
void draw_step(struct drawer *d, struct script_action *a);
/* Whether a load of the first checkpoint must be refused because it lacks
 * states. */
bool draw_lacks_states(const struct drawer *d);
/* Any call that must be refused, wherever that may be. */
uint32_t draw_any_call(struct drawer *d);

/* script_draw_pass.c: a pass that is whole or not, of either sequence. */
void draw_pass(struct drawer *d, struct script_action *a);

#endif
