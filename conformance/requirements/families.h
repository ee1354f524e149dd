/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families.h - the tables of requirements, one a family; each ends with a row
 * without an id. requirement_table.c puts them together.
 *
 * Where the first row of a family has no id, it is no requirement: it has the
 * values of all rows that do not give their own. Only its fields since, must,
 * level, needs, claim, applies, looked_at and check are read.
 */
#ifndef FSDP_CTS_FAMILIES_H
#define FSDP_CTS_FAMILIES_H

#include "judge/requirement.h"

extern const struct requirement run_requirements[];
extern const struct requirement layout_requirements[];
extern const struct requirement gather_requirements[];
extern const struct requirement gradient_requirements[];
extern const struct requirement reduce_requirements[];
extern const struct requirement factor_requirements[];
extern const struct requirement group_requirements[];
extern const struct requirement mixed_points_requirements[];
extern const struct requirement mixed_requirements[];
extern const struct requirement mixed_sum_requirements[];
extern const struct requirement clip_requirements[];
extern const struct requirement step_requirements[];
extern const struct requirement checkpoint_requirements[];
extern const struct requirement curve_requirements[];
extern const struct requirement invariance_requirements[];
extern const struct requirement comm_requirements[];
extern const struct requirement comm_step_requirements[];
extern const struct requirement carried_requirements[];
extern const struct requirement carried_moves_requirements[];
extern const struct requirement carried_passes_requirements[];
extern const struct requirement carried_steps_requirements[];
extern const struct requirement carried_values_requirements[];
extern const struct requirement ahead_requirements[];
extern const struct requirement memory_requirements[];
extern const struct requirement memory_peak_requirements[];
extern const struct requirement private_requirements[];
extern const struct requirement error_requirements[];
extern const struct requirement error_options_requirements[];
extern const struct requirement script_requirements[];
extern const struct requirement script_answers_requirements[];
extern const struct requirement script_moves_requirements[];
extern const struct requirement recompute_requirements[];
extern const struct requirement frozen_requirements[];
extern const struct requirement thaw_requirements[];
extern const struct requirement thaw_moves_requirements[];
extern const struct requirement step_in_backward_requirements[];
extern const struct requirement offload_requirements[];
extern const struct requirement assign_requirements[];
extern const struct requirement deferred_requirements[];
extern const struct requirement lenient_requirements[];
extern const struct requirement send_requirements[];
extern const struct requirement summon_requirements[];
extern const struct requirement tied_requirements[];
extern const struct requirement parameter_unit_requirements[];
extern const struct requirement buffer_requirements[];
extern const struct requirement buffer_save_requirements[];
extern const struct requirement scale_requirements[];
extern const struct requirement control_requirements[];
extern const struct requirement control_copy_requirements[];
extern const struct requirement control_factor_requirements[];

#endif
