/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_weigh.c - plays a case for the memory that it takes, not for what it
 * computes: the rank stands still where it is weighed, and from rest on may
 * take a limited amount more.
 */
#include "run/play/drive.h"
#include "run/witness/rank_line.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Freed memory goes back to the system and nothing is kept in reserve, so that
 * the pages of a process are what it has allocated. */
void drive_allocate_tightly(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 16 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 0);
    (void)mallopt(M_TOP_PAD, 0);
}

/* Bytes of writable private memory, resident or not. 0: unknown. */
static uint64_t data_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t bytes = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmData:", 7) == 0) {
            bytes = strtoull(line + 7, NULL, 10) * 1024;
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return bytes;
}

static void bound(struct driver *x)
{
    const uint64_t now = data_bytes();
    struct rlimit limit;

    if (now > 0 && getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur = now + x->d->room;
        x->bounded = setrlimit(RLIMIT_DATA, &limit) == 0;
    }
}

int drive_stand(struct driver *x, uint32_t point)
{
    const uint32_t purpose = x->d->purpose;

    if (purpose == DRIVE_TO_BOUND && point == RANK_LINE_OPENED) {
        bound(x);
        recorder_give_room(x->recorder, x->bounded);
    }
    if (purpose != DRIVE_TO_WEIGH ||
        rank_line_ask(x->d->line, point, recorder_storage(x->recorder))) {
        return FSDP_OK;
    }
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                        .rank = (int32_t)x->rank,
                                        .where = "weigh",
                                        .message = "cannot be weighed"};
    return FSDP_ERR_IO;
}
