/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_guard.h - stands between the driver and an engine: after each call of
 * any function the process is as it was before (process.h), or the record says
 * what has changed, and in which call.
 */
#ifndef FSDP_CTS_CALL_GUARD_H
#define FSDP_CTS_CALL_GUARD_H

#include "record/record.h"
#include "run/process/process.h"

/* From here on what this rank's process is like counts: before open. `out` is
 * where changes are noted; `loading`: what loading the engine has changed, or
 * "". `alone`: no other rank is a thread of this process. */
void call_guard_begin(struct record_rank *out, const char *loading, bool alone);
/* Puts guards around the engine's functions, in place. */
void call_guard_wrap(struct fsdp_engine *engine);
/* A call has been made without them. `step`: that of all calls that follow. */
void call_guard_look(const char *call);
void call_guard_step(uint32_t step);

#endif
