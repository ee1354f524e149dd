/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_watch.h - a thread that waits for the GPU looks around while it waits:
 * has another rank failed, has its process gone, does nothing happen any more?
 *
 * A rank that waits for work in which others take part cannot be told by a
 * message. The ranks of one host share a word that says "aborted", and their
 * process ids. Ranks of other hosts are seen through NCCL's errors, and through
 * time that passes.
 */
#ifndef FSDP_CTS_CUDA_WATCH_H
#define FSDP_CTS_CUDA_WATCH_H

#include <fsdp/engine.h>
#include <stdbool.h>

struct cuda_watch;

/* Collective: two exchanges. The time without progress after which a wait
 * fails is FSDP_CUDA_TIMEOUT of the environment, in seconds; 60 without.
 * *out is NULL on failure, and env->error says why. */
int cuda_watch_open(const struct fsdp_env *env, struct cuda_watch **out);
void cuda_watch_close(struct cuda_watch *watch); /* NULL is allowed */

/* A number that all ranks of this rank's host have in common; how many ranks
 * these are; how many come before this one. */
uint64_t cuda_watch_host(const struct cuda_watch *watch);
uint32_t cuda_watch_locals(const struct cuda_watch *watch);
uint32_t cuda_watch_local_rank(const struct cuda_watch *watch);

/* Numbers that the ranks of a host share, for a group of ranks: how far each
 * rank has come. */
enum {
    CUDA_COUNTERS = 3,
    CUDA_COUNTED = 64 /* ranks */
};
struct cuda_counters {
    _Atomic uint64_t put[CUDA_COUNTED], taken[CUDA_COUNTED];
    _Atomic uint64_t closed[CUDA_COUNTED]; /* has closed what it had opened of
                                            * others */
};
struct cuda_counters *cuda_watch_counters(struct cuda_watch *watch,
                                          uint32_t group);

/* Tells the ranks of this host. Any thread. */
void cuda_watch_abort(struct cuda_watch *watch);

/* One wait, from its beginning. */
struct cuda_wait {
    uint64_t looks;
    int64_t since_ms;
};

/*
 * Called again and again during a wait; gives the processor away if the wait
 * takes longer. ABORTED: another rank failed, or its process is gone; TIMEOUT:
 * this wait has taken too long. `said` says which, in 80 bytes.
 */
int cuda_watch_look(struct cuda_watch *watch, struct cuda_wait *wait,
                    char said[80]);

#endif
