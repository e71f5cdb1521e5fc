/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks in memory. A file has the contents that its process sees and the durable contents; the difference is tracked by
 * sectors. A power loss keeps or loses each unsynced sector independently, so that writes are lost, torn and reordered;
 * a file that was created or deleted without a sync of its folder may exist afterwards or not.
 *
 * A disk can be told to refuse: writes, with none or a part of their bytes written, and syncs. After a failed sync the
 * system treats the unwritten data as clean: the process goes on reading it, no later sync writes it, and a loss of
 * power, or of the memory that holds it, reveals the disk's contents. A disk can also be told to die after a number of
 * operations: from then on nothing changes, whatever its process does.
 *
 * "B/name" is the file `name` on disk 'B'. SQLite finds the disks as its VFS CV_SIM_VFS; posix.h gives them to code
 * that makes system calls.
 */
#ifndef CV_SIM_VFS_H
#define CV_SIM_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"

#define CV_SIM_VFS "sim"

enum { DISK_FILES = 4 };

struct disk_file {
  char name[48]; /* with its disk; empty = unused entry */
  bool exists, exists_durably;
  uint8_t *now, *durable;
  size_t now_n, now_cap, durable_n, durable_cap;
  uint8_t *dirty; /* a byte per sector: SECTOR_... */
  size_t dirty_cap, dirty_end;
  bool is_cut; /* to `cut` bytes, which is not durable yet: a power loss applies all of it or nothing */
  size_t cut;
};

/* Written and not synced; or the system has forgotten, after a failed sync, that it is not durable. */
enum { SECTOR_CLEAN, SECTOR_DIRTY, SECTOR_FORGOTTEN };

enum disk_refusal { DISK_ACCEPTS, DISK_IS_FULL, DISK_FAILS };

struct disk {
  char letter;
  struct disk_file file[DISK_FILES];
  bool dead;
  int fuse;       /* steps until it dies; 0 = none */
  int refuse_in;  /* writes and syncs until one is refused; 0 = none is */
  int refuse_for; /* how many are refused */
  enum disk_refusal refusal;
  struct cv_rng *rng; /* the part of a refused write that is written; borrowed */
  uint64_t writes, syncs, refusals;
};

/* Registers the VFS; call once, before anything else. */
void disk_register(void);
/* Registers the disk under its letter; at most 4 at a time. It must not move. */
void disk_init(struct disk *disk, char letter);
void disk_fini(struct disk *disk);

/* One step of the process on this disk; false if the disk has died before it. */
bool disk_step(struct disk *disk);
/* The process has died, the system runs on: what was written stays, except data that is wrongly treated as clean. */
void disk_after_kill(struct disk *disk, struct cv_rng *rng);
/* The machine has lost power. */
void disk_after_power_loss(struct disk *disk, struct cv_rng *rng);
/* Empties the disk. */
void disk_wipe(struct disk *disk);
/* Copies the durable contents of all files whose name begins with `prefix` ("B/broker.db"), and restores them.
 * `ret_copy` is a new disk. */
void disk_copy_durable(const struct disk *disk, const char *prefix, struct disk *ret_copy);
void disk_put_back(struct disk *disk, const char *prefix, const struct disk *copy);
void disk_copy_fini(struct disk *copy);
/* The contents of a file as a process sees them; NULL if there is none. */
const struct disk_file *disk_find(const struct disk *disk, const char *name);

#endif
