/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/opening.h"

#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "common/base/fingerprint.h"
#include "common/base/text.h"

const struct cv_gate_limits CV_COBROKER_NO_LIMITS = {.epsilon_micro = UINT64_MAX,
                                                     .delta_pico = UINT64_MAX,
                                                     .arms = CV_ARMS_MAX,
                                                     .tokens = UINT64_MAX,
                                                     .unsafe_mechanisms = true};

/* ---- a spec ---- */

/* The broker has completed the spec: both keep the same one. */
static enum cv_err check_complete(const struct cv_spec *spec, struct cv_why *why) {
  struct cv_spec copy = *spec;
  struct cv_privacy privacy;
  struct cv_buf before = {0}, after = {0};
  CV_TRY(cv_privacy_init(&copy, &privacy, why));
  cv_spec_encode(spec, &before);
  cv_spec_encode(&copy, &after);
  enum cv_err err = !cv_buf_ok(&before) || !cv_buf_ok(&after) ? CV_ERR_NOMEM : CV_OK;
  bool same = err == CV_OK && before.len == after.len && memcmp(before.data, after.data, after.len) == 0;
  cv_buf_fini(&before);
  cv_buf_fini(&after);
  return err != CV_OK || same ? err
                              : cv_fail(why, CV_ERR_INVALID,
                                        "mechanism %s lacks a parameter; expected a spec that the broker has completed",
                                        spec->mechanism.name);
}

enum cv_err cv_cobroker_check_spec(const struct cv_spec *spec, const struct cv_gate_limits *limits,
                                   struct cv_why *why) {
  if (spec->brokers != 2) {
    return cv_fail(why, CV_ERR_INVALID, "brokers is %u; expected 2", spec->brokers);
  }
  CV_TRY(cv_gate_spec(spec, limits, why));
  return check_complete(spec, why);
}

/* ---- a new campaign ---- */

enum { MINUTE_MS = 60000 };

/* Each new campaign costs a commit and lines of log and audit log, for good, even if the broker ends it at once. */
static enum cv_err check_rate(struct cv_cobroker *core, struct cv_why *why) {
  uint32_t most = core->config.limits.submits;
  if (core->now_ms - core->minute_ms >= MINUTE_MS) {
    core->minute_ms = core->now_ms;
    core->minute_opened = 0;
  }
  return most == 0 || core->minute_opened < most
             ? CV_OK
             : cv_fail(why, CV_ERR_LIMIT,
                       "%u campaigns were opened within a minute; expected at most %u; try again later",
                       core->minute_opened, most);
}

static enum cv_err check_new(struct cv_cobroker *core, const struct cv_share_open *open, struct cv_why *why) {
  const struct cv_share_position *position = &open->position;
  unsigned long long id = position->campaign;
  if (id == 0 || id > UINT32_MAX || id <= core->archive.past.campaigns) {
    return cv_fail(why, CV_ERR_DENIED, "campaign %llu; expected a number from %llu to 4294967295", id,
                   (unsigned long long)core->archive.past.campaigns + 1);
  }
  /* Another verify key for a token that was verified before would give its score away. */
  if (position->plans > 0 || position->batches > 0 || position->closings > 0) {
    return cv_fail(why, CV_ERR_DENIED,
                   "campaign %llu has %llu plans at the broker, and is unknown here: this co-broker's state was lost",
                   id, (unsigned long long)position->plans);
  }
  if (HASH_COUNT(core->campaigns) >= core->config.limits.campaigns) {
    return cv_fail(why, CV_ERR_LIMIT, "%u campaigns are open; expected at most %u", HASH_COUNT(core->campaigns),
                   core->config.limits.campaigns);
  }
  CV_TRY(check_rate(core, why));
  if (open->deadline_ms != 0 && core->wall_ms >= open->deadline_ms) {
    return cv_fail(why, CV_ERR_DENIED, "the deadline of campaign %llu has passed", id);
  }
  return cv_cobroker_check_spec(&open->spec, &core->config.limits, why);
}

static void draw_key(struct cv_rng *rng, uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  for (size_t i = 0; i < CV_SPLIT_SEED_BYTES; i += sizeof(uint64_t)) {
    uint64_t bits = cv_rng_u64(rng);
    memcpy(ret + i, &bits, sizeof(bits));
  }
}

static void count(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign) {
  struct cv_totals totals;
  uint64_t cost_micro;
  cv_cobroker_campaign_totals(campaign, &totals, &cost_micro);
  core->totals.campaigns = totals.campaigns > core->totals.campaigns ? totals.campaigns : core->totals.campaigns;
  core->totals.promised_micro = cv_ledger_add(core->totals.promised_micro, totals.promised_micro);
}

/* If the wall clock goes back, the campaign still gets no more than its full time. */
static void set_deadline(const struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t wall_ms) {
  campaign->deadline_wall_ms = wall_ms;
  campaign->deadline_ms = wall_ms == 0 ? 0 : core->now_ms + (wall_ms - core->wall_ms);
}

static enum cv_err answer(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  struct cv_share_opened opened = {.refused = NULL};
  cv_cobroker_campaign_position(campaign, &opened.position);
  memcpy(opened.key, campaign->key, sizeof(opened.key));
  campaign->told = true;
  enum cv_err err = cv_cobroker_say_opened(&core->broker->gather, &opened);
  explicit_bzero(&opened, sizeof(opened));
  return err;
}

static enum cv_err begin(struct cv_cobroker *core, const struct cv_share_open *open) {
  struct cv_cobroker_campaign *campaign;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  struct cv_digest hash;
  draw_key(core->config.key, key);
  core->config.digest(key, sizeof(key), "", 0, &hash);
  enum cv_err err =
      cv_cobroker_campaign_new(core, (uint32_t)open->position.campaign, &open->spec, open->database, &hash, &campaign);
  if (err == CV_OK) {
    memcpy(campaign->key, key, sizeof(key));
  }
  explicit_bzero(key, sizeof(key));
  CV_TRY(err);
  core->minute_opened++;
  memcpy(campaign->requester, open->requester, sizeof(campaign->requester));
  set_deadline(core, campaign, open->deadline_ms);
  campaign->fresh = true;
  cv_cobroker_campaign_mark(core, campaign);
  count(core, campaign);
  const struct cv_event_fact facts[] = {{.name = "requester", .text = campaign->requester}};
  cv_cobroker_audit(core, true,
                    (struct cv_event){.what = "open",
                                      .campaign = campaign->id,
                                      .name = campaign->spec.name,
                                      .fact = facts,
                                      .facts = CV_COUNT(facts)});
  cv_cobroker_note(core, CV_LOG_INFO, NULL, campaign, " opened for requester %s", campaign->requester);
  return answer(core, campaign);
}

static enum cv_err refuse(struct cv_cobroker *core, const struct cv_share_open *open, const char *why) {
  struct cv_share_opened opened = {.position = {.campaign = open->position.campaign}, .refused = why};
  cv_refusals_add(&core->figures.refusals, CV_REFUSED_SUBMIT);
  cv_cobroker_note(core, CV_LOG_INFO, core->broker->who, NULL, "campaign %llu \"%s\" refused: %s",
                   (unsigned long long)open->position.campaign, cv_text_shown(open->spec.name).text, why);
  const struct cv_event_fact facts[] = {{.name = "requester", .text = open->requester}};
  cv_cobroker_audit(core, true,
                    (struct cv_event){.what = "open",
                                      .campaign = open->position.campaign,
                                      .name = open->spec.name,
                                      .refused = why,
                                      .fact = facts,
                                      .facts = CV_COUNT(facts)});
  return cv_cobroker_say_opened(&core->broker->gather, &opened);
}

static enum cv_err open_new(struct cv_cobroker *core, const struct cv_share_open *open) {
  struct cv_why why;
  enum cv_err err = check_new(core, open, &why);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  return err == CV_OK ? begin(core, open) : refuse(core, open, why.text);
}

/* ---- a known campaign ---- */

/* Whether what the broker opens is the campaign that has this split. CV_ERR_NOMEM. */
static enum cv_err compare_split(const struct cv_cobroker *core, const struct cv_share_open *open,
                                 const struct cv_split *split, bool *ret_same) {
  struct cv_digest spec;
  CV_TRY(cv_split_spec(&open->spec, core->config.digest, &spec));
  *ret_same =
      cv_digest_is_same(&spec, &split->spec) && memcmp(open->database, split->database, sizeof(split->database)) == 0;
  return CV_OK;
}

static enum cv_err open_ended(struct cv_cobroker *core, const struct cv_share_open *open,
                              const struct cv_cobroker_ended *ended) {
  bool same = false;
  CV_TRY(compare_split(core, open, &ended->split, &same));
  return same ? cv_cobroker_tell_ended(core, ended)
              : refuse(core, open, "another campaign had this number; expected a new one");
}

/* The first difference between the broker's position and ours that shows that one side has lost what it had, or has
 * other content; NULL if there is none. */
static const char *differs(const struct cv_cobroker_campaign *campaign, const struct cv_share_position *theirs) {
  struct cv_share_position ours;
  cv_cobroker_campaign_position(campaign, &ours);
  if (theirs->plans > ours.plans) {
    return "the broker has plans that are not here";
  }
  struct cv_digest plans = cv_cobroker_campaign_plan_hash(campaign, theirs->plans);
  if (theirs->plans + 1 < ours.plans) {
    return "the broker has lost plans that are here"; /* one may still be on the way */
  }
  if (!cv_digest_is_same(&theirs->plans_hash, &plans)) {
    return "the broker has other plans than here";
  }
  if (theirs->batches < ours.batches) {
    return "the broker has lost batches that are here";
  }
  if (theirs->batches == ours.batches && !cv_digest_is_same(&theirs->batches_hash, &ours.batches_hash)) {
    return "the broker has other batches than here";
  }
  if (theirs->closings < ours.closings) {
    return "the broker has lost closings that are here";
  }
  if (theirs->closings == ours.closings && !cv_digest_is_same(&theirs->closings_hash, &ours.closings_hash)) {
    return "the broker has other closings than here";
  }
  return NULL;
}

static enum cv_err open_again(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                              const struct cv_share_open *open) {
  bool same = false;
  CV_TRY(compare_split(core, open, &campaign->split, &same));
  if (!same || strcmp(open->requester, campaign->requester) != 0 || open->deadline_ms != campaign->deadline_wall_ms) {
    cv_cobroker_freeze(core, campaign, "the broker opens another campaign under the same number");
    return CV_OK;
  }
  const char *why = differs(campaign, &open->position);
  if (why != NULL) {
    cv_cobroker_freeze(core, campaign, "%s", why);
    return CV_OK;
  }
  return answer(core, campaign);
}

enum cv_err cv_cobroker_open(struct cv_cobroker *core, const struct cv_share_open *open) {
  uint64_t id = open->position.campaign;
  struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, id);
  const struct cv_cobroker_ended *ended = cv_cobroker_archive_find(&core->archive, id);
  core->said = true;
  return campaign != NULL ? open_again(core, campaign, open)
         : ended != NULL  ? open_ended(core, open, ended)
                          : open_new(core, open);
}
