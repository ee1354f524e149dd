/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolated_mutants.c - engines that look for a way around the suite, and leave
 * nothing behind that is seen afterwards: found where ranks are isolated.
 */
#include "mutants/mutant_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
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

/* In each step `way` is tried, and given up again. */
static int in_step(struct fsdp_sharded *s, struct fsdp_step *how,
                   void (*way)(void))
{
    way();
    return mutant_real.engine.step(s, how);
}

static void open_socket(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (fd >= 0) {
        close(fd);
    }
}

static int talks_by_socket(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, open_socket);
}

static void read_parent(void)
{
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {&mutant_now, 1};

    (void)!process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}

static int reads_others(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, read_parent);
}

static void map_shared(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED) {
        munmap(p, 4096);
    }
}

static int shares_memory(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, map_shared);
}

/* Kept there, the whole model would be in no process's private memory. */
static void make_memory_file(void)
{
    const int fd = (int)syscall(SYS_memfd_create, "model", 0);

    if (fd >= 0) {
        close(fd);
    }
}

static int keeps_in_memory_file(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, make_memory_file);
}

static void ask_parent(void)
{
    (void)kill(getppid(), 0);
}

static int signals_others(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, ask_parent);
}

/* Whoever it names is killed when there is something to read. */
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

static int signals_by_pipe(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, arm_pipe);
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

static int starts_process(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, be_two);
}

/* A file that all can read, and nobody can write: whether it is locked is a bit
 * that every other rank can ask for. */
static void lock_file(void)
{
    const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)flock(fd, LOCK_SH | LOCK_NB);
        close(fd);
    }
}

static int locks_file(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, lock_file);
}

/* The same, by the part of it that is locked. */
static void lock_part(void)
{
    struct flock part = {.l_type = F_RDLCK, .l_len = 1};
    const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fcntl(fd, F_SETLK, &part);
        close(fd);
    }
}

static int locks_part(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, lock_part);
}

/* Who watches a file is told when another opens it. */
static void watch_file(void)
{
    const int fd = inotify_init1(IN_CLOEXEC);

    if (fd >= 0) {
        (void)inotify_add_watch(fd, "/etc/passwd", IN_OPEN);
        close(fd);
    }
}

static int watches_file(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, watch_file);
}

/* A name that is the whole machine's, or all ranks'. Not another one. */
static void name_host(void)
{
    char name[65] = "";

    if (gethostname(name, sizeof(name) - 1) == 0) {
        (void)sethostname(name, strlen(name));
    }
}

static int names_host(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, name_host);
}

/* A number of a process that every other one can ask for. */
static void join_group(void)
{
    (void)setpgid(0, getpgid(0));
}

static int joins_group(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, join_group);
}

/* And another. */
static void ask_priority(void)
{
    (void)getpriority(PRIO_PROCESS, (id_t)getppid());
}

static int asks_priority(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return in_step(s, how, ask_priority);
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
     .calls.step = asks_priority},
    {.name = "isolated-forks",
     .text = "each step starts a process, and waits for it",
     .evidence = "design: a process holds what its parent must not",
     REFUSED,
     .calls.step = starts_process},
    {.name = "isolated-joins-group",
     .text = "each step sets its group of processes",
     .evidence = "design: a number that every process can set of itself, and "
                 "others read",
     REFUSED,
     .calls.step = joins_group},
    {.name = "isolated-keeps-in-memory-file",
     .text = "each step makes a file in memory, and closes it",
     .evidence = "design: what is kept there is in no process's heap",
     REFUSED,
     .calls.step = keeps_in_memory_file},
    {.name = "isolated-locks-file",
     .text = "each step locks a file that nobody can write to",
     .evidence = "design: a bit that every other rank can ask for",
     REFUSED,
     .calls.step = locks_file},
    {.name = "isolated-locks-part",
     .text = "each step locks a part of a file that nobody can write to",
     .evidence = "design: a number that every other rank can ask for",
     REFUSED,
     .calls.step = locks_part},
    {.name = "isolated-maps-shared",
     .text = "each step maps shared memory, and unmaps it",
     .evidence = "design: memory that a child would have, too",
     REFUSED,
     .calls.step = shares_memory},
    {.name = "isolated-names-host",
     .text = "each step sets the name of the host, to what it is",
     .evidence = "design: a text that every process can read",
     REFUSED,
     .calls.step = names_host},
    {.name = "isolated-pipe-signals",
     .text = "each step has a pipe send SIGKILL to the rank's parent",
     .evidence = "design: a signal that no call of kill sends",
     REFUSED,
     .calls.step = signals_by_pipe},
    {.name = "isolated-reads-memory",
     .text = "each step reads another process's memory",
     .evidence = "design: gradients can be fetched without a collective",
     REFUSED,
     .calls.step = reads_others},
    {.name = "isolated-signals",
     .text = "each step sends a signal to its parent",
     .evidence = "design: a rank that ends or stops its run",
     REFUSED,
     .calls.step = signals_others},
    {.name = "isolated-socket",
     .text = "each step opens a socket, and closes it",
     .evidence = "design: a channel that is gone when one looks",
     REFUSED,
     .calls.step = talks_by_socket},
    {.name = "isolated-watches-file",
     .text = "each step watches a file that every rank can open",
     .evidence = "design: who watches is told that another rank opens it",
     REFUSED,
     .calls.step = watches_file},
    {0},
};
