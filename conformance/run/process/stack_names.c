/* SPDX-License-Identifier: Apache-2.0 */
/* stack_names.c - see stack_names.h. */
#include "run/process/stack_names.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_BYTES = 1 << 20, /* bytes that are read of a rank's file */
    MAX_HEADERS = 64,
    NAMING_SECONDS = 5
};

/* The mapping of a file's code. */
struct mapping {
    uint64_t begin, end, offset;
    char path[256];
};

/* ---- The file of a rank ---- */

static FILE *open_plain(const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    FILE *f = NULL;

    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
        s.st_size <= MAX_BYTES) {
        f = fdopen(fd, "r");
    }
    if (!f && fd >= 0) {
        (void)close(fd);
    }
    return f;
}

/* Reads a hexadecimal number and the text behind it; *at moves past both. */
static bool read_hex(const char **at, const char *behind, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(*at, &end, 16);
    if (errno != 0 || end == *at || strncmp(end, behind, strlen(behind)) != 0) {
        return false;
    }
    *at = end + strlen(behind);
    return true;
}

/* "7f..-7f.. r-xp 00001000 fe:01 1234   /path" */
static bool read_mapping(const char *line, struct mapping *m)
{
    const char *path = strchr(line, '/');

    if (!path || strlen(path) >= sizeof(m->path) ||
        !read_hex(&line, "-", &m->begin) ||
        !read_hex(&line, " r-xp ", &m->end) ||
        !read_hex(&line, " ", &m->offset)) {
        return false;
    }
    snprintf(m->path, sizeof(m->path), "%s", path);
    return true;
}

/* The address that the file itself gives to the byte at this offset. */
static bool own_offset(const char *path, uint64_t at, uint64_t *out)
{
    Elf64_Ehdr e;
    Elf64_Phdr p;
    struct stat s;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
        pread(fd, &e, sizeof(e), 0) == (ssize_t)sizeof(e) &&
        memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 &&
        e.e_ident[EI_CLASS] == ELFCLASS64) {
        for (unsigned i = 0; i < e.e_phnum && i < MAX_HEADERS && !found; i++) {
            const off_t place = (off_t)(e.e_phoff + i * sizeof(p));

            found = pread(fd, &p, sizeof(p), place) == (ssize_t)sizeof(p) &&
                    p.p_type == PT_LOAD && at >= p.p_offset &&
                    at - p.p_offset < p.p_filesz;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (found) {
        *out = at - p.p_offset + p.p_vaddr;
    }
    return found;
}

/* Places all frames of a stack that are in this mapping. A return address lies
 * behind its call, and may belong to the next line already. */
static void place_frames(struct stack *s, const struct mapping *m)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct stack_frame *f = &s->frame[i];
        const uint64_t at = f->address - (i > 0 ? 1 : 0);

        if (at >= m->begin && at < m->end &&
            own_offset(m->path, at - m->begin + m->offset, &f->offset)) {
            memcpy(f->module, m->path, sizeof(f->module));
        }
    }
}

static bool begins_stack(const char *line, struct stack *s)
{
    const bool asked = strncmp(line, "asked ", 6) == 0;
    const bool died = strncmp(line, "signal ", 7) == 0;

    *s = (struct stack){.signal = died ? (int)strtol(line + 7, NULL, 10) : 0,
                        .main = strstr(line, " main") != NULL};
    return asked || died;
}

static uint32_t read_stacks(FILE *f, struct stack stack[STACKS_OF_A_FILE])
{
    char *line = NULL;
    size_t room = 0;
    uint32_t n = 0;
    struct stack begun;

    while (getline(&line, &room, f) > 0) {
        struct mapping m;
        struct stack *last = n > 0 ? &stack[n - 1] : NULL;
        char *end;
        const unsigned long long address = strtoull(line, &end, 16);

        line[strcspn(line, "\n")] = '\0';
        if (begins_stack(line, &begun)) {
            if (n == STACKS_OF_A_FILE) {
                break;
            }
            stack[n++] = begun;
        } else if (last && strncmp(line, "doing ", 6) == 0) {
            snprintf(last->doing, sizeof(last->doing), "%s", line + 6);
        } else if (last && read_mapping(line, &m)) {
            place_frames(last, &m);
        } else if (last && end != line && last->n < STACK_FRAMES) {
            last->frame[last->n++].address = address;
        }
    }
    free(line);
    return n;
}

/* ---- Names ---- */

/* Starts addr2line on these offsets of a module, to read what it prints. NULL:
 * it cannot be run. */
static FILE *ask_names(const struct stack_frame *of, char *const *offset,
                       uint32_t n, pid_t *pid)
{
    char module[sizeof(of->module)];
    char *word[STACK_FRAMES + 16] = {"addr2line", "-a", "-i", "-f",
                                     "-s",        "-C", "-e", module};
    uint32_t first = 0;
    int ends[2];

    memcpy(module, of->module, sizeof(module));
    while (word[first]) {
        first++;
    }
    memcpy(word + first, offset, n * sizeof(*word));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return NULL;
    }
    *pid = fork();
    if (*pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)alarm(NAMING_SECONDS);
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execvp(word[0], word);
        _exit(127);
    }
    (void)close(ends[1]);
    return fdopen(ends[0], "r");
}

/* Appends "reduce (engine.c:120)", or the part of it that is known; the next
 * one is the function that it was inlined in. */
static void add_name(char name[STACK_NAME_BYTES], const char *function,
                     const char *line)
{
    const size_t n = strlen(name);
    const bool known = !strchr(line, '?');

    if (strcmp(function, "??") != 0) {
        snprintf(name + n, STACK_NAME_BYTES - n, "%s%.80s%s%.60s%s",
                 n > 0 ? ", in " : "", function, known ? " (" : "",
                 known ? line : "", known ? ")" : "");
    }
}

/* Reads addresses, one a line; behind each come the functions there, innermost
 * first, and their lines: two lines of text for each. */
static void take_names(FILE *f, struct stack *s, const uint32_t *of, uint32_t n)
{
    char *line = NULL;
    size_t room = 0;
    char function[160] = "";
    uint32_t next = 0;

    while (getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0x", 2) == 0) {
            next++;
            function[0] = '\0';
        } else if (function[0] == '\0') {
            snprintf(function, sizeof(function), "%s", line);
        } else {
            line[strcspn(line, " (")] = '\0';
            if (next > 0 && next <= n) {
                add_name(s->frame[of[next - 1]].name, function, line);
            }
            function[0] = '\0';
        }
    }
    free(line);
}

/* Names all frames of a stack that are in the module of frame i. */
static void name_module(struct stack *s, uint32_t i)
{
    char text[STACK_FRAMES][24];
    char *offset[STACK_FRAMES];
    uint32_t of[STACK_FRAMES];
    uint32_t n = 0;
    pid_t pid = -1;
    FILE *f;

    for (uint32_t k = i; k < s->n; k++) {
        if (strcmp(s->frame[k].module, s->frame[i].module) == 0) {
            snprintf(text[n], sizeof(text[n]), "0x%llx",
                     (unsigned long long)s->frame[k].offset);
            offset[n] = text[n];
            of[n++] = k;
        }
    }
    f = ask_names(&s->frame[i], offset, n, &pid);
    if (f) {
        take_names(f, s, of, n);
        (void)fclose(f);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static bool is_below(const char *path, const char *folder)
{
    const size_t n = folder ? strlen(folder) : 0;

    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

void stack_name(struct stack *s, const char *never)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct stack_frame *f = &s->frame[i];
        bool done = !f->module[0] || is_below(f->module, never);

        for (uint32_t k = 0; k < i && !done; k++) {
            done = strcmp(s->frame[k].module, f->module) == 0;
        }
        if (!done) {
            name_module(s, i);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        struct stack_frame *f = &s->frame[i];
        const char *base = strrchr(f->module, '/');

        if (!f->name[0] && base) {
            snprintf(f->name, sizeof(f->name), "%.120s+0x%llx", base + 1,
                     (unsigned long long)f->offset);
        } else if (!f->name[0]) {
            snprintf(f->name, sizeof(f->name), "0x%llx",
                     (unsigned long long)f->address);
        }
    }
}

uint32_t stack_read(const char *path, struct stack stack[STACKS_OF_A_FILE])
{
    FILE *f = open_plain(path);
    uint32_t n = 0;

    if (f) {
        n = read_stacks(f, stack);
        (void)fclose(f);
    }
    return n;
}
