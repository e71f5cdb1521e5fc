/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: a file with one JSON object a line, to which a daemon only appends. Each line has its number and the
 * SHA-256 of the line before it, so that a line that is removed or changed later is noticed by whoever checks the file,
 * or has kept a later line.
 *
 *   cv_trail_add     any number of times; nothing is on disk yet
 *   cv_trail_flush   closes the lines so far: they belong to the batch that is stored next
 *   cv_trail_write   before that batch is committed: its lines are durable before their events have any effect
 *
 * So after a crash the log may have a line more than has happened, never one less. A line of a crash that is not
 * complete is ended by the next start, and counts as a line.
 *
 * Refusals are bounded, as peers can cause any number of them: in a minute CV_TRAIL_REFUSALS of an actor are written,
 * and one line says how many more there were.
 */
#ifndef CV_DAEMON_TRAIL_H
#define CV_DAEMON_TRAIL_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/event.h"

enum { CV_TRAIL_REFUSALS = 10, CV_TRAIL_MINUTE_MS = 60000 };

struct cv_trail;

/*
 * Opens the file at `path`, or creates it with mode 0600, and continues its chain. `program` is borrowed. CV_ERR_FORMAT
 * if it is not an audit log, CV_ERR_STATE if another program writes to it.
 */
CV_MUST_USE enum cv_err cv_trail_open(const char *path, const char *program, struct cv_trail **ret, struct cv_why *why);
/* Closes the file; lines that were not written are lost. In this and the other functions NULL is a log that is not
 * configured. */
void cv_trail_close(struct cv_trail *trail);

/* Adds a line, unless it is a refusal beyond the bound. */
void cv_trail_add(struct cv_trail *trail, const struct cv_event *event, uint64_t now_ms, uint64_t wall_ms);
/* Adds the line that sums up the refusals of a minute that is over. Called about once a second. */
void cv_trail_tick(struct cv_trail *trail, uint64_t now_ms, uint64_t wall_ms);
/* Whether there are lines that were not flushed yet. */
bool cv_trail_is_pending(const struct cv_trail *trail);
/* Closes the lines that were added so far. Returns whether there is anything to write. Not during cv_trail_write(). */
bool cv_trail_flush(struct cv_trail *trail);
/* Forgets the lines that were added since the last flush: their events will have no effect. */
void cv_trail_drop(struct cv_trail *trail);
/* Appends and syncs the flushed lines. Any thread, one at a time. After an error the daemon must stop. */
CV_MUST_USE enum cv_err cv_trail_write(struct cv_trail *trail, struct cv_why *why);
/* Adds one line to the log at `path` of a daemon that does not run, and syncs it; `path` NULL: none is configured. */
CV_MUST_USE enum cv_err cv_trail_record(const char *path, const char *program, const struct cv_event *event,
                                        struct cv_why *why);
/* Opens the file again after it was renamed: the next flushed lines go to the new one and continue the chain. An error
 * leaves the trail as it was. */
CV_MUST_USE enum cv_err cv_trail_reopen(struct cv_trail *trail, struct cv_why *why);

#endif
