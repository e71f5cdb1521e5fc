/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/remote.h"

#include <stdio.h>
#include <stdlib.h>

/* As in broker/store/postgres.c, but for a shorter rest while what is stored does not fit: an operator's mistake is put
 * right within seconds here. */
enum { POLL_MS = 200, RETRY_MS = 2000, REST_MS = 3000 };

struct cv_remote {
  struct party *party;
  struct session *session;
  struct cv_remote_view view;
  bool lingers;
};

static struct party *opens;

static void look(struct cv_remote *remote) {
  const struct cv_term *term = session_term(remote->session);
  struct cv_remote_view *view = &remote->view;
  view->term = term->mark.term;
  view->commit = term->mark.commit;
  view->has_anchor = term->has_anchor;
  view->anchor_commit = term->anchored.commit;
  (void)snprintf(view->disputed, sizeof(view->disputed), "%s", term->disputed);
  session_tell_holder(remote->session, view->holder, sizeof(view->holder));
}

static enum cv_err open_remote(const struct cv_remote_config *config, struct cv_remote **ret, struct cv_why *why) {
  struct cv_remote *remote = calloc(1, sizeof(*remote));
  CV_REQUIRE(remote != NULL);
  remote->party = opens;
  remote->view.since_ms = world_wall_ms(opens->world);
  enum cv_err err = session_open(opens, config->anchor, &remote->session, why);
  if (err != CV_OK) {
    session_close(remote->session, false);
    free(remote);
    return err;
  }
  *ret = remote;
  return CV_OK;
}

static enum cv_err step(struct cv_remote *remote, bool *ret_taken, unsigned *ret_rest_ms, struct cv_why *why) {
  enum cv_err err = session_step(remote->session, ret_taken, why);
  *ret_rest_ms = err == CV_OK ? POLL_MS : err == CV_ERR_DAMAGED ? REST_MS : RETRY_MS;
  look(remote);
  if (err == CV_OK && *ret_taken) {
    remote->view.is_active = true;
    remote->view.since_ms = world_wall_ms(remote->party->world);
  }
  return err;
}

static enum cv_err store(struct cv_remote *remote, struct cv_broker_store **ret, struct cv_why *why) {
  return session_store(remote->session, ret, why);
}

static enum cv_err beat(struct cv_remote *remote, struct cv_why *why) {
  return session_beat(remote->session, why);
}

static void leave(struct cv_remote *remote) {
  session_leave(remote->session);
  remote->view.is_active = false;
}

static void view(const struct cv_remote *remote, struct cv_remote_view *ret) {
  *ret = remote->view;
  if (ret->is_active) {
    ret->commit = ret->anchor_commit = session_term(remote->session)->mark.commit;
  }
}

static void close_remote(struct cv_remote *remote) {
  session_close(remote->session, remote->lingers);
  free(remote);
}

const struct cv_remote_ops *remote_of(struct party *party) {
  static const struct cv_remote_ops ops = {.open = open_remote,
                                           .step = step,
                                           .store = store,
                                           .beat = beat,
                                           .leave = leave,
                                           .view = view,
                                           .close = close_remote};
  opens = party;
  return &ops;
}

struct session *remote_session(const struct cv_remote *remote) {
  return remote->session;
}

void remote_linger(struct cv_remote *remote) {
  remote->lingers = true;
}
