/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP (RFC 8257) as a congestion control of the kernel, for comparison: not every kernel has its
 * own. Switches mark packets above a threshold, receivers echo each mark, senders reduce their
 * window by the marked share. Registered by `bpftool struct_ops register`.
 */
#include "lib/common.h"
#include "lib/law.h"

#define DCTCP_NEEDS_ECN 2
#define DCTCP_NON_RESTRICTED 1

/* Fixed point of alpha; RFC 8257 starts it at one and adds a window's share with a weight of 1/16.
 */
#define ALPHA_ONE 1024U
#define ALPHA_SHIFT 4

/* include/net/tcp.h */
#define TCP_ECN_DEMAND_CWR 4

struct dctcp {
	__u32 received;	    /* rcv_nxt at the last packet with payload */
	__u32 window_end;   /* the observation window ends when this is acknowledged */
	__u32 delivered;    /* segments, at its begin */
	__u32 delivered_ce; /* of them marked */
	__u32 alpha;
	__u32 loss_window; /* before a loss, for undo */
	__u8 marked;	   /* the last packet with payload was */
};

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct dctcp *dctcp_of(struct sock *sk)
{
	return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void begin_window(struct sock *sk)
{
	struct dctcp *dctcp = dctcp_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	dctcp->window_end = tp->snd_nxt;
	dctcp->delivered = tp->delivered;
	dctcp->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops")
void BPF_PROG(gl_dctcp_init, struct sock *sk)
{
	struct dctcp *dctcp = dctcp_of(sk);

	*dctcp = (struct dctcp){.alpha = ALPHA_ONE, .received = tcp_of(sk)->rcv_nxt};
	begin_window(sk);
}

/* Once per window: the marked share. */
SEC("struct_ops")
void BPF_PROG(gl_dctcp_ack, struct sock *sk, __u32 flags)
{
	struct dctcp *dctcp = dctcp_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	__u32 delivered, marked, alpha;

	if ((__s32)(tp->snd_una - dctcp->window_end) < 0)
		return;
	delivered = tp->delivered - dctcp->delivered;
	marked = tp->delivered_ce - dctcp->delivered_ce;
	alpha = dctcp->alpha;
	alpha -= alpha >> ALPHA_SHIFT ? alpha >> ALPHA_SHIFT : alpha;
	if (marked && delivered)
		alpha += (marked << (10 - ALPHA_SHIFT)) / delivered;
	dctcp->alpha = (__u32)gl_min64(alpha, ALPHA_ONE);
	begin_window(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(gl_dctcp_ssthresh, struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd;

	dctcp_of(sk)->loss_window = window;
	return (__u32)gl_max64(window - (window * dctcp_of(sk)->alpha >> 11), 2);
}

SEC("struct_ops")
void BPF_PROG(gl_dctcp_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(gl_dctcp_undo, struct sock *sk)
{
	return (__u32)gl_max64(tcp_of(sk)->snd_cwnd, dctcp_of(sk)->loss_window);
}

/* The echo on acknowledgements follows the last packet, not the kernel's latch until CWR. */
static __always_inline void echo(struct sock *sk, bool marked)
{
	if (marked)
		tcp_of(sk)->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tcp_of(sk)->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

SEC("struct_ops")
void BPF_PROG(gl_dctcp_event, struct sock *sk, enum tcp_ca_event event)
{
	struct inet_connection_sock *connection = (struct inet_connection_sock *)sk;
	struct dctcp *dctcp = dctcp_of(sk);
	bool marked = event == CA_EVENT_ECN_IS_CE;

	if (!marked && event != CA_EVENT_ECN_NO_CE)
		return;
	if (dctcp->marked != marked) {
		/* What a delayed acknowledgement stands for had the other state. */
		if (connection->icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(sk, dctcp->marked);
			bpf_tcp_send_ack(tcp_of(sk), dctcp->received);
		}
		connection->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	dctcp->received = tcp_of(sk)->rcv_nxt;
	dctcp->marked = marked;
	echo(sk, marked);
}

SEC("struct_ops")
void BPF_PROG(gl_dctcp_set_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_Loss) {
		dctcp_of(sk)->loss_window = tcp_of(sk)->snd_cwnd;
		tcp_of(sk)->snd_ssthresh = (__u32)gl_max64(tcp_of(sk)->snd_cwnd >> 1, 2);
	}
}

SEC(".struct_ops")
struct tcp_congestion_ops gl_dctcp = {
	.init = (void *)gl_dctcp_init,
	.in_ack_event = (void *)gl_dctcp_ack,
	.ssthresh = (void *)gl_dctcp_ssthresh,
	.cong_avoid = (void *)gl_dctcp_avoid,
	.undo_cwnd = (void *)gl_dctcp_undo,
	.cwnd_event = (void *)gl_dctcp_event,
	.set_state = (void *)gl_dctcp_set_state,
	.flags = DCTCP_NON_RESTRICTED | DCTCP_NEEDS_ECN,
	.name = "gl_dctcp",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
