/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_merge.c - merges the traces of all ranks into one file: a header, the
 * events of each rank, and an end.
 */
#include "run/worker/trace_merge.h"
#include "judge/report/report_file.h"
#include "run/witness/trace_marks.h"
#include "run/worker/case_record.h"

#include <stdio.h>

/* A rank that died left nothing. */
static void append(FILE *to, const char *path, bool *first)
{
    FILE *from = fopen(path, "re");
    char block[4096];
    size_t n;

    if (!from) {
        return;
    }
    fprintf(to, "%s", *first ? "" : ",\n");
    *first = false;
    while ((n = fread(block, 1, sizeof(block), from)) > 0) {
        fwrite(block, 1, n, to);
    }
    fclose(from);
}

int trace_merge(const char *records, const struct run_case *c,
                const char *engine, const char *file, struct fsdp_error *error)
{
    char folder[CASE_FOLDER_BYTES];
    char path[CASE_FOLDER_BYTES + 64];
    char id[CASE_ID_BYTES];
    struct report_file to;
    bool first = true;

    case_id(c, id);
    case_folder(records, c, false, folder);
    FSDP_TRY(report_file_open(&to, file, error));
    fprintf(to.f,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"case\":\"%s\","
            "\"engine\":\"",
            id);
    trace_put_text(to.f, engine);
    fprintf(to.f, "\",\"clock\":\"monotonic\"},\"traceEvents\":[\n");
    for (uint32_t r = 0; r < c->ranks; r++) {
        snprintf(path, sizeof(path), "%s/rank-%u.trace.partial", folder, r);
        append(to.f, path, &first);
    }
    fprintf(to.f, "]}\n");
    return report_file_close(&to, FSDP_OK);
}
