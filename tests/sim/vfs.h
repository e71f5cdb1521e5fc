/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks in memory. A file has what its process sees and what is durable; the difference is known by sectors. A power
 * loss keeps or loses each sector that was not synced on its own, so that writes are lost, torn and reordered; a file
 * that was made or deleted without a sync of its folder may be there afterwards or not.
 *
 * A disk can be told to refuse: writes with nothing or a part of them done, and syncs. After a sync that failed the
 * system takes what it could not write for clean: the process goes on reading it, no later sync writes it, and a loss
 * of power, or of the memory that holds it, shows what the disk has. And a disk can be told to die after so many
 * operations: then nothing changes any more, whatever its process tries.
 *
 * "B/name" is the file `name` on disk 'B'. SQLite finds the disks as its VFS CV_SIM_VFS; posix.h gives them to code
 * that calls the system.
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
  char name[48]; /* with its disk; empty = no such file */
  bool exists, exists_durably;
  uint8_t *now, *durable;
  size_t now_n, now_cap, durable_n, durable_cap;
  uint8_t *dirty; /* a byte per sector: SECTOR_... */
  size_t dirty_cap, dirty_end;
  bool is_cut; /* to `cut` bytes, which is not durable yet: that happens or it does not, and nothing of it in part */
  size_t cut;
};

/* Written and not synced; or a sync of it has failed, and the system has forgotten that it is not durable. */
enum { SECTOR_CLEAN, SECTOR_DIRTY, SECTOR_FORGOTTEN };

enum disk_refusal { DISK_ACCEPTS, DISK_IS_FULL, DISK_FAILS };

struct disk {
  char letter;
  struct disk_file file[DISK_FILES];
  bool dead;
  int fuse;       /* steps until it dies; 0 = none */
  int refuse_in;  /* writes and syncs until one is refused; 0 = none */
  int refuse_for; /* how many are */
  enum disk_refusal refusal;
  struct cv_rng *rng; /* how much of a refused write is done; borrowed */
  uint64_t writes, syncs, refusals;
};

/* Once, before anything else. */
void disk_register(void);
/* Makes the disk known under its letter; at most 4 at a time. It must not move. */
void disk_init(struct disk *disk, char letter);
void disk_fini(struct disk *disk);

/* One step of the process on this disk; false if it has died before it. */
bool disk_step(struct disk *disk);
/* The process is gone, the system goes on: what was written stays, but for what it takes for clean and is not. */
void disk_after_kill(struct disk *disk, struct cv_rng *rng);
/* The machine was off. */
void disk_after_power_loss(struct disk *disk, struct cv_rng *rng);
/* As when it was new. */
void disk_wipe(struct disk *disk);
/* What is durable of all files whose name begins with `prefix` ("B/broker.db"), and back. `ret_copy` is a new disk. */
void disk_copy_durable(const struct disk *disk, const char *prefix, struct disk *ret_copy);
void disk_put_back(struct disk *disk, const char *prefix, const struct disk *copy);
void disk_copy_fini(struct disk *copy);
/* What a process sees now of a file; NULL if there is none. */
const struct disk_file *disk_find(const struct disk *disk, const char *name);

#endif
