/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_model.c - gpt's sizes, its tree of modules and parameters, and its
 * initial weights.
 */
#include "gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * "odd": biases are smaller than eight ranks, and the model (3455 elements), a
 * block (365) and what is outside of blocks (2725) are multiples of none of 2,
 * 3, 4 and 7. "tall": "tiny" with one block more, to measure how memory grows
 * with blocks. "tied": "odd", but the head's weight is the embedding of bytes.
 * "deep": more than 64 layers, each of few elements. "even": each parameter has
 * a multiple of 4 elements, so that it lies in the same place for an engine
 * that begins each at a multiple of 16 bytes. "bench": 3.3 million elements,
 * "124m": 122, "1b": 1212 million, for measurements alone: no case names these,
 * nor a size with another number of blocks.
 */
enum {
    MOST_BLOCKS = 4096
};
static const struct gpt_size sizes[] = {
    {"odd", 5, 1, 31, 2, false},       {"tiny", 20, 2, 16, 2, false},
    {"tall", 20, 2, 16, 3, false},     {"small", 64, 4, 64, 4, false},
    {"bench", 256, 8, 128, 4, false},  {"124m", 768, 12, 1024, 17, false},
    {"1b", 2048, 32, 1024, 24, false}, {"tied", 5, 1, 31, 2, true},
    {"deep", 3, 1, 7, 16, false},      {"even", 4, 1, 8, 2, false},
};
const char *const gpt_size_names[] = {"odd",  "tiny", "tall", "small",
                                      "tied", "deep", NULL};
const char *const lora_size_names[] = {"odd", "small", "even", NULL};

/* Reads what stands behind "-" in a size: a number of blocks. */
static bool parse_blocks(const char *text, uint32_t *out)
{
    uint32_t n = 0;

    for (; *text >= '0' && *text <= '9' && n <= MOST_BLOCKS; text++) {
        n = 10 * n + (uint32_t)(*text - '0');
    }
    *out = n;
    return *text == '\0' && n >= 1 && n <= MOST_BLOCKS;
}

bool gpt_size_find(const char *name, struct gpt_size *out)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = strlen(sizes[i].name);
        *out = sizes[i];
        if (!name) {
            return true;
        }
        if (strncmp(name, sizes[i].name, n) == 0 &&
            (name[n] == '\0' ||
             (name[n] == '-' && parse_blocks(name + n + 1, &out->blocks)))) {
            return true;
        }
    }
    return false;
}

/* Adds FSDP_FROZEN if the part being built is frozen; parts are the embedding,
 * each block, and the rest. */
static uint32_t frozen_or(const struct gpt_model *m, bool is_vector,
                          uint32_t flags)
{
    return workload_is_frozen(m->base.config.frozen, m->part,
                              m->size.blocks + 2, is_vector)
               ? flags | FSDP_FROZEN
               : flags;
}

static void matrix(struct gpt_model *m, int32_t module, const char *name,
                   uint64_t rows, uint64_t columns)
{
    const uint64_t shape[] = {rows, columns};

    model_build_parameter(m->build, name, module, FSDP_DTYPE_F32,
                          frozen_or(m, false, 0), 2, shape);
}

/* Adds a vector, which is not decayed, as is usual for parameters that are no
 * matrices. */
static void vector(struct gpt_model *m, int32_t module, const char *name,
                   uint64_t n)
{
    model_build_parameter(m->build, name, module, FSDP_DTYPE_F32,
                          frozen_or(m, true, FSDP_NO_DECAY), 1, &n);
}

/* Adds lora's two matrices beside a matrix of a block; they are never frozen
 * with the rest. */
static void beside(struct gpt_model *m, int32_t module, const char *matrix,
                   uint64_t n_in, uint64_t n_out)
{
    const uint64_t down[] = {n_in, m->rank};
    const uint64_t up[] = {m->rank, n_out};
    char name[80];

    if (m->rank > 0) {
        snprintf(name, sizeof(name), "%s.down", matrix);
        model_build_parameter(m->build, name, module, FSDP_DTYPE_F32, 0, 2,
                              down);
        snprintf(name, sizeof(name), "%s.up", matrix);
        model_build_parameter(m->build, name, module, FSDP_DTYPE_F32, 0, 2, up);
    }
}

static const char *join(char full[64], uint32_t block, const char *name)
{
    snprintf(full, 64, "blocks.%u%s", (unsigned)block, name);
    return full;
}

static void build_block(struct gpt_model *m, uint32_t b)
{
    const uint64_t d = m->size.width;
    struct model_build *build = m->build;
    char s[64];
    const int32_t block =
        model_build_module(build, join(s, b, ""), "Block", GPT_ROOT);
    int32_t at;

    at = model_build_module(build, join(s, b, ".norm1"), "LayerNorm", block);
    vector(m, at, join(s, b, ".norm1.gamma"), d);
    vector(m, at, join(s, b, ".norm1.beta"), d);
    at = model_build_module(build, join(s, b, ".attn"), "Attention", block);
    matrix(m, at, join(s, b, ".attn.qkv.weight"), d, 3 * d);
    vector(m, at, join(s, b, ".attn.qkv.bias"), 3 * d);
    beside(m, at, join(s, b, ".attn.qkv"), d, 3 * d);
    matrix(m, at, join(s, b, ".attn.project.weight"), d, d);
    vector(m, at, join(s, b, ".attn.project.bias"), d);
    beside(m, at, join(s, b, ".attn.project"), d, d);
    at = model_build_module(build, join(s, b, ".norm2"), "LayerNorm", block);
    vector(m, at, join(s, b, ".norm2.gamma"), d);
    vector(m, at, join(s, b, ".norm2.beta"), d);
    at = model_build_module(build, join(s, b, ".mlp"), "MLP", block);
    matrix(m, at, join(s, b, ".mlp.up.weight"), d, GPT_WIDEN * d);
    vector(m, at, join(s, b, ".mlp.up.bias"), GPT_WIDEN * d);
    beside(m, at, join(s, b, ".mlp.up"), d, GPT_WIDEN * d);
    matrix(m, at, join(s, b, ".mlp.down.weight"), GPT_WIDEN * d, d);
    vector(m, at, join(s, b, ".mlp.down.bias"), d);
    beside(m, at, join(s, b, ".mlp.down"), GPT_WIDEN * d, d);
}

/* Blocks are recomputed as a whole, or only the modules in them. */
static int build_recompute(struct gpt_model *m, uint32_t n_modules)
{
    const uint32_t recompute = m->base.config.recompute;
    const bool inside = recompute == WORKLOAD_RECOMPUTE_BLOCK;
    uint32_t *checkpoint;
    int status;

    if (recompute == WORKLOAD_KEEPS) {
        return FSDP_OK;
    }
    checkpoint = calloc(n_modules, sizeof(*checkpoint));
    for (uint32_t b = 0; checkpoint && b < m->size.blocks; b++) {
        for (uint32_t i = inside ? 1 : 0; i < GPT_MODULES_A_BLOCK; i++) {
            checkpoint[GPT_FIRST_BLOCK + b * GPT_MODULES_A_BLOCK + i] =
                workload_checkpoint(recompute, b);
        }
    }
    status = checkpoint ? model_build_recompute(m->build, checkpoint)
                        : FSDP_ERR_NOMEM;
    free(checkpoint);
    return status;
}

enum gpt_init {
    GPT_INIT_EMBEDDING,
    GPT_INIT_MATRIX,
    GPT_INIT_ONE,
    GPT_INIT_0
};

/* Whether p is the second of lora's two matrices, which begins small, so that
 * the two add little at first. */
static bool is_up(const struct gpt_model *m, uint32_t p)
{
    static const enum gpt_parameter matrix[] = {GPT_QKV, GPT_PROJECT, GPT_UP,
                                                GPT_DOWN};

    for (uint32_t b = 0; m->rank > 0 && b < m->size.blocks; b++) {
        for (uint32_t i = 0; i < GPT_MATRICES_A_BLOCK; i++) {
            if (p == gpt_parameter(m, b, matrix[i]) + GPT_BESIDE + 1) {
                return true;
            }
        }
    }
    return false;
}

static enum gpt_init init_of(const struct gpt_model *m, uint32_t p)
{
    const uint32_t last = gpt_last_parameters(m);

    if (p == GPT_WTE || p == GPT_WPE) {
        return GPT_INIT_EMBEDDING;
    }
    if (is_up(m, p)) {
        return GPT_INIT_0;
    }
    if (m->base.model.parameter_n_dims[p] == 2) {
        return GPT_INIT_MATRIX;
    }
    const uint32_t first = gpt_parameter(m, 0, GPT_GAMMA1);
    const uint32_t in_block =
        (p - first) % (gpt_parameter(m, 1, GPT_GAMMA1) - first);

    return p == last || (p < last &&
                         (in_block == 0 ||
                          in_block == gpt_parameter(m, 0, GPT_GAMMA2) - first))
               ? GPT_INIT_ONE
               : GPT_INIT_0;
}

/* Gains are near 1, biases near 0, and none exactly: an element that got lost
 * or was taken for its neighbour shows from the first step on. */
static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    const struct gpt_model *m = context;
    const struct fsdp_model *model = &m->base.model;
    const uint64_t seed = m->base.config.seed;
    float *w = out;

    if (p >= model->n_parameters || first > fsdp_numel(model, p) ||
        n > fsdp_numel(model, p) - first) {
        return FSDP_ERR_INVALID;
    }
    if (model->parameter_alias[p] >= 0) { /* as its original */
        p = (uint32_t)model->parameter_alias[p];
    }
    switch (init_of(m, p)) {
    case GPT_INIT_EMBEDDING:
        batch_uniform(seed, p, first, n, 0.5f, w);
        break;
    case GPT_INIT_MATRIX:
        batch_uniform(seed, p, first, n,
                      sqrtf(1.0f / (float)model->parameter_shape[p][0]), w);
        break;
    case GPT_INIT_ONE:
        batch_uniform(seed, p, first, n, 0.0625f, w);
        for (uint64_t i = 0; i < n; i++) {
            w[i] += 1.0f;
        }
        break;
    case GPT_INIT_0:
        batch_uniform(seed, p, first, n, 0.03125f, w);
        break;
    }
    return FSDP_OK;
}

int gpt_build(struct gpt_model *m)
{
    const uint64_t d = m->size.width;
    int32_t at;

    m->part = 0;
    model_build_module(m->build, "gpt", "GPT", -1);
    at = model_build_module(m->build, "embed", "Embedding", GPT_ROOT);
    matrix(m, at, "embed.wte", GPT_VOCABULARY, d);
    matrix(m, at, "embed.wpe", m->size.time, d);
    for (uint32_t b = 0; b < m->size.blocks; b++) {
        m->part++;
        build_block(m, b);
    }
    m->part++;
    at = model_build_module(m->build, "norm", "LayerNorm", GPT_ROOT);
    vector(m, at, "norm.gamma", d);
    vector(m, at, "norm.beta", d);
    at = model_build_module(m->build, "head", "Linear", GPT_ROOT);
    if (m->size.tied) {
        model_build_tied(m->build, "head.weight", at, GPT_WTE);
    } else {
        matrix(m, at, "head.weight", d, GPT_VOCABULARY);
    }
    FSDP_TRY(build_recompute(m, (uint32_t)at + 1));
    FSDP_TRY(model_build_finish(m->build, &m->base.model));
    m->base.model.initial = initial;
    m->base.model.context = m;
    return FSDP_OK;
}
