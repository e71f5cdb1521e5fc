/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/admit.h"

#include <inttypes.h>
#include <string.h>

#include "common/config/command.h"

struct cv_order_frame cv_admit_request(const struct cv_prepared *campaign) {
  return (struct cv_order_frame){
      .kind = CV_ORDER_LEDGER,
      .as.ledger = {.has_plan = true, .plan = campaign->file.spec, .gold = campaign->file.gold.gold}};
}

enum cv_err cv_admit_take(const struct cv_statement *statement, struct cv_prepared *campaign, struct cv_why *why) {
  struct cv_spec *spec = &campaign->file.spec;
  uint64_t asked = 0;
  if (statement->release_tokens <= cv_spec_release_tokens(spec)) {
    return CV_OK;
  }
  CV_TRY(cv_spec_raise_release_tokens(spec, statement->release_tokens));
  CV_TRY(cv_policy_fits(spec, why));
  CV_TRY(cv_prepare_first_tokens(campaign, &asked, why));
  return asked <= spec->tokens
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "the first plan asks for %" PRIu64
                       " tokens, since a release has %u at least "
                       "(limits.release_tokens of the broker); the campaign's limit is %" PRIu64 "; expected as many",
                       asked, statement->release_tokens, spec->tokens);
}

struct asking {
  const struct cv_config_table *table;
  struct cv_prepared *campaign;
};

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct asking *asking = data;
  struct cv_why why;
  (void)client;
  if (frame->kind != CV_ORDER_STATEMENT) {
    return CV_ANSWER_MORE;
  }
  if (cv_admit_take(&frame->as.statement, asking->campaign, &why) != CV_OK) {
    (void)cv_command_fail(asking->table, 1, "%s", why.text);
    return CV_ANSWER_FAILED;
  }
  return CV_ANSWER_DONE;
}

int cv_admit_ask(const struct cv_config_table *table, const struct cv_client_settings *client,
                 struct cv_prepared *campaign, bool *ret_asked) {
  const char *const given[] = {client->broker_name, client->ca, client->cert, client->key};
  static const char *const option[] = {"--broker-name", "--tls-ca", "--tls-cert", "--tls-key"};
  size_t some = 0, missing = 0;
  for (size_t i = 0; i < CV_COUNT(given); i++) {
    some += given[i] != NULL;
    missing = given[i] == NULL ? i : missing;
  }
  *ret_asked = some == CV_COUNT(given);
  if (some == 0 && strcmp(client->broker, CV_CLIENT_BROKER) == 0) {
    return 0;
  }
  if (!*ret_asked) {
    return cv_command_fail(table, 2, "%s is missing; expected it with the other options of a broker, or none of them",
                           option[missing]);
  }
  struct asking asking = {.table = table, .campaign = campaign};
  const struct cv_order_frame request = cv_admit_request(campaign);
  return cv_client_run(table, client, &request, on_answer, &asking);
}
