/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_parse_pass.c - a pass, from its text: its batch, what happens at its
 * points, what becomes of its gradients, and how it ends.
 */
#include "script/script_parse.h"
#include "script/script_words.h"

#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* ---- Which pass, and what happens in it at its points ---- */

static int take_batch(struct reader *r, struct script_batch *b)
{
    const char *p = r->word;
    bool fine;

    b->counted = *p == 'i';
    p += b->counted;
    fine = true;
    if (!b->counted || *p == '+') {
        p += b->counted;
        fine = reader_count(&p, SCRIPT_MAX_REPEATS, &b->step);
    }
    if (!fine || *p++ != '.' ||
        !reader_count(&p, CASE_MAX_MICROBATCHES - 1, &b->microbatch) ||
        *p != '\0') {
        return reader_fail(
            r, "a batch is STEP.MICROBATCH, with i or i+N for what a "
               "repeat counts, and microbatches from 0 to 3");
    }
    reader_next(r);
    return FSDP_OK;
}

static int take_place(struct reader *r, struct script_place *out)
{
    const char *p = r->word;
    bool fine = reader_count(&p, SCRIPT_MAX_REPEATS, &out->a);

    out->b = 0;
    if (fine && *p == '/') {
        p++;
        fine = reader_count(&p, SCRIPT_MAX_REPEATS, &out->b) && out->b > 0 &&
               out->a <= out->b;
    }
    if (!fine || *p != '\0') {
        return reader_fail(r, "a place is a number of points, or A/B of them");
    }
    reader_next(r);
    return FSDP_OK;
}

int parse_call(struct reader *r, uint32_t *out)
{
    uint32_t i = 0;

    while (i < SCRIPT_N_CALLS && !reader_is(r, script_calls[i].name)) {
        i++;
    }
    if (i == SCRIPT_N_CALLS) {
        return reader_fail(r, "no call of that name must be refused");
    }
    *out = i;
    reader_next(r);
    return FSDP_OK;
}

int parse_unit(struct reader *r, uint32_t *out)
{
    return reader_take_count(r, 0, SCRIPT_MAX_UNITS - 1,
                             "a unit is a number from 0 to 63", out);
}

int parse_sync(struct reader *r, uint32_t *out)
{
    *out = reader_which(r, script_sync_words, N_OF(script_sync_words));
    if (*out == N_OF(script_sync_words)) {
        return reader_fail(r, "sync is on or off");
    }
    reader_next(r);
    return FSDP_OK;
}

static int take_by_hand(struct reader *r, struct script_inside *in)
{
    if (reader_accept(r, "unshard")) {
        in->by_hand = SCRIPT_UNSHARD_UNIT;
    } else if (reader_accept(r, "reshard")) {
        in->by_hand = SCRIPT_RESHARD_UNIT;
    } else {
        return reader_fail(r, "behind `at PLACE` is `sync on`, `sync off`, "
                              "`unshard UNIT`, `reshard UNIT` or `! CALL`");
    }
    return parse_unit(r, &in->unit);
}

static int take_inside(struct reader *r, struct script_action *a)
{
    struct script *s = r->s;
    struct script_inside in = {.sync = SCRIPT_SYNC_UNSAID};
    void *p = reader_grow(s->inside, s->n_inside, &r->room_inside,
                          sizeof(*s->inside));

    if (!p) {
        return FSDP_ERR_NOMEM;
    }
    s->inside = p;
    FSDP_TRY(take_place(r, &in.place));
    if (reader_accept(r, "sync")) {
        FSDP_TRY(parse_sync(r, &in.sync));
    } else if (reader_accept(r, "!")) {
        FSDP_TRY(parse_call(r, &in.call));
    } else {
        FSDP_TRY(take_by_hand(r, &in));
    }
    s->inside[s->n_inside++] = in;
    a->n_inside++;
    return FSDP_OK;
}

/* ---- Edits of gradients ---- */

int parse_power(struct reader *r, int32_t *out)
{
    static const char wanted[] = "a factor is 2^E, with E from -160 to 127";
    const char *p = r->word;
    uint32_t n;
    bool less;

    if (strncmp(p, "2^", 2) != 0) {
        return reader_fail(r, wanted);
    }
    p += 2;
    less = *p == '-';
    p += less;
    if (!reader_count(&p, less ? -SCRIPT_LEAST_EXPONENT : SCRIPT_MOST_EXPONENT,
                      &n) ||
        *p != '\0' || (less && n == 0)) {
        return reader_fail(r, wanted);
    }
    *out = less ? -(int32_t)n : (int32_t)n;
    reader_next(r);
    return FSDP_OK;
}

static int take_where(struct reader *r, struct script_edit *e)
{
    struct {
        const char *word, *wanted;
        uint32_t most, *out;
    } part[] = {
        {"rank", "a rank is 0 to 511", CASE_MAX_RANKS - 1, &e->rank},
        {"param", "a parameter is 0 to 1000000", SCRIPT_MAX_REPEATS,
         &e->parameter},
        {"element", "an element is 0 to 1000000", SCRIPT_MAX_REPEATS,
         &e->element},
    };

    for (uint32_t i = 0; i < N_OF(part); i++) {
        *part[i].out = SCRIPT_ALL;
        if (reader_accept(r, part[i].word)) {
            FSDP_TRY(reader_take_count(r, 0, part[i].most, part[i].wanted,
                                       part[i].out));
        }
    }
    return e->kind == SCRIPT_EDIT_TIE && e->element != SCRIPT_ALL
               ? reader_fail(r, "a tie is of three elements: none is named")
               : FSDP_OK;
}

/* Which edit begins here, or SCRIPT_N_EDITS. */
static int take_kind(struct reader *r, uint32_t *kind)
{
    bool set = reader_accept(r, "set");
    uint32_t k = reader_which(r, script_edit_words, SCRIPT_N_EDITS);

    *kind = (k >= SCRIPT_EDIT_ZERO) == set ? k : SCRIPT_N_EDITS;
    if (*kind != SCRIPT_N_EDITS) {
        reader_next(r);
        return FSDP_OK;
    }
    return set ? reader_fail(r, "gradients are set zero, tie or subnormal")
               : FSDP_OK;
}

static int take_edits(struct reader *r, struct script_action *a)
{
    struct script *s = r->s;

    a->first_edit = s->n_edits;
    for (;;) {
        struct script_edit e = {0};
        void *p;

        FSDP_TRY(take_kind(r, &e.kind));
        if (e.kind == SCRIPT_N_EDITS) {
            return FSDP_OK;
        }
        if (e.kind == SCRIPT_EDIT_TIMES) {
            FSDP_TRY(parse_power(r, &e.exponent));
        }
        FSDP_TRY(take_where(r, &e));
        p = reader_grow(s->edit, s->n_edits, &r->room_edits, sizeof(*s->edit));
        if (!p) {
            return FSDP_ERR_NOMEM;
        }
        s->edit = p;
        s->edit[s->n_edits++] = e;
        a->n_edits++;
    }
}

/* ---- */

int parse_pass(struct reader *r, struct script_action *a)
{
    FSDP_TRY(take_batch(r, &a->batch));
    if (a->verb == SCRIPT_PASS) {
        a->sync = reader_accept(r, "s")   ? SCRIPT_SYNC_ON
                  : reader_accept(r, "n") ? SCRIPT_SYNC_OFF
                                          : SCRIPT_SYNC_UNSAID;
    }
    a->first_inside = r->s->n_inside;
    while (reader_accept(r, "at")) {
        FSDP_TRY(take_inside(r, a));
    }
    if (a->verb == SCRIPT_PASS) {
        FSDP_TRY(take_edits(r, a));
    }
    a->ending = reader_which(r, script_ending_words, N_OF(script_ending_words));
    if (a->ending == N_OF(script_ending_words)) {
        a->ending = SCRIPT_WHOLE;
        return FSDP_OK;
    }
    reader_next(r);
    return take_place(r, &a->until);
}
