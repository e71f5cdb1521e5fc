/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "common/base/result.h"
#include "common/base/split.h"
#include "common/base/text.h"

/* A spec with one broker is stored as it was before there could be two: its digest decides which campaign it is. */
enum { SPEC_ONE = 2, SPEC_TWO = 3 };
/* Flags of a stored spec: its optional lists and scale, whether its tokens compare pairs, and whether questions are
 * repeated. */
enum { HAS_NAMES = 1, HAS_COSTS = 2, HAS_WORKERS = 4, IS_PAIRS = 8, HAS_SCALE = 16, IS_REPEATED = 32, HAS_ALL = 63 };

void cv_spec_fini(struct cv_spec *spec) {
  if (spec == NULL) {
    return;
  }
  free(spec->names);
  free(spec->cost_micro);
  free(spec->worker);
  free(spec->edge);
  *spec = (struct cv_spec){0};
}

/* Stores a heap copy of `n` elements in *ret; leaves *ret unchanged if `from` is NULL. */
static enum cv_err copy_array(const void *from, size_t n, size_t size, void *ret) {
  if (from == NULL) {
    return CV_OK;
  }
  void *copy = calloc(n, size);
  if (copy == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(copy, from, n * size);
  memcpy(ret, &copy, sizeof(copy));
  return CV_OK;
}

static enum cv_err copy_arrays(const struct cv_spec *from, struct cv_spec *to) {
  CV_TRY(cv_names_copy(from->names, from->arms, &to->names));
  CV_TRY(copy_array(from->cost_micro, from->arms, sizeof(*from->cost_micro), &to->cost_micro));
  CV_TRY(copy_array(from->worker, from->arms, sizeof(*from->worker), &to->worker));
  return copy_array(from->edge, from->edges, sizeof(*from->edge), &to->edge);
}

enum cv_err cv_spec_copy(const struct cv_spec *from, struct cv_spec *ret_to) {
  struct cv_spec copy = *from;
  /* No pointer of the original may stay in the copy: cv_spec_fini() frees them after an error. */
  copy.names = NULL;
  copy.cost_micro = copy.worker = NULL;
  copy.edge = NULL;
  enum cv_err err = copy_arrays(from, &copy);
  if (err != CV_OK) {
    cv_spec_fini(&copy);
    return err;
  }
  *ret_to = copy;
  return CV_OK;
}

bool cv_scale_is_declared(const struct cv_scale *scale) {
  return scale->low < scale->high;
}

bool cv_scale_is_same(const struct cv_scale *a, const struct cv_scale *b) {
  return !(a->low < b->low) && !(a->low > b->low) && !(a->high < b->high) && !(a->high > b->high);
}

bool cv_name_is_valid(const char *text) {
  size_t n = strnlen(text, CV_NAME_BYTES);
  return n > 0 && n < CV_NAME_BYTES && cv_text_is_clean(text, n);
}

static int by_value(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

static enum cv_err check_workers(const struct cv_spec *spec, struct cv_why *why) {
  uint64_t *sorted = NULL;
  if (copy_array(spec->worker, spec->arms, sizeof(*sorted), &sorted) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  qsort(sorted, spec->arms, sizeof(*sorted), by_value);
  uint64_t twice = 0;
  bool zero = sorted[0] == 0;
  /* Sorted, equal ids are neighbours. */
  for (uint32_t i = 1; i < spec->arms; i++) {
    twice = sorted[i] == sorted[i - 1] ? sorted[i] : twice;
  }
  free(sorted);
  if (zero) {
    return cv_fail(why, CV_ERR_INVALID, "a worker has the id 0; expected 1 and up");
  }
  return twice == 0 ? CV_OK
                    : cv_fail(why, CV_ERR_INVALID, "worker %llu is listed twice; expected each worker once",
                              (unsigned long long)twice);
}

static enum cv_err check_recruitment(const struct cv_spec *spec, struct cv_why *why) {
  if (spec->cost_micro == NULL) {
    return spec->worker == NULL && spec->budget_micro == 0
               ? CV_OK
               : cv_fail(why, CV_ERR_INVALID, "workers or a budget without costs; expected all three or none");
  }
  if (spec->budget_micro == 0 || spec->budget_micro > CV_BUDGET_MAX_MICRO) {
    return cv_fail(why, CV_ERR_INVALID,
                   "the budget is %g; expected more than 0 and at most %g where workers have costs",
                   (double)spec->budget_micro / 1e6, (double)CV_BUDGET_MAX_MICRO / 1e6);
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    if (spec->cost_micro[i] == 0 || spec->cost_micro[i] > CV_COST_MAX_MICRO) {
      return cv_fail(why, CV_ERR_INVALID, "the cost of arm %u is %g; expected more than 0 and at most %g", i + 1,
                     (double)spec->cost_micro[i] / 1e6, (double)CV_COST_MAX_MICRO / 1e6);
    }
  }
  return spec->worker == NULL ? CV_OK : check_workers(spec, why);
}

static enum cv_err check_edges(const struct cv_spec *spec, struct cv_why *why) {
  if (spec->edges > CV_EDGES_MAX || (spec->edges > 0) != (spec->edge != NULL)) {
    return cv_fail(why, CV_ERR_INVALID, "%u edges; expected at most %d", spec->edges, CV_EDGES_MAX);
  }
  for (uint32_t i = 0; i < spec->edges; i++) {
    const struct cv_edge *edge = &spec->edge[i], *before = i == 0 ? NULL : &spec->edge[i - 1];
    if (edge->a >= edge->b || edge->b >= spec->arms) {
      return cv_fail(why, CV_ERR_INVALID, "edge %u-%u; expected two arms below %u, the lower one first", edge->a,
                     edge->b, spec->arms);
    }
    /* One form per graph: equal graphs have equal digests. */
    if (before != NULL && (before->a > edge->a || (before->a == edge->a && before->b >= edge->b))) {
      return cv_fail(why, CV_ERR_INVALID, "edge %u-%u after %u-%u; expected each once, in ascending order", edge->a,
                     edge->b, before->a, before->b);
    }
  }
  return CV_OK;
}

/* Each of these gives a token another meaning; two at once have none. */
static enum cv_err check_pairs(const struct cv_spec *spec, struct cv_why *why) {
  if (!spec->pairs) {
    return CV_OK;
  }
  if (spec->arms < 2) {
    return cv_fail(why, CV_ERR_INVALID, "a campaign of pairs has 1 arm; expected at least 2");
  }
  if (spec->edges > 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "a campaign of pairs has a feedback graph; expected none: an answer about two arms counts for one");
  }
  return spec->cost_micro == NULL
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "a campaign of pairs hires workers; expected no costs: workers are not compared with each other");
}

static enum cv_err check_scale(const struct cv_scale *scale, struct cv_why *why) {
  static const struct cv_scale none = {0};
  bool is_range = isfinite(scale->low) && isfinite(scale->high) && cv_scale_is_declared(scale);
  return is_range || cv_scale_is_same(scale, &none)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "the scale is [%g, %g]; expected two numbers, the lower one first",
                       scale->low, scale->high);
}

enum cv_err cv_spec_check(const struct cv_spec *spec, struct cv_why *why) {
  if (!cv_name_is_valid(spec->name)) {
    return cv_fail(why, CV_ERR_INVALID, "the campaign's name is empty, too long or not printable UTF-8");
  }
  if (spec->arms < 1 || spec->arms > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "%u arms; expected 1 to %d", spec->arms, CV_ARMS_MAX);
  }
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    if (!cv_name_is_item(spec->names[i])) {
      return cv_fail(why, CV_ERR_INVALID, "the name of arm %u is empty, too long or not printable UTF-8", i + 1);
    }
  }
  if (spec->epsilon_micro == 0 && cv_spec_has_noise(spec)) {
    return cv_fail(why, CV_ERR_INVALID, "epsilon is 0; expected more than 0 with mechanism %s", spec->mechanism.name);
  }
  if (spec->tokens_per_worker == 0) {
    return cv_fail(why, CV_ERR_INVALID, "tokens_per_worker is 0; expected at least 1");
  }
  if (spec->tokens == 0) {
    return cv_fail(why, CV_ERR_INVALID, "the limit of tokens is 0; expected at least 1");
  }
  CV_TRY(check_recruitment(spec, why));
  CV_TRY(check_edges(spec, why));
  CV_TRY(check_pairs(spec, why));
  CV_TRY(check_scale(&spec->scale, why));
  return cv_split_check(spec, why);
}

uint64_t cv_spec_all_questions(uint64_t items, bool pairs) {
  return pairs ? items * (items - 1) / 2 : items;
}

uint64_t cv_spec_questions(const struct cv_spec *spec, uint32_t golds) {
  uint64_t items = (uint64_t)spec->arms + golds;
  bool is_once = !spec->repeat && spec->cost_micro == NULL && spec->tokens_per_worker > 1;
  return is_once ? cv_spec_all_questions(items, spec->pairs) : 0;
}

enum cv_err cv_spec_check_questions(const struct cv_spec *spec, uint32_t golds, struct cv_why *why) {
  uint64_t questions = cv_spec_questions(spec, golds);
  if (questions == 0 && (spec->repeat || spec->cost_micro != NULL || spec->tokens_per_worker == 1)) {
    return CV_OK;
  }
  /* With gold items no question is repeated (gold.h). */
  const char *or_repeat = golds > 0 ? "" : ", or repeat: true if a worker's scores are drawn afresh each time";
  if (spec->edges > 0) {
    return cv_fail(why, CV_ERR_INVALID, "tokens_per_worker is %u with a graph, which shows items again; expected 1%s",
                   spec->tokens_per_worker, or_repeat);
  }
  return spec->tokens_per_worker <= questions
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "tokens_per_worker is %u, but each of %llu %s is asked of a worker once; expected at most %llu%s",
                   spec->tokens_per_worker, (unsigned long long)questions, spec->pairs ? "pairs" : "items",
                   (unsigned long long)questions, or_repeat);
}

bool cv_spec_has_noise(const struct cv_spec *spec) {
  return cv_traits_of(spec->mechanism.name)->noise != CV_NOISE_NONE;
}

bool cv_choices_are_exact(const struct cv_choice *mechanism, const struct cv_choice *privatizer) {
  return cv_traits_of(mechanism->name)->noise == CV_NOISE_NONE && cv_local_find(privatizer->name) == CV_LOCAL_NONE;
}

bool cv_spec_is_exact(const struct cv_spec *spec) {
  return cv_choices_are_exact(&spec->mechanism, &spec->privatizer);
}

bool cv_spec_is_local(const struct cv_spec *spec) {
  return cv_local_find(spec->privatizer.name) != CV_LOCAL_NONE;
}

static void put_text(struct cv_buf *out, const char *text) {
  cv_buf_put_bytes(out, text, strlen(text));
}

static void put_choice(struct cv_buf *out, const struct cv_choice *choice) {
  put_text(out, choice->name);
  cv_buf_put_u32(out, choice->params.count);
  for (uint32_t i = 0; i < choice->params.count; i++) {
    const struct cv_param *param = &choice->params.item[i];
    put_text(out, param->key);
    cv_buf_put_u8(out, param->is_text);
    if (param->is_text) {
      put_text(out, param->text);
    } else {
      cv_buf_put_f64(out, param->number);
    }
  }
}

static void put_numbers(struct cv_buf *out, const uint64_t *number, uint32_t n) {
  for (uint32_t i = 0; number != NULL && i < n; i++) {
    cv_buf_put_u64(out, number[i]);
  }
}

void cv_spec_encode(const struct cv_spec *spec, struct cv_buf *out) {
  /* Stored in both databases, and hashed: the digest decides whether two specs are the same campaign. */
  cv_buf_put_u8(out, spec->brokers == 0 ? SPEC_ONE : SPEC_TWO);
  put_text(out, spec->name);
  cv_buf_put_u32(out, spec->arms);
  cv_buf_put_u8(out,
                (uint8_t)((spec->names != NULL ? HAS_NAMES : 0) | (spec->cost_micro != NULL ? HAS_COSTS : 0) |
                          (spec->worker != NULL ? HAS_WORKERS : 0) | (spec->pairs ? IS_PAIRS : 0) |
                          (cv_scale_is_declared(&spec->scale) ? HAS_SCALE : 0) | (spec->repeat ? IS_REPEATED : 0)));
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    put_text(out, spec->names[i]);
  }
  put_numbers(out, spec->cost_micro, spec->arms);
  put_numbers(out, spec->worker, spec->arms);
  cv_buf_put_u64(out, spec->budget_micro);
  cv_buf_put_u32(out, spec->edges);
  for (uint32_t i = 0; i < spec->edges; i++) {
    cv_buf_put_u32(out, spec->edge[i].a);
    cv_buf_put_u32(out, spec->edge[i].b);
  }
  if (cv_scale_is_declared(&spec->scale)) {
    cv_buf_put_f64(out, spec->scale.low);
    cv_buf_put_f64(out, spec->scale.high);
  }
  put_choice(out, &spec->policy);
  put_choice(out, &spec->mechanism);
  put_choice(out, &spec->privatizer);
  cv_buf_put_u64(out, spec->epsilon_micro);
  cv_buf_put_u32(out, spec->tokens_per_worker);
  cv_buf_put_u8(out, spec->thirdparty_trusted);
  cv_buf_put_u64(out, spec->tokens);
  cv_buf_put_u64(out, spec->deadline_ms);
  cv_buf_put_u64(out, spec->idle_ms);
  if (spec->brokers != 0) {
    cv_buf_put_u32(out, spec->brokers);
    cv_buf_put_u32(out, spec->score_bits);
  }
}

static void read_choice(struct cv_reader *in, struct cv_choice *choice) {
  cv_read_text(in, choice->name, sizeof(choice->name));
  uint32_t count = cv_read_u32(in);
  if (count > CV_PARAMS_MAX) {
    in->failed = true;
    return;
  }
  choice->params.count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct cv_param *param = &choice->params.item[i];
    cv_read_text(in, param->key, sizeof(param->key));
    param->is_text = cv_read_u8(in) != 0;
    if (param->is_text) {
      cv_read_text(in, param->text, sizeof(param->text));
    } else {
      param->number = cv_read_f64(in);
    }
  }
}

static enum cv_err read_names(struct cv_reader *in, struct cv_spec *spec) {
  struct cv_names names = {0};
  char text[CV_ITEM_BYTES] = "";
  for (uint32_t i = 0; i < spec->arms && !in->failed; i++) {
    cv_read_text(in, text, sizeof(text));
    cv_names_add(&names, text);
  }
  enum cv_err err = in->failed ? CV_ERR_FORMAT : cv_names_take(&names, &spec->names);
  cv_names_fini(&names);
  return err;
}

static enum cv_err read_numbers(struct cv_reader *in, uint32_t n, uint64_t **ret) {
  *ret = calloc(n, sizeof(**ret));
  if (*ret == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < n; i++) {
    (*ret)[i] = cv_read_u64(in);
  }
  return CV_OK;
}

static enum cv_err read_edges(struct cv_reader *in, struct cv_spec *spec) {
  uint32_t edges = cv_read_u32(in);
  if (in->failed || edges > CV_EDGES_MAX) {
    return CV_ERR_FORMAT;
  }
  spec->edge = edges == 0 ? NULL : calloc(edges, sizeof(*spec->edge));
  if (edges > 0 && spec->edge == NULL) {
    return CV_ERR_NOMEM;
  }
  spec->edges = edges;
  for (uint32_t i = 0; i < edges; i++) {
    spec->edge[i].a = cv_read_u32(in);
    spec->edge[i].b = cv_read_u32(in);
  }
  return CV_OK;
}

static enum cv_err read_scale(struct cv_reader *in, struct cv_scale *ret) {
  *ret = (struct cv_scale){.low = cv_read_f64(in)};
  ret->high = cv_read_f64(in);
  return in->failed || !cv_scale_is_declared(ret) ? CV_ERR_FORMAT : CV_OK;
}

/* Reads the optional parts that the flags announce. */
static enum cv_err read_lists(struct cv_reader *in, struct cv_spec *spec) {
  uint8_t has = cv_read_u8(in);
  /* Unknown flags announce lists that this version cannot skip. */
  if (in->failed || has > HAS_ALL || (has != 0 && spec->arms == 0)) {
    return CV_ERR_FORMAT;
  }
  spec->pairs = (has & IS_PAIRS) != 0;
  spec->repeat = (has & IS_REPEATED) != 0;
  if ((has & HAS_NAMES) != 0) {
    CV_TRY(read_names(in, spec));
  }
  if ((has & HAS_COSTS) != 0) {
    CV_TRY(read_numbers(in, spec->arms, &spec->cost_micro));
  }
  if ((has & HAS_WORKERS) != 0) {
    CV_TRY(read_numbers(in, spec->arms, &spec->worker));
  }
  spec->budget_micro = cv_read_u64(in);
  CV_TRY(read_edges(in, spec));
  return (has & HAS_SCALE) == 0 ? CV_OK : read_scale(in, &spec->scale);
}

static void read_brokers(struct cv_reader *in, struct cv_spec *spec) {
  spec->brokers = cv_read_u32(in);
  spec->score_bits = cv_read_u32(in);
  in->failed = in->failed || spec->brokers == 0;
}

static enum cv_err read_spec(struct cv_reader *in, struct cv_spec *spec) {
  uint8_t version = cv_read_u8(in);
  if (version != SPEC_ONE && version != SPEC_TWO) {
    return CV_ERR_VERSION;
  }
  cv_read_text(in, spec->name, sizeof(spec->name));
  spec->arms = cv_read_u32(in);
  /* Check the count before allocating lists of that length. */
  if (in->failed || spec->arms > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  CV_TRY(read_lists(in, spec));
  read_choice(in, &spec->policy);
  read_choice(in, &spec->mechanism);
  read_choice(in, &spec->privatizer);
  spec->epsilon_micro = cv_read_u64(in);
  spec->tokens_per_worker = cv_read_u32(in);
  spec->thirdparty_trusted = cv_read_u8(in) != 0;
  spec->tokens = cv_read_u64(in);
  spec->deadline_ms = cv_read_u64(in);
  spec->idle_ms = cv_read_u64(in);
  if (version == SPEC_TWO) {
    read_brokers(in, spec);
  }
  return in->failed ? CV_ERR_FORMAT : CV_OK;
}

enum cv_err cv_spec_decode(struct cv_reader *in, struct cv_spec *ret_spec) {
  struct cv_spec spec = {0};
  enum cv_err err = read_spec(in, &spec);
  if (err != CV_OK) {
    cv_spec_fini(&spec);
    return err;
  }
  *ret_spec = spec;
  return CV_OK;
}

uint32_t cv_spec_shown_most(const struct cv_spec *spec) {
  if (spec->edges == 0) {
    return 1;
  }
  uint16_t degree[CV_ARMS_MAX] = {0}, most = 0;
  for (uint32_t i = 0; i < spec->edges && most < UINT16_MAX; i++) {
    uint16_t a = ++degree[spec->edge[i].a], b = ++degree[spec->edge[i].b];
    most = a > most ? a : most;
    most = b > most ? b : most;
  }
  return most + 1U;
}

uint32_t cv_spec_release_tokens(const struct cv_spec *spec) {
  const struct cv_param *param = cv_params_find(&spec->policy.params, CV_RELEASE_TOKENS_KEY);
  if (param == NULL || param->is_text || !(param->number >= 1)) {
    return 1;
  }
  return param->number < CV_PLAN_TOKENS_MAX ? (uint32_t)param->number : CV_PLAN_TOKENS_MAX;
}

enum cv_err cv_spec_raise_release_tokens(struct cv_spec *spec, uint32_t least) {
  return least <= cv_spec_release_tokens(spec)
             ? CV_OK
             : cv_params_set_number(&spec->policy.params, CV_RELEASE_TOKENS_KEY, least);
}

uint64_t cv_spec_hires(const struct cv_spec *spec) {
  uint64_t most = 0;
  for (uint32_t i = 0; spec->cost_micro != NULL && i < spec->arms; i++) {
    uint64_t hires = spec->budget_micro / spec->cost_micro[i];
    most = hires > most ? hires : most;
  }
  return most;
}

uint64_t cv_spec_worker_micro(const struct cv_spec *spec, uint64_t token_micro) {
  /* The larger of both, for the worst case of one worker: that is what its account is checked against. */
  uint64_t tokens = spec->tokens_per_worker, hires = cv_spec_hires(spec), most;
  tokens = hires > tokens ? hires : tokens;
  bool over = __builtin_mul_overflow(token_micro, tokens, &most) ||
              __builtin_mul_overflow(most, cv_spec_shown_most(spec), &most);
  return over ? UINT64_MAX : most;
}
