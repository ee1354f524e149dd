/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt.h - what the files of the workloads gpt and lora share: sizes, and the
 * numbers of modules and parameters.
 */
#ifndef FSDP_CTS_GPT_H
#define FSDP_CTS_GPT_H

#include "batch.h"
#include "compute.h"
#include "models/model_build.h"

enum {
    GPT_VOCABULARY = 256,
    GPT_WIDEN = 4 /* MLP: width * 4 */
};

struct gpt_size {
    const char *name;
    uint32_t width, heads, time, blocks;
    bool tied; /* the head's weight is the embedding's */
};

struct gpt_model {
    struct workload_model base;
    struct model_build *build;
    struct batch batch; /* samples are windows of the text */
    struct gpt_size size;
    uint32_t rank; /* lora: that of the matrices beside a block's; else 0 */
    uint32_t part; /* being built: the embedding, a block, or the rest */
};

/* Modules: the root, "embed", the blocks with four modules below each, "norm",
 * "head". */
enum {
    GPT_ROOT = 0,
    GPT_EMBED = 1,
    GPT_FIRST_BLOCK = 2,
    GPT_MODULES_A_BLOCK = 5,
};
enum gpt_part { /* of a block */
    GPT_BLOCK = 0,
    GPT_NORM1 = 1,
    GPT_ATTENTION = 2,
    GPT_NORM2 = 3,
    GPT_MLP = 4,
};

/* Parameters: wte, wpe, twelve a block, the last norm's two, the head's. In
 * lora each matrix of a block has two small ones beside it, behind its bias:
 * down [n_in, rank] and up [rank, n_out], so that y = x W + b + (x down) up. */
enum {
    GPT_WTE = 0,
    GPT_WPE = 1,
    GPT_FIRST_BLOCK_PARAMETER = 2,
    GPT_PARAMETERS_A_BLOCK = 12,
    GPT_MATRICES_A_BLOCK = 4,
    GPT_BESIDE = 2, /* behind a matrix */
};
enum gpt_parameter { /* of a block */
    GPT_GAMMA1 = 0,
    GPT_BETA1 = 1,
    GPT_QKV = 2,
    GPT_QKV_BIAS = 3,
    GPT_PROJECT = 4,
    GPT_PROJECT_BIAS = 5,
    GPT_GAMMA2 = 6,
    GPT_BETA2 = 7,
    GPT_UP = 8,
    GPT_UP_BIAS = 9,
    GPT_DOWN = 10,
    GPT_DOWN_BIAS = 11,
};

static inline uint32_t gpt_parameter(const struct gpt_model *m, uint32_t block,
                                     enum gpt_parameter which)
{
    const uint32_t before = which >= GPT_DOWN      ? 3u
                            : which >= GPT_GAMMA2  ? 2u
                            : which >= GPT_PROJECT ? 1u
                                                   : 0u;
    const uint32_t matrices = before + block * GPT_MATRICES_A_BLOCK;

    return GPT_FIRST_BLOCK_PARAMETER + block * GPT_PARAMETERS_A_BLOCK +
           (uint32_t)which + (m->rank > 0 ? 2 * matrices : 0);
}

/* The parameter behind the last block's: norm.gamma; + 1: norm.beta; + 2:
 * head.weight, which may be another name of GPT_WTE. */
static inline uint32_t gpt_last_parameters(const struct gpt_model *m)
{
    return gpt_parameter(m, m->size.blocks, GPT_GAMMA1);
}

/* The module behind the last block's: "norm"; + 1: "head". */
static inline uint32_t gpt_last_modules(const struct gpt_model *m)
{
    return GPT_FIRST_BLOCK + m->size.blocks * GPT_MODULES_A_BLOCK;
}

/* gpt_model.c */
extern const char *const gpt_size_names[]; /* NULL-ended */
extern const char *const lora_size_names[];
/* NULL is the first one's name; "1b-40" is "1b" with 40 blocks. */
bool gpt_size_find(const char *name, struct gpt_size *out);
int gpt_build(struct gpt_model *m);

/* gpt_compute.c */
int gpt_open(const struct workload_model *model,
             const struct fsdp_device *device, struct fsdp_stream *stream,
             const struct workload_access *access, struct fsdp_error *error,
             struct workload_run **out);
int gpt_begin(struct workload_run *run, uint32_t rank, uint32_t step,
              uint32_t microbatch);
int gpt_compute(struct workload_run *run, uint32_t point, uint32_t module);
int gpt_end(struct workload_run *run, float *out_loss);
void gpt_close(struct workload_run *run);

/* gpt.c: windows [first, first + n) of a step: bytes, and those after them. */
void gpt_draw(const struct gpt_model *m, uint32_t step, uint64_t first,
              uint64_t n, int32_t *id, int32_t *target);

#endif
