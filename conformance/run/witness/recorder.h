/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - wraps the device and the communicator that an engine and a
 * model are given, and fills a rank's record with what passes through.
 *
 * Storage is seen at alloc and free, values at live and dead. What is
 * allocated, and what is dead, is filled with NaN, so that a stale read shows
 * in the numbers. Freed blocks are held back for a while for the same reason.
 */
#ifndef FSDP_CTS_RECORDER_H
#define FSDP_CTS_RECORDER_H

#include "record/record.h"
#include "run/witness/race.h"
#include "run/witness/wire.h"

struct recorder;
struct expect;

/* Wraps env->device, env->host and env->comm in place. The storage of `engine`
 * and that of the model are told apart: the model uses a handle of its own,
 * recorder_model_device. `out` is filled as the run goes on; recorder and out
 * outlive the engine. NOMEM. */
int recorder_open(struct fsdp_env *env, struct record_rank *out,
                  struct recorder **recorder);
/* From now on sends what it sees to another process (crossing.h), and keeps no
 * values here. Borrowed. */
struct crossing;
void recorder_cross(struct recorder *r, struct crossing *crossing);
/* From now on looks at what goes over the wire. Borrowed. */
void recorder_watch(struct recorder *r, struct wire *wire);
/* From now on follows which stream is ordered behind which, to find races;
 * without streams there is nothing to follow. NOMEM. */
int recorder_watch_races(struct recorder *r);
/* From now on keeps events for a trace; after recorder_watch_races. NOMEM. */
int recorder_watch_time(struct recorder *r);
/* Writes the trace; waits for every stream. IO. */
int recorder_write_trace(struct recorder *r, const struct expect *e,
                         const char *path);
/* In this step, also notes when each collective is issued. */
void recorder_watch_flights(struct recorder *r, uint32_t step);
/* That step has ended. */
void recorder_end_flights(struct recorder *r);
/* Notes where the run stands (enum race_point), for descriptions of races. */
void recorder_place(struct recorder *r, uint32_t step, uint32_t point,
                    uint32_t module);
const struct fsdp_device *recorder_model_device(struct recorder *r);
/* Waits for the model's stream: for the recorder's sake alone, so nothing is
 * ordered by it. */
int recorder_finish_compute(struct recorder *r);

/* A part of the run ends: what was communicated since the last mark becomes a
 * sequence of the record. Returns its index, or -1: out of memory. */
int64_t recorder_mark(struct recorder *r);
/* NOMEM: there was no memory to follow all that happened, so that the record
 * says too little to be judged. */
int recorder_status(const struct recorder *r);
/* The bytes that are live now, by kind. */
void recorder_rest(const struct recorder *r, struct record_rest *out);
/* The bytes that the engine has allocated now. */
uint64_t recorder_storage(const struct recorder *r);
/* Allocations by the engine since the last call. */
uint64_t recorder_allocations(struct recorder *r);
/* Operators that the engine ran since the last call. */
uint64_t recorder_launches(struct recorder *r);
/* Copies between device and host by the engine since the last call. */
struct record_hosted recorder_hosted(struct recorder *r);
/* Appends to the timeline: live bytes at the fullest moment since the last
 * call. A call with out = NULL only forgets what was before. NOMEM. */
int recorder_moment(struct recorder *r, struct record_rank *out, uint32_t point,
                    uint32_t module);

/* From now on holds no freed block back: only bytes count here, and values do
 * not. Nothing is computed for the model, whose results are 0; but each block
 * is filled, so that its pages are resident all the same. */
void recorder_hold_nothing(struct recorder *r);
/* If it `gives`, RLIMIT_DATA grows and shrinks by what the model allocates and
 * frees. */
void recorder_give_room(struct recorder *r, bool gives);

/* Measures, from this call until recorder_watched_peak, by how many bytes the
 * engine's live or allocated memory grows beyond what it was at the start. */
void recorder_watch_peak(struct recorder *r);
uint64_t recorder_watched_peak(struct recorder *r);

/* Whether the record has a tensor already. (record_find wants tensors sorted,
 * which they are only when all are there.) */
bool recorder_has(const struct record_rank *out, uint32_t stage, uint32_t step,
                  uint32_t microbatch, uint32_t parameter, uint64_t first);
/* Copies n elements of a dtype from the device and appends them, widened, as a
 * tensor; integers as record_digits says. If the tensor is there already, as of
 * a piece that is shown twice, adds to it. INVALID: no dtype. */
int recorder_tensor(struct recorder *r, struct record_rank *out, uint32_t stage,
                    uint32_t step, uint32_t microbatch, uint32_t parameter,
                    uint64_t first, uint64_t n, uint32_t dtype,
                    const void *device_data);

/* After destroy: fills peaks and what was left, frees what is held back. */
void recorder_close(struct recorder *r);

#endif
