/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lenient_requirements.c - checkpoints that have other tensors than the model:
 * who is asked to be lenient tells which, and who is not refuses them.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

static bool is_lenient(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_LOAD && a->lenient) {
            return true;
        }
    }
    return false;
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
