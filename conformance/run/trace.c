/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - events in blocks that do not move, as streams write into them.
 */
#include "run/trace.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK = 1024,
    TRACKS = RACE_STREAMS + 1, /* by name; 0 is the host's */
};

struct block {
    struct block *next;
    uint32_t n;
    struct trace_event event[BLOCK];
};

struct trace {
    const struct fsdp_device *device;
    struct race *race;
    struct block *first, *last;
    uint64_t missing;
    uint32_t n_tracks;
    struct {
        char name[RECORD_RACE_WORD_BYTES];
        char waits[TRACE_WAITS_BYTES];
    } track[TRACKS];
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
    while (t && t->first) {
        struct block *next = t->first->next;
        free(t->first);
        t->first = next;
    }
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
        d->stamp != NULL;
    struct timespec now;

    if (knows && d->stamp(d->self, stream, ns) == FSDP_OK) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct trace_event *trace_begin(struct trace *t, struct fsdp_stream *stream,
                                uint32_t what, uint32_t unit, uint64_t bytes)
{
    struct block *b = t ? t->last : NULL;
    struct trace_event *event;
    uint32_t track;

    if (!t) {
        return NULL;
    }
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
    stamp(t, stream, &event->begin);
    return event;
}

void trace_end(struct trace *t, struct fsdp_stream *stream,
               struct trace_event *event)
{
    if (event) {
        stamp(t, stream, &event->end);
    }
}

void trace_wait(struct trace *t, struct fsdp_stream *later, const char *edge)
{
    char *waits;
    size_t n;

    if (!t) {
        return;
    }
    waits = t->track[track_of(t, later)].waits;
    n = strlen(waits);
    if (n + strlen(edge) + 2 <= TRACE_WAITS_BYTES) {
        snprintf(waits + n, TRACE_WAITS_BYTES - n, "%s%s", n ? " " : "", edge);
    }
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

/* Names come from engines: nothing in them may end a string. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        fputc(*text < ' ' || *text > '~' || *text == '"' || *text == '\\'
                  ? '?'
                  : *text,
              f);
    }
}

static void put_tracks(const struct trace *t, FILE *f, uint32_t rank)
{
    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":"
            "{\"name\":\"rank %u\",\"missing\":%" PRIu64 "}}",
            rank, rank, t->missing);
    for (uint32_t i = 0; i < t->n_tracks; i++) {
        fprintf(f,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,"
                "\"tid\":%u,\"args\":{\"name\":\"",
                rank, i);
        put_text(f, t->track[i].name);
        fprintf(f, "\"}}");
    }
}

/* Microseconds, with what is left of them. */
static void put_time(FILE *f, const char *name, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000,
            (unsigned)(ns % 1000));
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
    put_time(f, "ts", e->begin);
    put_time(f, "dur", e->end > e->begin ? e->end - e->begin : 0);
    fprintf(f, ",\"args\":{");
    if (e->unit != FSDP_NO_UNIT) {
        fprintf(f, "\"unit\":%u,", e->unit);
    }
    fprintf(f,
            "\"bytes\":%" PRIu64 ",\"step\":%u,\"point\":\"%s\","
            "\"module\":%u,\"waits\":\"",
            e->bytes, e->step, race_point_name(e->point), e->module);
    put_text(f, e->waits);
    fprintf(f, "\"}}");
}

int trace_write(const struct trace *t, const char *path, uint32_t rank)
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
    fprintf(f, "\n");
    good = !ferror(f);
    return fclose(f) == 0 && good ? FSDP_OK : FSDP_ERR_IO;
}
