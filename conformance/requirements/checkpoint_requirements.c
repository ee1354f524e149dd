/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_requirements.c - what a load brings back of what was saved.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"

#include <fsdp/arith/bits.h>
#include <string.h>

static bool shows_load(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > e->c->steps / 2;
}

static bool shows_load_of_states(const struct expect *e)
{
    return shows_load(e) && e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

static bool shows_load_of_adamw(const struct expect *e)
{
    return shows_load(e) && e->c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

/* Compares two values of the engine's own: what it loaded, and what it had when
 * it saved. */
static bool as_saved(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t loaded_stage,
                     uint32_t saved_stage, struct finding *f)
{
    return compare_as_then(e, r, part, loaded_stage, saved_stage,
                           part->step - 1, f);
}

/*
 * checkpoint.parameters: what was saved comes back, whichever ranks load it. A
 * step is trained between the beginning of the save and its end.
 */
static bool parameters_of_part(const struct expect *e, const struct record *r,
                               const struct compare_part *part,
                               struct finding *f)
{
    return as_saved(e, r, part, RECORD_LOADED, RECORD_AFTER, f);
}

/*
 * checkpoint.moments: the optimizer's states come back with the parameters that
 * they belong to: the first forward after a load does not show it, the steps
 * after it do.
 */
static bool moments_of_part(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    return !expect_is_trainable(e, part->parameter) ||
           (as_saved(e, r, part, RECORD_LOADED0, RECORD_STATE0, f) &&
            (e->c->optimizer != FSDP_OPTIMIZER_ADAMW ||
             as_saved(e, r, part, RECORD_LOADED1, RECORD_STATE1, f)));
}

/*
 * checkpoint.peer-values: an engine whose load undoes what its save did wrong
 * agrees with itself, but no other engine can read what it saved.
 */
static bool peer_values_of_part(const struct expect *e, const struct record *r,
                                const struct compare_part *part,
                                struct finding *f)
{
    const bool trains = expect_is_trainable(e, part->parameter);
    const uint32_t optimizer = e->c->optimizer;

    return as_saved(e, r, part, RECORD_PEER, RECORD_AFTER, f) &&
           (!trains || optimizer == FSDP_OPTIMIZER_SGD ||
            as_saved(e, r, part, RECORD_PEER0, RECORD_STATE0, f)) &&
           (!trains || optimizer != FSDP_OPTIMIZER_ADAMW ||
            as_saved(e, r, part, RECORD_PEER1, RECORD_STATE1, f));
}

static bool has_peers(const struct record *r)
{
    bool has = false;

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        for (uint32_t i = 0; i < r->rank[k].n_tensors; i++) {
            has = has || r->rank[k].tensor[i].stage == RECORD_PEER;
        }
    }
    return has;
}

/*
 * checkpoint.same-curve: a save must not change the training, neither while it
 * is written nor behind the load. An adapter plays all of the steps twice.
 */
static bool saves(const struct expect *e)
{
    return e->c->scenario >= CASE_RESUME && e->c->scenario <= CASE_RESUME_LOCAL;
}

static bool same_curve_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    const uint32_t from = e->c->steps / 2 * e->c->microbatches;

    if (!rank->other_loss || rank->n_other_losses == 0 || !rank->loss ||
        rank->n_losses < from + rank->n_other_losses) {
        return finding_count(f, finding_at("loss", -1, -1, k),
                             rank->n_other_losses, e->c->microbatches,
                             "losses of steps beside the save recorded");
    }
    for (uint32_t i = 0; i < rank->n_other_losses; i++) {
        const float got = rank->loss[from + i];

        if (fsdp_f32_bits(got) != fsdp_f32_bits(rank->other_loss[i])) {
            return finding_bits(
                f,
                finding_at("loss", (from + i) / e->c->microbatches,
                           (from + i) % e->c->microbatches, k),
                got, rank->other_loss[i],
                "differs from the same step without the load (want)");
        }
    }
    return true;
}

static bool same_curve_spoil(const struct expect *e, struct record_rank *rank)
{
    uint32_t bits;

    (void)e;
    if (!rank->other_loss || rank->n_other_losses == 0) {
        return false;
    }
    memcpy(&bits, &rank->other_loss[0], sizeof(bits));
    bits ^= 1;
    memcpy(&rank->other_loss[0], &bits, sizeof(bits));
    return true;
}

/*
 * frozen.saved: the life that loads began with no values of what is frozen
 * (run/play/drive_told.c).
 */
static bool shows_load_of_frozen(const struct expect *e)
{
    return shows_load(e) && compare_case_freezes(e);
}

static bool frozen_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    struct compare_part first = *part;

    first.step = 0;
    return expect_is_trainable(e, part->parameter) ||
           compare_equal(e, part, RECORD_LOADED,
                         compare_values(r, RECORD_LOADED, part),
                         compare_values(r, RECORD_INITIAL, &first), f);
}

static bool is_loaded_frozen(const struct expect *e,
                             const struct record_tensor *t)
{
    return t->stage == RECORD_LOADED && !expect_is_trainable(e, t->parameter);
}

static bool frozen_spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_value(compare_find_tensor(e, r, is_loaded_frozen));
}

/* Whether the case asks for the caller's own state behind a load; a script does
 * so behind each load of what it has saved itself. */
static bool asks_for_extra(const struct expect *e)
{
    bool asks = case_resumes(e->c);

    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;
        const struct script_action *saved =
            a->verb == SCRIPT_LOAD ? script_action_saved(e, i) : NULL;

        asks = asks || (a->verb == SCRIPT_LOAD &&
                        (e->script.given >> a->slot & 1) == 0 &&
                        (!saved || saved->what == 0 ||
                         (saved->what & FSDP_SAVE_EXTRA) != 0));
    }
    return asks;
}

const struct requirement checkpoint_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_STEP,
     .claim = "load",
     .check = &check_each_part},
    {.id = "checkpoint.parameters",
     .text = "After a load a rank holds the parameters as they were when the "
             "save began, bit for bit, whoever saved them.",
     .needs = "layout.chunk-rule",
     .applies = shows_load,
     .part = {parameters_of_part, RECORD_LOADED, STEPS_LOADED}},
    {.id = "checkpoint.moments",
     .text = "After a load the optimizer's states are those of the same "
             "elements as when the save began, bit for bit.",
     .beside_training = true,
     .needs = "layout.chunk-rule",
     .applies = shows_load_of_states,
     .part = {moments_of_part, RECORD_LOADED0, STEPS_LOADED}},
    {.id = "checkpoint.peer-values",
     .text = "What a checkpoint has under the names of parameters, as another "
             "reads it, is what they and their states were when the save "
             "began, bit for bit.",
     .since = "1.1",
     .needs = "checkpoint.parameters checkpoint.moments",
     .applies = shows_load,
     .looked_at = has_peers,
     .part = {peer_values_of_part, RECORD_PEER, STEPS_LOADED}},
    {.id = "checkpoint.same-curve",
     .text = "Steps that were trained beside a save have the losses of the "
             "same steps after a load, bit for bit.",
     .since = "1.1",
     .needs = "checkpoint.parameters checkpoint.moments num.loss-finite",
     .beside_training = true,
     .applies = saves,
     .check = &check_each_rank,
     .rank = {same_curve_of_rank, same_curve_spoil}},
    {.id = "frozen.saved",
     .text = "A save has frozen parameters, too: a load gives them the bits "
             "that were saved, whatever the life before it began with.",
     .since = "1.1",
     .needs = "layout.initial-values",
     .claim = "frozen",
     .applies = shows_load_of_frozen,
     .spoil = frozen_spoil,
     .part = {frozen_of_part, RECORD_LOADED, STEPS_LOADED}},
    /* The bias correction goes on where it was, and does not begin anew. */
    {.id = "checkpoint.step",
     .text = "The first step after a load continues the running products of "
             "the betas that were saved, bit for bit.",
     .needs = "checkpoint.parameters checkpoint.moments step.weights-untouched",
     .profile = PROFILE_BITS,
     .applies = shows_load_of_adamw,
     .part = {replay_compare_step, RECORD_AFTER, STEPS_LOADED}},
    /* A run is more than its weights: its place in the data and its curve come
     * back to each rank, and so does state that only some ranks have. */
    {.id = "checkpoint.extra",
     .text = "The caller's own state comes back with a load: each rank's own, "
             "or rank 0's where other ranks saved it; and stays with a load "
             "that is refused.",
     .needs = "run.completes run.survives run.ranks-present",
     .applies = asks_for_extra,
     .check = &check_answers,
     .answers = {{"extra-position", FSDP_OK},
                 {"extra-losses", FSDP_OK},
                 {"extra-of-some-ranks", FSDP_OK}}},
    /* Equal states are equal files, so that checkpoints can be compared, and
     * stored once. */
    {.id = "checkpoint.canonical",
     .text = "Saving what was just loaded writes the same files with the same "
             "bytes.",
     .should = true,
     .needs = "run.survives run.ranks-present buffer.saved",
     .applies = saves,
     .check = &check_answers,
     .answers = {{"saved-again", FSDP_OK}}},
    {0},
};
