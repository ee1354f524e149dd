/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_io.h - bytes to and from a descriptor, all of them, whatever signals
 * come meanwhile. (stdio forgets what it holds when a write is interrupted.)
 */
#ifndef FSDP_CTS_WHOLE_IO_H
#define FSDP_CTS_WHOLE_IO_H

#include <stdbool.h>
#include <stddef.h>

/* False: not all could be written; errno says why. */
bool whole_write(int fd, const void *from, size_t n);
/* Until there are n bytes, or the other end is closed. False: there were
 * fewer; what there was is in `to`. */
bool whole_read(int fd, void *to, size_t n);

#endif
