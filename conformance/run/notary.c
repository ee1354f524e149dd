/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notary.c - listens to the kernel. A handler of SIGSYS would live in the
 * engine's process; this is another one, which ranks cannot reach.
 */
#include "run/notary.h"
#include "run/rank_calls.h"
#include "run/whole_io.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LISTENERS = 128,
    THE_END = 0x656e6421
};

struct listeners {
    struct notary_notes notes;
    uint32_t n;
    struct pollfd listener[LISTENERS + 1]; /* 0: the hand */
    uint32_t rank[LISTENERS + 1];
};

/* What it says when it has come to its end, and all of it: nobody takes
 * silence for "nothing was refused". */
struct report {
    struct notary_notes notes;
    uint32_t end; /* THE_END */
};

/* ---- In the notary ----------------------------------------------------- */

/* A rank that is not listened to must not run on: its calls would wait, or be
 * refused unnoted. So there is no notary any more, and that is said. */
static _Noreturn void give_up(void)
{
    _exit(EXIT_FAILURE);
}

/* A rank hands over its descriptor. False: nobody will any more. */
static bool take(struct listeners *all, int hand)
{
    char room[CMSG_SPACE(sizeof(int))];
    uint32_t rank = 0;
    struct iovec bytes = {&rank, sizeof(rank)};
    struct msghdr m = {.msg_iov = &bytes,
                       .msg_iovlen = 1,
                       .msg_control = room,
                       .msg_controllen = sizeof(room)};
    ssize_t n = recvmsg(hand, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    struct pollfd *p = &all->listener[all->n + 1];

    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    if (!c || c->cmsg_type != SCM_RIGHTS || all->n == LISTENERS) {
        give_up();
    }
    *p = (struct pollfd){.events = POLLIN};
    memcpy(&p->fd, CMSG_DATA(c), sizeof(p->fd));
    all->rank[++all->n] = rank;
    return true;
}

/* Whoever asked has its answer, also where nothing is noted any more. */
static void answer(struct listeners *all, uint32_t i)
{
    const int fd = all->listener[i].fd;
    struct notary_notes *notes = &all->notes;
    struct seccomp_notif asked;
    struct seccomp_notif_resp said;
    uint64_t argument[6];
    struct record_refusal *r = &notes->refusal[notes->n];

    memset(&asked, 0, sizeof(asked));
    memset(&said, 0, sizeof(said));
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
        return; /* it is gone */
    }
    if (notes->n < RECORD_REFUSALS) {
        for (int k = 0; k < 6; k++) {
            argument[k] = asked.data.args[k];
        }
        r->rank = all->rank[i];
        rank_calls_describe(asked.data.arch, asked.data.nr, argument, r->call,
                            sizeof(r->call));
        notes->n++;
    }
    said.id = asked.id;
    said.error = -EPERM;
    (void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

static void listen_to_all(struct listeners *all, int hand)
{
    bool open = true;

    all->listener[0] = (struct pollfd){.fd = hand, .events = POLLIN};
    while (open) {
        if (poll(all->listener, all->n + 1, -1) < 0) {
            if (errno != EINTR) {
                give_up();
            }
            continue;
        }
        for (uint32_t i = 1; i <= all->n; i++) {
            if (all->listener[i].revents & POLLIN) {
                answer(all, i);
            } else if (all->listener[i].revents != 0) {
                close(all->listener[i].fd); /* its rank has ended */
                all->listener[i].fd = -1;
            }
        }
        if (all->listener[0].revents != 0) {
            open = take(all, hand);
        }
    }
}

static _Noreturn void be_notary(int hand, int words)
{
    struct listeners *all = calloc(1, sizeof(*all));
    struct report *said = calloc(1, sizeof(*said));

    if (!all || !said) {
        give_up();
    }
    listen_to_all(all, hand);
    said->notes = all->notes;
    said->end = THE_END;
    _exit(whole_write(words, said, sizeof(*said)) ? EXIT_SUCCESS
                                                  : EXIT_FAILURE);
}

/* ---- In the worker, and in a rank -------------------------------------- */

static void close_both(int two[2])
{
    close(two[0]);
    close(two[1]);
}

bool notary_start(struct notary *n)
{
    int hand[2];
    int words[2];

    *n = (struct notary){.hand = -1, .words = -1};
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
    return true;
}

bool notary_hand_over(struct notary *n, uint32_t rank, int listener)
{
    char room[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {&rank, sizeof(rank)};
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
    c->cmsg_len = CMSG_LEN(sizeof(listener));
    memcpy(CMSG_DATA(c), &listener, sizeof(listener));
    do {
        sent = sendmsg(n->hand, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    close(listener);
    close(n->hand);
    close(n->words);
    return sent == (ssize_t)sizeof(rank);
}

bool notary_stop(struct notary *n, struct notary_notes *notes, const char **why)
{
    struct report said = {.end = 0};
    int status = 0;
    bool heard;
    pid_t ended;

    notes->n = 0;
    if (n->pid == 0) {
        return true;
    }
    close(n->hand);
    heard = whole_read(n->words, &said, sizeof(said));
    close(n->words);
    do {
        ended = waitpid(n->pid, &status, 0);
    } while (ended < 0 && errno == EINTR);
    n->pid = 0;
    *why = "the process that notes what ranks are refused did not come to its "
           "end";
    if (!heard || said.end != THE_END || said.notes.n > RECORD_REFUSALS ||
        ended < 0 || !WIFEXITED(status) ||
        WEXITSTATUS(status) != EXIT_SUCCESS) {
        return false;
    }
    *notes = said.notes;
    return true;
}
