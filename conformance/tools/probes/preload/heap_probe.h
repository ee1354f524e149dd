/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_probe.h - what the files of the heap's probe share.
 */
#ifndef FSDP_CTS_HEAP_PROBE_H
#define FSDP_CTS_HEAP_PROBE_H

#include "tools/probes/preload/log_writer.h"

/* heap_log.c: counters, and their log. Any thread. */
void heap_grew(uint64_t bytes);   /* a block is live */
void heap_shrank(uint64_t bytes); /* a block is not */
void heap_changed(uint64_t from, uint64_t to);
void heap_mapped(uint64_t bytes); /* memory of mmap, the same */
void heap_unmapped(uint64_t bytes);
void heap_untracked(void); /* a mapping could not be followed */
void heap_log_end(uint32_t how);
PROBE_EXPORT void fsdp_probe_mark(const char *name);

/* heap_maps.c */
void heap_maps_lock(void);
void heap_maps_unlock(void);

#endif
