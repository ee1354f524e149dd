/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask.c - applies a mask to a drawn script. Choices of its header
 * become plain, actions go or say less; then every action that has become
 * illegal goes, too.
 */
#include "script/script_mask.h"
#include "script/script_plain.h"
#include "script/script_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void script_mask_all(const struct script *drawn, struct script_mask *out)
{
    *out = (struct script_mask){.actions = drawn->n_actions < 64
                                               ? (1ull << drawn->n_actions) - 1
                                               : UINT64_MAX};
}

bool script_mask_same(const struct script_mask *a, const struct script_mask *b)
{
    return a->actions == b->actions && a->plain == b->plain &&
           memcmp(a->less, b->less, sizeof(a->less)) == 0;
}

/* ---- Actions that say less ---- */

static bool set_number(float *x, float to)
{
    bool changes = *x != to;

    *x = to;
    return changes;
}

static bool set_count(uint32_t *x, uint32_t to)
{
    bool changes = *x != to;

    *x = to;
    return changes;
}

static bool lessen_pass(struct script_action *a, uint32_t bit)
{
    switch (bit) {
    case SCRIPT_LESS_EDITS:
        return set_count(&a->n_edits, 0);
    case SCRIPT_LESS_SECOND:
        return a->n_inside > 1 && set_count(&a->n_inside, 1);
    case SCRIPT_LESS_FIRST:
        a->first_inside += a->n_inside > 0;
        return a->n_inside > 0 && set_count(&a->n_inside, a->n_inside - 1);
    default:
        a->until = (struct script_place){0};
        return set_count(&a->ending, SCRIPT_WHOLE);
    }
}

static bool lessen_step(const struct script *s, struct script_action *a,
                        uint32_t bit)
{
    switch (bit) {
    case SCRIPT_LESS_DECAY:
        return set_count(&a->n_decay, 0);
    case SCRIPT_LESS_RATES:
        return set_count(&a->n_lr, 1);
    default:
        return a->n_lr == 1 && set_number(&a->lr[0], case_default_lr(&s->c));
    }
}

static bool lessen_clip(struct script_action *a, uint32_t bit)
{
    bool changes = a->strict;

    switch (bit) {
    case SCRIPT_LESS_P:
        return set_number(&a->p, 2.0f);
    case SCRIPT_LESS_NORM:
        return set_number(&a->max_norm, INFINITY);
    default:
        a->strict = false;
        return changes;
    }
}

static bool lessen_values(struct script_action *a, uint32_t bit)
{
    if (bit == SCRIPT_LESS_SLICE) {
        return set_count(&a->slice, 0);
    }
    a->number = 0;
    return set_count(&a->source, SCRIPT_INITIAL);
}

static bool set_no(bool *flag)
{
    const bool was = *flag;

    *flag = false;
    return was;
}

/* Shards are not rounded. */
static bool lessen_save(struct script_action *a, uint32_t bit)
{
    if (bit == SCRIPT_LESS_PARTS) {
        return set_count(&a->what, 0);
    }
    if (bit == SCRIPT_LESS_DTYPE) {
        return set_count(&a->dtype, FSDP_DTYPE_NONE);
    }
    a->rank0_only = false;
    a->dtype = FSDP_DTYPE_NONE;
    return set_count(&a->form, FSDP_SAVE_SHARDED);
}

static bool lessen_anew(struct script_action *a, uint32_t bit)
{
    if (bit == SCRIPT_LESS_WORLD) {
        return set_count(&a->world.ranks, 0);
    }
    return set_count(&a->verb, SCRIPT_AGAIN);
}

/* False: nothing changes. */
static bool lessen(const struct script *s, struct script_action *a,
                   uint32_t bit)
{
    uint32_t most = bit == SCRIPT_LESS_TEN ? 10 : 2;

    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        return lessen_pass(a, bit);
    case SCRIPT_STEP:
    case SCRIPT_BACKWARD_STEP:
        return bit <= SCRIPT_LESS_RATE && lessen_step(s, a, bit);
    case SCRIPT_CLIP:
        return bit <= SCRIPT_LESS_STRICT && lessen_clip(a, bit);
    case SCRIPT_SAVE:
        return bit <= SCRIPT_LESS_DTYPE && lessen_save(a, bit);
    case SCRIPT_LOAD:
        return bit == SCRIPT_LESS_LENIENT && set_no(&a->lenient);
    case SCRIPT_AGAIN:
        return bit == SCRIPT_LESS_NAME && set_count(&a->renamed, 0);
    case SCRIPT_SUMMON_SOME:
        return bit == SCRIPT_LESS_RANK0 && a->unit != FSDP_NO_UNIT &&
               set_no(&a->on_rank0);
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
        return bit <= SCRIPT_LESS_SOURCE && lessen_values(a, bit);
    case SCRIPT_ANEW:
        return bit <= SCRIPT_LESS_PROCESS && lessen_anew(a, bit);
    case SCRIPT_REPEAT:
        return bit <= SCRIPT_LESS_TWO && a->count > most &&
               set_count(&a->count, most);
    default:
        return false;
    }
}

static void lessen_all(struct script *s, struct script_mask *mask)
{
    for (uint32_t i = 0; i < s->n_actions; i++) {
        uint32_t changed = 0;

        for (uint32_t bit = 1; bit < 1u << SCRIPT_LESS_BITS; bit *= 2) {
            if ((mask->less[i] & bit) != 0 && lessen(s, &s->action[i], bit)) {
                changed |= bit;
            }
        }
        mask->less[i] = (uint8_t)changed;
    }
}

/* ---- Actions that are kept ---- */

/* Copies the actions that are kept, and makes repeats shorter. A drawn script
 * has no repeat inside another. */
static void keep_actions(const struct script *from, uint64_t kept,
                         struct script *out)
{
    struct script_action *repeat = NULL;
    uint32_t end = 0;

    out->n_actions = 0;
    for (uint32_t i = 0; i < from->n_actions; i++) {
        struct script_action *a = &out->action[out->n_actions];

        repeat = i < end ? repeat : NULL;
        if ((kept >> i & 1) == 0) {
            continue;
        }
        *a = from->action[i];
        out->n_actions++;
        if (a->verb == SCRIPT_REPEAT) {
            end = i + 1 + a->length;
            repeat = a;
            a->length = 0;
        } else if (repeat) {
            repeat->length++;
        } else {
            a->batch.counted = false;
        }
    }
}

/* Drops each repeat of which no action is kept. */
static uint64_t drop_empty(const struct script *from, uint64_t kept)
{
    for (uint32_t i = 0; i < from->n_actions; i++) {
        const struct script_action *a = &from->action[i];

        if (a->verb == SCRIPT_REPEAT &&
            (kept >> (i + 1) & ((1ull << a->length) - 1)) == 0) {
            kept &= ~(1ull << i);
        }
    }
    return kept;
}

/* The number of the n-th kept action among all actions. */
static uint32_t nth(uint64_t kept, uint32_t n)
{
    while (n-- > 0) {
        kept &= kept - 1;
    }
    return (uint32_t)__builtin_ctzll(kept);
}

/* Drops the first action that is not legal, again and again, until all are. */
static uint64_t keep_legal(const struct script *from, uint64_t kept,
                           struct script *out)
{
    for (;;) {
        struct script_state state;
        bool at_end;
        uint32_t i;

        kept = drop_empty(from, kept);
        keep_actions(from, kept, out);
        i = script_first_illegal(out, NULL, &state, &at_end);
        if (i == out->n_actions) {
            return kept;
        }
        kept &= ~(1ull << nth(kept, i));
    }
}

/* ---- */

static void *copy(const void *from, uint32_t n, size_t bytes)
{
    void *to = calloc((size_t)n + 1, bytes);

    if (to && n > 0) {
        memcpy(to, from, n * bytes);
    }
    return to;
}

static int copy_script(const struct script *from, struct script *to,
                       struct fsdp_error *error)
{
    *to = *from;
    to->action = copy(from->action, from->n_actions, sizeof(*from->action));
    to->inside = copy(from->inside, from->n_inside, sizeof(*from->inside));
    to->edit = copy(from->edit, from->n_edits, sizeof(*from->edit));
    if (to->action && to->inside && to->edit) {
        return FSDP_OK;
    }
    *error = (struct fsdp_error){.status = FSDP_ERR_NOMEM, .where = "script"};
    snprintf(error->message, sizeof(error->message), "no memory");
    return FSDP_ERR_NOMEM;
}

int script_masked(const struct script *drawn, const struct script_mask *mask,
                  struct script *out, struct script_mask *left,
                  struct fsdp_error *error)
{
    struct script_mask m = *mask;
    struct script whole;
    int status;

    *out = (struct script){0};
    status = copy_script(drawn, &whole, error);
    if (status == FSDP_OK) {
        m.plain = script_make_plain(&whole, m.plain);
        lessen_all(&whole, &m);
        status = copy_script(&whole, out, error);
    }
    if (status == FSDP_OK) {
        struct script_mask all;

        script_mask_all(&whole, &all);
        m.actions = keep_legal(&whole, m.actions & all.actions, out);
        for (uint32_t i = 0; i < SCRIPT_MOST_DRAWN; i++) {
            m.less[i] = (m.actions >> i & 1) != 0 ? m.less[i] : 0;
        }
    }
    if (left) {
        *left = m;
    }
    script_release(&whole);
    return status;
}
