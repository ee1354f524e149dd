/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - the kinds of data that a workload is trained on, which parameters it
 * may leave alone, which parts it may compute twice, and which parameters are
 * frozen.
 */
#ifndef FSDP_CTS_DATA_H
#define FSDP_CTS_DATA_H

#include <stdbool.h>

enum workload_data {
    WORKLOAD_NATURAL = 0,    /* order matters, and is specified */
    WORKLOAD_EXACT = 1,      /* every order of summation gives the same bits */
    WORKLOAD_REPLICATED = 2, /* every rank has the same batch */
    WORKLOAD_EXACT16 = 3,    /* as EXACT, for sums over ranks in 16 bits */
};

/* Whether no sum depends on its order. */
static inline bool workload_is_exact(unsigned data)
{
    return data == WORKLOAD_EXACT || data == WORKLOAD_EXACT16;
}

/* Says where passes leave a parameter alone (workload_model.idle). The bits
 * below this one: its gradient is not asked for in microbatch 0, 1, ... */
enum {
    WORKLOAD_UNSEEN = 0x80u /* no forward asks for it */
};

/*
 * Activation checkpointing: which parts of a model (a block of gpt, a layer of
 * mlp) drop what they computed in the forward, and compute it again in the
 * backward. Parts that are recomputed together are a checkpoint.
 */
enum workload_recompute {
    WORKLOAD_KEEPS = 0,            /* nothing is dropped */
    WORKLOAD_RECOMPUTE_BLOCK = 1,  /* the modules in a part, inside its
                                    * backward */
    WORKLOAD_RECOMPUTE_AROUND = 2, /* each part, before its backward */
    WORKLOAD_RECOMPUTE_PAIR = 3,   /* two parts, before the second's backward */
    WORKLOAD_RECOMPUTE_HALF = 4,   /* as AROUND, but every second part */
    WORKLOAD_N_RECOMPUTES = 5,
};

/* The checkpoint, counted from 1, that part i of a model is in; 0: it keeps
 * what it computes. */
static inline unsigned workload_checkpoint(unsigned recompute, unsigned i)
{
    switch (recompute) {
    case WORKLOAD_RECOMPUTE_BLOCK:
    case WORKLOAD_RECOMPUTE_AROUND:
        return i + 1;
    case WORKLOAD_RECOMPUTE_PAIR:
        return i / 2 + 1;
    case WORKLOAD_RECOMPUTE_HALF:
        return i % 2 == 0 ? i + 1 : 0;
    default:
        return 0;
    }
}

/* Whether part i is the first one in its checkpoint; whether it is the last,
 * of n parts. */
static inline int workload_enters(unsigned recompute, unsigned i)
{
    return i == 0 || workload_checkpoint(recompute, i - 1) !=
                         workload_checkpoint(recompute, i);
}

static inline int workload_leaves(unsigned recompute, unsigned i, unsigned n)
{
    return i + 1 == n || workload_checkpoint(recompute, i + 1) !=
                             workload_checkpoint(recompute, i);
}

/*
 * Which parameters are frozen. A model has parts, in the order of the forward:
 * the layers of mlp and linear; gpt's embedding, its blocks, and its head with
 * the norm before it; a random graph's modules, whose head always trains.
 */
enum workload_frozen {
    WORKLOAD_TRAINS_ALL = 0,
    WORKLOAD_FROZEN_PREFIX = 1,    /* the first half of the parts */
    WORKLOAD_FROZEN_ALTERNATE = 2, /* every second part, from the second on */
    WORKLOAD_FROZEN_MATRICES = 3,  /* all but biases, gains: what has one
                                    * dimension */
    WORKLOAD_FROZEN_BODY = 4,      /* all but the last part */
    WORKLOAD_FROZEN_BASE = 5,      /* lora's: all but what is beside it */
    WORKLOAD_N_FROZEN = 6,
};

/* Whether a parameter of part i of n is frozen. */
static inline bool workload_is_frozen(unsigned frozen, unsigned i, unsigned n,
                                      bool is_vector)
{
    switch (frozen) {
    case WORKLOAD_FROZEN_PREFIX:
        return i < n / 2;
    case WORKLOAD_FROZEN_ALTERNATE:
        return i % 2 == 1;
    case WORKLOAD_FROZEN_MATRICES:
        return !is_vector;
    case WORKLOAD_FROZEN_BODY:
        return i + 1 < n;
    case WORKLOAD_FROZEN_BASE:
        return true;
    default:
        return false;
    }
}

#endif
