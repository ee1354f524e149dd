/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what a run showed. Recorders fill it, the judge reads it, and
 * nothing else passes between the two.
 *
 * On disk (docs/formats.md is normative) a case is a folder:
 *
 *     case.json              the case, engine, claims, how each rank ended
 *     rank-R.json            status, losses, collectives, memory, answers
 *     rank-R.safetensors     tensors of the recorded steps
 *
 * Each file is written under a name ending in ".partial" and renamed: a file
 * that is there is whole.
 */
#ifndef FSDP_CTS_RECORD_H
#define FSDP_CTS_RECORD_H

#include "cases/case.h"
#include "record/ending.h"
#include "record/record_flights.h"
#include "record/record_races.h"
#include "record/record_traffic.h"

enum {
    RECORD_VERSION = 2
};

/* The world that a record names if a process outside of the suite wrote it: an
 * adapter. */
#define RECORD_ADAPTER_WORLD "adapter"
bool record_world_is_adapter(const char *world);

/* Names of enum values in records; NULL if the value is out of range. */
const char *record_collective_name(uint32_t kind); /* "all-gather" */
const char *record_dim_name(uint32_t dim);         /* "shard", "world" */
const char *record_dtype_name(uint32_t dtype);     /* "f32" */
const char *record_kind_name(uint32_t kind);       /* "param-shard" */
const char *record_end_name(uint32_t end);         /* "signalled" */
const char *record_side_name(uint32_t side);       /* "input" */

/* Stages of a step, in the order in which a fault would travel. */
enum record_stage {
    RECORD_INITIAL = 0,        /* pieces' values after shard; step 0 */
    RECORD_UNSHARDED = 1,      /* a parameter as the forward saw it */
    RECORD_LOCAL_GRADIENT = 2, /* fresh, of one microbatch, as the model left
                                  it */
    RECORD_REDUCED = 3,        /* pieces' gradients before the optimizer */
    RECORD_BEFORE = 4,         /* pieces' values before the optimizer */
    RECORD_AFTER = 5,          /* pieces' values after it */
    RECORD_STATE0 = 6,         /* pieces' optimizer states after it */
    RECORD_STATE1 = 7,
    RECORD_FINAL = 8,    /* pieces' values after the last step; step = steps */
    RECORD_SUMMONED = 9, /* a parameter as unshard_all showed it */
    /* Pieces' values and states after a load; the step that follows. */
    RECORD_LOADED = 10,
    RECORD_LOADED0 = 11,
    RECORD_LOADED1 = 12,
    /* Pieces' gradients after clip_grad_norm. */
    RECORD_CLIPPED = 13,
    /* Buffers; `parameter` is the buffer's index. At rest, with step = the
     * steps made so far, or the action of a script; as a forward found them; as
     * its module left them; after a load, with the step that follows. */
    RECORD_BUFFER = 14,
    RECORD_BUFFER_SEEN = 15,
    RECORD_BUFFER_LEFT = 16,
    RECORD_BUFFER_LOADED = 17,
    /* The values that another reader finds in a checkpoint under the names of
     * the parameters of which this rank owns pieces; the step is the one that
     * follows the load. */
    RECORD_PEER = 18,
    RECORD_PEER0 = 19,
    RECORD_PEER1 = 20,
    RECORD_N_STAGES = 21,
};
const char *record_stage_name(uint32_t stage); /* "local-gradient" */

/*
 * In a sampled record N of the ranks show what every rank has of the whole
 * model: parameters as its forward saw them, and its gradients of them. Of all
 * ranks these values would be K times the model; all else in a record is a few
 * times the model. Rank 0 is always one of them; the others are drawn by the
 * seed of the case and its number of ranks, so that the unsharded run draws the
 * same ranks.
 */
bool record_is_sampled(uint32_t stage); /* only those N ranks show this stage */
bool record_is_drawn(const struct run_case *c, uint32_t n, uint32_t rank);
/* How many ranks show whole parameters: N, or all K if the record is not
 * sampled. */
struct record;
uint32_t record_n_sampled(const struct record *r);
/* Removes from what a rank is about to write the tensors that have no values,
 * because they were left out of the sample. */
struct record_rank;
void record_leave_out(struct record_rank *r);

/*
 * Every array below belongs to the struct that has it: it is malloc'ed by
 * itself and freed by record_rank_release, but for values that are spilled. An
 * array of 0 elements may be NULL.
 */
struct record_spill;

/* How many floats of a tensor's data one element takes: one; of an integer with
 * more than 16 bits one for each 16 of its bits, the lowest first; 0: no such
 * dtype. */
static inline uint32_t record_digits(uint32_t dtype)
{
    switch (dtype) {
    case FSDP_DTYPE_I64:
        return 4;
    case FSDP_DTYPE_I32:
        return 2;
    default:
        return fsdp_dtype_bytes(dtype) != 0;
    }
}

/* Elements [first, first + n) of a parameter. Sorted by (stage, step,
 * microbatch, parameter, first); a rank may own several parts. */
struct record_tensor {
    uint32_t stage, step, microbatch, parameter;
    uint64_t first, n;
    float *data;
    /* what the engine showed, widened to floats here; NONE counts as F32. For
     * integers n counts floats of data (record_digits) */
    uint32_t dtype;
};

struct record_collective {
    uint32_t kind, dim, dtype, fold, root, unit;
    uint64_t n;
};

/* What was communicated in one step, or in shard, or behind the last step.
 * Equal sequences are stored once. */
struct record_sequence {
    uint32_t n;
    struct record_collective *c;
};

/* The kinds that records have always had. Of a later kind nothing is written
 * unless some of its bytes are live. */
enum {
    RECORD_KINDS = FSDP_ACTIVATION + 1,
    /* Behind the device's kinds come the same kinds on the host: RECORD_HOST +
     * kind. */
    RECORD_HOST = FSDP_N_KINDS,
    RECORD_N_KINDS = 2 * FSDP_N_KINDS,
};

/* Live bytes at rest, by kind. */
struct record_rest {
    uint64_t live[RECORD_N_KINDS];
};

/* A moment of the timeline: between the point before and the end of this one,
 * the moment at which the engine holds most. */
struct record_moment {
    uint32_t point;  /* enum fsdp_point, or one of those below */
    uint32_t module; /* the module, if the point belongs to one; else 0 */
    uint64_t live[RECORD_N_KINDS];
};
enum {
    RECORD_POINT_STEP = 9,      /* fsdp_engine.step */
    RECORD_POINT_ZERO_GRAD = 10 /* fsdp_engine.zero_grad */
};
const char *record_point_name(uint32_t point); /* "pre-forward" */

/* The parameters of one unit as the model saw them over a whole pass, and its
 * gradients: sums of what each element is worth at its place on the wire
 * (record_digest_add). Recorded where ranks are isolated. */
struct record_pass {
    /* step: a script's action, if it plays one */
    uint32_t step, microbatch, unit;
    /* The dtype in which the forward was lent all parameters; NONE: it was not
     * lent all. */
    uint32_t lent_dtype;
    uint32_t gathers; /* all gathers of the unit by this rank so far */
    /* The dtype in which the backward left all gradients, each once; NONE: it
     * did not. */
    uint32_t left_dtype;
    uint32_t reductions, reduced; /* of the unit: before the pass; in it */
    /* left: only of elements that others own: only these are sent */
    uint64_t lent, left;
};
enum {
    RECORD_PASSES = 8192 /* a rank keeps so many, the first ones */
};

/* How an engine used the host that it was given: how often and how many bytes
 * it copied between the device's storage and the host's, and how many elements
 * its optimizer stepped on each of them. */
struct record_hosted {
    uint64_t to_device, to_device_bytes;
    uint64_t to_host, to_host_bytes;
    uint64_t stepped_on_device, stepped_on_host;
};

struct record_memory {
    /* most bytes live at once, of each kind alone */
    uint64_t peak[RECORD_N_KINDS];
    uint64_t peak_parameters; /* PARAM_SHARD + PARAM_FULL */
    uint64_t peak_engine;     /* all kinds of the device but ACTIVATION */
    uint64_t peak_storage; /* bytes of the device that the engine allocated */
    uint64_t peak_live_over_storage; /* the most by which live bytes exceeded
                                        the allocated ones */
    uint64_t dirty_padding; /* padding elements on the wire that were not +0 */
    uint64_t dirty_frozen;  /* elements on the wire, at the places of frozen
                               parameters in gradients, that were not +0 */
    uint64_t misplaced;  /* elements that a unit's first gather left elsewhere
                            than the layout has them */
    uint64_t bad_ranges; /* ranges that were live outside an allocation,
                            overlapped, or were freed while live */
    struct record_rest after_shard;
    struct record_rest *after_step;   /* [n_steps], after zero_grad */
    uint64_t left_live, left_storage; /* after destroy and close */
    uint64_t *allocations;            /* [n_steps]: how many the engine made */
    uint64_t *launches;               /* [n_steps]: how many operators it ran */
    /* [n_steps]; NULL: the engine has no host storage */
    struct record_hosted *hosted;
    /* The timeline of the second step, or of the only one. Older records have
     * it for rank 0 alone, records of adapters have none. */
    uint32_t n_moments;
    struct record_moment *moment;
    /* What the rank's process did, if each rank is a process; 0: not known. */
    /* resident bytes at their peak over those at the start, and what a child
     * process held beyond that */
    uint64_t process_growth;
    /* sockets, pipes and shared mappings opened since the start; 1 more if the
     * engine has processes of its own */
    uint32_t new_channels;
};

/* A system call that the kernel refused to a rank, with its arguments. */
struct record_refusal {
    uint32_t rank;
    char call[96]; /* "socket(0x1, 0x1, 0, 0)" */
};
enum {
    RECORD_REFUSALS = 4 /* only the first ones are kept */
};

struct record_answer {
    char name[32];
    int32_t status;
};

/* The dtype of floating-point values that went into the forward of a unit, or
 * came out of it; a dtype is recorded once for each unit and side. Adapters
 * record them (claim `dtypes`). */
enum record_side {
    RECORD_INPUT = 0,
    RECORD_OUTPUT = 1
};
struct record_edge {
    uint32_t side, unit, dtype;
};

/* A state of the process that a call into the engine changed and did not
 * restore. */
struct record_change {
    char call[24]; /* "step"; "load": when the engine was loaded */
    uint32_t step;
    char what[128]; /* "floating-point mode: 0x9fc0, was 0x1f80" */
};
enum {
    RECORD_CHANGES = 4 /* only the first ones are kept */
};

/* How much memory a rank held. For this the case is played once more with
 * nothing recorded, and a process beside the rank asks the kernel. In bytes;
 * private memory is resident and neither of a file nor shared. */
struct record_weight {
    uint32_t weighed;    /* 0: it was not weighed */
    uint32_t own_device; /* the engine brings a device, and what that needs */
    int32_t status;      /* the status that the weighed run ended with */
    uint32_t steps;      /* the steps at whose ends it was weighed */
    uint64_t shard;      /* private after shard, beyond what is allocated */
    uint64_t opened; /* how much more once the model's own memory was ready */
    uint64_t rest;   /* the most after a step, beyond allocated and opened */
    uint64_t peak;   /* the most at any moment, beyond before and opened */
    uint64_t half, last; /* all that is private at rest after half of the steps,
                            and after all of them */
    uint64_t files;      /* the most in files that ranks can write to */
    /* The case is played a third time, with so many bytes of room above what
     * rested, and no more; the status that this run ended with, and what was
     * said then. */
    uint64_t room;
    int32_t bounded;
    char why[128];
};

struct record_rank {
    bool present;   /* both of its files were there and whole */
    int32_t status; /* the status that the rank ended with; never OK if not
                       present */
    struct fsdp_error error;
    uint32_t end, signal; /* enum world_end, from case.json */
    int32_t exit_status;
    uint64_t n_collectives;
    uint32_t in_collective, last_kind, last_unit;

    uint32_t n_losses; /* steps * microbatches, by step */
    float *loss;       /* this rank's own losses, not folded */
    /* EVAL: the loss of the evaluation pass after each step, on the next step's
     * first microbatch. AGAIN: all losses of the first life. Other scenarios
     * have none. */
    uint32_t n_other_losses;
    float *other_loss;

    uint32_t n_sequences; /* one at least is written, if need be an empty one */
    struct record_sequence *sequence;
    uint32_t shard_sequence; /* index: what `shard` communicated */
    uint32_t n_steps;
    uint32_t *step_sequence; /* [n_steps]: index for each step */
    uint32_t end_sequence;   /* index: what came after the last step */

    struct record_memory memory;
    /* by the order of calls, so that luck plays no part */
    struct record_races races;
    struct record_flights flights; /* of the last step, in order of calls */
    uint32_t n_answers;
    struct record_answer *answer;
    uint32_t n_edges; /* in the order in which they were seen */
    struct record_edge *edge;
    uint32_t n_passes; /* one for each pass and unit, as these ended */
    struct record_pass *pass;
    uint32_t n_changes; /* of the process, in so far as it was watched */
    struct record_change change[RECORD_CHANGES];
    struct record_weight weight; /* from case.json, as it stands there */
    struct record_account account;
    uint32_t unsampled; /* from case.json: 1 if this rank kept no values of the
                           stages that record_is_sampled names */
    uint32_t n_tensors;
    struct record_tensor *tensor;
    struct record_spill *spill; /* the record's own, below */
    double seconds;             /* for people; never judged */
};

struct record {
    struct run_case c;
    char id[CASE_ID_BYTES];
    char engine[64], engine_version[32];
    uint32_t n_claims;
    char (*claim)[32];
    char world[16];     /* "local", "threads", "mpi" */
    char isolation[16]; /* "limits": system calls are refused to ranks; "":
                           nothing is */
    uint32_t n_refusals;
    struct record_refusal refusal[RECORD_REFUSALS];
    uint32_t n_ranks;
    struct record_rank *rank; /* [n_ranks] */
    /* where the values of a large record lie, instead of in malloc'ed arrays
     * (record_spill.h); else NULL */
    struct record_spill *spill;
};

/* Makes an empty record for K ranks; NOMEM. `record_release` takes any state,
 * NULL members too. */
int record_init(struct record *r, const struct run_case *c, uint32_t n_ranks);
void record_release(struct record *r);
void record_rank_release(struct record_rank *rank);
/* A copy of a record, so that it can be spoiled: copies everything;
 * record_release frees it. NOMEM leaves *out empty. */
int record_copy(const struct record *from, struct record *out);
/* A copy of a rank's account with lists of its own. NOMEM leaves *out empty. */
int record_account_copy(const struct record_account *from,
                        struct record_account *out);
bool record_claims(const struct record *r, const char *claim);

/* The part of `parameter` that begins at `first`, or NULL. */
const struct record_tensor *record_find(const struct record_rank *rank,
                                        uint32_t stage, uint32_t step,
                                        uint32_t microbatch, uint32_t parameter,
                                        uint64_t first);
/* How many tensors of (stage, step, microbatch, parameter) there are, one
 * behind the other, and the index of the first. */
uint32_t record_parts(const struct record_rank *rank, uint32_t stage,
                      uint32_t step, uint32_t microbatch, uint32_t parameter,
                      uint32_t *out_index);
/* Sorts tensors into the order that record_find needs. */
void record_sort(struct record_rank *rank);

/* Whether s is a text that ends within `most` bytes: UTF-8, not empty, and
 * without control characters. */
bool record_is_text(const char *s, size_t most);

/* Makes the directory if it is missing, and removes the files that an earlier
 * run of a case left there: case.json and those of all ranks. IO. */
int record_clear(const char *directory, struct fsdp_error *error);
/* A text beside the record, for people: what ranks printed in the case, and
 * where each of them stood when one died or none made progress
 * (run/worker/told.h). It is missing if there is nothing to say, and is never
 * judged. */
#define RECORD_TOLD "told.txt"
/* The fsdp_error.where of errors of writing. */
#define RECORD_WRITE_WHERE "record_write"

/* Writes what rank r of a case showed: rank-R.json and rank-R.safetensors. The
 * tensors come first, so that a rank that dies in between is not `present`. The
 * directory is made if missing. Bytes of an error's text that are not UTF-8 are
 * written as '?'. INVALID: a sequence index out of range, an array of n > 0
 * elements that is NULL, a tensor twice. IO: says which file. */
int record_write_rank(const char *directory, uint32_t rank,
                      const struct record_rank *r, struct fsdp_error *error);
/* Writes case.json: the case, engine, claims, world and how ranks ended.
 * The directory is made if missing. INVALID: a case that case_check refuses,
 * n_ranks that are not the case's. IO. */
int record_write_case(const char *directory, const struct record *r,
                      struct fsdp_error *error);
/* Reads a case's folder. FORMAT: a file that is malformed, of another
 * version, has unknown fields, contradicts itself or the case, or belongs to
 * a rank that the case does not have (says which and what). A missing rank
 * file is no error: that rank is not `present`, and its status is
 * exit_status, or INTERNAL if that is OK. Other files are not looked at. IO:
 * no case.json. *out is to be released whatever is returned. */
int record_read(const char *directory, struct record *out,
                struct fsdp_error *error);

#endif
