/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims_testing.h - whether a case needs a claim, for tests that ask of
 * one by its name. Test only.
 */
#ifndef FSDP_CTS_CASE_CLAIMS_TESTING_H
#define FSDP_CTS_CASE_CLAIMS_TESTING_H

#include "cases/case_claims.h"

#include <string.h>

static inline bool case_needs(const struct run_case *c, const char *claim)
{
    const char *list[CASE_MAX_CLAIMS];
    const uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i], claim) == 0) {
            return true;
        }
    }
    return false;
}

#endif
