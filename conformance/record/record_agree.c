/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_agree.c - what the parts of a record say of each other. All of them
 * were counted in the same run. If one contradicts another, it was changed
 * later, and the record is refused: no peak of a kind of bytes can be below
 * what was live of it at rest, say. Nothing here depends on the engine; what an
 * engine must do is for requirements to say.
 *
 * Also here: which ranks of a sampled record show whole parameters, and what
 * the others leave out.
 */
#include "record/record_internal.h"

#include <fsdp/arith/philox.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- A whole record ------------------------------------------------------ */

/* Whether the live bytes of each kind are at most their peak. */
static bool within(struct record_json *j, struct record_field at,
                   const struct record_memory *m, const uint64_t *live)
{
    for (uint32_t k = 0; k < RECORD_N_KINDS; k++) {
        if (live[k] > m->peak[k]) {
            return record_refuse(j, at, "more %s%s than the peak of that kind",
                                 record_kind_name(k % FSDP_N_KINDS),
                                 k < RECORD_HOST ? "" : " on the host");
        }
    }
    return true;
}

/* Adds up all that an engine holds; false: the sum is too large for a
 * uint64_t. */
static bool sum(const uint64_t *live, uint64_t *out)
{
    *out = 0;
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        if (k != FSDP_ACTIVATION) {
            if (live[k] > UINT64_MAX - *out) {
                return false;
            }
            *out += live[k];
        }
    }
    return true;
}

/* Whether this can be the peak of several kinds, none of them activations: it
 * is not below the peak of one of them, nor above all of these together. */
static bool is_peak_of(struct record_json *j, const char *key, uint64_t peak,
                       const uint64_t *of, uint32_t n)
{
    struct record_field at = record_field(key);
    uint64_t least = 0;
    uint64_t most = 0;

    at.prefix = "memory.";
    for (uint32_t k = 0; k < n; k++) {
        if (k == FSDP_ACTIVATION) {
            continue;
        }
        least = of[k] > least ? of[k] : least;
        most = of[k] > UINT64_MAX - most ? UINT64_MAX : most + of[k];
    }
    return (least <= peak && peak <= most) ||
           record_refuse(j, at, "the peaks of its kinds say otherwise");
}

static bool moments_agree(struct record_json *j, const struct record_memory *m)
{
    for (uint32_t i = 0; i < m->n_moments; i++) {
        const uint64_t *live = m->moment[i].live;
        struct record_field at = record_element("timeline", i);
        uint64_t all;

        at.prefix = "memory.";
        if (!within(j, at, m, live)) {
            return false;
        }
        if (!sum(live, &all) || all > m->peak_engine ||
            live[FSDP_PARAM_SHARD] + live[FSDP_PARAM_FULL] >
                m->peak_parameters) {
            return record_refuse(j, at, "more than the peak");
        }
    }
    return true;
}

bool record_memory_agrees(struct record_json *j, void *base)
{
    const struct record_rank *r = base;
    const struct record_memory *m = &r->memory;
    struct record_field at = record_field("after_shard");

    at.prefix = "memory.";
    if (!is_peak_of(j, "peak_parameters", m->peak_parameters, m->peak,
                    FSDP_PARAM_FULL + 1) ||
        !is_peak_of(j, "peak_engine", m->peak_engine, m->peak, FSDP_N_KINDS) ||
        !within(j, at, m, m->after_shard.live)) {
        return false;
    }
    for (uint32_t t = 0; t < r->n_steps; t++) {
        at = record_element("after_step", t);
        at.prefix = "memory.";
        if (!within(j, at, m, m->after_step[t].live)) {
            return false;
        }
    }
    return moments_agree(j, m);
}

/* Whether flights are in their order, and each is awaited no earlier than it
 * was given out, and behind nothing later. One that was over when its call
 * returned was awaited there. */
static bool flights_agree(struct record_json *j, const struct record_rank *r)
{
    for (uint32_t i = 0; i < r->flights.n; i++) {
        const struct record_flight *x = &r->flights.flight[i];

        if (i > 0 && x->issued < x[-1].issued) {
            return record_refuse(j, record_element("flights", i),
                                 "given out before the one before it");
        }
        if (x->awaited < x->issued || x->behind > x->issued + 1) {
            return record_refuse(j, record_element("flights", i),
                                 "given out at %u, behind %u, awaited at %u",
                                 x->issued, x->behind, x->awaited);
        }
        if (x->on_stream == 0 && r->status == FSDP_OK &&
            x->awaited != x->issued) {
            return record_refuse(j, record_element("flights", i),
                                 "on no stream, and awaited later");
        }
    }
    return true;
}

bool record_rank_agrees(struct record_json *j, const struct record_rank *r)
{
    if (r->status != FSDP_OK && r->error.status == FSDP_OK) {
        return record_refuse(j, record_field("error"),
                             "null, and the status is %d", r->status);
    }
    return flights_agree(j, r);
}

/* How many collectives the sequences of a rank show. */
static uint64_t shown(const struct record_rank *r)
{
    uint64_t n = (uint64_t)r->sequence[r->shard_sequence].n +
                 r->sequence[r->end_sequence].n;

    for (uint32_t t = 0; t < r->n_steps; t++) {
        n += r->sequence[r->step_sequence[t]].n;
    }
    return n;
}

bool record_end_agrees(struct record_json *j, void *base)
{
    const struct record_rank *r = base;

    if ((r->end == WORLD_SIGNALLED && r->signal == 0) ||
        (r->end <= WORLD_EXITED && r->end != WORLD_SIGNALLED &&
         r->signal != 0)) {
        return record_refuse(j, j->at, "%s with signal %u",
                             record_end_name(r->end), r->signal);
    }
    if (r->in_collective != 0 &&
        (r->n_collectives == 0 ||
         (r->end == WORLD_RETURNED && r->exit_status == FSDP_OK))) {
        return record_refuse(j, j->at,
                             "in a collective, where there can be none");
    }
    return true;
}

int record_ending_agrees(const char *file, const struct record *all,
                         const struct record_rank *r, struct fsdp_error *error)
{
    /* Of an adapter's process only success or failure is known. */
    const bool adapter = record_world_is_adapter(all->world);
    /* Not known if the rank died with its worker, or the engine brings a
     * communicator of its own. */
    const bool counted = r->n_collectives > 0;

    /* Over MPI no process knows how another one ended. */
    if (strcmp(all->world, "mpi") == 0) {
        return FSDP_OK;
    }
    if (r->end == WORLD_RETURNED &&
        (adapter ? (r->exit_status == FSDP_OK) != (r->status == FSDP_OK)
                 : r->exit_status != r->status)) {
        return record_fail(error, FSDP_ERR_FORMAT, "record_read",
                           "%s: status: %d, where case.json says %d",
                           record_path_tail(file), r->status, r->exit_status);
    }
    if (!adapter && counted && r->n_collectives < shown(r)) {
        return record_fail(error, FSDP_ERR_FORMAT, "record_read",
                           "%s: sequences: %" PRIu64
                           " collectives, where case.json says %" PRIu64,
                           record_path_tail(file), shown(r), r->n_collectives);
    }
    return FSDP_OK;
}

/* ---- A sampled one ------------------------------------------------------- */

enum {
    STREAM = 0x53414d50 /* of random numbers; nothing else draws from it */
};

bool record_is_sampled(uint32_t stage)
{
    return stage == RECORD_UNSHARDED || stage == RECORD_LOCAL_GRADIENT;
}

static uint32_t lot(const struct run_case *c, uint32_t rank)
{
    return fsdp_random_bits(c->seed, STREAM, (uint64_t)c->ranks << 32 | rank);
}

/* Each rank but 0 draws a number; the ranks with the least ones are sampled. */
bool record_is_drawn(const struct run_case *c, uint32_t n, uint32_t rank)
{
    const uint32_t own = lot(c, rank);
    uint32_t before = 1; /* rank 0 */

    if (n == 0 || n >= c->ranks || rank == 0) {
        return true;
    }
    for (uint32_t k = 1; k < c->ranks; k++) {
        const uint32_t other = lot(c, k);

        before += other < own || (other == own && k < rank);
    }
    return before < n;
}

uint32_t record_n_sampled(const struct record *r)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        n += !r->rank[k].unsampled;
    }
    return n;
}

static const struct record_tensor *left_in(const struct record_rank *rank)
{
    for (uint32_t i = 0; rank->unsampled && i < rank->n_tensors; i++) {
        if (record_is_sampled(rank->tensor[i].stage)) {
            return &rank->tensor[i];
        }
    }
    return NULL;
}

int record_sample_agrees(const char *directory, const struct record *r,
                         struct fsdp_error *error)
{
    const uint32_t n = record_n_sampled(r);

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const struct record_tensor *const t = left_in(&r->rank[k]);

        if (n == 0 || r->rank[k].unsampled == record_is_drawn(&r->c, n, k)) {
            return record_fail(
                error, FSDP_ERR_FORMAT, "record_read",
                "%s/case.json: ranks.unsampled: rank %u: not what the seed "
                "draws, where %u of %u ranks are sampled",
                record_path_tail(directory), k, n, r->n_ranks);
        }
        if (t) {
            return record_fail(error, FSDP_ERR_FORMAT, "record_read",
                               "%s: rank %u is unsampled, and shows %s",
                               record_path_tail(directory), k,
                               record_stage_name(t->stage));
        }
    }
    return FSDP_OK;
}

void record_leave_out(struct record_rank *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_tensors; i++) {
        if (r->tensor[i].data || !record_is_sampled(r->tensor[i].stage)) {
            r->tensor[n++] = r->tensor[i];
        }
    }
    r->n_tensors = n;
}
