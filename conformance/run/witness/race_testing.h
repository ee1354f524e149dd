/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_testing.h - what the detector's tests share: three streams, some
 * memory, and calls with ranges.
 */
#ifndef FSDP_CTS_RACE_TESTING_H
#define FSDP_CTS_RACE_TESTING_H

#include "run/witness/race.h"
#include "testing/unit_testing.h"

enum {
    N = 64
};

/* Streams are known by their address. */
static char handles[RACE_STREAMS + 8];
static float memory[8][N];

static inline struct fsdp_stream *stream(uint32_t i)
{
    return (struct fsdp_stream *)&handles[i];
}

/* The model's, and two of an engine. */
#define COMPUTE stream(0)
#define GATHER  stream(1)
#define REDUCE  stream(2)

static inline int make(void **state)
{
    struct race *r = race_open(COMPUTE);

    assert_non_null(r);
    race_stream_open(r, GATHER, "gather");
    race_stream_open(r, REDUCE, "reduce");
    race_place(r, 2, FSDP_PRE_FORWARD, 5);
    *state = r;
    return 0;
}

static inline int drop(void **state)
{
    struct race *r = *state;

    assert_false(r->out_of_memory);
    race_close(r);
    return 0;
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, make, drop)

/* y = a + b; b may be NULL. */
static inline void add(struct race *r, struct fsdp_stream *s, float *a,
                       float *b, float *y)
{
    const uint64_t bytes = N * sizeof(float);
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_ADD,
                         .unit = FSDP_NO_UNIT,
                         .dim = {N},
                         .n_in = b ? 2 : 1,
                         .n_out = 1,
                         .in = {{a, bytes}, {b, bytes}},
                         .out = {{y, bytes}}};

    race_operator(r, s, &op);
}

static inline void gather(struct race *r, struct fsdp_stream *s,
                          const float *in, float *out)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_ALL_GATHER,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = 3,
                                .n = N / 2,
                                .in = in,
                                .out = out};

    race_collective(r, s, 2, 0, &c);
}

static inline void reduce_scatter(struct race *r, struct fsdp_stream *s,
                                  const float *in, float *out)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_REDUCE_SCATTER,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = 3,
                                .n = N / 2,
                                .in = in,
                                .out = out};

    race_collective(r, s, 2, 0, &c);
}

/* Marks as a device does whose tickets count its work. */
static inline uint64_t mark(struct race *r, struct fsdp_stream *s)
{
    static uint64_t ticket = 100;

    race_mark(r, s, ++ticket);
    return ticket;
}

#define A memory[0]
#define B memory[1]
#define C memory[2]
#define D memory[3]

#endif
