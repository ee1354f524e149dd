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
    SCRIPT_MOST_SCALE = 126,      /* a power of two whose inverse is exact */
    SCRIPT_MAX_SLOTS = 4,         /* checkpoints: a, b, c, d */
    SCRIPT_MAX_DEPTH = 4,         /* of repeats in repeats */
    SCRIPT_MAX_ACTIONS = 1 << 20, /* written; what is repeated counts once */
    SCRIPT_MAX_REPEATS = 1000000,
    SCRIPT_WORD_BYTES = 32,
    SCRIPT_MAX_UNITS = 64,     /* that an action can name; parameters, too */
    SCRIPT_MOST_NUMBER = 9999, /* of values that are assigned; of elements */
};

enum script_verb {
    SCRIPT_PASS = 0, /* a training pass, whole, cancelled or left open */
    SCRIPT_EVAL,     /* an evaluation pass, whole or cancelled */
    SCRIPT_STEP,
    SCRIPT_ZERO, /* zero_grad */
    SCRIPT_CLIP,
    SCRIPT_LOOK,    /* pieces: what this rank owns goes into the record */
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
    SCRIPT_REPEAT,       /* the `length` actions that follow, `count` times */
    SCRIPT_SET,          /* set: a unit's knob, from the next BEGIN on */
    SCRIPT_UNSHARD_UNIT, /* unshard, and the unit's parameters are read */
    SCRIPT_RESHARD_UNIT, /* reshard */
    SCRIPT_FREEZE,       /* set_requires_grad, of one parameter or of all */
    SCRIPT_THAW,
    SCRIPT_N_DRAWN_VERBS, /* the generator draws those above */
    SCRIPT_BACKWARD_STEP = SCRIPT_N_DRAWN_VERBS, /* set_step */
    SCRIPT_ASSIGN, /* assign, of one parameter or of all; drawn from 4 on */
    /* summon, as SUMMON of one unit, or on rank 0 alone; drawn from 6 on. */
    SCRIPT_SUMMON_SOME,
    SCRIPT_SEND, /* send_values, of all or of one; drawn from 7 on */
    SCRIPT_N_VERBS,
};

/* Samples are drawn by (step, microbatch). */
struct script_batch {
    uint32_t step, microbatch;
    bool counted; /* `step` is added to the turn of the innermost repeat */
};

/* A place in a pass: `a` points have been passed, or floor(a length / b). */
struct script_place {
    uint32_t a, b; /* b = 0: a points */
};

enum script_sync {
    SCRIPT_SYNC_UNSAID = 0, /* set_gradient_sync is not called */
    SCRIPT_SYNC_ON = 1,
    SCRIPT_SYNC_OFF = 2,
};

/* What happens inside a pass: one of three. */
struct script_inside {
    struct script_place place;
    uint32_t sync;    /* enum script_sync; or UNSAID */
    uint32_t by_hand; /* 0, or UNSHARD_UNIT, RESHARD_UNIT: of `unit` */
    uint32_t unit;
    uint32_t call; /* enum script_call, if it is neither */
};
/* A call that must be refused. */
bool script_is_wrong(const struct script_inside *in);

/* What becomes of a parameter's local gradient before the engine takes it, at
 * POST_BACKWARD of its module. Edits of a pass are made in their order. */
enum script_edit_kind {
    SCRIPT_EDIT_TIMES = 0, /* each element times 2^exponent */
    SCRIPT_EDIT_INF,       /* +infinity */
    SCRIPT_EDIT_NAN,
    SCRIPT_EDIT_ZERO,
    /* Elements 0, 1 and 2 of a parameter are 1, 2^-24 and 2^-80, all others 0:
     * a sum in double is a tie that rounds to 1, the exact one is above. */
    SCRIPT_EDIT_TIE,
    SCRIPT_EDIT_SUBNORMAL, /* 2^-140 */
    SCRIPT_N_EDITS,
};
enum {
    SCRIPT_LEAST_EXPONENT = -160,
    SCRIPT_MOST_EXPONENT = 127,
};
#define SCRIPT_ALL UINT32_MAX
/* Each of the three is a number, of which the remainder counts that there is
 * in the model and its world (parameter 9 of 4 is 1), or SCRIPT_ALL. */
struct script_edit {
    uint32_t kind;
    int32_t exponent; /* TIMES */
    uint32_t rank, parameter, element;
};

/* What a parameter is assigned. */
enum script_source {
    SCRIPT_OF_NUMBER = 0, /* script_value of a number */
    SCRIPT_INITIAL,       /* what it began with */
    SCRIPT_SUMMONED,      /* what it had when all was unsharded last */
    SCRIPT_N_SOURCES,
};
/* Element i of parameter p, of a number: a multiple of 2^-10 between -1/8 and
 * 1/8. */
float script_value(uint32_t number, uint32_t p, uint64_t i);

/* Of the life that begins. */
struct script_world {
    uint32_t ranks; /* 0: all is as before */
    uint32_t replicas, strategy;
    uint32_t wrap; /* CASE_N_WRAPS: as before */
};

enum script_ending {
    SCRIPT_WHOLE = 0,
    SCRIPT_CANCELLED = 1, /* at `until` */
    SCRIPT_LEFT_OPEN = 2, /* at `until`; only destroy follows */
};

struct script_action {
    uint32_t verb;
    /* PASS, EVAL; SYNC has `sync` alone */
    struct script_batch batch;
    uint32_t sync, ending;
    struct script_place until;
    uint32_t first_inside, n_inside;
    uint32_t first_edit, n_edits;
    /* STEP, BACKWARD_STEP: one number a group, or one for all; no decay is NULL
     */
    uint32_t n_lr, n_decay;
    float lr[SCRIPT_MAX_GROUPS], decay[SCRIPT_MAX_GROUPS];
    bool finite; /* found_inf is noted among the answers */
    /* CLIP */
    float max_norm, p;
    bool strict; /* error_if_nonfinite */
    /* SAVE, WAIT, LOAD */
    uint32_t slot;
    uint32_t form;      /* SAVE: enum fsdp_save_form */
    bool rank0_only;    /* SAVE */
    uint32_t what;      /* SAVE: enum fsdp_save_part; 0: all */
    uint32_t dtype;     /* SAVE: of parameters' values; NONE: as they are */
    bool lenient;       /* LOAD: names may be missing, and others there */
    bool same;          /* WAIT: the files are those of the slot below */
    uint32_t same_slot; /* WAIT */
    /* AGAIN: the number of a parameter with another name, from 1; 0: none has
     */
    uint32_t renamed;
    /* ANEW */
    struct script_world world;
    /* SUMMON_SOME */
    bool on_rank0;
    /* SET, SUMMON_SOME, and of one unit UNSHARD_UNIT, RESHARD_UNIT */
    uint32_t unit; /* below SCRIPT_MAX_UNITS, or FSDP_NO_UNIT: of all */
    uint32_t knob; /* enum fsdp_knob */
    float value;
    /* FREEZE, THAW, ASSIGN, SEND: below SCRIPT_MAX_UNITS, or SCRIPT_ALL */
    uint32_t parameter;
    uint32_t source, number; /* ASSIGN, SEND */
    uint32_t slice; /* ASSIGN: elements of a call; 0: all of a parameter's */
    /* WRONG */
    uint32_t call;
    /* REPEAT */
    uint32_t count, length;
};

/* Numbers of optimizers that a script says; others are those of
 * case_options. */
struct script_list {
    uint32_t n; /* 0: unsaid; 1: one for all groups; groups: one each */
    float x[SCRIPT_MAX_GROUPS];
};
struct script_numbers {
    struct script_list beta1, beta2, eps, momentum;
};

/* The loss is scaled by 2^exponent; with `every` that is where it begins: each
 * infinity halves it, and each `every` steps in a row without one double it
 * (fsdp/scaler.h). */
struct script_scale {
    bool said;
    int32_t exponent;
    uint32_t every; /* 0: it stays */
};

/* Made by script_parse; zeroed, it is empty. */
struct script {
    uint32_t generator; /* that drew it; 0: none */
    struct script_scale scale;
    bool has_case;
    struct run_case c; /* of the setting `case`; its scenario is TRAIN */
    struct script_numbers numbers;
    uint32_t groups; /* parameter groups, 1 to SCRIPT_MAX_GROUPS */
    bool deferred;   /* lives begin without values, */
    bool rank0;      /* or with those that rank 0 has */
    uint32_t given;  /* slots (bits) that another world has saved before */
    uint32_t n_actions, n_inside, n_edits;
    struct script_action *action;
    struct script_inside *inside;
    struct script_edit *edit;
};

/* FORMAT: the line, the action's number, from 1, and what would be right;
 * NOMEM. *out is to be released whatever is returned. Whether it may be played
 * is for script_legal. */
int script_parse(const char *text, struct script *out,
                 struct fsdp_error *error);
void script_release(struct script *s); /* any state */

/* The canonical text, which script_parse reads back as the same script:
 * one action a line, single spaces. The caller frees it; NULL: no memory. */
char *script_text(const struct script *s);
/* One action of it, shortened to fit, without what it repeats. */
void script_action_text(const struct script *s, const struct script_action *a,
                        char *text, size_t bytes);

/*
 * Whether the contract says of each call what it does: INVALID, with the
 * action's number and what would be right, if the script makes a call that
 * must be refused without saying so (`!`), one behind `!` that must not, or
 * one of which the contract is silent. `lengths`: points of the training and
 * of the evaluation sequence, or NULL, for sequences of 2^20 points: a place
 * that is a number lies before their ends.
 */
int script_legal(const struct script *s, const uint32_t lengths[2],
                 struct fsdp_error *error);

/* Puts the numbers that the script says for all groups into options of
 * case_options. */
void script_options(const struct script *s, struct fsdp_options *options);
/* Whether groups have betas, eps or momentum of their own. */
bool script_has_own_numbers(const struct script *s);
/* The case of a life that begins in another world. */
void script_case_in(const struct run_case *c, const struct script_world *world,
                    struct run_case *out);

/* A SET of a unit's divide or predivide factor. */
bool script_sets_factor(const struct script_action *a);

/* The parameter group of p among n. */
uint32_t script_group_of(uint32_t n, uint32_t p);
/* floor(a length / b), or a; above `length` if it is. */
uint32_t script_place_in(struct script_place place, uint32_t length);

/* Actions one after the other, with what is repeated as often as it is. A copy
 * of a walk looks ahead. */
struct script_walk {
    const struct script *s;
    uint32_t at; /* the action that comes next */
    uint32_t depth;
    struct {
        uint32_t begin, end, turn, count;
    } loop[SCRIPT_MAX_DEPTH];
};
struct script_walk script_begin(const struct script *s);
/* NULL: there are no more. Never a REPEAT. */
const struct script_action *script_next(struct script_walk *w);
/* Whether action i, a step, is followed by a pass or a step before its
 * gradients are dropped: they are used again. */
bool script_step_is_used_again(const struct script *s, uint32_t i);
/* The step of a batch of the action that script_next has just returned. */
uint32_t script_step(const struct script_walk *w,
                     const struct script_action *a);

/* Whether it offers a model to be sharded, so that no life begins for it. */
bool script_is_offer(const struct script_action *a);

/* ---- Cases ---- */

/* Puts a text among the scripts that cases know, by its canonical form. As
 * script_parse fails; INVALID: it plays nothing, or more than CASE_MAX_STEPS
 * actions. */
int script_give(const char *text, const struct case_script **out,
                struct fsdp_error *error);

/* What the scenario of a case does, as text; saves_only: what the ranks do
 * that save what those of c load. The caller frees it; NULL: no memory. */
char *script_of_case(const struct run_case *c, bool saves_only);
/* The same, parsed. NOMEM. */
int script_make(const struct run_case *c, bool saves_only, struct script *out,
                struct fsdp_error *error);

#endif
