/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - keeps events in blocks that do not move, as streams write into
 * them.
 */
#include "run/witness/trace.h"
#include "run/witness/trace_expected.h"
#include "run/witness/trace_marks.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK = 1024,
    TRACKS = RACE_STREAMS + 1, /* by name; 0 is the host's */
    TICKETS = 256,             /* the last tickets are kept: a wait comes soon
                                  after */
    PENDING = 8,               /* waits since a track's last event */
};

struct block {
    struct block *next;
    uint32_t n;
    struct trace_event event[BLOCK];
};

/* The later event waited for the earlier one. */
struct flow {
    const struct trace_event *from, *to;
};

struct track {
    char name[RECORD_RACE_WORD_BYTES];
    char waits[TRACE_WAITS_BYTES];
    const struct trace_event *last, *pending[PENDING];
    uint32_t n_pending;
};

struct trace {
    const struct fsdp_device *device;
    struct race *race;
    struct block *first, *last;
    uint64_t missing;
    uint32_t n_tracks;
    struct track track[TRACKS];
    struct {
        const struct fsdp_stream *stream;
        uint64_t ticket;
        const struct trace_event *last;
    } ticket[TICKETS];
    uint32_t next_ticket;
    struct flow *flow;
    uint32_t n_flows, flow_room;
    struct trace_marks marks;
};

struct trace *trace_open(const struct fsdp_device *device, struct race *race)
{
    struct trace *t = calloc(1, sizeof(*t));

    if (t) {
        t->device = device;
        t->race = race;
        t->n_tracks = 1;
        snprintf(t->track[0].name, sizeof(t->track[0].name), "host");
    }
    return t;
}

void trace_close(struct trace *t)
{
    while (t->first) {
        struct block *next = t->first->next;
        free(t->first);
        t->first = next;
    }
    free(t->flow);
    free(t->marks.mark);
    free(t);
}

/* ---- What happens ------------------------------------------------------ */

/* Streams of one name, one after the other, share a track. */
static uint32_t track_of(struct trace *t, struct fsdp_stream *stream)
{
    uint32_t slot = stream ? race_slot(t->race, stream) : RACE_STREAMS;
    const char *name;

    if (slot == RACE_STREAMS) {
        return 0;
    }
    name = t->race->stream[slot].name;
    for (uint32_t i = 1; i < t->n_tracks; i++) {
        if (strcmp(t->track[i].name, name) == 0) {
            return i;
        }
    }
    if (t->n_tracks == TRACKS) {
        return 0;
    }
    snprintf(t->track[t->n_tracks].name, sizeof(t->track[0].name), "%s", name);
    return t->n_tracks++;
}

static void stamp(const struct trace *t, struct fsdp_stream *stream,
                  uint64_t *ns)
{
    const struct fsdp_device *d = t->device;
    bool knows =
        d->size >= offsetof(struct fsdp_device, stamp) + sizeof(d->stamp) &&
        d->stamp;
    struct timespec now;

    if (knows && d->stamp(d->self, stream, ns) == FSDP_OK) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A flow that finds no room is left out. */
static void add_flow(struct trace *t, const struct trace_event *from,
                     const struct trace_event *to)
{
    if (t->n_flows == t->flow_room) {
        uint32_t room = t->flow_room ? 2 * t->flow_room : 256;
        void *grown = realloc(t->flow, room * sizeof(*t->flow));

        if (!grown) {
            t->missing++;
            return;
        }
        t->flow = grown;
        t->flow_room = room;
    }
    t->flow[t->n_flows++] = (struct flow){from, to};
}

/* Adds a flow from each event that the track waited for to its new event. */
static void follow(struct trace *t, struct track *track,
                   const struct trace_event *event)
{
    for (uint32_t i = 0; i < track->n_pending; i++) {
        add_flow(t, track->pending[i], event);
    }
    track->n_pending = 0;
    track->last = event;
}

struct trace_event *trace_begin(struct trace *t, struct fsdp_stream *stream,
                                uint32_t what, uint32_t unit, uint64_t bytes)
{
    struct block *b = t->last;
    struct trace_event *event;
    uint32_t track;

    if (!b || b->n == BLOCK) {
        b = calloc(1, sizeof(*b));
        if (!b) {
            t->missing++;
            return NULL;
        }
        *(t->last ? &t->last->next : &t->first) = b;
        t->last = b;
    }
    track = track_of(t, stream);
    event = &b->event[b->n++];
    *event = (struct trace_event){.what = (uint16_t)what,
                                  .track = (uint16_t)track,
                                  .unit = unit,
                                  .step = t->race->step,
                                  .module = t->race->module,
                                  .point = t->race->point,
                                  .bytes = bytes};
    memcpy(event->waits, t->track[track].waits, sizeof(event->waits));
    t->track[track].waits[0] = '\0';
    follow(t, &t->track[track], event);
    stamp(t, stream, &event->begin);
    return event;
}

void trace_end(struct trace *t, struct fsdp_stream *stream,
               struct trace_event *event)
{
    stamp(t, stream, &event->end);
}

void trace_mark(struct trace *t, struct fsdp_stream *stream, uint64_t ticket)
{
    uint32_t i = t->next_ticket++ % TICKETS;

    t->ticket[i].stream = stream;
    t->ticket[i].ticket = ticket;
    t->ticket[i].last = t->track[track_of(t, stream)].last;
}

/* The event that a wait for this ticket waits for; NULL: none is known. */
static const struct trace_event *
behind(struct trace *t, struct fsdp_stream *stream, uint64_t ticket)
{
    for (uint32_t i = 0; i < TICKETS && i < t->next_ticket; i++) {
        if (t->ticket[i].stream == stream && t->ticket[i].ticket == ticket) {
            return t->ticket[i].last;
        }
    }
    return ticket == 0 ? t->track[track_of(t, stream)].last : NULL;
}

void trace_wait(struct trace *t, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge)
{
    const struct trace_event *from = behind(t, earlier, ticket);
    struct track *track = &t->track[track_of(t, later)];
    const size_t n = strlen(track->waits);

    if (n + strlen(edge) + 2 <= TRACE_WAITS_BYTES) {
        snprintf(track->waits + n, TRACE_WAITS_BYTES - n, "%s%s", n ? " " : "",
                 edge);
    }
    if (from && from->track != track - t->track && track->n_pending < PENDING) {
        track->pending[track->n_pending++] = from;
    }
}

void trace_place(struct trace *t, uint32_t step, uint32_t point,
                 uint32_t module)
{
    trace_marks_add(&t->marks, (struct trace_mark_made){.step = step,
                                                        .point = (uint8_t)point,
                                                        .module = module});
}

void trace_live(struct trace *t, const uint64_t live[FSDP_N_KINDS])
{
    struct trace_mark_made mark = {.is_live = true};

    memcpy(mark.live, live, sizeof(mark.live));
    trace_marks_add(&t->marks, mark);
}

uint64_t trace_operator_bytes(const struct fsdp_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->n_out && i < FSDP_OP_MAX_OUT; i++) {
        bytes += op->out[i].bytes;
    }
    return bytes;
}

uint64_t trace_collective_bytes(const struct fsdp_collective *c,
                                uint32_t extent)
{
    uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);

    return c->kind == FSDP_ALL_GATHER ? bytes * extent : bytes;
}

/* ---- Written ----------------------------------------------------------- */

static void put_tracks(const struct trace *t, FILE *f, uint32_t rank)
{
    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":"
            "{\"name\":\"rank %u\",\"missing\":%" PRIu64 "}}",
            rank, rank, t->missing + t->marks.missing);
    for (uint32_t i = 0; i < t->n_tracks; i++) {
        fprintf(f,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,"
                "\"tid\":%u,\"args\":{\"name\":\"",
                rank, i);
        trace_put_text(f, t->track[i].name);
        fprintf(f, "\"}}");
    }
}

/* The time of an event, at least 1: a flow needs an event to end in. */
static uint64_t lasts(const struct trace_event *e)
{
    return e->end > e->begin ? e->end - e->begin : 1;
}

static void put_event(const struct trace_event *e, FILE *f, uint32_t rank)
{
    bool communicates = e->what >= RACE_COLLECTIVE && e->what < RACE_COPY;

    fprintf(f,
            ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,"
            "\"tid\":%u",
            race_what_name(e->what),
            communicates           ? "collective"
            : e->what == RACE_COPY ? "copy"
                                   : "operator",
            rank, e->track);
    trace_put_time(f, "ts", e->begin);
    trace_put_time(f, "dur", lasts(e));
    fprintf(f, ",\"args\":{");
    if (e->unit != FSDP_NO_UNIT) {
        fprintf(f, "\"unit\":%u,", e->unit);
    }
    fprintf(f,
            "\"bytes\":%" PRIu64 ",\"step\":%u,\"point\":\"%s\","
            "\"module\":%u,\"waits\":\"",
            e->bytes, e->step, race_point_name(e->point), e->module);
    trace_put_text(f, e->waits);
    fprintf(f, "\"}}");
}

static void put_flow(const struct flow *flow, uint64_t id, FILE *f,
                     uint32_t rank)
{
    for (uint32_t k = 0; k < 2; k++) {
        const struct trace_event *e = k == 0 ? flow->from : flow->to;

        fprintf(f,
                ",\n{\"ph\":\"%s\",\"bp\":\"e\",\"name\":\"waits\",\"cat\":"
                "\"wait\",\"id\":%" PRIu64 ",\"pid\":%u,\"tid\":%u",
                k == 0 ? "s" : "f", id, rank, e->track);
        trace_put_time(f, "ts", e->begin);
        fprintf(f, "}");
    }
}

int trace_write(const struct trace *t, const struct expect *e, const char *path,
                uint32_t rank)
{
    FILE *f = fopen(path, "we");
    bool good;

    if (!f) {
        return FSDP_ERR_IO;
    }
    put_tracks(t, f, rank);
    for (const struct block *b = t->first; b; b = b->next) {
        for (uint32_t i = 0; i < b->n; i++) {
            put_event(&b->event[i], f, rank);
        }
    }
    for (uint32_t i = 0; i < t->n_flows; i++) {
        /* Ids must be unique in the whole file: each rank has a range. */
        put_flow(&t->flow[i], ((uint64_t)rank << 32) + i + 1, f, rank);
    }
    trace_marks_write(&t->marks, f, rank);
    if (e) {
        trace_expected_write(&t->marks, e, f, rank);
    }
    fprintf(f, "\n");
    good = !ferror(f);
    return fclose(f) == 0 && good ? FSDP_OK : FSDP_ERR_IO;
}
