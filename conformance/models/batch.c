/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - deals the samples of a step to microbatches, grains and ranks, and
 * makes all random numbers of workloads.
 */
#include "batch.h"

#include <fsdp/arith/philox.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const uint64_t batch_hash_start = 0xcbf29ce484222325u;

int batch_fail(struct fsdp_error *error, int status, const char *where,
               const char *format, ...)
{
    va_list arguments;

    if (error && error->status == FSDP_OK) {
        error->status = status;
        snprintf(error->where, sizeof(error->where), "%s", where);
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
    }
    return status;
}

static bool is_power_of_two(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

int batch_plan(const struct workload_config *config, uint64_t total,
               struct batch *out, struct fsdp_error *error)
{
    /* Sample numbers stay below 2^20, so that batch_index cannot overflow. */
    const uint32_t most = 1u << 10;
    const uint32_t grains = config->grains;
    const bool replicated = config->data == WORKLOAD_REPLICATED;
    uint64_t parts; /* grains of a microbatch */

    if (config->world < 1 || config->microbatches < 1 || config->world > most ||
        config->microbatches > most || grains > most ||
        grains % config->world != 0) {
        return batch_fail(error, FSDP_ERR_INVALID, "workload",
                          "world %u, microbatches %u, grains %u: 1..%u of the "
                          "first two, and the world divides the grains",
                          (unsigned)config->world,
                          (unsigned)config->microbatches, (unsigned)grains,
                          (unsigned)most);
    }
    parts = grains != 0 ? grains : replicated ? 1 : config->world;
    out->grains = replicated ? parts : parts / config->world;
    out->grain_samples = total / config->microbatches / parts;
    if (out->grain_samples == 0) {
        out->grain_samples = 1;
    }
    while (workload_is_exact(config->data) &&
           !is_power_of_two(out->grain_samples)) {
        out->grain_samples &= out->grain_samples - 1;
    }
    if (workload_is_exact(config->data) && !is_power_of_two(out->grains)) {
        return batch_fail(error, FSDP_ERR_INVALID, "workload",
                          "exact data need a power of two of grains a rank, "
                          "not %u",
                          (unsigned)out->grains);
    }
    if (out->grains > FSDP_MAX_GRAINS) {
        return batch_fail(error, FSDP_ERR_INVALID, "workload",
                          "%u grains a rank: at most %d", (unsigned)out->grains,
                          (int)FSDP_MAX_GRAINS);
    }
    out->samples = out->grains * out->grain_samples;
    out->microbatch_samples = parts * out->grain_samples;
    out->step_samples = out->microbatch_samples * config->microbatches;
    return FSDP_OK;
}

uint64_t batch_first(const struct workload_config *config,
                     const struct batch *batch, uint32_t rank,
                     uint32_t microbatch, uint64_t grain)
{
    const uint64_t place = config->data == WORKLOAD_REPLICATED ? 0 : rank;

    return microbatch * batch->microbatch_samples + place * batch->samples +
           grain * batch->grain_samples;
}

uint64_t batch_index(uint32_t step, uint64_t sample, uint64_t width)
{
    return ((uint64_t)step << 32) + sample * width;
}

/* Random words come in blocks of four; a block is made when its first word is
 * asked for. */
struct words {
    uint64_t seed;
    uint32_t stream;
    uint64_t at;
    bool made;
    struct fsdp_philox_out block;
};

static uint32_t next_word(struct words *w)
{
    const uint64_t at = w->at++;

    if (!w->made || at % 4 == 0) {
        w->block = fsdp_random_block(w->seed, w->stream, at / 4);
        w->made = true;
    }
    return w->block.word[at % 4];
}

void batch_uniform(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n,
                   float scale, float *out)
{
    struct words w = {.seed = seed, .stream = stream, .at = index};

    for (uint64_t i = 0; i < n; i++) {
        out[i] = fsdp_uniform_from_bits(next_word(&w)) * scale;
    }
}

void batch_integers(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n,
                    uint32_t bound, float *out)
{
    struct words w = {.seed = seed, .stream = stream, .at = index};
    const uint64_t choices = 2 * (uint64_t)bound + 1;

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t choice = (next_word(&w) * choices) >> 32;

        out[i] = (float)((int64_t)choice - (int64_t)bound);
    }
}

uint64_t batch_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3u;
    }
    return hash;
}
