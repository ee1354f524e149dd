/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.h - the table of all capabilities that an engine can claim, and
 * which of them it must claim before a case is asked of it at all.
 */
#ifndef FSDP_CTS_CASE_CLAIMS_H
#define FSDP_CTS_CASE_CLAIMS_H

#include "cases/case.h"

enum {
    CASE_MAX_CLAIMS = 32, /* more than a script needs that does everything */
    CLAIM_MOST_WORDS = 10
};

enum claim_group {
    CLAIM_CORE = 0,    /* an engine without it, or what may stand in for it, is
                        * no FSDP engine */
    CLAIM_ENGINE = 1,  /* the other claims of engine.h */
    CLAIM_ADAPTER = 2, /* claims of docs/adapters.md, which an adapter alone
                        * makes */
};

struct claim {
    const char *name;
    uint32_t group;
    const char *text; /* for the tables of the docs: what an adapter's claim
                       * says, or what is not tested without a claim of the
                       * other groups */
    bool begins;      /* `name` is only how the claim begins; anything may
                       * follow */
    /* Whether a case as a whole needs the claim, whatever its script does;
     * NULL: no case does. `value` tells rows with the same function apart. */
    bool (*asked_by)(const struct run_case *c, uint32_t value);
    uint32_t value;
    /* A case also needs the claim if the text of its script has one of these
     * words, be it an action or a call that must be refused. */
    const char *says[CLAIM_MOST_WORDS];
};

extern const struct claim known_claims[]; /* ended by a name of NULL */

/* The claims that case c as a whole needs, static strings, in the table's
 * order; returns how many. If the strategy, layout, fold or optimizer is out of
 * range, "unknown" is among them, which no engine claims. */
uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS]);

/* Whether there is such a claim at all. Nothing is tested because of a misspelt
 * claim, and without this the engine's author would never learn of it. */
bool claim_is_known(const char *claim);

#endif
