/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - a script is played on one rank (play.c): passes (play_pass.c), edits
 * of their gradients (play_edit.c), the optimizer (play_optimizer.c),
 * checkpoints (play_checkpoint.c), single units (play_control.c), calls that
 * must be refused (play_wrong.c, play_offer.c); and what of it goes into the
 * record, and where (play_record.c).
 */
#ifndef FSDP_CTS_PLAY_H
#define FSDP_CTS_PLAY_H

#include "run/play/drive.h"

/*
 * One of the calls that must be refused, a row of play_wrong.c: who makes it,
 * or who makes several that differ in what is wrong with them, and what is so
 * here. *status is what the engine answered.
 */
struct play_wrong {
    int (*call)(struct driver *x, int *status);
    int (*with)(struct driver *x, const struct play_wrong *how, int *status);
    uint32_t point, index; /* where the engine is told to be */
    uint32_t unit, knob;   /* FSDP_NO_UNIT: all units */
    uint32_t verb;         /* SCRIPT_UNSHARD_UNIT or SCRIPT_RESHARD_UNIT */
    uint32_t more;         /* groups, or elements, than there are */
    uint32_t what;         /* is saved, where that is not as the script says */
    uint32_t dtype, form;  /* in which it is saved; FSDP_DTYPE_NONE: as there */
    uint32_t as;           /* enum script_call: the call that is meant */
    float value;           /* of a knob, a scale, the greatest norm */
    float p;               /* of a norm */
    /* Of these parameters, each by itself. */
    bool (*is_meant)(const struct driver *x, uint32_t p);
    int (*ask)(struct driver *x, uint32_t p);
};

/* play_pass.c: what the model asks the engine for; a pass. */
int play_open_run(struct driver *x);
int play_pass(struct driver *x, const struct script_action *a);
/* A point has been passed: for those who watch memory over time. */
int play_note_moment(struct driver *x, uint32_t point, uint32_t module);

/* play_edit.c: what becomes of the gradients of a module. */
int play_edits(struct driver *x, const struct script_action *a,
               uint32_t module);

/* play_optimizer.c: shards, and makes a step, with parameter groups. */
int play_shard(struct driver *x);
void play_begin_scale(struct driver *x); /* as the script says */
/* What undoes the scale of the loss, 1 where that has been done; 0: there is
 * none. */
float play_inverse_scale(const struct driver *x);
int play_step(struct driver *x, const struct script_action *a);
int play_zero(struct driver *x, const struct script_action *a);
/* The step of the next pass is given ahead; and one that must be refused. */
int play_backward_step(struct driver *x, const struct script_action *a);
int play_wrong_backward_step(struct driver *x, const struct play_wrong *how,
                             int *status);
int play_clip(struct driver *x, const struct script_action *a);

/* play_checkpoint.c: whether the script saves or loads. */
bool play_saves(const struct driver *x);
int play_save(struct driver *x, const struct script_action *a);
int play_wait(struct driver *x, const struct script_action *a);
int play_load(struct driver *x, const struct script_action *a);
/* What was loaded, as who knows the files finds it by name: where they are of
 * the suite's own format, and not of its local form. */
int play_look_into_save(struct driver *x, uint32_t step);
/* Calls that must be refused; *status is what the engine answered. */
int play_wrong_save(struct driver *x, const struct play_wrong *how,
                    int *status);
int play_wrong_save_twice(struct driver *x, int *status);
int play_wrong_load_missing(struct driver *x, int *status);
/* Behind a load that was refused: the caller's own is still that of the last
 * one that was not; and what one of damaged files did is no action's. */
int play_behind_load(struct driver *x, uint32_t call);
int play_wrong_load_damaged(struct driver *x, int *status);
int play_wrong_load_stateless(struct driver *x, int *status);
int play_wrong_load_renamed(struct driver *x, int *status);
int play_wrong_load_other(struct driver *x, int *status);

/* play_names.c: a parameter, from 1, has another name in the life that begins,
 * or with 0 none. What tensors a save has, by name, and whether a lenient load
 * of it has told of those that differ: two answers. */
int play_rename(struct driver *x, uint32_t renamed);
int play_save_names(struct driver *x, const struct script_action *a);
int play_check_names(struct driver *x, uint32_t slot);

/* play_control.c: of one unit, or of all. */
int play_set(struct driver *x, const struct script_action *a);
int play_unshard_unit(struct driver *x, const struct script_action *a);
int play_reshard_unit(struct driver *x, const struct script_action *a);
/* In a pass: SCRIPT_UNSHARD_UNIT or SCRIPT_RESHARD_UNIT. */
int play_by_hand(struct driver *x, uint32_t verb, uint32_t unit);
/* Calls that must be refused; *status is what the engine answered. */
int play_wrong_set(struct driver *x, const struct play_wrong *how, int *status);
int play_wrong_set_unit(struct driver *x, int *status);
int play_wrong_set_knob(struct driver *x, int *status);
/* Of the last unit, whose number and knob the message has to say; or of all. */
int play_wrong_factor(struct driver *x, const struct play_wrong *how,
                      int *status);
/* Of the first unit; of one that there is not; of the one that computes. */
int play_wrong_by_hand(struct driver *x, const struct play_wrong *how,
                       int *status);
int play_wrong_unknown_unit(struct driver *x, const struct play_wrong *how,
                            int *status);
int play_wrong_reshard_window(struct driver *x, int *status);

/* play_summon.c: every parameter is read, as unshard_all shows it, or summon of
 * some of them; and how that is refused. */
int play_unshard(struct driver *x, const struct script_action *a);
int play_reshard(struct driver *x, const struct script_action *a);
int play_summon(struct driver *x, const struct script_action *a);
int play_summon_some(struct driver *x, const struct script_action *a);
int play_wrong_summon(struct driver *x, int *status);
int play_wrong_summon_unit(struct driver *x, int *status);

/* play_freeze.c: what is trained. */
int play_freeze(struct driver *x, const struct script_action *a);
int play_wrong_freeze(struct driver *x, int *status);
int play_wrong_freeze_unknown(struct driver *x, int *status);
int play_wrong_freeze_by_two(struct driver *x, int *status);

/* play_assign.c: values are given to parameters; and what was summoned is kept
 * for that, where a script says so. Calls that must be refused. */
int play_keep_summoned(struct driver *x, uint32_t p,
                       const struct fsdp_tensor *t);
int play_assign(struct driver *x, const struct script_action *a);
/* Of parameter p, what the action gives to elements [first, first + n). */
int play_values(struct driver *x, const struct script_action *a, uint32_t p,
                uint64_t first, uint64_t n, float *out);
int play_wrong_assign(struct driver *x, const struct play_wrong *how,
                      int *status);
int play_wrong_assign_far(struct driver *x, int *status);
int play_wrong_assign_unknown(struct driver *x, int *status);

/* play_send.c: rank 0's values are sent; and how that is refused. */
int play_send(struct driver *x, const struct script_action *a);
int play_wrong_send(struct driver *x, const struct play_wrong *how,
                    int *status);

/* play_buffers.c: what the model asks for in a forward; what its module has
 * left there, before the engine is told; and what rests, in a stage of the
 * record. */
int play_lend_buffer(void *self, uint32_t b, struct fsdp_tensor *out);
int play_buffers_left(struct driver *x);
int play_look_at_buffers(struct driver *x, uint32_t stage, uint32_t step);
/* What was saved in a folder has of them; answers say so. And that parameters
 * there are of a dtype. */
int play_saved_buffers(struct driver *x, const char *path);
int play_saved_dtype(struct driver *x, const char *path, uint32_t slot);
int play_wrong_buffer(struct driver *x, int *status);

/* play_answer.c: whether a refusal says this, or this number. */
bool play_says(const struct fsdp_error *e, const char *what);
bool play_says_number(const struct fsdp_error *e, uint32_t number);
/* If it does not say the number of what was refused, an answer tells so. */
int play_refused_by_number(struct driver *x, const char *answer,
                           uint32_t number, int status);
/* A call is refused when something has failed already: that this is not told
 * any more, an answer tells. */
int play_late_error(struct driver *x);

/* play_sizes.c: calls with the structs of older and of newer callers; what
 * comes of them that should not, answers tell. A clip that measures; the step,
 * and shard, as they are given. */
int play_clip_sizes(struct driver *x);
int play_step_sizes(struct driver *x, struct fsdp_step *step);
int play_shard_sizes(struct driver *x, const struct fsdp_options *options);
int play_save_sizes(struct driver *x, const struct fsdp_save *save);
/* These the engine has. */
int play_load_from_sizes(struct driver *x, const struct fsdp_load *how);
int play_summon_sizes(struct driver *x, const struct fsdp_summon *how);
int play_send_values_sizes(struct driver *x, const struct fsdp_values *how);

/* play_wrong.c: makes the call, and notes what was answered; play_answer.c:
 * and whoever dies in it can say in which. */
int play_wrong_call(struct driver *x, uint32_t call);
int play_wrong(struct driver *x, uint32_t call);
/* INVALID if all parameters are refused so; else the first other answer. */
int play_ask_all(struct driver *x, int (*ask)(struct fsdp_sharded *, uint32_t,
                                              struct fsdp_tensor *));
/* play_offer.c: the same for models that are offered to be sharded. */
int play_offer(struct driver *x, uint32_t call);

/* play_record.c: what is noted of the run, in the order of a run. */
int play_note_shard(struct driver *x);
void play_note_begin(struct driver *x, const struct script_action *a);
int play_look(struct driver *x, const struct script_action *a);
int play_note_action(struct driver *x, const struct script_action *a,
                     const struct script_action *next);
int play_note_end(struct driver *x);
void play_note_again(struct driver *x);
/* What is communicated from the last mark on belongs to no step. */
int play_note_outside(struct driver *x);
/* Whether a look follows that shows what this pass, or clip, has left. */
bool play_is_looked_at(const struct driver *x, const struct script_action *a);

#endif
