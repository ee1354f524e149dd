/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_ends.c - how the ranks of a case ended, and if one crashed or hung,
 * what each of them was last seen doing.
 */
#include "judge/judge_internal.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

/* "in reduce-scatter 12 of unit 3", counted from 1. */
static void tell_last(const struct record_rank *rank, char *text, size_t bytes)
{
    const char *kind = record_collective_name(rank->last_kind);

    if (rank->n_collectives == 0) {
        append(text, bytes, " before any collective");
        return;
    }
    append(text, bytes, " %s %s %llu", rank->in_collective ? "in" : "after",
           kind ? kind : "an unknown collective",
           (unsigned long long)rank->n_collectives);
    if (rank->last_unit != FSDP_NO_UNIT) {
        append(text, bytes, " of unit %u", rank->last_unit);
    }
}

/* Of those that a wrong engine dies of; "" of others. */
static const char *signal_name(uint32_t number)
{
    switch (number) {
    case SIGILL:
        return " (SIGILL)";
    case SIGABRT:
        return " (SIGABRT)";
    case SIGBUS:
        return " (SIGBUS)";
    case SIGFPE:
        return " (SIGFPE)";
    case SIGKILL:
        return " (SIGKILL)";
    case SIGSEGV:
        return " (SIGSEGV)";
    case SIGTERM:
        return " (SIGTERM)";
    default:
        return "";
    }
}

static void tell_end(uint32_t i, const struct record_rank *rank, char *text,
                     size_t bytes)
{
    append(text, bytes, "%srank %u", text[0] != '\0' ? "; " : "", i);
    switch (rank->end) {
    case WORLD_SIGNALLED:
        append(text, bytes, " was killed by signal %u%s", rank->signal,
               signal_name(rank->signal));
        break;
    case WORLD_EXITED:
        append(text, bytes, " left with exit(%d)", rank->exit_status);
        break;
    case WORLD_TIMED_OUT:
        append(text, bytes, " made no progress");
        break;
    default:
        append(text, bytes, " returned \"%s\"",
               fsdp_status_text(rank->status != FSDP_OK ? rank->status
                                                        : rank->exit_status));
        break;
    }
    tell_last(rank, text, bytes);
}

/* A crash is the cause of a hang that it leaves behind, never the reverse. */
static uint32_t outcome_of(const struct record_rank *rank)
{
    switch (rank->end) {
    case WORLD_RETURNED:
        return JUDGE_PASS;
    case WORLD_TIMED_OUT:
        return JUDGE_TIMEOUT;
    default:
        return JUDGE_ERROR;
    }
}

bool judge_killed_from_outside(const struct record *r)
{
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        if (r->rank[i].end == WORLD_SIGNALLED && r->rank[i].signal == SIGKILL) {
            return true;
        }
    }
    return false;
}

void judge_ends(struct judge_view *v)
{
    const struct record *r = v->record;
    char *text = v->summary->reason;
    size_t bytes = sizeof(v->summary->reason);

    v->ended = JUDGE_PASS;
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        uint32_t outcome = outcome_of(&r->rank[i]);

        if (outcome == JUDGE_ERROR || v->ended == JUDGE_PASS) {
            v->ended = outcome != JUDGE_PASS ? outcome : v->ended;
        }
    }
    if (v->ended == JUDGE_PASS) {
        return;
    }
    /* Those that ended badly first: the text is cut where it is full. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->n_ranks; i++) {
            if ((outcome_of(&r->rank[i]) == v->ended) == (pass == 0)) {
                tell_end(i, &r->rank[i], text, bytes);
            }
        }
    }
    (void)snprintf(v->ended_note, sizeof(v->ended_note), "%.319s", text);
}
