/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lenient_requirements.c - checkpoints that have other tensors than the model:
 * a lenient load tells which ones, any other load refuses them.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

/* Action i is a load: which parts the last save to its slot has; 0: all. */
static uint32_t parts_of(const struct expect *e, uint32_t i)
{
    const struct script_action *saved = script_action_saved(e, i);

    return saved ? saved->what : 0;
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

static bool saves_rounded(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_WAIT && script_action_saved(e, i) &&
            script_action_saved(e, i)->dtype != FSDP_DTYPE_NONE) {
            return true;
        }
    }
    return false;
}

const struct requirement lenient_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_answers},
    {.id = "checkpoint.reports-names",
     .text = "A lenient load tells every rank the names that the checkpoint "
             "lacks, and those that the model lacks: these, in the order of "
             "their bytes, and no others.",
     .level = LEVEL_STEP,
     .claim = "lenient-load",
     .applies = is_lenient,
     .answers = {{"lenient-missing", FSDP_OK},
                 {"lenient-unexpected", FSDP_OK}}},
    {.id = "checkpoint.parts",
     .text = "A checkpoint that was saved in parts has the tensors of these "
             "and no others.",
     .level = LEVEL_STEP,
     .claim = "save-parts",
     .applies = has_parts,
     .answers = {{"parts-missing", FSDP_OK}, {"parts-unexpected", FSDP_OK}}},
    {.id = "checkpoint.parts-extra",
     .text = "What the caller saves of its own is in no checkpoint of parts "
             "that leave it out.",
     .level = LEVEL_STEP,
     .claim = "save-parts",
     .applies = lacks_extra,
     .answers = {{"parts-extra", FSDP_OK}}},
    {.id = "error.save-unknown-part",
     .text = "A save of a part that is none is refused as INVALID.",
     .claim = "save-parts",
     .check = &check_asked,
     .answers = {{"save-unknown-part", FSDP_ERR_INVALID}}},
    {.id = "checkpoint.export-dtype",
     .text = "In a checkpoint of rounded parameters they have the dtype that "
             "was asked for.",
     .level = LEVEL_STEP,
     .claim = "save-dtype",
     .applies = saves_rounded,
     .answers = {{"saved-dtype", FSDP_OK}}},
    {.id = "error.save-dtype",
     .text = "A save of parameters in a dtype that is none for them, or in 16 "
             "bits in another form than the full one, is refused as INVALID.",
     .claim = "save-dtype",
     .check = &check_asked,
     .answers = {{"save-unknown-dtype", FSDP_ERR_INVALID},
                 {"save-rounded-shards", FSDP_ERR_INVALID}}},
    {.id = "error.load-parts",
     .text = "A load that is not lenient of a checkpoint without parameters is "
             "refused on every rank, and the message has the name of one that "
             "is missing.",
     .claim = "save-parts",
     .check = &check_asked_named,
     .answers = {{"load-parts", FSDP_ERR_IO, FSDP_ERR_FORMAT}}},
    /* Training would go on from other values than it had before the save. */
    {.id = "error.load-rounded",
     .text = "A load that is not lenient of a checkpoint of rounded parameters "
             "is refused as INVALID on every rank, and the message has the "
             "name of one.",
     .claim = "save-dtype",
     .check = &check_asked_named,
     .answers = {{"load-rounded", FSDP_ERR_INVALID}}},
    /* A parameter whose name was changed by mistake would go on from the values
     * that it has. */
    {.id = "error.load-renamed",
     .text = "A load of a checkpoint that has a parameter under another name "
             "is refused on every rank, and the message has the name that is "
             "missing.",
     .claim = "load",
     .check = &check_asked_named,
     .answers = {{"load-renamed", FSDP_ERR_IO, FSDP_ERR_FORMAT}}},
    {0},
};
