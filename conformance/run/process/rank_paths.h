/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_paths.h - paths out of which the kernel shuts this process from some
 * moment on, for good (Landlock).
 */
#ifndef FSDP_CTS_RANK_PATHS_H
#define FSDP_CTS_RANK_PATHS_H

#include <stdbool.h>

/* Nothing can be changed but in these folders, up to NULL; and nothing in /proc
 * is seen but of this process. Since Linux 6.12 it can send no signal to
 * another one either, in whichever way. False: the kernel cannot do it, or
 * there is no such folder. no_new_privs is set. */
bool rank_paths_refuse(const char *const *folders);
/* Whether they refuse truncate, too: since Linux 6.2. */
bool rank_paths_can_cut(void);

#endif
