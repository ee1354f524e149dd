/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaler.h - by how much a driver scales its loss, so that gradients of 16
 * bits neither vanish nor overflow: a policy of the driver's, of which an
 * engine knows nothing but each step's inverse_scale and found_inf (engine.h).
 *
 *     struct fsdp_scaler s = fsdp_scaler_default();
 *     for each step
 *         scale the loss by s.scale; forward, backward
 *         step.inverse_scale = fsdp_scaler_inverse(&s); engine->step(.., &step)
 *         s = fsdp_scaler_after(s, step.found_inf != 0)
 *
 * After a gradient that was not finite the scale is multiplied by `backoff`,
 * at once, or after as many such steps as `hysteresis` says; after `interval`
 * steps in a row without one by `growth`. All ranks are told the same found_inf
 * and so have the same scale. Pure functions: no state but the struct.
 */
#ifndef FSDP_SCALER_H
#define FSDP_SCALER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fsdp_scaler {
    float scale;         /* now; within least and most */
    float growth;        /* >= 1; powers of two keep scaling exact */
    float backoff;       /* > 0, <= 1 */
    float least, most;   /* > 0, finite: between them the scale stays */
    uint32_t interval;   /* >= 1 */
    uint32_t hysteresis; /* >= 1; 1: every overflow backs off */

    uint32_t good;    /* steps in a row without an overflow, < interval */
    uint32_t ignored; /* overflows since the last growth that did not back
                         off, < hysteresis */
};

static inline struct fsdp_scaler fsdp_scaler_default(void)
{
    struct fsdp_scaler s;

    s.scale = 65536.0f;
    s.growth = 2.0f;
    s.backoff = 0.5f;
    s.least = 1.0f;
    s.most = 1.7014118e38f; /* 2^127 */
    s.interval = 2000;
    s.hysteresis = 1;
    s.good = 0;
    s.ignored = 0;
    return s;
}

/* The first field that is out of its range, by name; NULL: none is. A NaN is
 * in no range. */
static inline const char *fsdp_scaler_wrong(const struct fsdp_scaler *s)
{
    const float infinite = 2.0f * 1.7014118e38f; /* beyond the largest */

    if (!(s->least > 0.0f && s->least < infinite)) {
        return "least";
    }
    if (!(s->most >= s->least && s->most < infinite)) {
        return "most";
    }
    if (!(s->scale >= s->least && s->scale <= s->most)) {
        return "scale";
    }
    if (!(s->growth >= 1.0f && s->growth < infinite)) {
        return "growth";
    }
    if (!(s->backoff > 0.0f && s->backoff <= 1.0f)) {
        return "backoff";
    }
    if (s->interval == 0) {
        return "interval";
    }
    if (s->hysteresis == 0) {
        return "hysteresis";
    }
    if (s->good >= s->interval) {
        return "good";
    }
    return s->ignored >= s->hysteresis ? "ignored" : NULL;
}

/* The factor that undoes the scale; exact for a power of two up to 2^126. */
static inline float fsdp_scaler_inverse(const struct fsdp_scaler *s)
{
    return 1.0f / s->scale;
}

/* The scaler after a step, whose gradients were not all finite if found_inf. If
 * no field is wrong before, none is afterwards. */
static inline struct fsdp_scaler fsdp_scaler_after(struct fsdp_scaler s,
                                                   bool found_inf)
{
    float scale = s.scale;

    if (found_inf) {
        s.good = 0;
        if (s.ignored + 1 < s.hysteresis) {
            s.ignored++;
        } else {
            scale = s.scale * s.backoff;
        }
    } else if (++s.good == s.interval) {
        s.good = 0;
        s.ignored = 0;
        scale = s.scale * s.growth; /* beyond every float: it stays at most */
    }
    scale = scale < s.least ? s.least : scale;
    s.scale = scale > s.most ? s.most : scale;
    return s;
}

#ifdef __cplusplus
}
#endif
#endif
