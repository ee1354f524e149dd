/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_state.h - the state of an engine as the contract describes it
 * (fsdp/engine.h), and what each action of a script makes of it; for those who
 * judge, draw and shrink scripts.
 */
#ifndef FSDP_CTS_SCRIPT_STATE_H
#define FSDP_CTS_SCRIPT_STATE_H

#include "script/script.h"

/* Gradients that are not finite. */
enum script_hurt {
    SCRIPT_UNHURT = 0,
    SCRIPT_MAYBE_HURT = 1, /* some may be, or may become so */
    SCRIPT_HURT = 2,       /* some are */
};

enum {
    SCRIPT_NO_SLOT = SCRIPT_MAX_SLOTS /* nothing is being saved */
};

struct script_state {
    const struct script *s;
    uint32_t length[2];    /* points of the two sequences */
    struct run_case world; /* of this life, where the script has a case */
    bool living;           /* between shard and destroy */
    bool left_open;        /* in a pass for good */
    bool open_all;         /* between unshard_all and reshard_all */
    /* Bits of units (a model may have fewer): which the next BEGIN will find
     * without gradient sync, and without an all-reduce across replicas. */
    uint64_t no_sync, no_all_reduce;
    /* Units whose gradients have not been reduced; units whose sum has not been
     * met across replicas. `pending`: there is a unit of either. */
    uint64_t unreduced, partial;
    bool pending;
    bool step_set;   /* the next pass has been given a step */
    bool empty;      /* not all parameters have values for certain; */
    uint64_t values; /* those that have, as bits, were it so */
    bool summoned;   /* all was unsharded in this life */
    /* A unit may be unsharded at rest; and whether one is kept so behind its
     * backward, as the next BEGIN will find it. */
    bool kept, keeps;
    /* Every unit stays from its forward to its backward, for certain. */
    bool holds;
    /* Units, as bits, whose predivide factor was set to 256 or more. */
    uint64_t predivided;
    /* Bits of parameters (a model may have fewer): which were frozen, and which
     * were thawed, last in this life. */
    uint64_t frozen, thawed;
    uint32_t renamed;       /* that parameter, from 1, in this life */
    bool reduced;           /* gradients that are reduced */
    uint32_t hurt;          /* enum script_hurt */
    bool hurt_values;       /* the same of parameters and moments */
    bool touched;           /* gradients, by an edit or a clip */
    uint32_t saving;        /* slot, or SCRIPT_NO_SLOT */
    bool saving_hurt;       /* hurt_values when the save began */
    uint32_t saved, broken; /* slots, as bits: with hurt values */
    struct {
        bool local; /* loads into the same wrap and shard degree alone */
        uint32_t wrap, degree;
        uint64_t frozen, thawed;
        uint32_t renamed, what, dtype;
    } slot[SCRIPT_MAX_SLOTS];
    char why[200]; /* empty: legal so far */
};

void script_state_begin(const struct script *s, const uint32_t lengths[2],
                        struct script_state *out);
/* What a does; `why` says what is not legal, and what would be. */
void script_state_take(struct script_state *state,
                       const struct script_action *a);
/* The script may end here. */
void script_state_end(struct script_state *state);

/* script_freeze.c: what a parameter of the case's model is another name of. */
uint32_t script_original(const struct run_case *c, uint32_t p);
/* Whether parameter p of a graph is in no unit. */
bool script_ignores(const struct run_case *c, uint32_t p);
/* Whether a graph lacks no value where the parameters of these bits have some:
 * the others have no elements, are ignored, or are other names of these. */
bool script_has_all(const struct run_case *c, uint64_t values);
/* FREEZE, THAW. Whether what is in a slot, for certain, has no
 * states of a parameter that is trained now; has those of all that are. */
void script_freeze(struct script_state *s, const struct script_action *a);
bool script_lacks_states(const struct script_state *s, uint32_t slot);
bool script_has_states(const struct script_state *s, uint32_t slot);

/* script_saves.c: SAVE, WAIT, LOAD. */
void script_save(struct script_state *s, const struct script_action *a);
void script_wait(struct script_state *s, const struct script_action *a);
void script_load(struct script_state *s, const struct script_action *a);

/* script_refusals.c: which bits of enum script_when hold at rest; whether a
 * call must be refused where those of `now` do. */
uint32_t script_when_at_rest(const struct script_state *s);
void script_check_call(struct script_state *s, uint32_t call, uint32_t now);

/* Of these files: where something is wrong the script is not legal, and the
 * first one says why; a step, a load or CANCEL ends what gradients there are.
 */
void script_refuse_if(struct script_state *s, bool wrong, const char *why);
void script_drop_gradients(struct script_state *s);

/* Whether a life in world b computes what one in world a does, bit for bit. */
bool script_same_bits(const struct run_case *a, const struct run_case *b);

/*
 * The index of the first action that is not legal, among those that are
 * written. Where a save is never waited for, it is the save. n_actions: all are
 * legal. *at_end: only the script's end shows it.
 */
uint32_t script_first_illegal(const struct script *s, const uint32_t lengths[2],
                              struct script_state *state, bool *at_end);

#endif
