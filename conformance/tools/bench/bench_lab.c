/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_lab.c - an engine's device, opened alone.
 */
#include "tools/bench/bench_lab.h"

#include <string.h>

static int no_run(void *self, struct fsdp_stream *stream,
                  const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    (void)c;
    return FSDP_ERR_UNSUPPORTED;
}

static void no_abort(void *self, int32_t status)
{
    (void)self;
    (void)status;
}

static int no_exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

int bench_lab_open(struct bench_lab *lab, const struct fsdp_engine *engine)
{
    static const char *const names[] = {"replicate", "shard"};

    *lab = (struct bench_lab){.engine = engine, .extent = {1, 1}};
    lab->mesh = (struct fsdp_mesh){sizeof(lab->mesh), 2, names, lab->extent};
    lab->comm = (struct fsdp_comm){
        .size = sizeof(lab->comm), .run = no_run, .abort = no_abort};
    lab->env = (struct fsdp_env){.size = sizeof(lab->env),
                                 .world = 1,
                                 .mesh = &lab->mesh,
                                 .comm = &lab->comm,
                                 .error = &lab->error,
                                 .exchange = no_exchange};
    return engine->open ? engine->open(&lab->env) : FSDP_ERR_UNSUPPORTED;
}

void bench_lab_close(struct bench_lab *lab)
{
    if (lab->engine && lab->engine->close) {
        lab->engine->close(&lab->env);
    }
}
