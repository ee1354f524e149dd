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

/* The world of a record that a process of somebody else's wrote: an adapter's.
 */
#define RECORD_ADAPTER_WORLD "adapter"
bool record_world_is_adapter(const char *world);

/* Names of enum values in records; NULL out of range. */
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
    /* Buffers, by their index in a parameter's place: at rest, step = the steps
     * that were made (of a script, its action); as a forward found them, and as
     * its module left them; after a load, the step that follows. */
    RECORD_BUFFER = 14,
    RECORD_BUFFER_SEEN = 15,
    RECORD_BUFFER_LEFT = 16,
    RECORD_BUFFER_LOADED = 17,
    /* What a checkpoint has of a rank's pieces under the parameters' names, as
     * another reader finds it; the step that follows the load. */
    RECORD_PEER = 18,
    RECORD_PEER0 = 19,
    RECORD_PEER1 = 20,
    RECORD_N_STAGES = 21,
};
const char *record_stage_name(uint32_t stage); /* "local-gradient" */

/*
 * In a sampled record N of the ranks show what every rank has of the whole
 * model: parameters as its forward saw them, and its gradients of them. They
 * are K times the model, and all else of a record together is a few times. Rank
 * 0 is always one of them; the others are drawn by the seed of the case and its
 * number of ranks, so that the unsharded run has the same.
 */
bool record_is_sampled(uint32_t stage); /* is of those N ranks alone */
bool record_is_drawn(const struct run_case *c, uint32_t n, uint32_t rank);
/* Of how many ranks the record has all; K if it is not sampled. */
struct record;
uint32_t record_n_sampled(const struct record *r);
/* Takes the tensors without values, which were left out, from what a rank is
 * about to write. */
struct record_rank;
void record_leave_out(struct record_rank *r);

/*
 * Every array below is its owner's: malloc'ed by itself, freed by
 * record_rank_release, but for values that are spilled. An array of 0 elements
 * may be NULL.
 */
struct record_spill;

/* How many float32 of a tensor's data an element is: one, or of an integer with
 * more than 16 bits one for each 16 of them, the lowest first; 0: no dtype. */
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
    uint32_t dtype; /* of what was seen, widened here; NONE counts as F32. Of
                       integers n counts data (record_digits) */
};

struct record_collective {
    uint32_t kind, dim, dtype, fold, root, unit;
    uint64_t n;
};

/* What one step (or shard, or the end) communicated. Equal ones are stored
 * once. */
struct record_sequence {
    uint32_t n;
    struct record_collective *c;
};

/* Kinds that records have always had; of one behind them that nothing is live
 * of, nothing is written. */
enum {
    RECORD_KINDS = FSDP_ACTIVATION + 1,
    /* Behind those of the device the same of the host: RECORD_HOST + kind. */
    RECORD_HOST = FSDP_N_KINDS,
    RECORD_N_KINDS = 2 * FSDP_N_KINDS,
};

/* Live bytes at rest, by kind. */
struct record_rest {
    uint64_t live[RECORD_N_KINDS];
};

/* A moment of the timeline: the fullest one from the point before to the end
 * of this one, by what the engine holds. */
struct record_moment {
    uint32_t point;  /* enum fsdp_point, or one of those below */
    uint32_t module; /* of a point of a module; else 0 */
    uint64_t live[RECORD_N_KINDS];
};
enum {
    RECORD_POINT_STEP = 9,      /* fsdp_engine.step */
    RECORD_POINT_ZERO_GRAD = 10 /* fsdp_engine.zero_grad */
};
const char *record_point_name(uint32_t point); /* "pre-forward" */

/* What one unit's parameters were in a whole pass, and what its gradients were,
 * as the model saw them: sums of what their elements are worth at their places
 * on the wire (record_digest_add). Recorded where ranks are isolated. */
struct record_pass {
    uint32_t step, microbatch, unit; /* step: or a script's action */
    /* In which the forward was lent all of them; NONE: it was not. */
    uint32_t lent_dtype;
    uint32_t gathers; /* of the unit, up to then: all of the rank's */
    /* In which the backward left all gradients, each once; NONE: it did not. */
    uint32_t left_dtype;
    uint32_t reductions, reduced; /* before the pass; and in it */
    uint64_t lent, left; /* left: of what others own, which alone is sent */
};
enum {
    RECORD_PASSES = 8192 /* of a rank: the first ones */
};

/* What an engine did with the host that it was given: how often, and how much,
 * it copied between the storage of its device and that of the host, and how
 * many elements its optimizer has stepped on either. */
struct record_hosted {
    uint64_t to_device, to_device_bytes;
    uint64_t to_host, to_host_bytes;
    uint64_t stepped_on_device, stepped_on_host;
};

struct record_memory {
    uint64_t peak[RECORD_N_KINDS]; /* bytes live at once, of each kind alone */
    uint64_t peak_parameters;      /* PARAM_SHARD + PARAM_FULL */
    uint64_t peak_engine;          /* all kinds of the device but ACTIVATION */
    uint64_t peak_storage;         /* allocated by the engine there */
    uint64_t peak_live_over_storage; /* most that live exceeded storage by */
    uint64_t dirty_padding; /* elements of padding on the wire that were not
                               +0 */
    uint64_t dirty_frozen;  /* elements in the places of frozen parameters in
                               gradients on the wire that were not +0 */
    uint64_t misplaced;     /* elements that were gathered first and were not
                               where the layout has them */
    uint64_t bad_ranges;    /* live outside an allocation, overlapping, or freed
                               while live */
    struct record_rest after_shard;
    struct record_rest *after_step;   /* [n_steps], after zero_grad */
    uint64_t left_live, left_storage; /* after destroy and close */
    uint64_t *allocations;            /* [n_steps], by the engine */
    uint64_t *launches;               /* [n_steps]: operators it ran */
    struct record_hosted *hosted;     /* [n_steps]; NULL: there were none */
    /* Of the second step, or of the first if it is the only one. Records that
     * were made earlier have it of rank 0 alone, adapters' have none. */
    uint32_t n_moments;
    struct record_moment *moment;
    /* The process, where every rank is one; 0 where unknown. */
    uint64_t process_growth; /* resident bytes at peak over those at start, and
                                what a child had more */
    uint32_t new_channels;   /* sockets, pipes, shared mappings opened since;
                                1 more: processes of the engine */
};

/* A call of the system that a rank was refused, and what it was given. */
struct record_refusal {
    uint32_t rank;
    char call[96]; /* "socket(0x1, 0x1, 0, 0)" */
};
enum {
    RECORD_REFUSALS = 4 /* the first ones */
};

struct record_answer {
    char name[32];
    int32_t status;
};

/* A dtype in which floating point came into the forward of a unit, or left it;
 * each of a unit once. Adapters record them (claim `dtypes`). */
enum record_side {
    RECORD_INPUT = 0,
    RECORD_OUTPUT = 1
};
struct record_edge {
    uint32_t side, unit, dtype;
};

/* What a call into the engine left otherwise than it found it. */
struct record_change {
    char call[24]; /* "step"; "load": the engine was loaded */
    uint32_t step;
    char what[128]; /* "floating-point mode: 0x9fc0, was 0x1f80" */
};
enum {
    RECORD_CHANGES = 4 /* the first ones */
};

/* What a rank held when the case was played again for its sake, with nothing
 * recorded, as a process beside it was told by the kernel. In bytes; private is
 * what is resident and neither of a file nor shared. */
struct record_weight {
    uint32_t weighed;    /* 0: it was not */
    uint32_t own_device; /* the engine brings one, with what it needs */
    int32_t status;      /* what that run ended with */
    uint32_t steps;      /* at whose ends it was weighed */
    uint64_t shard;      /* private after shard, beyond what is allocated */
    uint64_t opened;     /* more, as the model's own was made ready */
    uint64_t rest;       /* the same after a step and beyond opened, at most */
    uint64_t peak; /* private at any moment, more than before and opened */
    uint64_t half, last; /* private at rest after half of the steps and after
                            all of them, all of it */
    uint64_t files;      /* in files that ranks can write to, at most */
    /* And once more, with no more room than this above what rested: how that
     * ended, and what was said then. */
    uint64_t room;
    int32_t bounded;
    char why[128];
};

struct record_rank {
    bool present;   /* both files were there and whole */
    int32_t status; /* what the run ended with; never OK if not present */
    struct fsdp_error error;
    uint32_t end, signal; /* enum world_end, from case.json */
    int32_t exit_status;
    uint64_t n_collectives;
    uint32_t in_collective, last_kind, last_unit;

    uint32_t n_losses; /* steps * microbatches, by step */
    float *loss;       /* this rank's own, not folded */
    /* EVAL: of the evaluation pass after each step, on the next step's first
     * microbatch. AGAIN: all losses of the first life. Else none. */
    uint32_t n_other_losses;
    float *other_loss;

    uint32_t n_sequences; /* written as one, empty, if there is none */
    struct record_sequence *sequence;
    uint32_t shard_sequence; /* index: what `shard` communicated */
    uint32_t n_steps;
    uint32_t *step_sequence; /* [n_steps]: index for each step */
    uint32_t end_sequence;   /* index: what came after the last step */

    struct record_memory memory;
    struct record_races races;     /* by the order of calls, not by luck */
    struct record_flights flights; /* of the last step, in order of calls */
    uint32_t n_answers;
    struct record_answer *answer;
    uint32_t n_edges; /* in the order in which they were seen */
    struct record_edge *edge;
    uint32_t n_passes; /* by pass and unit, as they ended */
    struct record_pass *pass;
    uint32_t n_changes; /* of the process, as far as was looked */
    struct record_change change[RECORD_CHANGES];
    struct record_weight weight; /* from case.json, as is */
    struct record_account account;
    uint32_t unsampled; /* from case.json: of this rank no values were kept of
                           stages that record_is_sampled names */
    uint32_t n_tensors;
    struct record_tensor *tensor;
    struct record_spill *spill; /* the record's */
    double seconds;             /* for people; never judged */
};

struct record {
    struct run_case c;
    char id[CASE_ID_BYTES];
    char engine[64], engine_version[32];
    uint32_t n_claims;
    char (*claim)[32];
    char world[16];     /* "local", "threads", "mpi" */
    char isolation[16]; /* "limits": ranks are refused calls; "": none */
    uint32_t n_refusals;
    struct record_refusal refusal[RECORD_REFUSALS];
    uint32_t n_ranks;
    struct record_rank *rank;   /* [n_ranks] */
    struct record_spill *spill; /* where the values of a large record lie, not
                                   malloc'ed (record_spill.h); else NULL */
};

/* Makes an empty record for K ranks; NOMEM. `record_release` takes any state,
 * NULL members too. */
int record_init(struct record *r, const struct run_case *c, uint32_t n_ranks);
void record_release(struct record *r);
void record_rank_release(struct record_rank *rank);
/* A record of one's own, to spoil: copies everything, and `record_release`
 * frees it. NOMEM leaves *out empty. */
int record_copy(const struct record *from, struct record *out);
/* What was counted of a rank, with lists of its own. NOMEM leaves *out empty.
 */
int record_account_copy(const struct record_account *from,
                        struct record_account *out);
bool record_claims(const struct record *r, const char *claim);

/* The part of `parameter` that begins at `first`, or NULL. */
const struct record_tensor *record_find(const struct record_rank *rank,
                                        uint32_t stage, uint32_t step,
                                        uint32_t microbatch, uint32_t parameter,
                                        uint64_t first);
/* Index of the first tensor of (stage, step, microbatch, parameter), and how
 * many parts follow each other there. */
uint32_t record_parts(const struct record_rank *rank, uint32_t stage,
                      uint32_t step, uint32_t microbatch, uint32_t parameter,
                      uint32_t *out_index);
/* Sorts tensors into the order that record_find needs. */
void record_sort(struct record_rank *rank);

/* Whether these are words that end within `most` bytes: UTF-8, not empty, and
 * without control characters. */
bool record_is_text(const char *s, size_t most);

/* Makes the directory if missing, and removes from it what an earlier run of
 * a case left there: case.json and the files of all ranks. IO. */
int record_clear(const char *directory, struct fsdp_error *error);
/* A text beside the record, for people: what ranks printed in the case, and
 * where they stood when one died or none got on (run/worker/told.h). Not there
 * where there is nothing to say; nothing is judged by it. */
#define RECORD_TOLD "told.txt"
/* Where errors of writing come from: fsdp_error.where. */
#define RECORD_WRITE_WHERE "record_write"

/* Writes what rank r of a case showed: rank-R.json and rank-R.safetensors.
 * The tensors come first, so that a rank that dies in between is not
 * `present`. The directory is made if missing. What is not UTF-8 in the text
 * of an error is written as '?'. INVALID: a sequence index out of range, an
 * array of n > 0 elements that is NULL, a tensor twice. IO: says which
 * file. */
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
