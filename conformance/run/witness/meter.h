/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - the wrapped device: storage, live bytes by kind, poison.
 *
 * There is a meter of the device, and one of the host device beside it. Each
 * serves two handles of its device, the engine's and the model's, so that
 * ranges of both are checked against each other.
 */
#ifndef FSDP_CTS_METER_H
#define FSDP_CTS_METER_H

#include "record/record.h"
#include "run/witness/race.h"
#include "run/witness/trace.h"

struct meter;

/* A device as its user sees it; the user is the model, or the engine. */
struct meter_handle {
    struct fsdp_device device;
    struct meter *meter;
    bool is_model;
};

struct meter_block { /* storage */
    unsigned char *p;
    uint64_t bytes;
    bool is_model;
};

struct meter_range { /* live */
    unsigned char *p;
    uint64_t bytes;
    uint32_t kind, unit;
};

enum {
    METER_HELD = 64
}; /* freed blocks that are held back */

struct meter {
    const struct fsdp_device *real;
    const struct fsdp_env *env; /* refusals are described in env->error; NULL:
                                   nowhere */
    struct race *race;          /* NULL: order is not followed */
    struct trace *trace;        /* NULL: no trace is kept */
    struct meter_handle engine, model;
    struct meter_block *block;
    uint32_t n_blocks, block_capacity;
    struct meter_range *range;
    uint32_t n_ranges, range_capacity;
    void *held[METER_HELD];
    uint64_t held_size[METER_HELD], held_bytes;
    uint32_t next_held;

    uint64_t live[FSDP_N_KINDS], peak[FSDP_N_KINDS];
    uint64_t peak_parameters, peak_engine, storage, peak_storage, peak_over;
    uint64_t bad_ranges;
    uint64_t allocations; /* by the engine, since last asked */
    uint64_t launches;    /* operators that it ran, since last asked */
    /* Live bytes by kind at the moment since the last call at which the engine
     * held most; and how much that was. */
    uint64_t fullest[FSDP_N_KINDS], fullest_engine;
    bool holds_nothing;   /* freed blocks are not held back, and no model
                             computes */
    uint32_t n_fills;     /* fills of blocks, where no model computes */
    bool gives_room;      /* raises the limit by what the model allocates */
    bool out_of_memory;   /* a range could not be followed: no measurement */
    struct meter *beside; /* the meter of the other memory, host or device;
                             NULL: there is none */
    bool is_host;
    /* In the meter of the device: what the engine copied between the two. */
    struct record_hosted hosted;
};

void meter_open(struct meter *m, const struct fsdp_device *real);
/* The storage that a range lies in; NULL: none. */
struct meter_block *meter_find_block(struct meter *m, const void *p,
                                     uint64_t bytes);
/* Connects the two meters; copies between their memories are counted. */
void meter_beside(struct meter *device, struct meter *host);
/* Live bytes by kind at the fullest moment since the last call; the next
 * interval begins with what is live now. */
void meter_fullest(struct meter *m, uint64_t out[FSDP_N_KINDS]);
/* From now on also follows the order of streams. NOMEM. */
int meter_watch_races(struct meter *m, struct fsdp_stream *compute);
void meter_close(struct meter *m, struct record_memory *out);
/* The same for the meter of the host, after that call. */
void meter_close_host(struct meter *m, struct record_memory *out);

/* meter_hand_on.c. Sets those functions of a handle that neither give storage
 * nor say what is live: they check the ranges, and hand on to the real device
 * what is right. */
void meter_hand_on(struct fsdp_device *d);

#endif
