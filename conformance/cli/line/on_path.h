/* SPDX-License-Identifier: Apache-2.0 */
/* on_path.h - whether a program can be started by its name, before it is. */
#ifndef FSDP_CTS_ON_PATH_H
#define FSDP_CTS_ON_PATH_H

#include <stdbool.h>

/* A name with a slash is a path by itself. */
bool is_on_path(const char *program);

#endif
