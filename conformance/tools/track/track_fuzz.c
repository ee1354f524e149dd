/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_fuzz.c - the entry of a fuzzer to what `track` reads: files of results,
 * and histories, of which bytes are others, or values: SQLite takes any type
 * in any column, so that a history may be a sound database and say anything.
 * The first byte says which.
 */
#include "checkpoint/fuzzing.h"
#include "record/record_internal.h"
#include "tools/track/history_internal.h"
#include "tools/track/track_testing.h"

enum {
    RESULTS = 0,
    BYTES,
    VALUES,
    N_KINDS,
    EDIT_BYTES = 4,
    MOST_EDITS = 64,
    MOST_READ = 64 /* bundles and series of one history */
};

static char folder[64], file[96], database[96];
static char *whole; /* the history that others are made of */
static size_t n_whole;

static bool taken(int status, const struct fsdp_error *error)
{
    require(status == FSDP_OK || error->message[0] != '\0');
    return status == FSDP_OK;
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wbe");

    require(f && (n == 0 || fwrite(p, 1, n, f) == n) && fclose(f) == 0);
}

static void leave(void)
{
    (void)unlink(file);
    (void)unlink(database);
    (void)rmdir(folder);
}

/* Two runs and an accepted change. */
static void make_history(void)
{
    const struct record_source from = {.where = "fuzz", .most = 1 << 24};
    const struct history_accepted accepted = {
        .run = 1, .engine = "*", .name = "*", .figure = "*", .reason = "seen"};
    struct fsdp_error error = {0};
    struct history *h;

    snprintf(folder, sizeof(folder), "/tmp/track-fuzz-XXXXXX");
    require(mkdtemp(folder) && atexit(leave) == 0);
    snprintf(file, sizeof(file), "%s/results", folder);
    snprintf(database, sizeof(database), "%s/history", folder);
    require(history_open(database, HISTORY_MAKE, &h, &error) == FSDP_OK);
    for (uint32_t i = 1; i < 3; i++) {
        const struct track_made made = {
            .gathers = 4, .peak = 100 * i, .speed = 3.5, .commit = i};
        struct results r;
        int64_t id;
        bool again;

        track_make(&r, &made);
        require(history_add(h, &r, &id, &again, &error) == FSDP_OK);
        results_release(&r);
    }
    require(history_accept(h, &accepted, &error) == FSDP_OK);
    history_close(h);
    require(record_read_file(database, &from, &whole, &n_whole, &error) ==
            FSDP_OK);
}

static void fuzz_results(const uint8_t *data, size_t bytes)
{
    struct fsdp_error error = {0};
    struct results r = {0};

    write_file(file, data, bytes);
    if (taken(results_read(file, 'h', &r, &error), &error)) {
        for (uint32_t i = 0; i < r.n_timed; i++) {
            require(r.timed[i].name[0] != '\0' && r.timed[i].n_samples > 0);
        }
    }
    results_release(&r);
}

static void read_series(struct history *h, const struct history_series *s)
{
    struct fsdp_error error = {0};
    struct history_exact *exact = NULL;
    struct history_timed *timed = NULL;
    uint32_t n = 0;
    bool has;

    (void)taken(history_has(h, s, 1, &has, &error), &error);
    if (taken(history_exact(h, s->id, &exact, &n, &error), &error)) {
        for (uint32_t i = 0; i < n && i < MOST_READ; i++) {
            struct fsdp_error bad = {0};
            struct figures f = {0};

            (void)taken(history_bundle(h, exact[i].bundle, &f, &bad), &bad);
            figures_release(&f);
        }
        free(exact);
    }
    memset(&error, 0, sizeof(error));
    if (taken(history_timed(h, s->id, &timed, &n, &error), &error)) {
        free(timed);
    }
}

/* All that commands read. */
static void read_history(void)
{
    struct fsdp_error error = {0};
    struct history_accepted *accepted = NULL;
    struct history_series *series = NULL;
    struct history_run *runs = NULL;
    struct history *h;
    uint32_t n = 0;

    if (!taken(history_open(database, HISTORY_READ, &h, &error), &error)) {
        return;
    }
    if (taken(history_runs(h, &runs, &n, &error), &error)) {
        free(runs);
    }
    memset(&error, 0, sizeof(error));
    if (taken(history_series(h, &series, &n, &error), &error)) {
        for (uint32_t i = 0; i < n && i < MOST_READ; i++) {
            read_series(h, &series[i]);
        }
        free(series);
    }
    memset(&error, 0, sizeof(error));
    if (taken(history_accepted(h, &accepted, &n, &error), &error)) {
        free(accepted);
    }
    history_close(h);
}

/* Each edit: a place, and what is there then. */
static void fuzz_bytes(const uint8_t *data, size_t bytes)
{
    char *p = malloc(n_whole);

    require(p != NULL);
    memcpy(p, whole, n_whole);
    for (size_t i = 0; i < MOST_EDITS && (i + 1) * EDIT_BYTES <= bytes; i++) {
        const uint8_t *e = data + i * EDIT_BYTES;

        p[(e[0] | (size_t)e[1] << 8 | (size_t)e[2] << 16) % n_whole] =
            (char)e[3];
    }
    write_file(database, p, n_whole);
    free(p);
    read_history();
}

static void bind(sqlite3_stmt *q, uint8_t kind, const uint8_t *p, int n)
{
    int64_t number = 0;
    double real;

    memcpy(&number, p, (size_t)n < sizeof(number) ? (size_t)n : sizeof(number));
    memcpy(&real, &number, sizeof(real));
    switch (kind % 5) {
    case 0:
        require(sqlite3_bind_int64(q, 1, number) == SQLITE_OK);
        break;
    case 1:
        require(sqlite3_bind_double(q, 1, real) == SQLITE_OK);
        break;
    case 2:
        require(sqlite3_bind_blob(q, 1, p, n, SQLITE_TRANSIENT) == SQLITE_OK);
        break;
    case 3:
        break; /* NULL */
    default:
        require(sqlite3_bind_text(q, 1, (const char *)p, n, SQLITE_TRANSIENT) ==
                SQLITE_OK);
    }
}

/* A column of a table, a type, and the rest is the value. */
static void fuzz_values(const uint8_t *data, size_t bytes)
{
    static const char *const column[] = {
        "machine SET hash",    "machine SET text",   "run SET digest",
        "run SET commit_id",   "run SET date",       "run SET machine",
        "series SET machine",  "series SET engine",  "series SET name",
        "series SET unit",     "series SET exact",   "series SET higher",
        "bundle SET text",     "exact SET bundle",   "exact SET run",
        "timed SET run",       "timed SET median",   "timed SET p10",
        "timed SET p90",       "timed SET n",        "timed SET samples",
        "accepted SET run",    "accepted SET date",  "accepted SET engine",
        "accepted SET figure", "accepted SET reason"};
    const size_t n = sizeof(column) / sizeof(column[0]);
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    char sql[96];

    if (bytes < 2) {
        return;
    }
    write_file(database, whole, n_whole);
    require(sqlite3_open(database, &db) == SQLITE_OK);
    require(sqlite3_exec(db, "PRAGMA synchronous=OFF;PRAGMA journal_mode=OFF;",
                         NULL, NULL, NULL) == SQLITE_OK);
    snprintf(sql, sizeof(sql), "UPDATE OR IGNORE %s = ?1", column[data[0] % n]);
    require(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK);
    bind(q, data[1], data + 2, (int)bytes - 2);
    (void)sqlite3_step(q); /* it may break a rule of the table */
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    read_history();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const kind[N_KINDS])(const uint8_t *, size_t) = {
        [RESULTS] = fuzz_results, [BYTES] = fuzz_bytes, [VALUES] = fuzz_values};

    if (!whole) {
        make_history();
    }
    if (bytes > 0) {
        kind[data[0] % N_KINDS](data + 1, bytes - 1);
    }
    return 0;
}
