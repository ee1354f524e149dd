/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_claims.c - reads claims.json, as strictly as records are read.
 */
#include "run/adapter_claims.h"

#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include "record/record_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    FILE_BYTES = 1 << 16,
    CLAIMS_VERSION = 1
};

static bool parse(struct record_json *j, json_t *root,
                  struct adapter_claims *out)
{
    static const char *const key[] = {"version", "engine", "engine_version",
                                      "claims"};
    json_t *value[4];
    size_t n;

    if (!record_json_version(j, root, CLAIMS_VERSION) ||
        !record_json_object(j, record_field("the file"), root, key, 4, value) ||
        !record_json_text(j, record_field("engine"), value[1], out->engine,
                          sizeof(out->engine)) ||
        !record_json_text(j, record_field("engine_version"), value[2],
                          out->version, sizeof(out->version)) ||
        !record_json_array(j, record_field("claims"), value[3], 1,
                           ADAPTER_MAX_CLAIMS)) {
        return false;
    }
    n = json_array_size(value[3]);
    for (size_t i = 0; i < n; i++) {
        if (!record_json_text(j, record_element("claims", i),
                              json_array_get(value[3], i), out->claim[i],
                              sizeof(out->claim[i]))) {
            return false;
        }
        out->list[i] = out->claim[i];
    }
    return true;
}

int adapter_claims_parse(const char *text, size_t bytes, const char *file,
                         struct adapter_claims *out, struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    if (root != NULL) {
        (void)parse(&j, root, out);
        json_decref(root);
    }
    return j.status;
}

int adapter_claims_read(const char *path, struct adapter_claims *out,
                        struct fsdp_error *error)
{
    static char text[FILE_BYTES];
    FILE *f = fopen(path, "rbe");
    size_t n;

    memset(out, 0, sizeof(*out));
    if (f == NULL) {
        return record_fail(error, FSDP_ERR_IO, "adapter", "%.150s: %s", path,
                           strerror(errno));
    }
    n = fread(text, 1, sizeof(text), f);
    if (ferror(f) != 0 || n == sizeof(text)) {
        (void)fclose(f);
        return record_fail(error, FSDP_ERR_FORMAT, "adapter",
                           "%.150s: cannot be read, or is over %d bytes", path,
                           (int)FILE_BYTES);
    }
    (void)fclose(f);
    return adapter_claims_parse(text, n, path, out, error);
}

static bool has(const struct adapter_claims *a, const char *claim)
{
    for (uint32_t i = 0; a->list[i] != NULL; i++) {
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
    return true;
}
