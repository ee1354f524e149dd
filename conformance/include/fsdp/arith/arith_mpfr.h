/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith_mpfr.h - what the functions of this folder must return, from MPFR; the
 * tests' oracle, not part of the arithmetic.
 *
 * MPFR rounds correctly to 24 bits in an unbounded range of exponents;
 * mpfr_subnormalize then rounds again for the range of float32, and knows from
 * the ternary value where the first rounding went, so that two roundings act
 * as one.
 */
#ifndef FSDP_ARITH_ARITH_MPFR_H
#define FSDP_ARITH_ARITH_MPFR_H

#include <mpfr.h>

#include "bits.h"
#include "exp.h"
#include "log.h"
#include "rsqrt.h"
#include "tanh.h"

struct arith_function {
    const char *name;
    float (*compute)(float x);
    int (*exact)(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode);
};

enum {
    ARITH_EXP,
    ARITH_LOG,
    ARITH_TANH,
    ARITH_RSQRT,
    ARITH_COUNT
};

static const struct arith_function arith_functions[ARITH_COUNT] = {
    [ARITH_EXP] = {"exp", fsdp_expf, mpfr_exp},
    [ARITH_LOG] = {"log", fsdp_logf, mpfr_log},
    [ARITH_TANH] = {"tanh", fsdp_tanhf, mpfr_tanh},
    [ARITH_RSQRT] = {"rsqrt", fsdp_rsqrtf, mpfr_rec_sqrt},
};

struct arith_mpfr {
    mpfr_t x;
    mpfr_t y;
};

/* MPFR's range of exponents is a thread's own: init in the thread that uses. */
static inline void arith_mpfr_init(struct arith_mpfr *mpfr)
{
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_init2(mpfr->x, 24);
    mpfr_init2(mpfr->y, 24);
}

static inline void arith_mpfr_fini(struct arith_mpfr *mpfr)
{
    mpfr_clear(mpfr->x);
    mpfr_clear(mpfr->y);
    mpfr_free_cache();
}

/* The bits of the correctly rounded value; all NaNs are FSDP_F32_NAN. */
static inline uint32_t arith_mpfr_bits(struct arith_mpfr *mpfr,
                                       const struct arith_function *function,
                                       uint32_t x)
{
    int ternary;

    mpfr_set_flt(mpfr->x, fsdp_f32_from_bits(x), MPFR_RNDN);
    ternary = function->exact(mpfr->y, mpfr->x, MPFR_RNDN);
    mpfr_subnormalize(mpfr->y, ternary, MPFR_RNDN);
    if (mpfr_nan_p(mpfr->y)) {
        return FSDP_F32_NAN;
    }
    return fsdp_f32_bits(mpfr_get_flt(mpfr->y, MPFR_RNDN));
}

#endif
