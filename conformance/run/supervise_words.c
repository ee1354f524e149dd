/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_words.c - reads what a worker says of its cases, and what engines
 * print while they run. Neither is shown on a terminal unchanged: control
 * characters could rewrite what stands there.
 */
#include "run/supervise_worker.h"
#include "run/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_SHOWN = 12 /* so many lines that engines print in a case are shown */
};

/* Whether a line is this word and the index of a case. */
static bool says(const char *line, const char *word, uint32_t *index)
{
    size_t n = strlen(word);
    char *end;
    unsigned long value;

    if (strncmp(line, word, n) != 0 || line[n] < '0' || line[n] > '9') {
        return false;
    }
    errno = 0;
    value = strtoul(line + n, &end, 10);
    *index = (uint32_t)value;
    return errno == 0 && value <= UINT32_MAX;
}

/* Reads "refuse", a status and a sentence. */
static void take_refusal(struct supervised *w)
{
    const char *number = w->line + strlen("refuse ");
    char *end;
    long status;

    errno = 0;
    status = strtol(number, &end, 10);
    if (end == number || errno != 0 || status < INT32_MIN ||
        status > INT32_MAX || end[0] != ' ' || end[1] == '\0') {
        return; /* no worker says that */
    }
    if (w->refused.status == FSDP_OK) {
        w->refused.status = (int32_t)status;
        snprintf(w->refused.message, sizeof(w->refused.message), "%s", end + 1);
        told_make_plain(w->refused.message);
    }
}

/* Notes why the worker's case has no record, and so no verdict. */
static void take_loss(struct supervised *w)
{
    char id[CASE_ID_BYTES];

    if (w->in_case) {
        case_id(&w->cases[w->next], id);
        told_make_plain(w->line);
        fprintf(stderr, "[%s] %s\n", id, w->line);
    }
}

/* Notes how long a worker took to start: until then `last` is its start. */
static void note_launch(const struct supervised *w,
                        struct supervise_engine *engine)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    engine->launch_seconds += (double)(now.tv_sec - w->last.tv_sec) +
                              1e-9 * (double)(now.tv_nsec - w->last.tv_nsec);
}

void supervised_tell(const struct supervised *w, char what)
{
    if (w->job->world != WORLD_MPI && w->words >= 0) {
        (void)send(w->words, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* Reads Open MPI's line on a rank that a signal has ended: "mpirun noticed that
 * process rank 1 with PID 4711 on node a exited on signal 9 (Killed)."
 * case_record_account checks that mpirun exits accordingly. A rank that prints
 * such a line itself, and ends so, gains no more than by the signal itself. */
static void take_notice(struct supervised *w, const char *text)
{
    static const char before[] = " noticed that process rank ";
    static const char behind[] = " exited on signal ";
    const char *rank = strstr(text, before);
    const char *number = rank ? strstr(rank, behind) : NULL;

    if (number) {
        w->named = (uint32_t)strtoul(rank + sizeof(before) - 1, NULL, 10);
        w->named_signal = (int)strtol(number + sizeof(behind) - 1, NULL, 10);
    }
}

/* Reads SLURM's line: "srun: error: node1: task 0: Segmentation fault", or with
 * " (core dumped)" behind. Only the first one counts: srun then kills the other
 * tasks, and prints that, too. */
static void take_task(struct supervised *w, const char *text)
{
    static const char before[] = ": task ";
    const char *task =
        strncmp(text, "srun: error: ", 13) == 0 ? strstr(text, before) : NULL;
    char *words = NULL;
    unsigned long rank = 0;

    if (task) {
        rank = strtoul(task + sizeof(before) - 1, &words, 10);
    }
    if (!words || strncmp(words, ": ", 2) != 0) {
        return;
    }
    for (int s = 1; s < 32 && w->named_signal == 0; s++) {
        const char *name = strsignal(s);

        if (name && strncmp(words + 2, name, strlen(name)) == 0) {
            w->named = (uint32_t)rank;
            w->named_signal = s;
        }
    }
}

/* Shows a printed line, or the part of it that fits; with its case and its
 * rank, if it has these. */
static void show_line(struct supervised *w, struct supervised_output *from)
{
    char id[CASE_ID_BYTES] = "before the first case";
    char rank[24] = "";

    from->text[from->n] = '\0';
    from->n = 0;
    if (w->job->world == WORLD_MPI) {
        take_notice(w, from->text);
        take_task(w, from->text);
    }
    told_make_plain(from->text);
    if (from->text[0] == '\0') {
        return;
    }
    told_print(&w->told, (int)(from - w->output) - 1, from->text);
    if (w->shown++ > MAX_SHOWN) {
        return;
    }
    if (w->next < w->n && (w->in_case || w->next > w->started)) {
        case_id(&w->cases[w->next - (w->in_case ? 0 : 1)], id);
    }
    if (from > w->output) {
        snprintf(rank, sizeof(rank), " rank %d", (int)(from - w->output) - 1);
    }
    fprintf(stderr, "%s[%s%s] %s\n",
            isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", id, rank,
            w->shown > MAX_SHOWN ? "... (it prints more)" : from->text);
}

static void take_output(struct supervised *w, struct supervised_output *from,
                        char c)
{
    if (c == '\n') {
        show_line(w, from);
    } else if (from->n + 1 < sizeof(from->text)) {
        from->text[from->n++] = c;
    }
}

/* Reads at most so much at a time, so that a flood does not block the
 * supervisor. */
static ssize_t read_some(int *fd, char bytes[SUPERVISED_PIECE])
{
    ssize_t n = *fd < 0 ? 0 : read(*fd, bytes, SUPERVISED_PIECE);

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return 0;
    }
    if (n <= 0 && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return n;
}

/* Shows the lines in what was read from an output. */
static void take_held(struct supervised *w)
{
    for (size_t i = 0; i < w->n_held; i++) {
        take_output(w, w->held_of, w->held[i]);
    }
    w->n_held = 0;
}

/* Shows all that was printed before a case ended, as printed by that case. Its
 * processes have ended, but for those that stay for good: pipes hold 16 pieces
 * each. */
static void show_rest(struct supervised *w)
{
    take_held(w);
    for (uint32_t i = 0; i < w->n_outputs; i++) {
        ssize_t n = 1;

        w->held_of = &w->output[i];
        for (int k = 0; k < 16 && n > 0; k++) {
            n = read_some(&w->held_of->fd, w->held);
            w->n_held = n > 0 ? (size_t)n : 0;
            take_held(w);
        }
        show_line(w, &w->output[i]);
    }
}

/* Takes a line from the worker. Cases begin and end in their order, each once;
 * a line that says anything else of them is not from the worker. */
static void take_line(struct supervised *w, struct supervise_engine *engine)
{
    uint32_t i;

    if (says(w->line, "begin ", &i)) {
        if (!w->in_case && i == w->next - w->started && w->next < w->n) {
            if (i == 0) {
                note_launch(w, engine);
            }
            w->in_case = true;
            w->shown = 0;
            told_begin(&w->told, w->job->wrap);
            clock_gettime(CLOCK_MONOTONIC, &w->last);
        }
    } else if (says(w->line, "end ", &i) || says(w->line, "died ", &i) ||
               says(w->line, "again ", &i)) {
        if (w->in_case && i == w->next - w->started) {
            const bool ended = w->line[0] != 'a';

            show_rest(w);
            if (ended) {
                supervised_settle(w, engine);
                /* The next case begins when the record of this one is out of
                 * reach. */
                supervised_tell(w, WORKER_HEARD);
            }
            w->in_case = false;
            w->next += ended;
            w->n_ended += ended;
            w->n_lost += w->line[0] == 'd';
            clock_gettime(CLOCK_MONOTONIC, &w->last);
        }
    } else if (strncmp(w->line, "refuse ", strlen("refuse ")) == 0) {
        take_refusal(w);
    } else if (strncmp(w->line, "no record: ", strlen("no record: ")) == 0) {
        take_loss(w);
    } else if (!engine->known &&
               sscanf(w->line, "engine %63s %31s %1023[^\n]", engine->name,
                      engine->version, engine->claims) >= 2) {
        engine->known = true;
    }
}

static void take_word(struct supervised *w, char c,
                      struct supervise_engine *engine)
{
    if (c == '\n') {
        w->line[w->line_n] = '\0';
        take_line(w, engine);
        w->line_n = 0;
    } else if (w->line_n + 1 < sizeof(w->line)) {
        w->line[w->line_n++] = c;
    }
}

static bool read_words(struct supervised *w, struct supervise_engine *engine)
{
    char bytes[SUPERVISED_PIECE];
    ssize_t n = read_some(&w->words, bytes);

    for (ssize_t i = 0; i < n; i++) {
        take_word(w, bytes[i], engine);
    }
    return n > 0;
}

/* Output comes by other descriptors than the word that a case has begun, which
 * was said before: so the words are read first. */
bool supervised_read(struct supervised *w, struct supervise_engine *engine)
{
    bool any = false;

    for (uint32_t k = 0; k < w->n_outputs; k++) {
        ssize_t n = read_some(&w->output[k].fd, w->held);

        if (n > 0) {
            w->held_of = &w->output[k];
            w->n_held = (size_t)n;
            (void)read_words(w, engine);
            take_held(w);
            any = true;
        }
    }
    return read_words(w, engine) || any;
}
