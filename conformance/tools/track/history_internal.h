/* SPDX-License-Identifier: Apache-2.0 */
/* history_internal.h - shared by history*.c alone. */
#ifndef FSDP_CTS_HISTORY_INTERNAL_H
#define FSDP_CTS_HISTORY_INTERNAL_H

#include "tools/track/history.h"

#include <sqlite3.h>

struct history {
    sqlite3 *db;
    char path[200]; /* for messages */
};

/* The last error of SQLite, as a status and a sentence. */
int history_fail(struct history *h, struct fsdp_error *error);
/* Runs one or several statements without parameters or rows. */
int history_do(struct history *h, const char *sql, struct fsdp_error *error);
int history_prepare(struct history *h, const char *sql, sqlite3_stmt **out,
                    struct fsdp_error *error);
/* Steps to the next row; *row is false behind the last one. */
int history_step(struct history *h, sqlite3_stmt *q, bool *row,
                 struct fsdp_error *error);
/* Copies a text column; "" if it is missing or does not fit. */
void history_text(sqlite3_stmt *q, int column, char *out, size_t room);

#endif
