/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_claims.c - reads claims.json, as strictly as records are read.
 */
#include "run/adapter_claims.h"

#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    FILE_BYTES = 1 << 16,
    CLAIMS_VERSION = 1
};

#define AT(member) RECORD_AT(struct adapter_claims, member)
static const struct record_row rows[] = {
    {"version", &record_version, .most = CLAIMS_VERSION},
    {"engine", &record_string, AT(engine)},
    {"engine_version", &record_string, AT(version)},
    {"claims", &record_short_list, RECORD_LIST(struct adapter_claims, claim, n),
     RECORD_STRINGS(struct adapter_claims, claim), .least = 1,
     .most = ADAPTER_MAX_CLAIMS},
};
#undef AT
const struct record_table adapter_claims_table = {RECORD_ROWS(rows),
                                                  .prefix = ""};

int adapter_claims_parse(const char *text, size_t bytes, const char *file,
                         struct adapter_claims *out, struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    FSDP_TRY(record_parse(text, bytes, file, &adapter_claims_table, NULL, out,
                          error));
    for (uint32_t i = 0; i < out->n; i++) {
        out->list[i] = out->claim[i];
    }
    return FSDP_OK;
}

int adapter_claims_read(const char *path, struct adapter_claims *out,
                        struct fsdp_error *error)
{
    static const struct record_source from = {.where = "adapter",
                                              .most = FILE_BYTES};
    size_t bytes;
    char *text;
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(record_read_file(path, &from, &text, &bytes, error));
    status = adapter_claims_parse(text, bytes, path, out, error);
    free(text);
    return status;
}

static bool has(const struct adapter_claims *a, const char *claim)
{
    for (uint32_t i = 0; a->list[i]; i++) {
        if (strcmp(a->list[i], claim) == 0) {
            return true;
        }
    }
    return false;
}

bool adapter_claims_case(const struct adapter_claims *a,
                         const struct run_case *c)
{
    char own[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES];
    const char *list[CASE_MAX_CLAIMS];
    uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        if (!has(a, list[i]) &&
            !(judge_any_order(list[i]) && has(a, "fold-any"))) {
            return false;
        }
    }
    n = judge_adapter_claims(c, own);
    for (uint32_t i = 0; i < n; i++) {
        if (!has(a, own[i])) {
            return false;
        }
    }
    return !has(a, "step-drops") || !judge_uses_again(c);
}
