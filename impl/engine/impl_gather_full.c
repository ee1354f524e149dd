/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_gather_full.c - the full form, written by one rank: each slice goes from
 * its owner to rank 0, which hands it to the file at once. In addition to what
 * rests, a rank holds one slice of a tensor at most: all ranks, or none, take
 * room for the largest slice before the first is sent.
 */
#include "impl_checkpoint.h"

enum {
    SLICE = 1 << 12
}; /* elements to the host at a time */

/* Tells which slices there are in turn i: slice i of each shard index. */
static int tell_slices(struct fsdp_sharded *s, uint32_t i,
                       struct checkpoint_slice all[CHECKPOINT_MAX_WORLD],
                       bool *more)
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

/* If this fails, it fails on this rank alone, and save_wait reports it. */
static void put_slice(struct fsdp_sharded *s, const struct checkpoint_slice *x,
                      const float *p)
{
    struct checkpoint_saving *const saving = s->checkpoints->saving;
    const struct fsdp_device *d = s->env->device;
    float host[SLICE];

    for (uint64_t done = 0; s->env->rank == 0 && done < x->n;) {
        uint64_t n = x->n - done < SLICE ? x->n - done : SLICE;
        checkpoint_fail(saving,
                        d->copy(d->self, NULL, host, p + done, n * sizeof(*p)),
                        "the device does not give a slice");
        (void)checkpoint_put(saving, x->entry, x->first + done, n, host);
        done += n;
    }
}

static int move(struct fsdp_sharded *s, uint32_t root, uint32_t i,
                const struct checkpoint_slice *x, float *staging)
{
    const struct impl_holding *h = &s->checkpoints->named;
    const bool owns = s->coordinate == root;
    float *p = staging;

    if (owns && !h->on_host[i]) {
        p = h->at[i];
    } else if (owns) { /* the device sends, and receives */
        checkpoint_fail(s->checkpoints->saving,
                        impl_copy(s, NULL, p, h->at[i], x->n * sizeof(*p)),
                        "the device does not take a slice");
    }
    FSDP_TRY(broadcast(s, root, p, x->n));
    put_slice(s, x, p);
    return FSDP_OK;
}

/* The largest slice that this rank receives, or sends from the host; 0:
 * none. */
static int find_room(struct fsdp_sharded *s, uint64_t *room)
{
    const struct impl_holding *h = &s->checkpoints->named;
    uint64_t all[CHECKPOINT_MAX_WORLD];
    uint64_t own = 0;
    uint64_t on_host = 0;

    for (uint32_t i = 0; i < h->n; i++) {
        const uint64_t n = h->slice[i].n;

        if (checkpoint_saves(s->checkpoints->saving, h->slice[i].entry)) {
            own = n > own ? n : own;
            on_host = h->on_host[i] && n > on_host ? n : on_host;
        }
    }
    FSDP_TRY(s->env->exchange(s->env->exchange_self, &own, sizeof(own), all));
    *room = on_host;
    for (uint32_t r = 0; r < s->shards; r++) {
        if (r != s->coordinate && all[r] > *room) {
            *room = all[r];
        }
    }
    if (s->env->rank >= s->shards) { /* no rank of the first replica */
        *room = 0;
    }
    return FSDP_OK;
}

static int take_room(struct fsdp_sharded *s, uint64_t n, void **staging)
{
    const struct fsdp_device *d = s->env->device;
    const struct impl_value room = {FSDP_STAGING, FSDP_NO_UNIT, FSDP_DTYPE_F32,
                                    n, false};
    int status = d->sync(d->self, NULL);

    if (status == FSDP_OK && n > 0) {
        status = impl_take(s, NULL, room, NULL, staging);
    }
    return checkpoint_agree(s->env, "impl.save_begin", status,
                            "no memory for a slice of a tensor");
}

int impl_gather_full(struct fsdp_sharded *s)
{
    struct checkpoint_slice all[CHECKPOINT_MAX_WORLD];
    void *staging = NULL;
    bool more = true;
    uint64_t room;
    int status;

    FSDP_TRY(find_room(s, &room));
    status = take_room(s, room, &staging);
    for (uint32_t i = 0; status == FSDP_OK && more; i++) {
        status = tell_slices(s, i, all, &more);
        for (uint32_t r = 0; status == FSDP_OK && r < s->shards; r++) {
            if (all[r].n > 0 && s->env->rank < s->shards &&
                checkpoint_saves(s->checkpoints->saving, all[r].entry)) {
                status = move(s, r, i, &all[r], staging);
            }
        }
    }
    impl_dead(s, NULL, &staging, room);
    return status;
}
