/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_memory.h - whether there is room in memory for records that nobody
 * keeps.
 */
#ifndef FSDP_CTS_RECORDS_MEMORY_H
#define FSDP_CTS_RECORDS_MEMORY_H

#include "cases/case.h"

#include <stdbool.h>

#define RECORDS_MEMORY "/dev/shm"

/* Whether RECORDS_MEMORY takes the records of these cases, of each of so many
 * engines, and leaves as much for others. */
bool records_memory_has_room(const struct case_list *cases, uint32_t n_engines);

#endif
