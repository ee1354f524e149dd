/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.h - finds accesses to the same memory that nothing orders, from the
 * order of the calls alone: no clock, no delay, no luck.
 *
 * Each stream has a vector clock, and so has the host. What a stream is given
 * comes after all that the host knew to be finished at the call, and after what
 * `wait` says; the host learns by `wait` and `sync` what is finished. Accesses
 * that were finished when the host made one of its own need not be remembered:
 * whatever is given later comes after that. So a device without streams costs
 * next to nothing.
 *
 * Collectives of one communicator happen in the order of their calls, but that
 * orders no memory: where one needs the result of another there has to be a
 * wait.
 */
#ifndef FSDP_CTS_RACE_H
#define FSDP_CTS_RACE_H

#include "record/record_flights.h"
#include "record/record_races.h"
#include "run/witness/race_map.h"

#include <fsdp/comm.h>
#include <fsdp/op.h>

enum {
    RACE_STREAMS = 32, /* open at once */
    RACE_HOST = RACE_STREAMS,
};

/* Where a run stands: the points of fsdp/model.h, and these, which lie between
 * passes. */
enum race_point {
    RACE_AT_SHARD = FSDP_CANCEL + 1,
    RACE_AT_STEP,
    RACE_AT_PIECES,
    RACE_AT_ZERO_GRAD,
    RACE_AT_SUMMON,
    RACE_AT_DESTROY,
    RACE_N_POINTS,
};

/* How memory was accessed: operators and collectives by their kinds, and the
 * rest. */
enum race_what {
    RACE_OPERATOR = 0, /* + enum fsdp_op_kind */
    RACE_COLLECTIVE = 128,
    RACE_COPY = 160,
    RACE_LIVE,
    RACE_DEAD,
    RACE_FREE,
    RACE_RECORD, /* the recorder reads for the host what `pieces` shows */
};

struct race_clock {
    uint64_t tick[RACE_STREAMS];
};

struct race_ticket {
    uint64_t ticket;
    struct race_clock clock;
};

struct race_stream {
    struct fsdp_stream *handle;
    bool open;
    char name[RECORD_RACE_WORD_BYTES];
    struct race_clock clock; /* of the last thing that it was given */
    struct race_ticket *ticket;
    uint32_t n_tickets, ticket_room;
    struct race_map read; /* the last reads by this stream */
};

/* A collective that the model's stream has not waited for. */
struct race_pending {
    uint32_t index, stream;
    uint64_t tick;
};

struct race {
    /* Looks up what is live at an address; fills kind and unit if anything
     * is. */
    void (*look_up)(void *self, uintptr_t p, uint32_t *kind, uint32_t *unit);
    void *self;
    struct race_stream stream[RACE_STREAMS];
    uint32_t n_streams; /* slots that have been in use */
    uint32_t compute;   /* the model's stream, or RACE_STREAMS */
    struct race_clock host;
    struct race_map written; /* the last writes, by any stream */
    uint32_t sweep_at;       /* with so many ranges in all, old ones are
                                dropped */
    uint32_t step;
    uint8_t point;
    uint32_t module;
    bool out_of_memory;
    struct record_races found;

    /* race_access.c */
    bool flights_wanted, in_flight_step;
    uint32_t flight_step, position;
    uint64_t *tick_at; /* [n_ticks]: of the stream compute, where positions
                          begin */
    uint32_t n_ticks, tick_room;
    struct race_pending *pending;
    uint32_t n_pending, pending_room;
    struct record_flights flights; /* the caller may take them away */
    uint32_t flight_room;
};

/* `compute`: the model's stream, NULL if there is none. NULL: no memory. */
struct race *race_open(struct fsdp_stream *compute);
void race_close(struct race *r); /* NULL is allowed */
/* The run has come to this point. */
void race_place(struct race *r, uint32_t step, uint32_t point, uint32_t module);

/* Order. */
void race_stream_open(struct race *r, struct fsdp_stream *stream,
                      const char *name);
void race_stream_close(struct race *r, struct fsdp_stream *stream);
void race_mark(struct race *r, struct fsdp_stream *stream, uint64_t ticket);
void race_wait(struct race *r, struct fsdp_stream *later,
               struct fsdp_stream *earlier, uint64_t ticket);
void race_sync(struct race *r, struct fsdp_stream *stream);

/* Accesses; without a stream they are the host's. */
void race_operator(struct race *r, struct fsdp_stream *stream,
                   const struct fsdp_op *op);
/* An access of the host's on a communicator without streams. */
void race_collective(struct race *r, struct fsdp_stream *stream,
                     uint32_t extent, uint32_t me,
                     const struct fsdp_collective *c);
void race_copy(struct race *r, struct fsdp_stream *stream, void *to,
               const void *from, uint64_t bytes);
/* A value begins or ends: whatever was there is overwritten. */
void race_value(struct race *r, struct fsdp_stream *stream, bool begins,
                uint32_t unit, void *p, uint64_t bytes);
/* The host takes the storage away. */
void race_free(struct race *r, void *p, uint64_t bytes);
/* The recorder reads: for the host, or, if `behind_compute`, right after what
 * the model's stream has been given. */
void race_record(struct race *r, bool behind_compute, const void *p,
                 uint64_t bytes);

/* race_access.c: in this step, notes when each collective is issued. */
void race_watch_flights(struct race *r, uint32_t step);
void race_flight_place(struct race *r, uint32_t step, uint32_t point);
void race_flight_end(struct race *r);

/* race_words.c: "all-gather", "pre-forward". */
const char *race_what_name(uint32_t what);
const char *race_point_name(uint32_t point);
/* The slot of a stream, which is opened if it was not known; RACE_STREAMS: too
 * many are open. */
uint32_t race_slot(struct race *r, struct fsdp_stream *handle);
/* race_words.c: counts a race, and describes it if it is one of the first. */
void race_describe(struct race *r, const struct race_range *earlier,
                   const struct race_access *later, uintptr_t at);

#endif
