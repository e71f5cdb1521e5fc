/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Prio3Count and Prio3Sum: every operation is done again, in the file's order. */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/prio/aggregate.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "tests/vectors/vector.h"

enum { LEADER_END = 8 * 320, HELPERS_END = 255 * CV_PRIO_SEED_BYTES, VERIFIER_END = 4, ROUNDS = 1 };

struct replay {
  struct cv_prio prio;
  const json_t *root, *reports;
  struct cv_buf ctx, key;
  bool plain; /* the key has its length, and there is no aggregation parameter */
  struct state {
    bool known;
    uint64_t output;
  } * state; /* of each report and aggregator, from verify_init to verify_next */
  struct cv_why *why;
};

/* What became of an operation. */
enum step {
  DONE,
  REFUSED, /* by the code, or its input cannot be decoded; replay.why may say more */
  WRONG,   /* its output differs, or the file lacks what it needs: see replay.why */
};

/* One operation. `checks` says whether its output is compared: that of one that has to fail is not in the file. */
struct operation {
  const json_t *report; /* NULL without report_index */
  size_t report_index, aggregator;
  int64_t round;
  bool has_aggregator, checks;
};

static enum step compared(bool same) {
  return same ? DONE : WRONG;
}

static enum step lacks(struct replay *r, const char *what) {
  cv_why_set(r->why, "%s: missing; expected one", what);
  return WRONG;
}

static const json_t *of_aggregator(const json_t *of, const char *list, const struct operation *op) {
  return json_array_get(json_object_get(of, list), op->aggregator);
}

/* The bytes of a report's member. */
static bool report_hex(struct replay *r, const struct operation *op, const char *name, struct cv_buf *ret) {
  return vector_hex(json_object_get(op->report, name), name, ret, r->why);
}

static enum step compare_shares(struct replay *r, const struct operation *op, const uint8_t *leader,
                                const uint8_t *helpers) {
  const json_t *shares = json_object_get(op->report, "input_shares");
  if (!vector_same(json_object_get(op->report, "public_share"), "public_share", NULL, 0, r->why)) {
    return WRONG;
  }
  if (json_array_size(shares) != r->prio.shares) {
    cv_why_set(r->why, "input_shares: %zu; expected %u", json_array_size(shares), r->prio.shares);
    return WRONG;
  }
  for (size_t i = 0; i < r->prio.shares; i++) {
    const uint8_t *share = i == 0 ? leader : helpers + CV_PRIO_SEED_BYTES * (i - 1);
    size_t n = i == 0 ? r->prio.leader_bytes : CV_PRIO_SEED_BYTES;
    if (!vector_same(json_array_get(shares, i), "input_shares", share, n, r->why)) {
      return WRONG;
    }
  }
  return DONE;
}

static enum step do_shard(struct replay *r, const struct operation *op) {
  struct cv_buf nonce = {0}, rand = {0};
  enum step step = REFUSED;
  uint64_t measurement = 0;
  uint8_t leader[LEADER_END], helpers[HELPERS_END];
  if (op->report == NULL) {
    return lacks(r, "report_index");
  }
  if (report_hex(r, op, "nonce", &nonce) && report_hex(r, op, "rand", &rand) &&
      vector_number(json_object_get(op->report, "measurement"), "measurement", &measurement, r->why)) {
    if (measurement <= r->prio.max && nonce.len == CV_PRIO_NONCE_BYTES && rand.len == r->prio.rand_bytes &&
        r->ctx.len <= CV_PRIO_CONTEXT_BYTES) {
      cv_prio_shard(&r->prio, r->ctx.data, r->ctx.len, measurement, nonce.data, rand.data, leader, helpers);
      step = op->checks ? compare_shares(r, op, leader, helpers) : DONE;
    }
  }
  cv_buf_fini(&nonce);
  cv_buf_fini(&rand);
  return step;
}

static bool verify(struct replay *r, const struct operation *op, const struct cv_buf *nonce, const struct cv_buf *share,
                   uint64_t *ret_verifier, uint64_t *ret_output) {
  if (nonce->len != CV_PRIO_NONCE_BYTES || !r->plain || r->ctx.len > CV_PRIO_CONTEXT_BYTES) {
    return false;
  }
  if (op->aggregator == 0) {
    return cv_prio_verify_leader(&r->prio, r->key.data, r->ctx.data, r->ctx.len, nonce->data, share->data, share->len,
                                 ret_verifier, ret_output);
  }
  return share->len == CV_PRIO_SEED_BYTES &&
         cv_prio_verify_helper_of(&r->prio, (unsigned)op->aggregator, r->key.data, r->ctx.data, r->ctx.len, nonce->data,
                                  share->data, ret_verifier, ret_output);
}

static enum step do_verify_init(struct replay *r, const struct operation *op) {
  struct cv_buf nonce = {0}, share = {0}, public = {0};
  enum step step = REFUSED;
  uint64_t verifier[VERIFIER_END], output = 0;
  if (op->report == NULL || !op->has_aggregator) {
    return lacks(r, "report_index or aggregator_id");
  }
  struct state *state = &r->state[op->report_index * r->prio.shares + op->aggregator];
  if (report_hex(r, op, "nonce", &nonce) && report_hex(r, op, "public_share", &public) &&
      vector_hex(of_aggregator(op->report, "input_shares", op), "input_shares", &share, r->why)) {
    if (public.len == 0 && verify(r, op, &nonce, &share, verifier, &output)) {
      uint8_t bytes[VERIFIER_END * CV_FIELD_BYTES];
      const json_t *expected = json_array_get(json_object_get(op->report, "verifier_shares"), 0);
      *state = (struct state){.known = true, .output = output};
      cv_field_encode(verifier, r->prio.verifier_elements, bytes);
      step = compared(!op->checks || vector_same(json_array_get(expected, op->aggregator), "verifier_shares", bytes,
                                                 r->prio.verifier_bytes, r->why));
    }
  }
  cv_buf_fini(&nonce);
  cv_buf_fini(&share);
  cv_buf_fini(&public);
  return step;
}

/* Adds an encoded vector of elements; REFUSED if it is not one of `n` elements. */
static enum step add(struct replay *r, const json_t *value, const char *name, size_t n, uint64_t *sum) {
  struct cv_buf bytes = {0};
  uint64_t element[VERIFIER_END];
  bool decoded = vector_hex(value, name, &bytes, r->why) && bytes.len == n * CV_FIELD_BYTES &&
                 cv_field_decode(bytes.data, n, element);
  for (size_t i = 0; decoded && i < n; i++) {
    sum[i] = cv_field_add(sum[i], element[i]);
  }
  cv_buf_fini(&bytes);
  return decoded ? DONE : REFUSED;
}

/* The sum over all aggregators' entries of a list. */
static enum step add_all(struct replay *r, const json_t *list, const char *name, size_t n, uint64_t *sum) {
  if (json_array_size(list) != r->prio.shares) {
    cv_why_set(r->why, "%s: %zu; expected %u", name, json_array_size(list), r->prio.shares);
    return REFUSED;
  }
  enum step step = DONE;
  for (size_t i = 0; step == DONE && i < r->prio.shares; i++) {
    step = add(r, json_array_get(list, i), name, n, sum);
  }
  return step;
}

static enum step do_verifier_shares_to_message(struct replay *r, const struct operation *op) {
  uint64_t sum[VERIFIER_END] = {0};
  if (op->report == NULL) {
    return lacks(r, "report_index");
  }
  if (op->round != 0) {
    return REFUSED;
  }
  const json_t *shares = json_array_get(json_object_get(op->report, "verifier_shares"), 0);
  enum step step = add_all(r, shares, "verifier_shares", r->prio.verifier_elements, sum);
  if (step != DONE) {
    return step;
  }
  if (!cv_prio_decides(&r->prio, sum)) {
    return REFUSED;
  }
  const json_t *message = json_array_get(json_object_get(op->report, "verifier_messages"), 0);
  return compared(!op->checks || vector_same(message, "verifier_messages", NULL, 0, r->why));
}

static enum step do_verify_next(struct replay *r, const struct operation *op) {
  struct cv_buf message = {0};
  uint8_t bytes[CV_FIELD_BYTES];
  if (op->report == NULL || !op->has_aggregator) {
    return lacks(r, "report_index or aggregator_id");
  }
  const struct state *state = &r->state[op->report_index * r->prio.shares + op->aggregator];
  if (!state->known) {
    return lacks(r, "verify_init of this report and aggregator");
  }
  if (op->round != ROUNDS) {
    return REFUSED;
  }
  const json_t *messages = json_object_get(op->report, "verifier_messages");
  bool decoded = vector_hex(json_array_get(messages, 0), "verifier_messages", &message, r->why) && message.len == 0;
  cv_buf_fini(&message);
  if (!decoded) {
    return REFUSED;
  }
  cv_field_encode(&state->output, 1, bytes);
  return compared(!op->checks ||
                  vector_same(of_aggregator(op->report, "out_shares", op), "out_shares", bytes, sizeof(bytes), r->why));
}

/* Of the reports that have output shares; a refused one has none. */
static enum step do_aggregate(struct replay *r, const struct operation *op) {
  uint64_t sum = 0;
  uint8_t bytes[CV_PRIO_AGGREGATE_BYTES];
  size_t index;
  json_t *report;
  if (!op->has_aggregator) {
    return lacks(r, "aggregator_id");
  }
  json_array_foreach((json_t *)(uintptr_t)r->reports, index, report) {
    if (json_array_size(json_object_get(report, "out_shares")) > 0) {
      enum step step = add(r, of_aggregator(report, "out_shares", op), "out_shares", 1, &sum);
      if (step != DONE) {
        return step;
      }
    }
  }
  cv_prio_aggregate_encode(sum, bytes);
  return compared(!op->checks ||
                  vector_same(of_aggregator(r->root, "agg_shares", op), "agg_shares", bytes, sizeof(bytes), r->why));
}

static enum step do_unshard(struct replay *r, const struct operation *op) {
  uint64_t sum = 0, expected = 0;
  enum step step = add_all(r, json_object_get(r->root, "agg_shares"), "agg_shares", 1, &sum);
  if (step != DONE || !op->checks) {
    return step;
  }
  if (!vector_number(json_object_get(r->root, "agg_result"), "agg_result", &expected, r->why)) {
    return WRONG;
  }
  if (sum != expected) {
    cv_why_set(r->why, "agg_result: %llu; expected the file's %llu", (unsigned long long)sum,
               (unsigned long long)expected);
    return WRONG;
  }
  return DONE;
}

static const struct {
  const char *name;
  enum step (*run)(struct replay *r, const struct operation *op);
} operations[] = {
    {"shard", do_shard},
    {"verify_init", do_verify_init},
    {"verifier_shares_to_message", do_verifier_shares_to_message},
    {"verify_next", do_verify_next},
    {"aggregate", do_aggregate},
    {"unshard", do_unshard},
};

static bool read_index(struct replay *r, const json_t *of, const char *name, size_t n, size_t *ret, bool *ret_has) {
  const json_t *value = json_object_get(of, name);
  uint64_t index = 0;
  *ret_has = value != NULL;
  if (value == NULL) {
    return true;
  }
  if (!vector_number(value, name, &index, r->why)) {
    return false;
  }
  if (index >= n) {
    cv_why_set(r->why, "%s: %llu; expected a number below %zu", name, (unsigned long long)index, n);
    return false;
  }
  *ret = (size_t)index;
  return true;
}

static bool read_operation(struct replay *r, const json_t *of, struct operation *ret) {
  bool has_report = false;
  *ret = (struct operation){.round = json_integer_value(json_object_get(of, "round"))};
  if (!read_index(r, of, "report_index", json_array_size(r->reports), &ret->report_index, &has_report) ||
      !read_index(r, of, "aggregator_id", r->prio.shares, &ret->aggregator, &ret->has_aggregator)) {
    return false;
  }
  ret->report = has_report ? json_array_get(r->reports, ret->report_index) : NULL;
  const json_t *success = json_object_get(of, "success");
  if (!json_is_boolean(success)) {
    cv_why_set(r->why, "success: missing or malformed; expected true or false");
    return false;
  }
  ret->checks = json_is_true(success);
  return true;
}

static bool as_expected(struct replay *r, bool done, bool expected) {
  if (done && !expected) {
    cv_why_set(r->why, "succeeds; expected that it fails");
  } else if (!done && expected && r->why->text[0] == '\0') {
    cv_why_set(r->why, "fails; expected success");
  }
  return done == expected;
}

/* True if the operation ended as the file says. */
static bool do_operation(struct replay *r, const json_t *of, const char *name) {
  struct operation op;
  for (size_t i = 0; i < CV_COUNT(operations); i++) {
    if (strcmp(name, operations[i].name) == 0) {
      if (!read_operation(r, of, &op)) {
        return false;
      }
      r->why->text[0] = '\0';
      enum step step = operations[i].run(r, &op);
      return step != WRONG && as_expected(r, step == DONE, op.checks);
    }
  }
  cv_why_set(r->why,
             "is not known; expected shard, verify_init, verifier_shares_to_message, verify_next, aggregate or "
             "unshard");
  return false;
}

static enum outcome do_operations(struct replay *r) {
  json_t *list = json_object_get(r->root, "operations"), *of;
  size_t index;
  if (json_array_size(list) == 0) {
    return cv_fail(r->why, FAILED, "operations: missing or empty; expected a list");
  }
  json_array_foreach(list, index, of) {
    const char *name = json_string_value(json_object_get(of, "operation"));
    if (!do_operation(r, of, name != NULL ? name : "")) {
      cv_why_prefix(r->why, "operations[%zu], %s", index, cv_text_quote(name != NULL ? name : "").text);
      return FAILED;
    }
  }
  return PASSED;
}

/* --- which instance a file is of */

/* Whether a file's name begins with this algorithm's. */
static bool is_named(const char *name, const char *algorithm) {
  char next = strncmp(name, algorithm, strlen(algorithm)) == 0 ? name[strlen(algorithm)] : 'x';
  return next == '_' || next == '.' || next == '-';
}

/* By the file's name; a name that begins otherwise than the draft's leaves it to the parameters. */
static bool find_circuit(const char *name, const json_t *root, enum cv_prio_circuit *ret) {
  static const char *const classes[] = {"Prio3", "Poplar", "Idpf", "Xof"};
  bool is_class = false;
  for (size_t i = 0; i < CV_COUNT(classes); i++) {
    is_class |= strncmp(name, classes[i], strlen(classes[i])) == 0;
  }
  bool has_max = json_object_get(root, "max_measurement") != NULL,
       has_reports = json_object_get(root, "reports") != NULL;
  bool sum = is_class ? is_named(name, "Prio3Sum") : has_max && has_reports;
  *ret = sum ? CV_PRIO_SUM : CV_PRIO_COUNT;
  return sum || (is_class ? is_named(name, "Prio3Count") : has_reports);
}

/* True if the file has no parameters of another algorithm. */
static bool knows_members(const json_t *root, bool sum, struct cv_why *why) {
  static const char *const known[] = {"agg_param", "agg_result", "agg_shares",     "ctx", "operations", "reports",
                                      "shares",    "verify_key", "max_measurement"};
  size_t n = CV_COUNT(known) - (sum ? 0 : 1);
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)root, key, value) {
    size_t i = 0;
    while (i < n && strcmp(key, known[i]) != 0) {
      i++;
    }
    if (i == n) {
      cv_why_set(why, "has %s, which is not of %s; expected no other parameters", cv_text_quote(key).text,
                 sum ? "Prio3Sum" : "Prio3Count");
      return false;
    }
  }
  return true;
}

static enum outcome read_instance(const char *name, const json_t *root, struct cv_prio *ret, struct cv_why *why) {
  enum cv_prio_circuit circuit;
  uint64_t max = 1, shares = 0;
  if (!find_circuit(name, root, &circuit)) {
    return cv_fail(why, SKIPPED,
                   "is not of an algorithm of this project; expected Prio3Count, Prio3Sum or "
                   "XofTurboShake128 at the beginning of the file's name");
  }
  bool sum = circuit == CV_PRIO_SUM;
  if (!knows_members(root, sum, why)) {
    return SKIPPED;
  }
  if (!vector_number(json_object_get(root, "shares"), "shares", &shares, why) ||
      (sum && !vector_number(json_object_get(root, "max_measurement"), "max_measurement", &max, why))) {
    return FAILED;
  }
  if (shares > UINT8_MAX || cv_prio_init_shares(ret, circuit, max, (unsigned)shares) != CV_OK) {
    return cv_fail(why, SKIPPED,
                   "has %llu shares and measurements up to %llu; expected 2 to 255 shares, and 1 to p - 1",
                   (unsigned long long)shares, (unsigned long long)max);
  }
  return PASSED;
}

static enum outcome replay_with(struct replay *r) {
  struct cv_buf agg_param = {0};
  r->reports = json_object_get(r->root, "reports");
  bool read = vector_hex(json_object_get(r->root, "ctx"), "ctx", &r->ctx, r->why) &&
              vector_hex(json_object_get(r->root, "verify_key"), "verify_key", &r->key, r->why) &&
              vector_hex(json_object_get(r->root, "agg_param"), "agg_param", &agg_param, r->why);
  r->plain = agg_param.len == 0 && r->key.len == CV_PRIO_SEED_BYTES;
  cv_buf_fini(&agg_param);
  if (!read) {
    return FAILED;
  }
  r->state = calloc(json_array_size(r->reports) * r->prio.shares + 1, sizeof(*r->state));
  CV_REQUIRE(r->state != NULL);
  return do_operations(r);
}

enum outcome vector_replay_prio(const char *name, json_t *root, struct cv_why *why) {
  struct replay r = {.root = root, .why = why};
  enum outcome outcome = read_instance(name, root, &r.prio, why);
  if (outcome == PASSED) {
    outcome = replay_with(&r);
  }
  cv_buf_fini(&r.ctx);
  cv_buf_fini(&r.key);
  free(r.state);
  return outcome;
}
