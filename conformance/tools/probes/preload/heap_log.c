/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_log.c - how many bytes are live, the most there were, and the log of
 * both.
 *
 * A peak is written when it has grown by a 16th or by a MiB, whichever is
 * more, so that the log of a program that is killed has it within that. A
 * process that never had a MiB, as the helpers that a program starts, leaves no
 * log. All that happens in a call of malloc takes no memory.
 */
#include "tools/probes/preload/heap_probe.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_GROWTH = 1 << 20
};

static struct probe_log file = PROBE_LOG_INITIAL;
static pid_t parent;
static pid_t self; /* a child of vfork runs in our memory, and is not us */

static _Atomic uint64_t live, peak;
static _Atomic uint64_t since_mark; /* the peak since the last mark */
static _Atomic uint64_t blocks, calls, mapped, lost;
static _Atomic uint64_t next_report = LEAST_GROWTH;

/* A raised maximum. */
static bool raise_to(_Atomic uint64_t *most, uint64_t x)
{
    uint64_t seen = atomic_load_explicit(most, memory_order_relaxed);
    while (x > seen) {
        if (atomic_compare_exchange_weak_explicit(
                most, &seen, x, memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void lock(void)
{
    (void)pthread_mutex_lock(&file.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&file.lock);
}

static bool is_open(void)
{
    if (file.state == PROBE_LOG_CLOSED) {
        struct probe_head head = {.parent = parent};
        if (heap_head(&head)) {
            (void)probe_log_open(&file, &head);
        }
    }
    return file.state == PROBE_LOG_OPEN;
}

static uint64_t read_of(const _Atomic uint64_t *x)
{
    return atomic_load_explicit(x, memory_order_relaxed);
}

static void report(void)
{
    struct probe_line line;
    lock();
    uint64_t most = read_of(&peak);
    if (most >= read_of(&next_report) && getpid() == self && is_open()) {
        uint64_t more = most / 16 > LEAST_GROWTH ? most / 16 : LEAST_GROWTH;
        atomic_store_explicit(&next_report, most + more, memory_order_relaxed);
        probe_line_begin(&line, "peak");
        probe_line_u64(&line, "peak", most);
        probe_log_write(&file, &line);
    }
    unlock();
}

static void grew(uint64_t bytes)
{
    uint64_t now =
        atomic_fetch_add_explicit(&live, bytes, memory_order_relaxed) + bytes;
    (void)raise_to(&since_mark, now);
    if (raise_to(&peak, now) && now >= read_of(&next_report)) {
        report();
    }
}

/* Never below 0: memory may be older than the counting. */
static void shrank(_Atomic uint64_t *x, uint64_t bytes)
{
    uint64_t seen = read_of(x);
    while (!atomic_compare_exchange_weak_explicit(
        x, &seen, seen > bytes ? seen - bytes : 0, memory_order_relaxed,
        memory_order_relaxed)) {
    }
}

void heap_grew(uint64_t bytes)
{
    atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    grew(bytes);
}

void heap_shrank(uint64_t bytes)
{
    shrank(&blocks, 1);
    shrank(&live, bytes);
}

void heap_changed(uint64_t from, uint64_t to)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (to > from) {
        grew(to - from);
    } else {
        shrank(&live, from - to);
    }
}

void heap_mapped(uint64_t bytes)
{
    atomic_fetch_add_explicit(&mapped, bytes, memory_order_relaxed);
    grew(bytes);
}

void heap_unmapped(uint64_t bytes)
{
    shrank(&mapped, bytes);
    shrank(&live, bytes);
}

void heap_untracked(void)
{
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
}

void heap_log_mark(const char *name)
{
    struct probe_line line;
    lock();
    if (getpid() == self && is_open()) {
        uint64_t now = read_of(&live);
        probe_line_begin(&line, "mark");
        probe_line_text(&line, "name", name ? name : "");
        probe_line_u64(&line, "live", now);
        probe_line_u64(
            &line, "peak_since",
            atomic_exchange_explicit(&since_mark, now, memory_order_relaxed));
        probe_log_write(&file, &line);
    }
    unlock();
}

void heap_log_end(uint32_t how)
{
    struct probe_line line;
    lock();
    if (getpid() == self && file.state == PROBE_LOG_OPEN) {
        probe_line_begin(&line, "end");
        probe_line_text(&line, "how", probe_how_name(how));
        probe_line_u64(&line, "peak", read_of(&peak));
        probe_line_u64(&line, "live", read_of(&live));
        probe_line_u64(&line, "mapped", read_of(&mapped));
        probe_line_u64(&line, "blocks", read_of(&blocks));
        probe_line_u64(&line, "allocations", read_of(&calls));
        probe_line_u64(&line, "untracked", read_of(&lost));
        probe_log_write(&file, &line);
        probe_log_close(&file);
    }
    unlock();
}

/* ---- The process ---- */

static void before_fork(void)
{
    heap_maps_lock();
    lock();
}

static void in_parent(void)
{
    unlock();
    heap_maps_unlock();
}

/* A child has its own log, which begins when there is something to write: most
 * children become another program at once. The memory that it inherited stays
 * live, and its peak begins at that. */
static void in_child(void)
{
    uint64_t now = read_of(&live);
    probe_log_forget(&file);
    file.state = PROBE_LOG_CLOSED;
    parent = self;
    self = getpid();
    atomic_store(&peak, now);
    atomic_store(&since_mark, now);
    atomic_store(&calls, 0);
    atomic_store(&next_report, now + LEAST_GROWTH);
    unlock();
    heap_maps_unlock();
}

__attribute__((constructor)) static void at_start(void)
{
    self = getpid();
    (void)pthread_atfork(before_fork, in_parent, in_child);
    if (read_of(&peak) >= read_of(&next_report)) {
        report(); /* what came before us */
    }
}

__attribute__((destructor)) static void at_exit(void)
{
    heap_log_end(PROBE_EXITED);
}
