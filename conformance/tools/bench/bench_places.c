/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_places.c - on what each engine's device computes, and what the GPU is
 * called: asked in a process of its own, since one that has opened a GPU
 * cannot be forked.
 */
#include "tools/bench/bench.h"
#include "tools/bench/bench_cuda.h"
#include "tools/bench/bench_lab.h"
#include "tools/bench/bench_life.h"

#include <stdio.h>
#include <sys/mman.h>

struct place {
    uint32_t place;
    char gpu[BENCH_NAME_BYTES];
};

struct asked {
    const struct fsdp_engine *engine;
    struct place *found; /* shared */
};

static int find_place(void *context, struct world_rank *rank)
{
    struct asked *x = context;
    struct bench_lab lab;
    struct bench_driver driver;
    int status = bench_lab_open(&lab, x->engine);

    if (status != FSDP_OK) {
        *rank->error = lab.error;
        return status;
    }
    x->found->place = lab.env.device ? lab.env.device->place : FSDP_PLACE_HOST;
    if (x->found->place == FSDP_PLACE_CUDA) {
        (void)bench_driver_open(&driver);
        bench_driver_name(&driver, x->found->gpu, sizeof(x->found->gpu));
    }
    bench_lab_close(&lab);
    return FSDP_OK;
}

int bench_places(struct bench_plan *plan)
{
    struct place *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = FSDP_OK;

    if (shared == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t e = 0; e < plan->n_engines && status == FSDP_OK; e++) {
        struct asked x = {plan->engine[e].engine, shared};
        shared->place = FSDP_PLACE_HOST;
        if (x.engine->open) {
            status = bench_life_world(1, find_place, &x, &plan->error);
        }
        plan->engine[e].place = shared->place;
    }
    snprintf(plan->report.gpu, sizeof(plan->report.gpu), "%s", shared->gpu);
    munmap(shared, sizeof(*shared));
    return status;
}
