/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/hindrance.h"
#include "deploy/launcher/result_json.h"
#include "deploy/launcher/table.h"

void cv_follow_init(struct cv_follow *follow, const struct cv_config_table *table, const struct cv_prepared *prepared,
                    bool is_seed_known) {
  *follow = (struct cv_follow){.table = table, .status = 1};
  cv_view_init(&follow->view, stdout);
  if (prepared != NULL) {
    const struct cv_items *items = &prepared->file.items;
    bool is_drawn =
        items->source == CV_SOURCE_SYNTHETIC || items->source == CV_SOURCE_ADVERSARY || items->source == CV_SOURCE_TAXI;
    bool is_fixed = !is_drawn || items->has_seed || is_seed_known;
    follow->known = (struct cv_outcome_known){.kind = prepared->kind,
                                              .spec = &prepared->file.spec,
                                              .name = prepared->name,
                                              .mean = is_fixed ? prepared->truth : NULL,
                                              .file = prepared,
                                              .is_seed_known = is_seed_known};
    cv_view_know(&follow->view, prepared->kind, prepared->file.spec.epsilon_micro, prepared->name);
    follow->adversary = is_fixed ? cv_quality_adversary(prepared->source.quality) : NULL;
  }
}

void cv_follow_json(struct cv_follow *follow) {
  follow->json = true;
  follow->view.to = stderr;
  follow->view.is_terminal = false;
}

void cv_follow_fini(struct cv_follow *follow) {
  cv_outcome_fini(&follow->outcome);
  cv_export_fini(&follow->export);
  cv_spec_fini(&follow->described);
  cv_view_fini(&follow->view);
}

static enum cv_answer conclude(struct cv_follow *follow) {
  if (follow->json) {
    const struct cv_spec *spec = follow->known.spec;
    cv_result_print_json(&follow->outcome, spec == NULL ? "" : spec->policy.name);
  } else {
    cv_table_print(&follow->outcome, stdout);
    cv_hindrance_print(&follow->outcome.progress, follow->outcome.name, "", stdout);
  }
  follow->status = cv_launcher_end_status(follow->outcome.progress.end);
  return CV_ANSWER_DONE;
}

static enum cv_answer fail(const struct cv_follow *follow, const char *line) {
  (void)cv_command_fail(follow->table, 1, "%s", line);
  return CV_ANSWER_FAILED;
}

/* Returns true if the file can be this campaign's: name, number of arms and policy are the same. */
static bool is_of(const struct cv_spec *file, const struct cv_follow *follow, const char *name, uint32_t arms) {
  const struct cv_spec *described = &follow->described;
  return file->arms == arms && strcmp(file->name, name) == 0 &&
         (described->arms == 0 || strcmp(file->policy.name, described->policy.name) == 0);
}

static enum cv_policy_kind kind_of(const struct cv_spec *spec) {
  const struct cv_policy_class *policy = cv_policy_find(spec->policy.name);
  return policy == NULL ? CV_POLICY_RANKING : policy->kind;
}

static enum cv_answer on_description(struct cv_follow *follow, const struct cv_spec *spec) {
  struct cv_spec *described = &follow->described;
  cv_view_know(&follow->view, CV_POLICY_RANKING, 0, NULL);
  cv_spec_fini(described); /* sent again after a reconnection */
  if (cv_spec_copy(spec, described) != CV_OK) {
    return fail(follow, cv_err_text(CV_ERR_NOMEM));
  }
  const struct cv_spec *file = follow->known.spec;
  bool is_own = file != NULL && is_of(file, follow, described->name, described->arms);
  cv_view_know(&follow->view, kind_of(described), described->epsilon_micro,
               is_own && follow->known.name != NULL ? follow->known.name : described->names);
  return CV_ANSWER_MORE;
}

/* Takes names and truth from the file, if it is this campaign's; the rest from the description, since the file may draw
 * other costs. */
static void choose_known(struct cv_follow *follow, const struct cv_progress *progress) {
  struct cv_outcome_known *known = &follow->known;
  const struct cv_spec *described = follow->described.arms == progress->arms ? &follow->described : NULL;
  if (known->spec != NULL && !is_of(known->spec, follow, progress->name, progress->arms)) {
    (void)cv_command_fail(follow->table, 0,
                          "ignoring the file of campaign \"%s\", %u arms, policy %s; expected that of \"%s\", %u "
                          "arms%s%s",
                          cv_text_shown(known->spec->name).text, known->spec->arms, known->spec->policy.name,
                          cv_text_shown(progress->name).text, progress->arms, described == NULL ? "" : ", policy ",
                          described == NULL ? "" : described->policy.name);
    *known = (struct cv_outcome_known){0};
    follow->adversary = NULL;
  }
  if (described != NULL) {
    known->kind = kind_of(described);
    known->spec = described;
    known->name = known->name != NULL ? known->name : described->names;
  }
}

static enum cv_answer on_standings(struct cv_follow *follow, const struct cv_standings *standings) {
  return cv_view_stand(&follow->view, standings->standing, standings->standings) == CV_OK
             ? CV_ANSWER_MORE
             : fail(follow, cv_err_text(CV_ERR_NOMEM));
}

static enum cv_answer on_finished(struct cv_follow *follow, struct cv_client *client,
                                  const struct cv_finished *finished) {
  if (follow->is_finished) {
    return CV_ANSWER_MORE; /* sent again after a reconnection */
  }
  choose_known(follow, &finished->progress);
  cv_view_end(&follow->view);
  if (cv_outcome_init(&follow->outcome, finished, &follow->known) != CV_OK) {
    return fail(follow, cv_err_text(CV_ERR_NOMEM));
  }
  follow->is_finished = true;
  if (!cv_outcome_needs_export(&follow->outcome, follow->adversary)) {
    return conclude(follow);
  }
  const struct cv_order_frame request = {.kind = CV_ORDER_EXPORT, .as.campaign = finished->progress.campaign};
  cv_client_ask(client, &request);
  return CV_ANSWER_MORE;
}

static enum cv_answer on_part(struct cv_follow *follow, const struct cv_part *part) {
  struct cv_why why;
  if (cv_outcome_take_part(&follow->outcome, follow->adversary, &follow->export, part, &why) != CV_OK) {
    return fail(follow, why.text);
  }
  return follow->outcome.is_exported ? conclude(follow) : CV_ANSWER_MORE;
}

void cv_follow_lost(void *data) {
  struct cv_follow *follow = data;
  cv_view_end(&follow->view);
}

/* Once each; a terminal's table has no room for them, and gets them with the result. (Its table says what the campaign
 * waits for.) */
static void tell_hindrances(struct cv_follow *follow, const struct cv_progress *progress) {
  const char *wait = cv_hindrance_wait(progress);
  if (!follow->view.is_terminal && wait != NULL && cv_hindrance_wait(&follow->hindered) == NULL) {
    (void)fprintf(follow->view.to, "campaign %" PRIu64 " %s\n", progress->campaign, wait);
    (void)fflush(follow->view.to);
  }
  if (!follow->view.is_terminal && cv_hindrance_differs(&follow->hindered, progress)) {
    cv_hindrance_print(progress, follow->view.live.name, "", follow->view.to);
    (void)fflush(follow->view.to);
  }
  follow->hindered = *progress;
}

enum cv_answer cv_follow_answer(struct cv_follow *follow, struct cv_client *client,
                                const struct cv_order_frame *frame) {
  switch (frame->kind) {
    case CV_ORDER_DESCRIPTION:
      return follow->is_finished ? CV_ANSWER_MORE : on_description(follow, &frame->as.description.spec);
    case CV_ORDER_STANDINGS:
      return follow->is_finished ? CV_ANSWER_MORE : on_standings(follow, &frame->as.standings);
    case CV_ORDER_FINISHED:
      return on_finished(follow, client, &frame->as.finished);
    case CV_ORDER_PART:
      return follow->is_finished ? on_part(follow, &frame->as.part) : CV_ANSWER_MORE;
    case CV_ORDER_PROGRESS:
      if (!follow->is_finished) {
        cv_view_show(&follow->view, &frame->as.progress, cv_clock_mono_ms());
        tell_hindrances(follow, &frame->as.progress);
      }
      return CV_ANSWER_MORE;
    default:
      return CV_ANSWER_MORE;
  }
}
