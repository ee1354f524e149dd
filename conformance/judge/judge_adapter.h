/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_adapter.h - records that an adapter made of an engine in a program
 * outside of the suite: whose arithmetic they show, and what they can show at
 * all.
 */
#ifndef FSDP_CTS_JUDGE_ADAPTER_H
#define FSDP_CTS_JUDGE_ADAPTER_H

#include "judge/requirement.h"

/* Sets in e what an adapter's record says of the engine's arithmetic, fold and
 * states. */
void judge_adapter_expect(const struct record *r, struct expect *e);

/* If the claim says that the engine runs ahead by itself (ahead-1 and so on),
 * changes the case so that it runs ahead at least as far as the engine does,
 * whatever the case asked for. */
void judge_adapter_runs_ahead(const char *claim, struct run_case *c);

/* The claim that an adapter must make for its record to be evidence for q:
 * without it the recorder did not watch this. NULL: any record is evidence. */
const char *judge_adapter_evidence(const struct requirement *q);

/* Whether q compares an adapter's record with the unsharded run although the
 * adapter claims to round activations between units, which that run does not.
 * What else is asked of such a record goes by its own gradients. */
bool judge_rounds_otherwise(const struct requirement *q,
                            const struct record *r);

/* Whether fold-any, claimed by an adapter, stands in for this claim: then any
 * order of adding up, though not declared, is as good as another. (Not so for
 * the tree, which has grains.) */
bool judge_any_order(const char *claim);

/* Whether some step that the case plays leaves its gradients to a later pass or
 * step. An engine that claims step-drops cannot play that. */
bool judge_uses_again(const struct run_case *c);

/* The claims that an adapter must make in addition to those of case_claims,
 * because what they are about is done by the suite for engines in its own
 * process. Adds them from list[n] on, and returns how many claims the list then
 * has. */
enum {
    JUDGE_ADAPTER_CLAIMS = 18,
    JUDGE_CLAIM_BYTES = 32
};
uint32_t
judge_adapter_claims(const struct run_case *c,
                     char list[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES]);

#endif
