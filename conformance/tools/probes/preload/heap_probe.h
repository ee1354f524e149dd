/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_probe.h - what the files of a probe of memory share.
 */
#ifndef FSDP_CTS_HEAP_PROBE_H
#define FSDP_CTS_HEAP_PROBE_H

#include "tools/probes/preload/log_writer.h"

/* heap_log.c: counters, and their log. Any thread. */
void heap_grew(uint64_t bytes);   /* a block is live */
void heap_shrank(uint64_t bytes); /* a block is live no more */
void heap_changed(uint64_t from, uint64_t to);
void heap_mapped(uint64_t bytes); /* memory of mmap, the same */
void heap_unmapped(uint64_t bytes);
void heap_untracked(void); /* a mapping could not be followed */
void heap_log_mark(const char *name);
void heap_log_end(uint32_t how);

/* The probe that has the counters says what is counted, and of which rank. The
 * parent is known. False: not yet known, so there is no log yet. */
bool heap_head(struct probe_head *head);

/* heap_maps.c */
void heap_maps_lock(void);
void heap_maps_unlock(void);

#endif
