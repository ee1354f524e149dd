/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn_run.c - plays drawn scripts in a run: alone, or beside the cases of the
 * manifest.
 */
#include "cli/search/drawn.h"
#include "run/supervise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BESIDE = 200,        /* scripts of each engine, at least */
    BESIDE_SECONDS = 10, /* and as many more as they take */
    SHRINK_SECONDS = 60,
    SHRINK_ADAPTER_SECONDS = 300, /* an adapter is started for each try */
};

static int say(const struct fsdp_error *error, int status)
{
    evaluate_say(error, status);
    return status == FSDP_ERR_INVALID ? EXIT_USAGE : EXIT_INCOMPLETE;
}

/* Plays scripts by the engines of these arguments. 0, or an exit code. */
static int play(const struct arguments *a, const struct text *text,
                struct drawn *d)
{
    struct fsdp_error error = {0};
    int status;

    d->a = a;
    d->text = text;
    d->shrink = a->quiet     ? 0
                : a->adapter ? SHRINK_ADAPTER_SECONDS
                             : SHRINK_SECONDS;
    d->n_engines = a->adapter ? 1 : a->engines.n;
    for (uint32_t i = 0; i < a->engines.n; i++) {
        d->engine[i].name = a->engines.name[i];
    }
    status = drawn_ask(d, &error);
    status = status == FSDP_OK ? drawn_play(d, &error) : status;
    return status == FSDP_OK ? 0 : say(&error, status);
}

int drawn_alone(const struct arguments *a, const struct text *text)
{
    struct drawn *d = calloc(1, sizeof(*d));
    int code;

    if (!d) {
        return say(&(struct fsdp_error){0}, FSDP_ERR_NOMEM);
    }
    d->seed = a->seed;
    d->least = a->n_scripts;
    code = play(a, text, d);
    if (code == 0 || supervise_interrupted()) {
        drawn_print(d);
        code = evaluate_worse(code, drawn_code(d));
    }
    free(d);
    return code;
}

/* Whether some or all scripts of the engine have no verdict, or drawing broke
 * off. */
static bool is_incomplete(const struct drawn_engine *e, bool broken)
{
    const bool asked = e->claims[0] != '\0';

    return e->reason[0] != '\0' || (e->plays && (broken || e->played == 0)) ||
           (broken && !asked);
}

static void conclude(const struct drawn *d, struct drawn_engine *e, bool broken)
{
    struct fsdp_error error = {0};
    struct script drawn = {0};

    e->said = (struct judge_drawn){.wanted = true,
                                   .incomplete = is_incomplete(e, broken),
                                   .generator = SCRIPT_GENERATOR,
                                   .seed = (uint32_t)d->seed,
                                   .played = e->played,
                                   .failed = e->failed};
    if (e->failed > 0 && script_draw(e->seed, &drawn, &error) == FSDP_OK) {
        script_id(e->seed, &drawn, &e->mask, e->said.first);
    }
    script_release(&drawn);
}

int drawn_beside(const struct arguments *a, const struct text *text,
                 struct drawn **out)
{
    struct arguments fresh = *a;
    struct drawn *d = calloc(1, sizeof(*d));
    bool broken = false;
    int code = 0;

    *out = d;
    if (!d) {
        return say(&(struct fsdp_error){0}, FSDP_ERR_NOMEM);
    }
    fresh.seed = a->script_seed ? a->script_seed : a->seed;
    if (fresh.seed == 0) {
        code = arguments_fresh_seed(&fresh, "script-seed");
    }
    d->seed = fresh.seed;
    d->least = BESIDE;
    d->seconds = a->script_seed || a->seed ? 0 : BESIDE_SECONDS;
    if (code != 0) {
        return code;
    }
    broken = play(a, text, d) != 0;
    for (uint32_t i = 0; i < d->n_engines; i++) {
        conclude(d, &d->engine[i], broken);
    }
    if (!a->quiet) {
        drawn_print_failing(d);
    }
    return supervise_interrupted() ? EXIT_INCOMPLETE : 0;
}
