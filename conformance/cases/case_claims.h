/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.h - every capability that can be claimed, in one table; and
 * which of them an engine must claim before a case is asked of it at all.
 */
#ifndef FSDP_CTS_CASE_CLAIMS_H
#define FSDP_CTS_CASE_CLAIMS_H

#include "cases/case.h"

enum {
    CASE_MAX_CLAIMS = 32, /* more than a script that does everything needs */
    CLAIM_MOST_WORDS = 10
};

enum claim_group {
    CLAIM_CORE = 0,    /* without it, or what may stand in for it, an engine
                          is no FSDP engine */
    CLAIM_ENGINE = 1,  /* the others of engine.h */
    CLAIM_ADAPTER = 2, /* of docs/adapters.md: of an adapter alone */
};

struct claim {
    const char *name;
    uint32_t group;
    const char *text; /* for the tables of the docs: of an adapter's claim what
                         it says; of the others what is not tested without */
    bool begins;      /* a claim begins with `name`; what follows is open */
    /* Whether a case as a whole needs it, whatever it does; NULL: none does.
     * `value` tells rows with the same function apart. */
    bool (*asked_by)(const struct run_case *c, uint32_t value);
    uint32_t value;
    /* Or the script that a case plays does, or makes a call of it that must be
     * refused: one of these is in its text. */
    const char *says[CLAIM_MOST_WORDS];
};

extern const struct claim known_claims[]; /* ended by a name of NULL */

/* The claims that case c as a whole needs, static strings, in the table's
 * order; returns how many. With a strategy, layout, fold or optimizer out of
 * range "unknown" is one, which nobody claims. */
uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS]);

/* Whether there is such a claim at all. One that is misspelt is tested
 * nowhere, and its engine would never learn of it. */
bool claim_is_known(const char *claim);

#endif
