/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - checkpoints on disk: code that engines may share, because two
 * engines should not disagree on a file format and its durability. Which rank
 * owns which slice, and how slices are gathered, is each engine's own.
 *
 * The format is specified in docs/checkpoints.md. In short: a directory has
 * checkpoint-000001, checkpoint-000002, ...; each is written under another
 * name, flushed, given a manifest with sizes and SHA-256, and renamed last. So
 * every directory with such a name is whole, and a save that was interrupted
 * leaves none.
 *
 * Tensors are named, and are float32 but for buffers: a table lists them with
 * their global shapes; a slice is elements [first, first + n) of one of them,
 * flattened in C order. Layouts, world sizes and wrap policies are all sets of
 * slices, so that a rank that loads asks for its own slices and needs to know
 * nothing of the ranks that saved.
 *
 * WHY is a buffer of CHECKPOINT_WHY_BYTES: a failure says there what is wrong
 * in which file, and what was expected. Functions marked collective must be
 * called by every rank of the world; they agree: all succeed, or all return
 * the status of the first rank that failed.
 */
#ifndef FSDP_CTS_CHECKPOINT_H
#define FSDP_CTS_CHECKPOINT_H

#include <fsdp/engine.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CHECKPOINT_WHY_BYTES = 190,
    CHECKPOINT_PATH_BYTES = 1024,
    CHECKPOINT_FILE_NAME_BYTES = 64,
    CHECKPOINT_SHA_BYTES = 32,
    CHECKPOINT_MAX_WORLD = 512,
};

/* ---- Tables and slices -------------------------------------------------- */

struct checkpoint_entry {
    char *name; /* NULL: left out, as it is stored with its original, is a state
                 * of a frozen parameter, or is ignored */
    uint32_t n_dims;
    uint64_t shape[FSDP_MAX_DIMS];
    uint64_t numel;
    bool is_state; /* a state of the optimizer: in separate files in the full
                    * form */
    bool is_buffer;
    char *spare;    /* the name of an entry that is left out as its parameter is
                     * frozen or ignored: that which it has in a checkpoint of a
                     * run that had it */
    uint32_t dtype; /* of a buffer or a rounded entry; NONE: F32 */
    bool is_rounded; /* given in F32, and rounded as it is saved */
};

struct checkpoint_table {
    struct checkpoint_entry *entry;
    uint32_t n;
};

/* Entry p * (1 + states) + k is parameter p (k = 0) or its state k - 1. The
 * states are "optim.state.<parameter>." and momentum_buffer, or exp_avg and
 * exp_avg_sq. INVALID: two tensors have one name. NOMEM. */
int checkpoint_table_of_model(const struct fsdp_model *model,
                              const struct fsdp_units *units,
                              uint32_t optimizer, struct checkpoint_table *out,
                              char *why);
uint32_t checkpoint_states(uint32_t optimizer); /* 0, 1 or 2 */
/* Appends an entry; `*out` is its index. */
int checkpoint_table_add(struct checkpoint_table *table, const char *name,
                         uint32_t n_dims, const uint64_t *shape, bool is_state,
                         uint32_t *out);
/* Appends an entry for each buffer of the model, as checkpoint_table_of_model
 * does in the end; a buffer that is not persisted has no name. */
int checkpoint_table_add_buffers(const struct fsdp_model *model,
                                 struct checkpoint_table *table);
uint64_t checkpoint_element_bytes(const struct checkpoint_entry *e);
/* The name of the flat shards of unit u in the local form: values (k = 0), or
 * state k - 1. It has a hash of the layout and of the names and sizes of the
 * unit's parameters, so that shards that were cut in another way are not taken
 * for these. */
enum {
    CHECKPOINT_UNIT_NAME_BYTES = 64
};
void checkpoint_unit_name(const struct fsdp_model *model,
                          const struct fsdp_units *units, uint32_t layout,
                          uint32_t u, uint32_t k,
                          char name[CHECKPOINT_UNIT_NAME_BYTES]);
void checkpoint_table_release(struct checkpoint_table *table);

struct checkpoint_slice {
    uint32_t entry;
    uint64_t first, n;
};

/* A whole entry, such as a buffer, in host memory, in its dtype. */
struct checkpoint_whole {
    uint32_t entry;
    const void *data;
};

/* The data that a rank writes. `read` gives elements [at, at + n) of slice
 * i. */
struct checkpoint_source {
    const struct checkpoint_slice *slice;
    uint32_t n;
    int (*read)(void *context, uint32_t i, uint64_t at, uint64_t n, float *to);
    void *context;
    const struct checkpoint_whole *whole; /* only on rank 0 of a save, which
                                           * copies them as it begins */
    uint32_t n_whole;
};

/* A box of a tensor: the only kind of part that a chunk in DCP's form can
 * be. */
struct checkpoint_box {
    uint64_t offset[FSDP_MAX_DIMS], shape[FSDP_MAX_DIMS];
    uint64_t first, n; /* as a slice */
};
enum {
    CHECKPOINT_MAX_BOXES = 2 * FSDP_MAX_DIMS
};
/* Cuts [first, first + n) of a tensor of that shape into the fewest boxes, each
 * of which is a run in C order; returns how many: up to 2 n_dims - 1. */
uint32_t checkpoint_boxes(uint32_t n_dims, const uint64_t *shape,
                          uint64_t first, uint64_t n,
                          struct checkpoint_box box[CHECKPOINT_MAX_BOXES]);

/* ---- Saving ------------------------------------------------------------- */

struct checkpoint_state {
    uint64_t step;  /* optimizer steps so far */
    float power[2]; /* running products of beta1, beta2 */
};

/* The steps of a parameter that has not taken all steps, as it was frozen. */
struct checkpoint_own_steps {
    const char *parameter;
    uint64_t step;
};

struct checkpoint_request {
    const struct fsdp_env *env;
    const struct fsdp_save *save;
    uint32_t world, shards, replicas;     /* of the ranks that save; for
                                           * people */
    const char *layout, *optimizer;       /* words of engine.h; for people */
    const struct checkpoint_table *table; /* lives until the end */
    struct checkpoint_source source;      /* only on the first replica */
    struct checkpoint_state state;
    const struct checkpoint_own_steps *own; /* [n_own]; copied */
    uint32_t n_own;
};

struct checkpoint_saving;

/* Collective. Makes the place and copies the caller's own state. */
int checkpoint_begin(const struct checkpoint_request *request,
                     struct checkpoint_saving **out);
/* Adds more of the caller's own state, as the state of any rank. */
int checkpoint_add_extra(struct checkpoint_saving *s, uint32_t rank,
                         const char *name, const void *data, uint64_t bytes);
/* Whether the save has that entry of the table: false for parts that are left
 * out. */
bool checkpoint_saves(const struct checkpoint_saving *s, uint32_t entry);
/* Only in the full form, on rank 0 or the owner: writes a slice to its file, in
 * the entry's dtype, or rounded to it. */
int checkpoint_put(struct checkpoint_saving *s, uint32_t entry, uint64_t first,
                   uint64_t n, const void *data);
/* Writes and flushes the source's data. Local; touches files only, so that
 * another thread may do it. A failure is kept for checkpoint_finish. */
void checkpoint_write(struct checkpoint_saving *s);
/* Keeps a failure on this rank alone, as one of checkpoint_write. */
void checkpoint_fail(struct checkpoint_saving *s, int status, const char *why);
/* Collective. Writes the manifest and gives the new name; *s is given back in
 * any case. */
int checkpoint_finish(const struct fsdp_env *env, struct checkpoint_saving *s);
/* Gives it back; rank 0 removes what was written so far. Local. */
void checkpoint_cancel(struct checkpoint_saving *s);
/* Gives it back without finishing. NULL is allowed. Local. */
void checkpoint_drop(struct checkpoint_saving *s);

/*
 * Erases all checkpoints older than the newest `keep` (1 or more) complete
 * ones; newer ones that are not complete stay, for people to look at. Local:
 * one of the ranks that save to that directory calls it, also while a save is
 * under way. If it is killed at any moment, every checkpoint is whole or no
 * longer has the name by which it is found; the next save, or the next call,
 * goes on. A checkpoint is complete in the sense of checkpoint_open: bytes are
 * not verified, so that a user who keeps only one relies on the disk.
 */
int checkpoint_erase(const char *directory, uint32_t keep, char *why);

/* ---- Loading ------------------------------------------------------------ */

struct checkpoint_file {
    char name[CHECKPOINT_FILE_NAME_BYTES];
    uint64_t bytes;
    unsigned char sha256[CHECKPOINT_SHA_BYTES];
};

struct checkpoint_manifest {
    char form[16], layout[32], optimizer[16];
    uint32_t world, shards, replicas;
    struct checkpoint_table table;
    struct checkpoint_file *file; /* by name */
    uint32_t n_files;
    unsigned char sha256[CHECKPOINT_SHA_BYTES]; /* of one that was read */
};

/* The text of manifest.json, the caller's to free; NULL: out of memory. */
char *checkpoint_manifest_text(const struct checkpoint_manifest *m,
                               size_t *bytes);
/* FORMAT: checkpoint_manifest_text did not write this text. */
int checkpoint_manifest_parse(const char *text, size_t bytes,
                              struct checkpoint_manifest *out, char *why);
void checkpoint_manifest_release(struct checkpoint_manifest *m);

struct checkpoint;

/*
 * Opens the newest complete checkpoint of a directory, or the directory itself
 * if it has a manifest. A checkpoint is complete if its manifest is right and
 * its files have the sizes that it says. All headers are read, and must give
 * each tensor exactly once. If that fails and a newer checkpoint has been
 * published meanwhile, that one is opened: its saver may have erased the other.
 * Local.
 */
int checkpoint_open(const char *directory, struct checkpoint **out, char *why);
void checkpoint_close(struct checkpoint *c); /* NULL is allowed */
const char *checkpoint_path(const struct checkpoint *c);
/* Why this checkpoint was chosen: a sentence that names those that were passed
 * over. */
const char *checkpoint_reason(const struct checkpoint *c);
const struct checkpoint_manifest *
checkpoint_manifest_of(const struct checkpoint *c);
struct checkpoint_state checkpoint_state_of(const struct checkpoint *c);
/* The steps of a parameter with a count of its own; false: it has none, and has
 * taken all steps. */
bool checkpoint_steps_of(const struct checkpoint *c, const char *parameter,
                         uint64_t *step);
/* All parameters with a count of their own; valid as long as c is open. */
const struct checkpoint_own_steps *
checkpoint_own_steps(const struct checkpoint *c, uint32_t *n);

/* Checks that the checkpoint has these tensors and no others, but for states of
 * parameters that are frozen now. INVALID: a parameter is trained now that was
 * frozen when this was saved, so that it has no states; or a parameter was
 * rounded then. FORMAT: all else. Lenient: only checks that the tensors which
 * it has are of these shapes and dtypes, or rounded. */
int checkpoint_expect(const struct checkpoint *c,
                      const struct checkpoint_table *table, bool lenient,
                      char *why);
bool checkpoint_has(const struct checkpoint *c, const char *name);
/* Hashes every file i with i % of = part. FORMAT: other bytes. */
int checkpoint_verify(struct checkpoint *c, uint32_t part, uint32_t of,
                      char *why);
/* Checks that all files are still those that were opened, and were not written
 * to since. FORMAT. */
int checkpoint_unchanged(const struct checkpoint *c, char *why);
/* Elements [first, first + n) of the entry of that name, in its dtype. */
int checkpoint_read(struct checkpoint *c, const char *name, uint64_t first,
                    uint64_t n, void *to, char *why);
/* The same in F32: what was rounded is widened. */
int checkpoint_read_f32(struct checkpoint *c, const char *name, uint64_t first,
                        uint64_t n, float *to, char *why);

/* Item i of the ranks' own states; false past the last. */
struct checkpoint_extra {
    uint32_t rank;
    const char *name;
    uint64_t bytes;
};
bool checkpoint_extra_at(const struct checkpoint *c, uint32_t i,
                         struct checkpoint_extra *out);
int checkpoint_extra_read(struct checkpoint *c, uint32_t i, void *to,
                          char *why);

/* Collective: opens a checkpoint, checks it as checkpoint_expect does, and
 * checks that all ranks have opened the same one. A checkpoint in the local
 * form must have all tensors of `local`. Bytes are not verified yet:
 * checkpoint_replace does that. */
int checkpoint_load_open(const struct fsdp_env *env, const char *directory,
                         const struct checkpoint_table *table,
                         const struct checkpoint_table *local, bool lenient,
                         struct checkpoint **out);
bool checkpoint_is_local(const struct checkpoint *c);

/* What a load replaces: the slices that a rank holds, whose present values
 * `source` reads. */
struct checkpoint_target {
    const struct checkpoint_table *table;
    struct checkpoint_source source;
    int (*write)(void *context, uint32_t i, uint64_t at, uint64_t n,
                 const float *from);
    /* Makes the present values of the slices once more; NULL: the slices have
     * been trained, and must be kept during the load. */
    int (*remake)(void *context);
};

/* Collective. Each rank verifies its share of the files; then every slice gets
 * the checkpoint's values, on all ranks, or, if any rank fails, keeps its old
 * ones. *torn: slices have some of both. It may be true before, and is true
 * afterwards if a rank could not bring back its old values either. */
int checkpoint_replace(const struct fsdp_env *env, struct checkpoint *c,
                       const struct checkpoint_target *target, bool *torn);

/* The caller's own state that a rank keeps of a loaded checkpoint, by name:
 * this rank's, if as many ranks saved it, else rank 0's. Also "checkpoint.path"
 * and "checkpoint.reason", as text; and of a lenient load "checkpoint.missing"
 * and "checkpoint.unexpected", names of tensors with a line feed behind
 * each. */
struct checkpoint_kept {
    char **name;
    unsigned char **data;
    uint64_t *bytes;
    uint32_t n;
};
int checkpoint_keep(struct checkpoint *c, uint32_t rank, uint32_t world,
                    struct checkpoint_kept *out, char *why);
bool checkpoint_kept_find(const struct checkpoint_kept *kept, const char *name,
                          const void **data, uint64_t *bytes);
void checkpoint_kept_release(struct checkpoint_kept *kept);

/* ---- What all of it uses ------------------------------------------------ */

/* Collective. Every rank returns the status of the first rank that failed,
 * whose sentence goes to env->error of every rank. */
int checkpoint_agree(const struct fsdp_env *env, const char *where, int status,
                     const char *why);
__attribute__((format(printf, 3, 4))) int
checkpoint_refuse(char *why, int status, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
