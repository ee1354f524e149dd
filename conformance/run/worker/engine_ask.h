/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_ask.h - what an engine says of itself, asked in another process: the
 * one that asks never has any of its code, be it a constructor's.
 */
#ifndef FSDP_CTS_ENGINE_ASK_H
#define FSDP_CTS_ENGINE_ASK_H

#include <fsdp/engine.h>

/* Loads the engine in an isolated process (rank_limits.h), which may change
 * nothing. *out has its name, version and claims, and of its functions whether
 * they are NULL: none can be called. It lasts until the process ends. As
 * engine_load; INTERNAL: the process died. */
int engine_ask(const char *name, const struct fsdp_engine **out,
               struct fsdp_error *error);

#endif
