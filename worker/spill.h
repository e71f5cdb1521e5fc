/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the temporary files in which SQLite sorts and groups what is too much for its memory. */
#ifndef CV_WORKER_SPILL_H
#define CV_WORKER_SPILL_H

#include <stdint.h>

/* The name of a VFS for sqlite3_open_v2(): the usual one, but temporary files of all its databases together take so
 * many bytes at most; what would need more fails with SQLITE_FULL. The last call decides. NULL: no memory. */
const char *cv_spill_vfs(uint64_t most);

#endif
