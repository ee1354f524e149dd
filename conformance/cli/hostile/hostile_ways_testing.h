/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_ways_testing.h - what a hostile engine does to the processes, files
 * and engines around it.
 */
#ifndef FSDP_CTS_HOSTILE_WAYS_TESTING_H
#define FSDP_CTS_HOSTILE_WAYS_TESTING_H

struct hostile_way {
    const char *name;
    void (*does)(long with);
    long with; /* a signal, a resource, ... */
};

/* The last one has no name. */
extern const struct hostile_way hostile_ways[];

void hostile_write_to_all(long with);
/* hostile_files_testing.c. */
void hostile_trace_worker(long with);
void hostile_trace_me(long with);
void hostile_write_worker(long with);
void hostile_take_descriptors(long with);
void hostile_control(long with);
void hostile_be_strict(long with);
void hostile_be_nobody(long with);
void hostile_share_memory(long with);
void hostile_leave_files(long with);
void hostile_spoil_others(long with);
void hostile_spoil_engines(long with);
void hostile_in_folder(long with);
void hostile_go_away(long with);
void hostile_map_all(long with);

#endif
