/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rerun.c - makes the command that runs a case again, from options or from the
 * file that was kept of them. A file from elsewhere can have any content; only
 * values of known options are read from it, and each is quoted as one word for
 * a shell.
 */
#include "cli/play/rerun.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    N_OPTIONS = 11,
    VERSION = 1
};

/* The options that decide what a case shows, in the order of a command. */
static const char *const option[N_OPTIONS] = {
    "adapter", "engine", "world",  "isolate", "wrap",        "timeout",
    "mutant",  "text",   "script", "seed",    "sample-ranks"};
enum {
    ADAPTER,
    ENGINE,
    WORLD,
    ISOLATE, /* has no value on a command line */
    WRAP,
    TIMEOUT,
    MUTANT,
    TEXT,
    SCRIPT,
    SEED,
    SAMPLE_RANKS
};

struct values {
    const char *of[N_OPTIONS]; /* NULL: was not given */
    char script[RERUN_BYTES], seed[16], timeout[16], sample[16];
    char path[N_OPTIONS][4096]; /* the absolute paths that `of` points to */
};

/* Appends ` --OPTION VALUE`; the value as a shell takes it for one word. */
static void add_word(char text[RERUN_BYTES], const char *name,
                     const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";
    size_t n = strlen(text);

    if (*value && value[strspn(value, plain)] == '\0') {
        snprintf(text + n, RERUN_BYTES - n, " --%s %s", name, value);
        return;
    }
    snprintf(text + n, RERUN_BYTES - n, " --%s '", name);
    for (; *value; value++) {
        const char one[2] = {*value, '\0'};

        n = strlen(text);
        snprintf(text + n, RERUN_BYTES - n, "%s",
                 *value == '\'' ? "'\\''" : one);
    }
    n = strlen(text);
    snprintf(text + n, RERUN_BYTES - n, "'");
}

/* Appends an engine; a comma in a path gets a backslash, since the option is a
 * list. */
static void add_engine(char text[RERUN_BYTES], const char *name,
                       const char *path)
{
    char escaped[RERUN_BYTES];
    size_t n = 0;

    for (; *path && n + 2 < sizeof(escaped); path++) {
        if (*path == ',') {
            escaped[n++] = '\\';
        }
        escaped[n++] = *path;
    }
    escaped[n] = '\0';
    add_word(text, name, escaped);
}

static void print(const struct values *v, char text[RERUN_BYTES])
{
    size_t n;

    snprintf(text, RERUN_BYTES, "fsdp-cts run");
    for (int i = 0; i < N_OPTIONS; i++) {
        if (v->of[i] && i == ISOLATE) {
            n = strlen(text);
            snprintf(text + n, RERUN_BYTES - n, " --%s", option[i]);
        } else if (v->of[i]) {
            (i == ENGINE ? add_engine : add_word)(text, option[i], v->of[i]);
        }
    }
    n = strlen(text);
    snprintf(text + n, RERUN_BYTES - n, " --case ");
}

/* A script that was given as text, in one line: the end of a line becomes the
 * end of an action, and comments are left out. The name of a file stays as it
 * is. */
static const char *one_line(const char *script, char line[RERUN_BYTES])
{
    size_t n = 0;

    if (!strchr(script, '\n')) {
        return script;
    }
    for (; *script && n + 1 < RERUN_BYTES; script++) {
        if (*script == '#') {
            script += strcspn(script, "\n");
        }
        if (*script == '\0') {
            break;
        }
        line[n++] = (char)(*script == '\n' ? ';' : *script);
    }
    line[n] = '\0';
    return line;
}

static void collect(const struct arguments *a, const char *engine,
                    struct values *v)
{
    *v = (struct values){
        .of = {[ADAPTER] = a->adapter,
               [ENGINE] = a->adapter ? NULL : engine,
               [WORLD] = a->world == WORLD_LOCAL ? NULL : world_names[a->world],
               [ISOLATE] = a->isolate ? "yes" : NULL,
               [WRAP] = a->wrap,
               [MUTANT] = a->mutant,
               [TEXT] = a->text}};
    if (a->script) {
        v->of[SCRIPT] = one_line(a->script, v->script);
    }
    if (a->timeout_ms != ARGUMENTS_TIMEOUT_MS) {
        snprintf(v->timeout, sizeof(v->timeout), "%u", a->timeout_ms / 1000);
        v->of[TIMEOUT] = v->timeout;
    }
    if (a->seed) {
        snprintf(v->seed, sizeof(v->seed), "%u", a->seed);
        v->of[SEED] = v->seed;
    }
    if (a->sample_ranks) {
        snprintf(v->sample, sizeof(v->sample), "%u", a->sample_ranks);
        v->of[SAMPLE_RANKS] = v->sample;
    }
}

void rerun_make(const struct arguments *a, const char *engine,
                char text[RERUN_BYTES])
{
    struct values v;

    collect(a, engine, &v);
    print(&v, text);
}

/* Makes paths absolute, as the command may be run in another folder. An
 * engine's name without a slash is the suite's own; a text that names no file
 * is a script's id or text. */
static void make_absolute(struct values *v)
{
    static const int files[] = {ENGINE, TEXT, SCRIPT};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char **path = &v->of[files[i]];
        const bool file =
            *path && (strchr(*path, '/') || files[i] == TEXT ||
                      (files[i] == SCRIPT && strncmp(*path, "script", 6) != 0));
        char *whole = file ? realpath(*path, NULL) : NULL;

        if (whole && strlen(whole) < sizeof(v->path[0])) {
            memcpy(v->path[files[i]], whole, strlen(whole) + 1);
            *path = v->path[files[i]];
        }
        free(whole);
    }
}

static void path_of(const char *records, char path[4096])
{
    snprintf(path, 4096, "%.4000s/rerun.json", records);
}

int rerun_keep(const struct arguments *a, const char *engine,
               const char *records, struct fsdp_error *error)
{
    json_t *o = json_object();
    struct values v;
    char path[4096];
    char partial[4200];
    int failed = json_object_set_new(o, "version", json_integer(VERSION));

    collect(a, engine, &v);
    make_absolute(&v);
    path_of(records, path);
    snprintf(partial, sizeof(partial), "%s.partial", path);
    for (int i = 0; i < N_OPTIONS && !failed; i++) {
        /* JSON has no value that is not UTF-8; then no engine is named. */
        json_t *value = v.of[i] ? json_string(v.of[i]) : NULL;

        failed = value ? json_object_set_new(o, option[i], value) : 0;
    }
    errno = failed ? ENOMEM : 0;
    failed = failed || json_dump_file(o, partial, JSON_INDENT(1)) != 0 ||
             rename(partial, path) != 0;
    json_decref(o);
    if (failed) {
        error->status = FSDP_ERR_IO;
        snprintf(error->message, sizeof(error->message), "%.150s: %s", path,
                 errno ? strerror(errno) : "cannot be written");
        unlink(partial);
    }
    return failed ? FSDP_ERR_IO : FSDP_OK;
}

/* Takes the options, each of which must be a known one with a text; false: it
 * is something else. */
static bool take_options(const json_t *o, struct values *v)
{
    if (json_integer_value(json_object_get(o, "version")) != VERSION) {
        return false;
    }
    for (int i = 0; i < N_OPTIONS; i++) {
        const json_t *value = json_object_get(o, option[i]);

        if (value && !json_is_string(value)) {
            return false;
        }
        v->of[i] = json_string_value(value);
    }
    return true;
}

void rerun_find(const char *records, char text[RERUN_BYTES])
{
    struct values v = {.of = {NULL}};
    const struct values none = {.of = {NULL}};
    char path[4096];
    json_t *o;

    path_of(records, path);
    o = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    print(take_options(o, &v) ? &v : &none, text);
    json_decref(o);
}
