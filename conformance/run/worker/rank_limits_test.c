/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits_test.c - makes calls in a process that has limits: each must be
 * refused; those that speak to others are noted; and a notary that was ended
 * early does not pass for an empty list.
 */
#include "run/process/rank_calls.h"
#include "run/process/rank_paths.h"
#include "run/worker/rank_limits.h"

#include "testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/landlock.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char folder[40], file[64];

static int make_folder(void **state)
{
    int fd;

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/rank-limits-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/file", folder);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

/* The outcome of an attempt, in a process of its own. */
enum {
    DONE,
    REFUSED, /* EPERM */
    LACKING, /* this machine cannot do it */
    OTHER,
    UNLIMITED /* there were no limits */
};

static int judge_attempt(long returned)
{
    return returned != -1                                            ? DONE
           : errno == EPERM                                          ? REFUSED
           : errno == ENOTSUP || errno == ENOSYS || errno == ENODATA ? LACKING
                                                                     : OTHER;
}

static int wait_for(pid_t pid)
{
    int status = 0;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_without(long (*attempt)(void))
{
    const pid_t pid = fork();

    if (pid == 0) {
        _exit(judge_attempt(attempt()));
    }
    return wait_for(pid);
}

static int try_beside(struct notary *n, uint32_t rank, long (*attempt)(void))
{
    const char *const own[] = {folder, NULL};
    const char *why = NULL;
    const pid_t pid = fork();

    if (pid == 0) {
        _exit(limits_enter(n, rank, own, &why) ? judge_attempt(attempt())
                                               : UNLIMITED);
    }
    return wait_for(pid);
}

static int try_within(long (*attempt)(void), struct notary_notes *notes)
{
    const char *why = NULL;
    struct notary n;
    int came_to;

    assert_true(notary_start(&n, &(struct notary_task){.record = NULL}));
    came_to = try_beside(&n, 0, attempt);
    assert_true(notary_stop(&n, notes, &why));
    return came_to;
}

/* ---- What speaks to others --------------------------------------------- */

static int a_pipe(void)
{
    int two[2] = {-1, -1};

    (void)!pipe(two);
    return two[0];
}

static long own_by_number(void)
{
    return fcntl(a_pipe(), F_SETOWN, getppid());
}

static long own_by_struct(void)
{
    const struct f_owner_ex who = {F_OWNER_PID, getppid()};

    return fcntl(a_pipe(), F_SETOWN_EX, &who);
}

static long choose_signal(void)
{
    return fcntl(a_pipe(), F_SETSIG, SIGKILL);
}

static long own_by_ioctl(void)
{
    const int who = getppid();

    return ioctl(a_pipe(), FIOSETOWN, &who);
}

static long own_a_socket(void)
{
    const int who = getppid();

    return ioctl(a_pipe(), SIOCSPGRP, &who);
}

static long ask_parent(void)
{
    return kill(getppid(), 0);
}

static long open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static struct flock one_byte = {.l_type = F_RDLCK, .l_len = 1};

static long lock_whole(void)
{
    return flock(open(file, O_RDONLY | O_CLOEXEC), LOCK_SH);
}

static long lock_part(void)
{
    return fcntl(open(file, O_RDONLY | O_CLOEXEC), F_SETLK, &one_byte);
}

static long lock_of_descriptor(void)
{
    return fcntl(open(file, O_RDONLY | O_CLOEXEC), F_OFD_SETLK, &one_byte);
}

static long ask_for_lock(void)
{
    return fcntl(open(file, O_RDONLY | O_CLOEXEC), F_GETLK, &one_byte);
}

static long lease(void)
{
    return fcntl(open(file, O_RDONLY | O_CLOEXEC), F_SETLEASE, F_RDLCK);
}

static long watch_folder(void)
{
    return fcntl(open(folder, O_RDONLY | O_CLOEXEC), F_NOTIFY, DN_CREATE);
}

static long watch_file(void)
{
    return inotify_init1(IN_CLOEXEC);
}

static long lead_group(void)
{
    return setpgid(0, 0);
}

static long ask_for_group(void)
{
    return getpgid(getppid());
}

static long ask_how_nice(void)
{
    return getpriority(PRIO_PROCESS, (id_t)getppid());
}

static const struct {
    const char *call;
    long (*attempt)(void);
} noted[] = {
    {"flock(", lock_whole},
    {"fcntl(", lock_part},
    {"fcntl(", lock_of_descriptor},
    {"fcntl(", ask_for_lock},
    {"fcntl(", lease},
    {"fcntl(", watch_folder},
    {"inotify_init1(", watch_file},
    {"setpgid(", lead_group},
    {"getpgid(", ask_for_group},
    {"getpriority(", ask_how_nice},
    {"fcntl(", own_by_number},
    {"fcntl(", own_by_struct},
    {"fcntl(", choose_signal},
    {"ioctl(", own_by_ioctl},
    {"ioctl(", own_a_socket},
    {"kill(", ask_parent},
    {"socket(", open_socket},
};

UNIT_TEST(what_speaks_to_others_is_refused_and_noted)
{
    for (size_t i = 0; i < sizeof(noted) / sizeof(noted[0]); i++) {
        struct notary_notes notes;

        assert_int_not_equal(try_without(noted[i].attempt), REFUSED);
        assert_int_equal(try_within(noted[i].attempt, &notes), REFUSED);
        assert_int_equal(notes.n, 1);
        assert_memory_equal(notes.refusal[0].call, noted[i].call,
                            strlen(noted[i].call));
    }
}

static long use_a_pipe(void)
{
    return fcntl(a_pipe(), F_SETFL, O_NONBLOCK);
}

static long signal_itself(void)
{
    return kill(getpid(), 0);
}

static long ask_for_itself(void)
{
    return getpriority(PRIO_PROCESS, (id_t)getpid()) == -1 ||
                   getpriority(PRIO_PROCESS, 0) == -1 || getpgid(0) == -1 ||
                   getsid(getpid()) == -1
               ? -1
               : 0;
}

static long write_here(void)
{
    return open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

UNIT_TEST(what_speaks_to_nobody_is_left)
{
    static long (*const attempts[])(void) = {use_a_pipe, signal_itself,
                                             ask_for_itself, write_here};

    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        struct notary_notes notes;

        assert_int_equal(try_within(attempts[i], &notes), DONE);
        assert_int_equal(notes.n, 0);
    }
}

/* ---- What a file has beside its bytes ---------------------------------- */

static int opened(void)
{
    return open(file, O_RDONLY | O_CLOEXEC);
}

static const struct timespec then[2] = {{1, 0}, {1, 0}};

#define ATTEMPT(name, call) \
    static long name(void)  \
    {                       \
        return (call);      \
    }
ATTEMPT(by_chmod, chmod(file, 0600))
ATTEMPT(by_fchmod, fchmod(opened(), 0600))
ATTEMPT(by_fchmodat, fchmodat(AT_FDCWD, file, 0600, 0))
ATTEMPT(by_chown, chown(file, getuid(), getgid()))
ATTEMPT(by_lchown, lchown(file, getuid(), getgid()))
ATTEMPT(by_fchown, fchown(opened(), getuid(), getgid()))
ATTEMPT(by_fchownat, fchownat(AT_FDCWD, file, getuid(), getgid(), 0))
ATTEMPT(by_utimensat, utimensat(AT_FDCWD, file, then, 0))
ATTEMPT(by_futimens, futimens(opened(), then))
ATTEMPT(by_setxattr, setxattr(file, "user.a", "b", 1, 0))
ATTEMPT(by_lsetxattr, lsetxattr(file, "user.a", "b", 1, 0))
ATTEMPT(by_fsetxattr, fsetxattr(opened(), "user.a", "b", 1, 0))
ATTEMPT(by_removexattr, removexattr(file, "user.a"))
ATTEMPT(by_lremovexattr, lremovexattr(file, "user.a"))
ATTEMPT(by_fremovexattr, fremovexattr(opened(), "user.a"))
#ifdef SYS_fchmodat2
ATTEMPT(by_fchmodat2, syscall(SYS_fchmodat2, AT_FDCWD, file, 0600, 0))
#endif
#ifdef SYS_utimes /* the C library asks for utimensat instead */
ATTEMPT(by_utime, syscall(SYS_utime, file, NULL))
ATTEMPT(by_utimes, syscall(SYS_utimes, file, NULL))
ATTEMPT(by_futimesat, syscall(SYS_futimesat, AT_FDCWD, file, NULL))
#endif
#undef ATTEMPT

static long (*const quiet[])(void) = {
    by_chmod,       by_fchmod,       by_fchmodat,     by_chown,
    by_lchown,      by_fchown,       by_fchownat,     by_utimensat,
    by_futimens,    by_setxattr,     by_lsetxattr,    by_fsetxattr,
    by_removexattr, by_lremovexattr, by_fremovexattr,
#ifdef SYS_fchmodat2
    by_fchmodat2,
#endif
#ifdef SYS_utimes
    by_utime,       by_utimes,       by_futimesat,
#endif
};

UNIT_TEST(rights_owners_and_times_stay)
{
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
        const int without = try_without(quiet[i]);
        struct notary_notes notes;

        assert_true(without == DONE || without == LACKING);
        assert_int_equal(try_within(quiet[i], &notes), REFUSED);
        assert_int_equal(notes.n, 0);
    }
}

static char elsewhere[48];

static long cut_elsewhere(void)
{
    const long cut = truncate(elsewhere, 0);

    errno = errno == EACCES ? EPERM : errno; /* Landlock's word for it */
    return cut;
}

/* Landlock refuses it, or, if that does not know the call, the filter. */
UNIT_TEST(nothing_elsewhere_is_cut)
{
    struct notary_notes notes;
    int fd;

    snprintf(elsewhere, sizeof(elsewhere), "/tmp/rank-limits-else-XXXXXX");
    fd = mkstemp(elsewhere);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(try_without(cut_elsewhere), DONE);
    assert_int_equal(try_within(cut_elsewhere, &notes), REFUSED);
    unlink(elsewhere);
}

/* ---- Landlock alone ---------------------------------------------------- */

static long ask_parent_by_paths_alone(void)
{
    const char *const own[] = {folder, NULL};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && rank_paths_refuse(own)
               ? kill(getppid(), 0)
               : 0;
}

UNIT_TEST(signals_stay_within_where_the_kernel_says_so)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
                                 LANDLOCK_CREATE_RULESET_VERSION);

    assert_int_equal(try_without(ask_parent_by_paths_alone),
                     version >= 6 ? REFUSED : DONE);
}

/* ---- The notary -------------------------------------------------------- */

UNIT_TEST(a_notary_that_has_died_says_so)
{
    struct notary_notes notes;
    struct notary n;
    const char *why = NULL;

    assert_true(notary_start(&n, &(struct notary_task){.record = NULL}));
    assert_int_equal(kill(n.pid, SIGKILL), 0);
    assert_false(notary_stop(&n, &notes, &why));
    assert_non_null(why);
    assert_int_equal(notes.n, 0);
    assert_true(notary_start(&n, &(struct notary_task){.record = NULL}));
    assert_true(notary_stop(&n, &notes, &why));
    assert_int_equal(notes.n, 0);
}

/* A notary goes on with another world, and reports nothing of the first one
 * again. */
UNIT_TEST(a_notary_goes_on)
{
    const struct notary_task task = {.record = NULL};
    struct notary_notes notes;
    struct notary n;
    const char *why = NULL;

    assert_true(notary_start(&n, &task));
    assert_int_equal(try_beside(&n, 2, ask_parent), REFUSED);
    assert_true(notary_report(&n, &notes, &why));
    assert_int_equal(notes.n, 1);
    assert_int_equal(notes.n_ranks, 3);
    assert_int_equal(notes.refusal[0].rank, 2);
    assert_true(notary_go_on(&n, &task));
    assert_int_equal(try_beside(&n, 0, write_here), DONE);
    assert_true(notary_report(&n, &notes, &why));
    assert_int_equal(notes.n, 0);
    assert_int_equal(notes.n_ranks, 1);
    assert_int_equal(kill(n.pid, SIGKILL), 0);
    assert_false(notary_report(&n, &notes, &why));
    assert_false(notary_go_on(&n, &task));
    assert_false(notary_report(&n, &notes, &why));
}

UNIT_TEST(calls_of_other_programs_have_no_names)
{
    const uint64_t argument[6] = {1, 2, 3, 4, 5, 6};
    char text[128];

    rank_calls_describe(AUDIT_ARCH_I386, SYS_socket, argument, text,
                        sizeof(text));
    assert_non_null(strstr(text, "another kind of program"));
#if defined(__x86_64__)
    rank_calls_describe(AUDIT_ARCH_X86_64, SYS_socket, argument, text,
                        sizeof(text));
    assert_string_equal(text, "socket(0x1, 0x2, 0x3, 0x4)");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_speaks_to_others_is_refused_and_noted),
        cmocka_unit_test(what_speaks_to_nobody_is_left),
        cmocka_unit_test(rights_owners_and_times_stay),
        cmocka_unit_test(nothing_elsewhere_is_cut),
        cmocka_unit_test(signals_stay_within_where_the_kernel_says_so),
        cmocka_unit_test(a_notary_that_has_died_says_so),
        cmocka_unit_test(a_notary_goes_on),
        cmocka_unit_test(calls_of_other_programs_have_no_names),
    };
    const char *lacking = limits_lacking();

    if (lacking) {
        printf("skipped: this machine lacks %s\n", lacking);
        return 77;
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder) != 0;
}
