/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/talk.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/state.h"
#include "common/base/text.h"

/* Completes `note` and writes it. A text about a campaign begins with `campaign 3 "name"`. */
static void write_note(struct cv_broker *broker, const struct cv_broker_campaign *campaign, struct cv_note note,
                       const char *fmt, va_list args) CV_PRINTF(4, 0);
static void write_note(struct cv_broker *broker, const struct cv_broker_campaign *campaign, struct cv_note note,
                       const char *fmt, va_list args) {
  char text[480] = "";
  /* A restart repeats old events; it must not log them again. */
  if (broker->config.note == NULL || broker->quiet) {
    return;
  }
  if (campaign != NULL) {
    note.campaign = campaign->id;
    cv_text_print(text, sizeof(text), "campaign %u \"%s\"", campaign->id, cv_text_shown(campaign->spec.name).text);
  }
  size_t used = strlen(text);
  cv_text_vprint(text + used, sizeof(text) - used, fmt, args);
  note.text = text;
  broker->config.note(broker->config.note_data, &note);
}

void cv_broker_note(struct cv_broker *broker, const char *peer, const struct cv_broker_campaign *campaign,
                    const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  write_note(broker, campaign, (struct cv_note){.level = CV_LOG_INFO, .peer = peer}, fmt, args);
  va_end(args);
}

void cv_broker_debug(struct cv_broker *broker, const struct cv_broker_campaign *campaign, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  write_note(broker, campaign, (struct cv_note){.level = CV_LOG_DEBUG}, fmt, args);
  va_end(args);
}

void cv_broker_note_refused(struct cv_broker *broker, const char *peer, const struct cv_broker_campaign *campaign,
                            enum cv_refusal kind, const char *fmt, ...) {
  const struct cv_note note = {.level = CV_LOG_INFO, .peer = peer, .reason = cv_refusal_text(kind)};
  va_list args;
  va_start(args, fmt);
  write_note(broker, campaign, note, fmt, args);
  va_end(args);
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
