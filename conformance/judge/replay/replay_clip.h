/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_clip.h - what clipping must say and do, from a record's own reduced
 * gradients and, for what it does, from the norm that it said.
 */
#ifndef FSDP_CTS_REPLAY_CLIP_H
#define FSDP_CTS_REPLAY_CLIP_H

#include "judge/compare/compare.h"

/* The norm of all reduced gradients of a step, as the first replica has them.
 * False, with the finding, if one is not recorded. */
bool replay_norm(const struct expect *e, const struct record *r, float p,
                 uint32_t step, float *out, struct finding *f);

/* Where rank k says norm n of a step (case_norm_name); NULL: it does not. */
struct record_answer *replay_said_norm(const struct record *r, uint32_t k,
                                       uint32_t n, uint32_t step);

/* What a gradient of a rank that said `norm` is multiplied by; false: it
 * stays as it is. */
bool replay_clip_factor(const struct expect *e, uint32_t step, float norm,
                        float *out);

#endif
