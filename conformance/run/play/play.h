/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - a script is played on one rank (play.c): passes (play_pass.c), edits
 * of their gradients (play_edit.c), the optimizer (play_optimizer.c),
 * checkpoints (play_checkpoint.c), single units (play_control.c), calls that
 * must be refused (play_wrong.c, play_offer.c); and the parts of it that go
 * into the record (play_record.c).
 */
#ifndef FSDP_CTS_PLAY_H
#define FSDP_CTS_PLAY_H

#include "run/play/drive.h"

/*
 * One of the calls that must be refused, a row of play_wrong.c: the function
 * that makes it, or one that makes several such calls by the fields below,
 * which say what is wrong with this one. *status is what the engine answered.
 */
struct play_wrong {
    int (*call)(struct driver *x, int *status);
    int (*with)(struct driver *x, const struct play_wrong *how, int *status);
    uint32_t point, index; /* where the engine is told to be */
    uint32_t unit, knob;   /* FSDP_NO_UNIT: all units */
    uint32_t verb;         /* SCRIPT_UNSHARD_UNIT or SCRIPT_RESHARD_UNIT */
    uint32_t more;         /* so many groups, or elements, more than there
                              are */
    uint32_t what;         /* the parts to save, if not those of the script */
    uint32_t dtype, form;  /* how it is saved; FSDP_DTYPE_NONE: in the dtype it
                              has */
    uint32_t as;           /* enum script_call: the call that this row is
                              about */
    float value;           /* of a knob, a scale, the greatest norm */
    float p;               /* of a norm */
    /* Asks for each parameter that is meant, one by one. */
    bool (*is_meant)(const struct driver *x, uint32_t p);
    int (*ask)(struct driver *x, uint32_t p);
};

/* play_pass.c: the functions by which the model asks the engine for parameters;
 * and a pass. */
int play_open_run(struct driver *x);
int play_pass(struct driver *x, const struct script_action *a);
/* Notes that a point has been passed, for the timeline of memory. */
int play_note_moment(struct driver *x, uint32_t point, uint32_t module);

/* play_edit.c: makes the edits of the script to the gradients of a module. */
int play_edits(struct driver *x, const struct script_action *a,
               uint32_t module);

/* play_optimizer.c: shards, and makes a step, with parameter groups. */
int play_shard(struct driver *x);
void play_begin_scale(struct driver *x); /* sets the scale of the loss as the
                                            script says */
/* The factor that undoes the scale of the loss; 1 where that has been done
 * already; 0 where the script has no scale. */
float play_inverse_scale(const struct driver *x);
int play_step(struct driver *x, const struct script_action *a);
int play_zero(struct driver *x, const struct script_action *a);
/* Gives the engine the optimizer step that the next backward is to make; and
 * makes such a call that must be refused. */
int play_backward_step(struct driver *x, const struct script_action *a);
int play_wrong_backward_step(struct driver *x, const struct play_wrong *how,
                             int *status);
int play_clip(struct driver *x, const struct script_action *a);

/* play_checkpoint.c: whether the script saves or loads. */
bool play_saves(const struct driver *x);
int play_save(struct driver *x, const struct script_action *a);
int play_wait(struct driver *x, const struct script_action *a);
int play_load(struct driver *x, const struct script_action *a);
/* Records what was loaded as a reader of the files finds it by name; only if
 * they are in the suite's own format, and not in its local form. */
int play_look_into_save(struct driver *x, uint32_t step);
/* Calls that must be refused; *status is what the engine answered. */
int play_wrong_save(struct driver *x, const struct play_wrong *how,
                    int *status);
int play_wrong_save_twice(struct driver *x, int *status);
int play_wrong_load_missing(struct driver *x, int *status);
/* To be called after a load that was refused: checks that the caller's extras
 * are still those of the last load that succeeded, and counts what a load of
 * damaged files communicated to no action. */
int play_behind_load(struct driver *x, uint32_t call);
int play_wrong_load_damaged(struct driver *x, int *status);
int play_wrong_load_stateless(struct driver *x, int *status);
int play_wrong_load_renamed(struct driver *x, int *status);
int play_wrong_load_other(struct driver *x, int *status);

/* play_names.c: play_rename gives a parameter, counted from 1, another name in
 * the life that begins; 0: none has one. The others note the names of the
 * tensors in a save, and check whether a lenient load of it has told of those
 * that differ: two answers. */
int play_rename(struct driver *x, uint32_t renamed);
int play_save_names(struct driver *x, const struct script_action *a);
int play_check_names(struct driver *x, uint32_t slot);

/* play_control.c: calls for one unit, or for all. */
int play_set(struct driver *x, const struct script_action *a);
int play_unshard_unit(struct driver *x, const struct script_action *a);
int play_reshard_unit(struct driver *x, const struct script_action *a);
/* The same in a pass; verb: SCRIPT_UNSHARD_UNIT or SCRIPT_RESHARD_UNIT. */
int play_by_hand(struct driver *x, uint32_t verb, uint32_t unit);
/* Calls that must be refused; *status is what the engine answered. */
int play_wrong_set(struct driver *x, const struct play_wrong *how, int *status);
int play_wrong_set_unit(struct driver *x, int *status);
int play_wrong_set_knob(struct driver *x, int *status);
/* A factor of the last unit, whose number and knob the refusal has to name; or
 * of all. */
int play_wrong_factor(struct driver *x, const struct play_wrong *how,
                      int *status);
/* Calls for the first unit; for a unit that does not exist; for the unit that
 * is computing. */
int play_wrong_by_hand(struct driver *x, const struct play_wrong *how,
                       int *status);
int play_wrong_unknown_unit(struct driver *x, const struct play_wrong *how,
                            int *status);
int play_wrong_reshard_window(struct driver *x, int *status);

/* play_summon.c: every parameter is read, as unshard_all shows it, or some of
 * them, as summon does; and calls of these that must be refused. */
int play_unshard(struct driver *x, const struct script_action *a);
int play_reshard(struct driver *x, const struct script_action *a);
int play_summon(struct driver *x, const struct script_action *a);
int play_summon_some(struct driver *x, const struct script_action *a);
int play_wrong_summon(struct driver *x, int *status);
int play_wrong_summon_unit(struct driver *x, int *status);

/* play_freeze.c: changes which parameters are trained. */
int play_freeze(struct driver *x, const struct script_action *a);
int play_wrong_freeze(struct driver *x, int *status);
int play_wrong_freeze_unknown(struct driver *x, int *status);
int play_wrong_freeze_by_two(struct driver *x, int *status);

/* play_assign.c: gives values to parameters, and keeps summoned values for that
 * where a script says so. Calls that must be refused. */
int play_keep_summoned(struct driver *x, uint32_t p,
                       const struct fsdp_tensor *t);
int play_assign(struct driver *x, const struct script_action *a);
/* The values that the action gives to elements [first, first + n) of parameter
 * p. */
int play_values(struct driver *x, const struct script_action *a, uint32_t p,
                uint64_t first, uint64_t n, float *out);
int play_wrong_assign(struct driver *x, const struct play_wrong *how,
                      int *status);
int play_wrong_assign_far(struct driver *x, int *status);
int play_wrong_assign_unknown(struct driver *x, int *status);

/* play_send.c: sends rank 0's values; and makes such calls that must be
 * refused. */
int play_send(struct driver *x, const struct script_action *a);
int play_wrong_send(struct driver *x, const struct play_wrong *how,
                    int *status);

/* play_buffers.c: lends a buffer that the model asks for in a forward; notes
 * what its module has left there, before the engine is told; and records the
 * buffers at rest, as a stage of the record. */
int play_lend_buffer(void *self, uint32_t b, struct fsdp_tensor *out);
int play_buffers_left(struct driver *x);
int play_look_at_buffers(struct driver *x, uint32_t stage, uint32_t step);
/* Checks the buffers in a folder that was saved, and that the parameters there
 * have the dtype of the save; answers say what is wrong. */
int play_saved_buffers(struct driver *x, const char *path);
int play_saved_dtype(struct driver *x, const char *path, uint32_t slot);
int play_wrong_buffer(struct driver *x, int *status);

/* play_answer.c: whether a refusal says this, or this number. */
bool play_says(const struct fsdp_error *e, const char *what);
bool play_says_number(const struct fsdp_error *e, uint32_t number);
/* If a refusal does not say the number of what was refused, adds this
 * answer. */
int play_refused_by_number(struct driver *x, const char *answer,
                           uint32_t number, int status);
/* Makes a call that is refused when an error is there already; an answer tells
 * if the first error is lost by that. */
int play_late_error(struct driver *x);

/* play_sizes.c: makes calls with the structs of older and of newer callers;
 * answers tell what these calls do that they should not. A clip that measures;
 * the step, and shard, as they are given. */
int play_clip_sizes(struct driver *x);
int play_step_sizes(struct driver *x, struct fsdp_step *step);
int play_shard_sizes(struct driver *x, const struct fsdp_options *options);
int play_save_sizes(struct driver *x, const struct fsdp_save *save);
/* Only for an engine that has the function of the name. */
int play_load_from_sizes(struct driver *x, const struct fsdp_load *how);
int play_summon_sizes(struct driver *x, const struct fsdp_summon *how);
int play_send_values_sizes(struct driver *x, const struct fsdp_values *how);

/* play_wrong_call (play_wrong.c) makes the call, and notes what was answered.
 * play_wrong (play_answer.c) also keeps its name meanwhile, so that a rank that
 * dies in the call can say in which. */
int play_wrong_call(struct driver *x, uint32_t call);
int play_wrong(struct driver *x, uint32_t call);
/* INVALID if the call is refused with that for every parameter; else the first
 * other answer. */
int play_ask_all(struct driver *x, int (*ask)(struct fsdp_sharded *, uint32_t,
                                              struct fsdp_tensor *));
/* play_offer.c: the same as play_wrong_call, for models that are offered to be
 * sharded. */
int play_offer(struct driver *x, uint32_t call);

/* play_record.c: notes parts of the run for the record, here in the order of a
 * run. */
int play_note_shard(struct driver *x);
void play_note_begin(struct driver *x, const struct script_action *a);
int play_look(struct driver *x, const struct script_action *a);
int play_note_action(struct driver *x, const struct script_action *a,
                     const struct script_action *next);
int play_note_end(struct driver *x);
void play_note_again(struct driver *x);
/* Notes that what was communicated since the last mark belongs to no step. */
int play_note_outside(struct driver *x);
/* Whether a look follows that shows what this pass, or clip, has left. */
bool play_is_looked_at(const struct driver *x, const struct script_action *a);

#endif
