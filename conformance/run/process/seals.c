/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seals.c - notes what the file system says of a folder, and compares it later.
 */
#include "run/process/seals.h"

#include <fsdp/status.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

/* Whether the folder was made so that it cannot be looked at. Anything else
 * (EMFILE, ENOMEM, EIO ...) is the machine's failure. */
static bool is_made_so(int why)
{
    return why == ENOENT || why == ENOTDIR || why == EACCES || why == EPERM ||
           why == ELOOP;
}

/* Adds an entry to the sum. 0, or the errno of the machine's failure. */
static int add_entry(int folder, const char *name, uint64_t *sum)
{
    struct stat s;
    uint64_t h = 1;

    for (const char *p = name; *p; p++) {
        h = mix(h, (unsigned char)*p);
    }
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0) {
        h = mix(h, s.st_ino);
        h = mix(h, s.st_mode);
        h = mix(h, (uint64_t)s.st_size);
        h = mix(h, (uint64_t)s.st_ctim.tv_sec);
        h = mix(h, (uint64_t)s.st_ctim.tv_nsec);
    } else if (!is_made_so(errno)) {
        return errno;
    }
    *sum += h;
    return 0;
}

/* The sum over a folder's entries, which does not depend on their order. A
 * missing folder has a state, too. As add_entry. */
static int state_of(const char *folder, uint64_t *sum)
{
    DIR *d = opendir(folder);
    const struct dirent *e = NULL;
    int why = d || is_made_so(errno) ? 0 : errno;

    *sum = 0;
    while (d && why == 0 && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, "..") != 0) {
            why = add_entry(dirfd(d), e->d_name, sum);
        }
    }
    if (d) {
        why = why == 0 && !e ? errno : why;
        closedir(d);
    }
    return why;
}

/* Gives up a record that cannot be vouched for: prints a line that says which
 * and why, and removes its case.json. */
static void give_up(const char *folder, const char *what, const char *why)
{
    const char *name = strrchr(folder, '/');
    char file[4096 + 16];

    fprintf(stderr, "fsdp-cts: the record of %s %s%s: it is not judged\n",
            name ? name + 1 : folder, what, why);
    snprintf(file, sizeof(file), "%s/case.json", folder);
    (void)unlink(file);
}

int seals_add(struct seals *s, const char *folder)
{
    struct seal *grown = realloc(s->seal, (s->n + 1u) * sizeof(*grown));
    char *name = strdup(folder);
    uint64_t state = 0;
    int why = grown && name ? state_of(folder, &state) : ENOMEM;

    s->seal = grown ? grown : s->seal;
    if (why != 0) {
        free(name);
        give_up(folder, "cannot be sealed: ", strerror(why));
        return why == ENOMEM ? FSDP_ERR_NOMEM : FSDP_ERR_IO;
    }
    s->seal[s->n++] = (struct seal){name, state};
    return FSDP_OK;
}

uint32_t seals_check(const struct seals *s)
{
    uint32_t changed = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t state;
        int why = state_of(s->seal[i].folder, &state);

        if (why != 0) {
            give_up(s->seal[i].folder,
                    "cannot be looked at after the run: ", strerror(why));
            changed++;
        } else if (state != s->seal[i].state) {
            give_up(s->seal[i].folder, "was changed after its case had ended",
                    "");
            changed++;
        }
    }
    return changed;
}

void seals_release(struct seals *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        free(s->seal[i].folder);
    }
    free(s->seal);
    *s = (struct seals){NULL, 0};
}
