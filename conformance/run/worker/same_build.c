/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_build.c - each rank sends the hashes of its program and its engine. Two
 * builds could disagree about what they send, which no collective notices.
 */
#include "run/worker/same_build.h"

#include "record/record_internal.h"
#include "run/worker/engine_load.h"
#include "world/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is sent. Its layout must not change, so that later builds understand
 * it. */
struct build {
    char host[64];
    char suite[65], engine[65]; /* SHA-256; "": none */
};

static int hash(const char *path, char hex[65], struct fsdp_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t bytes;
    int status;

    if (fd < 0) {
        return record_fail(error, FSDP_ERR_IO, "mpi", "%s: %s",
                           record_path_tail(path), strerror(errno));
    }
    status = record_hash_file(fd, hex, &bytes);
    (void)close(fd);
    return status == FSDP_OK
               ? FSDP_OK
               : record_fail(error, status, "mpi", "%s: %s",
                             record_path_tail(path), fsdp_status_text(status));
}

/* What differs from the build of rank 0; NULL: nothing. */
static const char *difference(const struct build *a, const struct build *b)
{
    if (strncmp(a->suite, b->suite, sizeof(a->suite)) != 0) {
        return "fsdp-cts";
    }
    return strncmp(a->engine, b->engine, sizeof(a->engine)) != 0 ? "the engine"
                                                                 : NULL;
}

static int compare_builds(const struct build *all, uint32_t world,
                          struct fsdp_error *error)
{
    for (uint32_t r = 1; r < world; r++) {
        const char *const what = difference(&all[0], &all[r]);

        if (what) {
            return record_fail(
                error, FSDP_ERR_INVALID, "mpi",
                "rank %u on host %.40s has another build of %s than rank 0 on "
                "host %.40s (SHA-256 %.12s, %.12s): install the same on all",
                r, all[r].host, what, all[0].host,
                what[0] == 'f' ? all[r].suite : all[r].engine,
                what[0] == 'f' ? all[0].suite : all[0].engine);
        }
    }
    return FSDP_OK;
}

int same_build(const char *engine, uint32_t world, bool *different,
               struct fsdp_error *error)
{
    struct build *const all = calloc(world, sizeof(*all));
    struct build mine = {.host = ""};
    int known;
    int status;

    (void)gethostname(mine.host, sizeof(mine.host) - 1);
    known = hash("/proc/self/exe", mine.suite, error);
    if (known == FSDP_OK && engine_is_path(engine)) {
        known = hash(engine, mine.engine, error);
    }
    /* A rank that could not hash itself takes part all the same, or all would
     * wait. */
    status = all ? world_mpi_exchange(&mine, sizeof(mine), all, error)
                 : record_fail(error, FSDP_ERR_NOMEM, "mpi", "out of memory");
    status = known != FSDP_OK ? known : status;
    if (status == FSDP_OK) {
        for (uint32_t r = 0; r < world; r++) {
            all[r].host[sizeof(all[r].host) - 1] = '\0';
        }
        status = compare_builds(all, world, error);
        *different = status != FSDP_OK;
    }
    free(all);
    return status;
}
