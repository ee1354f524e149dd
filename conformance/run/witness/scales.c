/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales.c - computes differences of what a rank held, and their extremes. Of
 * the peak the kernel says only how much was resident in all. The part in files
 * or shared does not shrink, so that what is left was private then, or more
 * than that.
 */
#include "run/witness/scales.h"

static uint64_t above(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void raise_to(uint64_t *most, uint64_t now)
{
    *most = now > *most ? now : *most;
}

void scales_begin(struct scales *s, const char *const *folders,
                  struct record_weight *weight)
{
    *s = (struct scales){.folders = folders, .weight = weight};
    s->files = folders ? weigh_folders(folders) : 0;
}

static void weigh_files(struct scales *s, uint32_t rank, pid_t pid)
{
    const uint64_t there = s->folders ? weigh_folders(s->folders) : 0;

    raise_to(&s->weight[rank].files,
             above(there, s->files) + above(weigh_gone(pid), s->of[rank].gone));
}

/* Notes what the rank holds at a step. Any step may be the last, so what it
 * held after half of the steps is kept, too. */
static void at_step(struct scales *s, uint32_t rank, uint64_t held,
                    uint64_t rest)
{
    struct record_weight *const w = &s->weight[rank];

    if (w->steps < SCALES_STEPS) {
        s->of[rank].held[w->steps] = held;
    }
    w->steps++;
    raise_to(&w->rest, rest);
    w->half = w->steps / 2 < SCALES_STEPS
                  ? s->of[rank].held[w->steps > 1 ? w->steps / 2 - 1 : 0]
                  : 0;
    w->last = held;
}

/* Lets a rank forget its peak once, and only while it is not weighed: then the
 * peak matters. */
static bool forget_peak(struct scales *s, uint32_t rank, pid_t pid)
{
    if (s->weight[rank].weighed == 0 && !s->of[rank].forgot) {
        s->of[rank].forgot = true;
        (void)weigh_forget_peak(pid);
    }
    return true;
}

bool scales_weigh(struct scales *s, uint32_t rank, pid_t pid,
                  const struct rank_line_said *said)
{
    const uint32_t point = said->word;
    struct weigh_process now;
    struct record_weight *w;
    uint64_t base;

    if (rank >= SCALES_RANKS) {
        return false;
    }
    w = &s->weight[rank];
    if (point == RANK_LINE_BEFORE || point == RANK_LINE_BEFORE_OWN) {
        w->own_device = point == RANK_LINE_BEFORE_OWN;
        w->weighed = weigh_process(pid, &now) && weigh_forget_peak(pid);
        s->of[rank].before = now.anonymous;
        s->of[rank].gone = weigh_gone(pid);
        return true;
    }
    if (point == RANK_LINE_FORGET) {
        return forget_peak(s, rank, pid);
    }
    if (w->weighed == 0) {
        return true;
    }
    if (!weigh_process(pid, &now)) {
        return false;
    }
    if (point == RANK_LINE_OPENED) {
        w->opened = above(now.anonymous, s->of[rank].sharded);
    }
    base = s->of[rank].before + w->opened;
    raise_to(&w->peak, above(now.peak, now.others + base));
    weigh_files(s, rank, pid);
    if (point == RANK_LINE_SHARD) {
        s->of[rank].sharded = now.anonymous;
        w->shard = above(now.anonymous, base + said->n);
    }
    if (point == RANK_LINE_STEP) {
        at_step(s, rank, now.anonymous, above(now.anonymous, base + said->n));
    }
    return weigh_forget_peak(pid);
}
