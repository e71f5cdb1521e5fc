/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several broker processes over one PostgreSQL database: the term, the fence of each commit, the synchronous replica,
 * the anchor, workers that send again until they are answered, and the third-party's link. tests/model/check runs all
 * configurations and all planted faults.
 *
 * Modelled
 * - Database: `vis` is what a new transaction sees, `rep` the synchronous replica. A commit is sent, passes the fence
 *   (from then on it holds the lock of the row `meta`), waits for the replica, appears, and is answered. The session
 *   is a party of its own: it goes on with what was sent after its broker has died, or ends at any point.
 * - The wait for the replica can be cancelled, or the server restarted in it: the commit appears, no replica has it.
 *   The replica can be promoted: what it does not have is gone. The old primary's sessions end, or (OLD_LIVES) go on.
 * - The advisory lock belongs to the session. The model also lets it get lost while the session lives, as behind a
 *   pooler: otherwise no broker could commit after its term, and the fence would have nothing to do.
 * - A term is a row (number, id, last commit before it). It has no commit number of its own.
 * - Broker: takes the term, checks its anchor, loads, dials, answers, commits, writes the anchor, speaks. A lost
 *   session, an error or a warning ends the process, which starts again as a standby. Every broker runs at its own
 *   pace: one that was stopped (SIGSTOP) takes its next step late. A zombie is one whose term is over.
 * - A campaign of PLANS plans with one place each. The commit of a plan draws its noise, the commit of the token that
 *   takes the place charges the ledger and has the release. Two workers can have tickets for the same place.
 * - FAULTS faults happen at any time and in any order, of the kinds in the processes Faults and World. Nothing else is
 *   ever repeated (tests/model/check looks for cycles), so every run ends, and property 8 says how. After RESTORED, an
 *   older copy of the database in its place, only the anchors (7) and the chain (4) are checked.
 *
 * Not modelled: time limits (what they start can happen at any time), hashes, the third-party's own crashes, the
 * recovery of a restored database, several campaigns, refusals for want of room and answers to requesters (both
 * leave with a commit, as an accepted token does), and reading from an old primary.
 *
 * Properties: MUST(number, condition)
 *   1 an acknowledged token is in the database, once    2 a release is drawn once, a stream of noise is used once
 *   3 the ledger is charged first                       4 commits form one chain, of the last term alone
 *   5 no release from a link that a successor replaced  6 what is said without a commit, the successor would say too
 *   7 an anchor refuses a fork, and nothing else        8 every run ends with all tokens answered, all releases applied
 *   9 no campaign is frozen without cause
 */
#ifndef BROKERS
#define BROKERS 2
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef PLANS
#define PLANS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef TERMS
#define TERMS (FAULTS + 2)
#endif
#define NONE 7

#ifdef ONLY /* the property of this number */
#define MATTERS(property) (property == ONLY)
#else
#define MATTERS(property) true
#endif
#define MUST(property, condition) \
  if \
  :: !MATTERS(property) || (condition) \
  :: else -> assert(property == 0) \
  fi

/* States of a broker */
#define STANDBY 0
#define TAKING 1
#define LOADING 2
#define ACTIVE 3
#define CHECKED 4 /* only with CHECK_BEFORE */
#define COMMITTING 5
#define COMMITTED 6 /* and has not said so yet */
#define HUNG 7      /* for ever */
#define TORN 8      /* only with TORN_LOAD */

/* States of a session */
#define CLOSED 0
#define IDLE 1
#define SENT 2
#define FENCED 3
#define WAITING 4 /* for the replica */
#define DONE 5
#define WARNED 6 /* committed, but no replica has it */
#define FAILED 7

/* Kinds of a commit */
#define TERM 1
#define PLAN 2
#define CLOSE 3
#define FREEZE 4

typedef Database {
  byte term, last, plans, place, payer, charged;
  byte id[TERMS + 1];     /* the table of terms */
  byte before[TERMS + 1]; /* the last commit before each */
  byte noise[PLANS + 1];
  byte release[PLANS + 1]
};
Database vis, rep;
bool replicated = REPLICA; /* commits wait for the replica */
byte ids;                  /* ids of terms drawn so far */

typedef Session {
  byte state, kind, term, id, number, plan, worker, noise;
  bool old /* on a primary from whose replica another one was promoted */
};
Session session[BROKERS];
byte lock = NONE;

typedef Broker {
  byte state, term, id, draws, anchor_id, anchor_number, said;
  byte last, plans, place, payer; /* memory: as in the database */
  byte noise[PLANS + 1];
  byte release[PLANS + 1];
  byte heard[WORKERS] /* plan of a token that was received and not read yet */
};
Broker broker[BROKERS];

typedef Worker {
  byte link, ticket
};
Worker worker[WORKERS];

byte link = NONE, link_term, applied; /* the third-party's */
byte faults = FAULTS;
byte hung;

/* What an observer of all parties knows */
byte acknowledged, floor;
byte sent[PLANS + 1];
hidden byte i, j, at;

#ifdef RESTORED
Database bak;
bool has_backup, restored, disputed;
#else
#define restored 0
#define disputed 0
#endif

#define TOKEN(w, p) (1 << ((w) * PLANS + (p) - 1))
#define PLACE(p) (1 << ((p) - 1))
#define HAS(mask, bit) (((mask) & (bit)) != 0)
#define COUNT(mask) (((mask) & 1) + (((mask) >> 1) & 1))
#define IS_LOCKED(s) ((session[s].state == FENCED || session[s].state == WAITING) && !session[s].old)
#if BROKERS == 3
#define META_IS_FREE (!IS_LOCKED(0) && !IS_LOCKED(1) && !IS_LOCKED(2))
#define TERMS_SENT ((session[0].kind == TERM) + (session[1].kind == TERM) + (session[2].kind == TERM))
#else
#define META_IS_FREE (!IS_LOCKED(0) && !IS_LOCKED(1))
#define TERMS_SENT ((session[0].kind == TERM) + (session[1].kind == TERM))
#endif
#define SERVES(b) (broker[b].state >= ACTIVE && broker[b].state <= COMMITTED)

inline copy(to, from) {
  to.term = from.term; to.last = from.last; to.plans = from.plans;
  to.place = from.place; to.payer = from.payer; to.charged = from.charged;
  for (i : 0 .. TERMS) { to.id[i] = from.id[i]; to.before[i] = from.before[i] }
  for (i : 0 .. PLANS) { to.noise[i] = from.noise[i]; to.release[i] = from.release[i] };
  skip
}

inline check_database() {
  MUST(1, restored || (acknowledged & ~vis.payer) == 0);
  for (i : 1 .. PLANS) { MUST(2, restored || sent[i] == 0 || sent[i] == vis.release[i]) };
  skip
}

/* --- the database */

/* The session's commit appears to others. */
inline appear(b) {
  if
  :: session[b].old /* not in this database */
  :: else ->
    if
    :: session[b].kind == TERM ->
      vis.term++; ids++;
      vis.id[vis.term] = ids;
      vis.before[vis.term] = vis.last;
      session[b].term = vis.term; session[b].id = ids; session[b].number = vis.last
    :: else ->
      MUST(4, session[b].term == vis.term && session[b].number == vis.last + 1);
      vis.last = session[b].number;
      if
      :: session[b].kind == PLAN ->
        for (i : 1 .. PLANS) { MUST(2, i >= session[b].plan || vis.noise[i] != session[b].noise) }
        MUST(2, vis.noise[session[b].plan] == 0);
        vis.plans = session[b].plan;
#ifdef CHARGE_LATER
        vis.charged = vis.plans - 1;
#endif
        vis.noise[session[b].plan] = session[b].noise
      :: session[b].kind == CLOSE ->
        MUST(1, !HAS(vis.place, PLACE(session[b].plan)));
        vis.place = vis.place | PLACE(session[b].plan);
        vis.payer = vis.payer | TOKEN(session[b].worker, session[b].plan);
        vis.release[session[b].plan] = session[b].noise * 2 + session[b].worker;
#ifndef CHARGE_LATER
        vis.charged++
#else
        skip
#endif
      :: else -> MUST(9, restored)
      fi
    fi;
    check_database()
  fi
}

inline end_session(b) {
  if
  :: lock == b -> lock = NONE
  :: else
  fi;
  session[b].state = CLOSED; session[b].kind = 0; session[b].term = 0; session[b].id = 0; session[b].number = 0;
  session[b].plan = 0; session[b].worker = 0; session[b].noise = 0; session[b].old = 0
}

inline break_session(b) {
  if
  :: session[b].state == WAITING -> appear(b) /* without the replica */
  :: else
  fi;
  end_session(b)
}

/* Nobody reads this session's answer. */
#define IS_ORPHAN(b) (broker[b].state == STANDBY && session[b].state != CLOSED)

inline answer(b, result) {
  session[b].state = result;
  if
  :: IS_ORPHAN(b) -> end_session(b)
  :: else
  fi
}

#ifdef NO_FENCE
#define PASSES(b) true
#elif defined(CHECK_BEFORE)
#define PASSES(b) true
#elif defined(FENCE_TERM_ONLY)
#define PASSES(b) (session[b].kind == TERM || session[b].old || session[b].term == vis.term)
#else
#define PASSES(b) (session[b].kind == TERM || session[b].old || \
                   (session[b].term == vis.term && session[b].number == vis.last + 1))
#endif

#ifdef TERM_ASYNC
#define WAITS(b) (session[b].kind != TERM)
#else
#define WAITS(b) true
#endif

proctype Server(byte b) {
end:
  do
  :: d_step { session[b].state == SENT && (META_IS_FREE || session[b].old) ->
       printf("session of %d: fence\n", b);
       if
       :: PASSES(b) -> session[b].state = FENCED
       :: else -> answer(b, FAILED)
       fi }
  :: d_step { session[b].state == FENCED ->
       if
       :: (replicated && WAITS(b)) || session[b].old -> session[b].state = WAITING
       :: else -> printf("session of %d: commit\n", b); appear(b); answer(b, DONE)
       fi }
  :: d_step { session[b].state == WAITING && !session[b].old ->
       printf("session of %d: commit, replicated\n", b); appear(b); copy(rep, vis); answer(b, DONE) }
  :: d_step { IS_ORPHAN(b) && (session[b].state < WAITING || session[b].old) -> end_session(b) }
  /* A standby ends the session of a holder that has stood still, but not while it waits for the replica. */
  :: d_step { broker[b].state == HUNG && session[b].state != CLOSED &&
              (session[b].state != WAITING || session[b].old) -> end_session(b) }
  od
}

/* --- the third-party */

inline unlink(b) {
  if
  :: link == b ->
    if
    :: link_term == floor -> floor = 0
    :: else
    fi;
    link = NONE; link_term = 0
  :: else
  fi
}

/* --- a broker */

/* The process ends and starts again as a standby. */
inline leave(b) {
  printf("broker %d: ends its term %d\n", b, broker[b].term);
  broker[b].state = STANDBY; broker[b].term = 0; broker[b].id = 0;
  broker[b].last = 0; broker[b].plans = 0; broker[b].place = 0; broker[b].payer = 0;
#ifndef CLONED
  broker[b].draws = 0;
#endif
  for (i : 0 .. PLANS) { broker[b].noise[i] = 0; broker[b].release[i] = 0 }
  for (i : 0 .. WORKERS - 1) {
    broker[b].heard[i] = 0;
    if
    :: worker[i].link == b -> worker[i].link = NONE
    :: else
    fi
  }
  unlink(b);
  if
  :: session[b].state == IDLE || session[b].state >= DONE -> end_session(b)
  :: else
  fi
}

/* An anchor holds if its term is in the table and the term's last commit is not before it. Result in `at`. */
inline anchor_holds(b) {
#ifdef ANCHOR_BY_NUMBER
  at = (broker[b].anchor_number <= vis.last -> 1 : 0);
#else
  at = (broker[b].anchor_id == 0 -> 1 : 0);
  for (i : 1 .. TERMS) {
    if
    :: vis.id[i] != 0 && vis.id[i] == broker[b].anchor_id ->
      at = (broker[b].anchor_number <= (i == vis.term -> vis.last : vis.before[i + (i < TERMS -> 1 : 0)]) -> 1 : 0)
    :: else
    fi
  }
#endif
}

inline write_anchor(b, term_id, last_commit) {
  printf("broker %d: anchor (%d, %d)\n", b, term_id, last_commit);
  broker[b].anchor_id = term_id; broker[b].anchor_number = last_commit
}

inline load_places(b) {
  broker[b].place = vis.place;
  for (i : 0 .. PLANS) { broker[b].noise[i] = vis.noise[i]; broker[b].release[i] = vis.release[i] }
}

inline load_rest(b) {
  broker[b].last = vis.last; broker[b].plans = vis.plans; broker[b].payer = vis.payer
}

/* No broker serves from a database that does not have what this broker has said. */
inline serve(b) {
  MUST(7, (broker[b].said & ~(broker[b].payer | broker[b].place << 4)) == 0);
  printf("broker %d: serves in term %d, with %d commits\n", b, broker[b].term, broker[b].last);
  broker[b].state = ACTIVE
}

inline refuse(b) {
  printf("broker %d: anchor (%d, %d) is refused\n", b, broker[b].anchor_id, broker[b].anchor_number);
  MUST(7, restored);
#ifdef RESTORED
  disputed = true;
#endif
  skip
}

inline submit(b, commit, which, whose, stream) {
  if
  :: session[b].state == IDLE ->
    printf("broker %d: sends commit %d of kind %d, plan %d, noise %d\n", b, broker[b].last + 1, commit, which, stream);
    session[b].kind = commit; session[b].term = broker[b].term; session[b].number = broker[b].last + 1;
    session[b].plan = which; session[b].worker = whose; session[b].noise = stream;
#ifdef CHECK_BEFORE
    broker[b].state = CHECKED;
    if
    :: vis.term == broker[b].term
    :: else -> leave(b)
    fi
#else
    session[b].state = SENT; broker[b].state = COMMITTING
#endif
#ifdef ANCHOR_EARLY
    ; write_anchor(b, broker[b].id, broker[b].last + 1)
#endif
  :: else -> leave(b)
  fi
}

/* The answer of an accepted or repeated token. What is said, is said; whether it arrives is up to the link. */
inline acknowledge(b, whose, which) {
  printf("broker %d: acknowledges token %d of worker %d\n", b, which, whose);
  MUST(1, restored || HAS(vis.payer, TOKEN(whose, which)));
  acknowledged = acknowledged | TOKEN(whose, which);
  broker[b].said = broker[b].said | TOKEN(whose, which);
  if
  :: worker[whose].link == b && worker[whose].ticket == which -> worker[whose].ticket = 0
  :: else
  fi
}

inline expire(b, whose, which) {
  printf("broker %d: token %d of worker %d is expired\n", b, which, whose);
  MUST(6, restored || (HAS(vis.place, PLACE(which)) && !HAS(vis.payer, TOKEN(whose, which))));
  if
  :: worker[whose].link == b && worker[whose].ticket == which -> worker[whose].ticket = 0
  :: else
  fi
}

/* Sends the release with the number after the last one applied. */
inline send_release(b) {
  at = broker[b].release[applied + 1];
  printf("broker %d: sends release %d, content %d\n", b, applied + 1, at);
  MUST(2, restored || sent[applied + 1] == 0 || sent[applied + 1] == at);
  MUST(2, restored || vis.release[applied + 1] == at);
  sent[applied + 1] = at;
  broker[b].said = broker[b].said | PLACE(applied + 1) << 4;
  MUST(3, restored || vis.charged >= (sent[1] != 0 -> 1 : 0) + (PLANS == 2 && sent[PLANS] != 0 -> 1 : 0))
}

inline say(b) {
  if
  :: session[b].kind == CLOSE -> acknowledge(b, session[b].worker, session[b].plan)
  :: else
  fi
}

/* Reads a worker's token. */
inline hear(b, w) {
  at = broker[b].heard[w];
  broker[b].heard[w] = 0;
  if
  :: at > broker[b].plans -> /* a genuine ticket of an unknown plan: there is a successor */
#ifdef EXPIRED_BY_ZOMBIE
    expire(b, w, at)
#else
    leave(b)
#endif
  :: else ->
    if
    :: HAS(broker[b].payer, TOKEN(w, at)) -> acknowledge(b, w, at)
    :: else ->
      if
      :: HAS(broker[b].place, PLACE(at)) -> expire(b, w, at)
      :: else ->
#ifdef FRAMES_EARLY
        acknowledge(b, w, at);
#endif
        submit(b, CLOSE, at, w, broker[b].noise[at])
      fi
    fi
  fi
}

/* Gives out a place of the last plan. */
inline assign(b, w) {
  printf("broker %d: ticket of plan %d for worker %d\n", b, broker[b].plans, w);
  MUST(6, restored || vis.noise[broker[b].plans] == broker[b].noise[broker[b].plans]);
  worker[w].ticket = broker[b].plans;
  broker[b].heard[w] = broker[b].plans
}
#define MAY_ASSIGN(b, w) (broker[b].state == ACTIVE && worker[w].link == b && worker[w].ticket == 0 && \
                          broker[b].plans > 0 && !HAS(broker[b].place, PLACE(broker[b].plans)))

/* Dials the third-party, and compares positions. */
inline dial(b) {
  printf("broker %d: dials the third-party in term %d\n", b, broker[b].term);
  link = b; link_term = broker[b].term;
  floor = (link_term > floor -> link_term : floor);
  if
  :: applied > COUNT(broker[b].place) -> unlink(b); submit(b, FREEZE, 0, 0, 0)
  :: else
  fi
}

inline draw_plan(b) {
  broker[b].draws++;
#ifdef CLONED
  submit(b, PLAN, broker[b].plans + 1, 0, broker[b].draws)
#else
  submit(b, PLAN, broker[b].plans + 1, 0, broker[b].id * 4 + broker[b].draws)
#endif
}
#define HAS_NEXT_RELEASE(b) (link == b && broker[b].state == ACTIVE && applied < COUNT(broker[b].place))

inline remember(b) {
  if
  :: session[b].kind == PLAN ->
    broker[b].plans = session[b].plan;
    broker[b].noise[session[b].plan] = session[b].noise
  :: session[b].kind == CLOSE ->
    broker[b].place = broker[b].place | PLACE(session[b].plan);
    broker[b].payer = broker[b].payer | TOKEN(session[b].worker, session[b].plan);
    broker[b].release[session[b].plan] = session[b].noise * 2 + session[b].worker
  :: else
  fi;
  broker[b].last = session[b].number
}

#ifdef WARNING_IGNORED
#define IS_DONE(b) (session[b].state == DONE || session[b].state == WARNED)
#else
#define IS_DONE(b) (session[b].state == DONE)
#endif
#ifdef NO_TERM_COMPARED
#define MAY_LINK(b) true
#else
#define MAY_LINK(b) (link == NONE || broker[b].term > link_term)
#endif

proctype Member(byte b) {
end:
  do
  /* standing by */
  :: d_step { broker[b].state == STANDBY && lock == NONE && session[b].state == CLOSED && !disputed &&
              vis.term + TERMS_SENT < TERMS && (b == 0 || faults < FAULTS) ->
       printf("broker %d: takes the lock, sends its term\n", b);
       lock = b; session[b].state = SENT; session[b].kind = TERM; broker[b].state = TAKING }
#if REPLICA || defined(RESTORED)
  :: d_step { broker[b].state == STANDBY && vis.last >= 2 && !disputed && vis.last - 1 > broker[b].anchor_number ->
       anchor_holds(b);
       if
       :: at == 0 -> refuse(b)
       :: else ->
         for (i : 1 .. TERMS) { /* the term of the commit before the last one */
           if
           :: vis.id[i] != 0 && vis.before[i] < vis.last - 1 -> at = i
           :: else
           fi
         }
#ifdef ADVANCE_TO_LAST
         write_anchor(b, vis.id[vis.term], vis.last)
#else
         write_anchor(b, vis.id[at], vis.last - 1)
#endif
       fi }
#endif
  /* taking the term */
  :: d_step { broker[b].state == TAKING && IS_DONE(b) ->
       printf("broker %d: has term %d\n", b, session[b].term);
       session[b].state = IDLE; session[b].kind = 0; broker[b].term = session[b].term; broker[b].id = session[b].id;
       broker[b].last = session[b].number; broker[b].state = LOADING }
  :: d_step { broker[b].state == LOADING ->
       anchor_holds(b);
       if
#ifndef LOAD_UNCHECKED
       :: vis.term != broker[b].term -> leave(b) /* read with the load: what a later term wrote may have no replica */
#endif
       :: else ->
       if
       :: at == 0 -> refuse(b); leave(b)
       :: else ->
#ifndef NO_ANCHOR_OF_TERM
         write_anchor(b, broker[b].id, broker[b].last);
#endif
         load_rest(b);
#ifdef TORN_LOAD
         broker[b].state = TORN
#else
         load_places(b);
         serve(b)
#endif
       fi
       fi }
#ifdef TORN_LOAD
  :: d_step { broker[b].state == TORN -> load_places(b); serve(b) }
#endif
  /* the end of the term */
  :: d_step { broker[b].state != STANDBY && broker[b].state != HUNG &&
              (session[b].state == CLOSED || session[b].state >= WARNED || session[b].old || disputed) -> leave(b) }
  :: d_step { broker[b].state == ACTIVE && session[b].state == IDLE && vis.term > broker[b].term ->
       leave(b) } /* the idle commit of each second */
#ifdef CHECK_BEFORE
  :: d_step { broker[b].state == CHECKED && session[b].state == IDLE ->
       session[b].state = SENT; broker[b].state = COMMITTING }
#endif
  /* a token */
  :: d_step { broker[b].state == ACTIVE && broker[b].heard[0] != 0 -> hear(b, 0) }
  :: d_step { MAY_ASSIGN(b, 0) -> assign(b, 0) }
#if WORKERS == 2
  :: d_step { broker[b].state == ACTIVE && broker[b].heard[1] != 0 -> hear(b, 1) }
  :: d_step { MAY_ASSIGN(b, 1) -> assign(b, 1) }
#endif
  /* a commit is answered */
  :: d_step { broker[b].state == COMMITTING && IS_DONE(b) ->
       session[b].state = IDLE;
       remember(b);
#ifdef ANCHOR_LATE
       say(b);
#endif
       broker[b].state = COMMITTED }
  :: d_step { broker[b].state == COMMITTED ->
       write_anchor(b, broker[b].id, broker[b].last);
       say(b);
       broker[b].state = ACTIVE }
#ifdef DUPLICATE_EARLY
  :: d_step { broker[b].state == COMMITTING && session[b].kind == CLOSE && broker[b].heard[0] == session[b].plan ->
       broker[b].heard[0] = 0;
       acknowledge(b, 0, session[b].plan) }
#endif
#ifdef OUTCOME_LOOKED_UP /* a new session, and what is there counts */
  :: d_step { broker[b].state == COMMITTING && session[b].state == CLOSED && lock == NONE &&
              vis.term == broker[b].term ->
       lock = b; session[b].state = IDLE; load_places(b); load_rest(b); broker[b].state = ACTIVE;
       broker[b].heard[0] = (worker[0].link == b -> worker[0].ticket : 0) }
#endif
#ifdef OUTCOME_ASSUMED /* a new session, and the commit is repeated */
  :: d_step { broker[b].state == COMMITTING && session[b].state == CLOSED && lock == NONE ->
       lock = b; session[b].state = IDLE; broker[b].state = ACTIVE }
#endif
  /* the third-party */
  :: d_step { broker[b].state == ACTIVE && link != b && MAY_LINK(b) && !restored -> dial(b) }
  :: d_step { HAS_NEXT_RELEASE(b) ->
       MUST(5, broker[b].term >= floor);
       send_release(b);
       applied++ }
  :: d_step { link == b && broker[b].state == ACTIVE && applied == broker[b].plans && broker[b].plans < PLANS ->
       draw_plan(b) }
  od
}

/* --- workers */

proctype Crowd(byte w; byte b) {
end:
  do
  :: d_step { worker[w].link == NONE && SERVES(b) && (worker[w].ticket != 0 || applied < PLANS) ->
       printf("worker %d: dials broker %d\n", w, b);
       worker[w].link = b;
       broker[b].heard[w] = worker[w].ticket }
  :: d_step { worker[w].link == b && broker[b].state == HUNG -> worker[w].link = NONE }
  od
}

/* --- what goes wrong */

inline end_all_sessions() {
  for (j : 0 .. BROKERS - 1) {
    if
    :: session[j].state != CLOSED -> end_session(j)
    :: else
    fi
  };
  skip
}

proctype Faults(byte b) {
end:
  do
  /* the process is killed */
  :: d_step { faults > 0 && broker[b].state != STANDBY && broker[b].state != HUNG ->
       printf("FAULT: broker %d is killed\n", b); faults--; leave(b) }
  /* it stands still for ever, or its machine is cut off without a word */
  :: d_step { faults > 0 && hung < BROKERS - 1 && broker[b].state != STANDBY && broker[b].state != HUNG ->
       printf("FAULT: broker %d hangs\n", b); faults--; hung++; broker[b].state = HUNG }
  /* its session ends, from whatever cause */
  :: d_step { faults > 0 && session[b].state != CLOSED ->
       printf("FAULT: session of %d ends\n", b); faults--; break_session(b) }
#ifndef ONE_SESSION
  /* the lock alone gets lost */
  :: d_step { faults > 0 && lock == b -> printf("FAULT: lock of %d is lost\n", b); faults--; lock = NONE }
#endif
#if REPLICA
  /* the wait for the replica is cancelled */
  :: d_step { faults > 0 && session[b].state == WAITING ->
       printf("FAULT: wait of %d is cancelled\n", b); faults--; appear(b); answer(b, WARNED) }
#endif
  /* a release is sent and gets lost with the link; the link is cut */
  :: d_step { faults > 0 && HAS_NEXT_RELEASE(b) ->
       printf("FAULT: the next one of %d gets lost\n", b); faults--; send_release(b); unlink(b) }
  :: d_step { faults > 0 && link == b -> printf("FAULT: link of %d is cut\n", b); faults--; unlink(b) }
  od
}

proctype World() {
end:
  do
  /* the server crashes and starts again */
  :: d_step { faults > 0 ->
       printf("FAULT: the server starts again\n");
       faults--;
       for (j : 0 .. BROKERS - 1) {
         if
         :: session[j].state == WAITING && !session[j].old -> appear(j)
         :: else
         fi
       }
       end_all_sessions() }
  :: d_step { faults > 0 && worker[0].link != NONE ->
       printf("FAULT: worker 0 is cut off\n"); faults--; worker[0].link = NONE }
#if WORKERS == 2
  :: d_step { faults > 0 && worker[1].link != NONE ->
       printf("FAULT: worker 1 is cut off\n"); faults--; worker[1].link = NONE }
#endif
#if REPLICA
  /* the replica is promoted */
  :: d_step { faults > 0 && replicated ->
       printf("FAULT: the replica is promoted\n"); faults--; replicated = false;
       copy(vis, rep);
#ifdef OLD_LIVES
       for (j : 0 .. BROKERS - 1) {
         if
         :: session[j].state != CLOSED -> session[j].old = 1
         :: else
         fi
       }
       lock = NONE;
#else
       end_all_sessions();
#endif
       check_database() }
#endif
#ifdef RESTORED
  :: d_step { !has_backup -> printf("backup at commit %d\n", vis.last); has_backup = true; copy(bak, vis) }
  :: d_step { faults > 0 && has_backup && !restored ->
       printf("FAULT: the backup is restored\n"); faults--; restored = true;
       copy(vis, bak); copy(rep, bak);
       end_all_sessions() }
#endif
  od
}

/* Nothing more can happen. */
proctype End() {
end:
  timeout;
  MUST(8, restored || (applied == PLANS && worker[0].ticket == 0 && worker[WORKERS - 1].ticket == 0))
}

init {
  atomic {
    byte k;
    for (k : 0 .. WORKERS - 1) { worker[k].link = NONE };
    for (k : 0 .. BROKERS - 1) {
      run Server(k);
      run Member(k);
      run Faults(k);
      run Crowd(0, k);
#if WORKERS == 2
      run Crowd(1, k)
#endif
    }
    run World();
    run End()
  }
}
