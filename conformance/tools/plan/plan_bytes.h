/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_bytes.h - how much memory of a rank, and how many bytes on the wire, a
 * model needs, exactly, without a run. Nothing here has formulas of its own:
 * the oracle walks a step, and this counts what it sees.
 */
#ifndef FSDP_CTS_PLAN_BYTES_H
#define FSDP_CTS_PLAN_BYTES_H

#include "judge/oracle/expect.h"

/* The question: a model, its units, and a case of any world up to
 * EXPECT_MAX_RANKS. Borrowed. */
struct plan_ask {
    struct run_case c;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const uint8_t *idle; /* as expect_make_idle takes it */
};

/* A moment of the step: the bytes of all live values, by kind. */
struct plan_moment {
    uint64_t live[FSDP_N_KINDS];
};

/*
 * Bytes of one rank. Every rank has the same, as shards are padded; the last
 * shard has the padding. For running ahead (prefetch, reductions in flight) the
 * peaks include the bound that an engine is held to; moments do not.
 */
struct plan_bytes {
    uint64_t elements; /* M */
    uint64_t largest;  /* elements of the largest unsharded unit */
    uint32_t units, shards, replicas;
    uint64_t own_last; /* elements of the last shard without its padding */
    uint64_t padding;  /* padding elements in all shards of a replica */

    struct plan_moment rest;
    uint64_t rest_sum;
    bool is_uneven; /* ranks have states of different sizes: `rest` and the
                     * peaks are those of the rank that has most */
    uint64_t peak[FSDP_N_KINDS]; /* of each kind by itself */
    struct plan_moment fullest;  /* the moment of the peak, without the bytes
                                  * that running ahead adds */
    uint64_t peak_parameters;    /* shards and unsharded copies */
    uint64_t peak_sum;           /* all that the engine has */
    uint64_t ahead;              /* of peak_sum: for running ahead */

    /* On the host, if something is offloaded: all live values, at rest and at
     * the peak (with running ahead, a bound); the sum of each kind's own peak;
     * and the bytes that a step copies. Not in any of the above. */
    uint64_t host_rest, host_peak, host_peaks;
    struct record_hosted copied;

    /* Of a whole step. Bytes that one rank sends, by rings; it receives as
     * many. An all-reduce among R ranks sends 2 (R - 1) / R of its bytes,
     * rounded up. */
    uint32_t collectives[FSDP_N_COLLECTIVES];
    uint64_t sent[FSDP_N_COLLECTIVES];
    uint64_t sent_sum;

    /* The state at rest, and each moment of the step at which something
     * changed, in order; for pictures. Released by plan_bytes_release. */
    uint32_t n_moments;
    struct plan_moment *moment;
};

/* INVALID: a case that the oracle has no rules for, another dtype, or numbers
 * beyond 2^63 (says which). NOMEM. */
int plan_bytes_make(const struct plan_ask *ask, struct plan_bytes *out,
                    struct fsdp_error *error);
void plan_bytes_release(struct plan_bytes *b); /* any state */

/* Whether all numbers that are counted for such a case stay below 2^63. */
bool plan_is_countable(const struct fsdp_model *model, uint32_t n_units,
                       uint32_t shards);

#endif
