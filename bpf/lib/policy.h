/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket policy, the one owner of a job socket's options: makes the socket storage, sets the
 * retransmission floor and the congestion control, and has SCC's option written and read.
 */
#ifndef GRADLANE_LIB_POLICY_H
#define GRADLANE_LIB_POLICY_H

#include "activity.h"
#include "common.h"
#include "count.h"
#include "option.h"
#include "socket.h"

/* The settings; key 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gl_scc_config);
} gl_scc_config SEC(".maps");

static __always_inline struct gl_scc_config *settings(void)
{
	__u32 key = 0;
	struct gl_scc_config *config = bpf_map_lookup_elem(&gl_scc_config, &key);

	/* Without a link rate the settings were never written. */
	return config && config->payload_rate ? config : NULL;
}

static __always_inline struct gl_activity *activity_of(__u32 direction)
{
	return bpf_map_lookup_elem(&gl_activity, &direction);
}

/* Adds to the callbacks that other programs may have asked for. */
static __always_inline void ask_for(struct bpf_sock_ops *ops, __u32 flags)
{
	bpf_sock_ops_cb_flags_set(ops, (int)(ops->bpf_sock_ops_cb_flags | flags));
}

/* Kernel's range of TCP_BPF_RTO_MIN: two jiffies to 200 ms; a floor below is raised by the kernel
 * to that. */
static __always_inline void set_floor(struct bpf_sock_ops *ops, __u32 floor_us)
{
	int value = (int)floor_us;

	if (value && bpf_setsockopt(ops, SOL_TCP, TCP_BPF_RTO_MIN, &value, sizeof(value)))
		gl_count_up(GL_COUNT_FLOOR_REFUSED);
}

#define KERNEL_FLOOR_US 200000

/* The first timeout is computed in the handshake, before the round-trip time is known: sockets
 * start with the floor of near peers and give it back in established() where the peer turns out to
 * be far.
 */
static __always_inline void starting(struct bpf_sock_ops *ops, const struct gl_scc_config *config)
{
	int yes = 1;

	if (!config->enabled)
		return;
	set_floor(ops, config->floor_us);
	ask_for(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	/* A passive socket finds the peer's capability in the saved SYN. */
	if (ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB)
		bpf_setsockopt(ops, SOL_TCP, TCP_SAVE_SYN, &yes, sizeof(yes));
}

/* Without it the last odd segment of a burst is acknowledged 40 ms late. The kernel's range is that
 * of the floor.
 */
static __always_inline void set_acknowledgement_delay(struct bpf_sock_ops *ops, __u32 delay_us)
{
	int value = (int)delay_us;

	if (value && bpf_setsockopt(ops, SOL_TCP, TCP_BPF_DELACK_MAX, &value, sizeof(value)))
		gl_count_up(GL_COUNT_FLOOR_REFUSED);
}

static __always_inline void stop_options(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(
		ops, (int)(ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG));
}

static __always_inline void established(struct bpf_sock_ops *ops,
					const struct gl_scc_config *config)
{
	bool passive = ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
	struct bpf_sock *sk = ops->sk;
	char name[] = GL_SCC_NAME;
	struct gl_socket *socket;

	if (!sk)
		return;
	gl_count_up(GL_COUNT_SOCKETS);
	socket = bpf_sk_storage_get(&gl_socket, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!socket) {
		gl_count_up(GL_COUNT_NO_STORAGE);
		return;
	}
	socket->job_lane = GL_LANE_UNKNOWN;
	/* Never seen: older than the wheel is long. */
	for (int direction = 0; direction < GL_DIRECTIONS; direction++) {
		socket->place[direction].slot =
			(__u32)(bpf_ktime_get_ns() / GL_SLOT_NS) - 2 * GL_WHEEL;
		socket->place[direction].lane = GL_LANE_BULK;
	}
	/* A quarter of the buffer, but not less than two round trips of a path without queues. */
	socket->queue_tolerance_us =
		(__u32)gl_max64(2 * config->round_trip_us,
				config->buffer / 4 * GL_SECOND_US / config->payload_rate);
	/* Half of the buffer: what all senders together may have in flight when acknowledgements
	 * are late. */
	socket->ack_slack_us = (__u32)gl_max64(
		config->round_trip_us, config->buffer / 2 * GL_SECOND_US / config->payload_rate);
	if (!config->enabled)
		return;
	/* srtt_us is in eighths of a microsecond. */
	if (ops->srtt_us >> 3 > config->near_us) {
		set_floor(ops, KERNEL_FLOOR_US);
		stop_options(ops);
		gl_count_up(GL_COUNT_SCC_FAR);
		return;
	}
	if (!gl_peer_is_capable(ops, passive)) {
		stop_options(ops);
		gl_count_up(GL_COUNT_SCC_PEER_UNAWARE);
		return;
	}
	set_floor(ops, config->floor_us);
	set_acknowledgement_delay(ops, config->floor_us);
	socket->flags |= GL_SOCKET_AWARE;
	ask_for(ops,
		BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		gl_count_up(GL_COUNT_SCC_REFUSED);
		return;
	}
	socket->flags |= GL_SOCKET_SCC;
	gl_count_up(GL_COUNT_SCC_ON);
}

static __always_inline void write_option(struct bpf_sock_ops *ops,
					 const struct gl_scc_config *config)
{
	struct gl_activity *activity;
	struct gl_socket *socket;
	struct bpf_sock *sk = ops->sk;
	__u32 lane;

	if (ops->skb_tcp_flags & GL_TCP_SYN) {
		gl_write_capable(ops);
		return;
	}
	if (!sk)
		return;
	socket = bpf_sk_storage_get(&gl_socket, sk, 0, 0);
	activity = activity_of(GL_ARRIVING);
	if (!socket || !activity)
		return;
	lane = socket->place[GL_ARRIVING].lane & (GL_LANES - 1);
	if (!activity->grant[lane])
		return;
	if (gl_write_grant(
		    ops,
		    gl_own_share(activity->grant[lane], socket->place[GL_ARRIVING].bytes,
				 gl_mean_progress(activity, lane), GL_SEGMENT),
		    gl_restart_window(config->buffer, GL_SEGMENT, gl_expected_senders(activity))))
		gl_count_up(GL_COUNT_GRANTS_NO_ROOM);
	else
		gl_count_up(GL_COUNT_GRANTS_SENT);
}

static __always_inline void read_option(struct bpf_sock_ops *ops)
{
	struct gl_grant_option option = {};
	struct gl_socket *socket;
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return;
	socket = bpf_sk_storage_get(&gl_socket, sk, 0, 0);
	if (!socket)
		return;
	switch (gl_read_grant(ops, &option)) {
	case 0:
		socket->grant = gl_decode_rate(bpf_ntohs(option.rate));
		socket->restart_window = option.restart_window;
		socket->grant_ns = bpf_ktime_get_ns();
		socket->flags |= GL_SOCKET_GRANTED;
		gl_count_up(GL_COUNT_GRANTS_RECEIVED);
		break;
	case -1:
		gl_count_up(GL_COUNT_GRANTS_BAD);
		break;
	}
}

/* Dispatches a callback of a job's socket. */
static __always_inline void gl_socket_event(struct bpf_sock_ops *ops)
{
	struct gl_scc_config *config = settings();

	if (!config) {
		gl_count_up(GL_COUNT_NO_CONFIG);
		return;
	}
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		starting(ops, config);
		break;
	case BPF_SOCK_OPS_NEEDS_ECN:
		/* SCC's receiver acknowledges at once by an event that comes with ECN only. */
		ops->reply = config->enabled;
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		established(ops, config);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		gl_reserve_option(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ops, config);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		read_option(ops);
		break;
	}
}

/* The lane of an arriving packet is what it is marked with, that of a leaving one its socket's tag:
 * it is marked later.
 */
static __always_inline __u32 lane_of(struct __sk_buff *skb, const struct gl_socket *socket,
				     const struct gl_packet *packet, __u32 direction,
				     const struct gl_scc_config *config)
{
	__u32 lane = GL_LANES;
	__u32 dscp = packet->dscp;

	/* The compiler knows the range already, the verifier of kernel 6.1 does not. */
	barrier_var(dscp);
	if (direction == GL_ARRIVING)
		return config->lane_of_dscp[dscp & 63];
	if (skb->priority < GL_TAGS)
		lane = config->lane_of_tag[skb->priority & 7];
	return lane < GL_LANES ? lane : socket->job_lane;
}

/* Whether the last segment of a packet was not full: the sender had nothing to fill it with. PSH
 * alone says only where a program's write ended. The segment size is that of this side, which is
 * the peer's too on links of one MTU.
 */
static __always_inline bool ends_short(struct bpf_sock *sk, __u32 payload)
{
	struct bpf_tcp_sock *tp;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	tp = sk ? bpf_tcp_sock(sk) : NULL;
	return tp && tp->mss_cache && payload % tp->mss_cache;
}

/* Counts who sends payload to this host's job sockets, or from them. */
static __always_inline void gl_count_sender(struct __sk_buff *skb, __u32 direction)
{
	struct gl_scc_config *config;
	struct gl_activity *activity;
	struct gl_packet packet;
	struct gl_socket *socket = gl_job_socket(skb);
	__u32 lane;

	if (!socket || !(socket->flags & GL_SOCKET_AWARE))
		return;
	if (gl_read_packet(skb, &packet) || !packet.payload)
		return;
	config = settings();
	activity = activity_of(direction);
	if (!config || !activity)
		return;
	lane = lane_of(skb, socket, &packet, direction, config) & (GL_LANES - 1);
	gl_note_payload(activity, &socket->place[direction & 1], lane, packet.payload,
			packet.pushed && ends_short(skb->sk, packet.payload), bpf_ktime_get_ns(),
			config);
	if (direction == GL_LEAVING) {
		/* The sender's own link is shared out by the same rules. */
		socket->own_grant = activity->grant[lane];
		socket->own_restart_window = gl_restart_window(config->buffer, GL_SEGMENT,
							       gl_expected_senders(activity));
	}
}

#endif
