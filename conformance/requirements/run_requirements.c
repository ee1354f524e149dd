/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_requirements.c - a run comes to its end, and every rank shows it.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/judge_adapter.h"

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
        if (!compare_rank(r, k)) {
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
 * run.completes: the engine does what it was asked to do, without an error.
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
        rank->status,
        rank->status == FSDP_ERR_UNSUPPORTED
            ? "unsupported, though all that this case needs is claimed"
            : fsdp_status_text(rank->status),
        where > 0 ? " in " : "", where, error->where, message > 0 ? ": " : "",
        message, error->message);
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
 * lacks, nor can one that contradicts itself.
 */
static bool shows_every_step_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    struct finding at = finding_at("run", -1, -1, k);

    if (rank->n_steps != e->c->steps || !rank->step_sequence) {
        return finding_count(f, at, rank->n_steps, e->c->steps,
                             "steps recorded");
    }
    if (rank->n_losses != compare_n_losses(e) || !rank->loss) {
        return finding_count(f, at, rank->n_losses, compare_n_losses(e),
                             "losses recorded");
    }
    return true;
}

/* The record has as many collectives as the rank entered, and its last one is
 * the one in which the rank was last seen. An engine's own communicator enters
 * none of the world's. */
static bool shows_collectives(const struct record_rank *rank, struct finding at,
                              struct finding *f)
{
    const struct record_collective *last = NULL;
    uint64_t n = 0;

    if (rank->n_collectives == 0) {
        return true;
    }
    for (uint32_t t = 0; t <= rank->n_steps + 1; t++) {
        const struct record_sequence *s = compare_sequence(
            rank, t == 0               ? rank->shard_sequence
                  : t <= rank->n_steps ? rank->step_sequence[t - 1]
                                       : rank->end_sequence);

        if (s && s->n > 0) {
            n += s->n;
            last = &s->c[s->n - 1];
        }
    }
    if (n != rank->n_collectives) {
        return finding_count(f, at, rank->n_collectives, n,
                             "collectives entered; recorded");
    }
    return !last ||
           (last->kind == rank->last_kind && last->unit == rank->last_unit) ||
           finding_text(f, at,
                        "the collective that it was last seen in is not the "
                        "last one recorded");
}

/* If it was followed when the collectives of the last step were issued: each of
 * them was, and within the step. */
static bool shows_flights(const struct expect *e,
                          const struct record_rank *rank, struct finding at,
                          struct finding *f)
{
    const struct record_sequence *s =
        compare_step_sequence(rank, rank->n_steps - 1);
    const struct record_flights *x = &rank->flights;
    const uint64_t positions =
        e->c->microbatches *
            ((uint64_t)e->model->sequence[FSDP_SEQUENCE_TRAIN]->n + 2) +
        2;

    if (x->n == 0 || !s) {
        return true;
    }
    at.step = (int64_t)rank->n_steps - 1;
    if (x->n != s->n) {
        return finding_count(f, at, x->n, s->n,
                             "collectives given out in this step; recorded");
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->flight[i].kind != s->c[i].kind ||
            x->flight[i].unit != s->c[i].unit) {
            return finding_note(f, at,
                                "collective %u that was given out in this step "
                                "is another than was recorded",
                                i);
        }
        if (e->c->scenario == CASE_TRAIN &&
            (x->flight[i].awaited != RECORD_NO_POSITION
                 ? x->flight[i].awaited
                 : x->flight[i].issued) >= positions) {
            return finding_note(f, at,
                                "collective %u is given out or awaited behind "
                                "the end of the step",
                                i);
        }
    }
    return true;
}

/* The timeline, where there is one, has each call of a step, in order. */
static bool shows_timeline(const struct expect *e,
                           const struct record_rank *rank, struct finding at,
                           struct finding *f)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    const uint32_t pass = s->n + 2;
    const struct record_memory *m = &rank->memory;
    const uint64_t n = (uint64_t)e->c->microbatches * pass + 2;

    if (m->n_moments == 0) {
        return true;
    }
    if (m->n_moments != n) {
        return finding_count(f, at, m->n_moments, n, "moments of a step");
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = i % pass;
        const bool inside = i < n - 2 && k > 0 && k < pass - 1;
        const uint32_t point = i == n - 2   ? RECORD_POINT_STEP
                               : i == n - 1 ? RECORD_POINT_ZERO_GRAD
                               : inside     ? s->point[k - 1]
                               : k == 0     ? (uint32_t)FSDP_BEGIN
                                            : (uint32_t)FSDP_END;

        if (m->moment[i].point != point ||
            m->moment[i].module != (inside ? s->module[k - 1] : 0)) {
            return finding_note(
                f, at, "moment %u of the timeline is of another call", i);
        }
    }
    return true;
}

static bool tells_one_story(const struct expect *e,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    const struct finding at = finding_at("run", -1, -1, k);

    return shows_flights(e, rank, at, f) && shows_timeline(e, rank, at, f);
}

static bool tells_all_collectives(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    (void)e;
    return shows_collectives(rank, finding_at("run", -1, -1, k), f);
}

/* Adapters count in their own way; and over MPI a process does not learn how
 * another one ended. */
static bool shows_every_step_holds(const struct expect *e,
                                   const struct record *r, struct finding *f)
{
    return compare_ranks(e, r, shows_every_step_of_rank, f) &&
           (!compare_case_lives_once(e) || record_world_is_adapter(r->world) ||
            ((strcmp(r->world, "mpi") == 0 ||
              compare_ranks(e, r, tells_all_collectives, f)) &&
             compare_ranks(e, r, tells_one_story, f)));
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

/*
 * run.process-kept: an engine is a guest in a process that also computes. If it
 * lets the processor flush to zero, or round in another way, that changes all
 * computations of the process.
 */
static bool process_kept_of_rank(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f)
{
    const struct record_change *c = &rank->change[0];

    (void)e;
    return rank->n_changes == 0 ||
           finding_note(f, finding_at("run", c->step, -1, k),
                        "after %s of the engine: %s", c->call, c->what);
}

static bool process_kept_spoil(const struct expect *e, struct record_rank *rank)
{
    static const struct record_change c = {"step", 0, "umask: 0, was 022"};

    (void)e;
    rank->change[0] = c;
    rank->n_changes = 1;
    return true;
}

/*
 * run.no-forbidden-call: an engine that makes a system call which no engine
 * needs, and which the kernel refuses, was looking for a way around the suite.
 * A process outside notes each refused call. Where the kernel refuses nothing,
 * nothing is known.
 */
static bool is_isolated(const struct record *r)
{
    return r->isolation[0] != '\0';
}

static bool no_forbidden_call_holds(const struct expect *e,
                                    const struct record *r, struct finding *f)
{
    (void)e;
    return r->n_refusals == 0 ||
           finding_note(f, finding_at("run", -1, -1, r->refusal[0].rank),
                        "asked for %s, and was refused", r->refusal[0].call);
}

static bool no_forbidden_call_spoil(const struct expect *e, struct record *r)
{
    static const struct record_refusal one = {0, "socket(0x1, 0x1, 0, 0)"};

    (void)e;
    if (!is_isolated(r)) {
        return false;
    }
    r->refusal[0] = one;
    r->n_refusals = 1;
    return true;
}

const struct requirement run_requirements[] = {
    {.since = "1.0", .must = 1, .applies = has_case},
    {.id = "run.survives",
     .text = "Every rank returns from the run: none is killed, exits or makes "
             "no progress.",
     .level = LEVEL_RUN,
     .holds = survives_holds,
     .spoil = survives_spoil},
    {.id = "run.ranks-present",
     .text = "Every rank of the world leaves a whole record.",
     .level = LEVEL_RUN,
     .needs = "run.survives",
     .holds = ranks_present_holds,
     .check = &check_each_rank,
     .rank = {.spoil = ranks_present_spoil}},
    {.id = "run.completes",
     .text = "Every rank trains to the end and reports no error.",
     .level = LEVEL_RUN,
     .needs = "run.survives run.ranks-present",
     .applies = compare_case_shards,
     .holds = completes_holds,
     .check = &check_each_rank,
     .rank = {.spoil = completes_spoil}},
    {.id = "run.shows-every-step",
     .text = "Every rank records each step and the loss of each microbatch, "
             "and tells one story of its collectives and calls.",
     .level = LEVEL_RUN,
     .needs = "run.completes",
     .applies = compare_case_plays,
     .check = &check_each_rank,
     .holds = shows_every_step_holds,
     .rank = {.spoil = shows_every_step_spoil}},
    {.id = "run.leaves-nothing",
     .text = "After destroy and close no rank has live ranges or storage left.",
     .level = LEVEL_RUN,
     .of_rest = true,
     .needs = "run.ranks-present run.completes",
     .check = &check_each_rank,
     .rank = {leaves_nothing_of_rank,
              .raises = COMPARE_OF_RANK(memory.left_storage)}},
    {.id = "run.no-forbidden-call",
     .text = "Where ranks are isolated, none asks the system for a socket, "
             "another process or its memory, a signal to others or new shared "
             "memory.",
     .level = LEVEL_RUN,
     .needs = "run.survives",
     .looked_at = is_isolated,
     .holds = no_forbidden_call_holds,
     .spoil = no_forbidden_call_spoil},
    {.id = "run.process-kept",
     .text = "No call into the engine leaves other floating-point modes, "
             "signal mask or handlers, locale, limits, working folder, umask "
             "or environment than it found.",
     .level = LEVEL_RUN,
     .needs = "run.ranks-present",
     .check = &check_each_rank,
     .rank = {process_kept_of_rank, process_kept_spoil}},
    {0},
};
