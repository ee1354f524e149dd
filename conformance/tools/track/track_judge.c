/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_judge.c - judges a run against the history before it.
 *
 * An exact figure has a level: its value in the first run, or in the last run
 * that was accepted. More than that is a regression for as long as it lasts;
 * less is an improvement, and becomes the level when it is accepted.
 */
#include "tools/track/track_judge.h"
#include "tools/track/median.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct judging {
    struct history *h;
    struct track_verdict *v;
    const struct edivisive_options *options;
    struct fsdp_error *error;
    int64_t newest; /* run */
};

bool track_accepts(const struct history_accepted *a,
                   const struct history_series *s, const char *figure)
{
    return fnmatch(a->engine, s->engine, 0) == 0 &&
           fnmatch(a->name, s->name, 0) == 0 &&
           fnmatch(a->figure, figure, 0) == 0;
}

const struct history_run *track_run(const struct track_verdict *v, int64_t id)
{
    uint32_t low = 0;
    uint32_t high = v->n_runs;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (v->run[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < v->n_runs && v->run[low].id == id ? &v->run[low] : NULL;
}

static int append(struct judging *j, const struct track_change *c)
{
    struct track_verdict *v = j->v;

    if ((v->n_change & (v->n_change - 1)) == 0) {
        size_t room = v->n_change == 0 ? 1 : 2 * (size_t)v->n_change;
        struct track_change *more = realloc(v->change, room * sizeof(*more));

        if (!more) {
            return record_fail(j->error, FSDP_ERR_NOMEM, "track",
                               "out of memory");
        }
        v->change = more;
    }
    v->change[v->n_change++] = *c;
    v->n_worse += c->worse ? 1 : 0;
    return FSDP_OK;
}

/* The last run that was accepted for this figure, and is not behind the one
 * that is judged; 0: none. */
static int64_t accepted_run(const struct judging *j,
                            const struct history_series *s, const char *figure)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < j->v->n_accepted; i++) {
        const struct history_accepted *a = &j->v->accepted[i];

        if (a->run <= j->newest && a->run > last &&
            track_accepts(a, s, figure)) {
            last = a->run;
        }
    }
    return last;
}

/* ---- Exact figures ---- */

/* The runs of one series, and the different figures that they have. */
struct exact_series {
    struct history_exact *at; /* [n] */
    uint32_t n, n_bundles;
    uint32_t *which; /* [n]: index of its bundle */
    struct figures *bundle;
};

static void release_exact(struct exact_series *x)
{
    for (uint32_t i = 0; i < x->n_bundles; i++) {
        figures_release(&x->bundle[i]);
    }
    free(x->at);
    free(x->which);
    free(x->bundle);
}

static int load_exact(struct judging *j, int64_t series, struct exact_series *x)
{
    int64_t *id = NULL;
    int status = history_exact(j->h, series, &x->at, &x->n, j->error);

    while (x->n > 0 && x->at[x->n - 1].run > j->newest) {
        x->n--;
    }
    if (status != FSDP_OK || x->n == 0 || x->at[x->n - 1].run != j->newest) {
        x->n = 0;
        return status;
    }
    x->which = calloc(x->n, sizeof(*x->which));
    x->bundle = calloc(x->n, sizeof(*x->bundle));
    id = calloc(x->n, sizeof(*id));
    if (!x->which || !x->bundle || !id) {
        free(id);
        return record_fail(j->error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    for (uint32_t i = 0; i < x->n && status == FSDP_OK; i++) {
        uint32_t b = x->n_bundles;

        /* Most often it is the one before. */
        while (b > 0 && id[b - 1] != x->at[i].bundle) {
            b--;
        }
        if (b == 0) {
            b = ++x->n_bundles;
            id[b - 1] = x->at[i].bundle;
            status = history_bundle(j->h, x->at[i].bundle, &x->bundle[b - 1],
                                    j->error);
        }
        x->which[i] = b - 1;
    }
    free(id);
    return status;
}

static const uint64_t *value_at(const struct exact_series *x, uint32_t i,
                                const char *figure)
{
    return figures_find(&x->bundle[x->which[i]], figure);
}

/* The level of a figure before the newest run; NULL: it has none. */
static const uint64_t *level_of(const struct judging *j,
                                const struct history_series *s,
                                const struct exact_series *x,
                                const char *figure)
{
    int64_t accepted = accepted_run(j, s, figure);
    const uint64_t *level = NULL;

    for (uint32_t i = 0; i < x->n; i++) {
        const uint64_t *value = value_at(x, i, figure);

        if (value && (!level || x->at[i].run <= accepted)) {
            level = value;
        }
    }
    return level;
}

static int judge_figure(struct judging *j, uint32_t series,
                        const struct exact_series *x, uint32_t f)
{
    const struct figures *now = &x->bundle[x->which[x->n - 1]];
    const struct history_series *s = &j->v->series[series];
    const uint64_t *level = level_of(j, s, x, now->name[f]);
    struct track_change c = {.exact = true, .series = series};
    uint64_t value = now->value[f];

    if (!level || value == *level) {
        return FSDP_OK;
    }
    c.worse = value > *level;
    c.exact_before = *level;
    c.exact_after = value;
    c.before = (double)*level;
    c.after = (double)value;
    c.steps = now->steps;
    snprintf(c.figure, sizeof(c.figure), "%s", now->name[f]);
    /* Back to the last run on the level's side of the change. */
    for (uint32_t i = x->n; i-- > 0;) {
        const uint64_t *old = value_at(x, i, c.figure);

        if (old && (c.worse ? *old <= *level : *old >= *level)) {
            c.good = x->at[i].run;
            break;
        }
        c.bad = x->at[i].run;
    }
    return append(j, &c);
}

static int judge_exact(struct judging *j, uint32_t series)
{
    struct exact_series x = {.n = 0};
    int status = load_exact(j, j->v->series[series].id, &x);

    if (status == FSDP_OK && x.n > 0) {
        j->v->judged += x.n > 1 ? 1 : 0;
        j->v->began += x.n == 1 ? 1 : 0;
        for (uint32_t f = 0; f < x.bundle[x.which[x.n - 1]].n; f++) {
            if (status == FSDP_OK) {
                status = judge_figure(j, series, &x, f);
            }
        }
    }
    release_exact(&x);
    return status;
}

/* ---- Timed figures ---- */

enum {
    LASTS = 3 /* runs: what is over sooner was a stumble, and no level */
};

/* Where the level begins that change i is compared with: the last one before
 * it that lasted; else the first. */
static uint32_t level_before(const struct edivisive_change *all, uint32_t i)
{
    for (uint32_t k = i; k-- > 0;) {
        if (all[k + 1].begin - all[k].begin >= LASTS) {
            return all[k].begin;
        }
    }
    return 0;
}

/* Where the level ends that begins with run `from`. */
static uint32_t end_of(const struct edivisive_change *all, uint32_t from,
                       uint32_t i)
{
    uint32_t k = 0;

    while (k < i && all[k].begin <= from) {
        k++;
    }
    return all[k].begin;
}

static int judge_changes(struct judging *j, uint32_t series,
                         const struct history_timed *t, const double *median,
                         uint32_t n, const struct edivisive_change *all,
                         uint32_t n_changes)
{
    const struct history_series *s = &j->v->series[series];
    int64_t accepted = accepted_run(j, s, s->unit);
    uint32_t last = n_changes > 0 ? all[n_changes - 1].begin : 0;
    double now = median_of(median + last, n - last);

    for (uint32_t i = 0; i < n_changes; i++) {
        const struct edivisive_change *e = &all[i];
        uint32_t from = level_before(all, i);
        uint32_t to = end_of(all, from, i);
        double before = median_of(median + from, to - from);
        bool down = e->after < e->before;
        /* A change that was undone since, wholly or nearly, does not count any
         * more. */
        double least = j->options->least * fabs(before);
        bool stands = down ? now < before - least : now > before + least;
        struct track_change c = {.worse = down == s->higher,
                                 .series = series,
                                 .before = before,
                                 .after = now,
                                 .chance = e->chance,
                                 .large = e->large,
                                 .good = t[e->begin - 1].run,
                                 .bad = t[e->begin].run};

        if (stands && t[e->begin].run > accepted) {
            snprintf(c.figure, sizeof(c.figure), "%s", s->unit);
            FSDP_TRY(append(j, &c));
        }
    }
    return FSDP_OK;
}

/* Notes whether a level of so many runs is too young for the test. */
static void note_age(const struct judging *j, uint32_t runs)
{
    struct track_verdict *v = j->v;

    if (runs < edivisive_earliest(j->options)) {
        v->n_young++;
        v->young_runs = runs > v->young_runs ? runs : v->young_runs;
    }
}

static int judge_timed(struct judging *j, uint32_t series)
{
    struct history_timed *t = NULL;
    struct edivisive_change *all = NULL;
    double *median = NULL;
    uint32_t n = 0;
    uint32_t n_changes = 0;
    int status = history_timed(j->h, j->v->series[series].id, &t, &n, j->error);

    while (n > 0 && t[n - 1].run > j->newest) {
        n--;
    }
    if (status == FSDP_OK && n > 0 && t[n - 1].run == j->newest) {
        j->v->judged += n > 1 ? 1 : 0;
        j->v->began += n == 1 ? 1 : 0;
        median = calloc(n, sizeof(*median));
        status = median ? FSDP_OK : FSDP_ERR_NOMEM;
        for (uint32_t i = 0; i < n && median; i++) {
            median[i] = t[i].median;
        }
        if (status == FSDP_OK) {
            status = edivisive_changes(median, n, j->options, &all, &n_changes);
        }
        if (status != FSDP_OK) {
            (void)record_fail(j->error, status, "track", "%s",
                              fsdp_status_text(status));
        } else {
            status = judge_changes(j, series, t, median, n, all, n_changes);
            note_age(j, n - (n_changes > 0 ? all[n_changes - 1].begin : 0));
            j->v->points[series] = (struct track_points){true, n_changes, all};
            all = NULL;
        }
    }
    free(all);
    free(median);
    free(t);
    return status;
}

/* ---- What is gone ---- */

/* The last run, before the newest, of the same machine. */
static int64_t run_before(const struct judging *j)
{
    const struct history_run *newest = &j->v->run[j->v->newest];

    for (uint32_t i = j->v->newest; i-- > 0;) {
        if (j->v->run[i].machine == newest->machine) {
            return j->v->run[i].id;
        }
    }
    return 0;
}

static int note_gone(struct judging *j, uint32_t series, int64_t before)
{
    const struct history_series *s = &j->v->series[series];
    struct track_verdict *v = j->v;
    bool was = false;
    bool is = false;

    FSDP_TRY(history_has(j->h, s, before, &was, j->error));
    FSDP_TRY(history_has(j->h, s, j->newest, &is, j->error));
    if (was && !is) {
        v->gone[v->n_gone++] =
            (struct track_gone){.series = series, .last = before};
    }
    return FSDP_OK;
}

static int compare_cause(const struct track_verdict *v,
                         const struct track_change *x,
                         const struct track_change *y)
{
    int order = (int)y->worse - (int)x->worse;

    order = order != 0 ? order
                       : strcmp(v->series[x->series].engine,
                                v->series[y->series].engine);
    order = order != 0 ? order : strcmp(x->figure, y->figure);
    return order != 0 ? order : (x->bad > y->bad) - (x->bad < y->bad);
}

static int by_cause(const void *a, const void *b, void *context)
{
    const struct track_change *x = a;
    const struct track_change *y = b;
    int order = compare_cause(context, x, y);

    return order != 0 ? order
                      : (x->series > y->series) - (x->series < y->series);
}

uint32_t track_same_cause(const struct track_verdict *v, uint32_t i)
{
    uint32_t end = i + 1;

    while (end < v->n_change &&
           compare_cause(v, &v->change[i], &v->change[end]) == 0) {
        end++;
    }
    return end;
}

uint32_t track_causes(const struct track_verdict *v, bool worse)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < v->n_change; i = track_same_cause(v, i)) {
        n += v->change[i].worse == worse ? 1 : 0;
    }
    return n;
}

static int judge_all(struct judging *j)
{
    struct track_verdict *v = j->v;
    int64_t machine = v->run[v->newest].machine;
    int64_t before = run_before(j);

    v->gone = calloc(v->n_series + 1u, sizeof(*v->gone));
    v->points = calloc(v->n_series + 1u, sizeof(*v->points));
    if (!v->gone || !v->points) {
        return record_fail(j->error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    for (uint32_t i = 0; i < v->n_series; i++) {
        if (v->series[i].machine != machine) {
            continue;
        }
        FSDP_TRY(v->series[i].exact ? judge_exact(j, i) : judge_timed(j, i));
        if (before != 0) {
            FSDP_TRY(note_gone(j, i, before));
        }
    }
    if (v->n_change > 1) {
        qsort_r(v->change, v->n_change, sizeof(*v->change), by_cause, v);
    }
    return FSDP_OK;
}

int track_judge(struct history *h, int64_t run,
                const struct edivisive_options *options,
                struct track_verdict *out, struct fsdp_error *error)
{
    struct judging j = {.h = h, .v = out, .options = options, .error = error};
    const struct history_run *newest;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(history_runs(h, &out->run, &out->n_runs, error));
    FSDP_TRY(history_series(h, &out->series, &out->n_series, error));
    FSDP_TRY(history_accepted(h, &out->accepted, &out->n_accepted, error));
    if (out->n_runs == 0) {
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "the history has no runs");
    }
    newest = run == 0 ? &out->run[out->n_runs - 1] : track_run(out, run);
    if (!newest) {
        return record_fail(error, FSDP_ERR_INVALID, "track",
                           "the history has no run %lld", (long long)run);
    }
    out->newest = (uint32_t)(newest - out->run);
    j.newest = newest->id;
    return judge_all(&j);
}

void track_verdict_release(struct track_verdict *v)
{
    for (uint32_t i = 0; v->points && i < v->n_series; i++) {
        free(v->points[i].change);
    }
    free(v->points);
    free(v->run);
    free(v->series);
    free(v->accepted);
    free(v->change);
    free(v->gone);
    memset(v, 0, sizeof(*v));
}
