/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track_export.c - `track export` and `track report`: files that are
 * whole or not there.
 */
#include "judge/report/report_file.h"
#include "tools/track/command_track.h"
#include "tools/track/page.h"
#include "tools/track/track_export.h"

#include <string.h>

/* Opens the history and the output, which `write` fills. An exit code. */
static int write_whole(const struct track_options *o,
                       int (*write)(const struct track_options *o,
                                    struct history *h, FILE *f,
                                    struct fsdp_error *error))
{
    struct fsdp_error error = {0};
    struct report_file file = {.f = NULL};
    struct history *h = NULL;
    int status = history_open(o->history, HISTORY_READ, &h, &error);

    if (status == FSDP_OK) {
        status = report_file_open(&file, o->rest[0], &error);
    }
    if (status == FSDP_OK) {
        status = report_file_close(&file, write(o, h, file.f, &error));
    }
    history_close(h);
    return status == FSDP_OK ? 0 : track_failed(&error);
}

/* The format that the options name; TRACK_N_FORMATS: an unknown name. */
static uint32_t format_of(const struct track_options *o)
{
    uint32_t format = 0;

    while (format < TRACK_N_FORMATS &&
           (!o->format || strcmp(o->format, track_format_name(format)) != 0)) {
        format++;
    }
    return format;
}

static int write_export(const struct track_options *o, struct history *h,
                        FILE *f, struct fsdp_error *error)
{
    return track_export(h, (enum track_format)format_of(o), o->run, f, error);
}

int track_command_export(const struct track_options *o)
{
    if (format_of(o) == TRACK_N_FORMATS) {
        fprintf(stderr, "fsdp-cts track: --format must be gab-smaller, "
                        "gab-bigger, bmf or csv\n");
        return EXIT_USAGE;
    }
    return write_whole(o, write_export);
}

static int write_report(const struct track_options *o, struct history *h,
                        FILE *f, struct fsdp_error *error)
{
    return page_write(h, o->run, o->commit_url, f, error);
}

int track_command_report(const struct track_options *o)
{
    return write_whole(o, write_report);
}
