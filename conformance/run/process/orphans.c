/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.c - adopts processes that others leave behind, and ends them.
 */
#include "run/process/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

void orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The caller's first child; 0: there is none. */
static pid_t first_child(void)
{
    char word[24];
    pid_t pid = 0;
    FILE *f = fopen("/proc/thread-self/children", "re");

    if (f && fscanf(f, "%23s", word) == 1) {
        pid = (pid_t)strtol(word, NULL, 10);
    }
    if (f) {
        fclose(f);
    }
    return pid;
}

static bool has_children(void)
{
    siginfo_t info = {0};

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

bool orphans_are_there(void)
{
    int adopts = 0;

    return has_children() || prctl(PR_GET_CHILD_SUBREAPER, &adopts) != 0 ||
           adopts == 0;
}

void orphans_end(void)
{
    /* Daemons are in groups of their own. When the processes in between have
     * ended they are our children; each that ends may leave more: so they are
     * ended one after the other. */
    while (has_children()) {
        pid_t pid = first_child();

        if (pid <= 0) {
            return; /* a kernel that does not say who they are */
        }
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
        }
    }
}

void orphans_end_group(pid_t group)
{
    kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR) {
    }
}
