/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_collective.c - what each collective does: members exchange raw parts in
 * chunks, and the fold kernel adds them.
 */
#include "cuda_collective.h"

/* Elements [at, at + n) of n, cut where staging ends. */
static uint64_t piece(const struct cuda_member *m, uint64_t at, uint64_t n)
{
    return n - at < m->chunk ? n - at : m->chunk;
}

/* The part of rank r in staging. */
static float *place_of(const struct cuda_member *m, uint32_t r)
{
    return m->staging + r * m->chunk;
}

/* The parts that came in, in the order in which they are added. `own` is this
 * rank's part. */
static struct cuda_parts parts_of(const struct cuda_member *m,
                                  const struct fsdp_collective *c,
                                  const void *own)
{
    struct cuda_parts parts = {.n = m->group.extent,
                               .balanced = c->fold == FSDP_FOLD_TREE,
                               .dtype = c->dtype,
                               .sum_dtype = fsdp_sum_dtype(c)};

    for (uint32_t i = 0; i < m->group.extent; i++) {
        uint32_t r = c->fold == FSDP_FOLD_RING
                         ? (m->group.me + 1 + i) % m->group.extent
                         : i;

        parts.part[i] = r == m->group.me ? own : place_of(m, r);
    }
    return parts;
}

static int fold(struct cuda_member *m, const struct cuda_target *target,
                const struct fsdp_collective *c, const void *own, void *out,
                uint64_t n)
{
    struct cuda_parts parts = parts_of(m, c, own);

    FSDP_TRY(cuda_device_check(m->group.device,
                               cuda_fold(target, &parts, out, n), "fold"));
    /* Two launches: the fold, and the exchange before it. */
    return cuda_device_pace(m->group.device, target, 2);
}

int cuda_collective_scatter(struct cuda_member *m,
                            const struct cuda_target *target,
                            const struct fsdp_collective *c)
{
    struct cuda_message message[CUDA_MAX_RANKS];
    const uint64_t element = fsdp_dtype_bytes(c->dtype);
    const unsigned char *in = c->in;
    unsigned char *out = c->out;

    for (uint64_t at = 0; at < c->n; at += m->chunk) {
        uint64_t bytes = piece(m, at, c->n) * element;

        for (uint32_t r = 0; r < m->group.extent; r++) {
            message[r] = (struct cuda_message){in + (r * c->n + at) * element,
                                               bytes, place_of(m, r), bytes};
        }
        FSDP_TRY(m->transport.exchange(m->transport.self, target, message));
        FSDP_TRY(fold(m, target, c, in + (m->group.me * c->n + at) * element,
                      out + at * element, piece(m, at, c->n)));
    }
    return FSDP_OK;
}

/* The ring of a library adds float32, as far as it was tried. */
static int scatter(struct cuda_member *m, const struct cuda_target *target,
                   const struct fsdp_collective *c)
{
    if (c->fold == FSDP_FOLD_RING && c->dtype == FSDP_DTYPE_F32) {
        FSDP_TRY(cuda_ring_try(m));
        if (m->ring == CUDA_RING_SAME) {
            return m->transport.ring(m->transport.self, target, c->in, c->out,
                                     c->n);
        }
    }
    return cuda_collective_scatter(m, target, c);
}

/* Elements of an all-reduce that rank r owns. */
struct range {
    uint64_t first, n;
};

static struct range owned(const struct fsdp_collective *c, uint32_t extent,
                          uint32_t r)
{
    uint64_t block = c->n / extent + (c->n % extent != 0);
    uint64_t first = r * block < c->n ? r * block : c->n;

    return (struct range){first, c->n - first < block ? c->n - first : block};
}

/* Part [at, at + chunk) of what a rank owns. */
static struct range cut(const struct cuda_member *m, struct range x,
                        uint64_t at)
{
    if (at >= x.n) {
        return (struct range){x.first, 0};
    }
    return (struct range){x.first + at, piece(m, at, x.n)};
}

/* Each rank folds what it owns; in the order of comm.h all are the same. */
static int fold_owned(struct cuda_member *m, const struct cuda_target *target,
                      const struct fsdp_collective *c)
{
    struct cuda_message message[CUDA_MAX_RANKS];
    struct range all = owned(c, m->group.extent, 0); /* the longest */
    const uint64_t element = fsdp_dtype_bytes(c->dtype);
    const unsigned char *in = c->in;
    unsigned char *out = c->out;

    for (uint64_t at = 0; at < all.n; at += m->chunk) {
        struct range mine = cut(m, owned(c, m->group.extent, m->group.me), at);

        for (uint32_t r = 0; r < m->group.extent; r++) {
            struct range theirs = cut(m, owned(c, m->group.extent, r), at);

            message[r] = (struct cuda_message){
                in + theirs.first * element, theirs.n * element, place_of(m, r),
                mine.n * element};
        }
        FSDP_TRY(m->transport.exchange(m->transport.self, target, message));
        FSDP_TRY(fold(m, target, c, in + mine.first * element,
                      out + mine.first * element, mine.n));
    }
    return FSDP_OK;
}

static int all_reduce(struct cuda_member *m, const struct cuda_target *target,
                      const struct fsdp_collective *c)
{
    struct cuda_message message[CUDA_MAX_RANKS];
    struct range mine = owned(c, m->group.extent, m->group.me);
    const uint64_t element = fsdp_dtype_bytes(c->dtype);
    unsigned char *out = c->out;

    FSDP_TRY(fold_owned(m, target, c));
    for (uint32_t r = 0; r < m->group.extent; r++) {
        struct range theirs = owned(c, m->group.extent, r);

        message[r] = (struct cuda_message){
            out + mine.first * element, mine.n * element,
            out + theirs.first * element, theirs.n * element};
    }
    return m->transport.exchange(m->transport.self, target, message);
}

/* A group of one: its data, where they should be. */
static int alone(struct cuda_member *m, const struct cuda_target *target,
                 const struct fsdp_collective *c)
{
    return c->in == c->out || c->n == 0
               ? FSDP_OK
               : cuda_device_check(
                     m->group.device,
                     cudaMemcpyAsync(c->out, c->in,
                                     c->n * fsdp_dtype_bytes(c->dtype),
                                     cudaMemcpyDefault, target->stream),
                     "cudaMemcpyAsync");
}

/* In its own place in staging nothing arrives: from there it sends. */
int cuda_collective_connect(struct cuda_member *m,
                            const struct cuda_target *target)
{
    struct cuda_message message[CUDA_MAX_RANKS];

    if (m->group.extent == 1) {
        return FSDP_OK;
    }
    for (uint32_t r = 0; r < m->group.extent; r++) {
        message[r] =
            (struct cuda_message){place_of(m, m->group.me), sizeof(float),
                                  place_of(m, r), sizeof(float)};
    }
    FSDP_TRY(m->transport.exchange(m->transport.self, target, message));
    return m->transport.all_gather(m->transport.self, target,
                                   m->staging + m->group.me, m->staging,
                                   sizeof(float));
}

int cuda_collective(struct cuda_member *m, const struct cuda_target *target,
                    const struct fsdp_collective *c)
{
    struct cuda_transport *t = &m->transport;
    uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);

    if (c->kind == FSDP_BARRIER && m->group.extent > 1) {
        return t->all_gather(t->self, target, m->staging + m->group.me,
                             m->staging, sizeof(float));
    }
    if (m->group.extent == 1 || c->n == 0) {
        return alone(m, target, c);
    }
    switch (c->kind) {
    case FSDP_ALL_GATHER:
        return t->all_gather(t->self, target, c->in, c->out, bytes);
    case FSDP_REDUCE_SCATTER:
        return scatter(m, target, c);
    case FSDP_ALL_REDUCE:
        return all_reduce(m, target, c);
    default:
        return t->broadcast(t->self, target, c->in, c->out, bytes, c->root);
    }
}
