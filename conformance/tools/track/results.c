/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.c - reads files of results: finds out which format a file has, and
 * keeps what all of them have in common.
 */
#include "tools/track/results.h"
#include "tools/track/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FILE_MOST = 1 << 28
};

/* Room for one more, doubled whenever n is a power of two. */
static void *grown(void *array, uint32_t n, size_t size)
{
    if (n > 0 && (n & (n - 1)) != 0) {
        return array;
    }
    return realloc(array, (n == 0 ? 1 : 2 * (size_t)n) * size);
}

int results_add_exact(struct results *r, const struct exact_result *x,
                      struct fsdp_error *error)
{
    struct exact_result *all = grown(r->exact, r->n_exact, sizeof(*all));

    if (!all || !x->text) {
        free(x->text);
        r->exact = all ? all : r->exact;
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    r->exact = all;
    r->exact[r->n_exact++] = *x;
    return r->n_exact < RESULTS_MOST ? FSDP_OK
                                     : record_fail(error, FSDP_ERR_FORMAT,
                                                   "track", "too many results");
}

int results_add_timed(struct results *r, const struct timed_result *x,
                      struct fsdp_error *error)
{
    struct timed_result *all = grown(r->timed, r->n_timed, sizeof(*all));

    if (!all || !x->sample) {
        free(x->sample);
        r->timed = all ? all : r->timed;
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    r->timed = all;
    r->timed[r->n_timed++] = *x;
    return r->n_timed < RESULTS_MOST ? FSDP_OK
                                     : record_fail(error, FSDP_ERR_FORMAT,
                                                   "track", "too many results");
}

int results_set_commit(struct results *r, const char *commit, const char *file,
                       struct fsdp_error *error)
{
    size_t n = strlen(commit);

    if (n < 4 || n >= sizeof(r->commit) ||
        strspn(commit, "0123456789abcdef") != n) {
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%.80s: commit '%.70s': 4 to 64 digits of 0-9a-f "
                           "were expected",
                           file, commit);
    }
    if (r->commit[0] != '\0' && strcmp(r->commit, commit) != 0) {
        return record_fail(error, FSDP_ERR_FORMAT, "track",
                           "%.60s: of commit %.40s, where another file is of "
                           "%.40s",
                           file, commit, r->commit);
    }
    memcpy(r->commit, commit, n + 1);
    return FSDP_OK;
}

bool results_date(const char *text, int64_t *out)
{
    struct tm t = {.tm_isdst = 0};
    int hours = 0;
    int minutes = 0;
    char sign = 'Z';
    int end = 0;
    time_t seconds;

    /* Numbers of so few digits fit: NOLINTNEXTLINE(cert-err34-c) */
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon,
               &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec, &end) != 6 ||
        end != 19) {
        return false;
    }
    text += end;
    if (*text == '.') {
        text += 1 + strspn(text + 1, "0123456789");
    }
    sign = *text;
    if (sign == '+' || sign == '-') {
        /* NOLINTNEXTLINE(cert-err34-c): as above */
        if (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 ||
            end != 5 || text[6] != '\0' || hours < 0 || hours > 23 ||
            minutes < 0 || minutes > 59) {
            return false;
        }
    } else if (strcmp(text, "Z") != 0) {
        return false;
    }
    if (t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 ||
        t.tm_mday > 31 || t.tm_hour < 0 || t.tm_hour > 23 || t.tm_min < 0 ||
        t.tm_min > 59 || t.tm_sec < 0 || t.tm_sec > 60) {
        return false;
    }
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    seconds = timegm(&t);
    *out = (int64_t)seconds -
           (sign == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

static int by_exact_name(const void *a, const void *b)
{
    const struct exact_result *x = a;
    const struct exact_result *y = b;
    int order = strcmp(x->engine, y->engine);

    return order != 0 ? order : strcmp(x->name, y->name);
}

static int by_timed_name(const void *a, const void *b)
{
    const struct timed_result *x = a;
    const struct timed_result *y = b;
    int order = strcmp(x->engine, y->engine);

    order = order != 0 ? order : strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->unit, y->unit);
}

/* One run measures a thing once. */
static int refuse_doubles(struct results *r, const char *path,
                          struct fsdp_error *error)
{
    if (r->n_exact > 1) {
        qsort(r->exact, r->n_exact, sizeof(*r->exact), by_exact_name);
    }
    if (r->n_timed > 1) {
        qsort(r->timed, r->n_timed, sizeof(*r->timed), by_timed_name);
    }
    for (uint32_t i = 1; i < r->n_exact; i++) {
        if (by_exact_name(&r->exact[i - 1], &r->exact[i]) == 0) {
            return record_fail(error, FSDP_ERR_FORMAT, "track",
                               "%.60s: the figures of %.120s a second time",
                               path, r->exact[i].name);
        }
    }
    for (uint32_t i = 1; i < r->n_timed; i++) {
        if (by_timed_name(&r->timed[i - 1], &r->timed[i]) == 0) {
            return record_fail(error, FSDP_ERR_FORMAT, "track",
                               "%.60s: %.100s in %.20s a second time", path,
                               r->timed[i].name, r->timed[i].unit);
        }
    }
    return FSDP_OK;
}

static int read_value(const char *path, json_t *root, char better,
                      struct results *r, struct fsdp_error *error)
{
    const char *format = json_string_value(json_object_get(root, "format"));

    if (json_is_array(root)) {
        return results_read_custom(path, root, better, r, error);
    }
    if (format && strcmp(format, "fsdp-bench") == 0) {
        return results_read_bench(path, root, r, error);
    }
    return record_fail(error, FSDP_ERR_FORMAT, "track",
                       "%.100s: no report, no bench results and no array of "
                       "custom benchmarks",
                       path);
}

int results_read(const char *path, char better, struct results *r,
                 struct fsdp_error *error)
{
    static const struct record_source from = {.where = "track",
                                              .most = FILE_MOST};
    struct record_json j = {.file = path, .error = error};
    static const char header[] = "{\"type\":\"header\"";
    json_t *root = NULL;
    size_t bytes = 0;
    char *text;
    int status = record_read_file(path, &from, &text, &bytes, error);

    if (status == FSDP_OK && strncmp(text, header, sizeof(header) - 1) == 0) {
        status = results_read_report(path, text, bytes, r, error);
    } else if (status == FSDP_OK) {
        root = strict_load(&j, text, bytes);
        status = root ? read_value(path, root, better, r, error) : j.status;
        json_decref(root);
    }
    free(text);
    return status == FSDP_OK ? refuse_doubles(r, path, error) : status;
}

void results_release(struct results *r)
{
    for (uint32_t i = 0; i < r->n_exact; i++) {
        free(r->exact[i].text);
    }
    for (uint32_t i = 0; i < r->n_timed; i++) {
        free(r->timed[i].sample);
    }
    free(r->exact);
    free(r->timed);
    memset(r, 0, sizeof(*r));
}
