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

/* Fills env->error, unless it is filled already, and returns status. */
__attribute__((format(printf, 4, 5))) int ref_fail(const struct fsdp_env *env,
                                                   int32_t status,
                                                   const char *where,
                                                   const char *format, ...);

/* options.c: reads a struct of the contract as far as the caller, which may
 * have been built against earlier headers, knows its fields; the rest is
 * zero. */
void ref_read(void *to, uint64_t bytes, const void *from, uint32_t size);
/* The same of options, where grad_dtype lies in the padding of earlier
 * structs. */
void ref_read_options(struct fsdp_options *to, const struct fsdp_options *from);
/* The dtypes of a unit's values: its own, else the options', else the defaults
 * (engine.h). None of them is FSDP_DTYPE_NONE. */
struct ref_dtypes {
    uint32_t param;      /* of what is unsharded, and gathered */
    uint32_t grad;       /* of a gradient as it is lent */
    uint32_t accumulate; /* of the sum over microbatches */
    uint32_t reduce;     /* of a gradient on the wire */
    uint32_t sum;        /* of the sums of a reduction */
};
struct ref_dtypes ref_dtypes(const struct fsdp_options *options,
                             const struct fsdp_units *units, uint32_t u);
/* By what a unit's gradient is divided, by its own factors or the options', and
 * the factors that it is multiplied by for that, each rounded once. */
struct ref_divisors {
    float divide, predivide;
};
struct ref_divisors ref_divisors(const struct fsdp_options *options,
                                 const struct fsdp_units *units, uint32_t u,
                                 uint32_t world);
struct ref_factors {
    float before; /* before the fold: 1 / predivide factor */
    float behind; /* after it: predivide factor / divide factor */
};
struct ref_factors ref_factors(struct ref_divisors d);
/* The offload of a unit: FSDP_OFFLOAD_OPTIMIZER, FSDP_OFFLOAD_PARAMS. */
uint32_t ref_offload(const struct fsdp_options *options,
                     const struct fsdp_units *units, uint32_t u);
/* The dtype in which a buffer rests. */
uint32_t ref_buffer_dtype(const struct fsdp_options *options,
                          const struct fsdp_units *units,
                          const struct fsdp_model *model, uint32_t b);
/* options.c: refuses options that do not fit or are not claimed. */
int ref_check(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units,
              const struct fsdp_options *options);

/* optimizer.c: the numbers of a parameter: those of its group, or the
 * options'. */
struct ref_numbers {
    uint32_t group;
    float momentum, beta1, beta2, eps;
    float power[2]; /* running products of beta1, beta2, over the steps that
                     * it took */
};
struct ref_numbers ref_numbers(const struct fsdp_options *options, uint32_t p);
/* Counts one more step of the parameter. */
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

/* early.c: the step of the next pass, as set_step gives it; all zero if there
 * is none. `how` points into `numbers`, which is freed with it. */
struct ref_early {
    bool set; /* it is for the next pass; */
    bool on;  /* it is made in this pass */
    bool counted;
    struct fsdp_step how;
    float *numbers; /* rates, then decays: [n_groups] each */
};
/* Keeps a copy of a step, of as many groups as it says. NOMEM. */
int ref_keep_step(const struct fsdp_env *env, const struct fsdp_step *step,
                  struct ref_early *to);

/* buffers.c: converts n elements in host memory, each rounded once, or widened;
 * between equal dtypes, which may be integers, bytes are copied. */
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
