/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeper.h"

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  const struct cv_keeper *keeper = data;
  const struct cv_served_campaign campaign = {.id = terms->id, .name = terms->name, .law = law};
  CV_TRY(cv_worker_store_serve(keeper->store, work->print, &campaign, keeper->most, why));
  return ret_taken == NULL ? CV_OK
                           : cv_worker_store_taken(keeper->store, work->print, &campaign, work->arms, ret_taken, why);
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  struct cv_keeper *keeper = data;
  const struct cv_served_campaign campaign = {.id = terms->id, .name = terms->name};
  keeper->failed =
      cv_worker_store_note_taken(keeper->store, work->print, &campaign, arm, taken) != CV_OK || keeper->failed;
}

/* Behind a privatizer a question is one of the name, whatever the number of the campaign. */
static struct cv_served_campaign asked_by(const struct cv_work *work, const struct cv_terms *terms) {
  return (struct cv_served_campaign){
      .id = terms == NULL ? CV_SERVED_ANY : terms->id, .name = work->campaign, .items = &work->items};
}

static enum cv_err answered_before(void *data, const struct cv_work *work, const struct cv_terms *terms,
                                   enum cv_err (*tell)(void *to, uint64_t worker, uint64_t question), void *to,
                                   struct cv_why *why) {
  const struct cv_keeper *keeper = data;
  const struct cv_served_campaign campaign = asked_by(work, terms);
  return cv_worker_store_answered(keeper->store, &campaign, tell, to, why);
}

static void note_answer(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t worker,
                        uint64_t question, bool is_answered) {
  struct cv_keeper *keeper = data;
  const struct cv_served_campaign campaign = asked_by(work, terms);
  keeper->failed =
      cv_worker_store_note_answer(keeper->store, &campaign, worker, question, is_answered) != CV_OK || keeper->failed;
}

void cv_keeper_init(struct cv_keeper *keeper, struct cv_worker_store *store, uint64_t most) {
  *keeper = (struct cv_keeper){
      .store = store,
      .most = most,
      .record = {.serve = serve, .take = take, .answered = answered_before, .answer = note_answer, .data = keeper}};
}
