/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.h - what the compute parts of all workloads share: activations,
 * weights and gradients, and one short call for each operator, which works out
 * the operands' ranges from the dimensions.
 *
 * compute_alloc gives storage between compute_open and compute_begin, and
 * compute_close takes it back. It is live from compute_begin to compute_end;
 * storage of an activation checkpoint is live only where the model says so
 * (compute_enter).
 */
#ifndef FSDP_CTS_COMPUTE_H
#define FSDP_CTS_COMPUTE_H

#include "workload.h"

struct compute_buffer {
    void *p;
    uint64_t bytes;
    uint32_t checkpoint; /* the activation checkpoint that recomputes it; 0: it
                          * is kept */
    bool live;
};

/* The kinds of tensors that an engine may lend a model in 16 bits. */
enum compute_lent {
    COMPUTE_PARAM = 0,
    COMPUTE_GRAD = 1,
    COMPUTE_BUFFER = 2,
};

/* The float32 copy of a parameter, a gradient or a buffer that the engine lends
 * in 16 bits. */
struct compute_wide {
    uint32_t index; /* number of the parameter or buffer */
    uint32_t what;  /* enum compute_lent */
    float *wide;    /* [n] */
    void *narrow;   /* what the engine lent last; NULL once it is written */
    uint32_t dtype; /* of that */
    uint64_t n;
};

struct compute {
    const struct fsdp_device *device;
    struct fsdp_stream *stream;
    struct workload_access access;
    const struct fsdp_model *model;
    struct fsdp_error *error;
    uint64_t grains; /* of a rank and microbatch */
    struct compute_buffer *buffer;
    uint32_t n_buffers;
    uint32_t checkpoint;       /* of the next allocation; the opener sets it */
    struct compute_wide *wide; /* [n_wide]: copies of what is lent in 16 bits */
    uint32_t n_wide;
    float **held;   /* [n_parameters]: ignored ones, on the device; or NULL */
    float *initial; /* all ignored ones on the host, one behind the other */
    float *sum;     /* the loss, on the device */
    bool live;      /* between begin and end */
    bool have_loss; /* the pass came as far as the loss */
};

int compute_open(struct compute *c, const struct fsdp_model *model,
                 const struct fsdp_device *device, struct fsdp_stream *stream,
                 const struct workload_access *access, uint64_t grains,
                 struct fsdp_error *error);
/* Gives storage of `n` elements of 4 bytes. */
int compute_alloc(struct compute *c, uint64_t n, void *out);
void compute_close(struct compute *c);

int compute_begin(struct compute *c);
/* An activation checkpoint's storage is live while its modules are computed in
 * the forward, and from their recomputation until their backward is done. For
 * checkpoint 0, which is none, these do nothing. */
void compute_enter(struct compute *c, uint32_t checkpoint);
void compute_leave(struct compute *c, uint32_t checkpoint);
/* Copies n elements of 4 bytes to the device; the caller leaves `from` as it is
 * until compute_end. */
int compute_upload(struct compute *c, void *to, const void *from, uint64_t n);
/* The loss: the column sum of scale * row_loss. Rows are scaled before they are
 * summed, as gradients are: a scale that is no power of two, applied to each
 * rank's sum, would round once in each rank, and the curve would depend on the
 * world. */
int compute_loss(struct compute *c, float *row_loss, uint64_t rows,
                 float scale);
/* Fetches the loss, which is NaN if the pass did not come that far, and waits
 * for the stream. All activations are dead afterwards, even if something
 * fails. */
int compute_end(struct compute *c, float *out_loss);

/* The whole of parameter p, or of its gradient: float32, dense. Operators take
 * float32: a parameter that the engine lends in 16 bits is widened, and
 * compute_lent_back writes a 16 bit gradient from the float32 one, rounded
 * once. A frozen parameter has no gradient: *out is NULL, and the engine is not
 * asked. Nor is it for an ignored parameter, which is held here, with its
 * initial values. */
int compute_param(struct compute *c, uint32_t p, const float **out);
int compute_grad(struct compute *c, uint32_t p, float **out);
/* Buffer b as the engine lends it, NULL if the model leaves it alone. The
 * second is for floating point, and gives float32: a buffer that is lent in 16
 * bits is widened, and compute_lent_back writes the float32 one to it, rounded
 * once. */
int compute_buffer(struct compute *c, uint32_t b, void **out);
int compute_float_buffer(struct compute *c, uint32_t b, float **out);
/* A module has computed: writes what was lent in 16 bits, so that the engine
 * has the module's gradients and buffers. */
int compute_lent_back(struct compute *c);
/* Copies to host memory, and waits for that; and from host memory, where the
 * caller leaves `from` as it is until compute_end. */
int compute_fetch(struct compute *c, void *to, const void *from,
                  uint64_t bytes);
int compute_store(struct compute *c, void *to, const void *from,
                  uint64_t bytes);
int compute_copy(struct compute *c, uint64_t n, const float *x, float *y);

/* Operators, see op.h. */
int compute_scale(struct compute *c, uint64_t n, float factor,
                  float *x); /* in place */
int compute_cast(struct compute *c, uint64_t n, uint32_t from, const void *x,
                 uint32_t to, void *y);
int compute_add(struct compute *c, uint64_t n, const float *a, const float *b,
                float *y);
int compute_gemm(struct compute *c, uint64_t m, uint64_t n, uint64_t k,
                 const float *a, const float *b, float *out);
/* B is [n, k]. */
int compute_gemm_transposed(struct compute *c, uint64_t m, uint64_t n,
                            uint64_t k, const float *a, const float *b,
                            float *out);
int compute_gemm_grad(struct compute *c, uint64_t m, uint64_t n, uint64_t rows,
                      const float *x, const float *g, float *w);
int compute_bias(struct compute *c, uint64_t rows, uint64_t n, float *y,
                 const float *b); /* in place */
int compute_column_sum(struct compute *c, uint64_t rows, uint64_t n,
                       const float *x, float *s);
/* The mean over `rows` rows, those of one grain, however many the batch has. */
int compute_column_mean(struct compute *c, uint64_t rows, uint64_t n,
                        const float *x, float *mean);
int compute_relu(struct compute *c, uint64_t n, const float *x, float *y);
int compute_relu_backward(struct compute *c, uint64_t n, const float *x,
                          float *dy); /* in place */
int compute_gelu(struct compute *c, uint64_t n, const float *x, float *y);
int compute_gelu_backward(struct compute *c, uint64_t n, const float *x,
                          float *dy); /* in place */
int compute_norm(struct compute *c, uint64_t rows, uint64_t n, float eps,
                 const float *x, const float *gamma, const float *beta,
                 float *y, float *stat);
int compute_norm_backward(struct compute *c, uint64_t rows, uint64_t n,
                          const float *x, const float *gamma, const float *stat,
                          const float *dy, float *dx);
int compute_norm_grad(struct compute *c, uint64_t rows, uint64_t n,
                      const float *x, const float *stat, const float *dy,
                      float *dgamma, float *dbeta);

struct compute_embedding {
    uint64_t rows, n, period, vocabulary;
};
int compute_embedding(struct compute *c, const struct compute_embedding *e,
                      const int32_t *id, const float *table,
                      const float *position, float *y);
int compute_embedding_grad(struct compute *c, const struct compute_embedding *e,
                           const int32_t *id, const float *dy, float *dtable,
                           float *dposition);

struct compute_attention {
    uint64_t batch, time, heads, head_dim;
    float scale;
};
int compute_attention(struct compute *c, const struct compute_attention *a,
                      const float *qkv, float *o, float *stat);
int compute_attention_backward(struct compute *c,
                               const struct compute_attention *a,
                               const float *qkv, const float *o,
                               const float *stat, const float *d_o,
                               float *dqkv);

int compute_mse(struct compute *c, uint64_t rows, uint64_t n, float scale,
                const float *y, const float *target, float *row_loss,
                float *dy);
int compute_linear_loss(struct compute *c, uint64_t rows, uint64_t n,
                        float scale, const float *y, const float *coefficient,
                        float *row_loss, float *dy);
int compute_cross_entropy(struct compute *c, uint64_t rows, uint64_t n,
                          float scale, float *logits, const int32_t *id,
                          float *row_loss); /* dlogits takes logits' place */

#endif
