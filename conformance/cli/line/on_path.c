/* SPDX-License-Identifier: Apache-2.0 */
/* on_path.c - see on_path.h. */
#include "cli/line/on_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_on_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];

    if (strchr(program, '/')) {
        return access(program, X_OK) == 0;
    }
    while (path && *path != '\0') {
        const size_t n = strcspn(path, ":");

        if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, program) >
                0 &&
            access(file, X_OK) == 0) {
            return true;
        }
        path += n + (path[n] == ':');
    }
    return false;
}
