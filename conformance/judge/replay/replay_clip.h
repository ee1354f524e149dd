/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_clip.h - computes what clipping must say from a record's own reduced
 * gradients; and what it must do from the norm that it said.
 */
#ifndef FSDP_CTS_REPLAY_CLIP_H
#define FSDP_CTS_REPLAY_CLIP_H

#include "judge/compare/compare.h"

/* The norm of all reduced gradients of a step, as the first replica has them.
 * False, with the finding: one of them is not recorded. */
bool replay_norm(const struct expect *e, const struct record *r, float p,
                 uint32_t step, float *out, struct finding *f);

/* The answer by which rank k said norm n of a step (case_norm_name); NULL: it
 * did not say it. */
struct record_answer *replay_said_norm(const struct record *r, uint32_t k,
                                       uint32_t n, uint32_t step);

/* The factor by which a rank that said `norm` multiplies its gradients; false:
 * they stay as they are. */
bool replay_clip_factor(const struct expect *e, uint32_t step, float norm,
                        float *out);

#endif
