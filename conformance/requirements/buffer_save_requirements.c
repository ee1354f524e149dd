/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_save_requirements.c - checkpoints have those buffers of a model that
 * are persisted, as rank 0 had them.
 */
#include "requirements/buffer_moments.h"
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>

/* ---- buffer.saved, buffer.not-loaded ------------------------------------ */

static bool is_persisted(const struct expect *e, uint32_t b)
{
    return (e->model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
}

/* Buffer b as rank 0 had it when it was saved. If another world has saved, its
 * rank 0 had what the unsharded run's rank 0 has. */
static const struct record_tensor *
saved_by_rank_0(const struct expect *e, const struct record *r, uint32_t b)
{
    const bool own =
        e->c->scenario != CASE_GROW && e->c->scenario != CASE_SHRINK;
    const struct record *who = own ? r : e->baseline;
    const struct record_rank *rank = who ? compare_rank(who, 0) : NULL;
    const struct buffer_moment then = {RECORD_BUFFER, e->c->steps / 2, 0};

    return rank ? buffer_tensor_at(rank, &then, b) : NULL;
}

/* The loaded buffer must be the saved one, rounded as a save and a load round
 * it. */
static bool saved_of(const struct expect *e, const struct record_rank *rank,
                     uint32_t k, uint32_t b, const struct record_tensor *saved,
                     struct finding *f)
{
    const struct buffer_moment loaded = {RECORD_BUFFER_LOADED, e->c->steps / 2,
                                         0};
    const uint32_t stored = e->model->buffer_dtype[b];
    const uint32_t rests = expect_buffer_dtype(e, b);
    float *want = calloc(saved->n + 1, sizeof(*want));
    bool well;

    if (!want) {
        return finding_text(f, buffer_finding(&loaded, k),
                            "the judge has no memory");
    }
    for (uint64_t i = 0; i < saved->n; i++) {
        want[i] = fsdp_is_float(stored)
                      ? fsdp_round(rests, fsdp_round(stored, saved->data[i]))
                      : saved->data[i];
    }
    well =
        buffer_compare(e, rank, k, &loaded, b, want,
                       "what rank 0 had when the save began was expected", f);
    free(want);
    return well;
}

static bool saved_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        for (uint32_t b = 0; b < e->model->n_buffers; b++) {
            const struct record_tensor *saved = saved_by_rank_0(e, r, b);

            if (!is_persisted(e, b) || e->model->buffer_numel[b] == 0) {
                continue;
            }
            if (!rank || !saved) {
                return finding_missing(f,
                                       finding_at("buffer-loaded", -1, -1, k),
                                       "what rank 0 had is not recorded");
            }
            if (!saved_of(e, rank, k, b, saved, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool spoil_loaded(const struct expect *e, struct record *r,
                         bool persisted)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_BUFFER_LOADED && t->n > 0 &&
            t->parameter < e->model->n_buffers &&
            is_persisted(e, t->parameter) == persisted) {
            return buffer_flip(t);
        }
    }
    return false;
}

static bool saved_spoil(const struct expect *e, struct record *r)
{
    return spoil_loaded(e, r, true);
}

/* A buffer that is not persisted has, behind the load, its initial values, as
 * the life that loads has just begun. */
static bool not_loaded_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    const struct buffer_moment loaded = {RECORD_BUFFER_LOADED, e->c->steps / 2,
                                         0};
    const struct buffer_moment first = {RECORD_BUFFER, 0, 0};

    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        const struct record_tensor *begun = buffer_tensor_at(rank, &first, b);

        if (!is_persisted(e, b) && begun &&
            !buffer_compare(e, rank, k, &loaded, b, begun->data,
                            "its initial value was expected: no save has it",
                            f)) {
            return false;
        }
    }
    return true;
}

static bool not_loaded_spoil(const struct expect *e, struct record *r)
{
    return spoil_loaded(e, r, false);
}

static bool looks_into_saves(const struct expect *e)
{
    return buffer_any(e) && e->c->scenario >= CASE_RESUME &&
           e->c->scenario <= CASE_RESUME_LOCAL;
}

const struct requirement buffer_save_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_STEP, .claim = "buffers"},
    {.id = "buffer.saved",
     .text = "After a load every rank has of each persisted buffer what rank 0 "
             "had when the save began, rounded once to the stored dtype and "
             "once to its own.",
     .needs = "buffer.dtype",
     .beside_training = true,
     .applies = buffer_shows_load,
     .holds = saved_holds,
     .spoil = saved_spoil},
    {.id = "buffer.saved-dtype",
     .text = "A save in safetensors has each persisted buffer in the dtype "
             "that the model stores it in.",
     .needs = "run.survives run.ranks-present",
     .applies = looks_into_saves,
     .check = &check_answers,
     .answers = {{"saved-buffer-dtype", FSDP_OK}}},
    {.id = "buffer.not-persisted",
     .text = "A save in safetensors has no buffer that is not persisted.",
     .needs = "run.survives run.ranks-present",
     .applies = looks_into_saves,
     .check = &check_answers,
     .answers = {{"saved-transient", FSDP_OK}}},
    {.id = "buffer.not-loaded",
     .text = "A load leaves buffers that are not persisted as they are.",
     .needs = "buffer.initial",
     .applies = buffer_shows_load,
     .check = &check_each_rank,
     .rank = {.holds = not_loaded_of_rank},
     .spoil = not_loaded_spoil},
    {0},
};
