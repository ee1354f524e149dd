/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_report.c - see bundle_report.h. */
#include "tools/submit/bundle_report.h"

#include "judge/report/report_read.h"
#include "record/record_internal.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "report";

static json_t *load_line(const char *line, size_t bytes)
{
    json_t *v = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);

    if (v && !json_is_object(v)) {
        json_decref(v);
        return NULL;
    }
    return v;
}

/* Drops what another run of the same judge says otherwise. */
static void settle(json_t *line)
{
    static const char *const loose[] = {"suite",    "commit",  "dirty",
                                        "compiler", "records", "started",
                                        "ended",    "rerun",   "milliseconds"};

    for (size_t i = 0; line && i < sizeof(loose) / sizeof(loose[0]); i++) {
        (void)json_object_del(line, loose[i]);
    }
}

static int differs(struct fsdp_error *error, uint64_t at, const char *line,
                   size_t n, const char *found, size_t found_n)
{
    return record_fail(error, FSDP_ERR_FORMAT, where,
                       "report.jsonl, line %llu: %.*s; the judge finds %.*s",
                       (unsigned long long)at, (int)(n < 80 ? n : 80), line,
                       (int)(found_n < 80 ? found_n : 80), found);
}

int bundle_report_same(const char *text, size_t bytes, const char *found,
                       size_t found_bytes, struct fsdp_error *error)
{
    const char *const end[2] = {text + bytes, found + found_bytes};
    const char *at[2] = {text, found};
    const char *line[2];
    size_t n[2] = {0, 0};
    bool same = true;

    for (uint64_t i = 1; same; i++) {
        json_t *v[2] = {NULL, NULL};

        for (int k = 0; k < 2; k++) {
            line[k] = report_line(&at[k], end[k], &n[k]);
            v[k] = line[k] ? load_line(line[k], n[k]) : NULL;
            settle(v[k]);
        }
        if (!line[0] && !line[1]) {
            return FSDP_OK;
        }
        same = v[0] && v[1] && json_equal(v[0], v[1]) == 1;
        json_decref(v[0]);
        json_decref(v[1]);
        if (!same) {
            return differs(error, i, line[0] ? line[0] : "nothing",
                           line[0] ? n[0] : 7, line[1] ? line[1] : "nothing",
                           line[1] ? n[1] : 7);
        }
    }
    return FSDP_OK;
}
