/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track_export.c - `track export` and `track report`: files that are
 * whole or not there.
 */
#include "judge/report/special_file.h"
#include "tools/track/command_track.h"
#include "tools/track/page.h"
#include "tools/track/strict.h"
#include "tools/track/track_export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct output {
    FILE *f;
    char partial[4096];
};

static int open_output(const char *path, struct output *out,
                       struct fsdp_error *error)
{
    if (strlen(path) + sizeof(".partial") > sizeof(out->partial)) {
        return record_fail(error, FSDP_ERR_INVALID, "track",
                           "the path is too long");
    }
    (void)snprintf(out->partial, sizeof(out->partial), "%s%s", path,
                   special_file(path) ? "" : ".partial");
    out->f = fopen(out->partial, "we");
    return out->f
               ? FSDP_OK
               : record_fail(error, FSDP_ERR_IO, "track",
                             "cannot write %.120s: %s", path, strerror(errno));
}

static int close_output(const char *path, struct output *out, int status,
                        struct fsdp_error *error)
{
    int bad;

    if (!out->f) {
        return status;
    }
    bad = fflush(out->f) != 0 || ferror(out->f) != 0 ? errno : 0;
    if (fclose(out->f) != 0 && bad == 0) {
        bad = errno;
    }
    if (status == FSDP_OK && bad == 0 && strcmp(out->partial, path) != 0 &&
        rename(out->partial, path) != 0) {
        bad = errno;
    }
    if (status == FSDP_OK && bad != 0) {
        status = record_fail(error, FSDP_ERR_IO, "track",
                             "cannot write %.120s: %s", path, strerror(bad));
    }
    if (status != FSDP_OK && strcmp(out->partial, path) != 0) {
        (void)unlink(out->partial);
    }
    return status;
}

int track_command_export(const struct track_options *o)
{
    struct fsdp_error error = {0};
    struct output out = {.f = NULL};
    struct history *h = NULL;
    uint32_t format = 0;
    int status;

    while (format < TRACK_N_FORMATS &&
           (!o->format || strcmp(o->format, track_format_name(format)) != 0)) {
        format++;
    }
    if (format == TRACK_N_FORMATS) {
        fprintf(stderr, "fsdp-cts track: --format must be gab-smaller, "
                        "gab-bigger, bmf or csv\n");
        return EXIT_USAGE;
    }
    status = history_open(o->history, HISTORY_READ, &h, &error);
    if (status == FSDP_OK) {
        status = open_output(o->rest[0], &out, &error);
    }
    if (status == FSDP_OK) {
        status =
            track_export(h, (enum track_format)format, o->run, out.f, &error);
    }
    status = close_output(o->rest[0], &out, status, &error);
    history_close(h);
    return status == FSDP_OK ? 0 : track_failed(&error);
}

int track_command_report(const struct track_options *o)
{
    struct fsdp_error error = {0};
    struct output out = {.f = NULL};
    struct history *h = NULL;
    int status = history_open(o->history, HISTORY_READ, &h, &error);

    if (status == FSDP_OK) {
        status = open_output(o->rest[0], &out, &error);
    }
    if (status == FSDP_OK) {
        status = page_write(h, o->run, o->commit_url, out.f, &error);
    }
    status = close_output(o->rest[0], &out, status, &error);
    history_close(h);
    return status == FSDP_OK ? 0 : track_failed(&error);
}
