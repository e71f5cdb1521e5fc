/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/hub.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/net/uverr.h"

/* One process may run loops in several threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cv_hub *hubs;

void cv_hub_make_due(struct cv_hub *hub, struct cv_hub_work *work) {
  if (!work->is_due) {
    work->is_due = true;
    DL_APPEND(hub->due, work);
  }
}

void cv_hub_not_due(struct cv_hub *hub, struct cv_hub_work *work) {
  if (work->is_due) {
    work->is_due = false;
    DL_DELETE(hub->due, work);
  }
}

static void on_turn(uv_prepare_t *handle) {
  struct cv_hub *hub = handle->data;
  /* Taken off before it runs, because its work may make it, or another peer, due again in this turn. */
  while (hub->due != NULL) {
    struct cv_hub_work *work = hub->due;
    cv_hub_not_due(hub, work);
    work->run(work->data);
  }
  hub->turns++;
  hub->were_busy = hub->busy;
  hub->busy = 0;
}

size_t cv_hub_share(const struct cv_hub *hub) {
  /* By the number of peers that were busy in the last turn: one alone gets all of it. */
  size_t share = CV_HUB_TURN_BYTES / (hub->were_busy > 0 ? hub->were_busy : 1);
  return share > CV_HUB_READ_BYTES ? CV_HUB_READ_BYTES : share < CV_HUB_LEAST_BYTES ? CV_HUB_LEAST_BYTES : share;
}

/*
 * Without this, a peer that resets its connection during a write would kill the process with SIGPIPE, because libuv
 * writes without MSG_NOSIGNAL. A handler set by the program is kept.
 */
static void survive_resets(void) {
  struct sigaction now;
  if (sigaction(SIGPIPE, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
  }
}

static enum cv_err make_hub(uv_loop_t *loop, struct cv_hub **ret, struct cv_why *why) {
  struct cv_hub *hub = calloc(1, sizeof(*hub));
  if (hub == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "no memory for connections");
  }
  int status = uv_prepare_init(loop, &hub->turn);
  if (status != 0) {
    free(hub);
    return cv_uv_fail(why, status, "cannot watch the loop");
  }
  survive_resets();
  hub->loop = loop;
  hub->turn.data = hub;
  (void)uv_prepare_start(&hub->turn, on_turn); /* fails only without a callback */
  /* The hub alone must not keep the loop running. */
  uv_unref((uv_handle_t *)&hub->turn);
  *ret = hub;
  return CV_OK;
}

enum cv_err cv_hub_ref(uv_loop_t *loop, struct cv_hub **ret, struct cv_why *why) {
  enum cv_err err = CV_OK;
  struct cv_hub *hub;
  (void)pthread_mutex_lock(&lock);
  DL_SEARCH_SCALAR(hubs, hub, loop, loop);
  if (hub == NULL) {
    err = make_hub(loop, &hub, why);
    if (err == CV_OK) {
      DL_APPEND(hubs, hub);
    }
  }
  if (err == CV_OK) {
    hub->refs++;
    *ret = hub;
  }
  (void)pthread_mutex_unlock(&lock);
  return err;
}

static void on_closed(uv_handle_t *handle) {
  struct cv_hub *hub = handle->data;
  cv_buf_fini(&hub->out);
  free(hub);
}

void cv_hub_unref(struct cv_hub *hub) {
  (void)pthread_mutex_lock(&lock);
  /* Taken off the list under the lock, closed outside of it: closing calls into the loop. */
  bool last = --hub->refs == 0;
  if (last) {
    DL_DELETE(hubs, hub);
  }
  (void)pthread_mutex_unlock(&lock);
  if (last) {
    uv_close((uv_handle_t *)&hub->turn, on_closed);
  }
}
