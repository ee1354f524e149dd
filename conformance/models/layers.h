/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - the description that mlp and linear share: a root and a list of
 * modules "layers.N" of class "Linear", each with a weight [in, out], so that
 * y = x W.
 */
#ifndef FSDP_CTS_LAYERS_H
#define FSDP_CTS_LAYERS_H

#include "batch.h"
#include "models/model_build.h"

enum {
    LAYERS_MAX = 4
};

struct layers_size {
    const char *name;
    uint32_t n;
    uint32_t in[LAYERS_MAX], out[LAYERS_MAX];
    bool tracks; /* it has buffers, which each forward writes */
};

/* The workload_model of mlp and of linear. */
struct layers_model {
    struct workload_model base;
    struct model_build *build;
    struct batch batch;
    struct layers_size size;
};

/* Layer u is module u + 1 and has parameter u. There are `n_sizes` sizes to
 * choose from, and the first is the default. Otherwise as workload.describe. */
int layers_describe(const struct workload *workload, const char *root_class,
                    const struct layers_size *sizes, uint32_t n_sizes,
                    uint64_t samples, const struct workload_config *config,
                    int (*initial)(void *context, uint32_t p, uint64_t first,
                                   uint64_t n, void *out),
                    struct workload_model **out, struct fsdp_error *error);

/*
 * The buffers of a size that tracks: how many forwards there were; and for each
 * layer a running mean of its outputs, and the mean of its outputs in the last
 * forward, which is not persisted. The odd layers' running means are stored in
 * bf16.
 */
enum {
    LAYERS_COUNT = 0,
    LAYERS_MEAN = 1, /* + 2 u, of layer u */
    LAYERS_LAST = 2
};
/* Where the count begins: no float32 and no int32 is this number. */
#define LAYERS_FIRST_COUNT (((int64_t)1 << 40) + 5)
void layers_release(struct workload_model *model);

/* Whether parameter p has elements [first, first + n). */
bool layers_slice_ok(const struct layers_model *m, uint32_t p, uint64_t first,
                     uint64_t n);

#endif
