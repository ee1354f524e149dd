/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_mutants.c - engines that hold more memory than they declare, without
 * allocating it from a device, in places that do not count as their own memory,
 * or only when they do not seem to be watched: found where processes are
 * weighed.
 */
#include "mutants/mutant_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LEAK_BYTES = 4096,
    PATH_BYTES = 4096,
    NAME_BYTES = 200,  /* of an empty file, which holds data in its name */
    PIPE_BYTES = 65536 /* that a pipe has room for */
};

static _Thread_local char *held;
static _Thread_local size_t held_bytes;
static _Thread_local char path[PATH_BYTES];
static _Thread_local bool tells; /* some gradient is not 0 */

static void private_forget(void)
{
    held = NULL;
    held_bytes = 0;
    path[0] = '\0';
    tells = false;
}

/* Holds the model in the heap, which no device knows of. */
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

/* Holds a copy from the first backward of a pass to its end, if there is memory
 * for it. */
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

/* Each block points to the one before. */
static void leaks_in_steps(void)
{
    char *more = malloc(LEAK_BYTES);

    if (more) {
        memset(more, 1, LEAK_BYTES);
        memcpy(more, &held, sizeof(held));
        held = more;
    }
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

/* Makes `path` a file of this rank in the folder for temporary files. */
static void name_own(void)
{
    const char *const folder = getenv("TMPDIR");

    snprintf(path, sizeof(path), "%s/rank-%u", folder ? folder : "/tmp",
             mutant_real.rank);
}

/* Writes a file as large as the model; below 0: there is none. */
static int write_file(const struct fsdp_model *model)
{
    static const char some[4096] = {1};
    int fd;

    name_own();
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (size_t n = 0; fd >= 0 && n < mutant_model_bytes(model);
         n += sizeof(some)) {
        if (write(fd, some, sizeof(some)) < 0) {
            break;
        }
    }
    return fd;
}

static int keeps_in_file(const struct fsdp_env *env,
                         const struct fsdp_model *model,
                         const struct fsdp_units *units,
                         const struct fsdp_options *options,
                         struct fsdp_sharded **out)
{
    const int fd = write_file(model);

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

/* ---- A file that no folder has any more ---------------------------------- */

/* The file stays, as it is mapped. */
static int shard_to_mapping(const struct fsdp_env *env,
                            const struct fsdp_model *model,
                            const struct fsdp_units *units,
                            const struct fsdp_options *options,
                            struct fsdp_sharded **out)
{
    const int fd = write_file(model);
    void *p;

    held_bytes = mutant_model_bytes(model);
    p = mmap(NULL, held_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    held = p == MAP_FAILED ? NULL : p;
    if (fd >= 0) {
        (void)unlink(path);
        close(fd);
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void destroy_mapping(struct fsdp_sharded *s)
{
    if (held) {
        (void)munmap(held, held_bytes);
        held = NULL;
    }
    mutant_real.engine.destroy(s);
}

/* ---- Names of files that are empty --------------------------------------- */

/* Makes the path of file i in the folder `path`. */
static void name_of(size_t i, char file[PATH_BYTES])
{
    char name[NAME_BYTES + 1];

    memset(name, 'w', NAME_BYTES);
    name[NAME_BYTES] = '\0';
    snprintf(file, PATH_BYTES, "%.2000s/%zu-%s", path, i, name);
}

static int shard_to_names(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    char file[PATH_BYTES];

    name_own();
    (void)mkdir(path, 0700);
    for (size_t i = 0; i * NAME_BYTES < mutant_model_bytes(model); i++) {
        int fd;

        name_of(i, file);
        fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
        }
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void destroy_names(struct fsdp_sharded *s)
{
    char file[PATH_BYTES];

    for (size_t i = 0; i * NAME_BYTES < mutant_model_bytes(mutant_real.model);
         i++) {
        name_of(i, file);
        (void)unlink(file);
    }
    (void)rmdir(path);
    mutant_real.engine.destroy(s);
}

/* ---- Pipes, of which nobody reads ---------------------------------------- */

struct filled {
    uint32_t n;
    int end[128][2];
};
static _Thread_local void *filled_room; /* struct filled */

static int shard_to_pipes(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    static const char some[4096] = {1};
    struct filled *const f = mutant_room(&filled_room, sizeof(*f));

    for (size_t n = 0; f && f->n < 128 && n < mutant_model_bytes(model);
         n += PIPE_BYTES) {
        if (pipe2(f->end[f->n], O_NONBLOCK | O_CLOEXEC) != 0) {
            break;
        }
        for (size_t i = 0; i < PIPE_BYTES; i += sizeof(some)) {
            (void)!write(f->end[f->n][1], some, sizeof(some));
        }
        f->n++;
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void destroy_pipes(struct fsdp_sharded *s)
{
    struct filled *const f = mutant_room(&filled_room, sizeof(*f));

    while (f && f->n > 0) {
        f->n--;
        close(f->end[f->n][0]);
        close(f->end[f->n][1]);
    }
    mutant_real.engine.destroy(s);
}

/* Resets the kernel's peak of resident memory, so that the peak is not seen
 * afterwards. */
static void forget_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "5", 1);
        close(fd);
    }
}

static int copies_and_forgets(struct fsdp_sharded *s, uint32_t point,
                              uint32_t index)
{
    const int status = copies_model(s, point, index);

    if (point == FSDP_END) {
        forget_peak();
    }
    return status;
}

/* ---- Only where somebody computes ---------------------------------------- */

static int look_at_gradients(struct fsdp_stream *stream,
                             const struct fsdp_collective *c)
{
    const float *const x = c->in;

    for (uint64_t i = 0;
         c->kind == FSDP_REDUCE_SCATTER && c->dtype == FSDP_DTYPE_F32 &&
         i < c->n * mutant_real.shards;
         i++) {
        tells = tells || x[i] != 0.0f;
    }
    return mutant_communicate(stream, c);
}

static int looking_run(void *self, struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    (void)self;
    return look_at_gradients(stream, c);
}

static void keeps_if_it_matters(void)
{
    if (tells && !held) {
        (void)hold(mutant_real.model);
    }
}

#define WEIGHED                                                      \
    .shows = {.in = mutant_weighed, .n_cases = 1, .isolated = true}, \
    .forget = private_forget

const struct mutant private_mutants[] = {
    {.name = "hidden-forgets-peak",
     .text = "each backward has a copy of the whole model in the heap, and "
             "then the kernel is told to forget the peak",
     .evidence = "design: a rank can write what resets its own peak",
     .kills = "memory.private-peak",
     WEIGHED,
     .calls.at = copies_and_forgets},
    {.name = "hidden-in-mapping",
     .text = "the whole model is kept in a file that is mapped, and that no "
             "folder has any more",
     .evidence = "design: such memory counts as a file's, and such a file is "
                 "in no folder",
     .kills = "memory.private-files",
     WEIGHED,
     .calls = {.shard = shard_to_mapping, .destroy = destroy_mapping}},
    {.name = "hidden-in-names",
     .text = "the whole model is kept in names of files that are empty",
     .evidence = "design: a file of no bytes has a name",
     .kills = "memory.private-files",
     WEIGHED,
     .calls = {.shard = shard_to_names, .destroy = destroy_names}},
    {.name = "hidden-in-pipes",
     .text = "the whole model is kept in pipes from which nobody reads",
     .evidence = "design: what is in a pipe is the kernel's memory",
     .kills = "comm.no-private-channel",
     WEIGHED,
     .calls = {.shard = shard_to_pipes, .destroy = destroy_pipes}},
    {.name = "hidden-unless-weighed",
     .text = "the whole model is kept once a gradient other than 0 was sent",
     .evidence = "design: where processes are weighed no model computes",
     .kills = "memory.private-rest",
     WEIGHED,
     .comm.run = looking_run,
     .before_step = keeps_if_it_matters,
     .calls.destroy = keeps_model_destroy},
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
     .before_step = leaks_in_steps,
     .calls.destroy = leaks_in_steps_destroy},
    {.name = "private-reserves-model",
     .text = "each pass maps memory for the whole model, and does not use it",
     .evidence = "design: a machine that does not overcommit has to have it",
     .kills = "memory.bounded",
     WEIGHED,
     .calls.at = reserves_model},
    {0},
};
