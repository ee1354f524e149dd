/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn.c - plays seeds one after the other, a batch at a time. The part of a
 * script that an engine plays depends on its claims; engines that claim the
 * same share the unsharded runs of a batch.
 */
#include "cli/search/drawn.h"

#include "cli/play/rerun.h"
#include "cli/play/run_cases.h"
#include "cli/verdict/records_folder.h"
#include "run/supervise.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SAID = 20 /* so many failing scripts of an engine are named by id */
};

/* ---- What engines claim ---- */

void drawn_claims(struct drawn *d, uint32_t i, const char *claims)
{
    struct drawn_engine *e = &d->engine[i];
    char padded[sizeof(e->claims) + 2];

    snprintf(e->claims, sizeof(e->claims), "%s", claims);
    snprintf(padded, sizeof(padded), " %s ", e->claims);
    e->plays = strstr(padded, " scripts ") != NULL;
}

int drawn_ask(struct drawn *d, struct fsdp_error *error)
{
    struct supervise_job job = arguments_job(d->a);
    struct run_case trains;
    struct run_case c;
    const struct case_list cases = {&c, 1};
    struct folder folder;
    int status;

    if (!case_of_id("mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd",
                    &trains)) {
        return FSDP_ERR_INTERNAL;
    }
    case_sharded(&trains, &c);
    status = folder_open_temporary(&cases, 1, &folder, error);
    job.cases = &c;
    job.n_cases = 1;
    job.records = folder.path;
    if (status == FSDP_OK && d->a->adapter) {
        status = drawn_ask_adapter(d, folder.path, error);
    }
    for (uint32_t i = 0;
         i < d->n_engines && status == FSDP_OK && !d->a->adapter; i++) {
        struct supervise_engine said = {.known = false};

        job.engine = d->engine[i].name;
        status = supervise(&job, &said, error);
        drawn_claims(d, i, said.claims);
    }
    folder_close(&folder);
    return status;
}

/* ---- A batch ---- */

struct batch {
    struct drawn *d;
    struct drawn_engine *e;
    struct case_list cases;
    uint64_t seed[DRAWN_BATCH];
    struct script_mask mask[DRAWN_BATCH];
    struct evaluate_input input;
    struct judge_result r;
    struct fsdp_error error;
    int status;
    pthread_t thread;
    bool has_thread;
};

/* "a b" becomes a, b, NULL. */
static void split_claims(char *text, const char *claims[DRAWN_MAX_CLAIMS + 1])
{
    uint32_t n = 0;
    char *rest = text;
    char *word;

    while (n < DRAWN_MAX_CLAIMS && (word = strtok_r(rest, " ", &rest))) {
        claims[n++] = word;
    }
    claims[n] = NULL;
}

/* Lives in other processes are not played: the next life begins in the same
 * process. */
static bool keep_what_is_played(const struct script *drawn,
                                struct script_mask *m)
{
    struct fsdp_error error = {0};
    struct script_mask wanted;
    struct script left;
    bool fine;

    for (uint32_t i = 0; i < drawn->n_actions; i++) {
        if (drawn->action[i].verb == SCRIPT_ANEW) {
            m->less[i] = SCRIPT_LESS_PROCESS;
        }
    }
    wanted = *m;
    fine = script_masked(drawn, &wanted, &left, m, &error) == FSDP_OK;
    script_release(&left);
    return fine;
}

/* Adds to the batch what the engine's claims leave of the script of a seed. */
static void add_script(struct batch *b, uint64_t seed,
                       const char *const *claims)
{
    const uint32_t n = b->cases.n;
    struct fsdp_error error = {0};
    struct script drawn = {0};

    b->cases.c[n] = (struct run_case){.steps = 0};
    if (script_draw(seed, &drawn, &error) == FSDP_OK &&
        script_project(&drawn, claims, &b->mask[n], &error) == FSDP_OK &&
        keep_what_is_played(&drawn, &b->mask[n]) &&
        (!b->d->a->adapter ||
         drawn_left_for_adapter(b->d, &drawn, &b->mask[n])) &&
        drawn_case(&drawn, &b->mask[n], &b->cases.c[n]) &&
        (!b->d->a->adapter || drawn_is_claimed(b->d, &b->cases.c[n]))) {
        b->seed[n] = seed;
        b->cases.n++;
    } else {
        b->e->left_out++;
    }
    script_release(&drawn);
}

static int fill(struct batch *b, uint64_t first, uint32_t n)
{
    const char *claims[DRAWN_MAX_CLAIMS + 1];
    char text[sizeof(b->e->claims)];

    memcpy(text, b->e->claims, sizeof(text));
    split_claims(text, claims);
    b->cases = (struct case_list){calloc(n, sizeof(*b->cases.c)), 0};
    for (uint32_t i = 0; i < n && b->cases.c && b->e->plays; i++) {
        add_script(b, first + i, claims);
    }
    return b->cases.c ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* Runs the batch by all engines, and the unsharded runs that they need, each
 * once. */
static int run_batch(struct drawn *d, struct batch *batch, const char *records,
                     const struct engine_folders *folders)
{
    struct supervise_job job = arguments_job(d->a);
    struct case_list all = {NULL, 0};
    struct fsdp_error *error = &batch[0].error;
    int status = FSDP_OK;

    for (uint32_t i = 0; i < d->n_engines && status == FSDP_OK; i++) {
        struct supervise_engine said = {.known = false};
        const struct case_list *cases = &batch[i].cases;

        job.sealed = records;
        job.records = folders->of[i].records;
        job.engine = d->engine[i].name;
        job.cases = cases->c;
        job.n_cases = cases->n;
        if (cases->n > 0) {
            status =
                d->a->adapter
                    ? run_cases_by_adapter(d->a, cases, d->text, job.records,
                                           &d->adapter, NULL, error)
                    : supervise(&job, &said, error);
        }
        for (uint32_t k = 0; k < cases->n && status == FSDP_OK; k++) {
            status = case_list_add(&all, &cases->c[k]);
        }
    }
    job.records = records;
    if (status == FSDP_OK && all.n > 0) {
        status = supervise_baselines(&job, &all, error);
    }
    manifest_release(&all);
    return status;
}

static void *judge_batch(void *self)
{
    struct batch *b = self;

    b->status = b->cases.n > 0 ? evaluate_records(&b->input, &b->r, &b->error)
                               : FSDP_OK;
    return NULL;
}

static const char *what_of(const struct judge_result *r, uint32_t c, uint32_t q)
{
    const struct judge_item *item = judge_item_at(r, c, q);

    return item->outcome == JUDGE_FAIL && item->detail
               ? item->detail->finding.note
               : r->cases[c].reason;
}

static void note_failure(struct batch *b, uint32_t c, uint32_t q)
{
    struct drawn_engine *e = b->e;
    char id[SCRIPT_ID_BYTES];
    struct fsdp_error error = {0};
    struct script drawn = {0};

    if (e->failed++ == 0) {
        e->seed = b->seed[c];
        e->mask = b->mask[c];
        e->requirement = b->r.requirement[q];
        e->verb = drawn_verb_of(&b->r.cases[c].c, judge_item_at(&b->r, c, q));
    }
    if ((e->failed <= MOST_SAID || b->d->a->adapter) &&
        script_draw(b->seed[c], &drawn, &error) == FSDP_OK) {
        script_id(b->seed[c], &drawn, &b->mask[c], id);
        fprintf(stderr, "fsdp-cts: %s: %s fails %s: %s\n", e->name, id,
                b->r.requirement[q]->id, what_of(&b->r, c, q));
    }
    script_release(&drawn);
}

static void note_outcomes(struct batch *b)
{
    struct drawn_engine *e = b->e;

    for (uint32_t c = 0; c < b->cases.n && b->status == FSDP_OK; c++) {
        const struct judge_case *of = &b->r.cases[c];
        uint32_t q;

        e->played++;
        if (evaluate_failure_of(&b->r, c, &q)) {
            note_failure(b, c, q);
        } else if (of->outcome != JUDGE_PASS && e->reason[0] == '\0') {
            snprintf(e->reason, sizeof(e->reason), "%.60s: %.180s", of->id,
                     of->reason);
        }
    }
    if (b->status == FSDP_OK && b->r.abandoned && e->reason[0] == '\0') {
        snprintf(e->reason, sizeof(e->reason), "%.250s", b->r.reason);
    }
}

/* Judges all engines, at the same time if there is more than one job. */
static int judge_all(struct drawn *d, struct batch *batch, const char *records,
                     const struct engine_folders *folders,
                     struct fsdp_error *error)
{
    int status = FSDP_OK;

    for (uint32_t i = 0; i < d->n_engines; i++) {
        struct batch *b = &batch[i];

        b->input = (struct evaluate_input){.records = folders->of[i].records,
                                           .baselines = records,
                                           .cases = &b->cases,
                                           .text = d->text};
        b->has_thread = d->n_engines > 1 && d->a->jobs > 1 &&
                        pthread_create(&b->thread, NULL, judge_batch, b) == 0;
        if (!b->has_thread) {
            judge_batch(b);
        }
    }
    for (uint32_t i = 0; i < d->n_engines; i++) {
        struct batch *b = &batch[i];

        if (b->has_thread) {
            pthread_join(b->thread, NULL);
        }
        note_outcomes(b);
        if (status == FSDP_OK && b->status != FSDP_OK) {
            status = b->status;
            *error = b->error;
        }
        judge_release(&b->r);
    }
    return status;
}

static int play_in(struct drawn *d, struct batch *batch, uint64_t first,
                   uint32_t n, struct fsdp_error *error)
{
    struct name_list names = {.n = d->n_engines};
    struct engine_folders *folders = calloc(1, sizeof(*folders));
    struct folder folder = {.temporary = false};
    int status = folders ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; i < d->n_engines && status == FSDP_OK; i++) {
        names.name[i] = d->engine[i].name;
        status = fill(&batch[i], first, n);
    }
    if (status == FSDP_OK) {
        status = folder_open_temporary(&batch[0].cases, d->n_engines, &folder,
                                       error);
    }
    if (status == FSDP_OK &&
        engine_folders_make(&names, folder.path, folders) != 0) {
        status = FSDP_ERR_IO;
    }
    if (status == FSDP_OK) {
        status = run_batch(d, batch, folder.path, folders);
        *error = batch[0].error;
    }
    if (status == FSDP_OK) {
        status = judge_all(d, batch, folder.path, folders, error);
    }
    folder_close(&folder);
    free(folders);
    return status;
}

static int play_batch(struct drawn *d, uint64_t first, uint32_t n,
                      struct fsdp_error *error)
{
    struct batch *batch = calloc(d->n_engines, sizeof(*batch));
    int status = batch ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; i < d->n_engines && batch; i++) {
        batch[i].d = d;
        batch[i].e = &d->engine[i];
    }
    if (batch) {
        status = play_in(d, batch, first, n, error);
    }
    for (uint32_t i = 0; i < d->n_engines && batch; i++) {
        free(batch[i].cases.c);
    }
    free(batch);
    return status;
}

static bool any_plays(const struct drawn *d)
{
    bool any = false;

    for (uint32_t i = 0; i < d->n_engines; i++) {
        any = any || d->engine[i].plays;
    }
    return any;
}

/* Says how many scripts each engine has played so far. */
static void say_played(const struct drawn *d)
{
    for (uint32_t i = 0; i < d->n_engines; i++) {
        if (d->engine[i].plays) {
            fprintf(stderr, "drawn: %s: %u scripts\n", d->engine[i].name,
                    d->engine[i].played);
        }
    }
}

int drawn_play(struct drawn *d, struct fsdp_error *error)
{
    const double end = trial_now() + d->seconds;
    uint32_t done = 0;
    int status = FSDP_OK;

    while (any_plays(d) && status == FSDP_OK &&
           (done < d->least || trial_now() < end)) {
        uint32_t left = done < d->least ? d->least - done : DRAWN_BATCH;
        uint32_t n = left < DRAWN_BATCH ? left : DRAWN_BATCH;

        status = play_batch(d, d->seed + done, n, error);
        done += n;
        if (!d->a->quiet && (done == d->least || done % 500 == 0)) {
            say_played(d);
        }
    }
    for (uint32_t i = 0; i < d->n_engines && status == FSDP_OK; i++) {
        if (d->engine[i].failed > 0 && d->shrink > 0) {
            fprintf(stderr, "fsdp-cts: making a script smaller that %s fails\n",
                    d->engine[i].name);
            drawn_shrink(d, &d->engine[i]);
        }
    }
    return status;
}

/* ---- What came of it ---- */

/* Prints how the smallest failing script fails, and its text. */
static void print_failing(const struct drawn *d, const struct drawn_engine *e)
{
    char id[SCRIPT_ID_BYTES] = "";
    char case_of[CASE_ID_BYTES];
    char rerun[RERUN_BYTES];
    struct arguments again = *d->a;
    const struct report_meta meta = {.rerun = rerun};
    const struct trial t = {d->a, e->name, d->text};
    struct fsdp_error error = {0};
    struct judge_result r = {0};
    struct run_case c = {.steps = 0};
    const struct case_list list = {&c, 1};
    struct script drawn = {0};
    uint32_t q;

    if (script_draw(e->seed, &drawn, &error) == FSDP_OK &&
        drawn_case(&drawn, &e->mask, &c)) {
        const struct case_script *s = case_script_find(c.script);

        script_id(e->seed, &drawn, &e->mask, id);
        again.script = id;
        again.seed = 0; /* the seed of the drawing; the script has its own */
        rerun_make(&again, e->name, rerun);
        printf("\n# %s\n%s\n", id, s ? s->text : "");
        if (trial_judge(&t, &list, &r) == FSDP_OK &&
            evaluate_failure_of(&r, 0, &q)) {
            report_failure(&r, 0, q, &meta, stdout);
        } else if (supervise_interrupted()) {
            case_id(&c, case_of);
            printf("  rerun  %s%s\n", rerun, case_of);
        }
    }
    judge_release(&r);
    script_release(&drawn);
}

void drawn_print_failing(const struct drawn *d)
{
    for (uint32_t i = 0; i < d->n_engines; i++) {
        if (d->engine[i].failed > 0) {
            print_failing(d, &d->engine[i]);
        }
    }
}

void drawn_print(const struct drawn *d)
{
    for (uint32_t i = 0; i < d->n_engines; i++) {
        const struct drawn_engine *e = &d->engine[i];

        if (!e->plays) {
            printf("%s: named scripts only; it does not claim scripts\n",
                   e->name);
            continue;
        }
        printf("%s: %u scripts drawn by --scripts --seed %llu, %u of them "
               "fail",
               e->name, e->played, (unsigned long long)d->seed, e->failed);
        if (e->left_out > 0) {
            printf("; of %u nothing is left for what it claims", e->left_out);
        }
        printf("%s%s\n", e->reason[0] ? "; without a verdict: " : "",
               e->reason);
    }
    if (!d->a->quiet) {
        drawn_print_failing(d);
    }
}

int drawn_code(const struct drawn *d)
{
    int code = EXIT_CONFORMANT;

    for (uint32_t i = 0; i < d->n_engines; i++) {
        const struct drawn_engine *e = &d->engine[i];

        code = evaluate_worse(code, e->failed > 0 ? EXIT_NOT_CONFORMANT
                                    : !e->plays   ? EXIT_SKIPPED
                                    : e->reason[0] || e->played == 0
                                        ? EXIT_INCOMPLETE
                                        : EXIT_CONFORMANT);
    }
    return code;
}
