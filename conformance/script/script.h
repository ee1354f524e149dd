/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - what a driver does with an engine, as data: a list of actions
 * with a text form. Four steps of two microbatches, of which the second is
 * reduced:
 *
 *     script 1
 *     --
 *     repeat 4 {
 *     pass i.0 n
 *     pass i.1 s
 *     step lr 0.1
 *     zero
 *     }
 *
 * A life begins by itself, with `shard`, before the first action that needs
 * one, and ends with the script. docs/formats.md has the grammar. What an
 * engine must do is said where its functions are (fsdp/engine.h); what may
 * follow what is script_legal.c's.
 */
#ifndef FSDP_CTS_SCRIPT_H
#define FSDP_CTS_SCRIPT_H

#include "cases/case_script.h"
#include "script/script_calls.h"

enum {
    SCRIPT_VERSION = 1,
    SCRIPT_MAX_GROUPS = 8,
    SCRIPT_MOST_SCALE = 126, /* a power of two whose inverse is exact */
    SCRIPT_MAX_SLOTS = 4,    /* checkpoints: a, b, c, d */
    SCRIPT_MAX_DEPTH = 4,    /* how deep repeats may be nested */
    /* in the text; the body of a repeat counts once */
    SCRIPT_MAX_ACTIONS = 1 << 20,
    SCRIPT_MAX_REPEATS = 1000000,
    SCRIPT_WORD_BYTES = 32,
    /* an action names units, and parameters, below this */
    SCRIPT_MAX_UNITS = 64,
    /* the largest number of a value, and of elements */
    SCRIPT_MOST_NUMBER = 9999,
};

enum script_verb {
    SCRIPT_PASS = 0, /* a training pass, whole, cancelled or left open */
    SCRIPT_EVAL,     /* an evaluation pass, whole or cancelled */
    SCRIPT_STEP,
    SCRIPT_ZERO, /* zero_grad */
    SCRIPT_CLIP,
    SCRIPT_LOOK, /* pieces: the values that this rank owns go into the record */
    SCRIPT_SUMMON,  /* unshard_all, every parameter is read, reshard_all */
    SCRIPT_UNSHARD, /* unshard_all, and every parameter is read */
    SCRIPT_RESHARD, /* reshard_all */
    SCRIPT_SYNC,    /* set_gradient_sync, between passes */
    SCRIPT_SAVE,    /* save_begin */
    SCRIPT_WAIT,    /* save_wait */
    SCRIPT_LOAD,
    SCRIPT_AGAIN, /* destroy, and shard again */
    SCRIPT_ANEW,  /* all ranks end; new processes shard, in a world of theirs */
    SCRIPT_WRONG, /* a call that must be refused, and changes nothing */
    SCRIPT_REPEAT, /* plays the `length` actions that follow `count` times */
    SCRIPT_SET,    /* set: changes a unit's knob from the next BEGIN on */
    SCRIPT_UNSHARD_UNIT, /* unshard, and the unit's parameters are read */
    SCRIPT_RESHARD_UNIT, /* reshard */
    SCRIPT_FREEZE,       /* set_requires_grad, of one parameter or of all */
    SCRIPT_THAW,
    SCRIPT_N_DRAWN_VERBS, /* generators draw the verbs above */
    SCRIPT_BACKWARD_STEP = SCRIPT_N_DRAWN_VERBS, /* set_step */
    SCRIPT_ASSIGN, /* assign, of one parameter or of all; drawn from generator 4
                      on */
    /* summon: as SUMMON, but of one unit, or on rank 0 alone; drawn from
     * generator 6 on. */
    SCRIPT_SUMMON_SOME,
    SCRIPT_SEND, /* send_values, of all parameters or of one; drawn from
                    generator 7 on */
    SCRIPT_N_VERBS,
};

/* The step and the microbatch from which samples are drawn. */
struct script_batch {
    uint32_t step, microbatch;
    bool counted; /* the turn of the innermost repeat is added to `step` */
};

/* A place in a pass: behind its first `a` points; with b > 0 behind the first
 * floor(a length / b) of its `length` points. */
struct script_place {
    uint32_t a, b; /* b = 0: a points */
};

enum script_sync {
    SCRIPT_SYNC_UNSAID = 0, /* set_gradient_sync is not called */
    SCRIPT_SYNC_ON = 1,
    SCRIPT_SYNC_OFF = 2,
};

/* One thing that happens inside a pass: a call of set_gradient_sync, an unshard
 * or reshard of a unit, or a call that must be refused. */
struct script_inside {
    struct script_place place;
    uint32_t sync;    /* enum script_sync; UNSAID if it is one of the others */
    uint32_t by_hand; /* 0, or the verb UNSHARD_UNIT or RESHARD_UNIT, which is
                         about `unit` */
    uint32_t unit;
    uint32_t call; /* enum script_call, if both of the above are 0 */
};
/* Whether it is a call that must be refused. */
bool script_is_wrong(const struct script_inside *in);

/* How a parameter's local gradient is changed before the engine takes it, at
 * POST_BACKWARD of its module. The edits of a pass are made in their order. */
enum script_edit_kind {
    SCRIPT_EDIT_TIMES = 0, /* each element times 2^exponent */
    SCRIPT_EDIT_INF,       /* +infinity */
    SCRIPT_EDIT_NAN,
    SCRIPT_EDIT_ZERO,
    /* Elements 0, 1 and 2 of a parameter are 1, 2^-24 and 2^-80, all others 0:
     * added up in double they are a tie that rounds to 1; their exact sum is
     * above the tie. */
    SCRIPT_EDIT_TIE,
    SCRIPT_EDIT_SUBNORMAL, /* 2^-140 */
    SCRIPT_N_EDITS,
};
enum {
    SCRIPT_LEAST_EXPONENT = -160,
    SCRIPT_MOST_EXPONENT = 127,
};
#define SCRIPT_ALL UINT32_MAX
/* Rank, parameter and element are each SCRIPT_ALL or a number that is taken
 * modulo how many there are: parameter 9 of a model of 4 is parameter 1. */
struct script_edit {
    uint32_t kind;
    int32_t exponent; /* TIMES */
    uint32_t rank, parameter, element;
};

/* Where the value comes from that a parameter is assigned. */
enum script_source {
    SCRIPT_OF_NUMBER = 0, /* script_value with this number */
    SCRIPT_INITIAL,       /* what the parameter began with */
    SCRIPT_SUMMONED,      /* what it had when all was last unsharded */
    SCRIPT_N_SOURCES,
};
/* The value that `number` gives to element i of parameter p: a multiple of
 * 2^-10 between -1/8 and 1/8. */
float script_value(uint32_t number, uint32_t p, uint64_t i);

/* The world of the life that begins. */
struct script_world {
    uint32_t ranks; /* 0: all stays as it was */
    uint32_t replicas, strategy;
    uint32_t wrap; /* CASE_N_WRAPS: it stays as it was */
};

enum script_ending {
    SCRIPT_WHOLE = 0,
    SCRIPT_CANCELLED = 1, /* at `until` */
    SCRIPT_LEFT_OPEN = 2, /* at `until`; nothing but destroy follows */
};

struct script_action {
    uint32_t verb;
    /* PASS, EVAL; a SYNC uses `sync` alone */
    struct script_batch batch;
    uint32_t sync, ending;
    struct script_place until;
    uint32_t first_inside, n_inside;
    uint32_t first_edit, n_edits;
    /* STEP, BACKWARD_STEP: one number for each group, or one for all; n_decay
     * 0: the call is given no decay */
    uint32_t n_lr, n_decay;
    float lr[SCRIPT_MAX_GROUPS], decay[SCRIPT_MAX_GROUPS];
    bool finite; /* whether found_inf is noted among the answers */
    /* CLIP */
    float max_norm, p;
    bool strict; /* error_if_nonfinite */
    /* SAVE, WAIT, LOAD */
    uint32_t slot;
    uint32_t form;   /* SAVE: enum fsdp_save_form */
    bool rank0_only; /* SAVE */
    uint32_t what;   /* SAVE: enum fsdp_save_part; 0: all */
    uint32_t dtype;  /* SAVE: the dtype to which parameters' values are rounded;
                        NONE: they are not */
    bool lenient;    /* LOAD: the file may lack names, and have others */
    bool same;       /* WAIT: the files must equal those of same_slot */
    uint32_t same_slot; /* WAIT */
    /* AGAIN: the number, from 1, of the parameter that gets another name; 0:
     * none does */
    uint32_t renamed;
    /* ANEW */
    struct script_world world;
    /* SUMMON_SOME */
    bool on_rank0;
    /* SET, SUMMON_SOME, and of one unit UNSHARD_UNIT, RESHARD_UNIT */
    uint32_t unit; /* below SCRIPT_MAX_UNITS; FSDP_NO_UNIT: all units */
    uint32_t knob; /* enum fsdp_knob */
    float value;
    /* FREEZE, THAW, ASSIGN, SEND: below SCRIPT_MAX_UNITS; SCRIPT_ALL: all
     * parameters */
    uint32_t parameter;
    uint32_t source, number; /* ASSIGN, SEND */
    uint32_t slice; /* ASSIGN: how many elements each call assigns; 0: all of
                       the parameter's at once */
    /* WRONG */
    uint32_t call;
    /* REPEAT */
    uint32_t count, length;
};

/* The optimizer's numbers that the script says. What it does not say is as
 * case_options has it. */
struct script_list {
    uint32_t n; /* 0: the script does not say it; 1: one for all groups; else
                   one for each group */
    float x[SCRIPT_MAX_GROUPS];
};
struct script_numbers {
    struct script_list beta1, beta2, eps, momentum;
};

/* The loss is scaled by 2^exponent. With `every` that is the first scale: each
 * step with an infinity halves it, and `every` steps in a row without one
 * double it (fsdp/scaler.h). */
struct script_scale {
    bool said;
    int32_t exponent;
    uint32_t every; /* 0: the scale does not change */
};

/* Made by script_parse. A zeroed one is an empty script. */
struct script {
    uint32_t generator; /* the generator that drew it; 0: it was not drawn */
    struct script_scale scale;
    bool has_case;
    struct run_case c; /* of the setting `case`; its scenario is TRAIN */
    struct script_numbers numbers;
    uint32_t groups; /* parameter groups, 1 to SCRIPT_MAX_GROUPS */
    bool deferred;   /* lives begin without values, */
    bool rank0;      /* or with the values that rank 0 has */
    uint32_t given;  /* bits of slots that another world has saved before the
                        script begins */
    uint32_t n_actions, n_inside, n_edits;
    struct script_action *action;
    struct script_inside *inside;
    struct script_edit *edit;
};

/* FORMAT: error says the line, the number of the action, from 1, and what would
 * be right; NOMEM. *out is to be released whatever is returned. Whether the
 * script may be played is for script_legal to say. */
int script_parse(const char *text, struct script *out,
                 struct fsdp_error *error);
void script_release(struct script *s); /* any state */

/* The canonical text, which script_parse reads back as the same script:
 * one action a line, single spaces. The caller frees it; NULL: no memory. */
char *script_text(const struct script *s);
/* The text of one action, shortened to fit; of a REPEAT without the actions
 * that it repeats. */
void script_action_text(const struct script *s, const struct script_action *a,
                        char *text, size_t bytes);

/*
 * Whether the contract says what each call of the script does. INVALID, with
 * the action's number and what would be right: a call that must be refused is
 * not marked so (`!`), a call behind `!` need not be refused, or the contract
 * says nothing of the call. `lengths`: points of the training and of the
 * evaluation sequence; NULL: sequences of 2^20 points are assumed, so that a
 * place given as a number lies before their ends.
 */
int script_legal(const struct script *s, const uint32_t lengths[2],
                 struct fsdp_error *error);

/* Puts the numbers that the script says for all groups into the options that
 * case_options made. */
void script_options(const struct script *s, struct fsdp_options *options);
/* Whether groups have betas, eps or momentum of their own. */
bool script_has_own_numbers(const struct script *s);
/* The case of a life that begins in another world. */
void script_case_in(const struct run_case *c, const struct script_world *world,
                    struct run_case *out);

/* Whether a is a SET of a unit's divide or predivide factor. */
bool script_sets_factor(const struct script_action *a);

/* The parameter group, of n, that parameter p is in. */
uint32_t script_group_of(uint32_t n, uint32_t p);
/* How many points have been passed at the place: floor(a length / b), or a. It
 * is above `length` if the sequence has no such place. */
uint32_t script_place_in(struct script_place place, uint32_t length);

/* A walk through the actions in the order in which they are played: the body of
 * a repeat comes as often as it is repeated. To look ahead, copy the walk. */
struct script_walk {
    const struct script *s;
    uint32_t at; /* the action that comes next */
    uint32_t depth;
    struct {
        uint32_t begin, end, turn, count;
    } loop[SCRIPT_MAX_DEPTH];
};
struct script_walk script_begin(const struct script *s);
/* The next action, never a REPEAT; NULL: there are no more. */
const struct script_action *script_next(struct script_walk *w);
/* Whether action i, a step, is followed by a pass or another step before its
 * gradients are dropped, so that they are used again. */
bool script_step_is_used_again(const struct script *s, uint32_t i);
/* The step of a's batch, where a is the action that script_next has just
 * returned. */
uint32_t script_step(const struct script_walk *w,
                     const struct script_action *a);

/* Whether the action only offers a model to be sharded, so that no life begins
 * for it. */
bool script_is_offer(const struct script_action *a);

/* ---- Cases ---- */

/* Adds a text, in its canonical form, to the scripts that cases know. Fails as
 * script_parse does. INVALID: the script plays nothing, or more than
 * CASE_MAX_STEPS actions. */
int script_give(const char *text, const struct case_script **out,
                struct fsdp_error *error);

/* What the scenario of a case does, as text. saves_only: the text for the ranks
 * that save what the ranks of c load. The caller frees it; NULL: no memory. */
char *script_of_case(const struct run_case *c, bool saves_only);
/* The same, parsed. NOMEM. */
int script_make(const struct run_case *c, bool saves_only, struct script *out,
                struct fsdp_error *error);

#endif
