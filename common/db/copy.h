/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a database that goes on committing meanwhile: the pages are copied in steps, and a commit between two steps
 * writes its changes into the copied part, too. At the end the copy is the database as of its last commit, in one file
 * without a log. It has the rows' codes, so a reader verifies it like the original.
 *
 * A copy is written into a file of the caller's folder, whose name is removed at once, so that a process leaves
 * nothing behind, however it ends. Only the thread that uses the database at that time may call these functions.
 */
#ifndef CV_DB_COPY_H
#define CV_DB_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/db/db.h"

enum { CV_DB_COPY_RESERVE_BYTES = 64 << 20 };

struct cv_db_copy;

/*
 * Begins a copy of `db` into a new file at `path`, which replaces an old one there. CV_ERR_LIMIT if the copy would
 * leave less than CV_DB_COPY_RESERVE_BYTES of free space, which the database itself needs. `db` must outlive the copy.
 */
CV_MUST_USE enum cv_err cv_db_copy_begin(struct cv_db *db, const char *path, struct cv_db_copy **ret,
                                         struct cv_why *why);
/*
 * Copies at most `pages` pages, outside transactions. *ret_done: the copy is complete, and later commits are not part
 * of it. CV_ERR_LIMIT as above. After an error or the end only the next two functions may be called.
 */
CV_MUST_USE enum cv_err cv_db_copy_step(struct cv_db_copy *copy, int pages, bool *ret_done, struct cv_why *why);
/* After the last step: the file, open for reading, which the caller takes; and its length. */
int cv_db_copy_take(struct cv_db_copy *copy, uint64_t *ret_bytes);
/* Ends the copy, also before its last step. NULL does nothing. */
void cv_db_copy_end(struct cv_db_copy *copy);

#endif
