/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_folder.c - makes, empties and removes the folders of workers.
 */
#include "run/worker/worker_folder.h"
#include "checkpoint/folder_erase.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct fsdp_error *error, const char *what, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "%s %.150s: %s", what,
             path, strerror(errno));
    return FSDP_ERR_IO;
}

int worker_folder_make(const char *records, uint32_t index,
                       char path[CASE_FOLDER_BYTES], struct fsdp_error *error)
{
    static const char *const below[] = {"", "/tmp", "/baseline"};
    char *whole = realpath(records, NULL);
    char one[CASE_FOLDER_BYTES + 16];

    if (!whole || strlen(whole) + 64 > CASE_FOLDER_BYTES) {
        free(whole);
        return fail(error, "cannot use", records);
    }
    snprintf(path, CASE_FOLDER_BYTES, "%s/" WORKER_FOLDER "%u", whole, index);
    free(whole);
    folder_erase(path);
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        snprintf(one, sizeof(one), "%s%s", path, below[i]);
        if (mkdir(one, 0777) != 0) {
            return fail(error, "cannot make", one);
        }
    }
    return FSDP_OK;
}

/* A record is a folder of regular files. Links and the like could lead who
 * reads or completes it to the record of another case. */
static void clean(const char *folder)
{
    char path[CASE_FOLDER_BYTES + 256];
    struct stat s = {0};
    const struct dirent *e;
    DIR *d;

    if (lstat(folder, &s) != 0) {
        return;
    }
    if (!S_ISDIR(s.st_mode)) {
        (void)unlink(folder);
        return;
    }
    (void)chmod(folder, 0777 & (s.st_mode | S_IRWXU));
    d = opendir(folder);
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_type != DT_REG && strcmp(e->d_name, ".") != 0 &&
            strcmp(e->d_name, "..") != 0 && lstat(path, &s) == 0 &&
            !S_ISREG(s.st_mode)) {
            folder_erase(path);
        }
    }
    if (d) {
        closedir(d);
    }
}

void worker_folder_renew(const char *worker, const char *record)
{
    char tmp[CASE_FOLDER_BYTES + 8];

    snprintf(tmp, sizeof(tmp), "%s/tmp", worker);
    (void)chmod(worker, 0755);
    folder_erase(record);
    folder_erase(tmp);
    (void)mkdir(tmp, 0777);
}

void worker_folder_clean(const char *worker, const struct run_case *c,
                         bool baseline, char path[CASE_FOLDER_BYTES])
{
    (void)chmod(worker, 0755);
    case_folder(worker, c, baseline, path);
    clean(path);
}

int worker_folder_settle(const char *worker, const char *records,
                         const struct run_case *c, bool baseline,
                         char to[CASE_FOLDER_BYTES], struct fsdp_error *error)
{
    char from[CASE_FOLDER_BYTES];

    worker_folder_clean(worker, c, baseline, from);
    case_folder(records, c, baseline, to);
    folder_erase(to);
    return rename(from, to) == 0 || errno == ENOENT
               ? FSDP_OK
               : fail(error, "cannot keep", to);
}
