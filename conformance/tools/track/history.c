/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - opens the database: makes it, or makes sure that it is one of
 * this program and version.
 *
 * The journal is SQLite's ordinary one, so that between commands the history
 * is a single file that a pipeline can cache and carry.
 */
#include "tools/track/history_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    APPLICATION = 0x46545243, /* "FTRC" */
    WAIT_MS = 60000           /* for another process that adds */
};

static const char schema[] =
    "CREATE TABLE machine(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,"
    " text TEXT NOT NULL);"
    "CREATE TABLE run(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " digest TEXT NOT NULL UNIQUE, commit_id TEXT NOT NULL,"
    " date INTEGER NOT NULL, machine INTEGER NOT NULL REFERENCES machine);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY,"
    " machine INTEGER NOT NULL REFERENCES machine, engine TEXT NOT NULL,"
    " name TEXT NOT NULL, unit TEXT NOT NULL, exact INTEGER NOT NULL,"
    " higher INTEGER NOT NULL, UNIQUE(machine, engine, name, unit));"
    "CREATE TABLE bundle(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE,"
    " text TEXT NOT NULL);"
    "CREATE TABLE exact(series INTEGER NOT NULL REFERENCES series,"
    " run INTEGER NOT NULL REFERENCES run,"
    " bundle INTEGER NOT NULL REFERENCES bundle,"
    " PRIMARY KEY(series, run)) WITHOUT ROWID;"
    "CREATE TABLE timed(series INTEGER NOT NULL REFERENCES series,"
    " run INTEGER NOT NULL REFERENCES run, median REAL NOT NULL,"
    " p10 REAL NOT NULL, p90 REAL NOT NULL, n INTEGER NOT NULL,"
    " samples BLOB NOT NULL, PRIMARY KEY(series, run)) WITHOUT ROWID;"
    "CREATE TABLE accepted(id INTEGER PRIMARY KEY,"
    " run INTEGER NOT NULL REFERENCES run, date INTEGER NOT NULL,"
    " engine TEXT NOT NULL, name TEXT NOT NULL, figure TEXT NOT NULL,"
    " reason TEXT NOT NULL);"
    "PRAGMA application_id = 1179931203;" /* APPLICATION */
    "PRAGMA user_version = 1;";

int history_fail(struct history *h, struct fsdp_error *error)
{
    int code = sqlite3_errcode(h->db) & 0xff;

    switch (code) {
    case SQLITE_NOTADB:
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%s: is no database", h->path);
    case SQLITE_CORRUPT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* a table that is missing or another */
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%s: is damaged: %s", h->path,
                           sqlite3_errmsg(h->db));
    case SQLITE_NOMEM:
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    case SQLITE_BUSY:
        return record_fail(error, FSDP_ERR_IO, "track",
                           "%s: another process has held it for %d s", h->path,
                           WAIT_MS / 1000);
    default:
        return record_fail(error, FSDP_ERR_IO, "track",
                           "%s: nothing was changed: %s", h->path,
                           sqlite3_errmsg(h->db));
    }
}

int history_do(struct history *h, const char *sql, struct fsdp_error *error)
{
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? FSDP_OK
               : history_fail(h, error);
}

int history_prepare(struct history *h, const char *sql, sqlite3_stmt **out,
                    struct fsdp_error *error)
{
    *out = NULL;
    return sqlite3_prepare_v2(h->db, sql, -1, out, NULL) == SQLITE_OK
               ? FSDP_OK
               : history_fail(h, error);
}

int history_step(struct history *h, sqlite3_stmt *q, bool *row,
                 struct fsdp_error *error)
{
    int code = sqlite3_step(q);

    *row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE ? FSDP_OK
                                                     : history_fail(h, error);
}

void history_text(sqlite3_stmt *q, int column, char *out, size_t room)
{
    const unsigned char *text = sqlite3_column_text(q, column);

    snprintf(out, room, "%s", text ? (const char *)text : "");
}

static int pragma(struct history *h, const char *sql, int64_t *out,
                  struct fsdp_error *error)
{
    sqlite3_stmt *q;
    bool row = false;
    int status = history_prepare(h, sql, &q, error);

    if (status == FSDP_OK) {
        status = history_step(h, q, &row, error);
        *out = row ? sqlite3_column_int64(q, 0) : 0;
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* An empty file is as good as none: both are made into a history, by one of
 * all the processes that want to. */
static int make_or_check(struct history *h, enum history_mode mode,
                         struct fsdp_error *error)
{
    int64_t application;
    int64_t version;
    int64_t tables;

    FSDP_TRY(pragma(h, "PRAGMA application_id", &application, error));
    FSDP_TRY(pragma(h, "PRAGMA user_version", &version, error));
    FSDP_TRY(pragma(h, "SELECT count(*) FROM sqlite_master", &tables, error));
    if (application == 0 && version == 0 && tables == 0) {
        return mode == HISTORY_MAKE
                   ? history_do(h, schema, error)
                   : record_fail(error, FSDP_ERR_FORMAT, "track",
                                 "%s: is empty", h->path);
    }
    if (application != APPLICATION) {
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%s: is a database of another program", h->path);
    }
    if (version != HISTORY_VERSION) {
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%s: is a history of version %lld; this program "
                           "knows %d",
                           h->path, (long long)version, HISTORY_VERSION);
    }
    return FSDP_OK;
}

static int open_database(struct history *h, const char *path,
                         enum history_mode mode, struct fsdp_error *error)
{
    int flags = mode == HISTORY_MAKE
                    ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                    : SQLITE_OPEN_READWRITE;
    struct stat s;

    if (stat(path, &s) != 0 && (errno != ENOENT || mode != HISTORY_MAKE)) {
        return record_fail(error, FSDP_ERR_IO, "track", "%s: %s", h->path,
                           strerror(errno));
    }
    /* A reader, too, may have to roll back what a writer that died left; one
     * that may not write can still read. */
    if (sqlite3_open_v2(path, &h->db, flags, NULL) != SQLITE_OK) {
        return record_fail(error, FSDP_ERR_IO, "track", "%s: %s", h->path,
                           h->db ? sqlite3_errmsg(h->db) : "out of memory");
    }
    (void)sqlite3_busy_timeout(h->db, WAIT_MS);
    (void)sqlite3_db_config(h->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (mode != HISTORY_MAKE) {
        return make_or_check(h, mode, error);
    }
    FSDP_TRY(history_do(h, "BEGIN IMMEDIATE", error));
    FSDP_TRY(make_or_check(h, mode, error));
    return history_do(h, "COMMIT", error);
}

int history_open(const char *path, enum history_mode mode, struct history **out,
                 struct fsdp_error *error)
{
    struct history *h = calloc(1, sizeof(*h));
    size_t length = strlen(path);
    int status;

    *out = NULL;
    if (!h) {
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    snprintf(h->path, sizeof(h->path), "%s",
             length > 90 ? path + length - 90 : path);
    status = open_database(h, path, mode, error);
    if (status != FSDP_OK) {
        history_close(h);
        return status;
    }
    *out = h;
    return FSDP_OK;
}

void history_close(struct history *h)
{
    if (h) {
        (void)sqlite3_close(h->db); /* rolls back what is open */
        free(h);
    }
}
