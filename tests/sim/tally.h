/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the worlds reached each event. MUST: ten thousand seeds reach it; if they do not, the suite fails, since
 * the simulation no longer tests it. MAY: the count is only printed.
 */
#ifndef CV_SIM_TALLY_H
#define CV_SIM_TALLY_H

#include <stdint.h>

#define TALLIES(MUST, MAY)                                                         \
  MUST(EVENTS, "events")                                                           \
  MUST(CHECKS, "times that the invariants were checked")                           \
  MUST(FRAMES, "frames delivered")                                                 \
  MUST(PIECES, "pieces of a byte stream delivered")                                \
  MUST(SPLIT, "frames that came in several pieces")                                \
  MUST(JOINED, "pieces with several frames")                                       \
  MUST(CUT, "connections cut")                                                     \
  MUST(CUT_INSIDE, "connections that ended inside a frame")                        \
  MUST(FUZZED, "frames fuzzed")                                                    \
  MUST(REFUSED_TOKEN, "tokens refused")                                            \
  MUST(REFUSED_FRAME, "frames refused, and their connection closed")               \
  MUST(REFUSED_STREAM, "byte streams refused for their framing")                   \
  MUST(REFUSED_ORDER, "orders refused")                                            \
  MUST(ACCEPTED, "tokens acknowledged")                                            \
  MUST(DUPLICATE, "tokens sent again and acknowledged as duplicates")              \
  MUST(EXPIRED, "tokens that came too late")                                       \
  MUST(OVERDRAWN, "workers that spent their lifetime epsilon")                     \
  MUST(RELEASES, "releases stored")                                                \
  MUST(RELEASES_SENT, "releases sent")                                             \
  MUST(RELEASES_AGAIN, "releases sent again")                                      \
  MUST(PLANS, "plans stored")                                                      \
  MUST(PLANS_AGAIN, "plans recorded again at the third-party")                     \
  MUST(COMMITS_BROKER, "commits of the broker")                                    \
  MUST(COMMITS_THIRDPARTY, "commits of the third-party")                           \
  MUST(COMMITS_HERE, "small batches committed without the storage thread")         \
  MUST(PACED, "batches after which the next one was delayed")                      \
  MUST(NOT_KEPT, "gateways that could not store their tokens before giving them")  \
  MUST(FOLDS, "folds of the journal")                                              \
  MUST(FOLDED_RESTARTS, "restarts from folded chunks")                             \
  MUST(KILLS_BROKER, "broker killed")                                              \
  MUST(KILLS_THIRDPARTY, "third-party killed")                                     \
  MUST(KILLS_POOL, "gateways killed")                                              \
  MUST(KILLS_REQUESTER, "requesters killed")                                       \
  MUST(POWER_BROKER, "power lost at the broker")                                   \
  MUST(POWER_THIRDPARTY, "power lost at the third-party")                          \
  MUST(STOPS, "daemons that stopped because they could not store")                 \
  MUST(RESTARTS, "crashes survived: restarts from what was stored")                \
  MUST(START_REFUSED, "restarts that failed while the disk refused")               \
  MUST(DRAINED, "brokers asked to stop that received all answers first")           \
  MUST(STALLS, "parties paused for a while")                                       \
  MUST(STARVED, "cores that ran out of memory, and their daemon stopped")          \
  MUST(DISK_FULL, "writes refused: disk full")                                     \
  MUST(DISK_ERROR, "writes refused: I/O error")                                    \
  MUST(DISK_SHORT, "refused writes of which a part was written")                   \
  MUST(SYNC_LOST, "failed syncs after which lost data counted as clean")           \
  MUST(TORN, "files torn by a loss of power: some sectors kept, some not")         \
  MUST(UNLINK_LOST, "deleted files that came back")                                \
  MUST(ENTRY_LOST, "new files whose folder entry was lost")                        \
  MUST(JUMP_FORWARD, "clock jumps forward")                                        \
  MUST(JUMP_BACK, "clock jumps back")                                              \
  MUST(DEADLINES_EARLY, "deadlines that came early after a jump")                  \
  MUST(THIRDPARTY_LOST, "third-party's database lost")                             \
  MUST(THIRDPARTY_OLDER, "third-party's database rolled back to an older copy")    \
  MUST(BROKER_OLDER, "broker's database rolled back, refused by the anchor")       \
  MUST(BROKER_DAMAGED, "broker's database damaged, and detected")                  \
  MUST(RECOVERED, "broker's older database recovered")                             \
  MUST(ROTATED, "seal keys replaced")                                              \
  MUST(ROTATIONS_AGAIN, "rotations of the seal key repeated")                      \
  MUST(KEYS_PUT_BACK, "old seal keys added for an older copy")                     \
  MUST(BOTH_OLDER, "broker's database and anchor rolled back")                     \
  MUST(RECRUITMENTS, "worlds that recruit")                                        \
  MUST(PAID, "payments checked of ended recruitments")                             \
  MUST(GRAPHS, "worlds that play on a graph")                                      \
  MUST(SHOWN, "scores shown besides those of the arms played")                     \
  MUST(PAID_ON, "payments checked of recruitments after a rollback of the broker") \
  MUST(TWO_AT_ONCE, "worlds with campaigns of two requesters at once")             \
  MUST(PICKY, "tokens of workers that serve only one of the requesters")           \
  MUST(IMPOSED, "false messages of a third-party about another one's campaign")    \
  MUST(AWAY_WORKER, "rivals turned away: worker of a gateway's range")             \
  MUST(AWAY_ALONE, "rivals turned away: gateway of one worker")                    \
  MUST(AWAY_AROUND, "rivals turned away: range around another's")                  \
  MUST(AWAY_INSIDE, "rivals turned away: range inside another's")                  \
  MUST(AWAY_BELOW, "rivals turned away: another's first worker and below")         \
  MUST(AWAY_ABOVE, "rivals turned away: another's last worker and above")          \
  MAY(AWAY_SAME, "rivals turned away: the certificate of a third party")           \
  MUST(WAITS_WORKER, "gateways turned away by a worker of their range")            \
  MUST(WAITS_ALONE, "gateways turned away by a gateway of one worker")             \
  MUST(WAITS_AROUND, "gateways turned away by a range around theirs")              \
  MUST(WAITS_INSIDE, "gateways turned away by a range inside theirs")              \
  MUST(WAITS_BELOW, "gateways turned away for their first worker")                 \
  MUST(WAITS_ABOVE, "gateways turned away for their last worker")                  \
  MAY(WAITS_SAME, "gateways turned away while their certificate is connected")     \
  MUST(SAME, "rivals with the certificate of a gateway")                           \
  MUST(DELTAS, "worlds behind a privatizer with delta")                            \
  MUST(MATRICES, "worlds behind a privatizer of given probabilities")              \
  MUST(SMALLEST, "worlds whose operator requires several tokens in a release")     \
  MUST(FETCHED, "ended campaigns read again for a request")                        \
  MUST(NOT_AWAITED, "ended campaigns read for who did not wait any more")          \
  MUST(PURGED, "campaigns purged by their requesters")                             \
  MUST(GONE, "requests for purged campaigns")                                      \
  MUST(STANDINGS, "standings that a watcher received during a campaign")           \
  MUST(FORGOTTEN, "campaigns forgotten for newer ones")                            \
  MUST(PERSONS, "worlds of persons with rows of their own")                        \
  MUST(ROWS, "rows given by persons")                                              \
  MUST(WISHES, "persons that arrived with a wish")                                 \
  MUST(GRANTED, "persons that were assigned the arm of their wish")                \
  MUST(USED_UP, "campaigns of persons that ended because rows ran out")            \
  MUST(PARTS, "worlds of gateways with parts of a data file")                      \
  MUST(PARTS_LOCAL, "such worlds behind a privatizer")                             \
  MUST(PARTS_TWO, "such worlds with two brokers")                                  \
  MUST(PART_ROWS, "rows of parts that left")                                       \
  MUST(ASKED_ONCE, "tokens of campaigns that ask each question of a worker once")  \
  MUST(PARTS_AGAIN, "arms of parts of which rows had left before a restart")       \
  MUST(PARTS_DENIED, "records of parts that could not be read")                    \
  MUST(PARTS_OUT, "assignments declined since a part has no more rows of the arm") \
  MUST(SAME_TOKEN, "places asked again that had the same private token")           \
  MUST(WISHED, "assignments of liars' workers to the arm of their wish")           \
  MUST(GOLDS, "worlds with gold items")                                            \
  MUST(GOLD, "answers to gold items")                                              \
  MUST(FOUND, "workers found by their answers to gold items")                      \
  MUST(NEUTRAL, "tokens of found workers, counted with a neutral value")           \
  MUST(REPLAYS, "third-party databases replayed")                                  \
  MUST(COMPARED, "campaigns compared with their run without faults")               \
  MUST(SEARCHED, "searches of the disks for tickets and partial sums")             \
  MUST(SEALED, "values sealed, each with a different nonce")                       \
  MUST(END_COMPLETE, "campaigns ended: complete")                                  \
  MUST(END_TOKENS, "campaigns ended: token limit")                                 \
  MUST(END_DEADLINE, "campaigns ended: deadline")                                  \
  MUST(END_IDLE, "campaigns ended: idle")                                          \
  MUST(END_CANCELLED, "campaigns ended: cancelled")                                \
  MUST(END_LEDGER, "campaigns ended: privacy budget")                              \
  MUST(END_BUDGET, "campaigns ended: budget")                                      \
  MUST(END_RECOVERED, "campaigns ended: recovered")                                \
  MUST(END_FROZEN, "campaigns ended: frozen")                                      \
  MUST(TWO, "worlds with campaigns with two brokers")                              \
  MUST(CHECKS_TWO, "times that the co-broker was checked")                         \
  MUST(COMMITS_COBROKER, "commits of the co-broker")                               \
  MUST(KILLS_COBROKER, "co-broker killed")                                         \
  MUST(POWER_COBROKER, "power lost at the co-broker")                              \
  MUST(SPLIT_TOKENS, "tokens split")                                               \
  MUST(HALVES, "halves of the co-broker")                                          \
  MUST(DISCARDS, "closings without a half")                                        \
  MUST(ANSWER_ACCEPTED, "answers: counts")                                         \
  MUST(ANSWER_PROOF, "answers: the proof fails")                                   \
  MUST(ANSWER_PLACE, "answers: place or slot is taken")                            \
  MUST(ANSWER_WORKER, "answers: the worker has nothing left")                      \
  MUST(ANSWER_SESSION, "answers: no such session")                                 \
  MUST(OVERHEARD, "messages searched for shares")                                  \
  MUST(ANSWERS_AGAIN, "answers sent again")                                        \
  MUST(REVOKED, "certificates of gateways revoked, and replaced")                  \
  MUST(COBROKER_OLDER, "co-broker's database rolled back, refused by the anchor")  \
  MUST(COBROKER_BOTH_OLDER, "co-broker's database and anchor rolled back")         \
  MUST(COBROKER_RECOVERED, "co-broker's older database recovered")                 \
  MUST(LIE_PLACE, "lies: another place")                                           \
  MUST(LIE_ARM, "lies: another arm")                                               \
  MUST(LIE_WORKER, "lies: another slot")                                           \
  MUST(LIE_TWICE, "lies: a token twice")                                           \
  MUST(LIE_GARBAGE, "lies: another verifier share")                                \
  MUST(LIE_AGAIN, "lies: a batch under an earlier number")                         \
  MUST(LIE_SHORT, "lies: a closing too early")                                     \
  MUST(LIE_CLOSING, "lies: another closing")                                       \
  MUST(LIE_PLAN, "lies: another plan")                                             \
  MUST(LIE_OPENING, "lies: another opening")                                       \
  MUST(LIE_SILENCE, "lies: silence of the broker")                                 \
  MUST(LIE_SESSION, "lies: no such session")                                       \
  MUST(LIE_ACCEPTED, "lies: a token counts")                                       \
  MUST(LIE_HALF, "lies: another half")                                             \
  MUST(LIE_KEY, "lies: a second key")                                              \
  MUST(LIE_TERMS, "lies: other terms")                                             \
  MUST(LIE_SILENCE_CO, "lies: silence of the co-broker")                           \
  MUST(SHARED, "databases that two brokers share")                                 \
  MUST(TERMS, "terms begun")                                                       \
  MUST(STORED, "commits to a shared database")                                     \
  MUST(ABORTED, "commits to it that ended between fence and COMMIT")               \
  MUST(UNKNOWN, "commits to it whose answer was lost")                             \
  MUST(WAITING, "commits to it in doubt")                                          \
  MUST(CANCELED, "commits to it that its replica lacks")                           \
  MUST(FENCED, "commits that the fence refused")                                   \
  MUST(TERMINATED, "holders of the term that stood still")                         \
  MUST(HANDED_OVER, "terms handed over")                                           \
  MUST(STOPPED_WORKING, "brokers asked to stop while the storage works")           \
  MUST(KILLED_WORKING, "brokers killed inside a step, a load or a beat")           \
  MUST(STEPS_FAILED, "steps of standbys that failed")                              \
  MUST(LOADS_FAILED, "loads that failed after a term was begun")                   \
  MUST(LOADS_FAILED_ALONE, "loads that failed while no other broker had a term")   \
  MUST(LOADS_LOST, "loads whose session was lost")                                 \
  MUST(LOADS_DAMAGED, "loads of a damaged row")                                    \
  MUST(LOADS_OVERTAKEN, "loads during which another broker began a term")          \
  MUST(ACTIVE_LATE, "brokers that became active when their term was over")         \
  MUST(FROZEN, "active brokers frozen for longer than the server waits")           \
  MUST(REPLACED, "frozen brokers that another one replaced")                       \
  MUST(BEATS_FAILED, "beats that failed")                                          \
  MUST(OVERTAKEN, "terms ended by a ticket of a later one")                        \
  MUST(SILENT, "commits that a replaced server does not answer")                   \
  MUST(PROMOTED, "replicas promoted")                                              \
  MUST(PROMOTED_LACKING, "replicas promoted that lack a commit")                   \
  MUST(RESTORED, "shared databases restored, and refused")                         \
  MUST(FORKS, "forks of shared databases, refused")                                \
  MUST(LATE_DIALS, "brokers refused by the third-party, for a later term")         \
  MUST(LASTS, "last releases of arms whose data are used up")                      \
  MAY(END_USED_UP, "campaigns ended: scores used up")                              \
  MUST(END_REFUSED, "campaigns ended: refused")

#define TALLY_NAME(name, text) TALLY_##name,
enum tally { TALLIES(TALLY_NAME, TALLY_NAME) TALLY_COUNT };
#undef TALLY_NAME

struct tallies {
  uint64_t of[TALLY_COUNT];
};

/* The counters of this process. */
extern struct tallies *tallies;

static inline void tally_add(enum tally what, uint64_t n) {
  tallies->of[what] += n;
}

static inline void tally(enum tally what) {
  tally_add(what, 1);
}

/* Prints all counters to standard output; returns the number of MUST events that were not reached. */
unsigned tally_print(const struct tallies *all);

#endif
