/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_folder.h - the folder for the records of a run: makes it, cleans it,
 * removes it, and knows where in it each engine's records are. With one engine
 * they are in the folder itself, with several each has a folder below it. The
 * unsharded runs are in its `baseline` in any case.
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

/* wanted = NULL: opens a temporary folder. Else makes the folder if it is
 * missing, with `baseline` in it, and refuses it (INVALID) while another run
 * has it open. IO: says which path and why. */
int folder_open(const char *wanted, struct folder *out,
                struct fsdp_error *error);
/* Opens a temporary folder for records of these cases by so many engines: in
 * TMPDIR; if that is not set, in memory, if they find room there; else in
 * /tmp. */
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
    char name[ENGINE_NAME_BYTES]; /* "ref"; for a path, the name of the file */
    char records[ENGINE_FOLDER_BYTES];
};

struct engine_folders {
    uint32_t n;
    struct engine_folder of[ARGUMENTS_MAX];
};

/* Finds the folders of these engines below `records`, which exists, and makes
 * those that are missing. Returns 0, or EXIT_USAGE after a line on stderr: two
 * engines have one name, or the folder has records of one engine and there are
 * several now. */
int engine_folders_make(const struct name_list *engines, const char *records,
                        struct engine_folders *out);

/* Finds the folders of engines in `records`: one folder, itself, or one for
 * each engine, by name. IO. */
int engine_folders_find(const char *records, struct engine_folders *out);
/* Whether there was any case in what was found. */
bool engine_folders_any(const struct engine_folders *found);

#endif
