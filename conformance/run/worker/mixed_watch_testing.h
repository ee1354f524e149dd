/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_watch_testing.h - measures how much an engine has live, and checks in
 * which dtypes it sends.
 */
#ifndef FSDP_CTS_MIXED_WATCH_TESTING_H
#define FSDP_CTS_MIXED_WATCH_TESTING_H

#include "run/worker/mixed_engine_testing.h"

struct mixed_seen {
    uint64_t peak[FSDP_N_KINDS]; /* bytes, in the order of the calls */
    bool wrong_wire;             /* a collective was not as the dtypes of its
                                    unit say */
    uint64_t collectives;
};

/* mixed_watch watches the rank of this thread from now on, until
 * mixed_unwatch. */
void mixed_watch(struct fsdp_env *env, const struct mixed_case *c);
void mixed_unwatch(struct fsdp_env *env);
const struct mixed_seen *mixed_seen(void);

#endif
