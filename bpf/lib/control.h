/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SCC, the sender's side: paces to the receiver's grant, stretched by queueing delay and braked by
 * loss, with the window as a cap on bursts. Without grants it behaves as Reno. What it knows of a
 * socket's instance comes through the socket storage, for it is registered once per kernel.
 */
#ifndef GRADLANE_LIB_CONTROL_H
#define GRADLANE_LIB_CONTROL_H

#include "common.h"
#include "law.h"
#include "socket.h"

/* Values of sk_pacing_status. */
#define PACING_NONE 0
#define PACING_NEEDED 1

/* A grant goes stale after this many acknowledgements without a new one, and not before this many
 * round trips and this time: bidirectional traffic acknowledges on data, which carries no grants.
 */
#define GL_STALE_ACKS 16U
#define GL_STALE_ROUND_TRIPS 8U
#define GL_STALE_LEAST_NS 20000000ULL
/* Each time it goes stale it is halved; after this many times the socket goes on without grants. */
#define GL_STALE_TIMES 3U

/* The loss brake, in 1/1024: what is left of the rate after a loss episode, at least, and per
 * lossless round. */
#define GL_BRAKE_LOSS 896U
#define GL_BRAKE_LEAST 128U
#define GL_BRAKE_RECOVER 32U

/* A round counts with 1/16 in the average of the marked share (RFC 8257). */
#define GL_ALPHA_WEIGHT 16U

/* Each burst is sent up to a quarter of a gap late, at random, so that senders do not march in
 * step; the next gap is shorter by that, so that none falls behind. In 1/1024 of a gap.
 */
#define GL_LATE_MASK 255U

/* A socket's state: icsk_ca_priv, 104 bytes at the most. */
struct gl_scc_state {
	__u64 grant_ns;	    /* arrival of the grant in use */
	__u64 round_ns;	    /* begin of this round trip */
	__u32 acks;	    /* acknowledgements since the grant arrived */
	__u32 brake;	    /* 1/1024 */
	__u32 queue_us;	    /* latest sample of the queueing delay */
	__u32 prior_window; /* before the window was reduced, for undo */
	__u32 delivered;    /* segments, at the begin of this round trip */
	__u32 marked;	    /* of them with congestion marks */
	__u32 alpha;	    /* moving average of the marked share, 1/1024 */
	__u64 restart_rate; /* early in the last block, bytes per second */
	__u8 block_acks;    /* acknowledgements since the block began, at most 2 */
	__u8 late;	    /* of the last burst, 1/1024 of a gap */
	__u8 granted;	    /* a grant is in use */
	__u8 lossy_round;   /* something was lost in this round trip */
};

_Static_assert(sizeof(struct gl_scc_state) <= 104, "must fit icsk_ca_priv");

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct gl_scc_state *state_of(const struct sock *sk)
{
	return (struct gl_scc_state *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Returns how often the grant has gone stale by now; 0 for a fresh one. */
static __always_inline __u32 times_stale(const struct gl_scc_state *state, __u32 round_trip_us,
					 __u64 now)
{
	__u64 period = gl_max64(GL_STALE_LEAST_NS, GL_STALE_ROUND_TRIPS * 1000ULL * round_trip_us);
	__u64 by_time = (now - state->grant_ns) / period;

	return (__u32)gl_min64(by_time, state->acks / GL_STALE_ACKS);
}

static __always_inline void note_queue(struct gl_scc_state *state, const struct rate_sample *rs,
				       __u32 round_trip_us)
{
	long sample = rs->rtt_us;

	if (sample <= 0 || rs->is_ack_delayed)
		return;
	state->queue_us = (__u32)sample > round_trip_us ? (__u32)sample - round_trip_us : 0;
}

/* Once per round trip: congestion marks brake as in DCTCP (RFC 8257), a clean round lifts the
 * brake. */
static __always_inline void end_round(struct gl_scc_state *state, const struct tcp_sock *tp,
				      __u32 round_trip_us, __u64 now)
{
	__u32 delivered = tp->delivered - state->delivered;
	__u32 marked = tp->delivered_ce - state->marked;

	if (now - state->round_ns < (round_trip_us + state->queue_us) * 1000ULL)
		return;
	if (delivered)
		state->alpha += gl_min64(marked, delivered) * GL_ONE / delivered / GL_ALPHA_WEIGHT -
				state->alpha / GL_ALPHA_WEIGHT;
	if (marked)
		state->brake = (__u32)gl_max64(state->brake - (__u64)state->brake * state->alpha /
								      GL_ONE / 2,
					       GL_BRAKE_LEAST);
	else if (!state->lossy_round)
		state->brake = (__u32)gl_min64(state->brake + GL_BRAKE_RECOVER, GL_ONE);
	state->lossy_round = 0;
	state->round_ns = now;
	state->delivered = tp->delivered;
	state->marked = tp->delivered_ce;
}

static __always_inline void pace(struct sock *sk, __u64 rate)
{
	/* A limit that the user set always wins. */
	sk->sk_pacing_rate = gl_min64(rate, sk->sk_max_pacing_rate);
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
}

/* The rate whose gap is varied as said at GL_LATE_MASK. */
static __always_inline __u64 varied_rate(struct gl_scc_state *state, __u64 rate)
{
	__u32 late = bpf_get_prandom_u32() & GL_LATE_MASK;
	__u32 gap = GL_ONE + late - state->late;

	state->late = (__u8)late;
	return rate * GL_ONE / gap;
}

static __always_inline void without_grant(struct sock *sk, __u32 ack, __u32 acked)
{
	struct inet_connection_sock *connection = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = tcp_sk(sk);

	/* The field also sets the kernel's burst size, so "unlimited" has to be said. */
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	if (connection->icsk_ca_state == TCP_CA_Recovery ||
	    connection->icsk_ca_state == TCP_CA_CWR) {
		if (tp->snd_cwnd > tp->snd_ssthresh)
			tp->snd_cwnd = tp->snd_ssthresh;
		return;
	}
	tcp_reno_cong_avoid(sk, ack, acked);
}

static __always_inline void control(struct sock *sk, __u32 ack, const struct rate_sample *rs)
{
	struct gl_socket *socket = bpf_sk_storage_get(&gl_socket, sk, 0, 0);
	struct gl_scc_state *state = state_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 round_trip_us = tp->rtt_min.s[0].v;
	__u32 acked = rs->acked_sacked > 0 ? (__u32)rs->acked_sacked : 0;
	__u64 now = bpf_ktime_get_ns();
	__u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	__u32 unsent = tp->write_seq - tp->snd_nxt;
	__u32 stale, window;
	__u8 restart_window;
	__u64 grant, rate;

	if (!socket || !(socket->flags & GL_SOCKET_GRANTED)) {
		without_grant(sk, ack, acked);
		return;
	}
	if (socket->grant_ns != state->grant_ns) {
		state->grant_ns = socket->grant_ns;
		state->acks = 0;
		state->granted = 1;
	} else {
		state->acks++;
	}
	note_queue(state, rs, round_trip_us);
	end_round(state, tp, round_trip_us, now);
	stale = times_stale(state, round_trip_us, now);
	if (stale >= GL_STALE_TIMES) {
		state->granted = 0;
		without_grant(sk, ack, acked);
		return;
	}
	grant = socket->grant >> stale;
	restart_window = socket->restart_window;
	/* This host's own link may be the narrower one. */
	if (socket->own_grant) {
		grant = gl_min64(grant, socket->own_grant);
		restart_window = gl_min64(restart_window, socket->own_restart_window);
	}
	grant = grant * state->brake / GL_ONE;
	rate = gl_stretched_rate(grant, mss * gl_restart_segments(restart_window), state->queue_us,
				 socket->queue_tolerance_us);
	window = gl_window(rate, mss, round_trip_us, socket->ack_slack_us, restart_window);
	if (state->block_acks < 2 && ++state->block_acks == 2)
		state->restart_rate = rate;
	if (unsent > mss && unsent < 2 * mss)
		rate = gl_closing_rate(rate, mss, unsent - mss, socket->queue_tolerance_us);
	if (!unsent && !tp->packets_out) {
		/* The gap behind the first segment of the next block follows from the rate now. At
		 * the end of a block, with few senders left, that is far too high for as many as
		 * begin together: the buffer is full of first segments already.
		 */
		if (gl_is_crowded(restart_window) && state->restart_rate)
			rate = gl_min64(rate, state->restart_rate);
		state->block_acks = 0;
	}
	pace(sk, varied_rate(state, rate));
	/* Everything is acknowledged: the next bytes may start a burst, together with all other
	 * senders. */
	if (!tp->packets_out)
		window = (__u32)gl_min64(window, gl_restart_segments(restart_window));
	if (tp->snd_cwnd < window)
		window = (__u32)gl_min64(tp->snd_cwnd + acked, window);
	tp->snd_cwnd = window ? window : 1;
}

/* The receiver's side: payload arrived. With a restart window of one segment the sender waits for
 * each acknowledgement, so none may be delayed.
 */
static __always_inline void acknowledge_at_once(struct sock *sk)
{
	struct gl_socket *socket = bpf_sk_storage_get(&gl_socket, sk, 0, 0);

	if (socket && gl_restart_segments(socket->window_out) < 2)
		((struct inet_connection_sock *)sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

#endif
