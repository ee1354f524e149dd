/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits.c - sets a rank's limits, one after the other, and finds out
 * whether this machine has them.
 */
#include "run/worker/rank_limits.h"
#include "run/process/rank_calls.h"
#include "run/process/rank_paths.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool limits_enter(struct notary *n, uint32_t rank, const char *const *folders,
                  const char **why)
{
    int listener;

    *why = "a descriptor";
    if (!notary_make_line(n)) {
        return false;
    }
    *why = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    *why = "Landlock";
    if (!rank_paths_refuse(folders)) {
        return false;
    }
    *why = "seccomp with user notification";
    listener = rank_calls_refuse();
    return listener >= 0 && notary_hand_over(n, rank, listener);
}

#if defined(__has_feature) /* clang */
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define TRACES_ITSELF 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* GCC */
#    define TRACES_ITSELF 1
#endif

#ifdef TRACES_ITSELF

const char *limits_lacking(void)
{
    return "a build without sanitizers, which trace themselves";
}

#else

/* Sets all limits in a process of its own, and checks that a call that must be
 * refused is refused and noted. */
static const char *try_out(void)
{
    static const char *const whys[] = {"no_new_privs", "Landlock",
                                       "seccomp with user notification"};
    static const char *const null[] = {"/dev/null", NULL};
    struct notary_notes notes;
    struct notary n;
    const char *why = NULL;
    int status = 0;
    bool noted;
    pid_t pid;

    if (!notary_start(&n, &(struct notary_task){.record = NULL})) {
        return "room for a process";
    }
    pid = fork();
    if (pid == 0) {
        if (!limits_enter(&n, 0, null, &why)) {
            _exit(strcmp(why, whys[0]) == 0   ? 1
                  : strcmp(why, whys[1]) == 0 ? 2
                                              : 3);
        }
        _exit(syscall(SYS_socket, 1, 1, 0) == -1 && errno == EPERM ? 0 : 3);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    noted = notary_stop(&n, &notes, &why) && notes.n == 1;
    if (pid < 0 || !WIFEXITED(status)) {
        return "room for a process";
    }
    status = WEXITSTATUS(status);
    return status > 0 && status < 4 ? whys[status - 1]
           : status == 0 && noted   ? NULL
                                    : whys[2];
}

const char *limits_lacking(void)
{
    static bool asked;
    static const char *lacking;

    if (!asked) {
        lacking = try_out();
        asked = true;
    }
    return lacking;
}

#endif
