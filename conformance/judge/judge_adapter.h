/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_adapter.h - records of an engine that ran outside of the suite, by an
 * adapter: whose arithmetic they are of, and what they can show at all.
 */
#ifndef FSDP_CTS_JUDGE_ADAPTER_H
#define FSDP_CTS_JUDGE_ADAPTER_H

#include "judge/requirement.h"

/* Sets what an adapter's record says of its arithmetic, its fold and its
 * states. */
void judge_adapter_expect(const struct record *r, struct expect *e);

/* How the engine plays a case, where it claims to run ahead by itself: by no
 * less than that, whatever the case asks for. */
void judge_adapter_runs_ahead(const char *claim, struct run_case *c);

/* The claim without which a record of an adapter is no evidence for a
 * requirement: the recorder was not there. NULL: any record is. */
const char *judge_adapter_evidence(const struct requirement *q);

/* Whether a requirement compares with the unsharded run what an adapter claims
 * to compute with other activations than that: rounded between units. What else
 * is asked of such a record goes by its own gradients. */
bool judge_rounds_otherwise(const struct requirement *q,
                            const struct record *r);

/* Whether an adapter's claim fold-any stands in for a claim: some order that
 * nobody declares is as good as another. (The tree has grains.) */
bool judge_any_order(const char *claim);

/* Whether a step of what the case plays leaves its gradients to a pass or a
 * step behind it, which who claims step-drops cannot play. */
bool judge_uses_again(const struct run_case *c);

/* The claims that an adapter must make beside those of case_claims: what
 * engines in the suite's process have from the suite. Sets list[n..) and
 * returns how many there are then. */
enum {
    JUDGE_ADAPTER_CLAIMS = 18,
    JUDGE_CLAIM_BYTES = 32
};
uint32_t
judge_adapter_claims(const struct run_case *c,
                     char list[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES]);

#endif
