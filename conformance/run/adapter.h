/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter.h - engines that are programs of their own. The suite hands an
 * adapter a folder with cases, starts it, and has records afterwards
 * (docs/adapters.md is normative):
 *
 *     CMD claims JOB   writes JOB/claims.json: the adapter's name and claims
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
    uint32_t timeout_ms; /* time that may pass with no output and no new
                            record */
    bool quiet;
    const struct adapter_claims *claims; /* NULL: the adapter is asked */
    struct case_list *claimed; /* out: the cases to be judged by records */
};

/*
 * Runs the cases that the adapter claims; if it claims none, the case.json of
 * the first of all cases says which adapter that was. A case at which the
 * adapter ended badly or made no progress has a case.json that says so, and the
 * adapter is started again behind that case, a few times. Its output is shown
 * where it failed.
 *
 * The caller releases the list of claimed cases, also where this failed.
 * INVALID: there are no claims, or they cannot be read. ABORTED: interrupted.
 * IO, NOMEM.
 */
int adapter_run(const struct adapter_job *job, struct fsdp_error *error);

/* Asks the adapter what it claims; the cases of the job are not looked at. As
 * adapter_run. */
int adapter_ask(const struct adapter_job *job, struct adapter_claims *out,
                struct fsdp_error *error);

#endif
