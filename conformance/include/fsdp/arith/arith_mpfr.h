/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith_mpfr.h - what the functions of this folder must return, from MPFR; the
 * tests' oracle, not part of the arithmetic.
 *
 * MPFR rounds correctly to a format's precision in a wide range of exponents;
 * mpfr_check_range and mpfr_subnormalize then round again for the range of the
 * format, and know from the ternary value where the first rounding went, so
 * that two roundings act as one.
 */
#ifndef FSDP_ARITH_ARITH_MPFR_H
#define FSDP_ARITH_ARITH_MPFR_H

#include <mpfr.h>

#include "bf16.h"
#include "bits.h"
#include "exp.h"
#include "f16.h"
#include "log.h"
#include "rsqrt.h"
#include "tanh.h"

/* The formats of results. Exponents as MPFR counts them, for significands in
 * [1/2, 1): the least subnormal is 2^(emin - 1), all are below 2^emax. */
enum arith_format {
    ARITH_F32,
    ARITH_BF16,
    ARITH_F16,
    ARITH_FORMATS
};

static const struct {
    mpfr_prec_t precision;
    mpfr_exp_t emin;
    mpfr_exp_t emax;
} arith_formats[ARITH_FORMATS] = {
    [ARITH_F32] = {24, -148, 128},
    [ARITH_BF16] = {8, -132, 128},
    [ARITH_F16] = {11, -23, 16},
};

struct arith_function {
    const char *name;
    float (*compute)(float x);
    int (*exact)(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode);
    enum arith_format format; /* of the result, which is given as float32 */
};

enum {
    ARITH_EXP,
    ARITH_LOG,
    ARITH_TANH,
    ARITH_RSQRT,
    ARITH_N_ELEMENTARY,
    ARITH_TO_BF16 = ARITH_N_ELEMENTARY,
    ARITH_TO_F16,
    ARITH_COUNT
};

static inline int arith_same(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode)
{
    return mpfr_set(y, x, mode);
}

static inline float arith_to_bf16(float x)
{
    return fsdp_bf16_to_f32(fsdp_bf16_from_f32(x));
}

static inline float arith_to_f16(float x)
{
    return fsdp_f16_to_f32(fsdp_f16_from_f32(x));
}

static const struct arith_function arith_functions[ARITH_COUNT] = {
    [ARITH_EXP] = {"exp", fsdp_expf, mpfr_exp, ARITH_F32},
    [ARITH_LOG] = {"log", fsdp_logf, mpfr_log, ARITH_F32},
    [ARITH_TANH] = {"tanh", fsdp_tanhf, mpfr_tanh, ARITH_F32},
    [ARITH_RSQRT] = {"rsqrt", fsdp_rsqrtf, mpfr_rec_sqrt, ARITH_F32},
    [ARITH_TO_BF16] = {"to-bf16", arith_to_bf16, arith_same, ARITH_BF16},
    [ARITH_TO_F16] = {"to-f16", arith_to_f16, arith_same, ARITH_F16},
};

struct arith_mpfr {
    mpfr_t x;
    mpfr_t y[ARITH_FORMATS];
    mpfr_exp_t emin; /* MPFR's own range of exponents */
    mpfr_exp_t emax;
};

static inline void arith_mpfr_init(struct arith_mpfr *mpfr)
{
    mpfr->emin = mpfr_get_emin();
    mpfr->emax = mpfr_get_emax();
    mpfr_init2(mpfr->x, 24);
    for (int i = 0; i < ARITH_FORMATS; i++) {
        mpfr_init2(mpfr->y[i], arith_formats[i].precision);
    }
}

static inline void arith_mpfr_fini(struct arith_mpfr *mpfr)
{
    mpfr_clear(mpfr->x);
    for (int i = 0; i < ARITH_FORMATS; i++) {
        mpfr_clear(mpfr->y[i]);
    }
    mpfr_free_cache();
}

/*
 * The bits, as a float32, of what mpfr->y[format] holds after an operation
 * that returned `ternary`; all NaNs are FSDP_F32_NAN. MPFR's range of exponents
 * is a thread's own.
 */
static inline uint32_t arith_mpfr_result(struct arith_mpfr *mpfr,
                                         enum arith_format format, int ternary)
{
    mpfr_ptr y = mpfr->y[format];

    if (mpfr_nan_p(y)) {
        return FSDP_F32_NAN;
    }
    mpfr_set_emin(arith_formats[format].emin);
    mpfr_set_emax(arith_formats[format].emax);
    ternary = mpfr_check_range(y, ternary, MPFR_RNDN);
    mpfr_subnormalize(y, ternary, MPFR_RNDN);
    mpfr_set_emin(mpfr->emin);
    mpfr_set_emax(mpfr->emax);
    return fsdp_f32_bits(mpfr_get_flt(y, MPFR_RNDN));
}

/* The bits of the correctly rounded value of a function. */
static inline uint32_t arith_mpfr_bits(struct arith_mpfr *mpfr,
                                       const struct arith_function *function,
                                       uint32_t x)
{
    int ternary;

    mpfr_set_flt(mpfr->x, fsdp_f32_from_bits(x), MPFR_RNDN);
    ternary = function->exact(mpfr->y[function->format], mpfr->x, MPFR_RNDN);
    return arith_mpfr_result(mpfr, function->format, ternary);
}

/* The same of a sum. */
static inline uint32_t arith_mpfr_sum(struct arith_mpfr *mpfr,
                                      enum arith_format format, float a,
                                      float b)
{
    mpfr_set_flt(mpfr->x, a, MPFR_RNDN);
    return arith_mpfr_result(
        mpfr, format,
        mpfr_add_d(mpfr->y[format], mpfr->x, (double)b, MPFR_RNDN));
}

#endif
