/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter.h - engines that are programs of their own. The suite hands an
 * adapter a folder with cases, starts it, and has records afterwards
 * (docs/adapters.md is normative):
 *
 *     CMD claims JOB   writes JOB/claims.json: who it is, what it can do
 *     CMD run JOB      plays the cases of JOB/cases.json, JOB/<id>/..., and
 *                      writes a record for each
 */
#ifndef FSDP_CTS_ADAPTER_H
#define FSDP_CTS_ADAPTER_H

#include "cases/case.h"
#include "models/text.h"
#include "run/adapter_claims.h"

struct adapter_job {
    const char *command; /* for the shell */
    const char *records; /* folder; exists */
    const struct case_list *cases;
    const struct text *text;
    uint32_t timeout_ms; /* without output and without another record */
    bool quiet;
    const struct adapter_claims *claims; /* NULL: it is asked */
    struct case_list *claimed; /* out: the cases to be judged by records */
};

/*
 * Runs the cases that the adapter claims; if it claims none, the case.json of
 * the first of all says who does not. A case at which it ended badly or
 * made no progress has a case.json that says so; it is started again behind
 * that, a few times. Its output is shown where it failed.
 *
 * The list of those that are claimed is the caller's to release, also where
 * it failed. INVALID: no claims, or they cannot be read. ABORTED: interrupted.
 * IO, NOMEM.
 */
int adapter_run(const struct adapter_job *job, struct fsdp_error *error);

/* What it claims; of the job no cases are looked at. As adapter_run. */
int adapter_ask(const struct adapter_job *job, struct adapter_claims *out,
                struct fsdp_error *error);

#endif
