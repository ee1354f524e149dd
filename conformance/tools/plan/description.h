/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.h - a model as a text of JSON: modules, their parameters, which
 * of them start units, how many operations they take, and in what order they
 * are called. docs/plan.md says what each field means.
 */
#ifndef FSDP_CTS_DESCRIPTION_H
#define FSDP_CTS_DESCRIPTION_H

#include "record/record_fields.h"

#include <fsdp/model.h>

enum {
    DESCRIPTION_VERSION = 1,
    DESCRIPTION_NAME_BYTES = 96,
    DESCRIPTION_MAX_MODULES = 4096, /* after parts are repeated */
    DESCRIPTION_MAX_PARAMETERS = 16384,
    DESCRIPTION_MAX_CALLS = 1 << 17,
    DESCRIPTION_MAX_BYTES = 1 << 26,
};

struct description_parameter {
    char name[64];
    uint32_t dtype; /* as stored: F32 */
    uint32_t n_dims;
    uint64_t shape[FSDP_MAX_DIMS];
};

struct description_module {
    char name[DESCRIPTION_NAME_BYTES]; /* dotted; "{i}" becomes the number of
                                        * the repetition */
    char class_name[32];
    bool unit;          /* starts a unit */
    bool checkpoint;    /* the backward may recompute its forward */
    bool has_flops;     /* else 2 for each element of its matrices */
    double flops;       /* of the forward, a token */
    uint32_t attention; /* heads times their width; 0: no attention */
    uint32_t n_parameters;
    struct description_parameter *parameter;
};

struct description_part {
    uint32_t times, n_modules;
    struct description_module *module;
};

struct description_call {
    uint32_t point;
    char module[DESCRIPTION_NAME_BYTES];
};

struct description {
    char name[64];
    char source[256]; /* where shapes and counts are from */
    uint32_t n_parts, n_calls;
    struct description_part *part;
    struct description_call *call; /* of a training pass; none: as the tree */
};

extern const struct record_table description_table;

/* FORMAT: a sentence that begins with `file` says where; NOMEM. *out is to be
 * released whatever is returned. */
int description_parse(const char *text, size_t bytes, const char *file,
                      struct description *out, struct fsdp_error *error);
void description_release(struct description *d); /* any state */

#endif
