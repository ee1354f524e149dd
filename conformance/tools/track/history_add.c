/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history_add.c - adds a run, or an acceptance, in one transaction: all of it
 * is there afterwards, or nothing.
 */
#include "tools/track/history_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The statements of one addition. */
struct adder {
    struct history *h;
    struct fsdp_error *error;
    sqlite3_stmt *find_series, *make_series, *find_bundle, *make_bundle;
    sqlite3_stmt *exact, *timed;
    int64_t run, machine;
};

static int bind_text(struct adder *a, sqlite3_stmt *q, int at, const char *text)
{
    return sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT) == SQLITE_OK
               ? FSDP_OK
               : history_fail(a->h, a->error);
}

static int bind_id(struct adder *a, sqlite3_stmt *q, int at, int64_t id)
{
    return sqlite3_bind_int64(q, at, id) == SQLITE_OK
               ? FSDP_OK
               : history_fail(a->h, a->error);
}

static int bind_real(struct adder *a, sqlite3_stmt *q, int at, double x)
{
    return sqlite3_bind_double(q, at, x) == SQLITE_OK
               ? FSDP_OK
               : history_fail(a->h, a->error);
}

/* Runs a statement without rows. */
static int run_once(struct adder *a, sqlite3_stmt *q)
{
    bool row;

    FSDP_TRY(history_step(a->h, q, &row, a->error));
    return sqlite3_reset(q) == SQLITE_OK ? FSDP_OK
                                         : history_fail(a->h, a->error);
}

/* The first column of the first row; 0: there is none. */
static int find_id(struct adder *a, sqlite3_stmt *q, int64_t *id)
{
    bool row;

    FSDP_TRY(history_step(a->h, q, &row, a->error));
    *id = row ? sqlite3_column_int64(q, 0) : 0;
    return FSDP_OK;
}

static int prepare(struct adder *a)
{
    const struct {
        sqlite3_stmt **q;
        const char *sql;
    } all[] = {
        {&a->find_series, "SELECT id, exact, higher FROM series WHERE machine "
                          "= ? AND engine = ? AND name = ? AND unit = ?"},
        {&a->make_series, "INSERT INTO series(machine, engine, name, unit, "
                          "exact, higher) VALUES(?, ?, ?, ?, ?, ?)"},
        {&a->find_bundle, "SELECT id FROM bundle WHERE digest = ?"},
        {&a->make_bundle, "INSERT INTO bundle(digest, text) VALUES(?, ?)"},
        {&a->exact, "INSERT INTO exact(series, run, bundle) VALUES(?, ?, ?)"},
        {&a->timed, "INSERT INTO timed(series, run, median, p10, p90, n, "
                    "samples) VALUES(?, ?, ?, ?, ?, ?, ?)"},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        FSDP_TRY(history_prepare(a->h, all[i].sql, all[i].q, a->error));
    }
    return FSDP_OK;
}

static int bind_series(struct adder *a, sqlite3_stmt *q, const char *engine,
                       const char *name, const char *unit)
{
    FSDP_TRY(bind_id(a, q, 1, a->machine));
    FSDP_TRY(bind_text(a, q, 2, engine));
    FSDP_TRY(bind_text(a, q, 3, name));
    return bind_text(a, q, 4, unit);
}

static int series(struct adder *a, const char *engine, const char *name,
                  const char *unit, bool exact, bool higher, int64_t *id)
{
    sqlite3_stmt *q = a->find_series;
    bool same;

    FSDP_TRY(bind_series(a, q, engine, name, unit));
    FSDP_TRY(find_id(a, q, id));
    same = *id == 0 || ((sqlite3_column_int(q, 1) != 0) == exact &&
                        (sqlite3_column_int(q, 2) != 0) == higher);
    (void)sqlite3_reset(q);
    if (!same) {
        return record_fail(a->error, FSDP_ERR_FORMAT, "track",
                           "%.100s in %s: the history has it with another "
                           "direction",
                           name, unit);
    }
    if (*id != 0) {
        return FSDP_OK;
    }
    q = a->make_series;
    FSDP_TRY(bind_series(a, q, engine, name, unit));
    FSDP_TRY(bind_id(a, q, 5, exact ? 1 : 0));
    FSDP_TRY(bind_id(a, q, 6, higher ? 1 : 0));
    FSDP_TRY(run_once(a, q));
    *id = sqlite3_last_insert_rowid(a->h->db);
    return FSDP_OK;
}

static int bundle(struct adder *a, const char *text, int64_t *id)
{
    char digest[TRACK_DIGEST_BYTES];

    track_digest(text, strlen(text), digest);
    FSDP_TRY(bind_text(a, a->find_bundle, 1, digest));
    FSDP_TRY(find_id(a, a->find_bundle, id));
    (void)sqlite3_reset(a->find_bundle);
    if (*id != 0) {
        return FSDP_OK;
    }
    FSDP_TRY(bind_text(a, a->make_bundle, 1, digest));
    FSDP_TRY(bind_text(a, a->make_bundle, 2, text));
    FSDP_TRY(run_once(a, a->make_bundle));
    *id = sqlite3_last_insert_rowid(a->h->db);
    return FSDP_OK;
}

static int add_exact(struct adder *a, const struct exact_result *x)
{
    int64_t id;
    int64_t text;

    FSDP_TRY(series(a, x->engine, x->name, "", true, false, &id));
    FSDP_TRY(bundle(a, x->text, &text));
    FSDP_TRY(bind_id(a, a->exact, 1, id));
    FSDP_TRY(bind_id(a, a->exact, 2, a->run));
    FSDP_TRY(bind_id(a, a->exact, 3, text));
    return run_once(a, a->exact);
}

static int add_timed(struct adder *a, const struct timed_result *x)
{
    const int bytes = (int)(x->n_samples * sizeof(*x->sample));
    int64_t id;

    FSDP_TRY(series(a, x->engine, x->name, x->unit, false, x->higher, &id));
    FSDP_TRY(bind_id(a, a->timed, 1, id));
    FSDP_TRY(bind_id(a, a->timed, 2, a->run));
    FSDP_TRY(bind_real(a, a->timed, 3, x->median));
    FSDP_TRY(bind_real(a, a->timed, 4, x->p10));
    FSDP_TRY(bind_real(a, a->timed, 5, x->p90));
    FSDP_TRY(bind_id(a, a->timed, 6, x->n_samples));
    if (sqlite3_bind_blob(a->timed, 7, x->sample, bytes, SQLITE_STATIC) !=
        SQLITE_OK) {
        return history_fail(a->h, a->error);
    }
    return run_once(a, a->timed);
}

/* Same text, same results: of everything that was measured. */
static int digest_of(const struct results *r, const char *machine,
                     char out[TRACK_DIGEST_BYTES])
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    bool ok = f != NULL;

    if (!ok) {
        return FSDP_ERR_NOMEM;
    }
    ok = fprintf(f, "%s %s %lld\n", r->commit, machine, (long long)r->date) > 0;
    for (uint32_t i = 0; i < r->n_exact; i++) {
        const struct exact_result *x = &r->exact[i];

        ok = ok && fprintf(f, "%s\n%s\n%s\n", x->engine, x->name, x->text) > 0;
    }
    for (uint32_t i = 0; i < r->n_timed; i++) {
        const struct timed_result *x = &r->timed[i];

        ok = ok && fprintf(f, "%s\n%s\n%s\n", x->engine, x->name, x->unit) > 0;
        for (uint32_t k = 0; k < x->n_samples; k++) {
            ok = ok && fprintf(f, "%.17g\n", x->sample[k]) > 0;
        }
    }
    ok = fclose(f) == 0 && ok;
    if (ok) {
        track_digest(text, bytes, out);
    }
    free(text);
    return ok ? FSDP_OK : FSDP_ERR_NOMEM;
}

static int find_machine(struct adder *a, const char *hash, const char *text)
{
    sqlite3_stmt *q;
    int status;

    FSDP_TRY(history_prepare(a->h,
                             "INSERT OR IGNORE INTO machine(hash, text) "
                             "VALUES(?, ?)",
                             &q, a->error));
    status = bind_text(a, q, 1, hash);
    status = status == FSDP_OK ? bind_text(a, q, 2, text) : status;
    status = status == FSDP_OK ? run_once(a, q) : status;
    (void)sqlite3_finalize(q);
    FSDP_TRY(status);
    FSDP_TRY(history_prepare(a->h, "SELECT id FROM machine WHERE hash = ?", &q,
                             a->error));
    status = bind_text(a, q, 1, hash);
    status = status == FSDP_OK ? find_id(a, q, &a->machine) : status;
    (void)sqlite3_finalize(q);
    return status;
}

/* The run's number; *again: it was there. */
static int make_run(struct adder *a, const struct results *r,
                    const char *digest, bool *again)
{
    sqlite3_stmt *q;
    int status;

    FSDP_TRY(history_prepare(a->h, "SELECT id FROM run WHERE digest = ?", &q,
                             a->error));
    status = bind_text(a, q, 1, digest);
    status = status == FSDP_OK ? find_id(a, q, &a->run) : status;
    (void)sqlite3_finalize(q);
    FSDP_TRY(status);
    *again = a->run != 0;
    if (*again) {
        return FSDP_OK;
    }
    FSDP_TRY(history_prepare(a->h,
                             "INSERT INTO run(digest, commit_id, date, "
                             "machine) VALUES(?, ?, ?, ?)",
                             &q, a->error));
    status = bind_text(a, q, 1, digest);
    status = status == FSDP_OK ? bind_text(a, q, 2, r->commit) : status;
    status = status == FSDP_OK ? bind_id(a, q, 3, r->date) : status;
    status = status == FSDP_OK ? bind_id(a, q, 4, a->machine) : status;
    status = status == FSDP_OK ? run_once(a, q) : status;
    (void)sqlite3_finalize(q);
    a->run = sqlite3_last_insert_rowid(a->h->db);
    return status;
}

static int add_all(struct adder *a, const struct results *r, bool *again)
{
    char digest[TRACK_DIGEST_BYTES];
    char text[MACHINE_TEXT_BYTES];
    char hash[MACHINE_HASH_BYTES];

    machine_text(&r->machine, text);
    machine_hash(text, hash);
    if (digest_of(r, hash, digest) != FSDP_OK) {
        return record_fail(a->error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    FSDP_TRY(find_machine(a, hash, text));
    FSDP_TRY(make_run(a, r, digest, again));
    if (*again) {
        return FSDP_OK;
    }
    FSDP_TRY(prepare(a));
    for (uint32_t i = 0; i < r->n_exact; i++) {
        FSDP_TRY(add_exact(a, &r->exact[i]));
    }
    for (uint32_t i = 0; i < r->n_timed; i++) {
        FSDP_TRY(add_timed(a, &r->timed[i]));
    }
    return FSDP_OK;
}

int history_add(struct history *h, const struct results *r, int64_t *id,
                bool *again, struct fsdp_error *error)
{
    struct adder a = {.h = h, .error = error};
    int status = history_do(h, "BEGIN IMMEDIATE", error);

    *again = false;
    if (status != FSDP_OK) {
        return status;
    }
    status = add_all(&a, r, again);
    (void)sqlite3_finalize(a.find_series);
    (void)sqlite3_finalize(a.make_series);
    (void)sqlite3_finalize(a.find_bundle);
    (void)sqlite3_finalize(a.make_bundle);
    (void)sqlite3_finalize(a.exact);
    (void)sqlite3_finalize(a.timed);
    if (status == FSDP_OK) {
        status = history_do(h, "COMMIT", error);
    }
    if (status != FSDP_OK) {
        struct fsdp_error ignored = {0};

        (void)history_do(h, "ROLLBACK", &ignored);
    }
    *id = a.run;
    return status;
}

int history_accept(struct history *h, const struct history_accepted *x,
                   struct fsdp_error *error)
{
    struct adder a = {.h = h, .error = error};
    sqlite3_stmt *q;
    int status;

    FSDP_TRY(history_prepare(h,
                             "INSERT INTO accepted(run, date, engine, name, "
                             "figure, reason) VALUES(?, ?, ?, ?, ?, ?)",
                             &q, error));
    status = bind_id(&a, q, 1, x->run);
    status = status == FSDP_OK ? bind_id(&a, q, 2, x->date) : status;
    status = status == FSDP_OK ? bind_text(&a, q, 3, x->engine) : status;
    status = status == FSDP_OK ? bind_text(&a, q, 4, x->name) : status;
    status = status == FSDP_OK ? bind_text(&a, q, 5, x->figure) : status;
    status = status == FSDP_OK ? bind_text(&a, q, 6, x->reason) : status;
    status = status == FSDP_OK ? run_once(&a, q) : status;
    (void)sqlite3_finalize(q);
    return status;
}
