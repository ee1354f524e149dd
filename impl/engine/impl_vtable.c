/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_vtable.c - the engine as the contract sees it. Strategies are the mesh
 * and one flag, and folds are the communicator's, so this engine has all of
 * them.
 */
#include "impl.h"
#include "impl_calls.h"

#include <stddef.h>

static const char *const claims[] = {
    "flat",
    "per-parameter",
    "full-shard",
    "shard-grad-op",
    "no-shard",
    "hybrid-shard",
    "hybrid-shard-zero2",
    "keep-root",
    "no-sync",
    "eval",
    "cancel",
    "unshard-all",
    "recompute",
    "frozen",
    "thaw",
    "shared",
    "parameter-units",
    "ignored",
    "buffers",
    "scripts",
    "sgd",
    "momentum",
    "adamw",
    "groups",
    "groups-betas",
    "unit-factors",
    "fold-rank",
    "fold-ring",
    "fold-tree",
    "f32-fma",
    "strict-memory",
    "strict-storage",
    "clip",
    "prefetch",
    "bf16",
    "fp16",
    "sum-f32",
    "loss-scale",
    "unit-controls",
    "partial-replicas",
    "factor-controls",
    "step-in-backward",
    "assign",
    "deferred",
    "offload",
    "rank0-initial",
    "summon",
    "send-values",
    "lenient-load",
    "save-parts",
    "save-dtype",
    "save-full",
    "save-sharded",
    "save-local",
    "load",
    NULL,
};

const struct fsdp_engine *fsdp_impl_engine(void)
{
    static const struct fsdp_engine engine = {
        .size = sizeof(engine),
        .abi = FSDP_ABI_VERSION,
        .name = "impl",
        .version = "0.1.0",
        .claims = claims,
        .open = impl_open_device,
        .close = impl_close_device,
        .shard = impl_shard,
        .at = impl_at,
        .param = impl_param,
        .grad = impl_grad,
        .set_gradient_sync = impl_set_gradient_sync,
        .set_requires_grad = impl_set_requires_grad,
        .clip_grad_norm = impl_clip_grad_norm,
        .step = impl_step,
        .zero_grad = impl_zero_grad,
        .pieces = impl_pieces,
        .unshard_all = impl_unshard_all,
        .reshard_all = impl_reshard_all,
        .save_begin = impl_save_begin,
        .save_wait = impl_save_wait,
        .load = impl_load,
        .destroy = impl_destroy,
        .loaded_extra = impl_loaded_extra,
        .set = impl_set,
        .unshard = impl_unshard_unit,
        .reshard = impl_reshard_unit,
        .buffer = impl_buffer,
        .set_step = impl_set_step,
        .assign = impl_assign,
        .summon = impl_summon,
        .load_from = impl_load_from,
        .send_values = impl_send_values};

    return &engine;
}
