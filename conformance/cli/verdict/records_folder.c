/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_folder.c - makes, sweeps and removes the folder of records; finds and
 * makes the folders of engines in it.
 */
#include "cli/verdict/records_folder.h"
#include "checkpoint/folder_erase.h"
#include "run/worker/case_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define RECORDS_MEMORY "/dev/shm"

static int cannot_open(struct fsdp_error *error, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "folder %.150s: %s", path,
             strerror(errno));
    return FSDP_ERR_IO;
}

/* Locks the folder: two runs in one would take each other's batches and
 * records. If a file system has no locks, there is none. */
static bool lock(struct folder *out)
{
    int fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return true;
    }
    out->locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!out->locked) {
        bool taken = errno == EWOULDBLOCK;

        close(fd);
        return !taken;
    }
    out->lock = fd;
    return true;
}

static int make_baseline(const struct folder *folder, struct fsdp_error *error)
{
    char below[1100];

    snprintf(below, sizeof(below), "%s/baseline", folder->path);
    return mkdir(below, 0777) == 0 || errno == EEXIST
               ? FSDP_OK
               : cannot_open(error, below);
}

int folder_open(const char *wanted, struct folder *out,
                struct fsdp_error *error)
{
    *out = (struct folder){.temporary = false};
    if (!wanted) {
        return folder_open_temporary(NULL, 0, out, error);
    }
    if (strlen(wanted) >= sizeof(out->path)) {
        errno = ENAMETOOLONG;
        return cannot_open(error, wanted);
    }
    snprintf(out->path, sizeof(out->path), "%s", wanted);
    if (mkdir(out->path, 0777) != 0 && errno != EEXIST) {
        return cannot_open(error, out->path);
    }
    if (!lock(out)) {
        error->status = FSDP_ERR_INVALID;
        snprintf(error->message, sizeof(error->message),
                 "folder %.150s: another run writes to it", out->path);
        return FSDP_ERR_INVALID;
    }
    return make_baseline(out, error);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

static int sweep(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    const char *name = path + ftw->base;

    (void)s;
    if (type == FTW_F && ends_with(name, ".partial")) {
        unlink(path);
    } else if ((type == FTW_DP || type == FTW_DNR) &&
               strncmp(name, WORKER_FOLDER, strlen(WORKER_FOLDER)) == 0) {
        folder_erase(path);
    }
    return 0;
}

/* Removes abandoned folders: in memory they would stay until the machine ends.
 * A folder that another run has just made is not yet locked. */
static void remove_abandoned(void)
{
    enum {
        AGE_SECONDS = 60
    };
    glob_t found = {0};

    if (glob(RECORDS_MEMORY "/fsdp-cts.??????", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct folder old = {.temporary = true};
            struct stat s;

            snprintf(old.path, sizeof(old.path), "%s", found.gl_pathv[i]);
            if (lstat(old.path, &s) == 0 && S_ISDIR(s.st_mode) &&
                s.st_uid == geteuid() &&
                s.st_mtime + AGE_SECONDS < time(NULL) && lock(&old) &&
                old.locked) {
                folder_close(&old);
            }
        }
    }
    globfree(&found);
}

/* Records that are not kept go to a file system in memory, if there is one with
 * room: a run makes some ten thousand small files, and a disk's file system
 * takes longer to make and remove them than ranks to fill them. */
enum {
    /* Twice the mean of a rank's record: 545 cases of one engine are 580 MB. */
    BYTES_A_RANK = 1 << 19
};

/* The number in a file of one line, or in the line that begins with `name`;
 * `most`, if there is no such file, line or number. */
static uint64_t limit_in(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    uint64_t found = UINT64_MAX;
    char line[128];

    while (f && found == UINT64_MAX && fgets(line, sizeof(line), f)) {
        const size_t n = strlen(name);
        char *end = NULL;
        const uint64_t value =
            strncmp(line, name, n) == 0 ? strtoull(line + n, &end, 10) : 0;

        if (end && end != line + n) {
            found = value;
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

/* The least room of the machine, the container and the file system. */
static uint64_t room(void)
{
    const uint64_t kilobytes = limit_in("/proc/meminfo", "MemAvailable:");
    const uint64_t group = limit_in("/sys/fs/cgroup/memory.max", "");
    uint64_t least = kilobytes < UINT64_MAX / 1024 ? kilobytes * 1024 : 0;
    struct statvfs s;

    if (statvfs(RECORDS_MEMORY, &s) != 0 ||
        access(RECORDS_MEMORY, W_OK | X_OK) != 0) {
        return 0;
    }
    least = group < least ? group : least;
    return s.f_bavail * s.f_frsize < least ? s.f_bavail * s.f_frsize : least;
}

/* Whether that room takes the records of these cases, for each of so many
 * engines, and leaves as much for others. */
static bool has_room_in_memory(const struct case_list *cases,
                               uint32_t n_engines)
{
    uint64_t ranks = 0;

    for (uint32_t i = 0; i < cases->n; i++) {
        ranks += cases->c[i].ranks;
    }
    return ranks * n_engines * BYTES_A_RANK <= room() / 2;
}

int folder_open_temporary(const struct case_list *cases, uint32_t n_engines,
                          struct folder *out, struct fsdp_error *error)
{
    const char *tmp = getenv("TMPDIR");

    *out = (struct folder){.temporary = true};
    if (!tmp || !*tmp) {
        tmp = "/tmp";
        if (cases && has_room_in_memory(cases, n_engines)) {
            remove_abandoned();
            tmp = RECORDS_MEMORY;
        }
    }
    snprintf(out->path, sizeof(out->path), "%.900s/fsdp-cts.XXXXXX", tmp);
    if (!mkdtemp(out->path)) {
        return cannot_open(error, out->path);
    }
    (void)lock(out);
    return make_baseline(out, error);
}

void folder_sweep(const struct folder *folder)
{
    nftw(folder->path, sweep, 16, FTW_PHYS | FTW_DEPTH);
}

void folder_close(struct folder *folder)
{
    if (folder->temporary && folder->path[0]) {
        folder_erase(folder->path);
    }
    folder->path[0] = '\0';
    if (folder->locked) {
        close(folder->lock);
        folder->locked = false;
    }
}

/* ---- Of each engine ---- */

/* "./build/mine.so" is "mine". */
static void name_of(const char *engine, char name[ENGINE_NAME_BYTES])
{
    const char *slash = strrchr(engine, '/');
    const char *file = slash ? slash + 1 : engine;
    size_t n = strlen(file);

    if (n > 3 && strcmp(file + n - 3, ".so") == 0) {
        n -= 3;
    }
    n = n < ENGINE_NAME_BYTES ? n : ENGINE_NAME_BYTES - 1;
    memcpy(name, file, n);
    name[n] = '\0';
}

/* Whether a folder belongs to no engine: the unsharded runs, and the files that
 * an adapter was given. */
static bool is_common(const char *name)
{
    return strcmp(name, "baseline") == 0 || strcmp(name, "job") == 0;
}

static int refuse_folder(const char *what, const char *which)
{
    fprintf(stderr, "fsdp-cts: %s: %.200s\n", what, which);
    return EXIT_USAGE;
}

/* Whether there is a case of an engine right below this folder. */
static bool has_cases(const char *folder)
{
    char path[ENGINE_FOLDER_BYTES + 300];
    DIR *d = opendir(folder);
    const struct dirent *entry;
    bool found = false;

    while (d && !found && (entry = readdir(d))) {
        if (entry->d_name[0] == '.' || is_common(entry->d_name)) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s/case.json", folder, entry->d_name);
        found = access(path, F_OK) == 0;
    }
    if (d) {
        closedir(d);
    }
    return found;
}

static int by_name(const void *a, const void *b)
{
    const struct engine_folder *x = a;
    const struct engine_folder *y = b;

    return strcmp(x->name, y->name);
}

int engine_folders_find(const char *records, struct engine_folders *out)
{
    DIR *d;
    const struct dirent *entry;

    *out = (struct engine_folders){.n = 0};
    if (!has_cases(records)) {
        d = opendir(records);
        if (!d) {
            return FSDP_ERR_IO;
        }
        while (out->n < ARGUMENTS_MAX && (entry = readdir(d))) {
            struct engine_folder *f = &out->of[out->n];

            if (entry->d_name[0] == '.' || is_common(entry->d_name) ||
                strlen(entry->d_name) >= sizeof(f->name)) {
                continue;
            }
            memcpy(f->name, entry->d_name, strlen(entry->d_name) + 1);
            snprintf(f->records, sizeof(f->records), "%.1100s/%.63s", records,
                     entry->d_name);
            out->n += has_cases(f->records);
        }
        closedir(d);
        qsort(out->of, out->n, sizeof(out->of[0]), by_name);
    }
    if (out->n == 0) {
        out->n = 1;
        snprintf(out->of[0].records, sizeof(out->of[0].records), "%s", records);
        out->of[0].name[0] = '\0';
    }
    return FSDP_OK;
}

bool engine_folders_any(const struct engine_folders *found)
{
    return found->of[0].name[0] != '\0' || has_cases(found->of[0].records);
}

/* Refuses a folder with records of the other form (one engine, or several),
 * which would be mistaken for this run's. */
static int check_form(const char *records, uint32_t n)
{
    struct engine_folders found;

    if (n > 1 && has_cases(records)) {
        return refuse_folder("this folder has the records of one engine; take "
                             "another for several",
                             records);
    }
    if (n == 1 && engine_folders_find(records, &found) == FSDP_OK &&
        found.of[0].name[0] != '\0') {
        return refuse_folder(
            "this folder has the records of several engines; take "
            "another for one",
            records);
    }
    return 0;
}

int engine_folders_make(const struct name_list *engines, const char *records,
                        struct engine_folders *out)
{
    char name[ENGINE_NAME_BYTES];

    *out = (struct engine_folders){.n = engines->n};
    for (uint32_t i = 0; i < engines->n; i++) {
        struct engine_folder *f = &out->of[i];

        f->engine = engines->name[i];
        name_of(f->engine, f->name);
        if (engines->n == 1) {
            snprintf(f->records, sizeof(f->records), "%s", records);
            continue;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(out->of[k].name, f->name) == 0) {
                return refuse_folder("two engines of one name", f->name);
            }
        }
        if (is_common(f->name) || f->name[0] == '\0' || f->name[0] == '.') {
            return refuse_folder("beside others no engine may be called so",
                                 f->engine);
        }
    }
    if (check_form(records, engines->n)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < engines->n && engines->n > 1; i++) {
        struct engine_folder *f = &out->of[i];

        name_of(f->engine, name);
        snprintf(f->records, sizeof(f->records), "%.1100s/%s", records, name);
        if (mkdir(f->records, 0777) != 0 && errno != EEXIST) {
            return refuse_folder(strerror(errno), f->records);
        }
    }
    return 0;
}
