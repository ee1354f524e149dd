/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_name.c - a folder's name as that of a target, and in a text.
 */
#include "tools/init/engine_name.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char allowed[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* Targets that CMake makes itself, or will not have. */
static const char *const kept[] = {
    "all",           "ALL_BUILD", "clean",          "depend",
    "edit_cache",    "help",      "install",        "preinstall",
    "rebuild_cache", "package",   "package_source", "RUN_TESTS",
    "test",
};

void engine_name(const char *folder, char name[ENGINE_NAME_BYTES])
{
    char path[PATH_MAX];
    const char *last = realpath(folder, path);
    size_t n;

    last = strrchr(last ? last : folder, '/');
    snprintf(name, ENGINE_NAME_BYTES, "%s",
             last && last[1] != '\0' ? last + 1 : "engine");
    for (n = 0; name[n] != '\0'; n++) {
        if (!strchr(allowed, name[n])) {
            name[n] = '-';
        }
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (strcmp(name, kept[i]) == 0) {
            snprintf(name + n, ENGINE_NAME_BYTES - n, "-engine");
            break;
        }
    }
}

void engine_name_write(const char *text, const char *from, const char *name,
                       FILE *to)
{
    char quoted[ENGINE_NAME_BYTES + 2];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\"", from);
    while ((at = strstr(text, quoted))) {
        fprintf(to, "%.*s\"%s\"", (int)(at - text), text, name);
        text = at + strlen(quoted);
    }
    fputs(text, to);
}
