/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_sample.c - which ranks of a sampled record show whole parameters, and
 * what the others leave out.
 */
#include "record/record_internal.h"

#include <fsdp/arith/philox.h>
#include <stdlib.h>

enum {
    STREAM = 0x53414d50 /* of random numbers: no other one draws from it */
};

bool record_is_sampled(uint32_t stage)
{
    return stage == RECORD_UNSHARDED || stage == RECORD_LOCAL_GRADIENT;
}

static uint32_t lot(const struct run_case *c, uint32_t rank)
{
    return fsdp_random_bits(c->seed, STREAM, (uint64_t)c->ranks << 32 | rank);
}

/* Each rank but 0 has a lot, and the least are drawn. */
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
