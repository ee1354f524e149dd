/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_watch_testing.h - how much an engine has live, and in which dtypes it
 * sends.
 */
#ifndef FSDP_CTS_MIXED_WATCH_TESTING_H
#define FSDP_CTS_MIXED_WATCH_TESTING_H

#include "run/worker/mixed_engine_testing.h"

struct mixed_seen {
    uint64_t peak[FSDP_N_KINDS]; /* bytes, as they were enqueued */
    bool wrong_wire;             /* a collective was not as its unit says */
    uint64_t collectives;
};

/* From here on, of this thread's rank; and to here. */
void mixed_watch(struct fsdp_env *env, const struct mixed_case *c);
void mixed_unwatch(struct fsdp_env *env);
const struct mixed_seen *mixed_seen(void);

#endif
