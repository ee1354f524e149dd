/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_paths.h - shuts this process out of paths, from some moment on and for
 * good (Landlock).
 */
#ifndef FSDP_CTS_RANK_PATHS_H
#define FSDP_CTS_RANK_PATHS_H

#include <stdbool.h>

/* From now on nothing can be changed but in these folders, up to NULL, and in
 * /proc only this process itself is seen. Since Linux 6.12 the process can also
 * send no signal to another one, in whichever way. False: the kernel cannot do
 * it, or a folder does not exist. no_new_privs is set. */
bool rank_paths_refuse(const char *const *folders);
/* Whether truncate is refused as well: since Linux 6.2. */
bool rank_paths_can_cut(void);

#endif
