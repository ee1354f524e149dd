/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crossing.c - the rank's end of the pipe to the notary.
 */
#include "run/witness/crossing.h"
#include "run/process/whole_io.h"
#include "run/witness/rank_line.h"

#include <fcntl.h>
#include <string.h>

enum {
    SHORT = 1024
};

#define LIST(member, n)                                                        \
    {                                                                          \
        offsetof(struct record_rank, member), offsetof(struct record_rank, n), \
            sizeof(*((struct record_rank *)0)->member)                         \
    }
const struct crossing_row crossing_rows[CROSSING_LISTS] = {
    [CROSSING_LOSS] = LIST(loss, n_losses),
    [CROSSING_OTHER_LOSS] = LIST(other_loss, n_other_losses),
    [CROSSING_STEP_SEQUENCE] = LIST(step_sequence, n_steps),
    [CROSSING_AFTER_STEP] = LIST(memory.after_step, n_steps),
    [CROSSING_ALLOCATIONS] = LIST(memory.allocations, n_steps),
    [CROSSING_LAUNCHES] = LIST(memory.launches, n_steps),
    [CROSSING_HOSTED] = LIST(memory.hosted, n_steps),
    [CROSSING_MOMENT] = LIST(memory.moment, memory.n_moments),
    [CROSSING_ANSWER] = LIST(answer, n_answers),
    [CROSSING_FLIGHT] = LIST(flights.flight, flights.n),
    [CROSSING_PASS] = LIST(pass, n_passes),
};
#undef LIST

/* A pipe has so many pages. A write that does not fit into the rest of a page
 * begins another one, so that two consecutive pages hold more than one page's
 * bytes, and all of them more than half. */
uint32_t crossing_room(int pipe)
{
    const int bytes = fcntl(pipe, F_GETPIPE_SZ);

    return bytes > 1 ? (uint32_t)bytes / 2 : 1;
}

/* Waits until the pipe is empty. */
static void drain(struct crossing *c)
{
    c->broken =
        c->broken || !rank_line_ask(c->line, RANK_LINE_DRAIN, c->pending);
    c->pending = 0;
}

static void put_bytes(struct crossing *c, const void *from, uint64_t n)
{
    const char *at = from;

    while (n > 0 && !c->broken) {
        const uint64_t room = c->most - c->pending;
        const uint64_t now = n < room ? n : room;

        c->broken = !whole_write(c->pipe, at, now);
        c->pending += (uint32_t)now;
        at += now;
        n -= now;
        if (c->pending == c->most) {
            drain(c);
        }
    }
}

/* Most messages are short: one call of the system writes head and data. */
static void put_all(struct crossing *c, const struct crossing_head *head,
                    const void *p, size_t bytes)
{
    char all[SHORT];

    if (sizeof(*head) + bytes > sizeof(all)) {
        put_bytes(c, head, sizeof(*head));
        put_bytes(c, p, bytes);
        return;
    }
    memcpy(all, head, sizeof(*head));
    if (bytes > 0) {
        memcpy(all + sizeof(*head), p, bytes);
    }
    put_bytes(c, all, sizeof(*head) + bytes);
}

static void put_head(struct crossing *c, uint32_t kind, uint32_t list,
                     uint64_t n)
{
    put_all(c, &(struct crossing_head){kind, list, n}, NULL, 0);
}

void crossing_collective(struct crossing *c, const struct record_collective *x)
{
    put_all(c, &(struct crossing_head){CROSSING_COLLECTIVE, 0, 1}, x,
            sizeof(*x));
}

void crossing_mark(struct crossing *c)
{
    put_head(c, CROSSING_MARK, 0, 0);
}

void crossing_exchange(struct crossing *c, uint64_t bytes)
{
    put_head(c, CROSSING_EXCHANGE, 0, bytes);
}

void crossing_mismatch(struct crossing *c)
{
    put_head(c, CROSSING_MISMATCH, 0, 0);
}

void crossing_own(struct crossing *c)
{
    put_head(c, CROSSING_OWN, 0, 0);
}

void crossing_tensor(struct crossing *c, const struct record_tensor *t)
{
    put_all(c, &(struct crossing_head){CROSSING_TENSOR, 0, t->n}, t,
            sizeof(*t));
    put_bytes(c, t->data, t->n * sizeof(*t->data));
}

static void cross_list(struct crossing *c, const struct record_rank *r,
                       uint32_t list)
{
    const struct crossing_row *row = &crossing_rows[list];
    const char *const p = *(char *const *)((const char *)r + row->at);
    const uint32_t n = *(const uint32_t *)((const char *)r + row->count);

    if (n < c->sent[list]) {
        put_head(c, CROSSING_CUT, list, n);
        c->sent[list] = n;
    }
    if (n > c->sent[list]) {
        put_all(
            c, &(struct crossing_head){CROSSING_GROWN, list, n - c->sent[list]},
            p + c->sent[list] * row->bytes, (n - c->sent[list]) * row->bytes);
        c->sent[list] = n;
    }
}

void crossing_lists(struct crossing *c, const struct record_rank *r)
{
    if (r->n_tensors < c->tensors) {
        put_head(c, CROSSING_CUT, CROSSING_TENSORS, r->n_tensors);
    }
    c->tensors = r->n_tensors;
    for (uint32_t i = 0; i < CROSSING_LISTS; i++) {
        cross_list(c, r, i);
    }
}

bool crossing_end(struct crossing *c, const struct record_rank *r,
                  struct fsdp_error *error)
{
    crossing_lists(c, r);
    put_head(c, CROSSING_END, 0, 1);
    put_bytes(c, r, sizeof(*r));
    drain(c);
    return !c->broken && rank_line_ask(c->line, RANK_LINE_WRITE, 0) &&
           whole_read(c->line, error, sizeof(*error));
}
