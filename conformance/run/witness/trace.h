/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - what ran when, on which stream: an event for each operator,
 * collective and copy, with times that the stream itself took (device.h,
 * stamp), and the waits of one stream for another; steps, passes and modules;
 * and the live bytes, by kind. For people; never judged.
 *
 * On a device that takes no times the time of an event is when its call was
 * made.
 */
#ifndef FSDP_CTS_TRACE_H
#define FSDP_CTS_TRACE_H

#include "run/witness/race.h"

enum {
    TRACE_WAITS_BYTES = 96
};

struct trace_event {
    uint64_t begin, end; /* nanoseconds; written by the stream */
    uint16_t what;       /* enum race_what */
    uint16_t track;
    uint32_t unit, step, module;
    uint8_t point;
    uint64_t bytes;                /* that the event writes */
    char waits[TRACE_WAITS_BYTES]; /* edges since the last event, separated by
                                      blanks */
};

struct trace;
struct expect;

/* `race` knows streams and where the run stands. NULL: no memory. */
struct trace *trace_open(const struct fsdp_device *device, struct race *race);
void trace_close(struct trace *t);

/* The run has come to this point; what is live, by kind, has changed. */
void trace_place(struct trace *t, uint32_t step, uint32_t point,
                 uint32_t module);
void trace_live(struct trace *t, const uint64_t live[FSDP_N_KINDS]);

/* To be called before and after something is given to a stream. begin returns
 * what end takes; NULL where there is no memory, which is no failure: an event
 * is missing, and the trace says so. */
struct trace_event *trace_begin(struct trace *t, struct fsdp_stream *stream,
                                uint32_t what, uint32_t unit, uint64_t bytes);
void trace_end(struct trace *t, struct fsdp_stream *stream,
               struct trace_event *event);
/* trace_mark: what the stream has been given so far has this ticket.
 * trace_wait: `later` waits for it; its next event then follows from the last
 * one of `earlier` before the ticket. */
void trace_mark(struct trace *t, struct fsdp_stream *stream, uint64_t ticket);
void trace_wait(struct trace *t, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge);

/* Writes events of Chrome's trace format, one a line, each but the last with a
 * comma behind it; all streams are done by then. `e` has the names of modules
 * and units, the expected windows and the bound; NULL: these are left out.
 * IO. */
int trace_write(const struct trace *t, const struct expect *e, const char *path,
                uint32_t rank);

/* Bytes that an operator, or a collective, writes. */
uint64_t trace_operator_bytes(const struct fsdp_op *op);
uint64_t trace_collective_bytes(const struct fsdp_collective *c,
                                uint32_t extent);

#endif
