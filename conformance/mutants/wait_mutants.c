/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_mutants.c - engines that forget to wait for work on another stream.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

static _Thread_local bool next_too;
static _Thread_local bool in_pieces;

static void wait_forget(void)
{
    next_too = false;
    in_pieces = false;
}

/* Also forgets the wait that follows, once: it is for the place that is
 * gathered into, and would wait for the same work. */
static int no_wait_optimizer_all_gather(void *self, struct fsdp_stream *later,
                                        struct fsdp_stream *earlier,
                                        uint64_t ticket, const char *edge)
{
    bool forgotten = next_too || strcmp(edge, "optimizer->all-gather") == 0;

    next_too = strcmp(edge, "optimizer->all-gather") == 0;
    return forgotten
               ? FSDP_OK
               : mutant_real.device->wait(self, later, earlier, ticket, edge);
}

/* A communicator without streams is called before the stream has come that
 * far. */
static int no_wait_communicator(void *self, struct fsdp_stream *stream,
                                const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    return mutant_communicate(NULL, c);
}

static void take_no_streams(struct fsdp_env *env)
{
    mutant_comm(env)->takes_streams = 0;
}

static bool has_only_replicas(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_NO_SHARD && c->ranks > 1;
}

static int no_sync_pieces_sync(void *self, struct fsdp_stream *stream)
{
    return in_pieces ? FSDP_OK : mutant_real.device->sync(self, stream);
}

static int no_sync_pieces(struct fsdp_sharded *s,
                          void (*visit)(void *context,
                                        const struct fsdp_piece *piece),
                          void *context)
{
    int status;

    in_pieces = true;
    status = mutant_real.engine.pieces(s, visit, context);
    in_pieces = false;
    return status;
}

static bool is_before_end(void)
{
    return mutant_now.point != FSDP_END && mutant_now.point != FSDP_CANCEL;
}

const struct mutant wait_mutants[] = {
    {.name = "no-sync-pieces",
     .text = "pieces are shown while streams still write them",
     .evidence = "pytorch/pytorch#198020: copied before it was done",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .device.sync = no_sync_pieces_sync,
     .calls.pieces = no_sync_pieces,
     .forget = wait_forget},
    {.name = "no-wait-all-gather-compute",
     .text = "compute does not wait for the all-gather of its parameters",
     .evidence = "deepspeedai/DeepSpeed#5216: parameters are used before they "
                 "are complete",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .forgets = "all-gather->compute"},
    {.name = "no-wait-all-reduce-reuse",
     .text = "the next contribution overwrites one that is still being added",
     .evidence = "pytorch/pytorch#180665",
     .kills = "stream.no-race",
     .shows = {.in = mutant_hybrid_ahead, .engine = "impl"},
     .forgets = "all-reduce->reuse"},
    {.name = "no-wait-communicator",
     .text = "a communicator without streams reads before a stream has written",
     .evidence = "pytorch/pytorch#180666",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .forgets = "stream->communicator",
     .comm.run = no_wait_communicator,
     .change_env = take_no_streams},
    {.name = "no-wait-compute-all-reduce",
     .text = "a replica's gradient is sent before compute has made it",
     .evidence = "pytorch/pytorch#180666",
     .kills = "stream.no-race",
     .shows = {.in = has_only_replicas, .engine = "impl"},
     .forgets = "compute->all-reduce"},
    {.name = "no-wait-compute-reduce-scatter",
     .text = "a gradient is sent before compute has made it",
     .evidence = "pytorch/pytorch#180666",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .forgets = "compute->reduce-scatter"},
    {.name = "no-wait-dead-reuse",
     .text = "storage is filled anew before what was there has been read",
     .evidence = "pytorch/pytorch#180665, NVIDIA/Megatron-LM#6187",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .forgets = "dead->reuse"},
    {.name = "no-wait-optimizer-all-gather",
     .text = "shards are sent while the optimizer still writes them",
     .evidence = "deepspeedai/DeepSpeed#5216, facebookresearch/fairscale#496",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .device.wait = no_wait_optimizer_all_gather,
     .forget = wait_forget},
    {.name = "no-wait-reduce-optimizer",
     .text = "the optimizer does not wait for reduced gradients",
     .evidence = "pytorch/pytorch#115710",
     .kills = "stream.no-race",
     .shows = {.in = mutant_plain, .engine = "impl"},
     .forgets = "reduce->optimizer"},
    {.name = "no-wait-reduce-reuse",
     .text = "a gradient is given up while it is being sent",
     .evidence = "pytorch/pytorch#180665",
     .kills = "stream.no-race",
     .shows = {.in = mutant_ahead, .engine = "impl"},
     .forgets = "reduce->reuse"},
    {.name = "no-wait-reduce-scatter-all-reduce",
     .text = "replicas meet before their shards are reduced",
     .evidence = "deepspeedai/DeepSpeed#8061",
     .kills = "stream.no-race",
     .shows = {.in = mutant_hybrid, .engine = "impl"},
     .forgets = "reduce-scatter->all-reduce"},
    /* An all-reduce is waited for by the optimizer alone, not at its own point.
     */
    {.name = "reduce-in-flight",
     .text = "in the strict profile all-reduces are in flight across points",
     .evidence = "NVIDIA/Megatron-LM#6309",
     .kills = "stream.strict",
     .shows = {.in = mutant_hybrid, .engine = "impl"},
     .forgets = "reduce->optimizer",
     .when = is_before_end},
    {0},
};
