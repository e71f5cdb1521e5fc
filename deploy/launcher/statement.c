/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/statement.h"
#include "common/base/text.h"
#include "deploy/launcher/json.h"

#include <inttypes.h>

#include "common/base/grid.h"

enum { LINES = 6, LINE_BYTES = 900 };

static double epsilon(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

static bool is_plan(const struct cv_statement *statement) {
  return statement->campaign == 0;
}

/* What the numbers of micro-epsilon mean: with exact sums, nothing. */
static const char *protection(const struct cv_statement *statement) {
  return statement->is_exact ? "unprotected" : "epsilon";
}

static uint64_t left(const struct cv_statement *statement, const struct cv_account *account) {
  return account->spent_micro < statement->epsilon_micro ? statement->epsilon_micro - account->spent_micro : 0;
}

/* The largest amount that an arm has spent or, for a plan, can spend. */
static uint64_t most_micro(const struct cv_statement *statement) {
  if (is_plan(statement)) {
    return statement->is_exact ? 0 : statement->epsilon_micro;
  }
  uint64_t most = 0;
  for (uint32_t i = 0; i < statement->arms; i++) {
    most = statement->account[i].spent_micro > most ? statement->account[i].spent_micro : most;
  }
  return most;
}

/* ---- the guarantee as text ---- */

struct words {
  char line[LINES][LINE_BYTES];
  size_t lines;
};

static void say(struct words *words, const char *fmt, ...) CV_PRINTF(2, 3);
static void say(struct words *words, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(words->line[words->lines++], LINE_BYTES, fmt, args);
  va_end(args);
}

/* Describes the guarantee, from one token's score (event level) to a worker (worker level) to the broker's limit. */
static void find_words(const struct cv_statement *statement, struct words *words) {
  words->lines = 0;
  if (statement->is_exact) {
    say(words,
        "Unprotected: the third-party gets exact sums (mechanism %s with privatizer %s), which protect no "
        "worker.",
        statement->mechanism, statement->privatizer);
    say(words,
        "Worker level: the first of up to %" PRIu32
        " tokens of one worker charges its account as unlimited; no other campaign accepts this worker.",
        statement->tokens_per_worker);
  } else {
    say(words, "Mechanism %s: %s.", statement->mechanism, statement->guarantee);
    char but[64] = "";
    if (statement->delta_pico > 0) {
      (void)snprintf(but, sizeof(but), " and delta %.12g", (double)statement->delta_pico / 1e12);
    }
    say(words, "Event level: all releases together are epsilon-private for one token's score, with epsilon %g%s.",
        epsilon(most_micro(statement)), but);
    say(words,
        "Different arms use different tokens, so the largest account of an arm counts, not their sum; the releases of "
        "one arm add up in its account.");
    say(words,
        "Worker level: up to %" PRIu32
        " tokens of one worker are charged %g each, %g together (charges add up over "
        "campaigns).",
        statement->tokens_per_worker, epsilon(statement->epsilon_micro), epsilon(statement->worker_epsilon_micro));
  }
  if (statement->release_tokens > 1) {
    say(words, "Each release sums %" PRIu32 " tokens at least (limits.release_tokens).", statement->release_tokens);
  }
  say(words, "This broker limits a worker to %g over all its campaigns; %g of that is charged to every worker%s.",
      epsilon(statement->lifetime_epsilon_micro), epsilon(statement->floor_micro),
      statement->floor_micro > 0 ? " because of recoveries" : "");
}

/* ---- as a table ---- */

/* The payments of a recruitment, printed above the accounts of epsilon. */
static void print_payments(const struct cv_statement *statement, FILE *to) {
  uint64_t paid = 0;
  if (statement->budget_micro == 0) {
    return;
  }
  (void)fprintf(to, "%8s  %12s  %12s\n", "worker", "hires", "paid");
  for (uint32_t i = 0; i < statement->arms; i++) {
    const struct cv_account *account = &statement->account[i];
    paid += account->paid_micro;
    (void)fprintf(to, "%8" PRIu64 "  %12" PRIu64 "  %12.6f\n", account->worker, account->hires,
                  epsilon(account->paid_micro));
  }
  (void)fprintf(to, "paid %.6f of the budget of %.6f\n", epsilon(paid), epsilon(statement->budget_micro));
  if (statement->end == CV_END_RECOVERED && paid < statement->budget_micro) {
    (void)fprintf(to, "at most %.6f more was earned by tokens that the broker has forgotten\n",
                  epsilon(statement->budget_micro - paid));
  }
}

static void print_most(const struct cv_statement *statement, FILE *to) {
  if (statement->is_exact) {
    (void)fprintf(to, "at most     unprotected: no epsilon applies\n");
  } else {
    (void)fprintf(to, "at most     epsilon %g for each arm, %g for a worker\n", epsilon(most_micro(statement)),
                  epsilon(statement->worker_epsilon_micro));
  }
}

static void print_arm(const struct cv_statement *statement, uint32_t arm, FILE *to) {
  const struct cv_account *account = &statement->account[arm];
  (void)fprintf(to, "%6" PRIu32 "  %8" PRIu64 "  %12" PRIu64, arm, account->releases, account->tokens);
  if (statement->is_exact) {
    (void)fprintf(to, "  unprotected\n");
  } else {
    (void)fprintf(to, "  %10.6g  %10.6g  %10.6g\n", epsilon(account->spent_micro), epsilon(left(statement, account)),
                  epsilon(statement->epsilon_micro));
  }
}

void cv_launcher_statement_print(const struct cv_statement *statement, const struct cv_exposure *exposure, FILE *to) {
  struct words words;
  find_words(statement, &words);
  if (is_plan(statement)) {
    (void)fprintf(to, "plan \"%s\": %" PRIu32 " arms, mechanism %s, not submitted\n",
                  cv_text_shown(statement->name).text, statement->arms, statement->mechanism);
    print_most(statement, to);
  } else {
    (void)fprintf(to, "campaign %" PRIu64 " \"%s\": %s, mechanism %s\n", statement->campaign,
                  cv_text_shown(statement->name).text, cv_end_text(statement->end), statement->mechanism);
    if (statement->why[0] != '\0') {
      (void)fprintf(to, "why: %s\n", statement->why);
    }
    print_payments(statement, to);
    (void)fprintf(to, "%6s  %8s  %12s  %10s  %10s  %10s\n", "arm", "releases", "tokens", "spent", "left", "of");
  }
  uint64_t lost = 0;
  for (uint32_t i = 0; !is_plan(statement) && i < statement->arms; i++) {
    lost += statement->account[i].lost_micro;
    print_arm(statement, i, to);
  }
  if (lost > 0) {
    (void)fprintf(to, "%g of that was charged by a recovery, for releases that the broker has forgotten\n",
                  epsilon(lost));
  }
  for (size_t i = 0; i < words.lines; i++) {
    (void)fprintf(to, "%s\n", words.line[i]);
  }
  if (exposure != NULL) {
    cv_exposure_print(exposure, "Row level: ", to);
  }
}

/* ---- as CSV and JSON ---- */

void cv_launcher_statement_write_csv(const struct cv_statement *statement, FILE *to) {
  bool pays = statement->budget_micro > 0;
  (void)fprintf(to, "arm,releases,tokens,spent_micro,lost_micro,left_micro,limit_micro,protection%s\n",
                pays ? ",worker,hires,paid_micro" : "");
  for (uint32_t i = 0; i < statement->arms; i++) {
    const struct cv_account *account = &statement->account[i];
    (void)fprintf(to, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s", i,
                  account->releases, account->tokens, account->spent_micro, account->lost_micro,
                  left(statement, account), statement->epsilon_micro, protection(statement));
    if (pays) {
      (void)fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, account->worker, account->hires, account->paid_micro);
    }
    (void)fputc('\n', to);
  }
}

static json_t *accounts_json(const struct cv_statement *statement) {
  json_t *accounts = json_array();
  for (uint32_t i = 0; i < statement->arms; i++) {
    const struct cv_account *account = &statement->account[i];
    json_t *row =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "arm", (json_int_t)i, "releases", (json_int_t)account->releases,
                  "tokens", (json_int_t)account->tokens, "spent_micro", (json_int_t)account->spent_micro, "lost_micro",
                  (json_int_t)account->lost_micro, "left_micro", (json_int_t)left(statement, account));
    if (statement->budget_micro > 0) {
      row = cv_json_set(row, "worker", json_integer((json_int_t)account->worker));
      row = cv_json_set(row, "hires", json_integer((json_int_t)account->hires));
      row = cv_json_set(row, "paid_micro", json_integer((json_int_t)account->paid_micro));
    }
    accounts = cv_json_append(accounts, row);
  }
  return accounts;
}

/* null if workers are unprotected: no number would be right. */
static json_t *worker_json(const struct cv_statement *statement) {
  return statement->is_exact ? json_null() : json_integer((json_int_t)statement->worker_epsilon_micro);
}

enum cv_err cv_launcher_statement_write_json(const struct cv_statement *statement, const struct cv_exposure *exposure,
                                             FILE *to) {
  struct words words;
  find_words(statement, &words);
  json_t *guarantee = json_array();
  for (size_t i = 0; i < words.lines; i++) {
    guarantee = cv_json_append(guarantee, json_string(words.line[i]));
  }
  json_t *campaign = is_plan(statement) ? json_null() : json_integer((json_int_t)statement->campaign);
  json_t *all = json_pack(
      "{s:o, s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:f, s:I, s:I, s:o, s:I, s:I, s:o, s:o}", "campaign", campaign, "name",
      statement->name, "state", is_plan(statement) ? "planned" : cv_end_text(statement->end), "mechanism",
      statement->mechanism, "privatizer", statement->privatizer, "exact", statement->is_exact, "protection",
      protection(statement), "most_micro", (json_int_t)most_micro(statement), "delta",
      (double)statement->delta_pico / 1e12, "limit_micro", (json_int_t)statement->epsilon_micro, "tokens_per_worker",
      (json_int_t)statement->tokens_per_worker, "worker_micro", worker_json(statement), "worker_lifetime_micro",
      (json_int_t)statement->lifetime_epsilon_micro, "worker_floor_micro", (json_int_t)statement->floor_micro,
      "guarantee", guarantee, "arms", accounts_json(statement));
  all = cv_json_set(all, "release_tokens", json_integer((json_int_t)statement->release_tokens));
  all = cv_json_set(all, "why", statement->why[0] == '\0' ? json_null() : json_string(statement->why));
  if (statement->budget_micro > 0) {
    all = cv_json_set(all, "budget_micro", json_integer((json_int_t)statement->budget_micro));
  }
  if (exposure != NULL) {
    all = cv_json_set(all, "data", cv_exposure_json(exposure));
  }
  if (all == NULL) {
    return CV_ERR_NOMEM;
  }
  int status = json_dump_callback(all, cv_escape_json, to, JSON_COMPACT);
  json_decref(all);
  return status == 0 && fputc('\n', to) != EOF ? CV_OK : ferror(to) != 0 ? CV_ERR_IO : CV_ERR_NOMEM;
}
