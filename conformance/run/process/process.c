/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - asks the kernel, the C library and the processor about this
 * process: reads /proc/self for resident memory, its peak, and the ways out
 * (descriptors, files that are mapped shared); and notes what a call may have
 * changed.
 *
 * Descriptors and mappings of a GPU's driver are no way to another rank, and
 * the driver makes them at any time: its devices, and pinned memory, which is a
 * shared mapping without a name that was made after the ranks were forked.
 */
#include "run/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads kilobytes from a line of the kernel's, if it begins with this word. */
static void take_kilobytes(const char *line, const char *word, uint64_t *bytes)
{
    if (strncmp(line, word, strlen(word)) == 0) {
        *bytes = strtoull(line + strlen(word), NULL, 10) * 1024;
    }
}

static void read_status(struct process_view *out, int *why)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    *why = f ? *why : errno;
    while (f && fgets(line, sizeof(line), f)) {
        take_kilobytes(line, "VmRSS:", &out->resident_bytes);
        take_kilobytes(line, "VmHWM:", &out->peak_bytes);
    }
    if (f) {
        fclose(f);
    }
}

bool process_is_driver(const char *path)
{
    static const char *const driver[] = {"/dev/nvidia", "/dev/zero (deleted)",
                                         "/anon_hugepage (deleted)"};
    bool is = false;

    for (size_t i = 0; i < sizeof(driver) / sizeof(*driver); i++) {
        is = is || strncmp(path, driver[i], strlen(driver[i])) == 0;
    }
    return is;
}

static uint32_t count_descriptors(int *why)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    uint32_t n = 0;

    *why = d ? *why : errno;
    while (d && (e = readdir(d))) {
        char path[64] = "";
        ssize_t bytes = readlinkat(dirfd(d), e->d_name, path, sizeof(path) - 1);

        path[bytes > 0 ? bytes : 0] = '\0';
        n += !process_is_driver(path);
    }
    if (d) {
        closedir(d);
    }
    return n;
}

bool process_shared_mapping(const char *line, struct process_file *out)
{
    char mode[8] = "";
    int path = 0;

    /* first-last mode offset major:minor inode path */
    return sscanf(line, "%*s %7s %*s %x:%x %llu %n", mode, &out->major,
                  &out->minor, &out->inode, &path) == 4 &&
           strlen(mode) == 4 && mode[3] == 's' && path > 0 &&
           !process_is_driver(line + path);
}

/* Counts files that are mapped shared; one in many pieces counts once. */
static uint32_t count_shared_mappings(int *why)
{
    enum {
        MOST = 512
    };
    struct process_file seen[MOST];
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];
    uint32_t n = 0;

    *why = f ? *why : errno;
    while (f && fgets(line, sizeof(line), f)) {
        uint32_t i = 0;

        if (n == MOST || !process_shared_mapping(line, &seen[n])) {
            continue;
        }
        while (seen[i].inode != seen[n].inode ||
               seen[i].major != seen[n].major ||
               seen[i].minor != seen[n].minor) {
            i++;
        }
        n += i == n;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

int process_look(struct process_view *out, enum process_ways ways)
{
    struct rusage children = {0};
    int why = 0;

    *out = (struct process_view){0};
    read_status(out, &why);
    if (getrusage(RUSAGE_CHILDREN, &children) == 0 && children.ru_maxrss > 0) {
        out->child_bytes = (uint64_t)children.ru_maxrss * 1024;
    }
    if (ways != PROCESS_NO_WAYS) {
        out->channels = count_descriptors(&why);
    }
    if (ways == PROCESS_ALL_WAYS) {
        out->channels += count_shared_mappings(&why);
    }
    return why;
}

void process_touch(const void *memory, size_t bytes)
{
    const volatile unsigned char *p = memory;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < bytes; i += page) {
        (void)p[i];
    }
}

void process_forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");

    if (f) {
        fputs("5", f); /* the peak is what is resident now */
        fclose(f);
    }
}

extern char **environ;

/* ---- The processor ----------------------------------------------------- */

#if defined(__x86_64__)

static void note_float_modes(struct process_state *s)
{
    const uint32_t flags = 0x3f; /* exceptions that were raised: no mode */
    uint16_t word = 0;

    s->float_mode = __builtin_ia32_stmxcsr() & ~flags;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    s->float_mode2 = word;
}

#elif defined(__aarch64__)

static void note_float_modes(struct process_state *s)
{
    __asm__ volatile("mrs %0, fpcr" : "=r"(s->float_mode));
}

#else

static void note_float_modes(struct process_state *s)
{
    s->float_mode = (uint64_t)fegetround();
}

#endif

/* ---- Library and kernel ------------------------------------------------ */

static const uint64_t nothing = UINT64_C(14695981039346656037);

/* FNV-1a over words in place of bytes; the upper half is added to the lower,
 * which would not depend on it otherwise. */
static uint64_t add_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    const size_t n = strlen(text) + 1;

    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        const size_t rest = n - i;
        uint64_t word = 0;

        memcpy(&word, text + i, rest < sizeof(word) ? rest : sizeof(word));
        hash = add_word(hash, word);
    }
    return hash;
}

/* Takes the kernel's bits, one a signal, at the start of the library's set:
 * 4000 calls of sigismember a look took as long as all that is asked of the
 * kernel. */
static uint64_t mask_of(const sigset_t *set)
{
    uint64_t mask;

    _Static_assert(sizeof(*set) >= sizeof(mask), "a bit a signal");
    memcpy(&mask, set, sizeof(mask));
    return mask;
}

static void note_thread(struct process_state *s)
{
    sigset_t masked;

    note_float_modes(s);
    sigemptyset(&masked);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &masked);
    s->masked = mask_of(&masked);
    s->locale = uselocale((locale_t)0);
}

static void note_always(struct process_state *s)
{
    const char *locales = setlocale(LC_ALL, NULL);

    /* Asked after each call of an engine: snprintf took a third of that. */
    s->locales[sizeof(s->locales) - 1] = '\0';
    (void)memccpy(s->locales, locales ? locales : "", '\0',
                  sizeof(s->locales) - 1);
    s->environment = environ;
}

static uint64_t handler_of(int number)
{
    /* A flag of the kernel's own, which sigaction adds, is left out. */
    const uint64_t flags = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO |
                           SA_ONSTACK | SA_RESTART | SA_NODEFER |
                           (uint32_t)SA_RESETHAND;
    struct sigaction a;
    uint64_t hash;

    sigemptyset(&a.sa_mask);
    if (sigaction(number, NULL, &a) != 0) {
        return 0; /* the library's own */
    }
    hash = add_word(nothing, (uint64_t)(uintptr_t)a.sa_handler);
    hash = add_word(hash, (uint64_t)(uint32_t)a.sa_flags & flags);
    return add_word(hash, mask_of(&a.sa_mask));
}

/* Leaves out variables by which NCCL alone is told things. */
static uint64_t hash_variables(void)
{
    uint64_t hash = nothing;

    for (char **v = environ; v && *v; v++) {
        if (strncmp(*v, "NCCL_", 5) != 0) {
            hash = add_text(hash, *v);
        }
    }
    return hash;
}

static void note_at_rest(struct process_state *s)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    s->umask = mask;
    memset(s->folder, 0, sizeof(s->folder));
    if (!getcwd(s->folder, sizeof(s->folder))) {
        s->folder[0] = '\0';
    }
    s->variables = hash_variables();
}

static void note_tables(struct process_state *s)
{
    for (int i = 0; i < PROCESS_SIGNALS; i++) {
        s->handler[i] = handler_of(i + 1);
    }
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        (void)getrlimit((__rlimit_resource_t)i, &s->limit[i]);
    }
}

/* Notes what `depth` asks for; the rest stays as it was. */
static void note_process(struct process_state *s, enum process_depth depth,
                         bool alone)
{
    note_thread(s);
    if (alone) {
        note_always(s);
    }
    if (alone && depth != PROCESS_IN_PASS) {
        note_at_rest(s);
    }
    if (alone && depth == PROCESS_WHOLE) {
        note_tables(s);
    }
}

void process_state_note(struct process_state *out, bool alone)
{
    memset(out, 0, sizeof(*out));
    note_process(out, PROCESS_WHOLE, alone);
}

/* ---- What has changed -------------------------------------------------- */

static bool say_number(char text[PROCESS_STATE_TEXT], const char *what,
                       uint64_t now, uint64_t before)
{
    snprintf(text, PROCESS_STATE_TEXT, "%s: %#llx, was %#llx", what,
             (unsigned long long)now, (unsigned long long)before);
    return true;
}

static bool differs_always(const struct process_state *now,
                           const struct process_state *s,
                           char text[PROCESS_STATE_TEXT])
{
    if (now->float_mode != s->float_mode) {
        return say_number(text, "floating-point mode", now->float_mode,
                          s->float_mode);
    }
    if (now->float_mode2 != s->float_mode2) {
        return say_number(text, "x87 control word", now->float_mode2,
                          s->float_mode2);
    }
    if (now->masked != s->masked) {
        return say_number(text, "signal mask", now->masked, s->masked);
    }
    if (now->locale != s->locale || strcmp(now->locales, s->locales) != 0) {
        snprintf(text, PROCESS_STATE_TEXT, "locale: %.40s, was %.40s%s",
                 now->locales, s->locales,
                 now->locale != s->locale ? " (of the thread)" : "");
        return true;
    }
    return now->environment != s->environment &&
           hash_variables() != s->variables &&
           snprintf(text, PROCESS_STATE_TEXT,
                    "environment: other variables, or other values") > 0;
}

static bool differs_in_limits(const struct process_state *now,
                              const struct process_state *s,
                              char text[PROCESS_STATE_TEXT])
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        const struct rlimit *a = &now->limit[i];
        const struct rlimit *b = &s->limit[i];
        const bool hard = a->rlim_max != b->rlim_max;
        char what[48];

        /* Asked after each call of an engine: words only where they differ. */
        if (hard || a->rlim_cur != b->rlim_cur) {
            snprintf(what, sizeof(what), "resource limit %d (%s)", i,
                     hard ? "hard" : "soft");
            return say_number(text, what, hard ? a->rlim_max : a->rlim_cur,
                              hard ? b->rlim_max : b->rlim_cur);
        }
    }
    return false;
}

static bool differs_at_rest(const struct process_state *now,
                            const struct process_state *s,
                            char text[PROCESS_STATE_TEXT])
{
    if (strcmp(now->folder, s->folder) != 0) {
        snprintf(text, PROCESS_STATE_TEXT, "working folder: %.50s, was %.50s",
                 now->folder, s->folder);
        return true;
    }
    if (now->variables != s->variables) {
        snprintf(text, PROCESS_STATE_TEXT,
                 "environment: other variables, or other values");
        return true;
    }
    return now->umask != s->umask &&
           say_number(text, "umask", now->umask, s->umask);
}

static bool differs_in_tables(const struct process_state *now,
                              const struct process_state *s,
                              char text[PROCESS_STATE_TEXT])
{
    for (int i = 0; i < PROCESS_SIGNALS; i++) {
        if (now->handler[i] != s->handler[i]) {
            snprintf(text, PROCESS_STATE_TEXT,
                     "handler of signal %d: another one", i + 1);
            return true;
        }
    }
    return differs_in_limits(now, s, text);
}

enum process_found process_state_changed(struct process_state *s,
                                         enum process_depth depth, bool alone,
                                         char text[PROCESS_STATE_TEXT])
{
    struct process_state now = *s;
    enum process_found found = PROCESS_SAME;

    note_process(&now, depth, alone);
    if (differs_always(&now, s, text) || differs_at_rest(&now, s, text)) {
        found = PROCESS_OTHER;
    } else if (differs_in_tables(&now, s, text)) {
        found = PROCESS_TABLES;
    }
    *s = now;
    return found;
}
