/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_values.c - tensors that have to be those of the unsharded run: in every
 * bit, and neither more nor fewer of them.
 */
#include "tools/check/own_requirement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool own_stage_is(const struct own_tensor *t, const char *stage)
{
    const size_t n = strlen(stage);

    return n > 0 && stage[n - 1] == '.' ? strncmp(t->stage, stage, n) == 0
                                        : strcmp(t->stage, stage) == 0;
}

bool own_has_stage(const struct own_set *s, const char *stage)
{
    for (uint32_t i = 0; i < s->unsharded.n_tensors; i++) {
        if (own_stage_is(&s->unsharded.tensor[i], stage)) {
            return true;
        }
    }
    return false;
}

static bool is_local(const struct own_tensor *t)
{
    return strcmp(t->stage, "local-gradient") == 0;
}

/* The key of a state, for messages: "exp_avg, ". */
static const char *key_of(const struct own_tensor *t)
{
    const char *point = strchr(t->stage, '.');

    return point ? point + 1 : "";
}

static void place(struct own_finding *f, const struct own_tensor *t,
                  uint32_t rank)
{
    *f = own_nowhere();
    f->step = t->step;
    f->rank = rank;
    f->parameter = t->parameter;
    if (is_local(t)) {
        f->microbatch = t->microbatch;
    }
}

bool own_tensors_same(const struct own_set *s, const struct own_tensor *got,
                      const struct own_tensor *want, const char *whose,
                      struct own_finding *f)
{
    const uint64_t n = s->unsharded.parameter[want->parameter].n;
    const uint32_t before = own_places_before(n, want->first);
    char text[2][OWN_VALUE_BYTES];

    if (got->dtype != want->dtype) {
        return own_fail(f, "it is %s, %s %s", own_dtype_name(got->dtype), whose,
                        own_dtype_name(want->dtype));
    }
    for (uint32_t i = 0; i < got->n_values && i < want->n_values; i++) {
        if (got->value[i] != want->value[i]) {
            f->element = (int64_t)own_place(n, before + i);
            own_value(got->dtype, got->value[i], text[0]);
            own_value(want->dtype, want->value[i], text[1]);
            return own_fail(f, "%s, %s %s", text[0], whose, text[1]);
        }
    }
    return strcmp(got->digest, want->digest) == 0 ||
           own_fail(f,
                    "the digest of its %" PRIu64 " elements is %.12s..., %s "
                    "%.12s...; none of the %u elements whose bits are recorded "
                    "differs",
                    got->n, got->digest, whose, want->digest, got->n_values);
}

/* A rank's tensors are there unsharded, and the same. */
static bool compare_rank(const struct own_requirement *q,
                         const struct own_set *s, uint32_t r,
                         struct own_finding *f)
{
    const struct own_record *rank = &s->rank[r];

    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        const struct own_tensor *t = &rank->tensor[i];
        const struct own_tensor *want;

        if (!own_stage_is(t, q->stage)) {
            continue;
        }
        want = own_find(&s->unsharded, t);
        place(f, t, r);
        if (!want) {
            return own_fail(f, "%s: the unsharded run has none", q->words);
        }
        if (!own_tensors_same(s, t, want, "unsharded", f)) {
            char text[sizeof(f->text)];

            snprintf(text, sizeof(text), "%s", f->text);
            return own_fail(f, "%s%s%s: %.300s", q->words,
                            key_of(t)[0] ? " " : "", key_of(t), text);
        }
    }
    return true;
}

static bool has_piece(const struct own_record *rank, const struct own_tensor *t)
{
    const bool scalar = strchr(t->stage, '.') && t->first == 0 && t->n == 1;

    for (uint32_t i = 0; i < rank->n_pieces; i++) {
        const struct own_piece *p = &rank->piece[i];

        if (p->parameter == t->parameter &&
            (scalar || (p->first == t->first && p->n == t->n))) {
            return true;
        }
    }
    return false;
}

/* Whether a tensor of the unsharded run is one that the rank has to have. */
static bool is_due(const struct own_record *rank, const struct own_tensor *t)
{
    if (is_local(t)) {
        return t->rank == rank->rank;
    }
    return strcmp(t->stage, "unsharded") == 0 ||
           own_stage_is(t, "evaluated.") || has_piece(rank, t);
}

static bool find_missing(const struct own_requirement *q,
                         const struct own_set *s, uint32_t r,
                         struct own_finding *f)
{
    for (uint32_t i = 0; i < s->unsharded.n_tensors; i++) {
        const struct own_tensor *t = &s->unsharded.tensor[i];

        if (own_stage_is(t, q->stage) && is_due(&s->rank[r], t) &&
            !own_find(&s->rank[r], t)) {
            place(f, t, r);
            return own_fail(f,
                            "%s%s%s: there is none, and the unsharded run has "
                            "one",
                            q->words, key_of(t)[0] ? " " : "", key_of(t));
        }
    }
    return true;
}

static bool is_before(const struct own_finding *a, const struct own_finding *b)
{
    return a->step != b->step ? a->step < b->step
                              : a->microbatch < b->microbatch;
}

/* The earliest of all ranks' differences. */
bool own_same_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f)
{
    bool holds = true;

    for (uint32_t r = 0; r < s->world; r++) {
        struct own_finding mine = own_nowhere();

        if ((!compare_rank(q, s, r, &mine) || !find_missing(q, s, r, &mine)) &&
            (holds || is_before(&mine, f))) {
            *f = mine;
            holds = false;
        }
    }
    return holds;
}

void own_tensor_spoil(struct own_tensor *t, struct own_spoil *undo)
{
    own_damage(undo, t, sizeof(*t));
    t->digest[63] = t->digest[63] == '0' ? '1' : '0';
    t->value[0] ^= t->n_values > 0;
}

/* The last one of the last rank. */
bool own_same_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo)
{
    struct own_record *rank = &s->rank[s->world - 1];

    for (uint32_t i = rank->n_tensors; i-- > 0;) {
        if (own_stage_is(&rank->tensor[i], q->stage)) {
            own_tensor_spoil(&rank->tensor[i], undo);
            return true;
        }
    }
    return false;
}
