/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_requirements.c - compares what ranks have communicated, as the
 * process knows that carried it, with what their recorders say. Asked where
 * ranks are isolated: elsewhere ranks share memory, and no process carries
 * anything for them.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/carried.h"

#include <stddef.h>
#include <stdio.h>

static bool is_carried(const struct record *r)
{
    return r->n_ranks > 0 && r->rank && r->rank[0].account.known != 0;
}

/* Whether all goes by the engine's own communicator, which does not hand
 * anything on to the one that the engine was given: then no process has carried
 * it. */
static bool goes_elsewhere(const struct record_account *a)
{
    return a->own != 0 && a->carried.n_rows == 0;
}

static const struct record_traffic_row *
row_of(const struct record_traffic *t, const struct record_traffic_row *like)
{
    for (uint32_t i = 0; i < t->n_rows && i < RECORD_TRAFFIC_ROWS; i++) {
        const struct record_traffic_row *const row = &t->row[i];

        if (row->kind == like->kind && row->dim == like->dim &&
            row->dtype == like->dtype) {
            return row;
        }
    }
    return NULL;
}

static bool rows_agree(const struct record_account *a, struct finding at,
                       const struct record_traffic_row *like, struct finding *f)
{
    static const struct record_traffic_row none = {.kind = 0};
    const struct record_traffic_row *got = row_of(&a->carried, like);
    const struct record_traffic_row *want = row_of(&a->recorded, like);
    const char *kind = record_collective_name(like->kind);
    const char *dim = record_dim_name(like->dim);
    const char *dtype = record_dtype_name(like->dtype);
    char note[96];

    got = got ? got : &none;
    want = want ? want : &none;
    snprintf(note, sizeof(note), "%s of %s over %s that were carried; recorded",
             kind ? kind : "collectives", dtype ? dtype : "?", dim ? dim : "?");
    return (got->calls == want->calls ||
            finding_count(f, at, got->calls, want->calls, note)) &&
           (got->n == want->n ||
            finding_note(f, at, "%s: other numbers of elements", note));
}

static bool collectives_agree(const struct record_account *a, struct finding at,
                              struct finding *f)
{
    const struct record_traffic *const both[] = {&a->recorded, &a->carried};

    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < both[k]->n_rows && i < RECORD_TRAFFIC_ROWS;
             i++) {
            if (!rows_agree(a, at, &both[k]->row[i], f)) {
                return false;
            }
        }
    }
    return a->carried.order == a->recorded.order ||
           finding_note(f, at,
                        "as many collectives were carried as are recorded, but "
                        "others or in another order");
}

/* Collectives that were carried must be in the rank's file, too, where the file
 * has all of them: an engine could report a collective to the process that
 * counts, and not to the recorder. */
static bool is_shown(const struct expect *e, const struct record_rank *rank,
                     struct finding at, struct finding *f)
{
    uint64_t carried;
    uint64_t shown;

    carried_count(rank, &carried, &shown);
    return !compare_case_lives_once(e) || carried == shown ||
           finding_count(f, at, carried, shown,
                         "collectives that were carried; in the rank's file");
}

static bool as_carried_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    const struct record_account *const a = &rank->account;
    const struct finding at = finding_at("run", -1, -1, k);

    if (a->known == 0) {
        return finding_note(f, at, "nobody has counted what it communicated");
    }
    if (a->carried.exchanges != a->recorded.exchanges) {
        return finding_count(f, at, a->carried.exchanges, a->recorded.exchanges,
                             "exchanges that were carried; counted");
    }
    if (a->carried.amid != a->recorded.amid) {
        return finding_count(f, at, a->carried.amid, a->recorded.amid,
                             "exchanges amid training that were carried; "
                             "counted");
    }
    if (a->carried.exchanged != a->recorded.exchanged) {
        return finding_bytes(f, at, a->carried.exchanged, a->recorded.exchanged,
                             "of exchanges that were carried; counted");
    }
    if (a->carried.mismatches != a->recorded.mismatches) {
        return finding_count(f, at, a->carried.mismatches,
                             a->recorded.mismatches,
                             "calls in which ranks disagreed; counted");
    }
    return goes_elsewhere(a) ||
           (collectives_agree(a, at, f) && is_shown(e, rank, at, f));
}

static bool as_carried_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (goes_elsewhere(&rank->account)) {
        rank->account.carried.exchanges ^= 1;
    } else {
        rank->account.carried.order ^= 1;
    }
    return rank->account.known != 0;
}

const struct requirement carried_requirements[] = {
    {.id = "comm.as-carried",
     .text = "Where ranks are isolated, the process that carries what they "
             "send counts the collectives and exchanges that are recorded, in "
             "their order.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "run.completes",
     .applies = compare_case_shards,
     .looked_at = is_carried,
     .check = &check_each_rank,
     .rank = {as_carried_of_rank, as_carried_spoil}},
    {0},
};
