/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - which samples of a step a rank draws, and the random numbers that
 * samples and weights are made of.
 *
 * A step's samples are numbered. Each microbatch has a contiguous part of them,
 * and each of its G grains a contiguous part of that; a rank has the grains
 * [rank * G / world, (rank + 1) * G / world). So a grain has the same samples
 * whatever the world is. Without grains, each rank's part is one grain. Under
 * replicated data every rank has all grains of its microbatch.
 */
#ifndef FSDP_CTS_BATCH_H
#define FSDP_CTS_BATCH_H

#include "workload.h"

#include <stddef.h>

struct batch {
    uint64_t grain_samples;      /* >= 1 */
    uint64_t grains;             /* of a rank and microbatch, >= 1 */
    uint64_t samples;            /* of a rank and microbatch */
    uint64_t microbatch_samples; /* of all ranks */
    uint64_t step_samples;       /* of all ranks and microbatches */
};

/*
 * Divides about `total` samples a step evenly, with at least one a grain;
 * samples that are left over are not used. Exact data have a power of two of
 * samples per grain and per rank. INVALID, with a sentence: the config does not
 * fit.
 */
int batch_plan(const struct workload_config *config, uint64_t total,
               struct batch *out, struct fsdp_error *error);

/* The number, within the step, of the first sample of a rank's grain. */
uint64_t batch_first(const struct workload_config *config,
                     const struct batch *batch, uint32_t rank,
                     uint32_t microbatch, uint64_t grain);

/* Streams of random numbers: parameter p has stream p. */
enum batch_stream {
    BATCH_TEACHER = 0x20000000,
    BATCH_INPUT = 0x40000000,  /* + the number of the input */
    BATCH_TARGET = 0x60000000, /* + 1: the places of targets */
};

/* The index of element `first` of a sample of `width` elements. */
uint64_t batch_index(uint32_t step, uint64_t sample, uint64_t width);

/* n numbers from `index` on: uniform in [-scale, scale), or integers uniform
 * in [-bound, bound]. */
void batch_uniform(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n,
                   float scale, float *out);
void batch_integers(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n,
                    uint32_t bound, float *out);

/* FNV-1a over bytes; start from batch_hash_start. */
uint64_t batch_hash(uint64_t hash, const void *data, size_t bytes);
extern const uint64_t batch_hash_start;

/* Fills *error (NULL allowed) unless it already has an error; returns
 * status. */
int batch_fail(struct fsdp_error *error, int status, const char *where,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
