/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_mutants.c - engines that hold more than they say, where no device is
 * asked for it: found where processes are weighed.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEAK_BYTES = 4096,
    PATH_BYTES = 4096
};

static _Thread_local char *held;
static _Thread_local size_t held_bytes;
static _Thread_local char path[PATH_BYTES];

static void private_forget(void)
{
    held = NULL;
    held_bytes = 0;
    path[0] = '\0';
}

/* In the heap: no device is asked for it. */
static bool hold(const struct fsdp_model *model)
{
    held_bytes = mutant_model_bytes(model);
    held = malloc(held_bytes);
    if (held) {
        memset(held, 1, held_bytes);
    }
    return held != NULL;
}

static void let_go(void)
{
    free(held);
    held = NULL;
}

static int keeps_model(const struct fsdp_env *env,
                       const struct fsdp_model *model,
                       const struct fsdp_units *units,
                       const struct fsdp_options *options,
                       struct fsdp_sharded **out)
{
    if (!hold(model)) {
        return FSDP_ERR_NOMEM;
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void keeps_model_destroy(struct fsdp_sharded *s)
{
    let_go();
    mutant_real.engine.destroy(s);
}

/* From the first backward of a pass to its end, if there is room for it. */
static int copies_model(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const int status = mutant_real.engine.at(s, point, index);

    if (point == FSDP_PRE_BACKWARD && !held) {
        (void)hold(mutant_real.model);
    }
    if (point == FSDP_END) {
        let_go();
    }
    return status;
}

static int reserves_model(struct fsdp_sharded *s, uint32_t point,
                          uint32_t index)
{
    if (point == FSDP_BEGIN) {
        held_bytes = mutant_model_bytes(mutant_real.model);
        held = mmap(NULL, held_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (held == MAP_FAILED) {
            held = NULL;
            return FSDP_ERR_NOMEM;
        }
    }
    if (point == FSDP_END && held) {
        (void)munmap(held, held_bytes);
        held = NULL;
    }
    return mutant_real.engine.at(s, point, index);
}

/* The link to the one before is in each. */
static int leaks_in_steps(struct fsdp_sharded *s, struct fsdp_step *how)
{
    char *more = malloc(LEAK_BYTES);

    if (more) {
        memset(more, 1, LEAK_BYTES);
        memcpy(more, &held, sizeof(held));
        held = more;
    }
    return mutant_real.engine.step(s, how);
}

static void leaks_in_steps_destroy(struct fsdp_sharded *s)
{
    while (held) {
        char *next;

        memcpy(&next, held, sizeof(next));
        free(held);
        held = next;
    }
    mutant_real.engine.destroy(s);
}

static int keeps_in_file(const struct fsdp_env *env,
                         const struct fsdp_model *model,
                         const struct fsdp_units *units,
                         const struct fsdp_options *options,
                         struct fsdp_sharded **out)
{
    static const char some[4096] = {1};
    const char *folder = getenv("TMPDIR");
    int fd;

    (void)snprintf(path, sizeof(path), "%s/model-XXXXXX",
                   folder ? folder : "/tmp");
    fd = mkstemp(path);
    for (size_t n = 0; fd >= 0 && n < mutant_model_bytes(model);
         n += sizeof(some)) {
        if (write(fd, some, sizeof(some)) < 0) {
            break;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void keeps_in_file_destroy(struct fsdp_sharded *s)
{
    (void)unlink(path);
    mutant_real.engine.destroy(s);
}

static bool lasts(const struct run_case *c)
{
    return case_is_weighed(c) && c->steps >= 20;
}

#define WEIGHED                                                      \
    .shows = {.in = mutant_weighed, .n_cases = 1, .isolated = true}, \
    .forget = private_forget

const struct mutant private_mutants[] = {
    {.name = "private-copies-model",
     .text = "each backward has a copy of the whole model in the heap",
     .evidence = "design: gathered once, behind the device",
     .kills = "memory.private-peak",
     WEIGHED,
     .calls.at = copies_model},
    {.name = "private-keeps-in-file",
     .text = "the whole model is kept in a temporary file",
     .evidence = "design: what is in a file is in no process's memory",
     .kills = "memory.private-files",
     WEIGHED,
     .calls = {.shard = keeps_in_file, .destroy = keeps_in_file_destroy}},
    {.name = "private-keeps-model",
     .text = "the whole model is kept in the heap",
     .evidence = "design: weights that stay beside their shards",
     .kills = "memory.private-rest",
     WEIGHED,
     .calls = {.shard = keeps_model, .destroy = keeps_model_destroy}},
    {.name = "private-leaks",
     .text = "each step leaves 4 KiB of the heap behind",
     .evidence = "design: host memory that grows with steps",
     .kills = "memory.private-steady",
     .shows = {.in = lasts, .n_cases = 1, .isolated = true},
     .forget = private_forget,
     .calls = {.step = leaks_in_steps, .destroy = leaks_in_steps_destroy}},
    {.name = "private-reserves-model",
     .text = "each pass maps memory for the whole model, and does not use it",
     .evidence = "design: a machine that does not overcommit has to have it",
     .kills = "memory.bounded",
     WEIGHED,
     .calls.at = reserves_model},
    {0},
};
