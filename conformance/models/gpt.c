/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt.c - a byte-level, decoder-only transformer that learns a text: embedding
 * of bytes and positions, blocks of attention and MLP with the norms in front
 * (pre-norm), a last norm, a head of its own. Here: its config and its data.
 *
 * A step has 8 windows of the text, or one per grain if there are more of
 * those. The text is cut into as many parts as there are windows, and each part
 * has one window, at another place at every step: so the windows of a step
 * differ, and those of steps soon after one another, too. The loss is the mean
 * over positions. There are no exact data: softmax rounds.
 *
 * And lora: gpt that is tuned by low-rank matrices beside those of its blocks
 * (Hu et al., arXiv 2106.09685).
 */
#include "gpt.h"
#include "workload_list.h"

#include <fsdp/arith/philox.h>
#include <stdlib.h>

enum {
    GPT_SAMPLES = 8
};

/* How many places there are where a window may start: one byte must follow
 * it. */
static uint64_t places(const struct gpt_model *m)
{
    return m->base.config.text_bytes > m->size.time
               ? m->base.config.text_bytes - m->size.time
               : 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/*
 * The first byte of a step's sample: a walk through the sample's part of the
 * text, from a random place in strides that have no divisor in common with
 * the part's extent, so that all of it is seen before a window comes again.
 */
static const unsigned char *window(const struct gpt_model *m, uint32_t step,
                                   uint64_t sample)
{
    const uint64_t parts = m->batch.step_samples;
    const uint64_t low = places(m) * sample / parts;
    const uint64_t extent = places(m) * (sample + 1) / parts - low;
    const uint64_t random =
        fsdp_random_bits(m->base.config.seed, BATCH_INPUT, sample);
    uint64_t stride = extent / 2 + extent / 8;

    while (stride > 1 && common_divisor(extent, stride) != 1) {
        stride--;
    }
    stride = stride > 0 ? stride : 1;
    /* No extent is 0: fill refuses a text with fewer places than samples.
     * NOLINTBEGIN(clang-analyzer-core.DivideZero) */
    return (const unsigned char *)m->base.config.text + low +
           (random + step % extent * stride) % extent;
    /* NOLINTEND(clang-analyzer-core.DivideZero) */
}

void gpt_draw(const struct gpt_model *m, uint32_t step, uint64_t first,
              uint64_t n, int32_t *id, int32_t *target)
{
    const uint64_t time = m->size.time;

    for (uint64_t i = 0; i < n; i++) {
        const unsigned char *text = window(m, step, first + i);

        for (uint64_t t = 0; t < time; t++) {
            id[i * time + t] = text[t];
            target[i * time + t] = text[t + 1];
        }
    }
}

static void gpt_release(struct workload_model *model)
{
    if (model) {
        struct gpt_model *m = model->self;

        model_build_destroy(m->build);
        free(m);
    }
}

/* A sixteenth of the width, as is usual, but no less than 2. */
static uint32_t lora_rank(const struct gpt_size *size)
{
    return size->width >= 32 ? size->width / 16 : 2;
}

static int fill(struct gpt_model *m, struct fsdp_error *error)
{
    struct workload_config *config = &m->base.config;
    struct gpt_size size;
    bool known = gpt_size_find(config->size, &size);

    if (config->data != WORKLOAD_NATURAL &&
        config->data != WORKLOAD_REPLICATED) {
        return batch_fail(error, FSDP_ERR_INVALID, "gpt",
                          "data of kind %u are not offered",
                          (unsigned)config->data);
    }
    if (!known) {
        return batch_fail(error, FSDP_ERR_INVALID, "gpt",
                          "no size \"%s\"; the first is \"%s\"", config->size,
                          gpt_size_names[0]);
    }
    m->size = size;
    m->rank = m->base.workload == &workload_lora ? lora_rank(&size) : 0;
    config->size = size.name;
    if (!config->text) {
        return batch_fail(error, FSDP_ERR_INVALID, "gpt",
                          "gpt needs a text to learn, and got none");
    }
    FSDP_TRY(batch_plan(config, GPT_SAMPLES, &m->batch, error));
    if (places(m) < m->batch.step_samples ||
        places(m) > UINT64_MAX / (m->batch.step_samples + 1)) {
        return batch_fail(error, FSDP_ERR_INVALID, "gpt",
                          "a text of %llu bytes does not have %llu windows of "
                          "%u",
                          (unsigned long long)config->text_bytes,
                          (unsigned long long)m->batch.step_samples,
                          (unsigned)size.time);
    }
    m->build = model_build_create();
    if (!m->build || gpt_build(m) != FSDP_OK) {
        return batch_fail(error, FSDP_ERR_NOMEM, "gpt",
                          "no memory for the description");
    }
    return FSDP_OK;
}

static int describe(const struct workload *workload,
                    const struct workload_config *config,
                    struct workload_model **out, struct fsdp_error *error)
{
    struct gpt_model *m = calloc(1, sizeof(*m));
    int status;

    *out = NULL;
    if (!m) {
        return batch_fail(error, FSDP_ERR_NOMEM, "gpt",
                          "no memory for the description");
    }
    m->base.workload = workload;
    m->base.config = *config;
    m->base.self = m;
    status = fill(m, error);
    if (status != FSDP_OK) {
        gpt_release(&m->base);
        return status;
    }
    *out = &m->base;
    return FSDP_OK;
}

static int gpt_describe(const struct workload_config *config,
                        struct workload_model **out, struct fsdp_error *error)
{
    return describe(&workload_gpt, config, out, error);
}

static int lora_describe(const struct workload_config *config,
                         struct workload_model **out, struct fsdp_error *error)
{
    return describe(&workload_lora, config, out, error);
}

static uint64_t gpt_digest(const struct workload_model *model, uint32_t rank,
                           uint32_t step, uint32_t microbatch, uint32_t grain)
{
    const struct gpt_model *m = model->self;
    const uint64_t n = m->batch.grain_samples;
    const uint64_t rows = n * m->size.time;
    int32_t *data = calloc(2 * rows, sizeof(*data));
    uint64_t hash;

    if (!data) {
        return 0;
    }
    gpt_draw(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, grain),
             n, data, data + rows);
    hash = batch_hash(batch_hash_start, data, 2 * rows * sizeof(*data));
    free(data);
    return hash;
}

static int gpt_samples(const struct workload_model *model, uint32_t rank,
                       uint32_t step, uint32_t microbatch,
                       int (*visit)(void *context,
                                    const struct workload_samples *samples),
                       void *context)
{
    const struct gpt_model *m = model->self;
    const uint64_t n = m->batch.samples;
    const uint64_t time = m->size.time;
    int32_t *id = calloc(2 * n * time, sizeof(*id));
    struct workload_samples s = {"id", "I32", 2, {n, time}, id};
    int status;

    if (!id) {
        return FSDP_ERR_NOMEM;
    }
    gpt_draw(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, 0), n,
             id, id + n * time);
    status = visit(context, &s);
    if (status == FSDP_OK) {
        s = (struct workload_samples){
            "target", "I32", 2, {n, time}, id + n * time};
        status = visit(context, &s);
    }
    free(id);
    return status;
}

const struct workload workload_gpt = {
    .name = "gpt",
    .summary = "byte-level transformer on a text, cross entropy",
    .sizes = gpt_size_names,
    .data_kinds = 1u << WORKLOAD_NATURAL | 1u << WORKLOAD_REPLICATED,
    .freezes = 1u << WORKLOAD_FROZEN_PREFIX | 1u << WORKLOAD_FROZEN_ALTERNATE |
               1u << WORKLOAD_FROZEN_MATRICES | 1u << WORKLOAD_FROZEN_BODY,
    .recomputes = 1u << WORKLOAD_RECOMPUTE_BLOCK |
                  1u << WORKLOAD_RECOMPUTE_AROUND |
                  1u << WORKLOAD_RECOMPUTE_PAIR | 1u << WORKLOAD_RECOMPUTE_HALF,
    .describe = gpt_describe,
    .release = gpt_release,
    .open = gpt_open,
    .begin = gpt_begin,
    .compute = gpt_compute,
    .end = gpt_end,
    .close = gpt_close,
    .digest = gpt_digest,
    .samples = gpt_samples,
};

const struct workload workload_lora = {
    .name = "lora",
    .summary = "gpt with two small matrices beside each one of its blocks",
    .sizes = lora_size_names,
    .data_kinds = 1u << WORKLOAD_NATURAL | 1u << WORKLOAD_REPLICATED,
    .freezes = 1u << WORKLOAD_FROZEN_BASE,
    .recomputes = 1u << WORKLOAD_RECOMPUTE_BLOCK |
                  1u << WORKLOAD_RECOMPUTE_AROUND |
                  1u << WORKLOAD_RECOMPUTE_PAIR | 1u << WORKLOAD_RECOMPUTE_HALF,
    .describe = lora_describe,
    .release = gpt_release,
    .open = gpt_open,
    .begin = gpt_begin,
    .compute = gpt_compute,
    .end = gpt_end,
    .close = gpt_close,
    .digest = gpt_digest,
    .samples = gpt_samples,
};
