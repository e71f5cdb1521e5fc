/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants. The truth receives everything that is sent and stored, and fails the world at the first thing that
 * contradicts them. It knows each place's score; of persons and parts each row's, and beside gold items each token's.
 *
 *   1 An acknowledged token is in exactly one epoch's sum, once, whatever crashes. After every batch each open epoch
 *     has the number of tokens and the sum of its filled places, and as many slots are taken as tokens are counted; no
 *     place and no slot is acknowledged twice; after every restart all acknowledged tokens are present; each release
 *     is the sum of its places and its noise. (Places and slots of an ended campaign are not kept: not checked.)
 *   2 A release that may have left the broker is never drawn again. Every release that leaves, is exported or is loaded
 *     after a restart equals the one first stored; the noise of an epoch is stored before its tokens arrive and does
 *     not change. A broker that is rolled back to an older copy is refused by its anchor; if its anchor is rolled back,
 *     too, the third-party's campaign freezes. (After that nothing else is checked.)
 *   3 The ledger is charged before a release leaves. Before a release is sent it is stored, with the cost of its stream
 *     so far, and the anchor is durable. Workers' accounts hold at least the cost of the acknowledged tokens; after
 *     restarts and at the end exactly that of the accepted tokens, within each worker's limit.
 *   4 The third-party applies a release once. It names none before it is stored; at the end its database is replayed
 *     through the policy and gives the same decisions.
 *   5 No ticket, partial sum or key is on a disk in plain text: both disks are searched at losses of power and at the
 *     end for the latest tickets and partial sums; no nonce seals twice. (Logs, core dumps and memory: not here.)
 *   6 Every queue is bounded: workers waiting, assignments, requests, places to give again, chunks to write, the
 *     journal in memory, the third-party's backlog, bytes in flight, events. (Real sockets and real time: not here.)
 *   7 If the noise is a function of the place, the end equals that of the run without faults (oracle.h): plans,
 *     releases with their noisy sums, standings, epsilon spent; if the campaign ended early, the first part of them.
 *   8 Bad input is refused and harms only its sender: fuzzed frames, broken streams, requests for other requesters'
 *     campaigns; the connection of an honest peer is never closed. (Files, options and certificates: not here.)
 *   9 A recruitment pays each accepted token of an arm once, at the arm's cost, to the arm's worker, and only that
 *     worker gets places of the arm; payments and what open epochs may still cost are within the budget. The records
 *     agree after every batch and restart, and so does what the requester receives. A broker that was rolled back and
 *     recovered assigns nothing more in an earlier campaign; what was acknowledged before and after is within the
 *     budget. (If its anchor was rolled back, too, it may spend again what it has forgotten, and no more than that.)
 *  10 On a feedback graph an assignment shows the arm of its place and those of its neighbours that the plan names;
 *     each of their sums gets one value, once, as in 1; no other arm is released; the worker is charged for each score.
 *  11 A worker of an honest gateway gives no more than its owner permits, whatever is asked and whichever party dies: a
 *     score leaves only after the gateway has stored that it was given.
 *  12 No two connections of the broker cover the same worker, except an older one of the same certificate, which is
 *     closed; a later peer is turned away for that reason only; no peer is asked for a worker of another one's.
 *  13 No epoch is smaller than the operator's smallest release, unless each token is certainly protected by itself.
 *  14 A gateway's workers give nothing to a campaign of a requester that it does not serve, whatever the campaign's
 *     name; and a third-party receives nothing about a campaign that another one opened, and cannot change it.
 *  15 An ended campaign leaves memory, and is unchanged whenever it is fetched: its record equals what its requester
 *     received, and an export has all its releases. A purged or forgotten campaign never comes back, no other
 *     requester's campaign is deleted, its number is not used again, and its cost stays on its workers' accounts.
 *  16 A person gives each of its rows at most once, whichever party dies, for the row's arm and with its score, and
 *     after its gateway has stored that. It wishes for an arm that it has a row of, and is assigned that arm or none;
 *     without faults every person that is wanted arrives.
 *  17 A worker's counted answers to gold items, and whether they find it, are those that it gave; a restart forgets
 *     none that was acknowledged. From then on its tokens fill their places with a neutral value, as in 1. No plan and
 *     no release has a gold item.
 *  18 Behind a privatizer a place has the same token whenever it is asked for, by whatever campaign, of whichever
 *     gateway, before and after a restart: the one that its coin gives. A row of a part leaves once to a campaign, for
 *     one ticket, also after a crash, and after its gateway has stored that; its token is that of the row's own coin.
 *   S Of brokers that share a database no two serve in one term. One that says that it is active has the term and has
 *     proven what it has loaded by a commit in it; its state is first, then the line of its log, then its health. One
 *     that stands by says its failure in its log, once, and in its health until a step succeeds; it has freed what it
 *     could not load, and rests after that. One whose term is over takes no third-party from its successor. A session
 *     whose broker goes on never stands still. Within a bounded time after a fault a broker serves (standby.c has the
 *     bounds). Real time and real servers: not here.
 *   D A deadline ends a campaign in time on either clock: within its length of any one uptime however the wall clock
 *     jumps, within its length of wall time if that does not jump; early only after a jump.
 */
#ifndef CV_SIM_TRUTH_H
#define CV_SIM_TRUTH_H

#include "broker/core.h"
#include "tests/sim/thirdparty.h"
#include "tests/sim/world.h"

struct truth *truth_new(struct world *world);
void truth_free(struct truth *truth);

/* The commit that the broker's anchor would have after a power failure now. */
uint64_t truth_anchored(const struct world *world);
/* The same for one of the brokers; 0: it has no anchor. */
uint64_t truth_anchor_of(const struct party *broker);
/* The broker's core has closed a batch; it is stored and anchored; the broker has restarted from the stored state. */
void truth_flushed(struct truth *truth, struct cv_broker *core);
void truth_stored(struct truth *truth, uint64_t commit);
void truth_restarted(struct truth *truth, struct cv_broker *core);
/* A peer has connected to the broker, or was turned away. */
void truth_joined(struct truth *truth, const struct cv_broker *core, const struct cv_identity *identity, bool joined);
/* The broker has read its clocks. */
void truth_ticked(struct truth *truth, const struct cv_broker *core);
/* A value is sealed with this nonce. The world that receives the nonces; NULL: none. */
void truth_sealed(struct truth *truth, const uint8_t *nonce);
/* The first bits that a broker draws in a term: no other term has drawn them. */
void truth_drew(struct truth *truth, uint64_t bits);
/* A key is wrapped, which must not be on any disk. */
void truth_wrapped(struct truth *truth, const uint8_t *key);
void truth_listen_to_seals(struct truth *truth);
/* Searches both disks for secrets. */
void truth_search(struct truth *truth);
/* Searches a message for secrets of the co-broker, and for sums of either. */
void truth_overhear(struct truth *truth, const char *whose, const uint8_t *bytes, size_t n);
/* A frame leaves the broker for a worker or the third-party. */
void truth_told_crowd(struct truth *truth, const struct cv_crowd_frame *frame);
void truth_told_rank(struct truth *truth, const struct cv_rank_frame *frame);
/* The same for a third-party of another name; and the number of a campaign that the right one has certainly opened,
 * 0: none. */
void truth_told_impostor(struct truth *truth, const struct cv_rank_frame *frame);
uint64_t truth_opened(const struct truth *truth, uint64_t which);
void truth_thirdparty_lost(struct truth *truth);
/* The broker has processed these tokens; its answers from number `from` on are about them, and leave after the
 * commit. */
void truth_counted(struct truth *truth, const struct cv_crowd_frame *answers, size_t from,
                   const struct cv_token *token);
/* An honest gateway was asked for an opinion of this worker, and sends this value; then the frame leaves. */
void truth_said(struct truth *truth, uint64_t worker, const struct part *part, int64_t value);
void truth_gave(struct truth *truth, const struct cv_crowd_frame *frame);
/* A requester asks for its campaign `owner`, counted from 1 over all requesters; it receives that campaign's number. */
void truth_asking(struct truth *truth, uint32_t owner);
void truth_accepted(struct truth *truth, uint32_t owner, uint64_t id);
/* A requester asks to purge a campaign; receives that it is purged; receives that it was purged earlier. */
void truth_purging(struct truth *truth, uint64_t id);
void truth_purged(struct truth *truth, uint64_t id);
void truth_gone(struct truth *truth, uint64_t id);
/* Messages that reach the requester. */
void truth_finished(struct truth *truth, const struct cv_finished *finished);
void truth_exported(struct truth *truth, const struct cv_part *part);

/* Rollback: the moment of the snapshot, whether enough has happened since, whether the database is behind its
 * anchor. */
void truth_snapshot(struct truth *truth);
bool truth_has_moved(const struct truth *truth);
bool truth_is_behind(const struct truth *truth);
/* Nothing is known to have been stored at the snapshot: with that copy the database counts as lost. */
bool truth_snapshot_is_empty(const struct truth *truth);
void truth_rolled_back(struct truth *truth);
/* 3, after a recovery: the ledger covers all releases and tokens from before, although the database lacks them. */
void truth_recovered(struct truth *truth, struct cv_broker *core);

/* Every requester has received the end, and no message is in flight. */
void truth_end(struct truth *truth);

/* To open the tickets in the broker's messages. */
const struct cv_tagger *world_tagger(struct world *world);

#endif
