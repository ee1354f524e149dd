/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph_claims.h - which claims the random graph of a case needs of an
 * adapter. An adapter drives a program that has modules where the suite has
 * points, and in some graphs the points come in an order that no module has.
 */
#ifndef FSDP_CTS_CASE_GRAPH_CLAIMS_H
#define FSDP_CTS_CASE_GRAPH_CLAIMS_H

#include "cases/case.h"

enum {
    CASE_GRAPH_CLAIMS = 8
};

/* Writes the claims to list[0..), and returns how many there are: 0 if the case
 * has no graph. */
uint32_t case_graph_claims(const struct run_case *c,
                           const char *list[CASE_GRAPH_CLAIMS]);

/* Whether the first module is in a unit, which then is the root's unit. */
bool case_graph_has_root_unit(const struct run_case *c);

#endif
