/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.c - the broker's work on what ranks post. It trusts nothing: a post is
 * copied before it is looked at, and what a turn carries is computed anew from
 * the headers of all members.
 */
#include "broker.h"

#include <errno.h>
#include <fsdp/arith/cast.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world_turns.h"

enum {
    TURN = 2, /* of `answered` */
    SHUT = 1,
    /* The broker waits as ranks do (arena.c): the rank that posts next is on a
     * core, or gets one. */
    LOOKS = 60,
    LONGEST_SLEEP_MS = 100, /* a bell may be gone */
    NOBODY = -1
};

/* The collective that a group is making. */
struct flight {
    struct world_header header;
    bool goes_on; /* more turns of it are due */
};

struct carrying {
    struct broker *b;
    uint32_t n, n_groups;
    struct world_group group[BROKER_RANKS][WORLD_MAX_GROUPS];
    struct flight flight[BROKER_RANKS][WORLD_MAX_GROUPS]; /* by first member */
    struct post {
        uint32_t seen; /* posts */
        int32_t group; /* the group in which it waits, or NOBODY */
        bool left, ended;
        struct world_turn turn;
        /* Hashes of what it sends in this collective, one for each member; if
         * it sends the same to all, the first. */
        uint64_t hash[BROKER_RANKS];
        uint64_t digest; /* of all of it */
    } post[BROKER_RANKS];
};

static struct broker_area *area(const struct carrying *c, uint32_t rank)
{
    return broker_area(c->b->arena, rank);
}

static uint32_t member(const struct world_group *g, uint32_t i)
{
    return g->first + i * g->stride;
}

/* ---- Which turn is due --------------------------------------------------- */

static uint64_t rounded(uint64_t bytes)
{
    return bytes - bytes % 64;
}

/* The number of turns for a block of so many bytes. */
static uint64_t turns_of(uint64_t bytes, uint64_t most)
{
    return bytes == 0 ? 1 : (bytes + most - 1) / most;
}

/* Computes the turn that t->header belongs to: `pattern` and `bytes`; *last: no
 * turn follows. False: there is no such turn. */
static bool work_out(struct world_turn *t, uint32_t extent, bool *last)
{
    const struct world_header *const h = &t->header;
    const bool out_of_band =
        h->kind == WORLD_EXCHANGE || h->kind == FSDP_BARRIER;
    const uint64_t element = out_of_band ? 1 : fsdp_dtype_bytes(h->dtype);
    const bool reduces =
        h->kind == FSDP_REDUCE_SCATTER || h->kind == FSDP_ALL_REDUCE;
    const uint64_t each = rounded(WORLD_PLACE_BYTES / extent);
    const uint64_t all = rounded(WORLD_PLACE_BYTES);
    uint64_t n = h->n;
    uint64_t first; /* turns that bring each member its own part */
    uint64_t at = h->turn;
    uint64_t turns;
    uint64_t most;

    if (h->kind > WORLD_EXCHANGE || element == 0 ||
        n > UINT64_MAX / 2 / element || (h->kind == FSDP_BARRIER && n != 0) ||
        (h->kind == WORLD_EXCHANGE && n > WORLD_EXCHANGE_BYTES) ||
        (h->kind == FSDP_BROADCAST && h->root >= extent)) {
        return false;
    }
    if (h->kind == FSDP_ALL_REDUCE) {
        n = n / extent + (n % extent != 0);
    }
    n *= element;
    first = reduces ? turns_of(n, each) : 0;
    turns = first + (h->kind == FSDP_REDUCE_SCATTER ? 0 : turns_of(n, all));
    if (at >= turns) {
        return false;
    }
    *last = at + 1 == turns;
    t->pattern = at < first                  ? WORLD_EACH
                 : h->kind == FSDP_BROADCAST ? WORLD_ROOT
                                             : WORLD_ALL;
    most = at < first ? each : all;
    n -= (at < first ? at : at - first) * most;
    t->bytes = n < most ? n : most;
    return true;
}

/* ---- A turn that all members have posted --------------------------------- */

static void answer(struct carrying *c, uint32_t rank, int32_t verdict,
                   uint32_t left)
{
    struct broker_area *const a = area(c, rank);

    c->b->carried[rank].traffic.mismatches += verdict == FSDP_ERR_MISMATCH;
    a->verdict = verdict;
    a->left = left;
    c->post[rank].group = NOBODY;
    atomic_fetch_add(&a->answered, TURN);
    if (atomic_load(&a->sleepers) > 0) {
        arena_wake(&a->answered);
    }
}

static void count(struct carrying *c, const struct world_group *g,
                  uint32_t group, const struct world_header *h)
{
    const uint32_t dim = group + 1 == c->n_groups ? FSDP_DIM_WORLD : group;

    for (uint32_t i = 0; i < g->extent; i++) {
        struct record_traffic *const t = &c->b->carried[member(g, i)].traffic;

        if (h->kind == WORLD_EXCHANGE) {
            record_traffic_exchange(t, h->n);
        } else {
            record_traffic_add(t, h->kind, dim, h->dtype, h->fold, h->root,
                               h->n);
        }
    }
}

/* Bytes for member `to` in a turn in which each gets its own part, without
 * filling: the last blocks of an all-reduce are shorter. */
static uint64_t bytes_for(const struct world_turn *t, uint32_t extent,
                          uint32_t to)
{
    const struct world_header *const h = &t->header;
    const uint64_t each = h->n / extent + (h->n % extent != 0);
    const uint64_t before = each * to < h->n ? each * to : h->n;
    const uint64_t block = (h->n - before < each ? h->n - before : each) *
                           fsdp_dtype_bytes(h->dtype);
    const uint64_t at = h->turn * rounded(WORLD_PLACE_BYTES / extent);
    const uint64_t left = at < block ? block - at : 0;

    return h->kind != FSDP_ALL_REDUCE || left > t->bytes ? t->bytes : left;
}

/* Adds the number of the part for `to`, or for all alike, at its place: in an
 * all-gather the shards lie behind each other, in a reduction what each member
 * gets. */
static void digest_part(struct post *p, const struct world_group *g,
                        uint32_t to, const struct world_turn *t,
                        const unsigned char *part, uint64_t bytes)
{
    const struct world_header *const h = &t->header;
    const uint32_t element = (uint32_t)fsdp_dtype_bytes(h->dtype);
    const bool across = h->kind == FSDP_ALL_REDUCE;
    const uint64_t each =
        across ? h->n / g->extent + (h->n % g->extent != 0) : h->n;
    const uint64_t most =
        rounded(t->pattern == WORLD_EACH ? WORLD_PLACE_BYTES / g->extent
                                         : WORLD_PLACE_BYTES);

    if (element > 0) {
        p->digest =
            record_digest_add(p->digest, to * each + h->turn * most / element,
                              part, bytes / element, element);
    }
}

/* Hashes the bytes of a turn that are a member's own: in an all-gather all of
 * them. The result of its block in an all-reduce is left out: it follows from
 * the rest. */
static void hash_posted(struct carrying *c, const struct world_group *g,
                        uint32_t from, const struct world_turn *t)
{
    struct post *const p = &c->post[member(g, from)];
    const unsigned char *const out = area(c, member(g, from))->out;

    if ((t->pattern == WORLD_ROOT && from != t->header.root) ||
        (t->pattern == WORLD_ALL && t->header.kind == FSDP_ALL_REDUCE)) {
        return;
    }
    if (t->pattern != WORLD_EACH) {
        p->hash[0] = record_payload_add(p->hash[0], out, t->bytes);
        digest_part(p, g, t->pattern == WORLD_ALL ? from : 0, t, out, t->bytes);
        return;
    }
    for (uint32_t i = 0; i < g->extent; i++) {
        if (i != from) {
            const uint64_t bytes = bytes_for(t, g->extent, i);

            p->hash[i] =
                record_payload_add(p->hash[i], out + i * t->bytes, bytes);
            digest_part(p, g, i, t, out + i * t->bytes, bytes);
        }
    }
}

/* Hashes what members have sent, if the collective is one of the first. */
static void hash_turn(struct carrying *c, const struct world_group *g,
                      const struct world_turn *t, bool last)
{
    for (uint32_t i = 0; t->header.kind < FSDP_N_COLLECTIVES && i < g->extent;
         i++) {
        struct post *const p = &c->post[member(g, i)];
        struct record_carried *const to = &c->b->carried[member(g, i)];
        uint64_t all = 0;

        if (to->n == RECORD_PAYLOADS) {
            continue;
        }
        if (t->header.turn == 0) {
            memset(p->hash, 0, g->extent * sizeof(p->hash[0]));
            p->digest = 0;
        }
        hash_posted(c, g, i, t);
        for (uint32_t k = 0; last && k < g->extent; k++) {
            all = record_payload_join(all, p->hash[k]);
        }
        if (last) {
            to->payload[to->n] = all;
            to->digest[to->n++] = p->digest;
        }
    }
}

/* Copies to the member with coordinate `to` all parts that it does not have
 * itself. */
static void copy_to(struct carrying *c, const struct world_group *g,
                    uint32_t to, const struct world_turn *t)
{
    unsigned char *in = area(c, member(g, to))->in;
    const uint64_t skip = t->pattern == WORLD_EACH ? to * t->bytes : 0;

    if (t->pattern == WORLD_ROOT) {
        if (to != t->header.root) {
            memcpy(in, area(c, member(g, t->header.root))->out, t->bytes);
        }
        return;
    }
    for (uint32_t i = 0; t->bytes > 0 && i < g->extent; i++) {
        if (i != to) {
            memcpy(in, area(c, member(g, i))->out + skip, t->bytes);
        }
        in += broker_part(t->bytes);
    }
}

/* Gives all headers to each member, which says by itself which ranks differ. */
static void disagree(struct carrying *c, const struct world_group *g)
{
    for (uint32_t i = 0; i < g->extent; i++) {
        struct broker_area *const a = area(c, member(g, i));

        for (uint32_t k = 0; k < g->extent; k++) {
            a->header[k] = c->post[member(g, k)].turn.header;
        }
    }
    for (uint32_t i = 0; i < g->extent; i++) {
        answer(c, member(g, i), FSDP_ERR_MISMATCH, UINT32_MAX);
    }
}

static void carry(struct carrying *c, const struct world_group *g,
                  uint32_t group)
{
    struct flight *const f = &c->flight[g->first][group];
    const struct world_turn *const first = &c->post[g->first].turn;
    struct world_turn due = {.header = first->header};
    struct world_header before = first->header;
    bool last = true;
    bool good = work_out(&due, g->extent, &last);

    for (uint32_t i = 1; i < g->extent; i++) {
        if (memcmp(&c->post[member(g, i)].turn.header, &first->header,
                   sizeof(first->header)) != 0) {
            f->goes_on = false;
            disagree(c, g);
            return;
        }
    }
    before.turn--;
    good = good && f->goes_on == (first->header.turn != 0) &&
           (!f->goes_on || memcmp(&before, &f->header, sizeof(before)) == 0);
    for (uint32_t i = 0; i < g->extent; i++) {
        const struct world_turn *const t = &c->post[member(g, i)].turn;

        good = good && t->pattern == due.pattern && t->bytes == due.bytes;
    }
    f->goes_on = good && !last;
    f->header = first->header;
    if (good && first->header.turn == 0) {
        count(c, g, group, &due.header);
    }
    if (good) {
        hash_turn(c, g, &due, last);
    }
    /* All copies come before the first answer: a rank that has one fills its
     * place anew. */
    for (uint32_t i = 0; good && i < g->extent; i++) {
        copy_to(c, g, i, &due);
    }
    for (uint32_t i = 0; i < g->extent; i++) {
        answer(c, member(g, i), good ? FSDP_OK : FSDP_ERR_INVALID, UINT32_MAX);
    }
}

/* ---- What ranks say ------------------------------------------------------ */

/* Ends the turn of a group if all members have posted, or if one never will. */
static void try_group(struct carrying *c, uint32_t rank, uint32_t group)
{
    const struct world_group *const g = &c->group[rank][group];
    uint32_t there = 0;
    uint32_t left = UINT32_MAX;

    for (uint32_t i = g->extent; i-- > 0;) {
        const struct post *const p = &c->post[member(g, i)];

        there += p->group == (int32_t)group;
        left = p->left ? member(g, i) : left;
    }
    if (there == g->extent) {
        carry(c, g, group);
    }
    if (atomic_load(&c->b->arena->aborted) != FSDP_OK) {
        return; /* of which the ranks learn */
    }
    for (uint32_t i = 0; left != UINT32_MAX && i < g->extent; i++) {
        if (c->post[member(g, i)].group == (int32_t)group) {
            answer(c, member(g, i), FSDP_ERR_MISMATCH, left);
        }
    }
}

/* Hears a rank; returns whether it has said anything new. */
static bool hear(struct carrying *c, uint32_t rank)
{
    struct broker_area *const a = area(c, rank);
    struct post *const p = &c->post[rank];
    const uint32_t posted = atomic_load(&a->posted);
    const int32_t gives_up = atomic_load(&a->gives_up);
    bool heard = false;

    if (gives_up != FSDP_OK && atomic_load(&c->b->arena->aborted) == FSDP_OK) {
        arena_abort(c->b->arena, gives_up);
        heard = true;
    }
    if (posted != p->seen && p->group == NOBODY) {
        const uint32_t group = a->group;

        p->seen = posted;
        p->turn = a->turn;
        p->group = (int32_t)(group < c->n_groups ? group : 0);
        heard = true;
        if (group < c->n_groups) {
            try_group(c, rank, group);
        } else {
            answer(c, rank, FSDP_ERR_INVALID, UINT32_MAX);
        }
    }
    if (!p->left && atomic_load(&a->self.left) != 0) {
        p->left = heard = true;
        for (uint32_t k = 0; k < c->n_groups; k++) {
            try_group(c, rank, k);
        }
    }
    if (!p->ended && atomic_load(&a->self.ended) != 0) {
        p->ended = heard = true;
        atomic_fetch_add(&c->b->arena->n_ended, 1);
        arena_wake(&c->b->arena->n_ended);
    }
    return heard;
}

static bool hear_all(struct carrying *c)
{
    bool heard = false;

    for (uint32_t r = 0; r < c->n; r++) {
        heard = hear(c, r) || heard;
    }
    return heard;
}

static void set_asleep(struct carrying *c, uint32_t asleep)
{
    for (uint32_t r = 0; r < c->n; r++) {
        atomic_store(&area(c, r)->asleep, asleep);
    }
}

/* Sleeps until a bell rings. A rank that posted before it could see that has
 * been heard. */
static void sleep_on(struct carrying *c)
{
    struct pollfd p[BROKER_RANKS + 1];
    uint64_t rung;

    set_asleep(c, 1);
    if (!hear_all(c) && atomic_load(&c->b->arena->over) == 0) {
        for (uint32_t r = 0; r <= c->n; r++) {
            p[r] = (struct pollfd){.fd = c->b->bell[r], .events = POLLIN};
        }
        if (poll(p, c->n + 1, LONGEST_SLEEP_MS) > 0) {
            for (uint32_t r = 0; r <= c->n; r++) {
                if (p[r].revents != 0) {
                    (void)!read(p[r].fd, &rung, sizeof(rung));
                }
            }
        }
    }
    set_asleep(c, 0);
}

void broker_serve(struct broker *b)
{
    struct carrying *c = calloc(1, sizeof(*c));
    uint32_t looks = 0;

    if (!c) {
        return; /* as if it had died */
    }
    c->b = b;
    c->n = b->arena->n_ranks;
    c->n_groups = b->arena->n_groups;
    for (uint32_t r = 0; r < c->n; r++) {
        world_comm_groups(b->mesh, r, c->group[r]);
        c->post[r].group = NOBODY;
    }
    while (atomic_load(&b->arena->over) == 0) {
        if (hear_all(c)) {
            looks = 0;
        } else if (++looks < LOOKS) {
            (void)sched_yield();
        } else {
            sleep_on(c);
            looks = 0;
        }
    }
    free(c);
}

void broker_shut(struct arena *arena)
{
    const int32_t status = atomic_load(&arena->aborted);

    for (uint32_t r = 0; r < arena->n_ranks; r++) {
        struct broker_area *const a = broker_area(arena, r);
        int32_t none = FSDP_OK;

        (void)atomic_compare_exchange_strong(&a->aborted, &none, status);
        atomic_fetch_or(&a->answered, SHUT);
        arena_wake(&a->answered);
    }
}
