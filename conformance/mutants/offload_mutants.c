/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_mutants.c - engines whose shards, gradients and states do not rest
 * where they should, are copied too often, too late or in vain, or are added up
 * or stepped in the wrong place; and engines that accept what they cannot
 * offload.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_BLOCKS = 128,   /* of the host, at once */
    MOST_KEPT = 1 << 16, /* bytes of them */
    EXTRA = 256,         /* bytes that should not be there */
    MOST_EXTRA = 16,
};

/* The host device as the engine sees it, and the blocks that were allocated
 * there. */
static _Thread_local struct {
    const struct fsdp_device *real;
    struct fsdp_device mine;
    struct {
        const char *p;
        uint64_t bytes;
        uint64_t kept; /* place among kept bytes, plus 1; 0: not kept */
    } block[MOST_BLOCKS];
    uint32_t n;
    uint64_t used;
    void *extra[MOST_EXTRA];
    uint32_t n_extra, n_steps;
} host;

static _Thread_local void *kept_room;

static void forget(void)
{
    memset(&host, 0, sizeof(host));
}

static int note_alloc(void *self, uint64_t bytes, void **out)
{
    FSDP_TRY(host.real->alloc(self, bytes, out));
    if (host.n < MOST_BLOCKS) {
        host.block[host.n].p = *out;
        host.block[host.n].kept = 0;
        host.block[host.n++].bytes = bytes;
    }
    return FSDP_OK;
}

static void note_free(void *self, void *p)
{
    for (uint32_t i = 0; p && i < host.n; i++) {
        if (host.block[i].p == p) {
            host.block[i] = host.block[--host.n];
            break;
        }
    }
    host.real->free(self, p);
}

/* The block that begins there; MOST_BLOCKS: none. */
static uint32_t block_at(const void *p)
{
    for (uint32_t i = 0; i < host.n; i++) {
        if (host.block[i].p == p) {
            return i;
        }
    }
    return MOST_BLOCKS;
}

static void watch_host(struct fsdp_env *env)
{
    host.real = env->host;
    host.mine = *env->host;
    host.mine.alloc = note_alloc;
    host.mine.free = note_free;
    env->host = &host.mine;
}

static int copy(void *self, struct fsdp_stream *stream, void *to,
                const void *from, uint64_t bytes)
{
    return mutant_real.device->copy(self, stream, to, from, bytes);
}

/* ---- What rests ---------------------------------------------------------- */

static int add_extra(const struct fsdp_device *d, struct fsdp_stream *stream,
                     uint32_t kind)
{
    void **p = &host.extra[host.n_extra];

    if (host.n_extra == MOST_EXTRA) {
        return FSDP_OK;
    }
    FSDP_TRY(d->alloc(d->self, EXTRA, p));
    d->live(d->self, stream, kind, 0, *p, EXTRA);
    host.n_extra++;
    return FSDP_OK;
}

static void drop_extra(const struct fsdp_device *d)
{
    while (host.n_extra > 0) {
        void *p = host.extra[--host.n_extra];

        d->dead(d->self, NULL, p);
        d->free(d->self, p);
    }
}

static int shard_keeps_copy(const struct fsdp_env *env,
                            const struct fsdp_model *model,
                            const struct fsdp_units *units,
                            const struct fsdp_options *options,
                            struct fsdp_sharded **out)
{
    FSDP_TRY(mutant_real.engine.shard(env, model, units, options, out));
    return add_extra(mutant_real.device, NULL, FSDP_PARAM_SHARD);
}

static void destroy_copy(struct fsdp_sharded *s)
{
    drop_extra(mutant_real.device);
    mutant_real.engine.destroy(s);
}

static int step_leaks(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    return add_extra(host.real, NULL, FSDP_OPTIM);
}

static int begin_stages(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_BEGIN) {
        FSDP_TRY(add_extra(host.real, NULL, FSDP_STAGING));
        drop_extra(host.real);
    }
    return FSDP_OK;
}

/* From BEGIN on has memory live for what windows should bring one after the
 * other. */
static int begin_brings(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_END || point == FSDP_CANCEL) {
        drop_extra(mutant_real.device);
    }
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    while (point == FSDP_BEGIN && host.n_extra < MOST_EXTRA) {
        FSDP_TRY(add_extra(mutant_real.device, NULL, FSDP_STAGING));
    }
    return FSDP_OK;
}

static void destroy_leaks(struct fsdp_sharded *s)
{
    drop_extra(host.real);
    mutant_real.engine.destroy(s);
}

/* ---- Copies -------------------------------------------------------------- */

/* Copies what was there when it was copied for the first time. */
static int copy_stale(void *self, struct fsdp_stream *stream, void *to,
                      const void *from, uint64_t bytes)
{
    const uint32_t i = block_at(from);
    char *kept = mutant_room(&kept_room, MOST_KEPT);

    FSDP_TRY(copy(self, stream, to, from, bytes));
    if (i == MOST_BLOCKS || block_at(to) < MOST_BLOCKS || !kept ||
        bytes != host.block[i].bytes) {
        return FSDP_OK;
    }
    if (host.block[i].kept > 0) {
        return copy(self, stream, to, kept + host.block[i].kept - 1, bytes);
    }
    if (host.used + bytes > MOST_KEPT) {
        return FSDP_OK;
    }
    memcpy(kept + host.used, from, bytes);
    host.block[i].kept = host.used + 1;
    host.used += bytes;
    return FSDP_OK;
}

static int copy_again(void *self, struct fsdp_stream *stream, void *to,
                      const void *from, uint64_t bytes)
{
    FSDP_TRY(copy(self, stream, to, from, bytes));
    return block_at(from) < MOST_BLOCKS ? copy(self, stream, to, from, bytes)
                                        : FSDP_OK;
}

/* Copies in several parts, a row at a time, say. */
static int copy_in_parts(void *self, struct fsdp_stream *stream, void *to,
                         const void *from, uint64_t bytes)
{
    const uint64_t first = block_at(to) < MOST_BLOCKS ? bytes / 8 * 4 : 0;

    FSDP_TRY(first ? copy(self, stream, to, from, first) : FSDP_OK);
    return copy(self, stream, (char *)to + first, (const char *)from + first,
                bytes - first);
}

/* ---- On the host --------------------------------------------------------- */

static int add_overwrites(void *self, struct fsdp_stream *stream,
                          const struct fsdp_op *op)
{
    return op->kind == FSDP_OP_ADD
               ? host.real->copy(self, stream, op->out[0].p, op->in[1].p,
                                 op->out[0].bytes)
               : host.real->run(self, stream, op);
}

static bool is_step(const struct fsdp_op *op)
{
    return op->kind == FSDP_OP_SGD || op->kind == FSDP_OP_MOMENTUM ||
           op->kind == FSDP_OP_ADAMW;
}

static int steps_on_device(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    return is_step(op) ? mutant_run(NULL, op)
                       : host.real->run(self, stream, op);
}

static void step_counts(void)
{
    host.n_steps++;
}

static int steps_at_half(void *self, struct fsdp_stream *stream,
                         const struct fsdp_op *op)
{
    struct fsdp_op slower = *op;

    if (is_step(op) && host.n_steps > 2) {
        slower.f[0] *= 0.5f;
    }
    return host.real->run(self, stream, &slower);
}

static void step_slower(struct fsdp_env *env)
{
    watch_host(env);
    host.mine.run = steps_at_half;
}

static void overwrite(struct fsdp_env *env)
{
    watch_host(env);
    host.mine.run = add_overwrites;
}

static void step_elsewhere(struct fsdp_env *env)
{
    watch_host(env);
    host.mine.run = steps_on_device;
}

/* ---- What must be refused ------------------------------------------------ */

static int shard_known_bits(const struct fsdp_env *env,
                            const struct fsdp_model *model,
                            const struct fsdp_units *units,
                            const struct fsdp_options *options,
                            struct fsdp_sharded **out)
{
    static _Thread_local struct fsdp_units alike;
    struct fsdp_options o = *options;
    const uint32_t last = units->n_units - 1;

    alike = *units;
    o.offload &=
        FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS;
    if (units->offload && units->offload[last] == FSDP_OFFLOAD_PARAMS) {
        alike.offload = NULL;
    }
    return mutant_real.engine.shard(env, model, &alike, &o, out);
}

static int shard_without_host(const struct fsdp_env *env,
                              const struct fsdp_model *model,
                              const struct fsdp_units *units,
                              const struct fsdp_options *options,
                              struct fsdp_sharded **out)
{
    static _Thread_local struct fsdp_units alike;
    struct fsdp_options o = *options;

    alike = *units;
    if (!env->host) {
        o.offload = 0;
        alike.offload = NULL;
    }
    return mutant_real.engine.shard(env, model, &alike, &o, out);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_plain(const struct run_case *c, uint32_t offload)
{
    return c->offload == offload && strcmp(c->workload, "mlp") == 0 &&
           c->strategy == CASE_FULL_SHARD && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32 && c->prefetch_forward == 0;
}

static bool all(const struct run_case *c)
{
    return is_plain(c, CASE_OFFLOAD_ALL) && c->microbatches == 1;
}

static bool adds_up(const struct run_case *c)
{
    return is_plain(c, CASE_OFFLOAD_ALL) && c->microbatches == 2 &&
           c->sync[0] != 0;
}

/* A case that runs ahead as far as it may, with nothing else in flight. */
static bool ahead(const struct run_case *c)
{
    return c->offload == CASE_OFFLOAD_ALL && c->scenario == CASE_TRAIN &&
           c->strategy == CASE_FULL_SHARD && c->prefetch_forward > 0 &&
           c->reduces_in_flight == 0;
}

static bool of_units(const struct run_case *c)
{
    return is_plain(c, CASE_OFFLOAD_LESS) || is_plain(c, CASE_OFFLOAD_SOME);
}

/* A case that is run on the host and on the device. */
static bool has_twin(const struct run_case *c)
{
    return (c->offload == CASE_OFFLOAD_LESS ||
            c->offload == CASE_NOT_OFFLOADED) &&
           strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "odd") == 0 &&
           c->strategy == CASE_FULL_SHARD && c->ranks == 3 &&
           c->layout == FSDP_LAYOUT_FLAT && c->wrap == CASE_WRAP_LAYER &&
           c->fold == FSDP_FOLD_RANK && c->scenario == CASE_TRAIN &&
           c->microbatches == 1 && c->optimizer == FSDP_OPTIMIZER_ADAMW &&
           c->frozen == WORKLOAD_TRAINS_ALL && c->recompute == WORKLOAD_KEEPS;
}

const struct mutant offload_mutants[] = {
    {.name = "offload-bits-ignored",
     .text = "bits of offload that are none are taken as if they were not said",
     .evidence = "a configuration that is read key by key",
     .kills = "error.offload",
     .shows = {.in = mutant_bad_options},
     .calls.shard = shard_known_bits},
    {.name = "offload-brings-all-ahead",
     .text =
         "where shards are copied ahead, those of all units are staged when "
         "a pass begins",
     .evidence = "a prefetch of the host's that no limit in flight holds back",
     .kills = "memory.prefetch-bound",
     .shows = {.in = ahead, .offload = true, .engine = "impl"},
     .calls.at = begin_brings,
     .forget = forget},
    {.name = "offload-copies-in-parts",
     .text = "reduced gradients are copied to the host in two parts",
     .evidence = "a copy for each parameter, where there is one buffer of them",
     .kills = "offload.copies",
     .shows = {.in = all, .offload = true},
     .change_env = watch_host,
     .device.copy = copy_in_parts,
     .forget = forget},
    {.name = "offload-copy-twice",
     .text = "a window copies its shard from the host twice",
     .evidence = "a prefetch whose result nobody keeps",
     .kills = "offload.copies",
     .shows = {.in = all, .offload = true},
     .change_env = watch_host,
     .device.copy = copy_again,
     .forget = forget},
    {.name = "offload-device-copy-kept",
     .text = "what was made on the device before it was offloaded stays there",
     .evidence = "deepspeedai/DeepSpeed#7967",
     .kills = "offload.device-rest",
     .shows = {.in = all, .offload = true},
     .calls = {.shard = shard_keeps_copy, .destroy = destroy_copy},
     .forget = forget},
    {.name = "offload-gather-before-copy",
     .text = "a shard is cast or sent before it has been copied to the device",
     .evidence = "pytorch/pytorch#198020, in the other direction",
     .kills = "stream.no-race",
     .shows = {.in = ahead, .offload = true, .engine = "impl"},
     .forgets = "host->device"},
    {.name = "offload-half-rate",
     .text = "from the third step on the host steps at half of the rate",
     .evidence = "an optimizer on the host that a scheduler does not know",
     .kills = "offload.same-bits",
     .shows = {.in = has_twin, .n_cases = 2, .places = true},
     .change_env = step_slower,
     .before_step = step_counts,
     .forget = forget},
    {.name = "offload-host-leak",
     .text = "each step leaves something on the host",
     .evidence = "pinned buffers that are allocated anew",
     .kills = "offload.host-rest",
     .shows = {.in = all, .offload = true},
     .change_env = watch_host,
     .calls = {.step = step_leaks, .destroy = destroy_leaks},
     .forget = forget},
    {.name = "offload-overwrites",
     .text = "a later reduction takes the place of what is on the host",
     .evidence = "pytorch/pytorch: no_sync and CPUOffload, and "
                 "instructlab/training#414",
     .kills = "offload.accumulates",
     .shows = {.in = adds_up, .offload = true},
     .change_env = overwrite,
     .forget = forget},
    {.name = "offload-stages",
     .text = "each pass stages something on the host that it has no use for",
     .evidence = "a buffer for the largest unit, whatever is copied",
     .kills = "offload.host-peak",
     .shows = {.in = all, .offload = true},
     .change_env = watch_host,
     .calls.at = begin_stages,
     .forget = forget},
    {.name = "offload-stale-copy",
     .text = "windows copy shards as they were before the first step",
     .evidence = "a pinned copy that the optimizer does not write",
     .kills = "gather.sees-updated-weights",
     .shows = {.in = all, .offload = true},
     .change_env = watch_host,
     .device.copy = copy_stale,
     .forget = forget},
    {.name = "offload-step-before-copy",
     .text = "the host reads gradients before they have been copied to it",
     .evidence = "pytorch/pytorch#198020: copied before it was done",
     .kills = "stream.no-race",
     .shows = {.in = adds_up, .offload = true},
     .forgets = "device->host"},
    {.name = "offload-steps-on-device",
     .text = "the optimizer runs on the device, by states on the host",
     .evidence = "an optimizer that was made before the model was offloaded",
     .kills = "offload.step-on-host",
     .shows = {.in = all, .offload = true},
     .change_env = step_elsewhere,
     .forget = forget},
    {.name = "offload-unclaimed",
     .text = "offload is not refused, though none is claimed",
     .evidence = "CPUOffloadPolicy on a CPU changes nothing, without a word",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "offload"},
    {.name = "offload-unit-ignored",
     .text = "what a unit says of its own offload is not looked at",
     .evidence = "a policy that is read of the root alone",
     .kills = "offload.units",
     .shows = {.in = of_units, .offload = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(offload)}},
    {.name = "offload-without-host",
     .text = "where there is no host device, nothing is offloaded, and nothing "
             "said",
     .evidence = "a fallback to the device that has no warning",
     .kills = "error.offload-no-host",
     .shows = {.in = mutant_bad_options},
     .calls.shard = shard_without_host},
    {0},
};
