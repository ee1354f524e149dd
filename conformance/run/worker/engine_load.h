/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_load.h - an engine by name ("ref", "unsharded") or by the path of a
 * plug-in that exports fsdp_engine_v1.
 */
#ifndef FSDP_CTS_ENGINE_LOAD_H
#define FSDP_CTS_ENGINE_LOAD_H

#include <fsdp/engine.h>

struct engine_entry {
    const char *name, *summary;
    const struct fsdp_engine *(*get)(void);
};
/* The engines that are built in; ends with a NULL name. */
extern const struct engine_entry engine_list[];

/* A name with a '/' or ending in ".so" is a path. */
bool engine_is_path(const char *name);

/* Loads the engine of this name or path. INVALID: unknown name (the message
 * lists the known ones); IO: no such file, or it cannot be loaded; MISMATCH: no
 * symbol, another ABI version, a struct that is too small, or an engine that
 * cannot even shard. A plug-in stays loaded until the process ends; *out
 * belongs to the calling thread. */
int engine_load(const char *name, const struct fsdp_engine **out,
                struct fsdp_error *error);

/* Whether the engine has all functions that training calls. UNSUPPORTED: the
 * message names the first one that is NULL. */
int engine_trains(const char *name, const struct fsdp_engine *engine,
                  struct fsdp_error *error);

#endif
