/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_merge.c - a header, the events of each rank, and an end.
 */
#include "run/worker/trace_merge.h"
#include "judge/report/special_file.h"
#include "run/witness/trace_marks.h"
#include "run/worker/case_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int fail(struct fsdp_error *error, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "trace %.150s: %s", path,
             strerror(errno));
    return FSDP_ERR_IO;
}

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
    char partial[CASE_FOLDER_BYTES];
    char id[CASE_ID_BYTES];
    bool first = true;
    bool good;
    FILE *f;

    case_id(c, id);
    case_folder(records, c, false, folder);
    snprintf(partial, sizeof(partial), "%.4000s%s", file,
             special_file(file) ? "" : ".partial");
    f = fopen(partial, "we");
    if (!f) {
        return fail(error, partial);
    }
    fprintf(f,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"case\":\"%s\","
            "\"engine\":\"",
            id);
    trace_put_text(f, engine);
    fprintf(f, "\",\"clock\":\"monotonic\"},\"traceEvents\":[\n");
    for (uint32_t r = 0; r < c->ranks; r++) {
        snprintf(path, sizeof(path), "%s/rank-%u.trace.partial", folder, r);
        append(f, path, &first);
    }
    fprintf(f, "]}\n");
    good = !ferror(f);
    if (fclose(f) != 0 || !good ||
        (strcmp(partial, file) != 0 && rename(partial, file) != 0)) {
        return fail(error, file);
    }
    return FSDP_OK;
}
