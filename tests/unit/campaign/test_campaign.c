/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/complete.h"

#include <math.h>

#include "tests/unit/config/file.h"

static void load(const char *text, struct cv_campaign_file *ret) {
  struct cv_why why = {0};
  enum cv_err err = cv_campaign_load(write_text(text), ret, &why);
  if (err != CV_OK) {
    print_error("%s\n", why.text);
  }
  assert_int_equal(err, CV_OK);
}

static void assert_number(const struct cv_params *params, const char *key, double want) {
  const struct cv_param *param = cv_params_find(params, key);
  assert_non_null(param);
  assert_false(param->is_text);
  assert_true(param->number == want);
}

static void a_csv_campaign(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: fashion\n"
      "items:   {source: csv, path: men.csv, item: item_id, score: propensity_score}\n"
      "policy:  {name: ppar, alpha: 0.1, delta: 0.1, tokens_per_round: 6000, radius: sound, settled: hold}\n"
      "privacy: {mechanism: hybrid, epsilon: 0.25, privatizer: {name: none}, tokens_per_worker: 1}\n"
      "limits:  {tokens: 50000000, deadline: 1h, idle: 30s}\n",
      &file);
  assert_string_equal(file.spec.name, "fashion");
  assert_string_equal(file.path, folder_file(&folder, "file.yaml"));
  assert_int_equal(file.spec.arms, 0);
  assert_int_equal(file.items.source, CV_SOURCE_CSV);
  assert_string_equal(file.items.csv.file, folder_file(&folder, "men.csv"));
  assert_string_equal(file.items.csv.item_column, "item_id");
  assert_string_equal(file.items.csv.score_column, "propensity_score");
  assert_int_equal(file.items.csv.delimiter, ',');
  assert_false(cv_scale_is_declared(&file.items.csv.scale));
  assert_false(file.items.csv.replacement);
  assert_int_equal(file.items.line, 2);
  assert_int_equal(file.items.csv.score_line, 2);
  assert_int_equal(file.policy_line, 3);
  assert_int_equal(file.privacy_line, 4);
  assert_string_equal(file.spec.policy.name, "ppar");
  assert_int_equal(file.spec.policy.params.count, 5);
  assert_number(&file.spec.policy.params, "alpha", 0.1);
  assert_number(&file.spec.policy.params, "tokens_per_round", 6000);
  assert_string_equal(cv_params_text(&file.spec.policy.params, "radius"), "sound");
  assert_int_equal(cv_params_find(&file.spec.policy.params, "alpha")->line, 3);
  assert_int_equal(cv_params_find(&file.spec.policy.params, "alpha")->column, 30);
  assert_string_equal(file.spec.mechanism.name, "hybrid");
  assert_string_equal(file.spec.privatizer.name, "none");
  assert_int_equal(file.spec.epsilon_micro, 250000);
  assert_int_equal(file.spec.tokens, 50000000);
  assert_int_equal(file.spec.deadline_ms, 3600000);
  assert_int_equal(file.spec.idle_ms, 30000);
  assert_int_equal(file.spec.tokens_per_worker, 1);
  assert_false(file.spec.thirdparty_trusted);
  cv_campaign_fini(&file);
}

static void a_privatizer_may_have_a_list_for_the_arms(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: a\n"
      "items: {list: [{mean: 0.9, name: a}, {mean: 0.6, name: b}]}\n"
      "policy: ppar\n"
      "privacy: {epsilon: 1, privatizer: {name: randomized-response, p00: [0.6, 0.9], p11: [0.7, 0.8]}}\n",
      &file);
  static const struct {
    const char *key;
    double value;
  } expected[] = {{"p00.1", 0.6}, {"p00.2", 0.9}, {"p11.1", 0.7}, {"p11.2", 0.8}};
  assert_int_equal(file.spec.privatizer.params.count, CV_COUNT(expected));
  for (size_t i = 0; i < CV_COUNT(expected); i++) {
    assert_number(&file.spec.privatizer.params, expected[i].key, expected[i].value);
  }
  cv_campaign_fini(&file);
}

static void other_data_files_in_full(void **state) {
  struct cv_campaign_file file;
#define REST "policy: ppar\nprivacy: {epsilon: 1}\n"
  load(
      "campaign: a\nitems: {source: sqlite, path: /r.db, query: \"SELECT a, b FROM c\", item: a, score: b,\n"
      "  missing: skip, top: 50, min_rows: 20}\n" REST,
      &file);
  assert_int_equal(file.items.source, CV_SOURCE_CSV);
  assert_int_equal(file.items.csv.format, CV_FORMAT_SQLITE);
  assert_string_equal(file.items.csv.query, "SELECT a, b FROM c");
  assert_true(file.items.csv.skips_missing);
  assert_int_equal(file.items.csv.top, 50);
  assert_int_equal(file.items.csv.least_rows, 20);
  cv_campaign_fini(&file);
  load("campaign: a\nitems: {source: jsonl, path: r.jsonl, item: a, score: b}\n" REST, &file);
  assert_int_equal(file.items.csv.format, CV_FORMAT_JSONL);
  assert_false(file.items.csv.skips_missing);
  assert_true(file.items.csv.top == 0 && file.items.csv.least_rows == 0 && file.items.csv.query == NULL);
  cv_campaign_fini(&file);
  static const struct {
    const char *path;
    char delimiter;
  } cases[] = {{"r.csv.gz", ','}, {"r.tsv.zst", '\t'}, {"r.tab.gz", '\t'}, {"tsv.gz", ','}, {".tsv.csv", ','}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char text[300];
    (void)snprintf(text, sizeof(text), "campaign: a\nitems: {source: csv, path: %s, item: a, score: b}\n" REST,
                   cases[i].path);
    load(text, &file);
    assert_int_equal(file.items.csv.delimiter, cases[i].delimiter);
    cv_campaign_fini(&file);
  }
}

static void a_csv_campaign_in_full(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: ratings\n"
      "items: {source: csv, path: /data/r.tsv, item: movie, score: stars, scale: [1, 5], replacement: true}\n"
      "policy: ppar\n"
      "privacy: {epsilon: 0.000001, privatizer: {name: randomized-response, epsilon: 1.5, rule: printed},\n"
      "          third_party: trusted, share_names: true, tokens_per_worker: 3}\n"
      "limits: {deadline: none, idle: none}\n",
      &file);
  assert_string_equal(file.items.csv.file, "/data/r.tsv");
  assert_int_equal(file.items.csv.delimiter, '\t');
  assert_true(file.items.csv.scale.low == 1 && file.items.csv.scale.high == 5 && !file.items.csv.clamps);
  assert_true(file.items.csv.replacement);
  assert_int_equal(file.spec.epsilon_micro, 1);
  assert_string_equal(file.spec.policy.name, "ppar");
  assert_int_equal(file.spec.policy.params.count, 0);
  assert_string_equal(file.spec.mechanism.name, "hybrid");
  assert_string_equal(file.spec.privatizer.name, "randomized-response");
  assert_number(&file.spec.privatizer.params, "epsilon", 1.5);
  assert_true(file.spec.thirdparty_trusted);
  assert_true(file.share_names);
  assert_null(file.spec.names);
  assert_int_equal(file.spec.tokens_per_worker, 3);
  assert_int_equal(file.spec.tokens, 50000000);
  assert_int_equal(file.spec.deadline_ms, 0);
  assert_int_equal(file.spec.idle_ms, 0);
  cv_campaign_fini(&file);
}

static void a_synthetic_campaign(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: s\n"
      "items: {synthetic: {count: 3, mean: 0.25, variance: 2, rewards: beta, spread: 7, seed: 18446744073709551615}}\n"
      "policy: {name: ppar}\n"
      "privacy: {epsilon: 4000, share_names: true}\n",
      &file);
  assert_int_equal(file.items.source, CV_SOURCE_SYNTHETIC);
  assert_int_equal(file.items.synthetic.count, 3);
  assert_int_equal(file.items.synthetic.law.rewards, CV_REWARDS_BETA);
  assert_true(file.items.synthetic.mean == 0.25 && file.items.synthetic.variance == 2 &&
              file.items.synthetic.law.spread == 7);
  assert_true(file.items.has_seed && file.items.seed == UINT64_MAX);
  assert_int_equal(file.spec.arms, 3);
  assert_string_equal(file.spec.names[0], "item 1");
  assert_string_equal(file.spec.names[2], "item 3");
  assert_int_equal(file.spec.epsilon_micro, UINT64_C(4000000000));
  assert_int_equal(file.spec.idle_ms, 30000);
  cv_campaign_fini(&file);
}

static void assert_name(const struct cv_items *items, uint32_t arm, const char *expected) {
  struct cv_names names = {0};
  const char **list;
  cv_items_name(items, arm, &names);
  assert_int_equal(cv_names_take(&names, &list), CV_OK);
  assert_string_equal(list[0], expected);
  free(list);
}

static void a_campaign_of_given_items(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: g\n"
      "items:\n"
      "  rewards: clipped-normal\n"
      "  spread: 0.1\n"
      "  list: [{name: Roma, mean: 0.7, spread: 0.2}, {name: Golden Wok, mean: 1}]\n"
      "policy: {name: ppar}\n"
      "privacy: {mechanism: {name: none}}\n",
      &file);
  assert_int_equal(file.items.source, CV_SOURCE_GIVEN);
  assert_int_equal(file.items.given.law.rewards, CV_REWARDS_CLIPPED_NORMAL);
  assert_int_equal(file.items.given.count, 2);
  assert_false(file.items.has_seed);
  assert_string_equal(file.items.given.name[0], "Roma");
  assert_true(file.items.given.item[0].mean == 0.7 && file.items.given.item[0].spread == 0.2);
  assert_string_equal(file.items.given.name[1], "Golden Wok");
  assert_true(file.items.given.item[1].mean == 1 && file.items.given.item[1].spread == 0.1);
  assert_int_equal(file.spec.arms, 2);
  assert_null(file.spec.names); /* not shared */
  assert_int_equal(file.spec.epsilon_micro, 0);
  cv_campaign_fini(&file);
}

static void a_campaign_of_means_in_steps(void **state) {
  static const double expected[] = {0.9, 0.9, 0.5, 0.25, 0};
  struct cv_campaign_file file;
  load(
      "campaign: g\n"
      "items: {ladder: {count: 5, mean: 0.9, best: 2, distance: 0.4, step: 0.25, rewards: beta, spread: 3}}\n"
      "policy: {name: ppar}\n"
      "privacy: {epsilon: 1}\n",
      &file);
  assert_int_equal(file.items.source, CV_SOURCE_GIVEN);
  assert_int_equal(file.items.given.law.rewards, CV_REWARDS_BETA);
  assert_int_equal(file.items.given.count, 5);
  assert_int_equal(file.spec.arms, 5);
  for (uint32_t i = 0; i < 5; i++) {
    assert_true(fabs(file.items.given.item[i].mean - expected[i]) < 1e-12 && file.items.given.item[i].mean >= 0);
    assert_true(file.items.given.item[i].spread == 3);
  }
  assert_name(&file.items, 4, "item 5");
  cv_campaign_fini(&file);
}

static void a_campaign_against_an_adversary(void **state) {
  struct cv_campaign_file file;
  load(
      "campaign: g\n"
      "items: {adversary: {name: switching, count: 5, best: 3, rounds: 4096, memory: 3, seed: 12}}\n"
      "policy: exp3\n"
      "privacy: {mechanism: none, third_party: trusted}\n",
      &file);
  assert_int_equal(file.items.source, CV_SOURCE_ADVERSARY);
  assert_string_equal(file.items.adversary.name, "switching");
  assert_int_equal(file.items.adversary.count, 5);
  assert_int_equal(file.items.adversary.best, 3);
  assert_int_equal(file.items.adversary.rounds, 4096);
  assert_true(file.items.adversary.has_memory);
  assert_int_equal(file.items.adversary.memory, 3);
  assert_true(file.items.has_seed && file.items.seed == 12);
  assert_int_equal(file.spec.arms, 5);
  cv_campaign_fini(&file);
}

static void a_campaign_with_edges(void **state) {
  static const char text[] =
      "campaign: g\n"
      "items: {list: [{name: a, mean: 0.7}, {name: b, mean: 1}, {name: c, mean: 0}]}\n"
      "policy: {name: gap}\n"
      "privacy: {epsilon: 1, mechanism: batch}\n"
      "graph: {edges: [[3, 2], [1, 3], [1, 2]]}\n";
  struct cv_campaign_file file;
  struct cv_why why;
  load(text, &file);
  assert_int_equal(cv_campaign_graph(&file, 1, &why), CV_OK);
  assert_int_equal(file.spec.edges, 3);
  const struct cv_edge expected[] = {{0, 1}, {0, 2}, {1, 2}};
  assert_memory_equal(file.spec.edge, expected, sizeof(expected));
  assert_int_equal(cv_spec_shown_most(&file.spec), 3);
  file.spec.arms = 2;
  assert_int_equal(cv_campaign_graph(&file, 1, &why), CV_ERR_INVALID);
  assert_message(&why, ":5:1: graph.edges names item 3; expected at most 2");
  cv_campaign_fini(&file);
}

static uint32_t edges_drawn(const char *graph, uint64_t seed, uint64_t *ret_sum) {
  char text[300];
  struct cv_campaign_file file;
  struct cv_why why;
  (void)snprintf(text, sizeof(text),
                 "campaign: g\nitems: {synthetic: {count: 100}}\npolicy: gap\nprivacy: {epsilon: 1}\n%s\n", graph);
  load(text, &file);
  assert_int_equal(cv_campaign_graph(&file, seed, &why), CV_OK);
  uint32_t edges = file.spec.edges;
  *ret_sum = 0;
  for (uint32_t i = 0; i < edges; i++) {
    assert_true(file.spec.edge[i].a < file.spec.edge[i].b && file.spec.edge[i].b < 100);
    *ret_sum += (uint64_t)(i + 1) * (file.spec.edge[i].a * 100 + file.spec.edge[i].b);
  }
  cv_campaign_fini(&file);
  return edges;
}

static void a_campaign_with_a_graph_to_be_drawn(void **state) {
  uint64_t a, b, c, d;
  assert_int_equal(edges_drawn("graph: {p: 1}", 1, &a), 4950);
  assert_int_equal(edges_drawn("graph: {p: 0}", 1, &a), 0);
  uint32_t edges = edges_drawn("graph: {p: 0.2, seed: 5}", 1, &a);
  assert_in_range(edges, 990 - 120, 990 + 120); /* 4 standard deviations of 28 */
  assert_int_equal(edges_drawn("graph: {p: 0.2, seed: 5}", 2, &b), edges);
  assert_int_equal(a, b); /* its own seed */
  (void)edges_drawn("graph: {p: 0.2}", 5, &c);
  (void)edges_drawn("graph: {p: 0.2}", 6, &d);
  assert_int_equal(a, c);
  assert_int_not_equal(c, d);
}

static void a_graph_needs_rows_that_may_come_again(void **state) {
  struct cv_campaign_file file;
  struct cv_why why;
  load(
      "campaign: g\n"
      "items: {source: csv, path: men.csv, item: i, score: s, replacement: false}\n"
      "policy: gap\n"
      "privacy: {epsilon: 1}\n"
      "graph: {p: 0.5}\n",
      &file);
  file.spec.arms = 3;
  assert_int_equal(cv_campaign_graph(&file, 1, &why), CV_ERR_INVALID);
  assert_message(&why,
                 ":5:1: a graph shows scores that were not asked for by themselves; expected items with replacement: "
                 "true");
  cv_campaign_fini(&file);
}

/* The campaign of three items with these scores and this privacy, completed. */
static enum cv_err complete_two(const char *rewards, const char *privacy, bool pairs, const char *more,
                                struct cv_spec *ret, struct cv_why *why) {
  static const char *names[] = {"a", "b", "c"};
  const struct cv_campaign_arms arms = {.arms = CV_COUNT(names), .name = names};
  struct cv_campaign_file file;
  char text[1000];
  (void)snprintf(text, sizeof(text),
                 "campaign: two\n"
                 "items: {ladder: {count: 3, mean: 0.9, distance: 0.2%s}}\n"
                 "policy: {name: ppar, alpha: 0.1}\n"
                 "privacy: {epsilon: 1, brokers: 2%s}\n%s",
                 rewards, privacy, more);
  load(text, &file);
  file.spec.pairs = pairs;
  enum cv_err err = cv_campaign_complete(&file, &arms, 1, why);
  *ret = file.spec;
  ret->names = NULL;
  ret->edge = NULL;
  cv_campaign_fini(&file);
  return err;
}

static void assert_bits(const char *rewards, const char *privacy, bool pairs, uint32_t bits) {
  struct cv_spec spec;
  struct cv_why why = {0};
  if (complete_two(rewards, privacy, pairs, "", &spec, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(spec.brokers, 2);
  assert_int_equal(spec.score_bits, bits);
}

/* One bit where a score or a token is one, unless the file says otherwise. */
static void two_brokers_get_the_bits_of_a_score(void **state) {
  assert_bits(", rewards: beta", "", false, 15);
  assert_bits(", rewards: bernoulli", "", false, 1);
  assert_bits(", rewards: bernoulli", ", score_bits: 15", false, 15);
  assert_bits(", rewards: beta", ", score_bits: 1", false, 1);
  assert_bits(", rewards: beta", ", privatizer: {name: randomized-response, epsilon: 1}", false, 1);
  assert_bits(", rewards: beta", "", true, 1);
}

static void what_two_brokers_cannot_do_is_one_clear_line(void **state) {
  static const struct {
    const char *privacy;
    bool pairs;
    const char *more, *message;
  } cases[] = {
      {", privatizer: {name: laplace, epsilon: 1}", false, "",
       ":4:1: privatizer laplace with two brokers; expected one whose tokens lie from 0 to 1"},
      {", mechanism: none", false, "",
       ":4:1: mechanism none with two brokers; expected one whose noise protects every token: hybrid or"},
      {", mechanism: hybrid-printed", false, "",
       ":4:1: mechanism hybrid-printed with two brokers; expected one whose noise protects every token: hybrid or"},
      {"", false, "graph: {edges: [[1, 2]]}\n",
       ":4:1: two brokers with a feedback graph; expected no graph: a proof is about one score"},
      {", score_bits: 15", true, "", ":4:1: score_bits is 15, but each token is one bit (pairs); expected 1"},
      {", score_bits: 15, privatizer: {name: randomized-response, epsilon: 1}", false, "",
       ":4:1: score_bits is 15, but each token is one bit (randomized-response); expected 1"},
      {"", false, "gold: {tolerance: 0.1, items: {c: 1}}\n",
       ":5:1: gold items in a campaign with two brokers, of which none sees an answer; expected a campaign without it, "
       "or "
       "no gold items"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_spec spec;
    struct cv_why why = {0};
    enum cv_err err = complete_two(", rewards: beta", cases[i].privacy, cases[i].pairs, cases[i].more, &spec, &why);
    assert_int_equal(err, CV_ERR_INVALID);
    if (strstr(why.text, cases[i].message) == NULL) {
      fail_msg("%s", why.text);
    }
  }
}

static void the_campaigns_that_come_along_are_good(void **state) {
  static const char *const names[] = {"demo",       "first",        "dpf",      "dpu",
                                      "eps-greedy", "dp-ucb-bound", "cheapest", "uniform"};
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    char path[512];
    struct cv_campaign_file file;
    struct cv_why why = {0};
    (void)snprintf(path, sizeof(path), "%s/deploy/campaigns/%s.yaml", CV_SOURCE, names[i]);
    assert_int_equal(cv_campaign_load(path, &file, &why), CV_OK);
    /* Drawn costs, with a seed set in the file. */
    assert_true(file.items.are_paid == (i > 1) && file.items.are_paid == (file.spec.budget_micro > 0));
    assert_true(file.items.are_paid || cv_spec_check(&file.spec, &why) == CV_OK);
    cv_campaign_fini(&file);
  }
}

static void workers_have_an_id_a_cost_and_a_quality(void **state) {
  struct cv_campaign_file file;
  struct cv_why why = {0};
  assert_int_equal(cv_campaign_load(write_text("campaign: c\nbudget: 20.5\npolicy: dpf\nprivacy: {epsilon: 1}\n"
                                               "workers:\n- {id: 7, cost: 2.000001, quality: 0.25}\n"
                                               "- {id: 3, cost: 4, quality: 1}\n"),
                                    &file, &why),
                   CV_OK);
  assert_int_equal(file.spec.budget_micro, 20500000);
  assert_int_equal(file.spec.arms, 2);
  assert_true(file.items.are_paid && file.items.given.law.rewards == CV_REWARDS_BERNOULLI);
  assert_int_equal(file.items.given.item[0].id, 7);
  assert_int_equal(file.items.given.item[0].cost_micro, 2000001);
  assert_true(file.items.given.item[0].mean == .25);
  assert_name(&file.items, 1, "worker 3");
  cv_campaign_fini(&file);
}

/* A good file, one line of which each bad case replaces. */
enum { CAMPAIGN, ITEMS, POLICY, PRIVACY, LIMITS, LINES };
static const char *const good[LINES] = {"campaign: c", "items: {synthetic: {count: 2}}", "policy: {name: p}",
                                        "privacy: {epsilon: 1}", "limits: {tokens: 9}"};

#define EPSILON     "expected a number above 0 and at most 4000, with at most 6 decimals"
#define ADVERSARIES "deterministic, stochastic, fully-oblivious, oblivious or switching"
#define TWO         "expected a list of two numbers, the lower one first"
#define HIRE        "budget: 5\nworkers: ["
#define CSV         "items: {source: csv, path: a, item: b, score: c, "

static const struct {
  int line;
  const char *text, *message;
} bad[] = {
    {CAMPAIGN, "", ":2:1: missing campaign; expected a name of 1 to 63 bytes"},
    {CAMPAIGN, "campaign: \"\"", ":1:11: campaign has no value; expected a name of 1 to 63 bytes"},
    {CAMPAIGN, "campaign: [a]", ":1:11: campaign is a list; expected a name of 1 to 63 bytes"},
    {CAMPAIGN, "campaign: \"a\\tb\"", ":1:11: campaign is \"a?b\"; expected a name of 1 to 63 bytes"},
    {ITEMS, "", ":1:1: missing items; expected where scores come from"},
    {ITEMS, CSV "worker: b}", ":2:58: items.worker is the column of the items; expected one that names persons"},
    {ITEMS, CSV "worker: c}", ":2:58: items.worker is the column of the scores; expected one that names persons"},
    {ITEMS, CSV "worker: \"\"}", ":2:58: items.worker has no value; expected a name of 1 to 63 bytes"},
    {ITEMS, CSV "first_worker: 5}",
     ":2:50: items.first_worker without items.worker; expected the column of persons as items.worker"},
    {ITEMS, CSV "worker: d, replacement: true}",
     ":2:74: items.replacement is true; expected false with items.worker: a person gives each row once"},
    {ITEMS, "items: csv", ":2:8: items is \"csv\"; expected a mapping of keys and values"},
    {ITEMS, "items: {item: b}",
     ":2:8: items has no source of scores; expected source, synthetic, list, ladder or adversary"},
    {ITEMS, "items: {adversary: stochastic}",
     ":2:20: items.adversary is \"stochastic\"; expected a mapping like {name: stochastic, count: 4}"},
    {ITEMS, "items: {adversary: {count: 3}}", ":2:20: missing items.adversary.name; expected " ADVERSARIES},
    {ITEMS, "items: {adversary: {name: nature}}", ":2:27: unknown adversary \"nature\"; expected one of " ADVERSARIES},
    {ITEMS, "items: {adversary: {name: switching, count: 3, best: 4}}",
     ":2:54: items.adversary.best is 4; expected 1 to 3"},
    {ITEMS, "items: {adversary: {name: deterministic, best: 1}}",
     ":2:42: items.adversary.best does not apply to deterministic; expected no best"},
    {ITEMS, "items: {adversary: {name: switching, memory: 1001}}",
     ":2:46: items.adversary.memory is \"1001\"; expected a whole number from 0 to 1000"},
    {ITEMS, "items: {adversary: {name: oblivious}, spread: 1}",
     ":2:39: unknown key \"spread\" in items; expected adversary"},
    {ITEMS, "items: {sourc: csv}", ":2:9: unknown key \"sourc\" in items; did you mean \"source\"?"},
    {ITEMS, "items: {source: sql, path: a, item: b, score: c}",
     ":2:17: items.source is \"sql\"; expected csv, jsonl or sqlite"},
    {ITEMS, "items: {source: csv, item: b, score: c}", ":2:8: missing items.path; expected a path"},
    {ITEMS, "items: {source: csv, path: a, item: b}", ":2:8: missing items.score; expected a text"},
    {ITEMS, "items: {source: csv, path: a, item: \"\", score: c}",
     ":2:37: items.item has no value; expected a name of 1 to 63 bytes"},
    {ITEMS, "items: {source: sqlite, path: a, item: b, score: c}",
     ":2:8: missing items.query; expected one SELECT with source sqlite"},
    {ITEMS, "items: {source: csv, path: a, item: b, score: c, query: SELECT 1}",
     ":2:50: items.query with source csv; expected it with source sqlite alone"},
    {ITEMS, "items: {source: jsonl, path: a, item: b, score: c, delimiter: tab}",
     ":2:52: items.delimiter with source jsonl; expected it with source csv alone"},
    {ITEMS, CSV "replacement: true, versus: d, top: 5}",
     ":2:80: items.top with items.versus; expected it for scores of single items"},
    {ITEMS, "items: {source: jsonl, path: a, item: b, score: c, versus: d}",
     ":2:17: items.source is jsonl; expected csv with items.versus"},
    {ITEMS, CSV "missing: drop}", ":2:59: items.missing is \"drop\"; expected refuse or skip"},
    {ITEMS, CSV "top: -1}", ":2:55: items.top is \"-1\"; expected a whole number from 0 to 131072"},
    {ITEMS, CSV "scale: [5, 1]}", ":2:57: items.scale is [5, 1]; " TWO},
    {ITEMS, CSV "scale: [1, 1]}", ":2:57: items.scale is [1, 1]; " TWO},
    {ITEMS, CSV "scale: [1]}", ":2:57: items.scale has fewer than 2 values; " TWO},
    {ITEMS, CSV "scale: [1, 2, 3]}", ":2:57: items.scale has more than 2 values; " TWO},
    {ITEMS, CSV "scale: [1, x]}", ":2:61: items.scale is \"x\"; " TWO},
    {ITEMS, CSV "scale: 5}", ":2:57: items.scale is \"5\"; " TWO},
    {ITEMS, CSV "delimiter: semicolon}", ":2:61: items.delimiter is \"semicolon\"; expected comma or tab"},
    {ITEMS, CSV "rewards: beta}",
     ":2:50: unknown key \"rewards\" in items; expected source, path, item, versus, score, delimiter, scale, outside, "
     "replacement, worker, first_worker, query, missing, top, min_rows or memory"},
    {ITEMS, "items: {synthetic: 20}", ":2:20: items.synthetic is \"20\"; expected a mapping of keys and values"},
    {ITEMS, "items: {synthetic: {}}", ":2:20: missing items.synthetic.count; expected a whole number from 1 to 131072"},
    {ITEMS, "items: {synthetic: {count: 0}}",
     ":2:28: items.synthetic.count is \"0\"; expected a whole number from 1 to 131072"},
    {ITEMS, "items: {synthetic: {count: 131073}}",
     ":2:28: items.synthetic.count is \"131073\"; expected a whole number from 1 to 131072"},
    {ITEMS, "items: {synthetic: {count: 2, variance: -1}}",
     ":2:41: items.synthetic.variance is \"-1\"; expected a number from 0 to 1000000000000"},
    {ITEMS, "items: {synthetic: {count: 2, rewards: beta, spread: 0}}",
     ":2:54: items.synthetic.spread is 0; expected more than 0 with rewards beta"},
    {ITEMS, "items: {synthetic: {count: 2}, path: x}", ":2:32: unknown key \"path\" in items; expected synthetic"},
    {ITEMS, "items: {synthetic: {count: 2, seed: 18446744073709551616}}",
     ":2:37: items.synthetic.seed is \"18446744073709551616\"; expected a whole number of at least 0"},
    {ITEMS, "items: {ladder: 5}",
     ":2:17: items.ladder is \"5\"; expected a mapping like {count: 5, mean: 0.9, distance: 0.1}"},
    {ITEMS, "items: {ladder: {count: 3, mean: 0.9}}",
     ":2:17: missing items.ladder.distance; expected a number from 0 to 1"},
    {ITEMS, "items: {ladder: {count: 4, mean: 0.9, distance: 0.5, step: 0.25}}",
     ":2:17: items.ladder gives item 4 the mean -0.1; expected none below 0"},
    {ITEMS, "items: {ladder: {count: 1, mean: 1, distance: 0}, spread: 1}",
     ":2:51: unknown key \"spread\" in items; expected ladder"},
    {ITEMS, "items: {list: []}", ":2:15: items.list has 0 items; expected 1 to 131072"},
    {ITEMS, "items: {list: x}", ":2:15: items.list is \"x\"; expected a list of items"},
    {ITEMS, "items: {list: [x]}", ":2:16: an item is \"x\"; expected a mapping like {name: Roma, mean: 0.7}"},
    {ITEMS, "items: {list: [{name: a}, {name: b, mean: 1}]}",
     ":2:27: item \"b\" has a mean, but the items before have none; expected means of all or none"},
    {ITEMS, "items: {list: [{name: a, mean: 1}, {name: b}]}",
     ":2:36: item \"b\" has no mean, but the items before have one; expected means of all or none"},
    {ITEMS, "items: {list: [{mean: 1}]}", ":2:16: missing items.list.name; expected a text"},
    {ITEMS, "items: {list: [{name: a, mean: 1.5}]}",
     ":2:32: items.list.mean is \"1.5\"; expected a number from 0 to 1"},
    {ITEMS, "items: {list: [{name: a, mean: 1}, {name: a, mean: 0}]}",
     ":2:36: duplicate item \"a\", as on line 2; expected distinct names"},
    {ITEMS,
     "items:\n  list:\n    - {name: Caf\u00e9, mean: 1}\n    - {name: Bar, mean: 1}\n    - {name: Cafe\u0301, mean: 0}",
     ":6:7: duplicate item \"Caf\u00e9\", typed in other characters or blanks on line 4; expected distinct names"},
    {ITEMS, "items: {list: [{name: \"a\\u202eb\", mean: 1}]}",
     ":2:23: items.list.name \"a???b\" has U+202E, which turns the direction of what follows; expected a name "
     "without it"},
    {CAMPAIGN, "campaign: \"a\\u200bb\"",
     ":1:11: campaign \"a???b\" has U+200B, which cannot be seen; expected a name without it"},
    {POLICY, "", ":1:1: missing policy; expected the name of a policy"},
    {POLICY, "policy: {alpha: 1}", ":3:9: missing policy.name; expected an algorithm's name"},
    {POLICY, "policy: {name: p, alpha: [1]}",
     ":3:26: policy.alpha is a list; expected a number or a word of at most 31 bytes"},
    {POLICY, "policy: {name: p, alpha: }",
     ":3:26: policy.alpha has no value; expected a number or a word of at most 31 bytes"},
    {POLICY, "policy: {name: p, alpha: 1, alpha: 2}", ":3:29: duplicate key \"alpha\"; the first is on line 3"},
    {POLICY, "policy: [p]", ":3:9: policy is a list; expected an algorithm's name, or a mapping with it as name"},
    {POLICY,
     "policy: {name: p, a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: 1, n: 1, "
     "o: 1, p: 1, q: 1, a1: 1, a2: 1, a3: 1, a4: 1, a5: 1, a6: 1, a7: 1, a8: 1, a9: 1, b1: 1, b2: 1, b3: 1, b4: 1, "
     "b5: 1, b6: 1, b7: 1}",
     ":3:9: policy has more than 32 parameters"},
    {PRIVACY, "", ":1:1: missing privacy; expected a mapping with epsilon"},
    {PRIVACY, "privacy: {}", ":4:10: missing privacy.epsilon; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 0}", ":4:20: privacy.epsilon is \"0\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: -1}", ":4:20: privacy.epsilon is \"-1\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 0.0000001}", ":4:20: privacy.epsilon is \"0.0000001\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 4000.000001}", ":4:20: privacy.epsilon is \"4000.000001\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 1e-3}", ":4:20: privacy.epsilon is \"1e-3\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 1.}", ":4:20: privacy.epsilon is \"1.\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 99999999999999999999}",
     ":4:20: privacy.epsilon is \"99999999999999999999\"; " EPSILON},
    {PRIVACY, "privacy: {epsilon: 1, tokens_per_worker: 0}",
     ":4:42: privacy.tokens_per_worker is \"0\"; expected a whole number from 1 to 1000000"},
    {PRIVACY, "privacy: {epsilon: 1, third_party: friendly}",
     ":4:36: privacy.third_party is \"friendly\"; expected untrusted or trusted"},
    {PRIVACY, "privacy: {epsilon: 1, privatiser: none}",
     ":4:23: unknown key \"privatiser\" in privacy; did you mean \"privatizer\"?"},
    {LIMITS, "limits: {tokens: 0}", ":5:18: limits.tokens is \"0\"; expected a whole number from 1 to 1000000000000"},
    {LIMITS, "limits: 5", ":5:9: limits is \"5\"; expected a mapping of keys and values"},
    {LIMITS, "limits: {deadline: 1y}",
     ":5:20: limits.deadline is \"1y\"; expected a time of at most 365d (like 250ms, 30s, 5m, 1h or 2d) or none"},
    {LIMITS, "workers: {}", ":2:1: both items and workers; expected only one"},
    {LIMITS, "helpers: {}",
     ":5:1: unknown key \"helpers\"; expected campaign, items, workers, budget, policy, privacy, limits, graph, "
     "gold or experiment"},
    {LIMITS, "budget: 5", ":5:1: budget without workers; expected workers in place of items"},
    {ITEMS, "workers: [{id: 1, cost: 1, quality: 1}]",
     ":1:1: missing budget; expected what may be paid to all workers together"},
    {ITEMS, HIRE "{id: 1, cost: 0, quality: 1}]",
     ":3:25: workers.list.cost is \"0\"; expected a number above 0 and at most 1000000, with at most 6 decimals"},
    {ITEMS, HIRE "{id: 1, quality: 1}]", ":3:11: missing workers.list.cost; expected what a token of the worker costs"},
    {ITEMS, HIRE "{id: 0, cost: 1, quality: 1}]",
     ":3:16: workers.list.id is \"0\"; expected a whole number from 1 to 140737488355328"},
    {ITEMS, HIRE "{id: 7, cost: 1, quality: 1}, {id: 7, cost: 2, quality: 1}]",
     ":3:41: duplicate worker 7; expected distinct ids"},
    {ITEMS, HIRE "{id: 7, cost: 1, quality: 2}]",
     ":3:37: workers.list.quality is \"2\"; expected a number from 0 to 1"},
    {ITEMS, HIRE "]", ":3:10: 0 workers; expected 1 to 131072"},
    {ITEMS, "budget: 5\nworkers: {synthetic: {count: 2, cost_low: 3, cost_high: 2}}",
     ":3:22: workers.synthetic.cost_high is 2; expected at least cost_low, 3"},
    {ITEMS, "budget: 5\nworkers: {source: bus, path: a}", ":3:19: workers.source is \"bus\"; expected taxi"},
    {ITEMS, "budget: 5\nworkers: {seed: 1}",
     ":3:10: workers has no source of workers; expected a list, synthetic or source"},
    {ITEMS, "budget: 0.0000001\nworkers: {synthetic: {count: 2}}",
     ":2:9: budget is \"0.0000001\"; expected a number above 0 and at most 1000000000000, with at most 6 decimals"},
    {PRIVACY, "privacy: {epsilon: 1, brokers: 3}",
     ":4:32: privacy.brokers is \"3\"; expected a whole number from 1 to 2"},
    {PRIVACY, "privacy: {epsilon: 1, brokers: 2, score_bits: 14}",
     ":4:47: privacy.score_bits is \"14\"; expected auto, 1 or 15"},
    {PRIVACY, "privacy: {epsilon: 1, score_bits: 15}",
     ":4:23: privacy.score_bits with one broker; expected privacy.brokers: 2"},
    {PRIVACY, "privacy: {mechanism: auto, brokers: 2}",
     ":4:10: missing privacy.epsilon; expected a number above 0 and at most 4000, with at most 6 decimals"},
    {LIMITS, "graph: 5", ":5:8: graph is \"5\"; expected a mapping with edges, or with p and seed"},
    {LIMITS, "graph: {}", ":5:8: graph has neither edges nor p; expected either edges, or p and seed"},
    {LIMITS, "graph: {edges: [], p: 0.5}", ":5:8: graph has edges and p or seed; expected either edges, or p and seed"},
    {LIMITS, "graph: {p: 1.5}", ":5:12: graph.p is \"1.5\"; expected a number from 0 to 1"},
    {LIMITS, "graph: {edges: [[1, 1]]}", ":5:17: graph.edges joins item 1 with itself; expected two items"},
    {LIMITS, "graph: {edges: [[1, 2], [2, 1]]}",
     ":5:16: graph.edges joins items 1 and 2 twice; expected each pair once"},
    {LIMITS, "graph: {edges: [[0, 1]]}",
     ":5:18: an end of graph.edges is \"0\"; expected the place of an item, from 1"},
    {LIMITS, "gold: Roma", ":5:7: gold is \"Roma\"; expected a mapping of keys and values"},
    {LIMITS, "gold: {items: {Roma: 1}}", ":5:7: missing gold.tolerance; expected a number from 0 to 0.999999"},
    {LIMITS, "gold: {tolerance: 0.1}",
     ":5:7: missing gold.items; expected items with their known scores, like {Aurora: 0.9}"},
    {LIMITS, "gold: {tolerance: 0.1, items: {}}", ":5:31: gold.items has 0 items; expected 1 to 256"},
    {LIMITS, "gold: {tolerance: 0.1, items: [Roma]}",
     ":5:31: gold.items is a list; expected items with their known scores, like {Aurora: 0.9}"},
    {LIMITS, "gold: {tolerance: 0.1, items: {Roma: 1.5}}",
     ":5:38: a known score in gold.items is \"1.5\"; expected a number from 0 to 1"},
    {LIMITS, "gold: {tolerance: 0.1, items: {Roma: 1, Roma: 0}}",
     ":5:41: duplicate key \"Roma\"; the first is on line 5"},
    {LIMITS, "gold: {tolerance: 0.1, items: {Roma: 1}, share: 0.6}",
     ":5:49: gold.share is \"0.6\"; expected a number from 1e-06 to 0.5"},
};

/* The good campaign with one line replaced. */
static void check_refused(int other, const char *with, const char *message) {
  char text[2000] = "";
  for (int line = 0; line < LINES; line++) {
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n", line == other ? with : good[line]);
  }
  struct cv_campaign_file file, before;
  memset(&file, 0x5a, sizeof(file));
  memset(&before, 0x5a, sizeof(before));
  struct cv_why why = {0};
  assert_int_not_equal(cv_campaign_load(write_text(text), &file, &why), CV_OK);
  assert_message(&why, message);
  assert_memory_equal(&file, &before, sizeof(file));
}

/* A name of 255 bytes whose last character has two, and one of 256. */
static void names_of_items_have_255_bytes(void **state) {
  char name[256] = "", text[1024];
  memset(name, 'n', 253);
  memcpy(name + 253, "\xc3\xa9", 3);
  struct cv_campaign_file file;
  (void)snprintf(text, sizeof(text),
                 "campaign: long\nitems: {list: [{name: a, mean: .5}, {name: \"%s\", mean: 1}]}\n%s\n%s\n%s\n", name,
                 good[POLICY], good[PRIVACY], good[LIMITS]);
  load(text, &file);
  assert_name(&file.items, 1, name);
  cv_campaign_fini(&file);
  (void)snprintf(text, sizeof(text), "items: {list: [{name: \"x%s\", mean: 1}]}", name);
  check_refused(
      ITEMS, text,
      ":2:23: items.list.name is \"xnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...\"; expected a name of 1 to 255 "
      "bytes");
}

static void a_bad_campaign_is_one_clear_line(void **state) {
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    check_refused((int)bad[i].line, bad[i].text, bad[i].message);
  }
}

/* The message lists every reward model of the table, or the similar one. */
static void an_unknown_reward_model_is_reported_with_the_known_ones(void **state) {
#define WORD(file, kind, word, ...) word,
  static const char *const words[] = {CV_REWARD_LAWS(WORD) CV_REWARDS_PAIRS_WORD};
  char message[512] = ":2:40: unknown reward model \"gauss\"; expected one of bernoulli";
  for (size_t i = 1; i < CV_COUNT(words); i++) {
    size_t used = strlen(message);
    (void)snprintf(message + used, sizeof(message) - used, "%s%s", i + 1 < CV_COUNT(words) ? ", " : " or ", words[i]);
  }
  check_refused(ITEMS, "items: {synthetic: {count: 2, rewards: gauss}}", message);
  check_refused(ITEMS, "items: {synthetic: {count: 2, rewards: bernouli}}",
                ":2:40: unknown reward model \"bernouli\"; did you mean \"bernoulli\"?");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_csv_campaign),
      cmocka_unit_test(a_csv_campaign_in_full),
      cmocka_unit_test(other_data_files_in_full),
      cmocka_unit_test(a_privatizer_may_have_a_list_for_the_arms),
      cmocka_unit_test(a_synthetic_campaign),
      cmocka_unit_test(a_campaign_of_given_items),
      cmocka_unit_test(a_campaign_of_means_in_steps),
      cmocka_unit_test(a_campaign_against_an_adversary),
      cmocka_unit_test(a_campaign_with_edges),
      cmocka_unit_test(a_campaign_with_a_graph_to_be_drawn),
      cmocka_unit_test(a_graph_needs_rows_that_may_come_again),
      cmocka_unit_test(two_brokers_get_the_bits_of_a_score),
      cmocka_unit_test(what_two_brokers_cannot_do_is_one_clear_line),
      cmocka_unit_test(the_campaigns_that_come_along_are_good),
      cmocka_unit_test(workers_have_an_id_a_cost_and_a_quality),
      cmocka_unit_test(a_bad_campaign_is_one_clear_line),
      cmocka_unit_test(names_of_items_have_255_bytes),
      cmocka_unit_test(an_unknown_reward_model_is_reported_with_the_known_ones),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
