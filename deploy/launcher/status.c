/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil status, crowdveil cancel and crowdveil purge. */
#include <inttypes.h>
#include <stdio.h>

#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/hindrance.h"
#include "deploy/launcher/progress.h"

struct settings {
  struct cv_client_settings client;
};

static const struct cv_config_rule rules[] = {CV_CLIENT_RULES(struct settings, client)};

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
  bool ended;
};

static const struct cv_config_rule purge_rules[] = {
    {.key = "ended",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct purge_settings, ended),
     .fallback = "false",
     .is_option = true,
     .help = "delete all of your ended campaigns"},
    CV_CLIENT_RULES(struct purge_settings, client),
};

static const struct cv_config_table purge_table = {
    .program = "crowdveil purge",
    .arguments = "[CAMPAIGN]",
    .about = "deletes an ended campaign from the broker, or all of them with --ended; their charges remain",
    .rules = purge_rules,
    .count = CV_COUNT(purge_rules),
};

static enum cv_answer on_status(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct cv_status *status = &frame->as.status;
  if (frame->kind != CV_ORDER_STATUS_ANSWER) {
    return CV_ANSWER_MORE;
  }
  (void)printf("broker %s, up for %.0f s\n", status->broker, (double)status->uptime_ms / 1000);
  for (size_t i = 0; i < status->campaigns; i++) {
    const struct cv_progress *progress = &status->campaign[i];
    char line[96];
    if (i == 0) {
      (void)printf("%8s  %-20s  %-12s  progress\n", "campaign", "name", "state");
    }
    cv_view_line(progress, line, sizeof(line));
    (void)printf("%8" PRIu64 "  %-20s  %-12s  %s\n", progress->campaign, progress->name, cv_end_text(progress->end),
                 line);
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
    status = cv_client_run(&status_table, &settings.client, &request, on_status, NULL);
  }
  cv_config_fini(&status_table, &settings);
  return status;
}

static enum cv_answer on_cancelled(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct cv_progress *ended = &frame->as.finished.progress;
  struct cv_order_frame watch = {.kind = CV_ORDER_WATCH};
  switch (frame->kind) {
    case CV_ORDER_ACCEPTED: /* also of a campaign that has ended: only a look at it tells */
      watch.as.watch.campaign = frame->as.accepted.campaign;
      cv_client_ask(client, &watch);
      return CV_ANSWER_MORE;
    case CV_ORDER_PROGRESS:
      (void)printf("campaign %" PRIu64 " is ending\n", frame->as.progress.campaign);
      return CV_ANSWER_DONE;
    case CV_ORDER_FINISHED:
      (void)printf("campaign %" PRIu64 " has ended: %s, %.1f s after it was submitted\n", ended->campaign,
                   cv_end_text(ended->end), (double)ended->elapsed_ms / 1000);
      return CV_ANSWER_DONE;
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
      status = cv_client_run(&cancel_table, &settings.client, &request, on_cancelled, NULL);
    }
  }
  cv_config_fini(&cancel_table, &settings);
  return status;
}

static enum cv_answer on_purged(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  if (frame->kind != CV_ORDER_PURGED) {
    return CV_ANSWER_MORE;
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
      status = cv_client_run(&purge_table, &settings.client, &request, on_purged, NULL);
    }
  }
  cv_config_fini(&purge_table, &settings);
  return status;
}
