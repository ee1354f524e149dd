/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_model.c - the model as it was described: parameters, ties, units, what a
 * rank keeps, and what its optimizer has; and how each process ended.
 */
#include "tools/check/own_requirement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool own_has_units(const struct own_set *s)
{
    return own_is_flat(s) || strcmp(s->rank[0].wrapper, "fully_shard") == 0;
}

bool own_is_flat(const struct own_set *s)
{
    return strcmp(s->rank[0].wrapper, "fsdp1") == 0 ||
           strcmp(s->rank[0].wrapper, "fsdp1-flat") == 0;
}

bool own_is_zero(const struct own_set *s)
{
    return strncmp(s->rank[0].wrapper, "zero", 4) == 0;
}

bool own_is_sharded(const struct own_set *s)
{
    return own_has_units(s) || own_is_zero(s);
}

/* ---- Ends ---- */

static bool has_returned(const struct own_record *r, const char *who,
                         struct own_finding *f)
{
    return r->end.how == OWN_RETURNED ||
           own_fail(f, "%s %s%s%s: %.239s", who, own_how_name(r->end.how),
                    r->end.place[0] ? ": " : "", r->end.place, r->end.message);
}

/* The one that failed before those that were stopped for it. */
bool own_ends_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f)
{
    (void)q;
    *f = own_nowhere();
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t r = 0; r < s->world; r++) {
            char who[24];

            snprintf(who, sizeof(who), "rank %u", r);
            if ((turn == 1 || s->rank[r].end.how != OWN_STOPPED) &&
                !has_returned(&s->rank[r], who, f)) {
                return false;
            }
        }
    }
    return has_returned(&s->unsharded, "the unsharded run", f);
}

bool own_ends_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo)
{
    uint32_t *how = &s->rank[s->world - 1].end.how;

    (void)q;
    own_damage(undo, how, sizeof(*how));
    *how = OWN_HUNG;
    return true;
}

/* ---- Parameters ---- */

static bool compare_parameters(const struct own_record *got,
                               const struct own_record *want,
                               struct own_finding *f)
{
    for (uint32_t p = 0; p < got->n_parameters || p < want->n_parameters; p++) {
        const struct own_parameter *x = &got->parameter[p];
        const struct own_parameter *y = &want->parameter[p];

        if (p >= want->n_parameters || p >= got->n_parameters ||
            strcmp(x->name, y->name) != 0) {
            return own_fail(f, "parameter %u is %s, unsharded %s", p,
                            p < got->n_parameters ? x->name : "not there",
                            p < want->n_parameters ? y->name : "not there");
        }
        f->parameter = p;
        if (x->rows != y->rows || x->n != y->n || x->dtype != y->dtype ||
            x->trainable != y->trainable) {
            return own_fail(f,
                            "%" PRIu64 " elements in %" PRIu64
                            " rows of %s, %strained; unsharded %" PRIu64
                            " in %" PRIu64 " of %s, %strained",
                            x->n, x->rows, own_dtype_name(x->dtype),
                            x->trainable ? "" : "not ", y->n, y->rows,
                            own_dtype_name(y->dtype),
                            y->trainable ? "" : "not ");
        }
        f->parameter = -1;
    }
    return true;
}

bool own_model_holds(const struct own_requirement *q, const struct own_set *s,
                     struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 0; r < s->world; r++) {
        *f = own_nowhere();
        f->rank = r;
        if (!compare_parameters(&s->rank[r], &s->unsharded, f)) {
            return false;
        }
    }
    return s->unsharded.n_parameters > 0 ||
           own_fail(f, "the model has no parameters");
}

bool own_model_spoil(const struct own_requirement *q, struct own_set *s,
                     struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];
    struct own_parameter *p = &last->parameter[last->n_parameters - 1];

    (void)q;
    own_damage(undo, &p->trainable, sizeof(p->trainable));
    p->trainable = !p->trainable;
    return true;
}

/* ---- Ties ---- */

static const struct own_name *name_of(const struct own_record *r,
                                      const char *name)
{
    for (uint32_t i = 0; i < r->n_names; i++) {
        if (strcmp(r->name[i].name, name) == 0) {
            return &r->name[i];
        }
    }
    return NULL;
}

/* The first name of the same parameter. */
static const struct own_name *first_name(const struct own_record *r,
                                         const struct own_name *n)
{
    const struct own_name *first = r->name;

    while (first->parameter != n->parameter) {
        first++;
    }
    return first;
}

/* Whether names that are tied in `a` are tied in `b`, too. */
static bool ties_hold(const struct own_record *a, const struct own_record *b,
                      const char *in_a, const char *in_b, struct own_finding *f)
{
    for (uint32_t i = 0; i < a->n_names; i++) {
        const struct own_name *first = first_name(a, &a->name[i]);
        const struct own_name *x = name_of(b, first->name);
        const struct own_name *y = name_of(b, a->name[i].name);

        if (x && y && x->parameter != y->parameter) {
            return own_fail(f,
                            "%s is %s too in the %s model, and another "
                            "parameter in the %s one",
                            a->name[i].name, first->name, in_a, in_b);
        }
    }
    return true;
}

bool own_tied_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 0; r < s->world; r++) {
        *f = own_nowhere();
        f->rank = r;
        if (!ties_hold(&s->unsharded, &s->rank[r], "unsharded", "sharded", f) ||
            !ties_hold(&s->rank[r], &s->unsharded, "sharded", "unsharded", f)) {
            return false;
        }
    }
    return true;
}

/* The last name becomes one more of the first parameter. */
bool own_tied_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];
    uint32_t *p;

    (void)q;
    if (last->n_names < 2) {
        return false;
    }
    p = &last->name[last->n_names - 1].parameter;
    own_damage(undo, p, sizeof(*p));
    *p = *p == 0 ? 1 : 0;
    return true;
}

/* ---- Units ---- */

bool own_units_holds(const struct own_requirement *q, const struct own_set *s,
                     struct own_finding *f)
{
    const struct own_record *first = &s->rank[0];

    (void)q;
    *f = own_nowhere();
    for (uint32_t r = 1; r < s->world; r++) {
        const struct own_record *rank = &s->rank[r];

        f->rank = r;
        if (strcmp(rank->wrapper, first->wrapper) != 0 ||
            rank->n_units != first->n_units) {
            return own_fail(f, "%u units of %s, %u of %s on rank 0",
                            rank->n_units, rank->wrapper, first->n_units,
                            first->wrapper);
        }
        for (uint32_t u = 0; u < rank->n_units; u++) {
            const struct own_unit *x = &rank->unit[u];
            const struct own_unit *y = &first->unit[u];

            f->unit = u;
            if (strcmp(x->name, y->name) != 0 || x->reshard != y->reshard ||
                x->fills != y->fills || x->n_parameters != y->n_parameters ||
                memcmp(x->parameter, y->parameter,
                       x->n_parameters * sizeof(*x->parameter)) != 0) {
                return own_fail(f, "it is another unit than on rank 0: name, "
                                   "parameters, whether it is resharded, or "
                                   "reduces what has no gradient");
            }
        }
        f->unit = -1;
    }
    return first->n_units > 0 || own_fail(f, "the model has no units");
}

bool own_units_spoil(const struct own_requirement *q, struct own_set *s,
                     struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];
    bool *reshard = &last->unit[last->n_units - 1].reshard;

    (void)q;
    if (s->world < 2) {
        return false;
    }
    own_damage(undo, reshard, sizeof(*reshard));
    *reshard = !*reshard;
    return true;
}

/* ---- Layout ---- */

static int order_pieces(const void *a, const void *b)
{
    const struct own_piece *x = a;
    const struct own_piece *y = b;

    if (x->parameter != y->parameter) {
        return x->parameter < y->parameter ? -1 : 1;
    }
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

static bool in_a_unit(const struct own_record *r, uint32_t parameter)
{
    for (uint32_t u = 0; u < r->n_units; u++) {
        for (uint32_t i = 0; i < r->unit[u].n_parameters; i++) {
            if (r->unit[u].parameter[i] == parameter) {
                return true;
            }
        }
    }
    return false;
}

/* The pieces of one parameter, in order. */
static bool covers_once(const struct own_set *s, uint32_t parameter,
                        const struct own_piece *piece, uint32_t n,
                        struct own_finding *f)
{
    const uint64_t all = s->unsharded.parameter[parameter].n;
    uint64_t at = 0;

    *f = own_nowhere();
    f->parameter = parameter;
    if (own_has_units(s) && !in_a_unit(&s->rank[0], parameter)) {
        return own_fail(f,
                        "it is in no unit: each rank has all of it, and "
                        "nobody reduces its gradient; %s",
                        own_is_flat(s) ? "no FullyShardedDataParallel is "
                                         "around it"
                                       : "fully_shard was not called for a "
                                         "module around it");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (piece[i].first != at) {
            f->element = (int64_t)(piece[i].first < at ? piece[i].first : at);
            return own_fail(f, "%s",
                            piece[i].first < at ? "it is on two ranks"
                                                : "it is on no rank");
        }
        at += piece[i].n;
    }
    f->element = (int64_t)at;
    return at == all || own_fail(f, "it is on no rank");
}

static uint32_t pieces_of(const struct own_piece *piece, uint32_t n,
                          uint32_t parameter)
{
    uint32_t i = 0;

    while (i < n && piece[i].parameter == parameter) {
        i++;
    }
    return i;
}

static bool is_sharded_once(const struct own_set *s, struct own_finding *f)
{
    struct own_piece *all;
    uint32_t n = 0;
    uint32_t at = 0;
    bool holds = true;

    for (uint32_t r = 0; r < s->world; r++) {
        n += s->rank[r].n_pieces;
    }
    all = calloc(n + 1, sizeof(*all));
    if (!all) {
        return own_fail(f, "out of memory");
    }
    for (uint32_t r = 0; r < s->world; r++) {
        memcpy(all + at, s->rank[r].piece, s->rank[r].n_pieces * sizeof(*all));
        at += s->rank[r].n_pieces;
    }
    qsort(all, n, sizeof(*all), order_pieces);
    at = 0;
    for (uint32_t p = 0; p < s->unsharded.n_parameters && holds; p++) {
        const uint32_t mine = pieces_of(all + at, n - at, p);

        holds = covers_once(s, p, all + at, mine, f);
        at += mine;
    }
    free(all);
    return holds;
}

static bool is_whole_everywhere(const struct own_set *s, struct own_finding *f)
{
    for (uint32_t r = 0; r < s->world; r++) {
        uint64_t n = 0;

        *f = own_nowhere();
        f->rank = r;
        for (uint32_t i = 0; i < s->rank[r].n_pieces; i++) {
            const struct own_piece *p = &s->rank[r].piece[i];

            f->parameter = p->parameter;
            if (p->first != 0 ||
                p->n != s->unsharded.parameter[p->parameter].n) {
                return own_fail(f, "the rank has a part of it");
            }
            n++;
        }
        f->parameter = -1;
        if (n != s->unsharded.n_parameters) {
            return own_fail(f, "it has %" PRIu64 " of %u parameters", n,
                            s->unsharded.n_parameters);
        }
    }
    return true;
}

bool own_layout_holds(const struct own_requirement *q, const struct own_set *s,
                      struct own_finding *f)
{
    (void)q;
    *f = own_nowhere();
    return own_is_sharded(s) ? is_sharded_once(s, f)
                             : is_whole_everywhere(s, f);
}

bool own_layout_spoil(const struct own_requirement *q, struct own_set *s,
                      struct own_spoil *undo)
{
    struct own_record *rank = &s->rank[0];

    (void)q;
    if (rank->n_pieces == 0) {
        return false;
    }
    own_damage(undo, &rank->piece[0].n, sizeof(rank->piece[0].n));
    rank->piece[0].n++;
    return true;
}

/* ---- The optimizer ---- */

/* The group of a parameter; UINT32_MAX: the optimizer has it not. */
static uint32_t group_of(const struct own_record *r, uint32_t parameter)
{
    for (uint32_t i = 0; i < r->n_held; i++) {
        if (r->held[i].parameter == (int32_t)parameter) {
            return r->held[i].group;
        }
    }
    return UINT32_MAX;
}

static bool holds_the_same(const struct own_record *rank,
                           const struct own_record *alone,
                           struct own_finding *f)
{
    for (uint32_t p = 0; p < alone->n_parameters; p++) {
        const uint32_t want = group_of(alone, p);
        const uint32_t got = group_of(rank, p);

        f->parameter = p;
        if (got != want && got == UINT32_MAX) {
            return own_fail(f, "the optimizer does not have it: was it made "
                               "before the model was sharded?");
        }
        if (got != want && want == UINT32_MAX) {
            return own_fail(f, "the optimizer has it, and not in the unsharded "
                               "run");
        }
        if (got != want) {
            return own_fail(f, "in group %u, unsharded in %u", got, want);
        }
    }
    f->parameter = -1;
    return rank->n_held == alone->n_held ||
           own_fail(f, "the optimizer has %u tensors, unsharded %u",
                    rank->n_held, alone->n_held);
}

bool own_optimizer_holds(const struct own_requirement *q,
                         const struct own_set *s, struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 0; r < s->world; r++) {
        *f = own_nowhere();
        f->rank = r;
        if (!holds_the_same(&s->rank[r], &s->unsharded, f)) {
            return false;
        }
    }
    return true;
}

bool own_optimizer_spoil(const struct own_requirement *q, struct own_set *s,
                         struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];

    (void)q;
    if (last->n_held == 0) {
        return false;
    }
    own_damage(undo, &last->held[0].parameter, sizeof(last->held[0].parameter));
    last->held[0].parameter = -1;
    return true;
}
