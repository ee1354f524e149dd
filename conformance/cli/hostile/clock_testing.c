/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_testing.c - preloaded (LD_PRELOAD), it makes the time of day jump at
 * each look at it: by up to ten years, forwards and back. So does a clock that
 * is set, a machine that comes back from a pause, a bad source of time. Clocks
 * that cannot be set stay as they are. When a process ends that has looked at
 * the time of day, a line is added to the file that CLOCK_TESTING names: its
 * program, and how often it looked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint32_t looks;

/* Seconds, another number each time; the first one is far back. */
static int64_t jump(void)
{
    const int64_t ten_years = 10LL * 365 * 86400;
    const uint64_t n = atomic_fetch_add(&looks, 1);
    const uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;

    return n == 0 ? -ten_years
                  : (int64_t)(x >> 8) % (2 * ten_years) - ten_years;
}

static int look(clockid_t clock, struct timespec *to)
{
    const long status = syscall(SYS_clock_gettime, clock, to);

    if (status == 0 && (clock == CLOCK_REALTIME ||
                        clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
        to->tv_sec += jump();
    }
    return (int)status;
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    return look(clock, to);
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)look(CLOCK_REALTIME, &now);
    *to = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

int timespec_get(struct timespec *to, int base)
{
    return base == TIME_UTC && look(CLOCK_REALTIME, to) == 0 ? base : 0;
}

time_t time(time_t *to)
{
    struct timespec now;

    (void)look(CLOCK_REALTIME, &now);
    if (to) {
        *to = now.tv_sec;
    }
    return now.tv_sec;
}

__attribute__((destructor)) static void say(void)
{
    const char *path = getenv("CLOCK_TESTING");
    int fd = path && looks > 0
                 ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                 : -1;

    if (fd >= 0) {
        dprintf(fd, "%s %u\n", program_invocation_short_name, (unsigned)looks);
        (void)close(fd);
    }
}
