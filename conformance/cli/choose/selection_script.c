/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_script.c - makes a case that plays a script which was given as
 * text.
 */
#include "cli/choose/selection_script.h"
#include "cases/case_model.h"
#include "models/text.h"
#include "script/script_mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 1 << 24
};

static int refuse_script(const char *why)
{
    fprintf(stderr, "fsdp-cts: --script: %s\n", why);
    return EXIT_USAGE;
}

static bool names_file(const char *given)
{
    const char *begin = given + strspn(given, " \t\n;");

    return *begin != '#' && strncmp(begin, "script ", 7) != 0 &&
           strncmp(begin, "script.", 7) != 0;
}

/* Says what is wrong with the script itself. */
static int refuse_text(const char *given, const char *why)
{
    if (!names_file(given)) {
        return refuse_script(why);
    }
    fprintf(stderr, "fsdp-cts: --script %.80s: %s\n", given, why);
    return EXIT_USAGE;
}

/* The text of the part of a drawn script that an id keeps. */
static char *text_of_id(const char *id)
{
    struct fsdp_error error = {0};
    struct script s = {0};
    char *text = NULL;

    if (script_of_id(id, &s, NULL, NULL, &error) == FSDP_OK) {
        text = script_text(&s);
    }
    if (!text) {
        (void)refuse_script(error.message[0] ? error.message : "out of memory");
    }
    script_release(&s);
    return text;
}

/* A text begins with its version, an id with `script.`; what else there is
 * names a file. The caller frees it. */
static char *read_text(const char *given)
{
    const char *begin = given + strspn(given, " \t\n;");
    char *text = NULL;
    size_t n = 0;
    FILE *f;

    if (!names_file(given)) {
        return strncmp(begin, "script.", 7) == 0 ? text_of_id(begin)
                                                 : strdup(given);
    }
    f = fopen(given, "re");
    if (!f) {
        fprintf(stderr,
                "fsdp-cts: --script %.80s: %s; a text begins with `script 1`\n",
                given, strerror(errno));
        return NULL;
    }
    text = calloc(1, MOST_BYTES + 1);
    n = text ? fread(text, 1, MOST_BYTES + 1, f) : 0;
    fclose(f);
    if (!text || n > MOST_BYTES || memchr(text, '\0', n)) {
        (void)refuse_text(given, "the file is no text of up to 16 MiB");
        free(text);
        return NULL;
    }
    return text;
}

static bool asks_for(const struct arguments *a, const struct run_case *c)
{
    bool ranks = a->n_ranks == 0 && c->ranks > 1;
    bool workload = a->workloads.n == 0;
    bool strategy = a->strategies.n == 0;

    for (uint32_t i = 0; i < a->n_ranks; i++) {
        ranks = ranks || a->ranks[i] == c->ranks;
    }
    for (uint32_t i = 0; i < a->workloads.n; i++) {
        workload = workload || strcmp(a->workloads.name[i], c->workload) == 0;
    }
    for (uint32_t i = 0; i < a->strategies.n; i++) {
        strategy = strategy || strcmp(a->strategies.name[i],
                                      case_strategy_name(c->strategy)) == 0;
    }
    return ranks && workload && strategy && c->scenario == CASE_TRAIN;
}

static bool find_in_manifest(const struct arguments *a, struct run_case *out)
{
    struct fsdp_error error = {0};
    struct case_list all = {NULL, 0};
    bool found = false;

    if (manifest_make(&all, &error) == FSDP_OK) {
        for (uint32_t i = 0; i < all.n && !found; i++) {
            found = asks_for(a, &all.c[i]);
            *out = all.c[i];
        }
    }
    manifest_release(&all);
    memset(out->sync, 0, sizeof(out->sync));
    out->microbatches = CASE_MAX_MICROBATCHES;
    out->sync[CASE_MAX_MICROBATCHES - 1] = 1;
    return found;
}

/* Whether the case, with the script in the place of its scenario, is the one
 * that is asked for. */
static bool is_this(const struct run_case *c, const struct case_script *s)
{
    return case_is_script(c) && strcmp(c->script, s->name) == 0;
}

static int find_case(const struct arguments *a, const struct script *s,
                     const struct case_script *given, struct run_case *out)
{
    if (a->cases.n > 1) {
        return refuse_script("it is played on one case");
    }
    if ((a->cases.n == 1 || s->has_case) &&
        a->n_ranks + a->workloads.n + a->strategies.n > 0) {
        return refuse_script(
            "--ranks, --workload and --strategy choose a case of the "
            "manifest, and the case is given");
    }
    if (a->cases.n == 1) {
        return case_of_id(a->cases.name[0], out) &&
                       (out->scenario == CASE_TRAIN || is_this(out, given))
                   ? 0
                   : refuse_script(
                         "--case is the id of a case that trains, without a "
                         "scenario");
    }
    if (s->has_case) {
        *out = s->c;
        return 0;
    }
    return find_in_manifest(a, out)
               ? 0
               : refuse_script(
                     "no case of the manifest that only trains has all of "
                     "what was asked for");
}

/* Refuses what the format has and the driver cannot play. */
static int check_playable(const struct script *s)
{
    for (uint32_t i = 0; i < s->n_actions; i++) {
        char text[96];

        if (s->action[i].verb != SCRIPT_ANEW && s->given == 0) {
            continue;
        }
        script_action_text(s, &s->action[i], text, sizeof(text));
        fprintf(stderr,
                "fsdp-cts: --script: action %u (%s): other processes, and "
                "what another world has saved, are not played\n",
                i + 1, text);
        return EXIT_USAGE;
    }
    return 0;
}

static int check_legal(const struct arguments *a, const struct script *s,
                       const struct run_case *c)
{
    struct fsdp_error error = {0};
    struct case_model model = {0};
    struct script on = *s; /* a copy of the script, to look at it with the case
                              that plays it */
    struct text text = {0};
    int status = text_load(a->text, &text, &error);

    if (status == FSDP_OK) {
        status = case_model_make(c, text.bytes, text.n, &model, &error);
    }
    if (status == FSDP_OK) {
        const struct fsdp_model *m = &model.model->model;
        const uint32_t lengths[2] = {m->sequence[FSDP_SEQUENCE_TRAIN]->n,
                                     m->n_sequences > FSDP_SEQUENCE_EVAL
                                         ? m->sequence[FSDP_SEQUENCE_EVAL]->n
                                         : 0};

        on.has_case = true;
        on.c = *c;
        status = script_legal(&on, lengths, &error);
    }
    case_model_release(&model);
    text_release(&text);
    return status == FSDP_OK ? 0 : refuse_text(a->script, error.message);
}

static int select_case(const struct arguments *a, const char *text,
                       struct script *s, struct case_list *out)
{
    struct fsdp_error error = {0};
    const struct case_script *given;
    struct run_case c = {0};
    int code;

    if (script_parse(text, s, &error) != FSDP_OK ||
        script_give(text, &given, &error) != FSDP_OK) {
        return refuse_text(a->script, error.message);
    }
    code = find_case(a, s, given, &c);
    code = code ? code : check_playable(s);
    code = code ? code : check_legal(a, s, &c);
    if (code) {
        return code;
    }
    case_play_script(&c, given);
    c.seed = a->seed ? a->seed : c.seed;
    return case_list_add(out, &c) == FSDP_OK ? 0
                                             : refuse_script("out of memory");
}

int selection_of_script(const struct arguments *a, struct case_list *out)
{
    struct script s = {0};
    char *text;
    int code;

    if (a->n_seeds || a->fixtures) {
        return refuse_script("not with --seeds or --fixtures");
    }
    text = read_text(a->script);
    code = text ? select_case(a, text, &s, out) : EXIT_USAGE;
    script_release(&s);
    free(text);
    return code;
}
