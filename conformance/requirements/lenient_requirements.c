/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lenient_requirements.c - checkpoints that have other tensors than the model:
 * who is asked to be lenient tells which, and who is not refuses them.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

/* Of action i, a load: what was saved there last, in parts; 0: all. */
static uint32_t parts_of(const struct expect *e, uint32_t i)
{
    const uint32_t slot = e->event[i].action->slot;

    while (i > 0 && (e->event[i].action->verb != SCRIPT_SAVE ||
                     e->event[i].action->slot != slot)) {
        i--;
    }
    return e->event[i].action->what;
}

static bool loads(const struct expect *e, bool parts)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_LOAD && a->lenient &&
            (parts_of(e, i) != 0) == parts) {
            return true;
        }
    }
    return false;
}

static bool is_lenient(const struct expect *e)
{
    return loads(e, false);
}

static bool has_parts(const struct expect *e)
{
    return loads(e, true);
}

static bool lacks_extra(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const uint32_t what =
            e->event[i].action->verb == SCRIPT_LOAD ? parts_of(e, i) : 0;

        if (what != 0 && (what & FSDP_SAVE_EXTRA) == 0) {
            return true;
        }
    }
    return false;
}

static bool asks_part(const struct expect *e)
{
    return script_action_asks(e, SCRIPT_CALL_SAVE_UNKNOWN_PART);
}

static bool loads_others(const struct expect *e)
{
    return script_action_asks(e, SCRIPT_CALL_LOAD_RENAMED);
}

const struct requirement lenient_requirements[] = {
    {.id = "checkpoint.reports-names",
     .text = "A lenient load tells every rank the names that the checkpoint "
             "lacks, and those that the model lacks: these, in the order of "
             "their bytes, and no others.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.completes",
     .claim = "lenient-load",
     .applies = is_lenient,
     .check = &check_answers,
     .answers = {{"lenient-missing", FSDP_OK, FSDP_OK},
                 {"lenient-unexpected", FSDP_OK, FSDP_OK}}},
    {.id = "checkpoint.parts",
     .text = "A checkpoint that was saved in parts has the tensors of these "
             "and no others.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.completes",
     .claim = "save-parts",
     .applies = has_parts,
     .check = &check_answers,
     .answers = {{"parts-missing", FSDP_OK, FSDP_OK},
                 {"parts-unexpected", FSDP_OK, FSDP_OK}}},
    {.id = "checkpoint.parts-extra",
     .text = "What the caller saves of its own is in no checkpoint of parts "
             "that leave it out.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.completes",
     .claim = "save-parts",
     .applies = lacks_extra,
     .check = &check_answers,
     .answers = {{"parts-extra", FSDP_OK, FSDP_OK}}},
    {.id = "error.save-unknown-part",
     .text = "A save of a part that is none is refused as INVALID.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "save-parts",
     .applies = asks_part,
     .check = &check_answers,
     .answers = {{"save-unknown-part", FSDP_ERR_INVALID, FSDP_ERR_INVALID}}},
    /* A name that was changed by mistake would train on from what was there. */
    {.id = "error.load-renamed",
     .text = "A load of a checkpoint that has a parameter under another name "
             "is refused on every rank, and the message has the name that is "
             "missing.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "load",
     .applies = loads_others,
     .check = &check_answers_named,
     .answers = {{"load-renamed", FSDP_ERR_IO, FSDP_ERR_FORMAT}}},
    {0},
};
