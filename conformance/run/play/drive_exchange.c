/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_exchange.c - what ranks say out of band, and what stands below the
 * recorder.
 */
#include "run/play/drive.h"
#include "run/witness/crossing.h"

/* It is no collective, and none is due in a step. */
static int count_exchange(void *self, const void *mine, uint64_t bytes,
                          void *all)
{
    struct driver *x = self;
    int status;

    x->exchanges += x->living && !x->ended && !x->asks;
    status = x->exchange(x->exchange_self, mine, bytes, all);
    if (status == FSDP_OK && x->d->crossing) {
        crossing_exchange(x->d->crossing, bytes);
    }
    if (status == FSDP_ERR_MISMATCH && x->d->crossing) {
        crossing_mismatch(x->d->crossing);
    }
    return status;
}

void drive_count_exchanges(struct driver *x, const struct world_rank *rank)
{
    x->exchange = rank->exchange;
    x->exchange_self = rank->exchange_self;
    x->env.exchange = count_exchange;
    x->env.exchange_self = x;
}

int drive_exchange(struct driver *x, const void *mine, uint64_t bytes,
                   void *all)
{
    int status;

    x->asks = true;
    status = x->env.exchange(x->env.exchange_self, mine, bytes, all);
    x->asks = false;
    return status;
}

void drive_look_below(struct driver *x)
{
    struct fsdp_env below = x->env;

    if (x->d->crossing && x->env.comm != x->world_comm) {
        crossing_own(x->d->crossing);
    }
    if (x->d->mutant && x->d->mutate_below) {
        below.exchange = x->exchange;
        below.exchange_self = x->exchange_self;
        x->d->mutate_below(x->d->mutant, &below);
        x->env.comm = below.comm;
    }
}
