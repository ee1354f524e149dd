/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_writer.c - see log_writer.h. Each probe is a shared object of its own
 * and has a copy of this.
 */
#include "tools/probes/preload/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    HIGH_FD = 512, /* out of the way of programs that count on low numbers */
    MOST_FILES = 64,
};

void probe_complain(const char *format, ...)
{
    int kept = errno;
    char text[1400];
    va_list arguments;
    va_start(arguments, format);
    int n = snprintf(text, sizeof(text), "fsdp-cts probe: ");
    n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof(text) - 2) {
        n = (int)sizeof(text) - 2;
    }
    text[n] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)n + 1);
    (void)ignored;
    errno = kept;
}

/* ---- Lines ---- */

void probe_line_add(struct probe_line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - 2 - line->length; /* for } and \n */
    va_list arguments;
    if (line->cut) {
        return;
    }
    va_start(arguments, format);
    int n = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= room) {
        line->cut = true;
    } else {
        line->length += (size_t)n;
    }
}

void probe_line_begin(struct probe_line *line, const char *type)
{
    line->length = 0;
    line->cut = false;
    probe_line_add(line, "{\"type\":\"%s\"", type);
}

void probe_line_text(struct probe_line *line, const char *key, const char *text)
{
    char plain[2 * PROBE_TEXT_BYTES];
    size_t n = 0;
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < PROBE_TEXT_BYTES; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            plain[n++] = '\\';
        }
        plain[n++] = text[i];
        if (text[i] < ' ' || text[i] > '~') {
            plain[n - 1] = '?';
        }
    }
    plain[n] = '\0';
    probe_line_add(line, ",\"%s\":\"%s\"", key, plain);
}

void probe_line_u64(struct probe_line *line, const char *key, uint64_t n)
{
    const char *quote = n > (uint64_t)1 << 53 ? "\"" : "";
    probe_line_add(line, ",\"%s\":%s%llu%s", key, quote, (unsigned long long)n,
                   quote);
}

void probe_line_null(struct probe_line *line, const char *key)
{
    probe_line_add(line, ",\"%s\":null", key);
}

static void number_or_null(struct probe_line *line, const char *key, int64_t n)
{
    if (n < 0) {
        probe_line_null(line, key);
    } else {
        probe_line_u64(line, key, (uint64_t)n);
    }
}

/* ---- The process ---- */

static int64_t first_number(const char *const *name)
{
    for (; *name; name++) {
        const char *text = getenv(*name);
        char *end = NULL;
        if (!text || *text < '0' || *text > '9') {
            continue;
        }
        errno = 0;
        long long n = strtoll(text, &end, 10);
        if (errno == 0 && *end == '\0' && n < INT32_MAX) {
            return n;
        }
    }
    return -1;
}

int64_t probe_rank_of_environment(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                       "RANK", "SLURM_PROCID", NULL};
    int kept = errno;
    int64_t rank = first_number(name);
    errno = kept;
    return rank;
}

int64_t probe_world_of_environment(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                       "WORLD_SIZE", "SLURM_NTASKS", NULL};
    int kept = errno;
    int64_t world = first_number(name);
    errno = kept;
    return world;
}

/* ---- The file ---- */

static void give_up(struct probe_log *log, const char *what)
{
    probe_complain("%s: %s", log->path, what);
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = -1;
    log->state = PROBE_LOG_OVER;
}

/* The folder is made, its parents are not. A device is written to as it is:
 * a terminal, say. */
static int open_file(struct probe_log *log, const char *where, const char *name)
{
    struct stat st;
    int n = snprintf(log->path, sizeof(log->path), "%s", where);
    if (n >= (int)sizeof(log->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (stat(where, &st) != 0 && mkdir(where, 0777) != 0 && errno != EEXIST) {
        return -1;
    }
    if (stat(where, &st) == 0 && S_ISCHR(st.st_mode)) {
        return open(where, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    }
    for (int i = 0; i < MOST_FILES; i++) {
        char again[16] = "";
        if (i > 0) {
            snprintf(again, sizeof(again), "-%d", i);
        }
        n = snprintf(log->path, sizeof(log->path), "%s/%s%s.jsonl", where, name,
                     again);
        if (n >= (int)sizeof(log->path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(log->path,
                      O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

static void write_header(struct probe_log *log, const struct probe_head *head)
{
    struct probe_line line;
    char program[PROBE_TEXT_BYTES] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = '\0';
    probe_line_begin(&line, "header");
    probe_line_u64(&line, "probe_log", PROBE_VERSION);
    probe_line_text(&line, "source", probe_source_name(head->source));
    probe_line_text(&line, "library", head->library);
    probe_line_text(&line, "program", program);
    probe_line_u64(&line, "pid", (uint64_t)log->pid);
    number_or_null(&line, "parent", head->parent > 0 ? head->parent : -1);
    number_or_null(&line, "rank", head->rank);
    number_or_null(&line, "world", head->world);
    probe_line_u64(&line, "started", (uint64_t)time(NULL));
    probe_log_write(log, &line);
}

bool probe_log_open(struct probe_log *log, const struct probe_head *head)
{
    int kept = errno;
    const char *where = secure_getenv("FSDP_PROBE_LOG");
    char name[64];
    char rank[24] = "none";
    struct stat st;
    log->pid = getpid();
    log->state = PROBE_LOG_OVER;
    if (!where || *where == '\0') {
        probe_complain("FSDP_PROBE_LOG is not set: nothing is recorded (it "
                       "names a folder for logs)");
        errno = kept;
        return false;
    }
    if (head->rank >= 0) {
        snprintf(rank, sizeof(rank), "%lld", (long long)head->rank);
    }
    snprintf(name, sizeof(name), "%s-%s-%ld", probe_source_name(head->source),
             rank, (long)log->pid);
    log->fd = open_file(log, where, name);
    if (log->fd < 0 || fstat(log->fd, &st) != 0) {
        give_up(log, strerror(errno));
        errno = kept;
        return false;
    }
    int high = fcntl(log->fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high >= 0) {
        (void)close(log->fd);
        log->fd = high;
    }
    log->device = st.st_dev;
    log->inode = st.st_ino;
    log->state = PROBE_LOG_OPEN;
    write_header(log, head);
    errno = kept;
    return log->state == PROBE_LOG_OPEN;
}

/* A full file or a reader that left must not kill the program: the signals of
 * such a write are taken back. */
static ssize_t write_quietly(int fd, const char *text, size_t n)
{
    sigset_t ours;
    sigset_t pending;
    sigset_t kept;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    (void)sigaddset(&ours, SIGXFSZ);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &kept);
    ssize_t done = write(fd, text, n);
    if (done < 0 && (errno == EPIPE || errno == EFBIG)) {
        int why = errno;
        int number = why == EPIPE ? SIGPIPE : SIGXFSZ;
        sigset_t one;
        (void)sigemptyset(&one);
        (void)sigaddset(&one, number);
        if (sigismember(&pending, number) != 1) {
            (void)sigtimedwait(&one, NULL, &(struct timespec){0});
        }
        errno = why;
    }
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    return done;
}

void probe_log_write(struct probe_log *log, struct probe_line *line)
{
    int kept = errno;
    size_t at = 0;
    struct stat st;
    if (log->state != PROBE_LOG_OPEN) {
        return;
    }
    if (line->cut) {
        give_up(log, "a line is too long: the log ends here");
        errno = kept;
        return;
    }
    line->text[line->length++] = '}';
    line->text[line->length++] = '\n';
    if (fstat(log->fd, &st) != 0 || st.st_dev != log->device ||
        st.st_ino != log->inode) {
        log->fd = -1; /* the program may have given the number to another
                       * file */
        give_up(log, "the program has closed the log");
        errno = kept;
        return;
    }
    while (at < line->length) {
        ssize_t n = write_quietly(log->fd, line->text + at, line->length - at);
        if (n > 0) {
            at += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            char why[160];
            snprintf(why, sizeof(why), "%s: the log ends here",
                     n == 0 ? "nothing was written" : strerror(errno));
            give_up(log, why);
            break;
        }
    }
    errno = kept;
}

void probe_log_close(struct probe_log *log)
{
    int kept = errno;
    if (log->state == PROBE_LOG_OPEN && close(log->fd) != 0) {
        log->fd = -1;
        give_up(log, strerror(errno));
    }
    log->fd = -1;
    log->state = PROBE_LOG_OVER;
    errno = kept;
}

void probe_log_forget(struct probe_log *log)
{
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = -1;
    log->state = PROBE_LOG_OVER;
}
