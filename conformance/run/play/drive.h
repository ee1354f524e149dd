/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.h - one case on one rank: engine and device are opened, the case's
 * script is played, everything is given back; and the record of it.
 *
 * Read in this order: drive.c (a rank from the outside), play.c (a script, one
 * action after the other), then what play.h names.
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

/* What a run is for. */
enum drive_purpose {
    DRIVE_TO_RECORD,
    DRIVE_TO_WEIGH, /* what the process holds: nothing is recorded */
    DRIVE_TO_BOUND, /* the same, and no more can be allocated than `room` */
};

/* What a driver needs; shared by all ranks and never written by them. */
struct drive {
    const struct run_case *c;
    const struct case_model *model;
    const struct script *script;
    const struct fsdp_engine *engine;
    /* Gives the device to an engine that brings none. */
    const struct fsdp_engine *device_engine;
    /* NULL, or what makes the engine wrong, by changing copies of env and
     * engine (mutants/mutant.h). */
    const struct mutant *mutant;
    void (*mutate)(const struct mutant *mutant, struct fsdp_env *env,
                   struct fsdp_engine *engine);
    /* And what the recorder is about to wrap. */
    void (*mutate_below)(const struct mutant *mutant, struct fsdp_env *env);
    const char *directory; /* where the rank's record goes; NULL: nowhere */
    const char *own;       /* where a rank may write what else it has */
    uint32_t sample; /* ranks of which all is recorded (record_is_drawn); 0:
                        all of them */
    struct record_rank *keep; /* it goes there, too: whoever asks releases it;
                                 NULL: it does not */
    bool look_at_process;     /* every rank is a process, forked for the case */
    bool limited;     /* the kernel refuses it what rank_limits.h says */
    bool own_process; /* no other rank is a thread of it */
    /* What loading the engine has changed in the process; "", or NULL: nothing.
     */
    const char *loading;
    bool without_values; /* tensors have none, and the wire is not looked at */
    bool trace;          /* rank-R.trace.partial is wanted, too */
    const char *checkpoints; /* where they go; names beside it are used too */
    uint32_t purpose;        /* enum drive_purpose */
    uint64_t room; /* DRIVE_TO_BOUND: bytes that the engine may have above what
                      it has at rest; the model's do not count */
    int line;      /* where a rank that is weighed says so (rank_line.h) */
    struct crossing *crossing; /* to whom the record is told; NULL: it is
                                  written here */
};

enum {
    DRIVE_MORE = 64, /* bytes of fields of later versions */
    DRIVE_ODD = 512  /* units, or parameters, of which there are no more where
                        an older caller is played */
};

/* What a life is lent in structs of other sizes (play_sizes.c). */
struct drive_sized {
    struct fsdp_model model;
    unsigned char more_model[DRIVE_MORE];
    struct fsdp_units units;
    unsigned char more_units[DRIVE_MORE];
    uint32_t odd[DRIVE_ODD]; /* no dtypes, units or factors */
};

/* A rank while it is being driven. */
struct driver {
    const struct drive *d;
    /* Of d->model: what its workload describes, and how it is wrapped. */
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const struct workload *workload;
    struct fsdp_env env;
    const void *shared; /* world_rank's */
    size_t shared_bytes;
    /* What env->error points to: not the communicator's, whose collectives
     * may fail on a thread of their own. */
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
    struct record_rank *out; /* of the rank that is being played */
    struct fsdp_sharded *sharded;
    struct workload_run *run;

    /* The world's, and how often the engine has called it since it sharded. */
    int (*exchange)(void *self, const void *mine, uint64_t bytes, void *all);
    void *exchange_self;
    const struct fsdp_comm *world_comm; /* before the engine's own, if any */
    uint64_t exchanges;
    bool asks; /* the driver calls it, not the engine */

    bool alone;                /* in a world of one: no collective shows
                                  that the run gets on */
    bool serial;               /* plays all ranks, one after the other */
    uint32_t rank;             /* the record's, whatever env says */
    struct script_walk walk;   /* behind the action that is being played */
    uint32_t last;             /* enum script_verb: what a look shows */
    bool living, ended;        /* a life has begun; its end is noted */
    bool stepping, stepped;    /* a step has begun; its optimizer has run */
    bool goes_on;              /* this life goes on with the record */
    bool reborn;               /* it begins with a load of all of it */
    bool by_action;            /* steps of the record are actions */
    bool saving;               /* a checkpoint is being written */
    uint32_t played;           /* actions */
    uint32_t clips;            /* calls of this step */
    struct fsdp_scaler scaler; /* of the loss, where the script has one */
    struct fsdp_scaler kept[SCRIPT_MAX_SLOTS]; /* with each checkpoint */
    uint32_t saved_step[SCRIPT_MAX_SLOTS];     /* where the curve stood */
    bool saved_alone[SCRIPT_MAX_SLOTS];        /* by rank 0 alone */
    uint32_t saved_parts[SCRIPT_MAX_SLOTS];    /* enum fsdp_save_part, or 0 */
    uint32_t saved_dtype[SCRIPT_MAX_SLOTS];    /* of parameters, or NONE */
    uint32_t extras; /* the slot, from 1, whose extras this life has; or 0 */
    char *saved_names[SCRIPT_MAX_SLOTS]; /* of tensors: play_names.c */
    uint32_t renamed;   /* in this life a parameter, from 1; 0: none */
    const char **names; /* [n_parameters]: where one is, */
    char *name;         /* and how */
    bool unscaled;      /* what is reduced was multiplied by its inverse */
    uint32_t step, microbatch;   /* now */
    uint32_t point, index;       /* where the run stands: enum race_point */
    bool recording;              /* tensors of this pass are wanted */
    bool forward;                /* the point is a forward one */
    bool watching;               /* this step's timeline is wanted */
    bool own_device;             /* which is not the suite's */
    bool bounded;                /* there is a limit to what it allocates */
    bool has_helpers;            /* processes, between steps or at the end */
    struct fsdp_stream *compute; /* that this driver opened */
    struct wire wire;            /* for the recorder */
    struct witness witness;      /* where ranks are isolated */
    struct fsdp_tensor *lent;    /* [n_parameters]: gradients lent, by data */
    struct fsdp_tensor *lent_buffer; /* [n_buffers]: the same of buffers */
    float **summoned; /* [n_parameters]: for who assigns it again, or NULL */
};

/*
 * Runs the case on this rank; a body of world_run. context: struct drive.
 * Writes the rank's record whatever happens. Returns what the run ended with.
 */
int drive_rank(void *context, struct world_rank *rank);
/* The same for an engine with the claim "serial", in a world of one: plays
 * all ranks of the case and writes a record for each. */
int drive_serial(void *context, struct world_rank *rank);

/* For a rank that has no engine: what could not be loaded is its record, and
 * what it returns. */
int drive_unloaded(const struct drive *d, struct world_rank *rank,
                   const struct fsdp_error *why);

/* Whether a rank ended because its record could not be written: no fault of
 * its engine, and none of its case. */
bool drive_is_unwritten(const struct world_result *end);

/* play.c: the script, from shard to what the record says of the end; then
 * what is left is given back, in any state. */
int play_script(struct driver *x);
void play_end_of_run(struct driver *x);
/* For those who describe what happens: the run stands here. */
void drive_place(struct driver *x, uint32_t point, uint32_t index);
/* drive_told.c. From here on env.exchange is the rank's, counted. */
void drive_count_exchanges(struct driver *x, const struct world_rank *rank);
/* Before the recorder wraps the communicator: whose it is, and what a mutant
 * makes of it. */
void drive_look_below(struct driver *x);
/* env.exchange, for the driver's own sake: no call of the engine's. */
int drive_exchange(struct driver *x, const void *mine, uint64_t bytes,
                   void *all);

/* drive_weigh.c: the rank stands at that point (enum rank_line_word), if it is
 * weighed. OK; IO: it could not be. */
int drive_stand(struct driver *x, uint32_t point);
static inline int drive_weigh(struct driver *x, uint32_t point)
{
    return x->d->purpose == DRIVE_TO_RECORD ? FSDP_OK : drive_stand(x, point);
}
/* Before anything is allocated that is to be weighed. */
void drive_allocate_tightly(void);
/* What was resident before does not count any more. A rank with limits asks for
 * it: what it could do by itself, its engine could at the peak. */
void drive_forget_peak(struct driver *x);

/* drive_told.c: the model, whose `initial` says in env->error what was wrong
 * with a call that it refuses. */
void drive_tell_model(struct driver *x);
/* What is trained: a life begins with what the model says. */
int drive_tell_trained(struct driver *x);
/* The names that a life was told, and those that were saved. */
void drive_forget_names(struct driver *x);
/* Completes *e, with which the run ended: what the engine left unsaid, and
 * where the run stood. */
void drive_tell_end(const struct driver *x, int status, struct fsdp_error *e);

/* One answer of the record. OK or NOMEM. */
int drive_answer(struct driver *x, const char *name, int status);
/* A count beside the answers, up to INT32_MAX. */
int drive_answer_number(struct driver *x, const char *name, uint64_t number);

/* Removes what a case left at that name, and at names that begin so. */
void drive_clear_checkpoints(const char *checkpoints);

#endif
