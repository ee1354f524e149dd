/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_folder.h - the folder that the records of a run go to: made, cleaned,
 * removed; and where in it those of each engine are. Of one engine they are in
 * the folder itself, of several in a folder each below it. The unsharded runs
 * are in its `baseline` in any case.
 */
#ifndef FSDP_CTS_RECORDS_FOLDER_H
#define FSDP_CTS_RECORDS_FOLDER_H

#include "cli/line/arguments.h"

struct folder {
    char path[1024];
    bool temporary; /* removed by folder_close */
    bool locked;    /* no other run may write to it */
    int lock;
};

/* wanted = NULL: a temporary one. Else made if missing, with `baseline` in
 * it, and refused (INVALID) while another run has it open. IO: says which
 * path and why. */
int folder_open(const char *wanted, struct folder *out,
                struct fsdp_error *error);
/* A temporary one, for records of these cases of so many engines: in TMPDIR; if
 * that is not set, in memory, if they find room there; else in /tmp. */
int folder_open_temporary(const struct case_list *cases, uint32_t n_engines,
                          struct folder *out, struct fsdp_error *error);
/* Removes what a run that was killed left: half-written files (*.partial) and
 * the folders of workers. */
void folder_sweep(const struct folder *folder);
void folder_close(struct folder *folder);

enum {
    ENGINE_NAME_BYTES = 64,
    ENGINE_FOLDER_BYTES = 1200
};

struct engine_folder {
    const char *engine; /* name or path; NULL: only its records are known */
    char name[ENGINE_NAME_BYTES]; /* "ref"; of a path the file's */
    char records[ENGINE_FOLDER_BYTES];
};

struct engine_folders {
    uint32_t n;
    struct engine_folder of[ARGUMENTS_MAX];
};

/* The folders of these engines below `records`, which exists; made if they are
 * missing. Returns 0, or EXIT_USAGE after a line on stderr: two engines of one
 * name, or records in it of one engine where there are several now. */
int engine_folders_make(const struct name_list *engines, const char *records,
                        struct engine_folders *out);

/* What is found below `records`: one folder, itself, or one for each engine,
 * by name. IO. */
int engine_folders_find(const char *records, struct engine_folders *out);
/* Whether there was any case in what was found. */
bool engine_folders_any(const struct engine_folders *found);

#endif
