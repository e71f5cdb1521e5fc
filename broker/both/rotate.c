/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/rotate.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/admin/probe.h"
#include "common/base/clock.h"
#include "common/base/finding.h"
#include "common/daemon/trail.h"

enum { ASK_MS = 5000, TAKES_MS = 60000, AGAIN_MS = 50, DAY_S = 86400 };

const char *const CV_ROTATE_WORDS[] = {"run", "status", "rotate", NULL};

struct cv_event cv_rotate_event(const struct cv_key_name *from, const struct cv_key_name *to,
                                struct cv_event_fact facts[2]) {
  facts[0] = (struct cv_event_fact){.name = "from", .text = from->text};
  facts[1] = (struct cv_event_fact){.name = "to", .text = to->text};
  return (struct cv_event){.what = "seal", .actor = "operator", .fact = facts, .facts = 2};
}

struct date {
  char text[64];
};

/* "made 2026-11-24, 3 days ago" */
static struct date date_of(uint64_t made_s) {
  struct date date = {.text = "made at an unknown time"};
  time_t seconds = (time_t)made_s;
  uint64_t now_s = cv_clock_wall_ms() / 1000;
  struct tm tm;
  char day[16];
  if (made_s > 0 && gmtime_r(&seconds, &tm) != NULL && strftime(day, sizeof(day), "%Y-%m-%d", &tm) > 0) {
    uint64_t days = now_s > made_s ? (now_s - made_s) / DAY_S : 0;
    (void)snprintf(date.text, sizeof(date.text), "made %s, %" PRIu64 " days ago", day, days);
  }
  return date;
}

static struct cv_key_name name_of(const struct cv_ring *ring, size_t i) {
  struct cv_key_id id = cv_key_id(ring->item[i].key);
  return cv_key_name(&id);
}

/* What a rotation or a look works on. */
struct work {
  const struct cv_rotate_party *party;
  struct cv_ring ring; /* as the file has it */
  int lock;            /* -1: none */
};

static bool exists(const struct cv_rotate_party *party) {
  struct stat info;
  return party->is_shared || stat(party->database, &info) == 0;
}

static enum cv_err begin(const struct cv_rotate_party *party, bool locks, struct work *work, struct cv_why *why) {
  *work = (struct work){.party = party, .lock = -1};
  if (locks && !exists(party)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "database %s: does not exist yet, so there is no key to replace",
                   party->database);
  }
  CV_TRY(locks ? cv_ring_lock(party->seal_key, &work->lock, why) : CV_OK);
  return cv_ring_read(party->seal_key, &work->ring, why);
}

static void end(struct work *work) {
  cv_ring_fini(&work->ring);
  if (work->lock >= 0) {
    (void)close(work->lock);
  }
}

static int fail(const struct cv_why *why, const char *advice) {
  cv_finding(CV_FINDING_WRONG, advice, "%s", why->text);
  return 1;
}

/* ---- a running program ---- */

static enum cv_err ask(const struct work *work, const char *method, const char *url, struct cv_key_name *ret,
                       struct cv_why *why) {
  const char *admin = work->party->admin;
  if (admin == NULL) {
    return cv_fail(why, CV_ERR_STATE,
                   "database %s: in use by a running %s, whose configuration has no admin socket; expected one, or a "
                   "stopped %s",
                   work->party->database, work->party->name, work->party->name);
  }
  return cv_probe_ask(admin, method, url, ASK_MS, ret->text, sizeof(ret->text), why);
}

/* The running program reads the file, which has the new key in front by now, and wraps its keys. */
static enum cv_err rewrap_live(const struct work *work, struct cv_why *why) {
  struct cv_key_name next = name_of(&work->ring, 0), now;
  uint64_t until_ms = cv_clock_mono_ms() + TAKES_MS;
  CV_TRY(ask(work, "POST", "/seal/rewrap", &now, why));
  if (strcmp(now.text, next.text) != 0) {
    return cv_fail(why, CV_ERR_STATE, "the running %s reads another key file, with key %s; expected key %s of %s",
                   work->party->name, now.text, next.text, work->party->seal_key);
  }
  for (;;) {
    CV_TRY(ask(work, "GET", "/seal", &now, why));
    if (strcmp(now.text, next.text) == 0) {
      return CV_OK;
    }
    if (cv_clock_mono_ms() >= until_ms) {
      return cv_fail(why, CV_ERR_STATE, "the running %s has not wrapped its keys within %d s", work->party->name,
                     TAKES_MS / 1000);
    }
    (void)poll(NULL, 0, AGAIN_MS);
  }
}

/* ---- rotate ---- */

/* Puts a new key in front, unless an earlier rotation has done that and stopped. */
static enum cv_err put_new(struct work *work, struct cv_why *why) {
  if (work->ring.n > 1) {
    return CV_OK;
  }
  enum cv_err err = cv_ring_renew(&work->ring, cv_clock_wall_ms() / 1000);
  if (err != CV_OK) {
    return cv_fail(why, err, "cannot make a new key: %s", cv_err_text(err));
  }
  return cv_ring_replace(work->party->seal_key, &work->ring, why);
}

static enum cv_err rotate_stopped(struct work *work, void *store, struct cv_why *why) {
  struct cv_vault *vault = work->party->vault(store);
  struct cv_vault_count count;
  struct cv_event_fact facts[2];
  CV_TRY(put_new(work, why));
  struct cv_key_name to = name_of(&work->ring, 0), from = name_of(&work->ring, 1);
  const struct cv_event event = cv_rotate_event(&from, &to, facts);
  CV_TRY(cv_trail_record(work->party->audit, work->party->program, &event, why));
  CV_TRY(cv_vault_rekey(vault, &work->ring, why));
  CV_TRY(cv_vault_count(vault, &count, why));
  CV_REQUIRE(count.keys > 0 && count.current == count.keys);
  return CV_OK;
}

static enum cv_err rotate_live(struct work *work, struct cv_why *why) {
  struct cv_key_name now;
  CV_TRY(ask(work, "GET", "/seal", &now, why)); /* before the file changes: a program that cannot be asked */
  CV_TRY(put_new(work, why));
  return rewrap_live(work, why);
}

static enum cv_err rotate_keys(struct work *work, struct cv_why *why) {
  void *store;
  enum cv_err err = work->party->open(work->party, &work->ring, false, &store, why);
  if (err == CV_ERR_STATE) {
    return rotate_live(work, why);
  }
  CV_TRY(err);
  err = rotate_stopped(work, store, why);
  work->party->close(store);
  return err;
}

/* The last step; until here the old keys are in the file. */
static enum cv_err drop_old(const struct work *work, struct cv_why *why) {
  struct cv_ring current;
  if (cv_ring_copy(&work->ring, 1, &current) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_ring_replace(work->party->seal_key, &current, why);
  cv_ring_fini(&current);
  return err;
}

static void tell_rotated(const struct work *work) {
  const struct cv_ring_key *key = &work->ring.item[0];
  cv_finding(CV_FINDING_OK, "make a copy of the file, apart from copies of the state folder",
             "key file %s: key %" PRIu32 " (%s) now wraps all stored keys", work->party->seal_key, key->number,
             name_of(&work->ring, 0).text);
  for (size_t i = 1; i < work->ring.n; i++) {
    cv_finding(
        CV_FINDING_NOTE,
        "destroy its other copies; copies of the state folder from before now open only with it, so destroy these, "
        "too, or keep one copy of the key apart from them until the last of them is gone",
        "key %" PRIu32 " (%s) is no longer in the file and opens nothing in the database", work->ring.item[i].number,
        name_of(&work->ring, i).text);
  }
}

static int rotate(const struct cv_rotate_party *party) {
  struct work work;
  struct cv_why why;
  enum cv_err err = begin(party, true, &work, &why);
  err = err == CV_OK ? rotate_keys(&work, &why) : err;
  err = err == CV_OK ? drop_old(&work, &why) : err;
  if (err == CV_OK) {
    tell_rotated(&work);
  }
  bool begun = err != CV_OK && work.ring.n > 1;
  end(&work);
  if (begun) {
    struct cv_why reason = why;
    (void)cv_fail(&why, err, "%.600s; %s has the new key and the old one: repeat the command when this is mended",
                  reason.text, party->seal_key);
  }
  return err == CV_OK ? 0 : fail(&why, "");
}

/* ---- status ---- */

static void tell_keys(const struct work *work) {
  for (size_t i = 0; i < work->ring.n; i++) {
    const struct cv_ring_key *key = &work->ring.item[i];
    cv_finding(i == 0 ? CV_FINDING_OK : CV_FINDING_NOTE,
               i == 0 ? "" : "crowdveil seal rotate removes it, after all keys are wrapped by the first one",
               "key file %s: key %" PRIu32 " (%s), %s, %s", work->party->seal_key, key->number,
               name_of(&work->ring, i).text, date_of(key->made_s).text, i == 0 ? "current" : "only unwraps");
  }
}

static enum cv_err tell_live(const struct work *work, struct cv_why *why) {
  struct cv_key_name now;
  CV_TRY(ask(work, "GET", "/seal", &now, why));
  bool same = strcmp(now.text, name_of(&work->ring, 0).text) == 0;
  cv_finding(same ? CV_FINDING_OK : CV_FINDING_WARNING, same ? "" : "crowdveil seal rotate",
             "database %s: in use by a running %s, which wraps its keys by key %s", work->party->database,
             work->party->name, now.text);
  return CV_OK;
}

static enum cv_err tell_stopped(const struct work *work, void *store, struct cv_why *why) {
  struct cv_vault *vault = work->party->vault(store);
  struct cv_key_id current = cv_vault_current(vault);
  struct cv_vault_count count;
  CV_TRY(cv_vault_count(vault, &count, why));
  bool whole = count.current == count.keys;
  cv_finding(whole ? CV_FINDING_OK : CV_FINDING_WARNING, whole ? "" : "crowdveil seal rotate",
             "database %s: key %s wraps %" PRIu64 " of %" PRIu64 " stored keys", work->party->database,
             cv_key_name(&current).text, count.current, count.keys);
  return CV_OK;
}

static enum cv_err tell_database(const struct work *work, struct cv_why *why) {
  void *store;
  if (!exists(work->party)) {
    cv_finding(CV_FINDING_NOTE, "", "database %s: does not exist yet", work->party->database);
    return CV_OK;
  }
  enum cv_err err = work->party->open(work->party, &work->ring, true, &store, why);
  if (err == CV_ERR_STATE) {
    return tell_live(work, why);
  }
  CV_TRY(err);
  err = tell_stopped(work, store, why);
  work->party->close(store);
  return err;
}

static int tell_status(const struct cv_rotate_party *party) {
  struct work work;
  struct cv_why why;
  enum cv_err err = begin(party, false, &work, &why);
  if (err == CV_OK) {
    tell_keys(&work);
    err = tell_database(&work, &why);
  }
  end(&work);
  return err == CV_OK ? 0 : fail(&why, "");
}

int cv_rotate_run(const struct cv_rotate_party *party, enum cv_rotate_mode mode) {
  return mode == CV_ROTATE_ROTATE ? rotate(party) : tell_status(party);
}
