/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_known.c - which cases, models and units the oracle has rules for.
 */
#include "judge/oracle/expect_walk.h"

/* Whether the oracle has rules for this case at all. */
static bool case_is_known(const struct run_case *c)
{
    return c->ranks >= 1 && c->ranks <= EXPECT_MAX_RANKS && c->replicas >= 1 &&
           c->ranks % c->replicas == 0 &&
           c->layout <= FSDP_LAYOUT_PER_PARAMETER &&
           c->fold <= FSDP_FOLD_TREE && c->microbatches >= 1 &&
           c->microbatches <= CASE_MAX_MICROBATCHES &&
           c->optimizer <= FSDP_OPTIMIZER_ADAMW &&
           c->scenario < CASE_N_SCENARIOS;
}

/* Another name is one of an earlier parameter, in the same unit. */
static bool tie_is_known(const struct fsdp_model *model,
                         const struct fsdp_units *units, uint32_t p)
{
    const int64_t original = model->parameter_alias[p];

    return original < 0 ||
           (original < p && model->parameter_alias[original] < 0 &&
            fsdp_numel(model, (uint32_t)original) == fsdp_numel(model, p) &&
            fsdp_unit_of(model, units, (uint32_t)original) ==
                fsdp_unit_of(model, units, p));
}

/* In a unit; in none only where that is said of the parameter itself. */
static bool unit_is_known(const struct fsdp_model *model,
                          const struct fsdp_units *units, uint32_t p)
{
    const uint32_t u = fsdp_unit_of(model, units, p);

    return u < units->n_units ||
           (u == FSDP_NO_UNIT && units->unit_of_parameter);
}

static bool model_is_known(const struct fsdp_model *model,
                           const struct fsdp_units *units)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t m = model->parameter_module[p];

        if (m >= model->n_modules || !tie_is_known(model, units, p) ||
            model->parameter_dtype[p] != FSDP_DTYPE_F32 ||
            model->parameter_n_dims[p] > FSDP_MAX_DIMS ||
            !unit_is_known(model, units, p)) {
            return false;
        }
    }
    for (uint32_t m = 0; m < model->n_modules; m++) {
        if (units->unit_of_module[m] != FSDP_NO_UNIT &&
            units->unit_of_module[m] >= units->n_units) {
            return false;
        }
    }
    return model->n_modules >= 1 && model->n_sequences >= 1;
}

bool expect_is_known(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units)
{
    return case_is_known(c) && model_is_known(model, units);
}
