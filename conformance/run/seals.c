/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seals.c - what the file system says of a folder, and whether it still does.
 */
#include "run/seals.h"

#include <fsdp/status.h>

#include <dirent.h>
#include <fcntl.h>
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

static uint64_t state_of_entry(int folder, const char *name)
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
    }
    return h;
}

/* In any order. A folder that is not there has a state, too. */
static uint64_t state_of(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    uint64_t sum = 0;

    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, "..") != 0) {
            sum += state_of_entry(dirfd(d), e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    return sum;
}

int seals_add(struct seals *s, const char *folder)
{
    struct seal *grown = realloc(s->seal, (s->n + 1u) * sizeof(*grown));
    char *name = strdup(folder);

    s->seal = grown ? grown : s->seal;
    if (!grown || !name) {
        free(name);
        return FSDP_ERR_NOMEM;
    }
    s->seal[s->n++] = (struct seal){name, state_of(folder)};
    return FSDP_OK;
}

uint32_t seals_check(const struct seals *s)
{
    uint32_t changed = 0;
    char file[4096 + 16];

    for (uint32_t i = 0; i < s->n; i++) {
        const char *folder = s->seal[i].folder;
        const char *name = strrchr(folder, '/');

        if (state_of(folder) == s->seal[i].state) {
            continue;
        }
        fprintf(stderr,
                "fsdp-cts: the record of %s was changed after its case had "
                "ended: it is not judged\n",
                name ? name + 1 : folder);
        snprintf(file, sizeof(file), "%s/case.json", folder);
        (void)unlink(file);
        changed++;
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
