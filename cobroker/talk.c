/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/talk.h"

#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/state.h"
#include "common/base/text.h"

void cv_cobroker_note(struct cv_cobroker *core, enum cv_log_level level, const char *peer,
                      const struct cv_cobroker_campaign *campaign, const char *fmt, ...) {
  char text[480] = "";
  struct cv_note note = {.level = level, .text = text, .peer = peer};
  if (core->config.note == NULL || core->quiet) {
    return;
  }
  if (campaign != NULL) {
    note.campaign = campaign->id;
    cv_text_print(text, sizeof(text), "campaign %u \"%s\"", campaign->id, cv_text_shown(campaign->spec.name).text);
  }
  size_t used = strlen(text);
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(text + used, sizeof(text) - used, fmt, args);
  va_end(args);
  core->config.note(core->config.note_data, &note);
}

void cv_cobroker_audit(struct cv_cobroker *core, bool by_broker, struct cv_event event) {
  if (core->config.audit == NULL || core->quiet) {
    return;
  }
  if (by_broker && core->broker != NULL) {
    event.actor = core->broker->who;
    event.serial = core->broker->identity.serial;
  }
  core->config.audit(core->config.audit_data, &event);
}

enum cv_err cv_cobroker_greet(struct cv_cobroker *core, struct cv_cobroker_conn *conn, const struct cv_hello *hello,
                              struct cv_why *why) {
  if (!hello->present) {
    return conn->greeted ? CV_OK : cv_fail(why, CV_ERR_VERSION, CV_HELLO_MISSING);
  }
  if (conn->greeted) {
    return cv_fail(why, CV_ERR_VERSION, CV_HELLO_REPEATED);
  }
  CV_TRY(cv_hello_check(hello, cv_role_text(conn->identity.role), "co-broker", why));
  conn->greeted = true;
  const struct cv_gate_limits *limits = &core->config.limits;
  conn->gather.frame.hello = (struct cv_hello){.present = true,
                                               .version = CV_WIRE_VERSION,
                                               .program = "crowdveil-cobroker",
                                               .has_limits = conn->identity.role == CV_ROLE_BROKER,
                                               .limits = {.epsilon_micro = limits->epsilon_micro,
                                                          .delta_pico = limits->delta_pico,
                                                          .worker_epsilon_micro = limits->worker_epsilon_micro,
                                                          .release_tokens = limits->release_tokens,
                                                          .arms = limits->arms,
                                                          .tokens = limits->tokens}};
  core->said = true;
  return CV_OK;
}
