/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer_numbers.c - offers in which one number must be refused: a number of the
 * options, or of the last unit.
 */
#include "run/play/offer.h"

#include <math.h>
#include <string.h>

/* Stands for the number of units, and one more. */
#define BEYOND UINT32_MAX

/* The numbers that are given in place of those of the case. */
static const struct wrong_number {
    size_t option; /* its place in struct fsdp_options; 0: it is a number of a
                      unit */
    size_t unit;   /* the place of an array in struct fsdp_units */
    union {
        uint32_t u;
        float f;
    };
    const char *name; /* NULL, or what the refusal must name */
} wrong_numbers[SCRIPT_N_CALLS] = {
#define OPTION(field) .option = offsetof(struct fsdp_options, field)
#define UNIT(field)   .unit = offsetof(struct fsdp_units, field)
    [SCRIPT_CALL_UNKNOWN_LAYOUT] = {OPTION(layout), .u = 99},
    [SCRIPT_CALL_UNKNOWN_OPTIMIZER] = {OPTION(optimizer), .u = 99},
    [SCRIPT_CALL_UNKNOWN_FOLD] = {OPTION(fold), .u = 99},
    [SCRIPT_CALL_UNKNOWN_PARAM_DTYPE] = {OPTION(param_dtype), .u = 99},
    [SCRIPT_CALL_UNKNOWN_REDUCE_DTYPE] = {OPTION(reduce_dtype), .u = 99},
    [SCRIPT_CALL_UNKNOWN_BUFFER_DTYPE] = {OPTION(buffer_dtype), .u = 99},
    [SCRIPT_CALL_NEGATIVE_DIVIDE_FACTOR] = {OPTION(divide_factor), .f = -2.0f},
    [SCRIPT_CALL_NAN_DIVIDE_FACTOR] = {OPTION(divide_factor), .f = NAN},
    [SCRIPT_CALL_INFINITE_DIVIDE_FACTOR] = {OPTION(divide_factor),
                                            .f = INFINITY},
    [SCRIPT_CALL_NEGATIVE_PREDIVIDE_FACTOR] = {OPTION(predivide_factor),
                                               .f = -2.0f},
    [SCRIPT_CALL_NAN_PREDIVIDE_FACTOR] = {OPTION(predivide_factor), .f = NAN},
    [SCRIPT_CALL_NEGATIVE_FACTOR_OF_UNIT] = {UNIT(divide_factor), .f = -2.0f},
    [SCRIPT_CALL_INFINITE_PREDIVIDE_OF_UNIT] = {UNIT(predivide_factor),
                                                .f = INFINITY},
    [SCRIPT_CALL_UNCLAIMED_DTYPE] = {OPTION(param_dtype), .u = FSDP_DTYPE_BF16},
    [SCRIPT_CALL_UNCLAIMED_PARAM_F16] = {OPTION(param_dtype),
                                         .u = FSDP_DTYPE_F16},
    [SCRIPT_CALL_UNCLAIMED_REDUCE_BF16] = {OPTION(reduce_dtype),
                                           .u = FSDP_DTYPE_BF16},
    [SCRIPT_CALL_UNCLAIMED_REDUCE_F16] = {OPTION(reduce_dtype),
                                          .u = FSDP_DTYPE_F16},
    [SCRIPT_CALL_UNCLAIMED_PARAM_OF_UNIT] = {UNIT(param_dtype),
                                             .u = FSDP_DTYPE_BF16},
    [SCRIPT_CALL_UNCLAIMED_REDUCE_OF_UNIT] = {UNIT(reduce_dtype),
                                              .u = FSDP_DTYPE_BF16},
    [SCRIPT_CALL_UNCLAIMED_OFFLOAD] = {OPTION(offload), .u = FSDP_OFFLOAD_ALL},
    [SCRIPT_CALL_UNCLAIMED_OFFLOAD_OF_UNIT] = {UNIT(offload),
                                               .u = FSDP_OFFLOAD_ALL},
    [SCRIPT_CALL_UNKNOWN_OFFLOAD] = {OPTION(offload), .u = 1u << 9},
    /* Without the bit for "its own", no other bit may be set. */
    [SCRIPT_CALL_UNKNOWN_OFFLOAD_OF_UNIT] = {UNIT(offload),
                                             .u = FSDP_OFFLOAD_PARAMS},
    /* With the bit for "its own", a bit that stands for nothing. */
    [SCRIPT_CALL_UNKNOWN_BIT_OF_UNIT] = {UNIT(offload),
                                         .u = FSDP_OFFLOAD_OWN | 1u << 4},
    [SCRIPT_CALL_OFFLOAD_NO_HOST] = {OPTION(offload), .u = FSDP_OFFLOAD_ALL},
    [SCRIPT_CALL_OFFLOAD_OF_UNIT_NO_HOST] = {UNIT(offload),
                                             .u = FSDP_OFFLOAD_ALL},
    [SCRIPT_CALL_PREFETCH_FORWARD_BEYOND] = {OPTION(prefetch_forward),
                                             .u = BEYOND,
                                             .name = "prefetch_forward"},
    [SCRIPT_CALL_PREFETCH_BACKWARD_BEYOND] = {OPTION(prefetch_backward),
                                              .u = BEYOND,
                                              .name = "prefetch_backward"},
    [SCRIPT_CALL_REDUCES_BEYOND] = {OPTION(reduces_in_flight), .u = BEYOND,
                                    .name = "reduces_in_flight"},
#undef OPTION
#undef UNIT
};

bool offer_number(const struct driver *x, uint32_t call, struct offer *o)
{
    const struct wrong_number *w = &wrong_numbers[call];
    const uint32_t last = x->units->n_units - 1;
    union offer_number number = {.u = w->u};

    if (number.u == BEYOND) {
        number.u = x->units->n_units + 1;
    }
    o->option = w->name;
    if (w->option) {
        memcpy((char *)&o->options + w->option, &number, sizeof(number));
    } else if (w->unit) {
        const void *of_unit = o->of_unit;

        o->of_unit[last] = number;
        memcpy((char *)&o->units + w->unit, &of_unit, sizeof(of_unit));
    }
    if (call == SCRIPT_CALL_OFFLOAD_NO_HOST ||
        call == SCRIPT_CALL_OFFLOAD_OF_UNIT_NO_HOST) {
        o->env.host = NULL;
    }
    return w->option || w->unit;
}
