/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.h - the gradient norm of engine.h: sums without rounding, so that no
 * order and no world changes them, and one rounding at the end.
 */
#ifndef FSDP_CTS_NORM_H
#define FSDP_CTS_NORM_H

#include "ref/engine/ref.h"

enum {
    /* 32 bits each, from 2^-300 on: squares of float32 reach 2^256, and 2^64
     * of them are more than there can be. */
    REF_SUM_DIGITS = 20
};

/* A rank's part of a norm, which ranks tell each other. */
struct ref_sum {
    uint32_t digit[REF_SUM_DIGITS]; /* p = 1, 2: the sum of finite |x|^p */
    float largest;                  /* of |x|; NaN if any x is */
};

/* Adds |fl(x * factor)|^p of n elements: 1 for x as it is. p is 1 or 2; under
 * infinity `largest` is all that counts. */
void ref_sum_add(struct ref_sum *sum, float p, float factor, const float *x,
                 uint64_t n);
/* Adds the sum that another rank has. */
void ref_sum_merge(struct ref_sum *sum, const struct ref_sum *other);
/* The p-th root, to the nearest float32, ties to even. */
float ref_sum_root(const struct ref_sum *sum, float p);

/* The factor by which a clip multiplies gradients before it measures them: the
 * inverse of the loss's scale, or 1. */
float ref_clip_scale(const struct fsdp_clip *clip);
/* Sets the factor that gradients are multiplied by. Returns false if they stay
 * as they are, which they do, too, if a loss was scaled and the norm is not
 * finite. */
bool ref_clip_factor(const struct fsdp_clip *clip, float norm, float *factor);
/* INVALID: a max_norm, a p or an inverse_scale that engine.h does not know. */
int ref_check_clip(const struct fsdp_env *env, const struct fsdp_clip *clip);
/* A clip as far as the caller, which may have been built against earlier
 * headers, knew its fields; the rest is 0. */
struct fsdp_clip ref_read_clip(const struct fsdp_clip *clip);
/* INVALID unless it is a positive number, or 0 for none. */
int ref_check_scale(const struct fsdp_env *env, const char *where,
                    float inverse_scale);
/* Whether none of n elements is infinite or NaN. */
bool ref_all_finite(const float *x, uint64_t n);
/* INVALID: a norm that is not finite, where that is to be an error. */
int ref_check_norm(const struct fsdp_env *env, const struct fsdp_clip *clip,
                   float norm);
/* SCALE of n elements in place. */
struct fsdp_op ref_scale_op(uint32_t unit, float *x, uint64_t n, float factor);

#endif
