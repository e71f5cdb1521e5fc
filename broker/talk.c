/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/talk.h"

#include "broker/conn.h"
#include "broker/state.h"
#include "common/base/text.h"

void cv_broker_note(struct cv_broker *broker, const char *peer, const char *fmt, ...) {
  /* A restart repeats old events; it must not log them again. */
  if (broker->config.note == NULL || broker->quiet) {
    return;
  }
  char text[400];
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(text, sizeof(text), fmt, args);
  va_end(args);
  broker->config.note(broker->config.note_data, peer, text);
}

void cv_broker_audit(struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_event event) {
  if (broker->config.audit == NULL || broker->quiet) {
    return;
  }
  if (conn != NULL) {
    event.actor = conn->who;
    event.serial = conn->identity.serial;
  }
  broker->config.audit(broker->config.audit_data, &event);
}

enum cv_err cv_broker_greet(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_hello *hello,
                            struct cv_why *why) {
  if (!hello->present) {
    return conn->greeted ? CV_OK : cv_fail(why, CV_ERR_VERSION, CV_HELLO_MISSING);
  }
  if (conn->greeted) {
    return cv_fail(why, CV_ERR_VERSION, CV_HELLO_REPEATED);
  }
  CV_TRY(cv_hello_check(hello, cv_role_text(conn->identity.role), "broker", why));
  conn->greeted = true;
  broker->said = true;
  return CV_OK;
}

struct cv_hello cv_broker_hello(struct cv_broker_conn *conn) {
  bool due = !conn->hello_sent;
  conn->hello_sent = true;
  return (struct cv_hello){.present = due, .version = CV_WIRE_VERSION, .program = "crowdveil-broker"};
}
