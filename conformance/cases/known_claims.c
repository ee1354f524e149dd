/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_claims.c - every capability that can be claimed: those of engine.h and
 * those of docs/adapters.md. One that is misspelt is tested nowhere, and its
 * engine would never learn of it.
 */
#include "cases/case_claims.h"

#include <string.h>

bool claim_is_known(const char *claim)
{
    static const char *const known[] = {
        /* engine.h */
        "flat", "per-parameter", "full-shard", "shard-grad-op", "no-shard",
        "hybrid-shard", "hybrid-shard-zero2", "keep-root", "no-sync", "eval",
        "cancel", "unshard-all", "sgd", "momentum", "adamw", "groups",
        "fold-rank", "fold-ring", "fold-tree", "f32-fma", "strict-memory",
        "strict-storage", "prefetch", "clip", "frozen", "shared", "recompute",
        "offload", "bf16", "loss-scale", "save-full", "save-sharded",
        "save-local", "load", "serial",
        /* adapters */
        "fold-any", "reshard-root", "divide-factor", "again", "live-bytes",
        "wire", "process", "streams", "answers"};
    static const char *const begins[] = {"workload-", "wrap-"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], claim) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (strncmp(begins[i], claim, strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}
