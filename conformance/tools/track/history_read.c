/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history_read.c - reads runs, series and acceptances. The content of the file
 * is checked as strictly as input from outside: another program may have
 * changed it.
 */
#include "tools/track/history_internal.h"
#include "tools/track/strict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one query as an array. */
struct rows {
    void *array;
    uint32_t n;
    size_t size;
    void (*take)(sqlite3_stmt *q, void *row);
};

static int grow(struct rows *r, struct fsdp_error *error)
{
    void *more;

    if (r->array && (r->n & (r->n - 1)) != 0) {
        return FSDP_OK;
    }
    if (r->n >= UINT32_C(1) << 30) {
        (void)record_fail(error, FSDP_ERR_FORMAT, "track", "too many rows");
        return FSDP_ERR_FORMAT;
    }
    more = realloc(r->array, (r->n == 0 ? 1 : 2 * (size_t)r->n) * r->size);
    if (!more) {
        (void)record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
        return FSDP_ERR_NOMEM;
    }
    r->array = more;
    return FSDP_OK;
}

/* id: the query's parameter, if it has one. */
static int collect(struct history *h, const char *sql, int64_t id,
                   struct rows *r, struct fsdp_error *error)
{
    sqlite3_stmt *q;
    bool row = true;
    int status = history_prepare(h, sql, &q, error);

    if (status == FSDP_OK && sqlite3_bind_parameter_count(q) == 1 &&
        sqlite3_bind_int64(q, 1, id) != SQLITE_OK) {
        status = history_fail(h, error);
    }
    while (status == FSDP_OK) {
        status = history_step(h, q, &row, error);
        if (status != FSDP_OK || !row) {
            break;
        }
        status = grow(r, error);
        if (status == FSDP_OK) {
            char *at = (char *)r->array + r->n * r->size;

            memset(at, 0, r->size);
            r->take(q, at);
            r->n++;
        }
    }
    (void)sqlite3_finalize(q);
    if (status != FSDP_OK) {
        free(r->array);
        r->array = NULL;
        r->n = 0;
    }
    return status;
}

static void take_run(sqlite3_stmt *q, void *row)
{
    struct history_run *x = row;

    x->id = sqlite3_column_int64(q, 0);
    history_text(q, 1, x->commit, sizeof(x->commit));
    x->date = sqlite3_column_int64(q, 2);
    x->machine = sqlite3_column_int64(q, 3);
    history_text(q, 4, x->machine_hash, sizeof(x->machine_hash));
    history_text(q, 5, x->machine_text, sizeof(x->machine_text));
}

int history_runs(struct history *h, struct history_run **out, uint32_t *n,
                 struct fsdp_error *error)
{
    struct rows r = {.size = sizeof(**out), .take = take_run};
    int status = collect(h,
                         "SELECT run.id, commit_id, date, machine, hash, text "
                         "FROM run JOIN machine ON machine = machine.id "
                         "ORDER BY run.id",
                         0, &r, error);

    *out = r.array;
    *n = r.n;
    return status;
}

static void take_series(sqlite3_stmt *q, void *row)
{
    struct history_series *x = row;

    x->id = sqlite3_column_int64(q, 0);
    x->machine = sqlite3_column_int64(q, 1);
    history_text(q, 2, x->engine, sizeof(x->engine));
    history_text(q, 3, x->name, sizeof(x->name));
    history_text(q, 4, x->unit, sizeof(x->unit));
    x->exact = sqlite3_column_int(q, 5) != 0;
    x->higher = sqlite3_column_int(q, 6) != 0;
}

int history_series(struct history *h, struct history_series **out, uint32_t *n,
                   struct fsdp_error *error)
{
    struct rows r = {.size = sizeof(**out), .take = take_series};
    int status = collect(h,
                         "SELECT id, machine, engine, name, unit, exact, "
                         "higher FROM series "
                         "ORDER BY machine, engine, name, unit",
                         0, &r, error);

    *out = r.array;
    *n = r.n;
    return status;
}

int history_has(struct history *h, const struct history_series *s, int64_t run,
                bool *has, struct fsdp_error *error)
{
    sqlite3_stmt *q;
    int status = history_prepare(
        h,
        s->exact ? "SELECT 1 FROM exact WHERE series = ? AND run = ?"
                 : "SELECT 1 FROM timed WHERE series = ? AND run = ?",
        &q, error);

    *has = false;
    if (status == FSDP_OK && (sqlite3_bind_int64(q, 1, s->id) != SQLITE_OK ||
                              sqlite3_bind_int64(q, 2, run) != SQLITE_OK)) {
        status = history_fail(h, error);
    }
    if (status == FSDP_OK) {
        status = history_step(h, q, has, error);
    }
    (void)sqlite3_finalize(q);
    return status;
}

static void take_exact(sqlite3_stmt *q, void *row)
{
    struct history_exact *x = row;

    x->run = sqlite3_column_int64(q, 0);
    x->bundle = sqlite3_column_int64(q, 1);
}

int history_exact(struct history *h, int64_t series, struct history_exact **out,
                  uint32_t *n, struct fsdp_error *error)
{
    struct rows r = {.size = sizeof(**out), .take = take_exact};
    int status = collect(h,
                         "SELECT run, bundle FROM exact WHERE series = ? "
                         "ORDER BY run",
                         series, &r, error);

    *out = r.array;
    *n = r.n;
    return status;
}

static void take_timed(sqlite3_stmt *q, void *row)
{
    struct history_timed *x = row;

    x->run = sqlite3_column_int64(q, 0);
    x->median = sqlite3_column_double(q, 1);
    x->p10 = sqlite3_column_double(q, 2);
    x->p90 = sqlite3_column_double(q, 3);
    x->n_samples = (uint32_t)sqlite3_column_int(q, 4);
}

int history_timed(struct history *h, int64_t series, struct history_timed **out,
                  uint32_t *n, struct fsdp_error *error)
{
    struct rows r = {.size = sizeof(**out), .take = take_timed};
    int status = collect(h,
                         "SELECT run, median, p10, p90, n FROM timed "
                         "WHERE series = ? ORDER BY run",
                         series, &r, error);

    *out = r.array;
    *n = r.n;
    for (uint32_t i = 0; status == FSDP_OK && i < r.n; i++) {
        const struct history_timed *x = &(*out)[i];

        if (!isfinite(x->median) || !isfinite(x->p10) || !isfinite(x->p90)) {
            status = record_fail(error, FSDP_ERR_FORMAT, "track",
                                 "%s: is damaged: a median that is no number",
                                 h->path);
        }
    }
    if (status != FSDP_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return status;
}

int history_bundle(struct history *h, int64_t bundle, struct figures *out,
                   struct fsdp_error *error)
{
    struct record_json j = {.file = h->path, .error = error};
    sqlite3_stmt *q;
    json_t *o = NULL;
    bool row = false;
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(
        history_prepare(h, "SELECT text FROM bundle WHERE id = ?", &q, error));
    if (sqlite3_bind_int64(q, 1, bundle) != SQLITE_OK) {
        status = history_fail(h, error);
    } else {
        status = history_step(h, q, &row, error);
    }
    if (status == FSDP_OK && !row) {
        status = record_fail(error, FSDP_ERR_FORMAT, "track",
                             "%s: is damaged: figures are missing", h->path);
    }
    if (status == FSDP_OK) {
        const char *text = (const char *)sqlite3_column_text(q, 0);

        text = text ? text : "";
        o = strict_load(&j, text, strlen(text));
        status = o ? figures_read(&j, o, out) : j.status;
    }
    json_decref(o);
    (void)sqlite3_finalize(q);
    return status;
}

static void take_accepted(sqlite3_stmt *q, void *row)
{
    struct history_accepted *x = row;

    x->run = sqlite3_column_int64(q, 0);
    x->date = sqlite3_column_int64(q, 1);
    history_text(q, 2, x->engine, sizeof(x->engine));
    history_text(q, 3, x->name, sizeof(x->name));
    history_text(q, 4, x->figure, sizeof(x->figure));
    history_text(q, 5, x->reason, sizeof(x->reason));
}

int history_accepted(struct history *h, struct history_accepted **out,
                     uint32_t *n, struct fsdp_error *error)
{
    struct rows r = {.size = sizeof(**out), .take = take_accepted};
    int status = collect(h,
                         "SELECT run, date, engine, name, figure, reason "
                         "FROM accepted ORDER BY run, id",
                         0, &r, error);

    *out = r.array;
    *n = r.n;
    return status;
}
