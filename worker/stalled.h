/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file stalled.txt in a worker's state folder, for `crowdveil doctor`: one line that says why the worker's own
 * limits keep it from a campaign. It is there from then on until the worker starts again. It says how many answers were
 * given, and nothing of them.
 */
#ifndef CV_WORKER_STALLED_H
#define CV_WORKER_STALLED_H

/* `state` is the folder. The file only helps: what cannot be written is not. */
void cv_stalled_write(const char *state, const char *campaign, const char *why);
void cv_stalled_clear(const char *state);

#endif
