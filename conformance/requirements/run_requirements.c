/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_requirements.c - a run comes to its end, and every rank shows it.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <string.h>

static bool has_case(const struct expect *e)
{
    return e->c != NULL;
}

/* run.survives: a crash, an exit or a hang is the first thing to know. */
static bool survives_holds(const struct expect *e, const struct record *r,
                           struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks && k < r->n_ranks; k++) {
        const struct record_rank *rank = &r->rank[k];
        struct finding at = finding_at("run", -1, -1, k);

        switch (rank->end) {
        case WORLD_RETURNED:
            break;
        case WORLD_SIGNALLED:
            return finding_count(f, at, rank->signal, 0, "killed by a signal");
        case WORLD_EXITED:
            return finding_text(f, at, "left with exit() in the middle");
        case WORLD_TIMED_OUT:
            at.unit = rank->last_unit;
            return finding_count(
                f, at, rank->n_collectives, 0,
                rank->in_collective != 0
                    ? "no progress; hangs inside this collective"
                    : "no progress after this many collectives");
        default:
            return finding_text(f, at, "ended in a way that is not defined");
        }
    }
    return true;
}

static bool survives_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    if (r->n_ranks == 0) {
        return false;
    }
    r->rank[r->n_ranks - 1].end = WORLD_SIGNALLED;
    r->rank[r->n_ranks - 1].signal = 11;
    return true;
}

/* run.ranks-present: a rank that left no record has not been judged. */
static bool ranks_present_holds(const struct expect *e, const struct record *r,
                                struct finding *f)
{
    if (r->n_ranks != e->c->ranks) {
        return finding_count(f, finding_at("run", -1, -1, -1), r->n_ranks,
                             e->c->ranks, "ranks in the record");
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (compare_rank(r, k) == NULL) {
            return finding_text(f, finding_at("run", -1, -1, k),
                                "this rank's files are missing or cut short");
        }
    }
    return true;
}

static bool ranks_present_spoil(const struct expect *e,
                                struct record_rank *rank)
{
    (void)e;
    rank->present = false;
    return true;
}

/*
 * run.completes: what the engine was asked to do it can do, without an error.
 */
static bool completes_of_rank(const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              struct finding *f)
{
    const struct fsdp_error *error = &rank->error;
    int where = (int)strnlen(error->where, sizeof(error->where));
    int message = (int)strnlen(error->message, sizeof(error->message));

    (void)e;
    if (rank->status == FSDP_OK) {
        return true;
    }
    return finding_note(
        f, finding_at("run", -1, -1, k), "ended with %d (%s)%s%.*s%s%.*s",
        rank->status, fsdp_status_text(rank->status), where > 0 ? " in " : "",
        where, error->where, message > 0 ? ": " : "", message, error->message);
}

/* Aborted ranks only followed another one, so they come last. */
static bool completes_or_followed(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    return rank->status == FSDP_ERR_ABORTED || completes_of_rank(e, rank, k, f);
}

static bool completes_holds(const struct expect *e, const struct record *r,
                            struct finding *f)
{
    return compare_ranks(e, r, completes_or_followed, f) &&
           compare_ranks(e, r, completes_of_rank, f);
}

static bool completes_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    rank->status = FSDP_ERR_INTERNAL;
    return true;
}

/*
 * run.shows-every-step: a record that breaks off cannot be judged by what it
 * lacks.
 */
static bool shows_every_step_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    struct finding at = finding_at("run", -1, -1, k);

    if (rank->n_steps != e->c->steps || rank->step_sequence == NULL) {
        return finding_count(f, at, rank->n_steps, e->c->steps,
                             "steps recorded");
    }
    if (rank->n_losses != compare_n_losses(e) || rank->loss == NULL) {
        return finding_count(f, at, rank->n_losses, compare_n_losses(e),
                             "losses recorded");
    }
    return true;
}

static bool shows_every_step_spoil(const struct expect *e,
                                   struct record_rank *rank)
{
    (void)e;
    if (rank->n_losses == 0) {
        return false;
    }
    rank->n_losses--;
    return true;
}

/*
 * run.leaves-nothing: destroy and close give everything back, also after a
 * failure.
 */
static bool leaves_nothing_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    struct finding at = finding_at("end", -1, -1, k);

    (void)e;
    if (rank->memory.left_live != 0) {
        return finding_bytes(f, at, rank->memory.left_live, 0,
                             "still live after destroy and close");
    }
    if (rank->memory.left_storage != 0) {
        return finding_bytes(f, at, rank->memory.left_storage, 0,
                             "never freed");
    }
    return true;
}

static bool leaves_nothing_spoil(const struct expect *e,
                                 struct record_rank *rank)
{
    (void)e;
    rank->memory.left_storage++;
    return true;
}

const struct requirement run_requirements[] = {
    {.id = "run.survives",
     .text = "Every rank returns from the run: none is killed, exits or makes "
             "no progress.",
     .since = "1.0",
     .must = 1,
     .level = LEVEL_RUN,
     .applies = has_case,
     .holds = survives_holds,
     .spoil = survives_spoil},
    {.id = "run.ranks-present",
     .text = "Every rank of the world leaves a whole record.",
     .since = "1.0",
     .must = 1,
     .level = LEVEL_RUN,
     .needs = "run.survives",
     .applies = has_case,
     .holds = ranks_present_holds,
     .check = &check_each_rank,
     .rank = {.spoil = ranks_present_spoil}},
    {.id = "run.completes",
     .text = "Every rank trains to the end and reports no error.",
     .since = "1.0",
     .must = 1,
     .level = LEVEL_RUN,
     .needs = "run.survives run.ranks-present",
     .applies = compare_case_trains,
     .holds = completes_holds,
     .check = &check_each_rank,
     .rank = {.spoil = completes_spoil}},
    {.id = "run.shows-every-step",
     .text = "Every rank records each step and the loss of each microbatch.",
     .since = "1.0",
     .must = 1,
     .level = LEVEL_RUN,
     .needs = "run.completes",
     .applies = compare_case_trains,
     .check = &check_each_rank,
     .rank = {shows_every_step_of_rank, shows_every_step_spoil}},
    {.id = "run.leaves-nothing",
     .text = "After destroy and close no rank has live ranges or storage left.",
     .since = "1.0",
     .must = 1,
     .level = LEVEL_RUN,
     .needs = "run.ranks-present run.completes",
     .applies = has_case,
     .check = &check_each_rank,
     .rank = {leaves_nothing_of_rank, leaves_nothing_spoil}},
    {0},
};
