/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_largest.c - how many blocks of a gpt fit on GPUs of this memory.
 *
 * Engine and model together ask for the same number of bytes more with each
 * block, as everything but the blocks stays the same. So two small models tell
 * how much a block takes, and the memory left on the card beside the second one
 * tells how many more there may be: a guess, which then has to train. If it
 * does not fit, because memory is in pieces or a library took more, fewer are
 * tried.
 */
#include "tools/bench/bench_count.h"
#include "tools/bench/bench_cuda.h"
#include "tools/bench/bench_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STEPS = 2,        /* in which all is taken that ever is */
    FEW = 2,          /* blocks: from here on an engine runs ahead */
    MOST = 256,       /* blocks: bench_count.h counts no more */
    MOST_OF_SMALL = 4 /* where nothing is measured */
};

/* The results, in memory that ranks share; rank 0 writes them. */
struct found {
    double asked; /* bytes, of engine and model */
    double left;  /* of the fullest GPU, by the driver; 0: it did not say */
};

struct probe {
    struct bench_plan *plan;
    const struct bench_engine *engine;
    struct bench_sized sized;
    struct bench_driver driver;
    struct bench_count count;
    struct found *found;
};

static void set_blocks(const struct bench_model *model, uint32_t blocks,
                       struct bench_sized *out)
{
    out->model = *model;
    out->blocks = blocks;
    snprintf(out->size, sizeof(out->size), "%.20s%u", model->size, blocks);
    out->model.size = out->size;
}

/* ---- In the rank ------------------------------------------------------- */

static void opened(void *self, struct fsdp_env *env)
{
    struct probe *x = self;

    (void)bench_driver_open(&x->driver);
    bench_count_open(&x->count, env);
}

static int take(void *self, struct world_rank *rank, struct bench_life *life)
{
    struct probe *x = self;
    double all[WORLD_MAX_RANKS];
    double left;
    double seconds;
    int gpus = 0;

    for (int i = 0; i < STEPS; i++) {
        FSDP_TRY(bench_life_step(life, &seconds));
    }
    left = bench_driver_left(&x->driver);
    if (left > 0 &&
        (x->driver.devices(&gpus) != 0 || (uint32_t)gpus < rank->world)) {
        left = 0; /* of a GPU that several share it says nothing */
    }
    FSDP_TRY(rank->exchange(rank->exchange_self, &left, sizeof(left), all));
    for (uint32_t r = 0; r < rank->world; r++) {
        left = all[r] < left ? all[r] : left;
    }
    if (rank->rank == 0) {
        *x->found = (struct found){(double)x->count.peak, left};
    }
    return FSDP_OK;
}

static int in_rank(void *context, struct world_rank *rank)
{
    struct probe x = *(struct probe *)context;
    struct bench_contestant who = {.engine = x.engine->engine,
                                   .lender = x.plan->plain,
                                   .opened = opened,
                                   .self = &x};

    return bench_life_in(&who, &x.sized.model, x.plan->text, x.plan->text_bytes,
                         rank, take);
}

/* ---- Outside ----------------------------------------------------------- */

/* *fits, or the status of what else went wrong. */
static int train(struct probe *x, uint32_t ranks, bool *fits)
{
    struct bench_plan *plan = x->plan;
    int status = bench_life_world(ranks, in_rank, x, &plan->error);

    *fits = status == FSDP_OK;
    if (status != FSDP_OK && plan->error.status == FSDP_ERR_NOMEM) {
        plan->error = (struct fsdp_error){0};
        return FSDP_OK;
    }
    return status;
}

/* From two small models; 0: the driver does not say what is left. */
static int guess(struct probe *x, const struct bench_model *model,
                 uint32_t ranks, uint32_t *out)
{
    double most = x->plan->small ? MOST_OF_SMALL : MOST;
    struct found first;
    double block;
    double n;
    bool fits = false;

    set_blocks(model, FEW, &x->sized);
    FSDP_TRY(train(x, ranks, &fits));
    *out = FEW - 1;
    if (!fits) {
        return FSDP_OK;
    }
    first = *x->found;
    *out = 0;
    if (!(first.left > 0)) {
        return FSDP_OK;
    }
    set_blocks(model, FEW + 1, &x->sized);
    FSDP_TRY(train(x, ranks, &fits));
    *out = FEW;
    block = x->found->asked - first.asked;
    if (first.left - x->found->left > block) {
        block = first.left - x->found->left;
    }
    if (fits && block > 0) {
        n = FEW + first.left / block;
        *out = (uint32_t)(n < most ? n : most);
    }
    return FSDP_OK;
}

/* The guess, or what is below it, has trained. 0: none has, and it is said. */
static int look_for(struct probe *x, const struct bench_model *model,
                    uint32_t ranks, uint32_t *out)
{
    uint32_t n = 0;
    bool fits = false;

    FSDP_TRY(guess(x, model, ranks, &n));
    if (n == 0) {
        fprintf(
            stderr,
            "%s with %u rank(s): left out: the driver does not say how much "
            "memory a rank has\n",
            model->name, ranks);
    }
    while (n > 0) {
        set_blocks(model, n, &x->sized);
        FSDP_TRY(train(x, ranks, &fits));
        if (fits) {
            break;
        }
        n -= 1 + n / 64;
        if (n == 0) {
            fprintf(stderr, "%s with %u rank(s): not even one block fits\n",
                    model->name, ranks);
        }
    }
    *out = n;
    return FSDP_OK;
}

int bench_gpu_size(struct bench_plan *plan, const struct bench_engine *engine,
                   const struct bench_model *model, uint32_t k,
                   struct bench_sized *out)
{
    struct probe x = {.plan = plan, .engine = engine};
    uint32_t *blocks = &plan->largest[engine - plan->engine][k];
    size_t n = strlen(model->size);

    *out = (struct bench_sized){.model = *model};
    if (n == 0 || model->size[n - 1] != '-') {
        return FSDP_OK;
    }
    if (*blocks == 0) {
        x.found = mmap(NULL, sizeof(*x.found), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (x.found == MAP_FAILED) {
            return FSDP_ERR_NOMEM;
        }
        int status = look_for(&x, model, plan->ranks[k], blocks);
        munmap(x.found, sizeof(*x.found));
        FSDP_TRY(status);
    }
    set_blocks(model, *blocks, out);
    out->model.name = *blocks ? model->name : NULL;
    return FSDP_OK;
}
