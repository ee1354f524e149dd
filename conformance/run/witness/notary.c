/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notary.c - listens to the kernel. A handler of SIGSYS would be in the
 * engine's process; the notary is another process, which ranks cannot reach.
 */
#include "run/witness/notary.h"
#include "run/process/rank_calls.h"
#include "run/process/whole_io.h"
#include "run/witness/rank_line.h"
#include "run/witness/scales.h"
#include "run/witness/scribe.h"

#include <errno.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THE_END = 0x656e6421
};

/* A rank is heard in two ways. */
enum {
    CALLS, /* the kernel's, on each call that it refuses the rank */
    WORDS, /* the rank's own words */
    N_WAYS,
    PIPE = N_WAYS, /* the pipe, which is not polled */
    N_HANDED
};

/* A message from the worker: a report is due, or another world comes. */
struct told {
    uint32_t is_report;
    uint32_t n_folders;
    uint32_t has_folders, has_record;
    char folder[NOTARY_FOLDERS][PATH_MAX];
    char record[PATH_MAX];
};

struct listeners {
    struct notary_notes notes;
    uint32_t n;
    struct pollfd hand[1 + N_WAYS * NOTARY_RANKS]; /* 0: the hand itself */
    int words;                                     /* where reports go */
    struct told task;
    struct scales scales;
    const char *folders[NOTARY_FOLDERS + 1];
    const char *record; /* folder, or NULL */
    struct heard {
        uint32_t rank;
        pid_t pid;
        int pipe;
        struct scribe scribe;
    } of[NOTARY_RANKS];
};

/* The message of a rank that hands over its descriptors. */
struct handed {
    uint32_t rank;
    int32_t pid;
};

/* The report on a world. It is sent even if nothing was refused, since silence
 * must not mean that. Weights and counts follow, for so many ranks; and
 * THE_END. */
struct report {
    uint32_t n, n_ranks;
    struct record_refusal refusal[RECORD_REFUSALS];
};

/* ---- In the notary ----------------------------------------------------- */

/* Ends the notary: a rank that it cannot listen to must not run on, as its
 * calls would wait or be refused without a note. The worker learns that the
 * notary has ended. */
static _Noreturn void give_up(void)
{
    _exit(EXIT_FAILURE);
}

static void take_rank(struct listeners *all, const struct handed *by,
                      const struct cmsghdr *c)
{
    struct pollfd *const p = &all->hand[1 + N_WAYS * all->n];

    if (!c || c->cmsg_type != SCM_RIGHTS || all->n == NOTARY_RANKS ||
        by->rank >= NOTARY_RANKS ||
        c->cmsg_len != CMSG_LEN(N_HANDED * sizeof(int))) {
        give_up();
    }
    for (uint32_t i = 0; i < N_WAYS; i++) {
        p[i] = (struct pollfd){.events = POLLIN};
        memcpy(&p[i].fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    all->of[all->n] = (struct heard){.rank = by->rank, .pid = by->pid};
    memcpy(&all->of[all->n].pipe, CMSG_DATA(c) + PIPE * sizeof(int),
           sizeof(int));
    if (!scribe_begin(&all->of[all->n].scribe)) {
        give_up();
    }
    all->n++;
}

/* Begins with a world from which nothing has been heard yet. */
static void begin_world(struct listeners *all, const struct told *task)
{
    struct told *const t = &all->task;

    *t = *task;
    for (uint32_t i = 0; i < NOTARY_FOLDERS; i++) {
        all->folders[i] = i < t->n_folders ? t->folder[i] : NULL;
    }
    memset(&all->notes, 0, sizeof(all->notes));
    scales_begin(&all->scales, t->has_folders != 0 ? all->folders : NULL,
                 all->notes.weight);
    all->record = t->has_record != 0 ? t->record : NULL;
}

/* Sends the report on a world, and forgets its ranks. */
static bool report(struct listeners *all)
{
    struct notary_notes *const notes = &all->notes;
    struct report said = {.n = notes->n};
    const uint32_t end = THE_END;

    memcpy(said.refusal, notes->refusal, sizeof(said.refusal));
    for (uint32_t i = 0; i < all->n; i++) {
        const struct heard *const of = &all->of[i];

        notes->told[of->rank] = of->scribe.told;
        said.n_ranks = of->rank < said.n_ranks ? said.n_ranks : of->rank + 1;
    }
    for (uint32_t i = 0; i < N_WAYS * all->n; i++) {
        if (all->hand[1 + i].fd >= 0) {
            close(all->hand[1 + i].fd);
        }
    }
    for (uint32_t i = 0; i < all->n; i++) {
        close(all->of[i].pipe);
        scribe_release(&all->of[i].scribe);
    }
    all->n = 0;
    return whole_write(all->words, &said, sizeof(said)) &&
           whole_write(all->words, notes->weight,
                       said.n_ranks * sizeof(*notes->weight)) &&
           whole_write(all->words, notes->told,
                       said.n_ranks * sizeof(*notes->told)) &&
           whole_write(all->words, &end, sizeof(end));
}

/* Takes descriptors from a rank, or a message from the worker. False: neither
 * will come any more. */
static bool take_word(struct listeners *all)
{
    union {
        struct handed by;
        struct told told;
    } said;
    char room[CMSG_SPACE(N_HANDED * sizeof(int))];
    struct iovec bytes = {&said, sizeof(said)};
    struct msghdr m = {.msg_iov = &bytes,
                       .msg_iovlen = 1,
                       .msg_control = room,
                       .msg_controllen = sizeof(room)};
    const ssize_t n = recvmsg(all->hand[0].fd, &m, MSG_CMSG_CLOEXEC);

    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    if (n == sizeof(said.by)) {
        take_rank(all, &said.by, CMSG_FIRSTHDR(&m));
    } else if (n != sizeof(said.told)) {
        give_up();
    } else if (said.told.is_report != 0) {
        return report(all);
    } else {
        begin_world(all, &said.told);
    }
    return true;
}

/* Answers a call that is to be refused, even if there is no room to note it. */
static void answer(struct listeners *all, uint32_t i)
{
    const int fd = all->hand[1 + N_WAYS * i + CALLS].fd;
    struct notary_notes *notes = &all->notes;
    struct seccomp_notif asked;
    struct seccomp_notif_resp said;
    uint64_t argument[6];
    struct record_refusal *r = &notes->refusal[notes->n];

    memset(&asked, 0, sizeof(asked));
    memset(&said, 0, sizeof(said));
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
        return; /* the rank is gone */
    }
    if (notes->n < RECORD_REFUSALS) {
        for (int k = 0; k < 6; k++) {
            argument[k] = asked.data.args[k];
        }
        r->rank = all->of[i].rank;
        rank_calls_describe(asked.data.arch, asked.data.nr, argument, r->call,
                            sizeof(r->call));
        notes->n++;
    }
    said.id = asked.id;
    said.error = -EPERM;
    (void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

static bool write_record(struct listeners *all, uint32_t i, int line)
{
    struct fsdp_error error;

    return all->record &&
           scribe_write(&all->of[i].scribe, all->record, all->of[i].rank,
                        &error) &&
           rank_line_answer(line, RANK_LINE_WRITE) &&
           whole_write(line, &error, sizeof(error));
}

/* Hears a word of a rank. A rank whose word has no meaning is not heard any
 * more. */
static bool hear_words(struct listeners *all, uint32_t i)
{
    const int line = all->hand[1 + N_WAYS * i + WORDS].fd;
    struct heard *const of = &all->of[i];
    struct rank_line_said said;

    if (!rank_line_hear(line, &said)) {
        return false;
    }
    if (said.word == RANK_LINE_WRITE) {
        return write_record(all, i, line);
    }
    if (said.word == RANK_LINE_DRAIN) {
        if (!scribe_drain(&of->scribe, of->pipe, said.n)) {
            give_up();
        }
        return !of->scribe.lost && rank_line_answer(line, said.word);
    }
    return scales_weigh(&all->scales, of->rank, of->pid, &said) &&
           rank_line_answer(line, said.word);
}

static void hear(struct listeners *all, uint32_t i)
{
    for (uint32_t way = 0; way < N_WAYS; way++) {
        struct pollfd *const p = &all->hand[1 + N_WAYS * i + way];
        bool goes_on = p->revents == 0;

        if (p->revents & POLLIN) {
            goes_on =
                way == WORDS ? hear_words(all, i) : (answer(all, i), true);
        }
        if (!goes_on) { /* its rank has ended, perhaps */
            close(p->fd);
            p->fd = -1;
        }
    }
}

static void listen_to_all(struct listeners *all, int hand)
{
    bool open = true;

    all->hand[0] = (struct pollfd){.fd = hand, .events = POLLIN};
    while (open) {
        if (poll(all->hand, 1 + N_WAYS * (nfds_t)all->n, -1) < 0) {
            if (errno != EINTR) {
                give_up();
            }
            continue;
        }
        for (uint32_t i = 0; i < all->n; i++) {
            hear(all, i);
        }
        if (all->hand[0].revents != 0) {
            open = take_word(all);
        }
    }
}

static _Noreturn void be_notary(int hand, int words)
{
    struct listeners *all = calloc(1, sizeof(*all));

    if (!all) {
        give_up();
    }
    (void)signal(SIGPIPE, SIG_IGN);
    all->words = words;
    listen_to_all(all, hand);
    _exit(EXIT_SUCCESS);
}

/* ---- In the worker, and in a rank -------------------------------------- */

static void close_both(int two[2])
{
    close(two[0]);
    close(two[1]);
}

static bool tell_notary(const struct notary *n, const struct told *what)
{
    ssize_t sent;

    do {
        sent = send(n->hand, what, sizeof(*what), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(*what);
}

bool notary_go_on(struct notary *n, const struct notary_task *task)
{
    static struct told what; /* large */

    memset(&what, 0, sizeof(what));
    what.has_record = task->record != NULL;
    what.has_folders = task->folders != NULL;
    snprintf(what.record, sizeof(what.record), "%s",
             task->record ? task->record : "");
    while (task->folders && what.n_folders < NOTARY_FOLDERS &&
           task->folders[what.n_folders]) {
        snprintf(what.folder[what.n_folders], sizeof(what.folder[0]), "%s",
                 task->folders[what.n_folders]);
        what.n_folders++;
    }
    return n->pid != 0 && tell_notary(n, &what);
}

bool notary_start(struct notary *n, const struct notary_task *task)
{
    int hand[2];
    int words[2];

    *n = (struct notary){.hand = -1, .words = -1, .line = -1, .pipe = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand) != 0) {
        return false;
    }
    if (pipe(words) != 0) {
        close_both(hand);
        return false;
    }
    n->pid = fork();
    if (n->pid == 0) {
        close(hand[0]);
        close(words[0]);
        be_notary(hand[1], words[1]);
    }
    close(hand[1]);
    close(words[1]);
    n->hand = hand[0];
    n->words = words[0];
    if (n->pid < 0) {
        n->pid = 0;
        close(n->hand);
        close(n->words);
        return false;
    }
    return notary_go_on(n, task);
}

bool notary_make_line(struct notary *n)
{
    int two[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two) != 0) {
        return false;
    }
    n->line = two[0];
    n->other_line = two[1];
    if (pipe(two) != 0) {
        return false;
    }
    n->other_pipe = two[0];
    n->pipe = two[1];
    return true;
}

bool notary_hand_over(struct notary *n, uint32_t rank, int listener)
{
    const int descriptors[N_HANDED] = {
        [CALLS] = listener, [WORDS] = n->other_line, [PIPE] = n->other_pipe};
    struct handed by = {rank, getpid()};
    char room[CMSG_SPACE(sizeof(descriptors))];
    struct iovec bytes = {&by, sizeof(by)};
    struct msghdr m = {.msg_iov = &bytes,
                       .msg_iovlen = 1,
                       .msg_control = room,
                       .msg_controllen = sizeof(room)};
    struct cmsghdr *c;
    ssize_t sent;

    memset(room, 0, sizeof(room));
    c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(descriptors));
    memcpy(CMSG_DATA(c), descriptors, sizeof(descriptors));
    do {
        sent = sendmsg(n->hand, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    close(listener);
    close(n->other_line);
    close(n->other_pipe);
    close(n->hand);
    close(n->words);
    return sent == (ssize_t)sizeof(by);
}

/* Ends the notary's process and waits for it. */
static void bury(struct notary *n)
{
    int status;

    close(n->hand);
    close(n->words);
    (void)kill(n->pid, SIGKILL);
    while (waitpid(n->pid, &status, 0) < 0 && errno == EINTR) {
    }
    n->pid = 0;
}

bool notary_report(struct notary *n, struct notary_notes *notes,
                   const char **why)
{
    static const struct told what = {.is_report = 1};
    struct report said = {.n = 0};
    uint32_t end = 0;

    memset(notes, 0, sizeof(*notes));
    *why = "the process that notes what ranks are refused did not come to its "
           "end";
    if (n->pid == 0) {
        return false;
    }
    if (!tell_notary(n, &what) || !whole_read(n->words, &said, sizeof(said)) ||
        said.n > RECORD_REFUSALS || said.n_ranks > NOTARY_RANKS ||
        !whole_read(n->words, notes->weight,
                    said.n_ranks * sizeof(*notes->weight)) ||
        !whole_read(n->words, notes->told,
                    said.n_ranks * sizeof(*notes->told)) ||
        !whole_read(n->words, &end, sizeof(end)) || end != THE_END) {
        bury(n);
        memset(notes, 0, sizeof(*notes));
        return false;
    }
    notes->n = said.n;
    notes->n_ranks = said.n_ranks;
    memcpy(notes->refusal, said.refusal, sizeof(notes->refusal));
    return true;
}

bool notary_stop(struct notary *n, struct notary_notes *notes, const char **why)
{
    const bool good = notary_report(n, notes, why);

    if (n->pid != 0) {
        bury(n);
    }
    return good;
}
