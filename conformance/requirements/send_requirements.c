/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_requirements.c - a state dict that rank 0 has in its memory: it is sent
 * once, read and not written, and not at all where ranks do not agree on it.
 * assign_requirements.c judges the values that every rank has afterwards.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

static bool sends(const struct expect *e)
{
    return script_does(e, SCRIPT_SEND);
}

/* ---- send.once ----------------------------------------------------------- */

/* Elements of unit u that rank 0 has values of; and whether that is all. */
static uint64_t given_of(const struct expect *e, const struct script_action *a,
                         uint32_t u, bool *all)
{
    uint64_t n = 0;

    *all = true;
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] != u || expect_original(e, p) != p) {
            continue;
        }
        if (a->parameter == SCRIPT_ALL ||
            expect_original(e, a->parameter) == p) {
            n += fsdp_numel(e->model, p);
        } else {
            *all = false;
        }
    }
    return n;
}

static bool is_right(const struct expect *e, const struct script_action *a,
                     const struct record_collective *c)
{
    bool all;

    return c->kind == FSDP_BROADCAST && c->dim == FSDP_DIM_WORLD &&
           c->dtype == FSDP_DTYPE_F32 && c->root == 0 &&
           (c->unit == FSDP_NO_UNIT ||
            (c->unit < e->units->n_units && given_of(e, a, c->unit, &all) > 0));
}

/* A unit that is sent whole may be so with its padding. */
static bool sent_once(const struct expect *e, const struct record_sequence *got,
                      struct finding at, struct finding *f)
{
    const struct script_action *a = e->event[at.step].action;
    uint64_t least = 0;
    uint64_t most = 0;
    uint64_t n = 0;

    if (a->verb != SCRIPT_SEND) {
        return true;
    }
    for (uint32_t u = 0; u < e->units->n_units && e->c->ranks > 1; u++) {
        bool all;
        const uint64_t given = given_of(e, a, u, &all);

        least += given;
        most += all ? e->unit[u].padded : given;
    }
    for (uint32_t i = 0; i < got->n; i++) {
        if (!is_right(e, a, &got->c[i])) {
            (void)finding_note(f, at,
                               "collective %u of the action is no broadcast of "
                               "rank 0's values, in float32, to the world",
                               i + 1);
            return script_action_tell(e, (uint32_t)at.step, f);
        }
        n += got->c[i].n;
    }
    return (n >= least && n <= most) ||
           finding_count(f, at, n, n < least ? least : most,
                         "elements that rank 0 sends") ||
           script_action_tell(e, (uint32_t)at.step, f);
}

static bool is_sent(const struct expect *e, uint32_t i,
                    const struct record_collective *c, uint32_t of)
{
    (void)c;
    (void)of;
    return script_at(e, i)->verb == SCRIPT_SEND;
}

static bool sent_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = script_find_collective(e, r, is_sent, 0);

    for (uint32_t u = 0; c && u < e->units->n_units; u++) {
        c->n += e->unit[u].padded;
    }
    return c != NULL;
}

const struct requirement send_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "send-values"},
    {.id = "error.send",
     .text = "Values are not sent between BEGIN and END, nor while all is "
             "unsharded: that is refused as INVALID.",
     .check = &check_asked,
     .answers = {{"send-in-pass", FSDP_ERR_INVALID},
                 {"send-while-open", FSDP_ERR_INVALID}}},
    /* The ranks that would wait for the values that rank 0 lacks are other
     * ones: all must be told. */
    {.id = "error.send-lacking",
     .text = "When rank 0 lacks values of a parameter, or has none at all, and "
             "the call is not lenient, every rank answers INVALID, and the "
             "message names the parameter, or `value`.",
     .check = &check_asked_named,
     .answers = {{"send-lacking", FSDP_ERR_INVALID},
                 {"send-none", FSDP_ERR_INVALID}}},
    {.id = "error.send-disagree",
     .text = "When another rank than 0 has values to send, or ranks are not "
             "equally lenient, every rank answers MISMATCH, and the message "
             "has `value`, or `lenient`.",
     .check = &check_asked_named,
     .answers = {{"send-values-of-last", FSDP_ERR_MISMATCH},
                 {"send-leniency", FSDP_ERR_MISMATCH}}},
    /* A state dict that a load has overwritten cannot be loaded again. */
    {.id = "send.input-stays",
     .text = "The memory that rank 0's values are read from is as it was when "
             "they have been sent.",
     .level = LEVEL_STEP,
     .applies = sends,
     .check = &check_answers,
     .answers = {{"sent-values-kept", FSDP_OK}}},
    {.id = "send.once",
     .text = "Values that rank 0 has in memory are sent once: they are "
             "broadcast from there to the world, and nothing else is "
             "communicated.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .applies = sends,
     .check = &check_each_step,
     .step = {.holds = sent_once},
     .spoil = sent_spoil},
    {0},
};
