/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn_adapter.c - drawn scripts for an adapter: the claims that adapters need
 * beside those of other engines decide what is left of each script; and the
 * adapter plays a batch in one start.
 */
#include "cli/search/drawn.h"

#include "judge/judge_adapter.h"
#include "run/adapter.h"

#include <stdio.h>
#include <string.h>

static bool has(const struct adapter_claims *a, const char *claim)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (strcmp(a->claim[i], claim) == 0) {
            return true;
        }
    }
    return false;
}

int drawn_ask_adapter(struct drawn *d, const char *records,
                      struct fsdp_error *error)
{
    struct case_list none = {NULL, 0};
    const struct adapter_job job = {.command = d->a->adapter,
                                    .records = records,
                                    .cases = &none,
                                    .text = d->text,
                                    .timeout_ms = d->a->timeout_ms * 10,
                                    .quiet = true};
    char claims[sizeof(d->engine[0].claims)] = "";
    size_t at = 0;

    FSDP_TRY(adapter_ask(&job, &d->adapter, error));
    for (uint32_t i = 0; i < d->adapter.n && at < sizeof(claims); i++) {
        at += (size_t)snprintf(claims + at, sizeof(claims) - at, "%s ",
                               d->adapter.claim[i]);
    }
    if (has(&d->adapter, "fold-any") && at < sizeof(claims)) {
        snprintf(claims + at, sizeof(claims) - at, "fold-rank fold-ring");
    }
    d->engine[0].name = d->adapter.engine;
    drawn_claims(d, 0, claims);
    return FSDP_OK;
}

/* The choice that replaces what needs a claim of adapters; 0: none does. */
static uint32_t plain_without(const char *claim)
{
    static const struct {
        const char *begins;
        uint32_t plain;
    } row[] = {
        {"workload-", SCRIPT_PLAIN_MODEL},
        {"graph-", SCRIPT_PLAIN_MODEL},
        {"wrap-", SCRIPT_PLAIN_WRAP},
        {"reshard-root", SCRIPT_PLAIN_WRAP},
        {"divide-factor", SCRIPT_PLAIN_DIVIDE},
        {"precision-", SCRIPT_PLAIN_PRECISION},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        if (strncmp(claim, row[i].begins, strlen(row[i].begins)) == 0) {
            return row[i].plain;
        }
    }
    return 0;
}

/* Drops actions within a pass, and calls that an engine must answer. */
static void drop(const struct drawn *d, const struct script *drawn,
                 struct script_mask *m)
{
    for (uint32_t i = 0; i < drawn->n_actions; i++) {
        const struct script_action *a = &drawn->action[i];

        if (!has(&d->adapter, "answers") &&
            (a->verb == SCRIPT_WRONG || a->verb == SCRIPT_CLIP)) {
            m->actions &= ~(1ull << i);
        }
        if (has(&d->adapter, "step-drops") &&
            script_step_is_used_again(drawn, i)) {
            m->actions &= ~(1ull << i);
        }
        if (!has(&d->adapter, "unit-factors") && a->verb == SCRIPT_SET &&
            a->knob == FSDP_KNOB_PREDIVIDE_FACTOR) {
            m->actions &= ~(1ull << i);
        }
        if (!has(&d->adapter, "in-pass") &&
            (a->verb == SCRIPT_PASS || a->verb == SCRIPT_EVAL)) {
            m->less[i] |=
                SCRIPT_LESS_FIRST | SCRIPT_LESS_SECOND | SCRIPT_LESS_ENDING;
        }
        if (!has(&d->adapter, "unshard-f32") &&
            drawn->c.precision != CASE_F32 &&
            (a->verb == SCRIPT_SUMMON || a->verb == SCRIPT_UNSHARD ||
             a->verb == SCRIPT_RESHARD)) {
            m->actions &= ~(1ull << i);
        }
    }
}

/* The first plain choice that the case needs; 0: it needs none, or none helps,
 * which the last look at the claims finds. */
static uint32_t plain_for(const struct drawn *d, const struct run_case *c)
{
    char claim[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES];
    const uint32_t n = judge_adapter_claims(c, claim);

    for (uint32_t i = 0; i < n; i++) {
        if (!has(&d->adapter, claim[i])) {
            return plain_without(claim[i]);
        }
    }
    return 0;
}

bool drawn_left_for_adapter(const struct drawn *d, const struct script *drawn,
                            struct script_mask *m)
{
    uint32_t plain = 0;

    drop(d, drawn, m);
    for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
        const struct script_mask wanted = *m;
        struct fsdp_error error = {0};
        struct script left;

        if (script_masked(drawn, &wanted, &left, m, &error) != FSDP_OK) {
            script_release(&left);
            return false;
        }
        plain = plain_for(d, &left.c);
        script_release(&left);
        if (plain == 0 || (m->plain & plain) != 0) {
            return plain == 0;
        }
        m->plain |= plain;
    }
    return false;
}

bool drawn_is_claimed(const struct drawn *d, const struct run_case *c)
{
    return adapter_claims_case(&d->adapter, c);
}
