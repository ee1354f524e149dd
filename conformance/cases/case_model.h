/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_model.h - from a case to the model that its workload describes and the
 * units that its wrap policy makes of it. Every rank and the process that
 * judges get the same.
 */
#ifndef FSDP_CTS_CASE_MODEL_H
#define FSDP_CTS_CASE_MODEL_H

#include "cases/case.h"
#include "models/workload.h"
#include "models/wrap.h"

struct case_model {
    struct workload_model *model;
    struct wrap_units units;
    uint32_t *dtypes; /* units point to these, if any unit has its own */
    float *factors;   /* likewise */
    uint32_t *offload;
};

/* INVALID: unknown workload or size, or a config that does not fit (says what
 * would be right). `text` is borrowed until the release. */
int case_model_make(const struct run_case *c, const char *text,
                    uint64_t text_bytes, struct case_model *out,
                    struct fsdp_error *error);
void case_model_release(struct case_model *m); /* any state */

#endif
