/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolated_mutants.c - engines that look for a way around the suite, and leave
 * no trace that could be seen afterwards: found where ranks are isolated.
 */
#include "mutants/mutant_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_socket(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (fd >= 0) {
        close(fd);
    }
}

static void read_parent(void)
{
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {&mutant_now, 1};

    (void)!process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}

static void map_shared(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED) {
        munmap(p, 4096);
    }
}

/* Kept there, the whole model would be in no process's private memory. */
static void make_memory_file(void)
{
    const int fd = (int)syscall(SYS_memfd_create, "model", 0);

    if (fd >= 0) {
        close(fd);
    }
}

static void ask_parent(void)
{
    (void)kill(getppid(), 0);
}

/* The process that it names is killed when there is something to read. */
static void arm_pipe(void)
{
    int two[2];

    if (pipe(two) != 0) {
        return;
    }
    if (fcntl(two[0], F_SETSIG, SIGKILL) == 0 &&
        fcntl(two[0], F_SETOWN, getppid()) == 0 &&
        fcntl(two[0], F_SETFL, O_ASYNC) == 0) {
        (void)!write(two[1], "", 1);
    }
    close(two[0]);
    close(two[1]);
}

static void be_two(void)
{
    const pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
    }
}

/* Locks a file that all can read and none can write: whether it is locked is a
 * bit that every other rank can read. */
static void lock_file(void)
{
    const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)flock(fd, LOCK_SH | LOCK_NB);
        close(fd);
    }
}

/* The same, by the part of the file that is locked. */
static void lock_part(void)
{
    struct flock part = {.l_type = F_RDLCK, .l_len = 1};
    const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fcntl(fd, F_SETLK, &part);
        close(fd);
    }
}

/* A process that watches a file is told when another one opens it. */
static void watch_file(void)
{
    const int fd = inotify_init1(IN_CLOEXEC);

    if (fd >= 0) {
        (void)inotify_add_watch(fd, "/etc/passwd", IN_OPEN);
        close(fd);
    }
}

/* Sets the name of the machine, which all ranks can read. It is set to what it
 * was. */
static void name_host(void)
{
    char name[65] = "";

    if (gethostname(name, sizeof(name) - 1) == 0) {
        (void)sethostname(name, strlen(name));
    }
}

/* The process group is a number that every other process can ask for. */
static void join_group(void)
{
    (void)setpgid(0, getpgid(0));
}

/* So is the priority. */
static void ask_priority(void)
{
    (void)getpriority(PRIO_PROCESS, (id_t)getppid());
}

#define REFUSED                       \
    .kills = "run.no-forbidden-call", \
    .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true}

const struct mutant isolated_mutants[] = {
    {.name = "isolated-asks-priority",
     .text = "each step asks how nice its parent is",
     .evidence = "design: a number that every process can set of itself, and "
                 "others read",
     REFUSED,
     .before_step = ask_priority},
    {.name = "isolated-forks",
     .text = "each step starts a process, and waits for it",
     .evidence = "design: a process holds what its parent must not",
     REFUSED,
     .before_step = be_two},
    {.name = "isolated-joins-group",
     .text = "each step sets its group of processes",
     .evidence = "design: a number that every process can set of itself, and "
                 "others read",
     REFUSED,
     .before_step = join_group},
    {.name = "isolated-keeps-in-memory-file",
     .text = "each step makes a file in memory, and closes it",
     .evidence = "design: what is kept there is in no process's heap",
     REFUSED,
     .before_step = make_memory_file},
    {.name = "isolated-locks-file",
     .text = "each step locks a file that nobody can write to",
     .evidence = "design: a bit that every other rank can ask for",
     REFUSED,
     .before_step = lock_file},
    {.name = "isolated-locks-part",
     .text = "each step locks a part of a file that nobody can write to",
     .evidence = "design: a number that every other rank can ask for",
     REFUSED,
     .before_step = lock_part},
    {.name = "isolated-maps-shared",
     .text = "each step maps shared memory, and unmaps it",
     .evidence = "design: memory that a child would have, too",
     REFUSED,
     .before_step = map_shared},
    {.name = "isolated-names-host",
     .text = "each step sets the name of the host, to what it is",
     .evidence = "design: a text that every process can read",
     REFUSED,
     .before_step = name_host},
    {.name = "isolated-pipe-signals",
     .text = "each step has a pipe send SIGKILL to the rank's parent",
     .evidence = "design: a signal that no call of kill sends",
     REFUSED,
     .before_step = arm_pipe},
    {.name = "isolated-reads-memory",
     .text = "each step reads another process's memory",
     .evidence = "design: gradients can be fetched without a collective",
     REFUSED,
     .before_step = read_parent},
    {.name = "isolated-signals",
     .text = "each step sends a signal to its parent",
     .evidence = "design: a rank that ends or stops its run",
     REFUSED,
     .before_step = ask_parent},
    {.name = "isolated-socket",
     .text = "each step opens a socket, and closes it",
     .evidence = "design: a channel that is gone when one looks",
     REFUSED,
     .before_step = open_socket},
    {.name = "isolated-watches-file",
     .text = "each step watches a file that every rank can open",
     .evidence = "design: who watches is told that another rank opens it",
     REFUSED,
     .before_step = watch_file},
    {0},
};
