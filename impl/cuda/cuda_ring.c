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

enum {
    MOST = 1 << 20, /* floats a rank: enough for every channel */
};

/* Memory of one trial. */
struct trial {
    uint64_t n; /* floats a rank */
    float *host, *other_host;
    float *in, *ring, *own, *verdict;
};

static void release(struct trial *t)
{
    (void)cudaFree(t->in);
    (void)cudaFree(t->ring);
    (void)cudaFree(t->own);
    (void)cudaFree(t->verdict);
    free(t->host);
    free(t->other_host);
}

static bool take(float **p, uint64_t n)
{
    void *memory = NULL;

    if (cudaMalloc(&memory, n * sizeof(**p)) != cudaSuccess) {
        return false;
    }
    *p = memory;
    return true;
}

/* Copies by the stream of the collective, and waits. */
static int move(struct cuda_member *m, const struct cuda_target *target,
                void *to, const void *from, uint64_t bytes)
{
    struct cuda_wait wait = {0, 0};
    cudaEvent_t event;
    cudaError_t error;

    FSDP_TRY(cuda_device_check(
        m->group.device,
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, target->stream),
        "cudaMemcpyAsync"));
    FSDP_TRY(cuda_device_check(
        m->group.device,
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
        "cudaEventCreate"));
    error = cudaEventRecord(event, target->stream);
    if (error == cudaSuccess) {
        error = cudaEventQuery(event);
    }
    while (error == cudaErrorNotReady &&
           cuda_device_look(m->group.device, &wait) == FSDP_OK) {
        error = cudaEventQuery(event);
    }
    (void)cudaEventDestroy(event);
    FSDP_TRY(cuda_device_status(m->group.device));
    return cuda_device_check(m->group.device, error, "trying the ring");
}

/* Whether this rank saw the same bits; then whether all did. */
static int compare(struct cuda_member *m, const struct cuda_target *target,
                   struct trial *t, bool *same)
{
    uint64_t bytes = t->n * sizeof(*t->host);
    float mine;

    FSDP_TRY(move(m, target, t->host, t->ring, bytes));
    FSDP_TRY(move(m, target, t->other_host, t->own, bytes));
    mine = memcmp(t->host, t->other_host, bytes) == 0 ? 1.0f : 0.0f;
    FSDP_TRY(move(m, target, t->verdict + m->group.me, &mine, sizeof(mine)));
    FSDP_TRY(m->transport.all_gather(m->transport.self, target,
                                     t->verdict + m->group.me, t->verdict,
                                     sizeof(mine)));
    FSDP_TRY(
        move(m, target, t->host, t->verdict, m->group.extent * sizeof(mine)));
    *same = true;
    for (uint32_t r = 0; r < m->group.extent; r++) {
        *same = *same && t->host[r] == 1.0f;
    }
    return FSDP_OK;
}

static int run(struct cuda_member *m, const struct cuda_target *target,
               struct trial *t, bool *same)
{
    uint64_t all = t->n * m->group.extent;

    for (uint64_t i = 0; i < all; i++) {
        t->host[i] = fsdp_random_uniform(m->group.me, 0, i);
    }
    FSDP_TRY(move(m, target, t->in, t->host, all * sizeof(*t->host)));
    FSDP_TRY(
        m->transport.ring(m->transport.self, target, t->in, t->ring, t->n));
    FSDP_TRY(cuda_collective_scatter(m, target, FSDP_FOLD_RING, t->in, t->own,
                                     t->n));
    return compare(m, target, t, same);
}

static int try_once(struct cuda_member *m, const struct cuda_target *target,
                    bool *same)
{
    struct trial t = {.n = m->chunk < MOST ? m->chunk : MOST};
    uint64_t all = t.n * m->group.extent;
    int status;

    t.host = malloc((all + m->group.extent) * sizeof(*t.host));
    t.other_host = malloc(all * sizeof(*t.other_host));
    if (t.host == NULL || t.other_host == NULL || !take(&t.in, all) ||
        !take(&t.ring, t.n) || !take(&t.own, t.n) ||
        !take(&t.verdict, m->group.extent)) {
        status =
            cuda_device_fail(m->group.device, FSDP_ERR_NOMEM, 0,
                             "the communicator", "no memory to try the ring");
    } else {
        status = run(m, target, &t, same);
    }
    release(&t);
    return status;
}

int cuda_ring_try(struct cuda_member *m, const struct cuda_target *target)
{
    const char *wish = getenv("FSDP_CUDA_RING");
    bool same = true;

    if (m->ring != CUDA_RING_UNKNOWN) {
        return FSDP_OK;
    }
    if (m->transport.ring == NULL ||
        (wish != NULL && strcmp(wish, "own") == 0)) {
        m->ring = CUDA_RING_OTHER;
        return FSDP_OK;
    }
    if (m->group.extent > 2) { /* of two, any order has the same sum */
        FSDP_TRY(try_once(m, target, &same));
    }
    m->ring = same ? CUDA_RING_SAME : CUDA_RING_OTHER;
    return FSDP_OK;
}
