/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - where the time of a step went: from what ran when, in any order
 * and on any number of streams, to shares of the step.
 *
 * Each moment of the step is in exactly one class: attention runs, or a matrix
 * product, or another operator, or only a collective (which nothing hides: it
 * is exposed), or nothing at all. If several run, the first of these counts, so
 * that the five shares add up to 1. Collectives also have a share of their own,
 * hidden ones included.
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

/* The names of the shares, which are slugs. That of SHARE_COMMUNICATION is of
 * exposed collectives; all collectives have a name of their own. */
extern const char *const share_name[N_SHARES];
extern const char *const share_name_communication;

/* Something that ran, on any stream, from `begin` to `end` of one clock. */
struct share_span {
    double begin, end;
    uint32_t share; /* its class; not IDLE */
};

struct shares {
    double of[N_SHARES];  /* of [SHARE_COMMUNICATION]: only the exposed part */
    double communication; /* all of it, hidden or not */
};

/* The class of an operator (enum fsdp_op_kind). */
uint32_t share_of_operator(uint32_t kind);

/* Shares of [begin, end); what lies outside does not count. INVALID: a time is
 * not finite, something ends before it begins, the step takes no time, or a
 * span is of no class; NOMEM. */
int shares_find(const struct share_span *span, size_t n, double begin,
                double end, struct shares *out);

#endif
