/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_guard.h - stands between the driver and an engine, and checks after each
 * call of any function that the process is as it was before (process.h); if it
 * is not, the record says what has changed, and in which call.
 */
#ifndef FSDP_CTS_CALL_GUARD_H
#define FSDP_CTS_CALL_GUARD_H

#include "record/record.h"
#include "run/process/process.h"

/* To be called before the engine is opened: from here on, changes of this
 * rank's process are noted in `out`. `loading`: how loading the engine has
 * changed it, or "". `alone`: no other rank is a thread of this process. */
void call_guard_begin(struct record_rank *out, const char *loading, bool alone);
/* Puts guards around the engine's functions, in place. */
void call_guard_wrap(struct fsdp_engine *engine);
/* call_guard_look checks after a call that was made without a guard.
 * call_guard_step: `step` is that of all calls that follow. */
void call_guard_look(const char *call);
void call_guard_step(uint32_t step);

#endif
