/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_points_requirements.c - the dtypes of the inputs and outputs of a
 * unit's forward. A framework's policy may cast these too. A cast that was not
 * asked for rounds activations, which no other requirement sees if the
 * implementation has its own arithmetic. Only adapters record them: the models
 * of the suite have float32 on both sides. (For buffers see buffer.dtype.)
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/judge_adapter.h"

static bool is_mixed(const struct expect *e)
{
    return compare_case_staged(e) && e->c->precision != CASE_F32;
}

static bool is_seen(const struct record *r)
{
    return record_world_is_adapter(r->world);
}

/* The dtype that the policy wants at an edge of a unit: that of the unit's
 * parameters if the adapter claims to cast there, else float32. */
static uint32_t edge_wanted(const struct expect *e, const struct record *r,
                            const struct record_edge *edge)
{
    const char *claim =
        edge->side == RECORD_INPUT ? "casts-inputs" : "casts-outputs";

    return record_claims(r, claim) ? e->unit[edge->unit].dtype.param
                                   : FSDP_DTYPE_F32;
}

static bool edges_hold(const struct expect *e, const struct record *r,
                       uint32_t k, struct finding *f)
{
    const struct record_rank *rank = &r->rank[k];

    for (uint32_t i = 0; i < rank->n_edges; i++) {
        const struct record_edge *edge = &rank->edge[i];
        struct finding at = finding_at("unsharded", -1, -1, k);

        if (edge->unit >= e->units->n_units) {
            return finding_note(f, at, "edge %u is of unit %u, of %u units", i,
                                edge->unit, e->units->n_units);
        }
        at.unit = edge->unit;
        if (edge->dtype != edge_wanted(e, r, edge)) {
            return finding_note(f, at, "%s has dtype %s, not %s",
                                record_side_name(edge->side),
                                record_dtype_name(edge->dtype),
                                record_dtype_name(edge_wanted(e, r, edge)));
        }
    }
    return true;
}

static bool has_edge(const struct record_rank *rank, uint32_t side,
                     uint32_t unit)
{
    for (uint32_t i = 0; i < rank->n_edges; i++) {
        if (rank->edge[i].side == side && rank->edge[i].unit == unit) {
            return true;
        }
    }
    return false;
}

/* A unit whose parameters a forward saw has returned something. (The inputs of
 * the first unit may be integers.) */
static bool edges_are_there(const struct expect *e,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at = finding_at("unsharded", t->step, t->microbatch, k);

        if (t->stage != RECORD_UNSHARDED ||
            t->parameter >= e->model->n_parameters) {
            continue;
        }
        at.unit = e->unit_of_parameter[t->parameter];
        if (at.unit < e->units->n_units &&
            !has_edge(rank, RECORD_OUTPUT, (uint32_t)at.unit)) {
            return finding_text(f, at, "no dtype of an output was recorded");
        }
    }
    return true;
}

static bool dtypes_at_points_holds(const struct expect *e,
                                   const struct record *r, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks && k < r->n_ranks; k++) {
        if (!edges_hold(e, r, k, f) || !edges_are_there(e, &r->rank[k], k, f)) {
            return false;
        }
    }
    return true;
}

static bool dtypes_at_points_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        if (rank && rank->n_edges > 0) {
            rank->edge[rank->n_edges - 1].dtype = FSDP_DTYPE_I32;
            return true;
        }
    }
    return false;
}

const struct requirement mixed_points_requirements[] = {
    {.id = "mixed.dtypes-at-points",
     .text =
         "Inputs and outputs of each unit, and the buffers that its forward "
         "finds, have the dtypes that the policy says.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_GATHER,
     .needs = "layout.chunk-rule",
     .applies = is_mixed,
     .looked_at = is_seen,
     .holds = dtypes_at_points_holds,
     .spoil = dtypes_at_points_spoil},
    {0},
};
