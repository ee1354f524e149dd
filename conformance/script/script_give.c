/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_give.c - makes a script from a text that a user gave. Cases know the
 * script by its hash.
 */
#include "script/script.h"

#include <stdio.h>
#include <stdlib.h>

/* How many actions are played, with each turn of a repeat counted;
 * CASE_MAX_STEPS + 1 at most. */
static uint32_t script_n_played(const struct script *s)
{
    struct script_walk w = script_begin(s);
    uint32_t n = 0;

    while (n <= CASE_MAX_STEPS && script_next(&w)) {
        n++;
    }
    return n;
}

static int refuse_given(struct fsdp_error *error, int status, const char *why)
{
    *error = (struct fsdp_error){.status = status, .where = "script"};
    snprintf(error->message, sizeof(error->message), "%s", why);
    return status;
}

static int give(const struct script *s, const struct case_script **out,
                struct fsdp_error *error)
{
    const uint32_t n = script_n_played(s);
    char *canonical;
    int status;

    if (n == 0 || n > CASE_MAX_STEPS) {
        return refuse_given(error, FSDP_ERR_INVALID,
                            "a script plays 1 to 100000 actions");
    }
    canonical = script_text(s);
    status = canonical ? case_script_add(canonical, n, out) : FSDP_ERR_NOMEM;
    *out = status == FSDP_OK ? *out : NULL;
    free(canonical);
    return status == FSDP_OK
               ? FSDP_OK
               : refuse_given(error, status,
                              status == FSDP_ERR_INVALID
                                  ? "another text has the same name"
                                  : "out of memory");
}

int script_give(const char *text, const struct case_script **out,
                struct fsdp_error *error)
{
    struct script s = {0};
    int status = script_parse(text, &s, error);

    *out = NULL;
    if (status == FSDP_OK) {
        status = give(&s, out, error);
    }
    script_release(&s);
    return status;
}
