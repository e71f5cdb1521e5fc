/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/gauges.h"

#include <stdio.h>

#include "broker/core.h"
#include "common/admin/metrics.h"
#include "common/base/grid.h"

static void put_work(const struct cv_broker_figures *f, struct cv_buf *out) {
  cv_metric_counter(out, "crowdveil_tokens_total", "Tokens accepted.", f->tokens);
  cv_metric_counter(out, "crowdveil_tokens_duplicate_total", "Duplicate tokens.", f->duplicates);
  cv_metric_counter(out, "crowdveil_tokens_expired_total", "Tokens after the end of their lease or epoch.", f->expired);
  cv_metric_counter(out, "crowdveil_tokens_refused_total", "Tokens refused.", f->refused);
  cv_metric_counter(out, "crowdveil_gold_answers_total", "Answers to gold items.", f->gold_answers);
  cv_metric_counter(out, "crowdveil_gold_workers_found_total",
                    "Workers whose answers to gold items are not those of honest workers, once in each campaign.",
                    f->gold_found);
  cv_metric_counter(out, "crowdveil_releases_total", "Noisy sums released.", f->releases);
  cv_metric_counter(out, "crowdveil_plans_total", "Plans accepted.", f->plans);
}

static void put_peers(const struct cv_broker_figures *f, const struct cv_refusals *network, struct cv_buf *out) {
  static const char conns[] = "crowdveil_connections";
  cv_metric_family(out, conns, "Connected peers, by role.", "gauge");
  for (enum cv_role role = CV_ROLE_REQUESTER; role < CV_ROLE_COUNT; role++) {
    if (role != CV_ROLE_BROKER) {
      cv_metric_sample(out, conns, "role", cv_role_text(role), f->conns[role]);
    }
  }
  cv_metric_gauge(out, "crowdveil_thirdparty_connected", "1 if the third-party is connected.", f->thirdparty);
  cv_metric_gauge(out, "crowdveil_cobroker_connected", "1 if the co-broker is connected.", f->cobroker);
  cv_metric_gauge(out, "crowdveil_tokens_waiting", "Tokens that wait for the co-broker's verdict.", (double)f->waiting);
  cv_metric_gauge(out, "crowdveil_workers_spent", "Workers whose lifetime epsilon is spent.", (double)f->workers_spent);
  struct cv_refusals refusals = f->refusals;
  cv_refusals_sum(&refusals, network);
  cv_metric_refusals(out, &refusals);
}

static void put_campaigns(const struct cv_broker_figures *f, struct cv_buf *out) {
  static const char open[] = "crowdveil_campaigns_open", ended[] = "crowdveil_campaigns_ended_total";
  cv_metric_family(out, open, "Campaigns without a result, by phase.", "gauge");
  cv_metric_sample(out, open, "phase", "opening", f->opening);
  cv_metric_sample(out, open, "phase", "running", f->running);
  cv_metric_sample(out, open, "phase", "stopping", f->stopping);
  cv_metric_family(out, ended, "Campaigns that have ended since the start, by the reason of their end.", "counter");
  for (enum cv_end end = CV_END_COMPLETE; end < CV_END_COUNT; end++) {
    cv_metric_sample(out, ended, "end", cv_end_text(end), (double)f->ended[end]);
  }
  cv_metric_gauge(out, "crowdveil_campaigns_kept", "Ended campaigns with a record.", f->campaigns_kept);
}

/* One family over the listed campaigns; `of` returns false for a campaign to which it does not apply. */
static void put_left(const struct cv_broker_left *left, size_t n, const char *name, const char *help,
                     bool (*of)(const struct cv_broker_left *left, double *ret), struct cv_buf *out) {
  cv_metric_family(out, name, help, "gauge");
  for (size_t i = 0; i < n; i++) {
    char campaign[16];
    double value;
    (void)snprintf(campaign, sizeof(campaign), "%u", left[i].campaign);
    if (of(&left[i], &value)) {
      cv_metric_sample(out, name, "campaign", campaign, value);
    }
  }
}

static bool tokens_left(const struct cv_broker_left *left, double *ret) {
  *ret = (double)left->tokens;
  return true;
}

static bool tokens_limit(const struct cv_broker_left *left, double *ret) {
  *ret = (double)left->tokens_limit;
  return true;
}

static bool epsilon_left(const struct cv_broker_left *left, double *ret) {
  *ret = (double)left->epsilon_micro / (double)CV_MICRO;
  return left->epsilon_limit_micro > 0;
}

static bool epsilon_limit(const struct cv_broker_left *left, double *ret) {
  *ret = (double)left->epsilon_limit_micro / (double)CV_MICRO;
  return left->epsilon_limit_micro > 0;
}

static void put_budgets(const struct cv_broker *broker, uint32_t open, struct cv_buf *out) {
  struct cv_broker_left left[CV_BROKER_LISTED];
  size_t n = cv_broker_left(broker, left, CV_BROKER_LISTED);
  put_left(left, n, "crowdveil_campaign_tokens_left", "Tokens that the campaign may still take.", tokens_left, out);
  put_left(left, n, "crowdveil_campaign_tokens_limit", "Tokens that the campaign may take in all.", tokens_limit, out);
  put_left(left, n, "crowdveil_campaign_epsilon_left", "Epsilon left of the item that was charged most.", epsilon_left,
           out);
  put_left(left, n, "crowdveil_campaign_epsilon_limit", "Epsilon of the campaign.", epsilon_limit, out);
  cv_metric_gauge(out, "crowdveil_campaigns_unlisted", "Open campaigns without metrics of their own.",
                  (double)(open - n));
}

void cv_broker_gauges_put(const struct cv_broker *broker, const struct cv_refusals *network, struct cv_buf *out) {
  struct cv_broker_figures figures;
  cv_broker_figures(broker, &figures);
  put_work(&figures, out);
  put_peers(&figures, network, out);
  put_campaigns(&figures, out);
  put_budgets(broker, figures.opening + figures.running + figures.stopping, out);
}
