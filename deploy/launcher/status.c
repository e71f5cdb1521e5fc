/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil status, crowdveil cancel and crowdveil purge. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/hindrance.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/progress.h"

enum { NAME_COLUMNS = 20 };

struct settings {
  struct cv_client_settings client;
  bool json;
};

static const struct cv_config_rule rules[] = {CV_CLIENT_RULES(struct settings, client),
                                              CV_JSON_RULE(offsetof(struct settings, json))};

static const struct cv_config_table status_table = {
    .program = "crowdveil status",
    .about = "lists your campaigns at a broker with their state and progress",
    .rules = rules,
    .count = CV_COUNT(rules),
};
static const struct cv_config_table cancel_table = {
    .program = "crowdveil cancel",
    .arguments = "CAMPAIGN",
    .about = "ends a campaign early; its releases up to now remain",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* purge has one option more than the other commands. */
struct purge_settings {
  struct cv_client_settings client;
  bool ended, json;
};

static const struct cv_config_rule purge_rules[] = {
    {.key = "ended",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct purge_settings, ended),
     .fallback = "false",
     .is_option = true,
     .help = "delete all of your ended campaigns"},
    CV_CLIENT_RULES(struct purge_settings, client),
    CV_JSON_RULE(offsetof(struct purge_settings, json)),
};

static const struct cv_config_table purge_table = {
    .program = "crowdveil purge",
    .arguments = "[CAMPAIGN]",
    .about = "deletes an ended campaign from the broker, or all of them with --ended; their charges remain",
    .rules = purge_rules,
    .count = CV_COUNT(purge_rules),
};

static json_t *progress_json(const struct cv_progress *progress) {
  json_t *object =
      json_pack("{s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:I, s:i, s:I}", "campaign",
                (json_int_t)progress->campaign, "name", progress->name, "state", cv_end_text(progress->end), "ended",
                progress->end != CV_END_NONE, "tokens", (json_int_t)progress->tokens, "tokens_limit",
                (json_int_t)progress->tokens_limit, "releases", (json_int_t)progress->releases, "plans",
                (json_int_t)progress->plans, "items", (int)progress->arms, "decided", (int)progress->decided, "parked",
                (int)progress->parked, "contradictions", (int)progress->contradictions, "epsilon_spent_micro",
                (json_int_t)progress->epsilon_spent_micro, "connections", (int)progress->workers, "elapsed_ms",
                (json_int_t)progress->elapsed_ms);
  return cv_hindrance_json(object, progress, NULL);
}

static enum cv_answer answer_json(const struct cv_config_table *table, json_t *object) {
  return cv_launcher_print_json(table, object, 0) == 0 ? CV_ANSWER_DONE : CV_ANSWER_FAILED;
}

static enum cv_answer status_json(const struct cv_status *status, const char *address) {
  json_t *all = json_array();
  for (size_t i = 0; i < status->campaigns; i++) {
    all = cv_json_append(all, progress_json(&status->campaign[i]));
  }
  return answer_json(&status_table,
                     json_pack("{s:s, s:s, s:I, s:I, s:o}", "broker", status->broker, "address", address, "term",
                               (json_int_t)status->term, "uptime_ms", (json_int_t)status->uptime_ms, "campaigns", all));
}

/* Of several processes over one database: which one is active, and since when. */
static void print_broker(const struct cv_status *status, const char *address) {
  double up_s = (double)status->uptime_ms / 1000;
  if (status->term == 0) {
    (void)printf("broker %s at %s, up for %.0f s\n", status->broker, address, up_s);
  } else {
    (void)printf("broker %s at %s, active in term %" PRIu64 " for %.0f s\n", status->broker, address, status->term,
                 up_s);
  }
}

static enum cv_answer on_status(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct settings *settings = data;
  const struct cv_status *status = &frame->as.status;
  if (frame->kind != CV_ORDER_STATUS_ANSWER) {
    return CV_ANSWER_MORE;
  }
  if (settings->json) {
    return status_json(status, cv_peer_address(client->peer));
  }
  print_broker(status, cv_peer_address(client->peer));
  for (size_t i = 0; i < status->campaigns; i++) {
    const struct cv_progress *progress = &status->campaign[i];
    char line[96];
    if (i == 0) {
      (void)printf("%8s  %-*s  %-12s  progress\n", "campaign", NAME_COLUMNS, "name", "state");
    }
    cv_view_line(progress, line, sizeof(line));
    size_t columns = cv_width_of(progress->name);
    (void)printf("%8" PRIu64 "  %s%*s  %-12s  %s\n", progress->campaign, cv_text_shown(progress->name).text,
                 columns < NAME_COLUMNS ? (int)(NAME_COLUMNS - columns) : 0, "", cv_end_text(progress->end), line);
    cv_hindrance_print(progress, NULL, "          ", stdout);
  }
  if (status->campaigns == 0) {
    (void)printf("no campaigns of yours\n");
  }
  return CV_ANSWER_DONE;
}

int cv_launcher_status(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  const struct cv_order_frame request = {.kind = CV_ORDER_STATUS};
  int status = cv_command_options(&status_table, argc, argv, 0, 0, words, &settings);
  if (status < 0) {
    status = cv_client_run(&status_table, &settings.client, &request, on_status, &settings);
  }
  cv_config_fini(&status_table, &settings);
  return status;
}

static enum cv_answer tell_cancelled(const struct settings *settings, const struct cv_progress *progress) {
  if (settings->json) {
    return answer_json(&cancel_table, progress_json(progress));
  }
  if (progress->end == CV_END_NONE) {
    (void)printf("campaign %" PRIu64 " is ending\n", progress->campaign);
  } else {
    (void)printf("campaign %" PRIu64 " has ended: %s, %.1f s after it was submitted\n", progress->campaign,
                 cv_end_text(progress->end), (double)progress->elapsed_ms / 1000);
  }
  return CV_ANSWER_DONE;
}

static enum cv_answer on_cancelled(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  struct cv_order_frame watch = {.kind = CV_ORDER_WATCH};
  switch (frame->kind) {
    case CV_ORDER_ACCEPTED: /* also of a campaign that has ended: only a look at it tells */
      watch.as.watch.campaign = frame->as.accepted.campaign;
      cv_client_ask(client, &watch);
      return CV_ANSWER_MORE;
    case CV_ORDER_PROGRESS:
      return tell_cancelled(data, &frame->as.progress);
    case CV_ORDER_FINISHED:
      return tell_cancelled(data, &frame->as.finished.progress);
    default:
      return CV_ANSWER_MORE;
  }
}

int cv_launcher_cancel(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_order_frame request = {.kind = CV_ORDER_CANCEL};
  struct cv_why why;
  int status = cv_command_options(&cancel_table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    if (cv_launcher_number(words[0], &request.as.campaign, &why) != CV_OK) {
      status = cv_command_fail(&cancel_table, 2, "%s", why.text);
    } else {
      status = cv_client_run(&cancel_table, &settings.client, &request, on_cancelled, &settings);
    }
  }
  cv_config_fini(&cancel_table, &settings);
  return status;
}

static enum cv_answer on_purged(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  if (frame->kind != CV_ORDER_PURGED) {
    return CV_ANSWER_MORE;
  }
  const struct purge_settings *settings = data;
  if (settings->json) {
    return answer_json(&purge_table, json_pack("{s:I}", "purged", (json_int_t)frame->as.purged));
  }
  (void)printf("%" PRIu64 " campaigns purged\n", frame->as.purged);
  return CV_ANSWER_DONE;
}

int cv_launcher_purge(int argc, char **argv) {
  struct purge_settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_order_frame request = {.kind = CV_ORDER_PURGE};
  struct cv_why why;
  int status = cv_command_options(&purge_table, argc, argv, 0, 1, words, &settings);
  if (status < 0) {
    if ((words[0] != NULL) == settings.ended) {
      status = cv_command_fail(&purge_table, 2, "expected either CAMPAIGN or --ended");
    } else if (words[0] != NULL && cv_launcher_number(words[0], &request.as.campaign, &why) != CV_OK) {
      status = cv_command_fail(&purge_table, 2, "%s", why.text);
    } else {
      status = cv_client_run(&purge_table, &settings.client, &request, on_purged, &settings);
    }
  }
  cv_config_fini(&purge_table, &settings);
  return status;
}
