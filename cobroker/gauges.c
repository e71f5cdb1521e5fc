/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/gauges.h"

#include "cobroker/core.h"
#include "common/admin/metrics.h"

static void put_work(const struct cv_cobroker_figures *f, struct cv_buf *out) {
  static const char answers[] = "crowdveil_cobroker_answers_total";
  static const char *const word[CV_ANSWERS] = {[CV_ANSWER_ACCEPTED] = "accepted",
                                               [CV_ANSWER_PROOF] = "proof",
                                               [CV_ANSWER_PLACE] = "place",
                                               [CV_ANSWER_WORKER] = "worker",
                                               [CV_ANSWER_SESSION] = "session"};
  cv_metric_family(out, answers, "Tokens judged, by the answer to the broker.", "counter");
  for (int i = CV_ANSWER_ACCEPTED; i < CV_ANSWERS; i++) {
    cv_metric_sample(out, answers, "answer", word[i], (double)f->answers[i]);
  }
  cv_metric_counter(out, "crowdveil_cobroker_batches_total", "Batches of tokens judged.", f->batches);
  cv_metric_counter(out, "crowdveil_cobroker_batches_repeated_total", "Batches that the broker sent again.",
                    f->repeated);
  cv_metric_counter(out, "crowdveil_cobroker_plans_total", "Plans accepted.", f->plans);
  cv_metric_counter(out, "crowdveil_cobroker_closings_total", "Halves of releases made, and epochs discarded.",
                    f->closings);
}

static void put_campaigns(const struct cv_cobroker_figures *f, struct cv_buf *out) {
  static const char ended[] = "crowdveil_cobroker_campaigns_ended_total";
  cv_metric_gauge(out, "crowdveil_cobroker_campaigns_open", "Campaigns that are open.", f->campaigns);
  cv_metric_family(out, ended, "Campaigns that have ended since the start, by the reason of their end.", "counter");
  for (enum cv_end end = CV_END_COMPLETE; end < CV_END_COUNT; end++) {
    cv_metric_sample(out, ended, "end", cv_end_text(end), (double)f->ended[end]);
  }
  cv_metric_gauge(out, "crowdveil_cobroker_campaigns_kept", "Ended campaigns with a record.", f->campaigns_kept);
}

static void put_peers(const struct cv_cobroker_figures *f, const struct cv_refusals *network, struct cv_buf *out) {
  cv_metric_gauge(out, "crowdveil_cobroker_broker_connected", "1 if the broker is connected.", f->broker);
  cv_metric_gauge(out, "crowdveil_cobroker_crowd", "Connections of workers and gateways.", f->crowd);
  cv_metric_gauge(out, "crowdveil_cobroker_sessions", "Sessions of workers and gateways.", f->sessions);
  cv_metric_gauge(out, "crowdveil_cobroker_workers_spent", "Workers whose lifetime epsilon is spent.",
                  (double)f->workers_spent);
  struct cv_refusals refusals = f->refusals;
  cv_refusals_sum(&refusals, network);
  cv_metric_refusals(out, &refusals);
}

void cv_cobroker_gauges_put(const struct cv_cobroker *core, const struct cv_refusals *network, struct cv_buf *out) {
  struct cv_cobroker_figures figures;
  cv_cobroker_figures(core, &figures);
  put_work(&figures, out);
  put_campaigns(&figures, out);
  put_peers(&figures, network, out);
}
