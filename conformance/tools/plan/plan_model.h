/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_model.h - a model that is planned for, made from a workload of the
 * suite, a record's case, or a description; and other units for it.
 */
#ifndef FSDP_CTS_PLAN_MODEL_H
#define FSDP_CTS_PLAN_MODEL_H

#include "cases/case_model.h"
#include "tools/plan/description.h"

struct model_build;

/* How much a module computes for a token, in the forward. */
struct plan_work {
    double flops;
    uint32_t attention; /* and 4 for each of its elements and each token of the
                           sequence */
    bool checkpoint;
};

struct plan_model {
    char name[64];
    struct fsdp_model model;
    struct wrap_units units; /* as described */
    const uint8_t *idle;
    struct plan_work *work; /* [n_modules] */
    uint64_t elements;
    /* The owner of all of this. */
    struct model_build *build;
    struct case_model of_case;
};

/* INVALID: duplicate names, more modules than fit, shapes beyond 2^63, calls
 * that do not nest, a model without a parameter (says what and where); NOMEM.
 * *out is to be released whatever is returned. */
int plan_model_of_description(const struct description *d,
                              struct plan_model *out, struct fsdp_error *error);
/* The same from the text of a description; also as description_parse. */
int plan_model_of_text(const char *text, size_t bytes, const char *file,
                       struct plan_model *out, struct fsdp_error *error);
/* The model and the units of a case, which do not depend on its world, steps
 * and scenario. As case_model_make. */
int plan_model_of_case(const struct run_case *c, struct plan_model *out,
                       struct fsdp_error *error);
/* Opens a file with a description, a folder with a record, a preset, or a
 * workload such as "gpt", or "gpt.tiny". The case of a record is written to *c.
 * As the two above; IO. */
int plan_model_open(const char *what, struct run_case *c, bool *is_record,
                    struct plan_model *out, struct fsdp_error *error);
/* Counts the elements of a model, and the work of its modules by their
 * matrices, for a model without a description. False: out of memory. */
bool plan_count(struct plan_model *out);
void plan_model_release(struct plan_model *m); /* any state */

/* Makes other units, each of `n` of the model's units that follow each other;
 * 0: one unit for all; UINT32_MAX: one for each leaf. As wrap.h; released by
 * wrap_release. */
int plan_units(const struct plan_model *m, uint32_t n, struct wrap_units *out);

#endif
