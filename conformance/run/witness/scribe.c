/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scribe.c - builds a rank's record from what comes through the pipe.
 */
#include "run/witness/scribe.h"
#include "run/process/whole_io.h"
#include "run/witness/crossing.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes that one rank may tell: more than any case has, and less than
 * harms the machine. */
#define MOST_BYTES ((uint64_t)4 << 30)

enum {
    MOST_ELEMENTS = 1 << 28, /* in one message */
    MOST_DRAINED = 1 << 24   /* more than a pipe holds */
};

/* Bytes that follow the head of a message; 0 and *good false: the head has no
 * meaning. */
static uint64_t bytes_behind(const struct crossing_head *h, bool *good)
{
    const bool few = h->n <= MOST_ELEMENTS;

    *good = true;
    switch (h->kind) {
    case CROSSING_COLLECTIVE:
        return sizeof(struct record_collective);
    case CROSSING_MARK:
    case CROSSING_EXCHANGE:
    case CROSSING_MISMATCH:
    case CROSSING_OWN:
        return 0;
    case CROSSING_CUT:
        *good = h->list <= CROSSING_TENSORS;
        return 0;
    case CROSSING_TENSOR:
        *good = few;
        return few ? sizeof(struct record_tensor) + h->n * sizeof(float) : 0;
    case CROSSING_GROWN:
        *good = few && h->list < CROSSING_LISTS;
        return *good ? h->n * crossing_rows[h->list].bytes : 0;
    case CROSSING_END:
        return sizeof(struct record_rank);
    default:
        *good = false;
        return 0;
    }
}

/* ---- Each kind. False: no memory ---------------------------------------- */

static bool take_collective(struct scribe *s, const unsigned char *p)
{
    struct record_collective c;

    memcpy(&c, p, sizeof(c));
    record_traffic_add(&s->told.of, c.kind, c.dim, c.dtype, c.fold, c.root,
                       c.n);
    if (!sequences_have_room(&s->open)) {
        return false;
    }
    sequences_add(&s->open, c);
    return true;
}

static struct record_tensor *find(struct record_rank *r,
                                  const struct record_tensor *key)
{
    for (uint32_t i = r->n_tensors; i-- > 0;) {
        struct record_tensor *const t = &r->tensor[i];

        if (t->stage == key->stage && t->step == key->step &&
            t->microbatch == key->microbatch &&
            t->parameter == key->parameter && t->first == key->first) {
            return t;
        }
    }
    return NULL;
}

/* Takes a tensor; a piece that is shown twice is added up. */
static bool take_tensor(struct scribe *s, const unsigned char *p, uint64_t n)
{
    struct record_rank *const r = &s->r;
    struct record_tensor t;
    struct record_tensor *known;
    void *grown;

    memcpy(&t, p, sizeof(t));
    p += sizeof(t);
    t.n = n;
    known = find(r, &t);
    for (uint64_t i = 0; known && known->n == n && i < n; i++) {
        float x;

        memcpy(&x, p + i * sizeof(x), sizeof(x));
        known->data[i] = known->data[i] + x;
    }
    if (known) {
        return true;
    }
    t.data = malloc(n * sizeof(float) + 1);
    grown = realloc(r->tensor, (r->n_tensors + 1u) * sizeof(*r->tensor));
    r->tensor = grown ? grown : r->tensor;
    if (!t.data || !grown) {
        free(t.data);
        return false;
    }
    memcpy(t.data, p, n * sizeof(float));
    r->tensor[r->n_tensors++] = t;
    return true;
}

static char **list_of(struct record_rank *r, uint32_t list)
{
    return (char **)((char *)r + crossing_rows[list].at);
}

/* Takes new elements of a list; lists that share one length in the record grow
 * one after the other. */
static bool take_grown(struct scribe *s, uint32_t list, const unsigned char *p,
                       uint64_t n)
{
    const struct crossing_row *const row = &crossing_rows[list];
    char **const at = list_of(&s->r, list);
    char *grown = realloc(*at, (s->length[list] + n + 1) * row->bytes);

    if (!grown) {
        return false;
    }
    *at = grown;
    memcpy(grown + s->length[list] * row->bytes, p, n * row->bytes);
    s->length[list] += (uint32_t)n;
    *(uint32_t *)((char *)&s->r + row->count) = s->length[list];
    return true;
}

static void cut(struct scribe *s, uint32_t list, uint64_t n)
{
    struct record_rank *const r = &s->r;

    if (list < CROSSING_LISTS && n < s->length[list]) {
        s->length[list] = (uint32_t)n;
        *(uint32_t *)((char *)r + crossing_rows[list].count) = (uint32_t)n;
    }
    while (list == CROSSING_TENSORS && r->n_tensors > n) {
        free(r->tensor[--r->n_tensors].data);
    }
}

static void end_texts(struct record_rank *r)
{
    r->error.where[sizeof(r->error.where) - 1] = '\0';
    r->error.message[sizeof(r->error.message) - 1] = '\0';
    for (uint32_t i = 0; i < r->n_answers; i++) {
        r->answer[i].name[sizeof(r->answer[i].name) - 1] = '\0';
    }
    for (uint32_t i = 0; i < RECORD_CHANGES; i++) {
        r->change[i].call[sizeof(r->change[i].call) - 1] = '\0';
        r->change[i].what[sizeof(r->change[i].what) - 1] = '\0';
    }
    for (uint32_t i = 0; i < RECORD_RACES; i++) {
        struct record_race *const x = &r->races.race[i];

        x->edge[sizeof(x->edge) - 1] = '\0';
        for (int k = 0; k < 2; k++) {
            struct record_race_side *const y = k ? &x->later : &x->earlier;

            y->what[sizeof(y->what) - 1] = '\0';
            y->stream[sizeof(y->stream) - 1] = '\0';
            y->point[sizeof(y->point) - 1] = '\0';
        }
    }
}

/* Takes all of a record but the lists, which have come before, and the fields
 * that the rank does not write. */
static void take_end(struct scribe *s, const unsigned char *p)
{
    struct record_rank all;

    memcpy(&all, p, sizeof(all));
    for (uint32_t i = 0; i < CROSSING_LISTS; i++) {
        *list_of(&all, i) = *list_of(&s->r, i);
        *(uint32_t *)((char *)&all + crossing_rows[i].count) = s->length[i];
    }
    all.sequence = s->r.sequence;
    all.n_sequences = s->r.n_sequences;
    all.tensor = s->r.tensor;
    all.n_tensors = s->r.n_tensors;
    all.edge = NULL;
    all.n_edges = 0;
    memset(&all.account, 0, sizeof(all.account));
    all.spill = NULL;
    s->r = all;
    end_texts(&s->r);
    /* All lists with an element a step must be equally long. */
    s->lost =
        s->lost || s->r.n_changes > RECORD_CHANGES ||
        s->r.races.n > RECORD_RACES ||
        s->length[CROSSING_AFTER_STEP] != s->length[CROSSING_STEP_SEQUENCE] ||
        s->length[CROSSING_ALLOCATIONS] != s->length[CROSSING_STEP_SEQUENCE] ||
        s->length[CROSSING_LAUNCHES] != s->length[CROSSING_STEP_SEQUENCE] ||
        s->length[CROSSING_HOSTED] != s->length[CROSSING_STEP_SEQUENCE];
    s->ended = true;
}

static bool take_crossed(struct scribe *s, const struct crossing_head *h,
                         const unsigned char *p)
{
    switch (h->kind) {
    case CROSSING_COLLECTIVE:
        return take_collective(s, p);
    case CROSSING_MARK:
        return sequences_mark(&s->open, &s->r) >= 0;
    case CROSSING_EXCHANGE:
        record_traffic_exchange(&s->told.of, h->n);
        return true;
    case CROSSING_MISMATCH:
        s->told.of.mismatches++;
        return true;
    case CROSSING_OWN:
        s->told.own = 1;
        return true;
    case CROSSING_TENSOR:
        return take_tensor(s, p, h->n);
    case CROSSING_GROWN:
        return take_grown(s, h->list, p, h->n);
    case CROSSING_CUT:
        cut(s, h->list, h->n);
        return true;
    default:
        take_end(s, p);
        return true;
    }
}

bool scribe_begin(struct scribe *s)
{
    *s = (struct scribe){.n_in = 0};
    s->r.sequence = calloc(1, sizeof(*s->r.sequence)); /* nothing was sent */
    s->r.n_sequences = s->r.sequence != NULL;
    return s->r.sequence != NULL;
}

/* ---- The stream -----------------------------------------------------------
 */

/* Takes the messages that have arrived completely. */
static bool take_all(struct scribe *s)
{
    uint64_t at = 0;

    while (!s->lost && s->n_in - at >= sizeof(struct crossing_head)) {
        struct crossing_head h;
        bool good;
        uint64_t behind;

        memcpy(&h, s->in + at, sizeof(h));
        behind = bytes_behind(&h, &good);
        s->lost = !good || s->ended;
        if (s->lost || s->n_in - at - sizeof(h) < behind) {
            break;
        }
        if (!take_crossed(s, &h, s->in + at + sizeof(h))) {
            return false;
        }
        at += sizeof(h) + behind;
    }
    memmove(s->in, s->in + at, s->n_in - at);
    s->n_in -= at;
    return true;
}

bool scribe_drain(struct scribe *s, int pipe, uint64_t bytes)
{
    if (bytes > MOST_DRAINED) {
        s->lost = true;
        return true;
    }
    if (s->n_in + bytes > s->room) {
        const uint64_t room = 2 * (s->n_in + bytes);
        unsigned char *grown = realloc(s->in, room);

        if (!grown) {
            return false;
        }
        s->in = grown;
        s->room = room;
    }
    s->taken += bytes;
    s->lost = s->lost || s->taken > MOST_BYTES ||
              !whole_read(pipe, s->in + s->n_in, bytes);
    s->n_in += s->lost ? 0 : bytes;
    return take_all(s);
}

bool scribe_write(struct scribe *s, const char *folder, uint32_t rank,
                  struct fsdp_error *error)
{
    *error = (struct fsdp_error){.status = FSDP_OK};
    if (s->lost || !s->ended) {
        return false;
    }
    record_sort(&s->r);
    (void)record_write_rank(folder, rank, &s->r, error);
    return true;
}

void scribe_release(struct scribe *s)
{
    record_rank_release(&s->r);
    sequences_release(&s->open);
    free(s->in);
    *s = (struct scribe){.n_in = 0};
}
