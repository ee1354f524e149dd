/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_process.c - looks at the process of a rank while its case is played:
 * how far its memory grew, which ways to others it opened, and the processes
 * that the engine started.
 */
#include "run/play/drive.h"
#include "run/process/orphans.h"
#include "run/process/process.h"
#include "run/witness/rank_line.h"

#include <stdio.h>
#include <string.h>

/* Begins the peak anew. A rank with limits asks another process for that: if it
 * could do so itself, its engine could, too, at the peak. */
static void forget_peak(struct driver *x)
{
    if (x->d->limited) {
        (void)rank_line_ask(x->d->line, RANK_LINE_FORGET, 0);
    } else {
        process_forget_peak();
    }
}

/* IO: the process could not be looked at. It is not recorded then, which is no
 * fault of the engine. */
static int look_at_process(struct driver *x, struct process_view *out)
{
    int why = x->d->look_at_process
                  ? process_look(out, x->d->limited ? PROCESS_DESCRIPTORS
                                                    : PROCESS_ALL_WAYS)
                  : 0;

    if (why == 0 || x->error.status != FSDP_OK) {
        return FSDP_OK;
    }
    x->error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                   .rank = (int32_t)x->env.rank,
                                   .where = RECORD_WRITE_WHERE};
    snprintf(x->error.message, sizeof(x->error.message), "/proc/self: %s",
             strerror(why));
    return FSDP_ERR_IO;
}

int drive_process_begin(struct driver *x, struct process_view *before)
{
    if (x->d->look_at_process) {
        orphans_adopt(); /* this process adopts what the engine leaves */
    }
    if (x->d->look_at_process && strcmp(x->d->c->size, "large") == 0) {
        /* Else this memory, into which other ranks write, would count as
         * growth: with 64 ranks more than 5 MB. */
        process_touch(x->shared, x->shared_bytes);
    }
    forget_peak(x);
    return look_at_process(x, before);
}

int drive_process_end(struct driver *x, const struct process_view *before)
{
    struct record_memory *m = &x->out->memory;
    struct process_view after;

    FSDP_TRY(look_at_process(x, &after));
    if (!x->d->look_at_process) {
        return FSDP_OK;
    }
    if (after.peak_bytes > before->resident_bytes) {
        m->process_growth = after.peak_bytes - before->resident_bytes;
    }
    if (after.channels > before->channels) {
        m->new_channels = after.channels - before->channels;
    }
    return FSDP_OK;
}

void drive_process_helpers(struct driver *x)
{
    struct record_memory *m = &x->out->memory;
    struct process_view after;

    if (!x->d->look_at_process) {
        return;
    }
    m->new_channels += x->has_helpers || orphans_are_there();
    orphans_end();
    process_look(&after, PROCESS_NO_WAYS);
    if (after.child_bytes > after.peak_bytes) {
        m->process_growth += after.child_bytes - after.peak_bytes;
    }
}
