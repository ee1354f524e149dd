/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_claims.h - what an engine says of itself.
 */
#ifndef FSDP_CTS_ENGINE_CLAIMS_H
#define FSDP_CTS_ENGINE_CLAIMS_H

#include <fsdp/engine.h>

#include <stdbool.h>
#include <string.h>

/* Whether the claim's name is in the engine's list. */
static inline bool engine_claims(const struct fsdp_engine *engine,
                                 const char *claim)
{
    for (const char *const *c = engine->claims; *c; c++) {
        if (strcmp(*c, claim) == 0) {
            return true;
        }
    }
    return false;
}

#endif
