/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_claims.h - claims.json: the name of an adapter's engine, its version
 * and its claims.
 */
#ifndef FSDP_CTS_ADAPTER_CLAIMS_H
#define FSDP_CTS_ADAPTER_CLAIMS_H

#include "cases/case.h"
#include "record/record_fields.h"

enum {
    ADAPTER_MAX_CLAIMS = 255
};

/* The part of struct fsdp_engine that case.json wants. */
struct adapter_claims {
    char engine[64], version[32];
    uint32_t n;
    char claim[ADAPTER_MAX_CLAIMS][32];
    const char *list[ADAPTER_MAX_CLAIMS + 1]; /* of `claim`; NULL-ended */
};

/* FORMAT: says what is wrong. IO: there is no such file. */
int adapter_claims_read(const char *path, struct adapter_claims *out,
                        struct fsdp_error *error);

/* The same from the file's bytes. */
extern const struct record_table adapter_claims_table;
int adapter_claims_parse(const char *text, size_t bytes, const char *file,
                         struct adapter_claims *out, struct fsdp_error *error);

/* Whether the adapter claims all that a case needs. */
bool adapter_claims_case(const struct adapter_claims *a,
                         const struct run_case *c);

#endif
