/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_writer.h - writes a probe's log: one JSON object a line, each by one
 * write, so that the log of a program that is killed can be read up to that
 * point.
 *
 * It lives in other people's programs: it takes no memory, leaves errno and
 * signals alone, prints only once, to say that there is no log or that it ends,
 * and never ends the program.
 */
#ifndef FSDP_CTS_LOG_WRITER_H
#define FSDP_CTS_LOG_WRITER_H

#include "tools/probes/probe_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROBE_EXPORT __attribute__((visibility("default")))

enum {
    PROBE_LINE_BYTES = 2048,
    PROBE_PATH_BYTES = 1024,
};

/* A line that grows. One that does not fit is cut short: see `cut`. */
struct probe_line {
    char text[PROBE_LINE_BYTES];
    size_t length;
    bool cut;
};
/* {"type":"TYPE" */
void probe_line_begin(struct probe_line *line, const char *type);
__attribute__((format(printf, 2, 3))) void
probe_line_add(struct probe_line *line, const char *format, ...);
/* ,"key":"text": at most 255 bytes of the text; bytes that are not printable
 * ASCII become ?. */
void probe_line_text(struct probe_line *line, const char *key,
                     const char *text);
/* ,"key":n: a number, a string above 2^53, or null. */
void probe_line_u64(struct probe_line *line, const char *key, uint64_t n);
void probe_line_null(struct probe_line *line, const char *key);

enum probe_log_state {
    PROBE_LOG_CLOSED = 0,
    PROBE_LOG_OPEN = 1,
    PROBE_LOG_OVER = 2, /* ended, failed, or none was asked for */
};

struct probe_log {
    pthread_mutex_t lock; /* for `state`, and the order of lines */
    uint32_t state;       /* enum probe_log_state */
    int fd;
    pid_t pid;
    dev_t device; /* of the file: the program may close our descriptor and reuse
                   * its number */
    ino_t inode;
    char path[PROBE_PATH_BYTES];
};
#define PROBE_LOG_INITIAL                           \
    {                                               \
        .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 \
    }

/* The facts about the process in the log's header. */
struct probe_head {
    uint32_t source;
    const char *library;
    int64_t rank, world; /* -1: unknown */
    pid_t parent;        /* if it was forked: from which process; 0: it was
                          * not */
};

/* All four are called with the lock held. */
/* Opens a log in $FSDP_PROBE_LOG and writes its header. Says on stderr why
 * there is none. */
bool probe_log_open(struct probe_log *log, const struct probe_head *head);
/* Ends the object and writes it. A failure ends the log. */
void probe_log_write(struct probe_log *log, struct probe_line *line);
void probe_log_close(struct probe_log *log);
/* In a child after fork: forgets the parent's log. */
void probe_log_forget(struct probe_log *log);

/* The rank of the process, as launchers tell it (RANK of torchrun, Open MPI's,
 * PMI's, Slurm's); -1: none does. */
int64_t probe_rank_of_environment(void);
int64_t probe_world_of_environment(void);

__attribute__((format(printf, 1, 2))) void probe_complain(const char *format,
                                                          ...);

#endif
