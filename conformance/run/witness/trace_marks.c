/* SPDX-License-Identifier: Apache-2.0 */
/* trace_marks.c - see trace_marks.h. */
#include "run/witness/trace_marks.h"
#include "record/record.h"
#include "run/witness/race.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void trace_put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        fputc(*text < ' ' || *text > '~' || *text == '"' || *text == '\\'
                  ? '?'
                  : *text,
              f);
    }
}

void trace_put_time(FILE *f, const char *name, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000,
            (unsigned)(ns % 1000));
}

void trace_marks_add(struct trace_marks *m, struct trace_mark_made mark)
{
    struct timespec now;

    if (m->n == m->room) {
        uint32_t room = m->room ? 2 * m->room : 1024;
        void *grown = realloc(m->mark, room * sizeof(*m->mark));

        if (!grown) {
            m->missing++;
            return;
        }
        m->mark = grown;
        m->room = room;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    mark.ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    m->mark[m->n++] = mark;
}

/* ---- Written ----------------------------------------------------------- */

void trace_put_track(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name)
{
    fprintf(f,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
            "\"args\":{\"name\":\"%s",
            rank, track, what);
    trace_put_text(f, name);
    fprintf(f, "\"}}");
}

void trace_put_slice(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name, uint64_t begin, uint64_t end)
{
    fprintf(f,
            ",\n{\"ph\":\"X\",\"cat\":\"run\",\"pid\":%u,\"tid\":%u,"
            "\"name\":\"%s",
            rank, track, what);
    trace_put_text(f, name);
    fprintf(f, "\"");
    trace_put_time(f, "ts", begin);
    trace_put_time(f, "dur", end > begin ? end - begin : 1);
    fprintf(f, "}");
}

/* The pass, or the call, that a point belongs to. */
static const char *pass_of(const struct trace_mark_made *m)
{
    switch (m->point) {
    case FSDP_BEGIN:
    case FSDP_PRE_FORWARD:
    case FSDP_POST_FORWARD:
        return "forward";
    case RACE_AT_SHARD:
    case RACE_AT_STEP:
    case RACE_AT_PIECES:
    case RACE_AT_ZERO_GRAD:
    case RACE_AT_SUMMON:
    case RACE_AT_DESTROY:
        return race_point_name(m->point);
    default:
        return "backward";
    }
}

/* Whether a point belongs to no step. */
static bool is_between(const struct trace_mark_made *m)
{
    return m->point == RACE_AT_SHARD || m->point == RACE_AT_SUMMON ||
           m->point == RACE_AT_DESTROY;
}

/* Whether a mark goes on with what an earlier one began: a step, or a pass. */
static bool goes_on(const struct trace_mark_made *first,
                    const struct trace_mark_made *now, bool passes)
{
    if (now->is_live) {
        return true;
    }
    if (!first || now->step != first->step) {
        return false;
    }
    return !passes ||
           (pass_of(now) == pass_of(first) && now->point != FSDP_BEGIN);
}

static void put_run(FILE *f, uint32_t rank, const struct trace_mark_made *first,
                    uint64_t end, bool passes)
{
    char number[16];

    if (first) {
        snprintf(number, sizeof(number), "%u", first->step);
        trace_put_slice(f, rank, passes ? TRACK_PASSES : TRACK_STEPS,
                        passes ? pass_of(first) : "step ", passes ? "" : number,
                        first->ns, end);
    }
}

/* Writes the slices of one track: each ends where the next one begins. */
static void put_runs(const struct trace_marks *m, FILE *f, uint32_t rank,
                     bool passes)
{
    const struct trace_mark_made *first = NULL;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct trace_mark_made *now = &m->mark[i];

        if (!goes_on(first, now, passes)) {
            put_run(f, rank, first, now->ns, passes);
            first = passes || !is_between(now) ? now : NULL;
        }
    }
    put_run(f, rank, first, m->mark[m->n - 1].ns, passes);
}

/* ---- Counters ---------------------------------------------------------- */

void trace_put_counter(FILE *f, uint32_t rank, uint64_t ns, const char *name,
                       uint64_t bytes)
{
    fprintf(f, ",\n{\"ph\":\"C\",\"pid\":%u,\"name\":\"%s\"", rank, name);
    trace_put_time(f, "ts", ns);
    fprintf(f, ",\"args\":{\"bytes\":%" PRIu64 "}}", bytes);
}

/* Writes a counter for each kind where it changes, and one for the whole engine
 * where any kind does. */
static void put_memory(const struct trace_marks *m, FILE *f, uint32_t rank)
{
    uint64_t last[FSDP_N_KINDS];
    char name[64];

    memset(last, 0xff, sizeof(last));
    for (uint32_t i = 0; i < m->n; i++) {
        const struct trace_mark_made *x = &m->mark[i];
        uint64_t engine = 0;

        for (uint32_t k = 0; k < FSDP_N_KINDS && x->is_live; k++) {
            engine += k == FSDP_ACTIVATION ? 0 : x->live[k];
            if (x->live[k] != last[k]) {
                snprintf(name, sizeof(name), "memory %s", record_kind_name(k));
                trace_put_counter(f, rank, x->ns, name, x->live[k]);
                last[k] = x->live[k];
            }
        }
        if (x->is_live) {
            trace_put_counter(f, rank, x->ns, "memory engine", engine);
        }
    }
}

void trace_marks_write(const struct trace_marks *m, FILE *f, uint32_t rank)
{
    if (m->n == 0) {
        return;
    }
    trace_put_track(f, rank, TRACK_STEPS, "steps", "");
    put_runs(m, f, rank, false);
    trace_put_track(f, rank, TRACK_PASSES, "passes", "");
    put_runs(m, f, rank, true);
    put_memory(m, f, rank);
}
