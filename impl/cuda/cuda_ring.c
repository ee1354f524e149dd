/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ring.c - is the transport's ring the one of comm.h? A ring follows the
 * wiring: its order need not be that of ranks, and several channels may have
 * several. So it is tried, on numbers whose sums depend on their order, and
 * compared bit by bit with the fold that has the order for certain.
 */
#include "cuda_collective.h"

#include <fsdp/arith/philox.h>
#include <stdlib.h>
#include <string.h>

/* A channel is used for each 32 KiB of all ranks' (NCCL's enqueue.cc: threads
 * times threshold), 64 at most: three ranks or more have enough for all of
 * them, however little staging memory collectives have. */
enum {
    MOST = 1 << 18,     /* floats a rank */
    MOST_ALL = 1 << 23, /* of all */
};

/* Memory of one trial. */
struct trial {
    uint64_t n; /* floats a rank */
    float *host, *other_host;
    float *in, *ring, *own, *verdict;
    float *staging; /* for our own fold, in one piece */
};

static void release(struct cuda_device *d, struct trial *t)
{
    cuda_device_free(d, t->in);
    cuda_device_free(d, t->ring);
    cuda_device_free(d, t->own);
    cuda_device_free(d, t->verdict);
    cuda_device_free(d, t->staging);
    free(t->host);
    free(t->other_host);
}

static bool take_floats(float **p, uint64_t n)
{
    void *memory = NULL;

    if (cudaMalloc(&memory, n * sizeof(**p)) != cudaSuccess) {
        return false;
    }
    *p = memory;
    return true;
}

/* Whether this rank saw the same bits; then whether all did. */
static int compare_bits(struct cuda_member *m, const struct cuda_target *target,
                        struct trial *t, bool *same)
{
    struct cuda_device *d = m->group.device;
    uint64_t bytes = t->n * sizeof(*t->host);
    float mine;

    FSDP_TRY(cuda_device_copy(d, t->host, t->ring, bytes));
    FSDP_TRY(cuda_device_copy(d, t->other_host, t->own, bytes));
    mine = memcmp(t->host, t->other_host, bytes) == 0 ? 1.0f : 0.0f;
    FSDP_TRY(
        cuda_device_copy(d, t->verdict + m->group.me, &mine, sizeof(mine)));
    FSDP_TRY(m->transport.all_gather(m->transport.self, target,
                                     t->verdict + m->group.me, t->verdict,
                                     sizeof(mine)));
    FSDP_TRY(cuda_device_copy(d, t->host, t->verdict,
                              m->group.extent * sizeof(mine)));
    *same = true;
    for (uint32_t r = 0; r < m->group.extent; r++) {
        *same = *same && t->host[r] == 1.0f;
    }
    return FSDP_OK;
}

static int run_trial(struct cuda_member *m, const struct cuda_target *target,
                     struct trial *t, bool *same)
{
    uint64_t all = t->n * m->group.extent;
    struct cuda_member whole = *m;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_REDUCE_SCATTER,
                                      .dtype = FSDP_DTYPE_F32,
                                      .fold = FSDP_FOLD_RING,
                                      .n = t->n,
                                      .in = t->in,
                                      .out = t->own};

    whole.staging = t->staging;
    whole.chunk = t->n;
    /* Products have many exponents; uniform numbers lie on one grid, on which
     * sums are exact in any order. */
    for (uint64_t i = 0; i < all; i++) {
        t->host[i] = fsdp_random_uniform(m->group.me, 0, i) *
                     fsdp_random_uniform(m->group.me, 1, i);
    }
    FSDP_TRY(cuda_device_copy(m->group.device, t->in, t->host,
                              all * sizeof(*t->host)));
    FSDP_TRY(
        m->transport.ring(m->transport.self, target, t->in, t->ring, t->n));
    FSDP_TRY(cuda_collective_scatter(&whole, target, &c));
    return compare_bits(m, target, t, same);
}

/* On the stream of calls without one, whose copies have a place to look around;
 * behind the collective before. */
static int try_once(struct cuda_member *m, bool *same)
{
    uint64_t share = MOST_ALL / m->group.extent;
    struct trial t = {.n = share < MOST ? share : MOST};
    struct cuda_device *d = m->group.device;
    uint64_t all = t.n * m->group.extent;
    struct cuda_target target;
    int status;

    (void)cuda_device_stream(d, NULL, &target);
    FSDP_TRY(cuda_device_check(d,
                               cudaStreamWaitEvent(target.stream, m->last, 0),
                               "cudaStreamWaitEvent"));
    t.host = malloc((all + m->group.extent) * sizeof(*t.host));
    t.other_host = malloc(all * sizeof(*t.other_host));
    if (!t.host || !t.other_host || !take_floats(&t.in, all) ||
        !take_floats(&t.ring, t.n) || !take_floats(&t.own, t.n) ||
        !take_floats(&t.staging, all) ||
        !take_floats(&t.verdict, m->group.extent)) {
        status =
            cuda_device_fail(m->group.device, FSDP_ERR_NOMEM, 0,
                             "the communicator", "no memory to try the ring");
    } else {
        status = run_trial(m, &target, &t, same);
    }
    release(d, &t);
    return status;
}

int cuda_ring_try(struct cuda_member *m)
{
    const char *wish = getenv("FSDP_CUDA_RING");
    bool same = true;

    if (m->ring != CUDA_RING_UNKNOWN) {
        return FSDP_OK;
    }
    if (!m->transport.ring || (wish && strcmp(wish, "own") == 0)) {
        m->ring = CUDA_RING_OTHER;
        return FSDP_OK;
    }
    if (m->group.extent > 2) { /* of two, any order has the same sum */
        FSDP_TRY(try_once(m, &same));
    }
    m->ring = same ? CUDA_RING_SAME : CUDA_RING_OTHER;
    return FSDP_OK;
}
