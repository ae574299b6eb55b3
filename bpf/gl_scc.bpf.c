// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SCC as a congestion control of the kernel: the operations and their registration. */
#include "lib/control.h"

#define CONG_CONTROL_NON_RESTRICTED 1 /* TCP_CONG_NON_RESTRICTED: any process may choose it */
#define CONG_CONTROL_NEEDS_ECN 2      /* TCP_CONG_NEEDS_ECN */

/* The socket buffer in windows of at least ten segments; within net.ipv4.tcp_wmem. */
#define GL_BUFFER_WINDOWS 16

SEC("struct_ops")
void BPF_PROG(gl_scc_init, struct sock *sk)
{
	struct gl_scc_state *state = state_of(sk);

	*state = (struct gl_scc_state){.brake = GL_ONE};
	/* Before the first grant a new connection sends little: all the others may start now, too.
	 */
	tcp_sk(sk)->snd_cwnd = 2;
}

/* From kernel 6.10 on (57bfc7605ca5). */
SEC("?struct_ops")
void BPF_PROG(gl_scc_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, ack, rs);
}

/* Before kernel 6.10. */
SEC("?struct_ops")
void BPF_PROG(gl_scc_control3, struct sock *sk, const struct rate_sample *rs)
{
	control(sk, 0, rs);
}

SEC("struct_ops")
__u32 BPF_PROG(gl_scc_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	state_of(sk)->prior_window = tp->snd_cwnd;
	return state_of(sk)->granted ? (__u32)gl_max64(tp->snd_cwnd, 2) : tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(gl_scc_undo, struct sock *sk)
{
	return (__u32)gl_max64(tcp_sk(sk)->snd_cwnd, state_of(sk)->prior_window);
}

/* With ECN the kernel tells of each packet with payload, marked or not. */
SEC("struct_ops")
void BPF_PROG(gl_scc_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_ECN_NO_CE || event == CA_EVENT_ECN_IS_CE)
		acknowledge_at_once(sk);
}

SEC("struct_ops")
void BPF_PROG(gl_scc_set_state, struct sock *sk, __u8 new_state)
{
	struct gl_scc_state *state = state_of(sk);

	if (new_state != TCP_CA_Recovery && new_state != TCP_CA_Loss)
		return;
	state->brake = (__u32)gl_max64(state->brake * GL_BRAKE_LOSS / GL_ONE, GL_BRAKE_LEAST);
	state->lossy_round = 1;
}

/* The kernel would send bursts of half a millisecond at the least; a paced sender of few segments
 * sends the restart window at once, but no more than two segments, so that acknowledgements are not
 * delayed.
 */
SEC("struct_ops")
__u32 BPF_PROG(gl_scc_min_segments, struct sock *sk)
{
	struct gl_socket *socket = bpf_sk_storage_get(&gl_socket, sk, 0, 0);

	return socket && gl_restart_segments(socket->restart_window) > 1 ? 2 : 1;
}

/* The kernel's own buffer of two windows would have the application refill it every few
 * milliseconds, for windows are small here.
 */
SEC("struct_ops")
__u32 BPF_PROG(gl_scc_buffer, struct sock *sk)
{
	return GL_BUFFER_WINDOWS;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops gl_scc = {
	.init = (void *)gl_scc_init,
	.ssthresh = (void *)gl_scc_ssthresh,
	.undo_cwnd = (void *)gl_scc_undo,
	.set_state = (void *)gl_scc_set_state,
	.cwnd_event = (void *)gl_scc_event,
	.min_tso_segs = (void *)gl_scc_min_segments,
	.sndbuf_expand = (void *)gl_scc_buffer,
	.cong_control = (void *)gl_scc_control,
	.flags = CONG_CONTROL_NON_RESTRICTED | CONG_CONTROL_NEEDS_ECN,
	.name = GL_SCC_NAME,
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
