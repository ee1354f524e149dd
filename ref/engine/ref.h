/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.h - what the two engines of this folder share: the sharded one
 * (sharded.h) and the unsharded run (unsharded.c).
 */
#ifndef FSDP_CTS_REF_H
#define FSDP_CTS_REF_H

#include <fsdp/engine.h>

enum {
    REF_MAX_RANKS = 4096 /* of a world; ref_check refuses more */
};

/* Fills env->error, if nobody did before, and returns status. */
__attribute__((format(printf, 4, 5))) int ref_fail(const struct fsdp_env *env,
                                                   int32_t status,
                                                   const char *where,
                                                   const char *format, ...);

/* options.c: a struct of the contract as far as the caller, who may have been
 * built against earlier headers, knows its fields; the rest is zero. */
void ref_read(void *to, uint64_t bytes, const void *from, uint32_t size);
/* The same of options: grad_dtype lies where an earlier struct was padded. */
void ref_read_options(struct fsdp_options *to, const struct fsdp_options *from);
/* The dtypes of a unit's values: its own, or the options', or what these are
 * by default (engine.h). None is FSDP_DTYPE_NONE. */
struct ref_dtypes {
    uint32_t param;      /* of what is unsharded, and gathered */
    uint32_t grad;       /* of a gradient as it is lent */
    uint32_t accumulate; /* of the sum over microbatches */
    uint32_t reduce;     /* of a gradient on the wire */
    uint32_t sum;        /* of the sums of a reduction */
};
struct ref_dtypes ref_dtypes(const struct fsdp_options *options,
                             const struct fsdp_units *units, uint32_t u);
/* What a unit's gradient is divided by: its own factors, or the options'; and
 * what it is multiplied by for that. Each is rounded once. */
struct ref_divisors {
    float divide, predivide;
};
struct ref_divisors ref_divisors(const struct fsdp_options *options,
                                 const struct fsdp_units *units, uint32_t u,
                                 uint32_t world);
struct ref_factors {
    float before; /* the fold: 1 / predivide factor */
    float behind; /* it: predivide factor / divide factor */
};
struct ref_factors ref_factors(struct ref_divisors d);
/* What of a unit is offloaded: FSDP_OFFLOAD_OPTIMIZER, FSDP_OFFLOAD_PARAMS. */
uint32_t ref_offload(const struct fsdp_options *options,
                     const struct fsdp_units *units, uint32_t u);
/* Of a buffer: as it rests. */
uint32_t ref_buffer_dtype(const struct fsdp_options *options,
                          const struct fsdp_units *units,
                          const struct fsdp_model *model, uint32_t b);
/* options.c: refuses what does not fit, and what is not claimed. */
int ref_check(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units,
              const struct fsdp_options *options);

/* optimizer.c: the numbers of a parameter, which are its group's own, or the
 * options'. */
struct ref_numbers {
    uint32_t group;
    float momentum, beta1, beta2, eps;
    float power[2]; /* running products of beta1, beta2, over the steps that
                     * it took */
};
struct ref_numbers ref_numbers(const struct fsdp_options *options, uint32_t p);
/* It takes a step. */
void ref_count(struct ref_numbers *numbers);

/* optimizer.c: an operator over n elements of a parameter. */
struct ref_hyper {
    uint32_t optimizer;
    float lr, weight_decay;
    struct ref_numbers of;
};
struct ref_hyper ref_hyper(uint32_t optimizer,
                           const struct ref_numbers *numbers, uint32_t flags,
                           const struct fsdp_step *step);
struct fsdp_op ref_optimizer_op(const struct ref_hyper *h, uint64_t n,
                                const float *g, float *w, float *const *state);
uint32_t ref_optimizer_states(uint32_t optimizer); /* 0, 1 or 2 */

/* early.c: the step of the next pass, as set_step gives it; zeroed, there is
 * none. `how` points to `numbers`, which are freed with it. */
struct ref_early {
    bool set; /* for the next pass; */
    bool on;  /* in this pass */
    bool counted;
    struct fsdp_step how;
    float *numbers; /* rates, then decays: [n_groups] each */
};
/* Copied, of so many groups. NOMEM. */
int ref_keep_step(const struct fsdp_env *env, const struct fsdp_step *step,
                  struct ref_early *to);

/* buffers.c: n elements in host memory, each rounded once, or widened; of equal
 * dtypes, of integers too, the same bytes. */
void ref_convert_host(uint64_t n, uint32_t from, const void *x, uint32_t to,
                      void *y);

/* storage.c: data of a dtype in the shape of parameter p. */
struct fsdp_tensor ref_tensor(const struct fsdp_env *env,
                              const struct fsdp_model *model, uint32_t p,
                              uint32_t dtype, void *data);

/* env->device = a device of plain loops; and back. */
int ref_open(struct fsdp_env *env);
void ref_close(struct fsdp_env *env);

/* The engines, as the contract sees them. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);

#endif
