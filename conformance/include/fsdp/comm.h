/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - collectives between ranks: one entry point for all of them, so
 * that a recorder, a trace, a clock or a mutant wraps one function.
 *
 * The fold, the order in which gradients of ranks meet, is part of the
 * specification. For a group of n ranks with inputs x[0..n-1], in the order
 * of their coordinate, elementwise, one rounding an addition:
 *
 *   RANK  ((x[0] + x[1]) + x[2]) + ...
 *   RING  the owner c of the element comes last:
 *         ((x[c+1] + x[c+2]) + ...) + x[c], indices modulo n (NCCL's ring
 *         reduce-scatter: src/device/reduce_scatter.h, runRing).
 *         The owner is the rank that receives the element; for an all-reduce
 *         of m elements, element i belongs to rank i / ceil(m / n).
 *   TREE  balanced: tree(a, b) = x[a] if b - a = 1, else
 *         tree(a, mid) + tree(mid, b) with mid = a + ceil((b - a) / 2).
 *
 * Reductions are of F32, BF16 or F16; others are UNSUPPORTED. Operands are
 * widened to float32, which is exact, added in float32, and each sum is rounded
 * to sum_dtype: to the dtype on the wire, so that each addition is rounded to
 * it, or to F32, so that the fold is rounded to it once, at its end. (The sum
 * of two values of 16 bits, rounded to float32 and then to 16 bits, is the
 * exact sum rounded once.)
 *
 * No fold divides: an engine multiplies once, afterwards.
 */
#ifndef FSDP_COMM_H
#define FSDP_COMM_H

#include <fsdp/device.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fsdp_collective_kind {
    FSDP_ALL_GATHER = 0,
    FSDP_REDUCE_SCATTER = 1,
    FSDP_ALL_REDUCE = 2,
    FSDP_BROADCAST = 3,
    FSDP_BARRIER = 4,
    FSDP_N_COLLECTIVES = 5,
};

enum fsdp_fold {
    FSDP_FOLD_RANK = 0,
    FSDP_FOLD_RING = 1,
    FSDP_FOLD_TREE = 2,
};

/* All ranks, whatever the mesh; the group's order is that of ranks. */
#define FSDP_DIM_WORLD UINT32_MAX

/*
 * The world as a grid with named dimensions. Rank = coordinates in row-major
 * order, the last dimension fastest. Sharded data parallelism uses two
 * dimensions, "replicate" and "shard", in this order: FULL_SHARD is 1 x K,
 * NO_SHARD K x 1, HYBRID R x S.
 */
struct fsdp_mesh {
    uint32_t size;
    uint32_t n_dims;
    const char *const *name;
    const uint32_t *extent; /* each >= 1; their product is the world */
};

enum {
    FSDP_DIM_REPLICATE = 0,
    FSDP_DIM_SHARD = 1
};

/*
 * One collective. All ranks of the group give the same kind, dim, dtype,
 * fold, root and n, in the same sequence; a communicator may answer
 * FSDP_ERR_MISMATCH when they do not, and must not deliver wrong data
 * silently. n = 0 is allowed and moves nothing.
 *
 *   kind            n               in               out
 *   ALL_GATHER      sent per rank   n                n * extent, by rank;
 *                                                    in may be its own part
 *   REDUCE_SCATTER  got per rank    n * extent       n; may not overlap in
 *   ALL_REDUCE      elements        n                n; may be in
 *   BROADCAST       elements        n (root only)    n; may be in
 *   BARRIER         0               NULL             NULL
 */
struct fsdp_collective {
    uint32_t size;
    uint32_t kind;
    uint32_t dim; /* of the mesh, or FSDP_DIM_WORLD */
    uint32_t dtype;
    uint32_t fold;
    uint32_t root; /* coordinate in the group */
    uint32_t unit; /* for records and traces; FSDP_NO_UNIT if none */
    uint64_t n;
    const void *in;
    void *out;
    /* For reductions: dtype, or F32; NONE means dtype, and others are INVALID.
     * A communicator that cannot add in it answers UNSUPPORTED. All ranks give
     * the same. */
    uint32_t sum_dtype;
};

/* The struct as it was before sum_dtype; a smaller one is none. */
#define FSDP_COLLECTIVE_LEAST offsetof(struct fsdp_collective, sum_dtype)

/* A whole copy of what a caller gave. Fields that the caller did not know yet
 * are zero. A size that is smaller than that of any version stays as it is. */
static inline struct fsdp_collective
fsdp_collective_of(const struct fsdp_collective *given)
{
    struct fsdp_collective c;

    memset(&c, 0, sizeof(c));
    memcpy(&c, given, given->size < sizeof(c) ? given->size : sizeof(c));
    if (c.size >= FSDP_COLLECTIVE_LEAST) {
        c.size = sizeof(c);
    }
    return c;
}

/* The dtype that sums of a reduction are rounded to. */
static inline uint32_t fsdp_sum_dtype(const struct fsdp_collective *c)
{
    return c->sum_dtype != FSDP_DTYPE_NONE ? c->sum_dtype : c->dtype;
}

/*
 * One communicator, of one rank. Collective: every rank of the group calls. One
 * thread at a time calls `run`. Collectives of one communicator happen in the
 * order of the calls, whatever streams they are given; no memory is ordered by
 * that: the use of a result on another stream needs a wait.
 */
struct fsdp_comm {
    uint32_t size;
    uint32_t place; /* enum fsdp_place: of in and out */
    /* 1: enqueues on the stream, in its order. 0: knows no streams: what it
     * reads and writes must have been synchronised before the call (a `wait`
     * with later = NULL), and it has finished on return. */
    uint32_t takes_streams;
    void *self;
    /* stream = NULL: has finished on return. The struct is read during the
     * call only. */
    int (*run)(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *collective);
    /* Any thread, any number of times: every pending and every later call of
     * every rank returns FSDP_ERR_ABORTED, `exchange` of the env included.
     * Called by the driver of a run on the failure of a rank, never by an
     * engine. Local. */
    void (*abort)(void *self, int32_t status);
};

#ifdef __cplusplus
}
#endif
#endif
