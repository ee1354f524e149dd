/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_claims.c - what an engine says of itself. It stands apart from
 * engine_load.c, which needs all engines that are built in: who was given an
 * engine can ask it without them.
 */
#include "run/engine_claims.h"

#include <string.h>

bool engine_claims(const struct fsdp_engine *engine, const char *claim)
{
    for (const char *const *c = engine->claims; *c; c++) {
        if (strcmp(*c, claim) == 0) {
            return true;
        }
    }
    return false;
}
