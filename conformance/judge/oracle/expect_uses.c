/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_uses.c - which parameters and units a training pass uses, and in which
 * order the gradients come that add up to a parameter's: one of each backward
 * of a module that has it, under whichever of its names.
 */
#include "judge/oracle/expect_walk.h"

/* From its sequence, and from what the model says it leaves alone. */
void expect_find_uses(struct expect *e, const uint8_t *idle)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t module = e->model->parameter_module[p];
        const uint32_t left = idle ? idle[p] : 0;

        for (uint32_t i = 0; i < s->n; i++) {
            if (s->module[i] != module) {
                continue;
            }
            e->backwards[p] += s->point[i] == FSDP_PRE_BACKWARD;
            e->seen[p] = e->seen[p] || (s->point[i] == FSDP_PRE_FORWARD &&
                                        !expect_is_ignored(e, p) &&
                                        (left & WORKLOAD_UNSEEN) == 0);
        }
    }
    expect_find_trained(e, idle);
}

void expect_find_trained(struct expect *e, const uint8_t *idle)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    const uint8_t all = (1u << CASE_MAX_MICROBATCHES) - 1;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t left = idle ? idle[p] : 0;

        if (e->backwards[p] > 0 && expect_is_trainable(e, p)) {
            e->has_gradient[p] = (uint8_t)(~left & all);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->module[i] >= e->model->n_modules ||
            (s->point[i] != FSDP_PRE_BACKWARD &&
             s->point[i] != FSDP_PRE_RECOMPUTE)) {
            continue;
        }
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            e->trained[u] = e->trained[u] || (e->unit[u].trains &&
                                              expect_is_of(e, s->module[i], u));
        }
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        e->stepped[p] =
            e->trained[e->unit_of_parameter[p]] && expect_is_trainable(e, p);
    }
}

/* How many backwards of this module there are before point `end`. */
static uint32_t backwards_before(const struct fsdp_sequence *s, uint32_t end)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < end; i++) {
        n +=
            s->module[i] == s->module[end] && s->point[i] == FSDP_POST_BACKWARD;
    }
    return n;
}

uint32_t expect_uses(const struct expect *e, uint32_t p, uint32_t b,
                     uint32_t most, struct expect_use *out)
{
    const struct fsdp_model *m = e->model;
    const struct fsdp_sequence *s = m->sequence[FSDP_SEQUENCE_TRAIN];
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t q = p;
             q < m->n_parameters && s->point[i] == FSDP_POST_BACKWARD; q++) {
            if (m->parameter_module[q] != s->module[i] ||
                expect_original(e, q) != p ||
                (e->has_gradient[q] >> b & 1) == 0) {
                continue;
            }
            if (n < most) {
                out[n] = (struct expect_use){q, backwards_before(s, i)};
            }
            n++;
        }
    }
    return n;
}
