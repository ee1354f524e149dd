/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_state.h - the state of an engine as the contract describes it
 * (fsdp/engine.h), and how each action of a script changes it. Used wherever
 * scripts are judged, drawn or made smaller.
 */
#ifndef FSDP_CTS_SCRIPT_STATE_H
#define FSDP_CTS_SCRIPT_STATE_H

#include "script/script.h"

/* Whether gradients are not finite. */
enum script_hurt {
    SCRIPT_UNHURT = 0,
    SCRIPT_MAYBE_HURT = 1, /* some may not be finite, or may become so */
    SCRIPT_HURT = 2,       /* some are not, for certain */
};

enum {
    SCRIPT_NO_SLOT = SCRIPT_MAX_SLOTS /* nothing is being saved */
};

struct script_state {
    const struct script *s;
    uint32_t length[2];    /* points of the training and evaluation sequence */
    struct run_case world; /* the case of this life, if the script has a case */
    bool living;           /* between shard and destroy */
    bool left_open;        /* a pass was left open: only destroy may follow */
    bool open_all;         /* between unshard_all and reshard_all */
    /* Bits of units (a model may have fewer): the units without gradient sync,
     * and those without an all-reduce across replicas, as the next BEGIN will
     * find them. */
    uint64_t no_sync, no_all_reduce;
    /* Bits of units: those whose gradients have not been reduced, and those
     * whose sum over shards the replicas have not added up. `pending`: some
     * unit is in either set. */
    uint64_t unreduced, partial;
    bool pending;
    bool step_set;   /* the next pass has been given a step */
    bool empty;      /* some parameters may have no values yet; */
    uint64_t values; /* bits of those that were given some */
    bool summoned;   /* unshard_all was called in this life */
    /* kept: some unit may be unsharded at rest. keeps: some unit stays
     * unsharded behind its backward, as the next BEGIN will find it. */
    bool kept, keeps;
    /* For certain every unit stays unsharded from its forward to its
     * backward. */
    bool holds;
    /* Bits of units whose predivide factor was set to 256 or more. */
    uint64_t predivided;
    /* Bits of parameters (a model may have fewer): those that this life froze,
     * and those that it thawed; the later of the two counts. */
    uint64_t frozen, thawed;
    uint32_t renamed; /* the number, from 1, of the parameter with another name
                         in this life; 0: none */
    bool reduced;     /* there are gradients that are reduced */
    uint32_t hurt;    /* enum script_hurt */
    bool hurt_values; /* parameters or moments may not be finite */
    bool touched;     /* gradients were changed by an edit or a clip */
    uint32_t saving;  /* the slot that is being saved, or SCRIPT_NO_SLOT */
    bool saving_hurt; /* hurt_values when the save began */
    uint32_t saved, broken; /* bits of slots: whole ones, and those with values
                               that may not be finite */
    struct {
        bool local; /* can be loaded only into the same wrap and shard degree */
        uint32_t wrap, degree;
        uint64_t frozen, thawed;
        uint32_t renamed, what, dtype;
    } slot[SCRIPT_MAX_SLOTS];
    char why[200]; /* the first thing that is not legal; "": nothing yet */
};

void script_state_begin(const struct script *s, const uint32_t lengths[2],
                        struct script_state *out);
/* Plays action a on the state. If a is not legal, state->why says so, and what
 * would be. */
void script_state_take(struct script_state *state,
                       const struct script_action *a);
/* Ends the script; `why` says what it may not leave undone. */
void script_state_end(struct script_state *state);

/* script_freeze.c: the parameter of the case's model that p is another name of,
 * or p itself. */
uint32_t script_original(const struct run_case *c, uint32_t p);
/* Whether parameter p of a graph is in no unit. */
bool script_ignores(const struct run_case *c, uint32_t p);
/* Whether a graph lacks no value once the parameters of these bits have theirs:
 * all others have no elements, are ignored, or are other names of these. */
bool script_has_all(const struct run_case *c, uint64_t values);
/* script_freeze plays FREEZE and THAW. script_lacks_states: whether the slot,
 * for certain, lacks the states of some parameter that is trained now.
 * script_has_states: whether, for certain, it has the states of all of them. */
void script_freeze(struct script_state *s, const struct script_action *a);
bool script_lacks_states(const struct script_state *s, uint32_t slot);
bool script_has_states(const struct script_state *s, uint32_t slot);

/* script_saves.c: SAVE, WAIT, LOAD. */
void script_save(struct script_state *s, const struct script_action *a);
void script_wait(struct script_state *s, const struct script_action *a);
void script_load(struct script_state *s, const struct script_action *a);

/* script_refusals.c: script_when_at_rest gives the bits of enum script_when
 * that hold at rest. script_check_call: the script is not legal unless the call
 * must be refused where the bits `now` hold. */
uint32_t script_when_at_rest(const struct script_state *s);
void script_check_call(struct script_state *s, uint32_t call, uint32_t now);

/* For these files. script_refuse_if: if `wrong`, the script is not legal; the
 * first `why` is kept. script_drop_gradients: what zero_grad, a load, CANCEL
 * and a new life do to the gradients that there are. */
void script_refuse_if(struct script_state *s, bool wrong, const char *why);
void script_drop_gradients(struct script_state *s);

/* Whether a life in world b computes bit for bit what a life in world a
 * does. */
bool script_same_bits(const struct run_case *a, const struct run_case *b);

/*
 * The index of the first written action that is not legal; if a save is never
 * waited for, it is the save. n_actions: all are legal. *at_end: the fault
 * shows only where the script ends.
 */
uint32_t script_first_illegal(const struct script *s, const uint32_t lengths[2],
                              struct script_state *state, bool *at_end);

#endif
