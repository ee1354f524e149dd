/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - a model that engines train: its description, its data and its
 * compute, written once against the contract and run by every engine.
 *
 * The driver walks the model's call sequence: at each point it tells the
 * engine, then (after a PRE point) asks the workload to compute that module.
 * All arithmetic is done by operators of the device (op.h); weights and
 * gradients are asked from the engine through `workload_access`.
 *
 * Data: a pure function of (seed, step, sample). Every rank, grain and
 * microbatch has samples of its own, except in replicated data.
 */
#ifndef FSDP_CTS_WORKLOAD_H
#define FSDP_CTS_WORKLOAD_H

#include "models/data.h"
#include "models/wrap.h"

#include <fsdp/engine.h>

struct workload_config {
    const char *size; /* one of workload.sizes; NULL: the first */
    uint32_t data;    /* enum workload_data */
    uint64_t seed;
    uint32_t world;        /* ranks that share a step's samples */
    uint32_t microbatches; /* per step and rank, >= 1 */
    /* Grains per step for FSDP_FOLD_TREE; a multiple of world. 0: none, each
     * rank's samples of a microbatch are one grain. */
    uint32_t grains;
    const char *text; /* gpt: the bytes to learn; NULL for the others */
    uint64_t text_bytes;
    uint32_t recompute; /* enum workload_recompute */
    uint32_t frozen;    /* enum workload_frozen */
};

/* The description of a workload's model; owned by the workload until
 * `release`. */
struct workload_model {
    struct fsdp_model model; /* sequences: [0] train, [1] eval */
    const uint8_t *idle;     /* [n_parameters], or NULL: none is left alone */
    const struct workload *workload;
    struct workload_config config;
    void *self;
};

/* How the compute reaches weights and gradients. */
struct workload_access {
    int (*param)(void *self, uint32_t p, struct fsdp_tensor *out);
    int (*grad)(void *self, uint32_t p, struct fsdp_tensor *out);
    void *self;
    /* The factor of the loss in the backward, read where that begins; the loss
     * that `end` returns is not multiplied by it. NULL: 1. */
    const float *loss_scale;
    /* [n_parameters]: flags of parameters, as they are now. NULL: as the model
     * says. */
    const uint32_t *flags;
    /* [n_parameters]: whether the parameter is in no unit. Then it is the
     * model's own, keeps its initial values, and no engine takes its gradient.
     * NULL: all are in units. */
    const bool *ignored;
    /* As fsdp_engine.buffer. The model leaves a buffer alone that is not whole:
     * its data is NULL then. NULL: the model leaves all buffers alone. */
    int (*buffer)(void *self, uint32_t b, struct fsdp_tensor *out);
};

/* Samples as they are handed to a separate program; borrowed. */
struct workload_samples {
    const char *name;  /* the workload's own: "x", "target" */
    const char *dtype; /* as safetensors spell it */
    uint32_t n_dims;
    uint64_t shape[FSDP_MAX_DIMS]; /* the first extent counts samples */
    const void *data;
};

struct workload_run; /* the workload's own: activations, batch */

struct workload {
    const char *name;
    const char *summary;      /* one line for `list` */
    const char *const *sizes; /* NULL-ended; the first is the default */
    bool any_size;            /* `describe` knows more, and copies the name */
    uint32_t data_kinds;      /* bit (1 << enum workload_data) set: offered */
    uint32_t recomputes;      /* (1 << enum workload_recompute): also offered */
    uint32_t recomputes_too;  /* also offered, but not to drawn cases */
    uint32_t freezes;         /* (1 << enum workload_frozen): also offered */

    /* Describes the model. INVALID: the config does not fit (names what). */
    int (*describe)(const struct workload_config *config,
                    struct workload_model **out, struct fsdp_error *error);
    void (*release)(struct workload_model *); /* NULL allowed */
    /* The units that were drawn with the model (CASE_WRAP_DRAWN). NULL: it
     * has none of its own. */
    int (*wrap)(const struct workload_model *, struct wrap_units *out);

    /* Compute on one rank. `device` is the model's own handle (its live
     * ranges are activations), `stream` may be NULL. *out is set even on
     * failure. No memory is allocated from the device between begin and end
     * but through `device->alloc` + live/dead, and all of it is dead after
     * `end` (storage may be kept until close). */
    int (*open)(const struct workload_model *, const struct fsdp_device *device,
                struct fsdp_stream *stream, const struct workload_access *,
                struct fsdp_error *error, struct workload_run **out);
    /* A microbatch starts: draws rank's samples for (step, microbatch). */
    int (*begin)(struct workload_run *, uint32_t rank, uint32_t step,
                 uint32_t microbatch);
    /* After a PRE point: the module's own compute (composites: nothing). */
    int (*compute)(struct workload_run *, uint32_t point, uint32_t module);
    /* The microbatch ends, or is given up after a CANCEL: this rank's loss,
     * on the host; NaN if the pass did not come as far as the loss. */
    int (*end)(struct workload_run *, float *out_loss);
    void (*close)(struct workload_run *); /* any state; NULL allowed */

    /* A hash (FNV-1a, 64 bits) of the samples that rank draws, so that tests
     * assert that ranks, grains and microbatches differ. grain counts within
     * the rank; 0 without grains. Local, needs no device. */
    uint64_t (*digest)(const struct workload_model *, uint32_t rank,
                       uint32_t step, uint32_t microbatch, uint32_t grain);

    /* Shows the samples that rank draws in a microbatch. Local, needs no
     * device. Returns what `visit` did where that is not OK; NOMEM. */
    int (*samples)(const struct workload_model *, uint32_t rank, uint32_t step,
                   uint32_t microbatch,
                   int (*visit)(void *context,
                                const struct workload_samples *samples),
                   void *context);
};

/* NULL-ended: mlp, linear, gpt, lora, graph. */
extern const struct workload *const workloads[];
const struct workload *workload_find(const char *name); /* NULL: none */

/* How many values a set of bits such as `recomputes` or `freezes` offers, and
 * the i-th of them. */
static inline uint32_t workload_offers(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}
static inline uint32_t workload_offer(uint32_t bits, uint32_t i)
{
    while (i-- > 0) {
        bits &= bits - 1;
    }
    return (uint32_t)__builtin_ctz(bits);
}

#endif
