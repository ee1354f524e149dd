/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_record.h - the record of a user's own model: a file for each rank of the
 * sharded run, and one for the unsharded run. check_model.py writes them;
 * docs/formats.md describes them.
 *
 * A tensor is its digest and the bits of at most OWN_SAMPLES elements, whose
 * places depend on the parameter's size alone (own_place).
 */
#ifndef FSDP_CTS_OWN_RECORD_H
#define FSDP_CTS_OWN_RECORD_H

#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OWN_VERSION = 1,
    OWN_SAMPLES = 32,
    OWN_NAME_BYTES = 200,
    OWN_STAGE_BYTES = 32,
    OWN_MAX_RANKS = 64,
    OWN_MAX_STEPS = 1000,
    OWN_MAX_ROWS = 1 << 22, /* of any list */
};

enum own_role {
    OWN_RANK = 0,
    OWN_UNSHARDED = 1,
};
const char *own_role_name(uint32_t role);

/* How a process ended. */
enum own_how {
    OWN_RETURNED = 0,
    OWN_RAISED = 1,    /* an exception */
    OWN_HUNG = 2,      /* it was ended after the deadline */
    OWN_STOPPED = 3,   /* it was ended because another rank had failed */
    OWN_SIGNALLED = 4, /* a signal ended it */
    OWN_EXITED = 5,    /* it left */
};
const char *own_how_name(uint32_t how);

enum own_dtype {
    OWN_F32 = 0,
    OWN_BF16 = 1,
    OWN_F16 = 2,
    OWN_F64 = 3,
    OWN_I64 = 4,
    OWN_I32 = 5,
    OWN_U8 = 6,
    OWN_BOOL = 7,
    OWN_NO_DTYPE = 8,
};
const char *own_dtype_name(uint32_t dtype);
uint32_t own_dtype_bytes(uint32_t dtype); /* 0: none */

enum own_event_kind {
    OWN_FORWARD = 0,     /* a unit's forward begins */
    OWN_FORWARD_END = 1, /* it has ended */
    OWN_BACKWARD = 2,    /* the first gradient of the unit's output is there */
    OWN_ALL_GATHER = 3,
    OWN_REDUCE_SCATTER = 4,
    OWN_ALL_REDUCE = 5,
    OWN_PASS_END = 6,     /* the loss's backward has ended */
    OWN_BACKWARD_END = 7, /* a unit's backward has ended: its inputs have
                           * gradients */
};
const char *own_event_name(uint32_t kind);

struct own_end {
    uint32_t how;
    char place[160]; /* "step 1, microbatch 0, forward, in h.3" */
    char message[240];
};

struct own_parameter {
    char name[OWN_NAME_BYTES];
    uint64_t rows, n; /* rows: of its first dimension; n: elements */
    uint32_t dtype;
    bool trainable;
};

/* A name of a parameter, which may have several: it is tied. */
struct own_name {
    char name[OWN_NAME_BYTES];
    uint32_t parameter;
};

struct own_unit {
    char name[OWN_NAME_BYTES]; /* of its module; "": the whole model */
    bool reshard;              /* the unit is resharded after its forward */
    uint32_t n_parameters;
    uint32_t *parameter;
    bool fills; /* parameters without a gradient are reduced as zeros;
                 * own_record.filled */
};

/* Elements [first, first + n) of a parameter, which a rank keeps. */
struct own_piece {
    uint32_t parameter;
    uint64_t first, n;
};

/* A parameter that the optimizer has; -1: something that is no parameter. */
struct own_held {
    int32_t parameter;
    uint32_t group;
};

struct own_pass {
    uint32_t step, microbatch, rank;
    float loss;
    char batch[65];  /* digest */
    char random[65]; /* digest of the generator's state before it */
};

/* A buffer after a rank's last pass in a step. */
struct own_buffer {
    uint32_t step, rank;
    char name[OWN_NAME_BYTES];
    uint32_t dtype;
    char digest[65];
};

struct own_tensor {
    char stage[OWN_STAGE_BYTES]; /* "local-gradient", "state.exp_avg" */
    uint32_t step, microbatch, rank, parameter;
    uint64_t first, n;
    uint32_t dtype;
    char digest[65];
    uint32_t n_values;
    uint64_t value[OWN_SAMPLES]; /* bits */
};

struct own_event {
    uint32_t step, microbatch, rank; /* own_is_evaluation */
    bool backward;                   /* after the loss */
    uint32_t kind;
    int32_t unit; /* -1: none */
    uint32_t dtype;
    /* Of a collective: elements of this rank's part. Of other events: bytes of
     * whole weights that the rank holds at that moment. */
    uint64_t n;
};

struct own_record {
    uint32_t role, rank, world;
    char library[64], wrapper[32], optimizer[64];
    uint32_t steps, microbatches;
    uint32_t compute, reduce;  /* dtypes that were asked for */
    struct own_end end, saved; /* of the run; of its checkpoint */
    uint32_t n_parameters, n_names, n_units, n_pieces, n_held, n_passes;
    uint32_t n_buffers, n_tensors, n_events, n_filled;
    struct own_parameter *parameter;
    struct own_name *name;
    struct own_unit *unit;
    struct own_piece *piece;
    struct own_held *held;
    struct own_pass *pass; /* sorted: step, microbatch, rank */
    struct own_buffer *buffer;
    struct own_tensor *tensor; /* sorted: own_find */
    struct own_event *event;   /* in the order in which they came */
    uint32_t *filled;          /* units that fill */
};

struct own_set {
    struct own_record unsharded;
    uint32_t world;
    struct own_record *rank; /* [world] */
};

/* Reads unsharded.json and rank-R.json of a folder. IO, FORMAT, NOMEM, and why.
 * *out is to be released in any case. */
int own_read(const char *folder, struct own_set *out, struct fsdp_error *error);
void own_release(struct own_set *s);

/* Parses one file's text into zeroed *out. */
int own_parse(const char *text, size_t bytes, const char *file,
              struct own_record *out, struct fsdp_error *error);
void own_record_release(struct own_record *r);
extern const struct record_table own_record_table;

/* How many elements of a parameter of n have their bits recorded, and where
 * the i-th of them is; how many of them lie before element `at`. */
uint32_t own_places(uint64_t n);
uint64_t own_place(uint64_t n, uint32_t i);
uint32_t own_places_before(uint64_t n, uint64_t at);

/* Whether the event belongs to no pass, but to the optimizer's step after the
 * last one: a hook of the step has evaluated the model. */
bool own_is_evaluation(const struct own_record *r, const struct own_event *e);

/* The tensor of the same stage, step, microbatch, rank, parameter, first and
 * n; NULL: there is none. */
const struct own_tensor *own_find(const struct own_record *r,
                                  const struct own_tensor *like);
const struct own_pass *own_find_pass(const struct own_record *r, uint32_t step,
                                     uint32_t microbatch, uint32_t rank);

#endif
