/* SPDX-License-Identifier: Apache-2.0 */
#include "common/db/strangers.h"
#include "thirdparty/rows.h"
#include "thirdparty/store.h"

static const char *const steps[] = {
    /* A campaign as its broker opened it, and its progress. `id` is local and refers to it in the other tables;
     * `number` is the broker's. Unsigned 64-bit numbers (number, seed) are stored as signed numbers with the same
     * bits. */
    "CREATE TABLE campaign ("
    "  id INTEGER PRIMARY KEY,"
    "  broker TEXT NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  arms INTEGER NOT NULL,"
    "  policy TEXT NOT NULL,"
    "  policy_parameters TEXT NOT NULL," /* key=value, defaults filled in */
    "  mechanism TEXT NOT NULL,"
    "  privatizer TEXT NOT NULL,"
    "  epsilon REAL NOT NULL," /* of the mechanism, per arm */
    "  token_limit INTEGER NOT NULL,"
    "  seed INTEGER NOT NULL,"       /* of the policy */
    "  spec BLOB NOT NULL,"          /* all of the above as the programs read it */
    "  spec_digest BLOB NOT NULL,"   /* SHA-256 of the spec as it was sent */
    "  state TEXT NOT NULL,"         /* running, complete, ... */
    "  end_code INTEGER NOT NULL,"   /* the same, 0 = running */
    "  note TEXT NOT NULL,"          /* details of the end; may be empty */
    "  closed INTEGER NOT NULL,"     /* the broker has the result */
    "  releases INTEGER NOT NULL,"   /* applied */
    "  releases_hash BLOB NOT NULL," /* chained, docs/protocol.md */
    "  plans_accepted INTEGER NOT NULL,"
    "  plans_hash BLOB NOT NULL,"
    "  last_plan INTEGER NOT NULL,"
    "  decisions INTEGER NOT NULL,"
    "  policy_done INTEGER NOT NULL,"
    "  UNIQUE (broker, number)"
    ") STRICT;"

    /* Names of the arms, if the campaign shares them. */
    "CREATE TABLE item ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  arm INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  PRIMARY KEY (campaign, arm)"
    ") STRICT, WITHOUT ROWID;"

    /* Plans made by the policy ('policy'), or lost here and sent back by the broker ('broker'). */
    "CREATE TABLE plan ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  number INTEGER NOT NULL,"
    "  origin TEXT NOT NULL,"
    "  PRIMARY KEY (campaign, number)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE plan_want ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  plan INTEGER NOT NULL,"
    "  position INTEGER NOT NULL,"
    "  arm INTEGER NOT NULL,"
    "  tokens INTEGER NOT NULL,"
    "  PRIMARY KEY (campaign, plan, position)"
    ") STRICT, WITHOUT ROWID;"

    /* Noisy sums as received, in grid units (a score of 1 is 1048576); mean is the noisy mean score. */
    "CREATE TABLE release ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  number INTEGER NOT NULL,"
    "  plan INTEGER NOT NULL,"
    "  arm INTEGER NOT NULL,"
    "  tokens INTEGER NOT NULL,"
    "  noisy_sum INTEGER NOT NULL,"
    "  mean REAL NOT NULL,"
    "  PRIMARY KEY (campaign, number)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX release_of_plan ON release (campaign, plan);"
    /* The noise in a release: `count` Laplace variables of this scale, in units of 1048576/epsilon. */
    "CREATE TABLE release_noise ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  release INTEGER NOT NULL,"
    "  position INTEGER NOT NULL,"
    "  scale REAL NOT NULL,"
    "  count INTEGER NOT NULL,"
    "  PRIMARY KEY (campaign, release, position)"
    ") STRICT, WITHOUT ROWID;"

    /* One decision about one arm with the numbers it depends on, after the last release of a plan. kind is 'settle'
   * (in class) or 'remove' (from class); mean and radius were compared with reference. */
    "CREATE TABLE decision ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  number INTEGER NOT NULL,"
    "  plan INTEGER NOT NULL,"
    "  release INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  arm INTEGER NOT NULL,"
    "  class INTEGER NOT NULL,"
    "  tokens INTEGER NOT NULL,"
    "  mean REAL NOT NULL,"
    "  radius REAL NOT NULL,"
    "  reference REAL NOT NULL,"
    "  PRIMARY KEY (campaign, number)"
    ") STRICT, WITHOUT ROWID;"

    /* The standing of each arm after the last step, or at the end. class 0 is undecided. */
    "CREATE TABLE standing ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  arm INTEGER NOT NULL,"
    "  class INTEGER NOT NULL,"
    "  tokens INTEGER NOT NULL,"
    "  mean REAL NOT NULL,"
    "  radius REAL NOT NULL,"
    "  PRIMARY KEY (campaign, arm)"
    ") STRICT, WITHOUT ROWID;"

    /* The policy's state after the last release of this plan; a start applies the releases of later plans to it. */
    "CREATE TABLE policy_state ("
    "  campaign INTEGER PRIMARY KEY REFERENCES campaign,"
    "  plan INTEGER NOT NULL,"
    "  state BLOB NOT NULL"
    ") STRICT;"

    /* Arms without a class of their own: they are in the class of their standing or below, up to this one. */
    "CREATE TABLE parked ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  arm INTEGER NOT NULL,"
    "  last_class INTEGER NOT NULL,"
    "  held INTEGER NOT NULL,"
    "  reason TEXT NOT NULL," /* the same in words: boundary, used up, undecided */
    "  PRIMARY KEY (campaign, arm)"
    ") STRICT, WITHOUT ROWID;"

    /* Campaigns of pairs: the arm that all tokens of a want are compared with; no row where it is drawn for each. */
    "CREATE TABLE plan_opponent ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  plan INTEGER NOT NULL,"
    "  position INTEGER NOT NULL,"
    "  opponent INTEGER NOT NULL,"
    "  PRIMARY KEY (campaign, plan, position)"
    ") STRICT, WITHOUT ROWID;"

    /* The last release of an arm whose data are used up; its tokens may be fewer than planned, and 0. */
    "CREATE TABLE used_up ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  arm INTEGER NOT NULL,"
    "  release INTEGER NOT NULL,"
    "  PRIMARY KEY (campaign, arm)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX used_up_release ON used_up (campaign, release);"

    /* Checksums of the rows of all tables, grouped by campaign `id`. */
    CV_PROOF_TABLE
    /* A start loads the open campaigns and reads only the numbers of the closed ones. */
    "CREATE INDEX campaign_closed ON campaign (closed, broker, number);",

    /* A string of its own: a compiler need not take one of more than 4,095 characters. */
    "CREATE VIEW ranking AS"
    "  SELECT c.broker, c.number AS campaign, c.name, NULLIF(s.class, 0) AS class, p.last_class, p.reason AS held,"
    "         s.arm, i.name AS item, s.mean, s.radius, s.tokens"
    "  FROM standing s JOIN campaign c ON c.id = s.campaign"
    "       LEFT JOIN item i ON i.campaign = s.campaign AND i.arm = s.arm"
    "       LEFT JOIN parked p ON p.campaign = s.campaign AND p.arm = s.arm"
    "  ORDER BY c.id, s.class = 0, s.class, p.arm IS NOT NULL, s.mean DESC;"
    "CREATE VIEW progress AS"
    "  SELECT c.broker, c.number AS campaign, c.name, c.state, c.note, c.arms,"
    "         (SELECT count(*) FROM standing s WHERE s.campaign = c.id AND s.class > 0)"
    "           - (SELECT count(*) FROM parked p WHERE p.campaign = c.id) AS settled,"
    "         (SELECT count(*) FROM parked p WHERE p.campaign = c.id) AS parked,"
    "         (SELECT max(s.class) FROM standing s WHERE s.campaign = c.id) AS classes,"
    "         c.plans_accepted AS plans, c.releases, c.decisions"
    "  FROM campaign c ORDER BY c.id;"
    "CREATE VIEW decision_log AS"
    "  SELECT c.broker, c.number AS campaign, d.number, d.plan, d.release, d.kind, d.class, d.arm, i.name AS item,"
    "         d.tokens, d.mean, d.radius, d.reference"
    "  FROM decision d JOIN campaign c ON c.id = d.campaign"
    "       LEFT JOIN item i ON i.campaign = d.campaign AND i.arm = d.arm"
    "  ORDER BY c.id, d.number;",

    /* Arms the limits of whose mean contradict each other. */
    "CREATE TABLE contradiction ("
    "  campaign INTEGER NOT NULL REFERENCES campaign,"
    "  arm INTEGER NOT NULL,"
    "  PRIMARY KEY (campaign, arm)"
    ") STRICT, WITHOUT ROWID;",
};

const struct cv_db_schema CV_THIRDPARTY_SCHEMA = {
    .application_id = 0x43565450, /* "CVTP" */
    .steps = steps,
    .count = CV_COUNT(steps),
    .first = 4,
    .advice = "move the files in its folder away; the next start makes new ones",
};

/* Add new parts at the end only: stored checksums refer to parts by index. */
static const struct cv_proof_part parts[] = {
    {.table = "campaign", .group = "id"},
    {.table = "item", .group = "campaign"},
    {.table = "plan", .group = "campaign"},
    {.table = "plan_want", .group = "campaign"},
    {.table = "release", .group = "campaign"},
    {.table = "release_noise", .group = "campaign"},
    {.table = "decision", .group = "campaign"},
    {.table = "standing", .group = "campaign"},
    {.table = "policy_state", .group = "campaign"},
    {.table = "parked", .group = "campaign"},
    {.table = "plan_opponent", .group = "campaign"},
    {.table = "used_up", .group = "campaign"},
    {.table = "contradiction", .group = "campaign"},
};

enum cv_err cv_thirdparty_strangers(struct cv_db *db, void (*told)(void *data, const char *what), void *data,
                                    struct cv_why *why) {
  return cv_db_strangers(db, told, data, why);
}

enum cv_err cv_thirdparty_prove(struct cv_db *db, struct cv_why *why) {
  const struct cv_proof_config config = {.part = parts, .parts = CV_COUNT(parts)};
  return cv_proof_begin(db, &config, why);
}
