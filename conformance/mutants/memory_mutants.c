/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_mutants.c - engines that need more memory than they should, that do
 * not give it back, or that declare it wrongly.
 */
#include "mutants/mutant_kit.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUND = 512, /* bytes of storage_rounded */
    LEAKS = 64,
    LEAK_BYTES = 64
};

static _Thread_local void *gradient; /* of dead_forgotten */
static _Thread_local void *copy;     /* of hostile_full_copy */
static _Thread_local uint64_t copy_bytes;
static _Thread_local pid_t helper;      /* of hostile_helper */
static _Thread_local bool forgets_free; /* of leak_at_destroy */
static _Thread_local void *leak[LEAKS]; /* of slow_leak */
static _Thread_local uint32_t n_leaks;

static void memory_forget(void)
{
    gradient = copy = NULL;
    forgets_free = false;
    n_leaks = 0;
    helper = 0;
}

static int allocations_grow(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(mutant_real.engine.step(s, how));
    for (uint32_t i = 0; i <= mutant_now.steps; i++) {
        void *p;

        FSDP_TRY(d->alloc(d->self, 64, &p));
        d->free(d->self, p);
    }
    return FSDP_OK;
}

static void dead_forgotten_live(void *self, struct fsdp_stream *stream,
                                uint32_t kind, uint32_t unit, void *p,
                                uint64_t bytes)
{
    if (kind == FSDP_GRAD_FULL) {
        gradient = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static void dead_forgotten(void *self, struct fsdp_stream *stream, void *p)
{
    if (p != gradient) {
        mutant_real.device->dead(self, stream, p);
    }
}

static bool is_opening_forward(void)
{
    return mutant_now.point == FSDP_PRE_FORWARD;
}

static int hostile_full_copy(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    copy_bytes = 1;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        copy_bytes += fsdp_numel(model, p) * sizeof(float);
    }
    copy = mmap(NULL, copy_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
        copy = NULL;
        return FSDP_ERR_NOMEM;
    }
    memset(copy, 1, copy_bytes);
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void hostile_full_copy_destroy(struct fsdp_sharded *s)
{
    if (copy) {
        munmap(copy, copy_bytes);
        copy = NULL;
    }
    mutant_real.engine.destroy(s);
}

/* The memory that a helper process holds: far more than ranks share with it,
 * even with a sanitizer's own memory. */
enum {
    HELD_BYTES = 256 << 20
};

static _Noreturn void help(void)
{
    void *held = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    for (;;) {
        (void)held;
        pause();
    }
}

static int hostile_helper(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    if (env->rank == 0) {
        helper = fork();
        if (helper == 0) {
            help();
        }
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void hostile_helper_destroy(struct fsdp_sharded *s)
{
    if (helper > 0) {
        (void)kill(helper, SIGKILL);
        (void)waitpid(helper, NULL, 0);
        helper = 0;
    }
    mutant_real.engine.destroy(s);
}

static bool is_large(const struct run_case *c)
{
    return strcmp(c->size, "large") == 0 && c->ranks > c->replicas;
}

static void leak_at_destroy_free(void *self, void *p)
{
    if (!(forgets_free && p)) {
        mutant_real.device->free(self, p);
    }
    forgets_free = forgets_free && !p;
}

static void leak_at_destroy(struct fsdp_sharded *s)
{
    forgets_free = s != NULL;
    mutant_real.engine.destroy(s);
    forgets_free = false;
}

static void live_beyond_storage(void *self, struct fsdp_stream *stream,
                                uint32_t kind, uint32_t unit, void *p,
                                uint64_t bytes)
{
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
    if (kind == FSDP_GRAD_SHARD) {
        mutant_real.device->live(self, stream, FSDP_STAGING, unit,
                                 (char *)p + bytes, 64);
    }
}

static int slow_leak(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(mutant_real.engine.step(s, how));
    if (n_leaks < LEAKS) {
        FSDP_TRY(d->alloc(d->self, LEAK_BYTES, &leak[n_leaks]));
        d->live(d->self, NULL, FSDP_STAGING, FSDP_NO_UNIT, leak[n_leaks],
                LEAK_BYTES);
        n_leaks++;
    }
    return FSDP_OK;
}

static void slow_leak_destroy(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = mutant_real.device;

    while (n_leaks > 0) {
        d->dead(d->self, NULL, leak[--n_leaks]);
        d->free(d->self, leak[n_leaks]);
    }
    mutant_real.engine.destroy(s);
}

static int storage_rounded(void *self, uint64_t bytes, void **out)
{
    return mutant_real.device->alloc(self, (bytes + ROUND - 1) / ROUND * ROUND,
                                     out);
}

const struct mutant memory_mutants[] = {
    /* Each step allocates once more than the step before. */
    {.name = "allocations-grow",
     .text = "the number of allocations in a step grows with steps",
     .evidence = "deepspeedai/DeepSpeed#5143",
     .kills = "memory.steps-do-not-grow",
     .shows = {.in = mutant_plain},
     .calls.step = allocations_grow},
    /* A world of one rank unshards into a copy. */
    {.name = "alone-copies",
     .text = "with one shard there is a full copy of parameters during a pass",
     .evidence = "pytorch/pytorch#195732",
     .kills = "memory.single-rank",
     .shows = {.in = mutant_alone},
     .fault = {MUTANT_HAS_BALLAST, .of = FSDP_PARAM_FULL}},
    /* A pass that is cancelled does not give its gradients back. */
    {.name = "cancel-leaks",
     .text = "unsharded gradients of a cancelled pass stay live",
     .evidence = "deepspeedai/DeepSpeed#3582, a leak after an exception",
     .kills = "memory.rest-after-step",
     .shows = {.in = mutant_cancels},
     .fault = {MUTANT_HOLDS, FSDP_GRAD_FULL, MUTANT_NEVER},
     .when = mutant_is_cancelling},
    /* Storage is freed while it is said to hold a value. */
    {.name = "dead-forgotten",
     .text = "dead is not called for unsharded gradients",
     .evidence = "a counter that is wrong for ever after",
     .kills = "memory.ranges-valid",
     .shows = {.in = mutant_plain},
     .device.live = dead_forgotten_live,
     .device.dead = dead_forgotten,
     .forget = memory_forget},
    /* After an evaluation, parameters stay unsharded until the next pass. */
    {.name = "eval-keeps-unsharded",
     .text = "what an evaluation gathered is not given back",
     .evidence = "pytorch/pytorch#72541",
     .kills = "memory.rest-after-step",
     .shows = {.in = mutant_evaluates},
     .fault = {MUTANT_HOLDS, FSDP_PARAM_FULL, FSDP_BEGIN},
     .when = mutant_is_evaluating},
    /* The output of an all-gather stays after it was unpacked. */
    {.name = "gathered-kept",
     .text = "the output of the first all-gather is given back at the end of "
             "the pass only",
     .evidence = "buffers of collectives held to the end of a pass",
     .kills = "memory.peak-total",
     .shows = {.in = mutant_rows},
     .fault = {MUTANT_HOLDS, FSDP_STAGING, FSDP_END},
     .when = is_opening_forward},
    /* No bound counts activations. */
    {.name = "hidden-as-activation",
     .text = "GRAD_FULL is declared as ACTIVATION",
     .evidence = "design: a kind that is misnamed",
     .kills = "memory.peak-gradients",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_MISNAMES, FSDP_GRAD_FULL, FSDP_ACTIVATION}},
    /* The copy is kept where no recorder sees it. */
    {.name = "hostile-full-copy",
     .text = "every rank maps and keeps memory as large as the whole model",
     .evidence =
         "design: memory that is hidden from the device is seen from outside",
     .kills = "memory.process-growth",
     .shows = {.in = is_large, .n_cases = 1},
     .calls.shard = hostile_full_copy,
     .calls.destroy = hostile_full_copy_destroy,
     .forget = memory_forget},
    /* The same in another process, which might be overlooked. */
    {.name = "hostile-helper",
     .text = "rank 0 starts a process that holds 256 MiB",
     .evidence = "design: a process that an engine starts is as good as a rank",
     .kills = "comm.no-private-channel memory.process-growth",
     .shows = {.in = is_large, .n_cases = 1},
     .calls.shard = hostile_helper,
     .calls.destroy = hostile_helper_destroy,
     .forget = memory_forget},
    {.name = "hostile-kinds-misnamed",
     .text = "what is unsharded is declared as staging",
     .evidence = "design: a kind that is misnamed",
     .kills = "memory.peak-unsharded",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_MISNAMES, FSDP_PARAM_FULL, FSDP_STAGING}},
    /* One allocation is never given back. */
    {.name = "leak-at-destroy",
     .text = "destroy forgets the first thing that it should free",
     .evidence = "pytorch/pytorch#149100",
     .kills = "run.leaves-nothing",
     .shows = {.in = mutant_plain},
     .device.free = leak_at_destroy_free,
     .calls.destroy = leak_at_destroy,
     .forget = memory_forget},
    /* A range is declared that is longer than its storage. */
    {.name = "live-beyond-storage",
     .text = "ranges are said to be live past the end of their allocation",
     .evidence =
         "a pool with a wrong size: the recorder must not be led to read there",
     .kills = "memory.ranges-valid",
     .shows = {.in = mutant_plain},
     .device.live = live_beyond_storage},
    /* The input of a reduce-scatter is given back only at the end of the
     * pass. */
    {.name = "reduce-input-held",
     .text = "unsharded gradients stay live until END",
     .evidence = "pytorch/pytorch#179443",
     .kills = "memory.peak-gradients",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_HOLDS, FSDP_GRAD_FULL, FSDP_END}},
    /* The memory of an unsharded unit is given back only at the end of the
     * pass. */
    {.name = "reshard-late",
     .text = "unsharded parameters stay live until END",
     .evidence = "pytorch/pytorch#83917",
     .kills = "memory.peak-unsharded",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_HOLDS, FSDP_PARAM_FULL, FSDP_END}},
    {.name = "second-shard",
     .text = "there is a second copy of all shards during a pass",
     .evidence = "weights that are kept for an average, or to go back to",
     .kills = "memory.peak-parameters",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_HAS_BALLAST, .of = FSDP_PARAM_SHARD}},
    /* A few bytes more are live after each step. */
    {.name = "slow-leak",
     .text = "every step leaves a live range of 64 bytes behind until destroy",
     .evidence = "deepspeedai/DeepSpeed#5143",
     .kills = "memory.rest-after-step",
     .shows = {.in = mutant_plain},
     .calls.step = slow_leak,
     .calls.destroy = slow_leak_destroy,
     .forget = memory_forget},
    /* Packing buffers as large as all shards live during a pass. */
    {.name = "staging-in-pass",
     .text = "staging memory grows with the model, not with the largest unit",
     .evidence = "ISEEKYAN/Megatron-LM#158",
     .kills = "memory.peak-total",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_HAS_BALLAST, .of = FSDP_STAGING}},
    /* Every allocation is made larger than it has to be. */
    {.name = "storage-rounded",
     .text = "each allocation is rounded up to 512 bytes",
     .evidence = "the block size of PyTorch's caching allocator: what a model "
                 "needs is not what the device must have",
     .kills = "memory.storage-total",
     .shows = {.in = mutant_plain},
     .device.alloc = storage_rounded},
    /* Unsharded parameters are stored, and never said to be live. */
    {.name = "unsharded-undeclared",
     .text = "live is not called for PARAM_FULL",
     .evidence = "pytorch/pytorch#147179: memory that no counter sees",
     .kills = "memory.peak-unsharded",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_MISNAMES, FSDP_PARAM_FULL, FSDP_N_KINDS}},
    {0},
};
