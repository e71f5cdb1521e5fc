/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of one campaign's history, kept up to date over the third-party's admin socket: asked for once, then added to
 * by events. After CV_MIRROR_EVENTS_MAX further steps it is asked for again, so that the third-party's thinning bounds
 * it, too.
 */
#ifndef CV_LAUNCHER_MIRROR_H
#define CV_LAUNCHER_MIRROR_H

#include <jansson.h>
#include <uv.h>

#include "common/base/result.h"
#include "deploy/launcher/upstream.h"

enum { CV_MIRROR_EVENTS_MAX = 2000 };

struct cv_mirror_step {
  uint64_t number;
  char *json; /* owned */
};

struct cv_mirror {
  json_t *head; /* the campaign without its steps; NULL: not known yet */
  struct cv_mirror_step *step;
  size_t steps, cap;
  uint64_t state;               /* grows with each change of the state; from 1 */
  struct cv_standing *standing; /* of each arm, after the last step; owned */
  uint32_t arms;
  /* private */
  uv_loop_t *loop;
  const char *socket;
  void (*changed)(void *data);
  void *data;
  struct cv_upstream *upstream;
  uv_timer_t timer;
  bool is_started, is_stopped;
  char event[16];
  size_t events; /* since it was asked for */
};

/* Starts to ask; `socket` is borrowed. `changed` is called after each change. */
void cv_mirror_start(struct cv_mirror *mirror, uv_loop_t *loop, const char *socket, void (*changed)(void *data),
                     void *data);
/* The loop finishes that; then cv_mirror_fini(). */
void cv_mirror_stop(struct cv_mirror *mirror);
void cv_mirror_fini(struct cv_mirror *mirror);

/* The first step after number `after`, of all if not `has_after`; NULL: none. */
const struct cv_mirror_step *cv_mirror_after(const struct cv_mirror *mirror, bool has_after, uint64_t after);

#endif
