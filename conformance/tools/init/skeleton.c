/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton.c - finds places, and leaves out what they hold.
 */
#include "tools/init/skeleton.h"

#include <string.h>

static const char opens[] = "<< */\n";
static const char closes[] = "/* >> */\n";

/* One place: from its comment to the end of the line that ends it. */
struct place {
    const char *comment; /* its slash */
    const char *name;
    size_t name_length;
    const char *mark;  /* its << */
    const char *held;  /* behind the comment's line */
    const char *end;   /* the line of >> */
    const char *after; /* behind that line */
};

static const char *line_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n') {
        at--;
    }
    return at;
}

/* The comment that ends at `mark`: the last one that begins before it. */
static const char *comment_of(const char *text, const char *mark)
{
    const char *at = mark;

    while (at > text && strncmp(at, "/*", 2) != 0) {
        at--;
    }
    return at;
}

/* The next place from `from` on. 1: there is one; 0: none; -1: it has no name
 * or no end. */
static int next_place(const char *text, const char *from, struct place *out)
{
    out->mark = strstr(from, opens);
    if (!out->mark) {
        return 0;
    }
    out->comment = comment_of(text, out->mark);
    out->name = out->comment + 3;
    out->name_length = strspn(out->name, "abcdefghijklmnopqrstuvwxyz-");
    out->held = out->mark + strlen(opens);
    out->end = strstr(out->held, closes);
    if (!out->end || out->name_length == 0 ||
        out->name_length >= SKELETON_NAME_BYTES ||
        out->name[out->name_length] != ':') {
        return -1;
    }
    out->after = out->end + strlen(closes);
    out->end = line_of(text, out->end);
    return 1;
}

static void copy(const char *from, const char *to, FILE *out)
{
    (void)fwrite(from, 1, (size_t)(to - from), out);
}

/* The comment, without its mark; a mark that stands alone takes its line
 * along. */
static void write_comment(const struct place *p, FILE *out)
{
    const char *end = p->mark;

    while (end > p->comment && strchr(" \n*", end[-1])) {
        end--;
    }
    fprintf(out, "/* TO DO, ");
    copy(p->name, end, out);
    fprintf(out, " */\n");
}

int skeleton_write(const char *text, uint32_t filled, FILE *to)
{
    const char *at = text;
    struct place p;
    int n = 0;
    int found;

    while ((found = next_place(text, at, &p)) > 0) {
        copy(at, p.comment, to);
        if ((uint32_t)n < filled) {
            copy(p.comment, p.after, to);
        } else {
            write_comment(&p, to);
        }
        at = p.after;
        n++;
    }
    fputs(at, to);
    return found < 0 ? -1 : n;
}

bool skeleton_name(const char *text, uint32_t i, char name[SKELETON_NAME_BYTES])
{
    const char *at = text;
    struct place p;

    for (uint32_t k = 0; next_place(text, at, &p) > 0; k++) {
        if (k == i) {
            memcpy(name, p.name, p.name_length);
            name[p.name_length] = '\0';
            return true;
        }
        at = p.after;
    }
    return false;
}
