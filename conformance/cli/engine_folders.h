/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_folders.h - where the records of each engine of a run are: of one
 * engine in the folder of records itself, of several in a folder each below
 * it. The unsharded runs are in its `baseline` in any case.
 */
#ifndef FSDP_CTS_ENGINE_FOLDERS_H
#define FSDP_CTS_ENGINE_FOLDERS_H

#include "cli/arguments.h"

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

#endif
