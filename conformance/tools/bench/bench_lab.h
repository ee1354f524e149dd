/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_lab.h - an engine's device, opened alone: one rank, no communicator.
 */
#ifndef FSDP_CTS_BENCH_LAB_H
#define FSDP_CTS_BENCH_LAB_H

#include <fsdp/engine.h>

struct bench_lab {
    const struct fsdp_engine *engine;
    uint32_t extent[2];
    struct fsdp_mesh mesh;
    struct fsdp_comm comm;
    struct fsdp_error error;
    struct fsdp_env env;
};

int bench_lab_open(struct bench_lab *lab, const struct fsdp_engine *engine);
void bench_lab_close(struct bench_lab *lab);

#endif
