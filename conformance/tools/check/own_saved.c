/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_saved.c - what has to stay as it was: weights and states in a checkpoint,
 * and parameters that are not trained.
 */
#include "tools/check/own_requirement.h"

#include <stdio.h>
#include <string.h>

/* The tensor of the other stage: "loaded.step", "state." -> "state.step". */
static const struct own_tensor *other(const struct own_record *rank,
                                      const struct own_tensor *t,
                                      const char *stage, const char *with)
{
    struct own_tensor like = *t;

    snprintf(like.stage, sizeof(like.stage), "%s%s", with,
             t->stage + strlen(stage));
    return own_find(rank, &like);
}

static void place(struct own_finding *f, const struct own_tensor *t,
                  uint32_t rank)
{
    *f = own_nowhere();
    f->step = t->step;
    f->rank = rank;
    f->parameter = t->parameter;
}

/* Whether it is one that the checkpoint has: of the last step. */
static bool is_saved(const struct own_requirement *q,
                     const struct own_record *rank, const struct own_tensor *t)
{
    return own_stage_is(t, q->with) && t->step == rank->steps - 1;
}

/* Nothing that was there before the save is missing, and all of it is equal. */
bool own_saved_holds(const struct own_requirement *q, const struct own_set *s,
                     struct own_finding *f)
{
    for (uint32_t r = 0; r < s->world; r++) {
        const struct own_record *rank = &s->rank[r];

        if (rank->saved.how != OWN_RETURNED) {
            *f = own_nowhere();
            f->step = rank->steps - 1;
            f->rank = r;
            return own_fail(f, "the checkpoint %s, %s: %.200s",
                            own_how_name(rank->saved.how), rank->saved.place,
                            rank->saved.message);
        }
        for (uint32_t i = 0; i < rank->n_tensors; i++) {
            const struct own_tensor *t = &rank->tensor[i];
            const struct own_tensor *got;
            const char *key = t->stage + strlen(q->with);

            if (!is_saved(q, rank, t)) {
                continue;
            }
            got = other(rank, t, q->with, q->stage);
            place(f, t, r);
            if (!got) {
                return own_fail(f, "%s%s%s: it was saved, and is not loaded",
                                q->words, key[0] ? " " : "", key);
            }
            if (!own_tensors_same(s, got, t, "saved", f)) {
                char text[sizeof(f->text)];

                snprintf(text, sizeof(text), "%s", f->text);
                return own_fail(f, "%s%s%s: loaded as %.300s", q->words,
                                key[0] ? " " : "", key, text);
            }
        }
    }
    return true;
}

/* The last one that was saved, as it was loaded: what is loaded beside them, as
 * PyTorch's states of what never had a gradient, is compared with nothing. */
bool own_saved_spoil(const struct own_requirement *q, struct own_set *s,
                     struct own_spoil *undo)
{
    for (uint32_t r = s->world; r-- > 0;) {
        struct own_record *rank = &s->rank[r];

        for (uint32_t i = rank->n_tensors; i-- > 0;) {
            if (is_saved(q, rank, &rank->tensor[i])) {
                const struct own_tensor *got =
                    other(rank, &rank->tensor[i], q->with, q->stage);

                own_tensor_spoil(&rank->tensor[got - rank->tensor], undo);
                return true;
            }
        }
    }
    return false;
}

bool own_frozen_holds(const struct own_requirement *q, const struct own_set *s,
                      struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 0; r < s->world; r++) {
        const struct own_record *rank = &s->rank[r];

        for (uint32_t i = 0; i < rank->n_tensors; i++) {
            const struct own_tensor *t = &rank->tensor[i];
            struct own_tensor first = *t;
            const struct own_tensor *want;

            if (!own_stage_is(t, "after") ||
                s->unsharded.parameter[t->parameter].trainable) {
                continue;
            }
            snprintf(first.stage, sizeof(first.stage), "initial");
            first.step = 0;
            want = own_find(rank, &first);
            place(f, t, r);
            if (!want) {
                return own_fail(f, "it was not there in the beginning");
            }
            if (!own_tensors_same(s, t, want, "in the beginning", f)) {
                char text[sizeof(f->text)];

                snprintf(text, sizeof(text), "%s", f->text);
                return own_fail(f, "it is frozen, and moves: %.300s", text);
            }
        }
    }
    return true;
}

bool own_frozen_spoil(const struct own_requirement *q, struct own_set *s,
                      struct own_spoil *undo)
{
    struct own_record *rank = &s->rank[0];

    (void)q;
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        struct own_tensor *t = &rank->tensor[i];

        if (own_stage_is(t, "after") &&
            !s->unsharded.parameter[t->parameter].trainable) {
            own_damage(undo, t, sizeof(*t));
            t->digest[0] = t->digest[0] == '0' ? '1' : '0';
            return true;
        }
    }
    return false;
}
