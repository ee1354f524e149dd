/* SPDX-License-Identifier: Apache-2.0 */
/* told.c - see told.h. */
#include "run/worker/told.h"
#include "record/record.h"
#include "run/process/stack_names.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_RANKS = 16,  /* of which stacks are told */
    MAX_STACKS = 24, /* of a case */
    PATH_BYTES = TOLD_PATH_BYTES
};

static void add_text(struct told *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A line that does not fit is left out whole. */
static void add_text(struct told *t, const char *format, ...)
{
    const size_t room = sizeof(t->text) - t->n;
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(t->text + t->n, room, format, list);
    va_end(list);
    if (n > 0 && (size_t)n < room) {
        t->n += (size_t)n;
    }
}

void told_begin(struct told *t, const char *wrap)
{
    t->n = 0;
    t->lines = 0;
    if (wrap) {
        add_text(
            t,
            "ranks ran under '%.200s', and an exit code other than 0 is its "
            "own\n",
            wrap);
    }
}

void told_print(struct told *t, int rank, const char *line)
{
    if (t->lines++ >= TOLD_LINES) {
        return;
    }
    if (rank >= 0) {
        add_text(t, "rank %d printed: %s\n", rank, line);
    } else {
        add_text(t, "printed: %s\n", line);
    }
}

/* Whether the suite begins at this function, where an engine's own frames
 * end. */
static bool is_outermost(const char *name)
{
    static const char bottom[] = "rank_body_run";

    return strncmp(name, bottom, sizeof(bottom) - 1) == 0;
}

void told_make_plain(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f) {
            *text = '?';
        }
    }
}

static void add_stack(struct told *t, uint32_t rank, struct stack *s,
                      const char *never)
{
    const bool inside = s->doing[0] != '\0';
    char call[sizeof(s->doing) + 32] = "";

    stack_name(s, never);
    told_make_plain(s->doing);
    if (inside) {
        snprintf(call, sizeof(call), ", in the wrong call %s", s->doing);
    }
    if (s->signal != 0) {
        add_text(t, "rank %u, ended by signal %d%s, stood in\n", rank,
                 s->signal, call);
    } else {
        add_text(t, "rank %u%s%s%s then stood in\n", rank,
                 s->main ? "" : ", in another thread", call,
                 !s->main || inside ? "," : "");
    }
    for (uint32_t i = 0; i < s->n && !is_outermost(s->frame[i].name); i++) {
        told_make_plain(s->frame[i].name);
        add_text(t, "  #%u %s\n", i, s->frame[i].name);
    }
}

void told_stack_file(const char *folder, uint32_t rank,
                     char path[TOLD_PATH_BYTES])
{
    snprintf(path, TOLD_PATH_BYTES, "%s/rank-%u.stack", folder, rank);
}

/* Adds stacks: first those of ranks that died; of the others first the main
 * threads. */
static void add_stacks(struct told *t, const char *folder, uint32_t ranks,
                       const char *never, uint32_t pass, uint32_t *n)
{
    struct stack stack[STACKS_OF_A_FILE];
    char path[PATH_BYTES];

    for (uint32_t r = 0; r < ranks && *n < MAX_STACKS; r++) {
        uint32_t found;

        told_stack_file(folder, r, path);
        found = access(path, F_OK) == 0 ? stack_read(path, stack) : 0;
        for (uint32_t i = 0; i < found && *n < MAX_STACKS; i++) {
            const uint32_t own = stack[i].signal != 0 ? 0
                                 : stack[i].main      ? 1
                                                      : 2;

            if (own == pass) {
                add_stack(t, r, &stack[i], never);
                (*n)++;
            }
        }
    }
}

static void write_file(const struct told *t, const char *folder)
{
    char path[PATH_BYTES];
    int fd;

    snprintf(path, sizeof(path), "%s/" RECORD_TOLD, folder);
    (void)unlink(path); /* even if a rank has made it: a rank must not write
                           this file */
    if (t->n == 0) {
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
        if (write(fd, t->text, t->n) != (ssize_t)t->n) {
            (void)unlink(path);
        }
        (void)close(fd);
    }
}

void told_keep(struct told *t, const char *folder, uint32_t ranks, bool names,
               const char *never)
{
    char path[PATH_BYTES];
    uint32_t n = 0;

    for (uint32_t pass = 0; pass < 3 && names; pass++) {
        add_stacks(t, folder, ranks < MAX_RANKS ? ranks : MAX_RANKS, never,
                   pass, &n);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        told_stack_file(folder, r, path);
        (void)unlink(path);
    }
    write_file(t, folder);
}
