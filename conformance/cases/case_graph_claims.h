/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph_claims.h - which claims the random graph of a case needs of an
 * adapter. A program of its own has modules where the suite has points, and
 * some orders of points are not those of any module.
 */
#ifndef FSDP_CTS_CASE_GRAPH_CLAIMS_H
#define FSDP_CTS_CASE_GRAPH_CLAIMS_H

#include "cases/case.h"

enum {
    CASE_GRAPH_CLAIMS = 8
};

/* Sets list[0..), and returns how many there are: none, if the case has no
 * graph. */
uint32_t case_graph_claims(const struct run_case *c,
                           const char *list[CASE_GRAPH_CLAIMS]);

/* The first module is in a unit, which so is the root's. */
bool case_graph_has_root_unit(const struct run_case *c);

#endif
