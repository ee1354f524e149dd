/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_passes.c - the input and output of each pass: batch, random state, loss.
 */
#include "tools/check/own_requirement.h"

#include <stdio.h>
#include <string.h>

/* The pass of a rank, in its own record and unsharded; false: one is missing.
 */
static bool find(const struct own_set *s, uint32_t i, uint32_t r,
                 const struct own_pass **got, const struct own_pass **want,
                 struct own_finding *f)
{
    const uint32_t step = i / s->unsharded.microbatches;
    const uint32_t microbatch = i % s->unsharded.microbatches;

    *f = own_nowhere();
    f->step = step;
    f->microbatch = microbatch;
    f->rank = r;
    *got = own_find_pass(&s->rank[r], step, microbatch, r);
    *want = own_find_pass(&s->unsharded, step, microbatch, r);
    return (*got && *want) || own_fail(f, "the %s run has no such pass",
                                       !*got ? "sharded" : "unsharded");
}

/* Makes one comparison for all passes, in the order of time. */
static bool all_passes(const struct own_set *s, struct own_finding *f,
                       bool (*same)(const struct own_pass *,
                                    const struct own_pass *,
                                    struct own_finding *))
{
    for (uint32_t i = 0; i < s->unsharded.steps * s->unsharded.microbatches;
         i++) {
        for (uint32_t r = 0; r < s->world; r++) {
            const struct own_pass *got;
            const struct own_pass *want;

            if (!find(s, i, r, &got, &want, f) || !same(got, want, f)) {
                return false;
            }
        }
    }
    return true;
}

static struct own_pass *last_pass(struct own_set *s)
{
    struct own_record *last = &s->rank[s->world - 1];

    return last->n_passes > 0 ? &last->pass[last->n_passes - 1] : NULL;
}

static bool spoil_digit(struct own_set *s, size_t at, struct own_spoil *undo)
{
    struct own_pass *p = last_pass(s);
    char *digit = (char *)p + at;

    if (!p) {
        return false;
    }
    own_damage(undo, digit, 1);
    *digit = *digit == '0' ? '1' : '0';
    return true;
}

static bool same_batch(const struct own_pass *got, const struct own_pass *want,
                       struct own_finding *f)
{
    return strcmp(got->batch, want->batch) == 0 ||
           own_fail(f, "batch() gave this rank something else than in the "
                       "unsharded run: it has to depend on step, microbatch "
                       "and rank alone");
}

bool own_batches_holds(const struct own_requirement *q, const struct own_set *s,
                       struct own_finding *f)
{
    (void)q;
    return all_passes(s, f, same_batch);
}

bool own_batches_spoil(const struct own_requirement *q, struct own_set *s,
                       struct own_spoil *undo)
{
    (void)q;
    return spoil_digit(s, offsetof(struct own_pass, batch), undo);
}

static bool same_random(const struct own_pass *got, const struct own_pass *want,
                        struct own_finding *f)
{
    return strcmp(got->random, want->random) == 0 ||
           own_fail(f,
                    "the pass begins with another random state than "
                    "unsharded: %s",
                    f->step == 0 && f->microbatch == 0
                        ? "shard() or optimizer() has drawn from it"
                        : "something that is not in the unsharded run has "
                          "drawn from it");
}

bool own_random_holds(const struct own_requirement *q, const struct own_set *s,
                      struct own_finding *f)
{
    (void)q;
    return all_passes(s, f, same_random);
}

bool own_random_spoil(const struct own_requirement *q, struct own_set *s,
                      struct own_spoil *undo)
{
    (void)q;
    return spoil_digit(s, offsetof(struct own_pass, random), undo);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static bool same_loss(const struct own_pass *got, const struct own_pass *want,
                      struct own_finding *f)
{
    char text[2][OWN_VALUE_BYTES];

    if (bits_of(got->loss) == bits_of(want->loss) && got->loss == want->loss) {
        return true; /* NaN is no loss */
    }
    own_value(OWN_F32, bits_of(got->loss), text[0]);
    own_value(OWN_F32, bits_of(want->loss), text[1]);
    return own_fail(f, "the loss is %s, unsharded %s", text[0], text[1]);
}

bool own_loss_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f)
{
    (void)q;
    return all_passes(s, f, same_loss);
}

bool own_loss_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo)
{
    struct own_pass *p = last_pass(s);
    uint32_t bits;

    (void)q;
    if (!p) {
        return false;
    }
    own_damage(undo, &p->loss, sizeof(p->loss));
    bits = bits_of(p->loss) ^ 1;
    memcpy(&p->loss, &bits, sizeof(bits));
    return true;
}

/* ---- Between ranks ---- */

/* Both runs see the same batches, so only a comparison of ranks finds it. */
bool own_batches_differ_holds(const struct own_requirement *q,
                              const struct own_set *s, struct own_finding *f)
{
    const struct own_record *alone = &s->unsharded;

    (void)q;
    for (uint32_t i = 0; i < alone->n_passes; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const struct own_pass *a = &alone->pass[k];
            const struct own_pass *b = &alone->pass[i];

            if (a->step == b->step && strcmp(a->batch, b->batch) == 0) {
                *f = own_nowhere();
                f->step = b->step;
                f->microbatch = b->microbatch;
                f->rank = b->rank;
                return own_fail(f,
                                "its batch is that of rank %u in microbatch "
                                "%u: the data are not divided among ranks",
                                a->rank, a->microbatch);
            }
        }
    }
    return true;
}

bool own_batches_differ_spoil(const struct own_requirement *q,
                              struct own_set *s, struct own_spoil *undo)
{
    struct own_record *alone = &s->unsharded;

    (void)q;
    if (alone->n_passes < 2 || alone->pass[0].step != alone->pass[1].step) {
        return false;
    }
    own_damage(undo, alone->pass[1].batch, sizeof(alone->pass[1].batch));
    memcpy(alone->pass[1].batch, alone->pass[0].batch,
           sizeof(alone->pass[1].batch));
    return true;
}
