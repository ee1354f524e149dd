/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate.h - starts a worker where its engine can reach nothing of the run
 * but its own folder: in namespaces of its own.
 *
 *   processes  The worker is the first process. Nothing in there sees the
 *              supervisor or another worker, or can send them a signal; and
 *              when the worker ends, the kernel ends all the rest.
 *   mounts     The folder of the run can be read there, but written to only
 *              where the worker's own is. /dev/shm is empty, but for that
 *              folder if it lies there, and goes with the worker, like System
 *              V's shared memory.
 *
 * Where the kernel does not allow it (a container without the right, a
 * distribution that switched it off) workers are plain processes.
 */
#ifndef FSDP_CTS_ISOLATE_H
#define FSDP_CTS_ISOLATE_H

#include <stdbool.h>
#include <sys/types.h>

/* Paths that exist. */
struct isolate {
    const char *sealed; /* folder in which nothing can be changed, but for */
    const char *open;   /* this folder, somewhere below it */
    const char *needed; /* file of the engine; NULL: the engine is no file */
};

/* Whether the kernel allows it; asked once. Never if FSDP_CTS_ISOLATION is
 * "none" in the environment. */
bool isolate_possible(const struct isolate *how);
/* fork() into namespaces. As fork. */
pid_t isolate_fork(void);
/* The first call in the child. False: something that was possible is so no
 * longer, and the child has to end. */
bool isolate_enter(const struct isolate *how);
/* From the next exec on root lacks the rights with which it could undo this, or
 * look into the worker. Only root has them, and no engine needs them. */
bool isolate_drop_rights(void);

#endif
