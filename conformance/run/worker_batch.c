/* SPDX-License-Identifier: Apache-2.0 */
/* worker_batch.c - see worker_batch.h. */
#include "run/worker_batch.h"
#include "run/worker.h"
#include "script/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int worker_read_batch(const char *path, struct run_case **out, size_t *n,
                      struct fsdp_error *error)
{
    FILE *f = fopen(path, "rbe");
    struct stat s;

    *out = NULL;
    if (!f || fstat(fileno(f), &s) != 0 || s.st_size <= 0) {
        snprintf(error->message, sizeof(error->message), "batch %.160s: %s",
                 path, strerror(errno));
        if (f) {
            fclose(f);
        }
        return FSDP_ERR_IO;
    }
    *n = (size_t)s.st_size / sizeof(**out);
    *out = malloc((size_t)s.st_size);
    if (!*out || fread(*out, sizeof(**out), *n, f) != *n) {
        fclose(f);
        snprintf(error->message, sizeof(error->message),
                 "batch %.160s: not readable", path);
        return FSDP_ERR_IO;
    }
    fclose(f);
    return FSDP_OK;
}

const char *worker_debug_file(const char *folder, char path[WORKER_DEBUG_BYTES])
{
    (void)snprintf(path, WORKER_DEBUG_BYTES, "%s/debug", folder);
    return path;
}

int worker_read_scripts(const char *batch, struct fsdp_error *error)
{
    char path[4096];
    char *text = NULL;
    size_t room = 0;
    int status = FSDP_OK;
    FILE *f;

    snprintf(path, sizeof(path), "%s" WORKER_SCRIPTS, batch);
    f = fopen(path, "rbe");
    while (f && status == FSDP_OK && getdelim(&text, &room, '\0', f) > 0) {
        const struct case_script *s;

        status = script_give(text, &s, error);
    }
    if (f) {
        fclose(f);
    }
    free(text);
    return status;
}
