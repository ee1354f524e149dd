/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.h - one case on one rank: opens engine and device, plays the script of
 * the case, gives everything back, and makes the rank's record.
 *
 * Read in this order: drive.c (a rank from the outside), play.c (a script, one
 * action after the other), then the files that play.h names.
 */
#ifndef FSDP_CTS_DRIVE_H
#define FSDP_CTS_DRIVE_H

#include "cases/case_model.h"
#include "run/witness/recorder.h"
#include "run/witness/witness.h"
#include "script/script.h"
#include "world/world.h"

#include <fsdp/scaler.h>

struct crossing;
struct mutant;
struct process_view;

/* What a run is for. */
enum drive_purpose {
    DRIVE_TO_RECORD,
    DRIVE_TO_WEIGH, /* measures what the process holds, and records nothing */
    DRIVE_TO_BOUND, /* the same, where the engine cannot allocate more than
                       `room` */
};

/* The task of a driver; all ranks share it and none writes to it. */
struct drive {
    const struct run_case *c;
    const struct case_model *model;
    const struct script *script;
    const struct fsdp_engine *engine;
    /* Gives the device to an engine that brings none. */
    const struct fsdp_engine *device_engine;
    /* NULL, or the fault that is put into the engine, by changing the rank's
     * copies of env and engine (mutants/mutant.h). */
    const struct mutant *mutant;
    void (*mutate)(const struct mutant *mutant, struct fsdp_env *env,
                   struct fsdp_engine *engine);
    /* The same for the device and communicator that the recorder is about to
     * wrap. */
    void (*mutate_below)(const struct mutant *mutant, struct fsdp_env *env);
    const char *directory; /* where the rank's record goes; NULL: nowhere */
    const char *own;       /* where a rank may write other files */
    uint32_t sample; /* so many ranks record everything (record_is_drawn); 0:
                        all ranks do */
    struct record_rank *keep; /* the record is kept here as well, for the caller
                                 to release; NULL: it is not kept */
    bool look_at_process;     /* every rank is a process, forked for the case */
    bool limited;     /* the kernel refuses the rank what rank_limits.h lists */
    bool own_process; /* no other rank is a thread of this process */
    /* How loading the engine has changed the process; "" or NULL: not at
     * all. */
    const char *loading;
    bool without_values; /* tensors are recorded without values, and the wire is
                            not looked at */
    bool trace;          /* rank-R.trace.partial is written, too */
    const char *checkpoints; /* path of the checkpoints; names that begin with
                                it are used, too */
    uint32_t purpose;        /* enum drive_purpose */
    uint64_t room; /* DRIVE_TO_BOUND: bytes that the engine may allocate beyond
                      those it has at rest; the model's do not count */
    int line;      /* by which a rank that is weighed says where it stands
                      (rank_line.h) */
    struct crossing *crossing; /* the record is sent through this to another
                                  process; NULL: this process writes it */
};

enum {
    DRIVE_MORE = 64, /* bytes of fields of later versions */
    DRIVE_ODD = 512  /* an older caller is played only if there are no more
                        units and no more parameters than this */
};

/* Structs of other sizes than today's, which a life is given (play_sizes.c). */
struct drive_sized {
    struct fsdp_model model;
    unsigned char more_model[DRIVE_MORE];
    struct fsdp_units units;
    unsigned char more_units[DRIVE_MORE];
    uint32_t odd[DRIVE_ODD]; /* numbers that are no valid dtype, unit or
                                factor */
};

/* A rank while it is being driven. */
struct driver {
    const struct drive *d;
    /* Parts of d->model: the model as its workload describes it, and its
     * wrapping. */
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const struct workload *workload;
    struct fsdp_env env;
    const void *shared; /* from struct world_rank */
    size_t shared_bytes;
    /* env->error points here and not to the communicator's error, since a
     * collective may fail on a thread of its own. */
    struct fsdp_error error;
    struct fsdp_mesh mesh;
    uint32_t extent[2];
    struct fsdp_engine engine; /* a copy: a mutant may have changed it */
    struct fsdp_options options;
    struct fsdp_model told; /* the model as the engine sees it (drive_told.c) */
    struct drive_sized sized;
    bool *ignored;         /* [n_parameters]: it is in no unit */
    uint32_t *flags;       /* [n_parameters]: as they are now, */
    struct fsdp_model now; /* and the model with them */
    struct recorder *recorder;
    struct record_rank *out; /* the record of the rank that is being played */
    struct fsdp_sharded *sharded;
    struct workload_run *run;

    /* The world's exchange, and how often the engine has called it since it
     * sharded. */
    int (*exchange)(void *self, const void *mine, uint64_t bytes, void *all);
    void *exchange_self;
    const struct fsdp_comm *world_comm; /* the world's, even if the engine
                                           brings its own */
    uint64_t exchanges;
    bool asks; /* the driver is calling exchange, not the engine */

    bool alone;                /* in a world of one, where no collective shows
                                  that the run gets on */
    bool serial;               /* plays all ranks, one after the other */
    uint32_t rank;             /* the rank in the record, whatever env says */
    struct script_walk walk;   /* stands behind the action that is being
                                  played */
    uint32_t last;             /* enum script_verb: the action whose effect the
                                  next look shows */
    bool living, ended;        /* a life has begun; its end has been noted */
    bool stepping, stepped;    /* a step has begun; its optimizer step has been
                                  made */
    bool goes_on;              /* this life goes on with the record */
    bool reborn;               /* this life begins with a load of everything */
    bool by_action;            /* each action is a step of the record */
    bool saving;               /* a checkpoint is being written */
    uint32_t played;           /* actions */
    uint32_t clips;            /* calls of clip in this step */
    struct fsdp_scaler scaler; /* of the loss, where the script has one */
    struct fsdp_scaler kept[SCRIPT_MAX_SLOTS]; /* the scaler as of each
                                                  checkpoint */
    uint32_t saved_step[SCRIPT_MAX_SLOTS];     /* length of the loss curve
                                                  then */
    bool saved_alone[SCRIPT_MAX_SLOTS];        /* rank 0 alone saved */
    uint32_t saved_parts[SCRIPT_MAX_SLOTS];    /* enum fsdp_save_part, or 0 */
    uint32_t saved_dtype[SCRIPT_MAX_SLOTS];    /* dtype of the parameters, or
                                                  NONE */
    uint32_t extras; /* the slot, from 1, whose extras this life has; or 0 */
    char *saved_names[SCRIPT_MAX_SLOTS]; /* names of the saved tensors
                                            (play_names.c) */
    uint32_t renamed;   /* the parameter that has another name in this life,
                           counted from 1; 0: none */
    const char **names; /* [n_parameters]: all names, with the changed one, */
    char *name;         /* and the changed one */
    bool unscaled;      /* the reduced gradients were multiplied by the inverse
                           of the scale */
    uint32_t step, microbatch;   /* now */
    uint32_t point, index;       /* where the run stands: enum race_point */
    bool recording;              /* tensors of this pass are wanted */
    bool forward;                /* the point is a forward one */
    bool watching;               /* this step's timeline is wanted */
    bool own_device;             /* the engine brings the device, not the
                                    suite */
    bool bounded;                /* the engine's allocations are limited */
    bool has_helpers;            /* helper processes were found between steps or
                                    at the end */
    struct fsdp_stream *compute; /* the stream that this driver opened */
    struct wire wire;            /* for the recorder */
    struct witness witness;      /* used where ranks are isolated */
    struct fsdp_tensor *lent;    /* [n_parameters]: the gradients that were
                                    lent, found by their data */
    struct fsdp_tensor *lent_buffer; /* [n_buffers]: the buffers that were
                                        lent */
    float **summoned; /* [n_parameters]: values kept for an action that assigns
                         them again, or NULL */
};

/*
 * Runs the case on this rank; a body of world_run. context: struct drive.
 * Writes the rank's record whatever happens. Returns what the run ended with.
 */
int drive_rank(void *context, struct world_rank *rank);
/* The same for an engine with the claim "serial", in a world of one: plays
 * all ranks of the case and writes a record for each. */
int drive_serial(void *context, struct world_rank *rank);

/* For a rank whose engine could not be loaded: writes why as its record, and
 * returns that error. */
int drive_unloaded(const struct drive *d, struct world_rank *rank,
                   const struct fsdp_error *why);

/* Whether a rank ended because its record could not be written, which is
 * neither its engine's fault nor the case's. */
bool drive_is_unwritten(const struct world_result *end);

/* play.c. play_script plays the script, from shard to the end of the record;
 * play_end_of_run gives back what is left, in whatever state the run ended. */
int play_script(struct driver *x);
void play_end_of_run(struct driver *x);
/* Notes where the run stands now, for the descriptions of what happens. */
void drive_place(struct driver *x, uint32_t point, uint32_t index);
/* drive_told.c. From here on env.exchange is that of this rank, and its calls
 * are counted. */
void drive_count_exchanges(struct driver *x, const struct world_rank *rank);
/* Called before the recorder wraps the communicator: notes whether the engine
 * brings its own, and lets a mutant change it. */
void drive_look_below(struct driver *x);
/* Calls env.exchange for the driver's own purpose, which does not count as a
 * call of the engine. */
int drive_exchange(struct driver *x, const void *mine, uint64_t bytes,
                   void *all);

/* drive_process.c. The first notes the state of the process before the case is
 * played; the second writes into the record what has changed since. IO: the
 * process could not be looked at. */
int drive_process_begin(struct driver *x, struct process_view *before);
int drive_process_end(struct driver *x, const struct process_view *before);
/* Ends the processes that the engine started and has not ended by now, when
 * none of them should run any more, and records that there were some. Of their
 * memory only that counts which none of them can share with this process. */
void drive_process_helpers(struct driver *x);

/* drive_weigh.c. If the rank is weighed, says that it stands at that point
 * (enum rank_line_word). OK; IO: it could not be weighed. */
int drive_stand(struct driver *x, uint32_t point);
static inline int drive_weigh(struct driver *x, uint32_t point)
{
    return x->d->purpose == DRIVE_TO_RECORD ? FSDP_OK : drive_stand(x, point);
}
/* To be called before anything is allocated that is to be weighed. */
void drive_allocate_tightly(void);

/* drive_told.c. Makes the model that the engine is told; its `initial` refuses
 * wrong calls and says in env->error what was wrong. */
void drive_tell_model(struct driver *x);
/* Sets which parameters are trained, as the model says, when a life begins. */
int drive_tell_trained(struct driver *x);
/* Frees the names that a life was told, and those that were saved. */
void drive_forget_names(struct driver *x);
/* Completes *e, the error with which the run ended, by what the engine left
 * unsaid and by where the run stood. */
void drive_tell_end(const struct driver *x, int status, struct fsdp_error *e);

/* Adds one answer to the record. OK or NOMEM. */
int drive_answer(struct driver *x, const char *name, int status);
/* Adds a count to the answers, at most INT32_MAX. */
int drive_answer_number(struct driver *x, const char *name, uint64_t number);

/* Removes the files that a case left at that name and at names that begin with
 * it. */
void drive_clear_checkpoints(const char *checkpoints);

#endif
