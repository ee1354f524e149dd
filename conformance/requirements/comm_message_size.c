/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_message_size.c - collectives move even sizes: a shard of a unit is the
 * unit, padded, over the shard degree.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_collective *c,
                  uint32_t index, struct finding at, struct finding *f)
{
    (void)index;
    at.unit = c->unit;
    if (c->unit >= e->units->n_units) {
        return finding_count(f, at, c->unit, e->units->n_units,
                             "a collective of no unit; the model has so many");
    }
    return c->n == e->unit[c->unit].chunk ||
           finding_count(f, at, c->n, e->unit[c->unit].chunk,
                         "elements of a collective");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_collectives(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->n++;
    return true;
}

REQUIREMENT(comm_message_size) = {
    .id = "comm.message-size",
    .text = "Every collective moves exactly one shard of the unit that "
            "it names.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
