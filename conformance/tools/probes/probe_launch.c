/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_launch.c - see probe_launch.h. Three variables in the environment make
 * a Python program log itself. Its children have them, too: so it does not
 * matter what starts the ranks.
 */
#include "tools/probes/probe_launch.h"

#include "cli/commands.h"
#include "cli/line/arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside the program where it is installed, or in the tree that it was built
 * in. */
static const char *const objects[] = {"../" FSDP_LIBDIR
                                      "/fsdp-cts/fsdp-probe-torch.so",
                                      "../probes/fsdp-probe-torch.so"};
static const char *const folders[] = {"../share/fsdp-cts/probes",
                                      "../../conformance/tools/probes/torch"};

static bool find_beside(const char *const relative[2], const char *file,
                        char path[PATH_MAX])
{
    char self[PATH_MAX] = "";
    char name[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    if (!slash) {
        return false;
    }
    *slash = '\0';
    for (int i = 0; i < 2; i++) {
        if (snprintf(name, sizeof(name), "%s/%s", self, relative[i]) <
                (int)sizeof(name) &&
            realpath(name, path) && strlen(path) + strlen(file) < PATH_MAX) {
            const size_t end = strlen(path);
            snprintf(path + end, PATH_MAX - end, "%s", file);
            const bool is_there = access(path, R_OK) == 0;
            path[end] = '\0';
            if (is_there) {
                return true;
            }
        }
    }
    return false;
}

/* Before what the variable has. */
static bool put_before(const char *variable, const char *first)
{
    const char *had = getenv(variable);
    const size_t room = strlen(first) + (had ? strlen(had) : 0) + 2;
    char *both = malloc(room);
    bool done = false;

    if (both) {
        snprintf(both, room, "%s%s%s", first, had && *had ? ":" : "",
                 had ? had : "");
        done = setenv(variable, both, 1) == 0;
    }
    free(both);
    return done;
}

/* Ranks may run in folders of their own. */
static bool set_log(const char *folder)
{
    char here[PATH_MAX];
    char log[2 * PATH_MAX];

    if (folder[0] == '/') {
        return setenv("FSDP_PROBE_LOG", folder, 1) == 0;
    }
    return getcwd(here, sizeof(here)) &&
           snprintf(log, sizeof(log), "%s/%s", here, folder) <
               (int)sizeof(log) &&
           setenv("FSDP_PROBE_LOG", log, 1) == 0;
}

int probe_launch(char **argv)
{
    char object[PATH_MAX];
    char folder[PATH_MAX];

    if (!argv[0] || !argv[1]) {
        fprintf(stderr, "fsdp-cts probe: --torch needs a folder for logs and a "
                        "program; see: fsdp-cts probe --help\n");
        return EXIT_USAGE;
    }
    if (!find_beside(objects, "", object) ||
        !find_beside(folders, "/sitecustomize.py", folder)) {
        fprintf(stderr,
                "fsdp-cts probe: neither an installation nor a tree that was "
                "built has fsdp-probe-torch.so and its sitecustomize.py\n");
        return EXIT_USAGE;
    }
    if (strpbrk(object, " :") || strchr(folder, ':')) {
        fprintf(stderr,
                "fsdp-cts probe: %.200s: LD_PRELOAD can have no path with a "
                "blank or a colon\n",
                object);
        return EXIT_USAGE;
    }
    if (!set_log(argv[0]) || !put_before("LD_PRELOAD", object) ||
        !put_before("PYTHONPATH", folder)) {
        fprintf(stderr, "fsdp-cts probe: out of memory, or a path too long\n");
        return EXIT_BAD_DATA;
    }
    (void)execvp(argv[1], argv + 1);
    fprintf(stderr, "fsdp-cts probe: %.200s: %s\n", argv[1], strerror(errno));
    return EXIT_USAGE;
}
