/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.h - which capabilities an engine must claim before a case is
 * asked of it at all.
 */
#ifndef FSDP_CTS_CASE_CLAIMS_H
#define FSDP_CTS_CASE_CLAIMS_H

#include "cases/case.h"

enum {
    CASE_MAX_CLAIMS = 12
};

/* The claims that case c as a whole needs, static strings; returns how many.
 * A strategy, layout, fold or optimizer out of range gives "unknown", which
 * nobody claims. */
uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS]);

/* Whether there is such a claim at all. */
bool claim_is_known(const char *claim);

/* The claims without which an engine is no FSDP engine; NULL-ended. */
extern const char *const core_claims[];

#endif
