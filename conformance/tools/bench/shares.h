/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - where the time of a step went: what ran when, in any order and on
 * any number of streams, becomes shares of the step.
 *
 * At every moment of the step something is the case: attention runs, or a
 * matrix product, or another operator, or none but a collective (which nothing
 * hides: it is exposed), or nothing at all. Where several are, the first of
 * these counts, so that the five shares add up to 1. Collectives also have a
 * share of their own, hidden ones included.
 */
#ifndef FSDP_CTS_SHARES_H
#define FSDP_CTS_SHARES_H

#include <fsdp/op.h>
#include <stdbool.h>
#include <stddef.h>

/* In order of precedence. IDLE is of no span. */
enum share {
    SHARE_ATTENTION = 0,
    SHARE_GEMM = 1,
    SHARE_REST = 2,
    SHARE_COMMUNICATION = 3,
    SHARE_IDLE = 4,
    N_SHARES = 5,
};

/* What the share of the exposed, and that of all collectives, are called, and
 * the others: slugs. */
extern const char *const share_name[N_SHARES];
extern const char *const share_name_communication;

/* From a begin to an end, on any stream, of whatever clock. */
struct share_span {
    double begin, end;
    uint32_t share; /* what it is; not IDLE */
};

struct shares {
    double of[N_SHARES];  /* of [SHARE_COMMUNICATION]: what is exposed */
    double communication; /* all of it */
};

/* What an operator (enum fsdp_op_kind) is. */
uint32_t share_of_operator(uint32_t kind);

/* Shares of [begin, end); what lies outside does not count. INVALID: a time is
 * not finite, something ends before it begins, the step takes no time, or a
 * span is of no class; NOMEM. */
int shares_find(const struct share_span *span, size_t n, double begin,
                double end, struct shares *out);

#endif
