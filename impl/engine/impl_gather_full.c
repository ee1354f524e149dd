/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_gather_full.c - the full form, written by one rank: each slice goes
 * from its owner to rank 0, which hands it to the file at once. No rank has
 * more than one slice of a tensor in addition to what rests.
 */
#include "impl_checkpoint.h"

#include <stdlib.h>

enum {
    SLICE = 1 << 14
}; /* elements to the host at a time */

/* Which slices there are, of all shard indices, in turns: i of each. */
static int tell(struct fsdp_sharded *s, uint32_t i,
                struct checkpoint_slice all[CHECKPOINT_MAX_WORLD], bool *more)
{
    const struct impl_holding *h = &s->checkpoints->named;
    struct checkpoint_slice mine = {0, 0, 0};

    if (i < h->n) {
        mine = h->slice[i];
    }
    FSDP_TRY(s->env->exchange(s->env->exchange_self, &mine, sizeof(mine), all));
    *more = false;
    for (uint32_t r = 0; r < s->shards; r++) {
        *more = *more || all[r].n > 0;
    }
    return FSDP_OK;
}

static int broadcast(struct fsdp_sharded *s, uint32_t root, float *p,
                     uint64_t n)
{
    const struct fsdp_comm *comm = s->env->comm;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_BROADCAST,
                                .dim = FSDP_DIM_SHARD,
                                .dtype = FSDP_DTYPE_F32,
                                .root = root,
                                .unit = FSDP_NO_UNIT,
                                .n = n,
                                .in = s->coordinate == root ? p : NULL,
                                .out = p};

    return s->shards > 1 ? comm->run(comm->self, NULL, &c) : FSDP_OK;
}

/* What fails here on rank 0 alone is told by save_wait. */
static int put(struct fsdp_sharded *s, const struct checkpoint_slice *x,
               const float *p, float *host)
{
    const struct fsdp_device *d = s->env->device;

    for (uint64_t done = 0; s->env->rank == 0 && done < x->n;) {
        uint64_t n = x->n - done < SLICE ? x->n - done : SLICE;
        FSDP_TRY(d->copy(d->self, NULL, host, p + done, n * sizeof(*p)));
        (void)checkpoint_put(s->checkpoints->saving, x->entry, x->first + done,
                             n, host);
        done += n;
    }
    return FSDP_OK;
}

static int move(struct fsdp_sharded *s, uint32_t root, uint32_t i,
                const struct checkpoint_slice *x, float *host)
{
    const struct impl_holding *h = &s->checkpoints->named;
    const bool owns = s->coordinate == root;
    void *staging = NULL;
    float *p;
    int status = FSDP_OK;

    if (!owns || h->on_host[i]) { /* the device sends, and receives */
        FSDP_TRY(impl_take(s, NULL,
                           (struct impl_value){FSDP_STAGING, FSDP_NO_UNIT,
                                               FSDP_DTYPE_F32, x->n, false},
                           NULL, &staging));
    }
    p = staging ? staging : h->at[i];
    if (owns && staging) {
        status = impl_copy(s, NULL, p, h->at[i], x->n * sizeof(*p));
    }
    if (status == FSDP_OK) {
        status = broadcast(s, root, p, x->n);
    }
    if (status == FSDP_OK) {
        status = put(s, x, p, host);
    }
    impl_dead(s, NULL, &staging, x->n);
    return status;
}

int impl_gather_full(struct fsdp_sharded *s)
{
    struct checkpoint_slice all[CHECKPOINT_MAX_WORLD];
    const struct fsdp_device *d = s->env->device;
    float *host = malloc(SLICE * sizeof(*host));
    bool more = true;
    int status = host ? d->sync(d->self, NULL) : impl_out_of_memory(s->env);

    for (uint32_t i = 0; status == FSDP_OK && more; i++) {
        status = tell(s, i, all, &more);
        for (uint32_t r = 0; status == FSDP_OK && r < s->shards; r++) {
            if (all[r].n > 0 && s->env->rank < s->shards &&
                checkpoint_saves(s->checkpoints->saving, all[r].entry)) {
                status = move(s, r, i, &all[r], host);
            }
        }
    }
    free(host);
    return status;
}
