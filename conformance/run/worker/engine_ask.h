/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_ask.h - asks an engine for its name, version and claims in another
 * process, so that the process that asks never runs any of its code, not even a
 * constructor.
 */
#ifndef FSDP_CTS_ENGINE_ASK_H
#define FSDP_CTS_ENGINE_ASK_H

#include <fsdp/engine.h>

/* Loads the engine in an isolated process (rank_limits.h), which may change
 * nothing. *out has the engine's name, version and claims, and shows which of
 * its functions are NULL, but none can be called. It lasts until the process
 * ends. As engine_load; INTERNAL: the other process died. */
int engine_ask(const char *name, const struct fsdp_engine **out,
               struct fsdp_error *error);

#endif
