/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash_mutants.c - engines that fail, die, hang or do nothing at all.
 */
#include "mutants/mutant_kit.h"

#include <signal.h>
#include <unistd.h>

static int gives_up(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return mutant_now.steps == 2 && mutant_real.rank == 0
               ? FSDP_ERR_INTERNAL
               : mutant_real.engine.step(s, how);
}

static void hostile_crash(void)
{
    if (mutant_now.steps == 1 && mutant_real.rank == 0) {
        raise(SIGSEGV);
    }
}

static void hostile_exit_zero(void)
{
    if (mutant_now.steps == 1 && mutant_real.rank == 0) {
        _exit(0);
    }
}

static void hostile_hang(void)
{
    while (mutant_now.steps == 1 && mutant_real.rank == 1) {
        pause();
    }
}

static int ok_shard(const struct fsdp_env *env, const struct fsdp_model *model,
                    const struct fsdp_units *units,
                    const struct fsdp_options *options,
                    struct fsdp_sharded **out)
{
    (void)env, (void)model, (void)units, (void)options;
    *out = NULL;
    return FSDP_OK;
}

static int ok_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    (void)s, (void)point, (void)index;
    return FSDP_OK;
}

static int ok_lend(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    (void)s, (void)p;
    *out = (struct fsdp_tensor){0};
    return FSDP_OK;
}

static int ok_set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    (void)s, (void)on;
    return FSDP_OK;
}

static int ok_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    (void)s, (void)how;
    return FSDP_OK;
}

static int ok_nothing(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

static int ok_pieces(struct fsdp_sharded *s,
                     void (*visit)(void *context,
                                   const struct fsdp_piece *piece),
                     void *context)
{
    (void)s, (void)visit, (void)context;
    return FSDP_OK;
}

static void ok_destroy(struct fsdp_sharded *s)
{
    (void)s;
}

const struct mutant crash_mutants[] = {
    /* A rank fails in step 2, and says so. */
    {.name = "gives-up",
     .text = "rank 0 returns an error from its third step",
     .evidence = "an engine that fails must not pass by what it did before",
     .kills = "run.completes",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .calls.step = gives_up},
    {.name = "hostile-always-ok",
     .text = "nothing is done, and all of it succeeds",
     .evidence = "a stub that is linked by accident",
     .kills = "run.completes",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .calls = {.shard = ok_shard,
               .at = ok_at,
               .param = ok_lend,
               .grad = ok_lend,
               .set_gradient_sync = ok_set_gradient_sync,
               .step = ok_step,
               .zero_grad = ok_nothing,
               .pieces = ok_pieces,
               .unshard_all = ok_nothing,
               .reshard_all = ok_nothing,
               .destroy = ok_destroy}},
    /* A rank dies of a signal. */
    {.name = "hostile-crash",
     .text = "rank 0 dies of SIGSEGV in its second step",
     .evidence = "pytorch/pytorch#174862",
     .kills = "run.survives",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .before_step = hostile_crash},
    /* A rank leaves the process, and says that all was well. */
    {.name = "hostile-exit-zero",
     .text = "rank 0 calls _exit(0) in its second step",
     .evidence =
         "a child that ends early with status 0 must not count as passed",
     .kills = "run.survives",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .before_step = hostile_exit_zero},
    /* The rank waits outside of any collective. */
    {.name = "hostile-hang",
     .text = "rank 1 sleeps for ever in its second step",
     .evidence = "NVIDIA/Megatron-LM#6573",
     .kills = "run.survives",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .before_step = hostile_hang},
    {0},
};
